//! A window that went on because of a lie comes back: nothing beyond the writer's last number is skipped or held.

use super::skips::{RANGES_MAX, Skips};
use super::window::{NUMBERS_MAX, Window};
use crate::types::SequenceNumber;

impl Window {
    /// The first number beyond `last` that was skipped or is held although the writer has not got so far. `None`: all is well.
    pub(super) fn first_beyond(&self, last: SequenceNumber) -> Option<SequenceNumber> {
        self.skips.first_beyond(last).or_else(|| self.settled.first_from(last.next().max(self.next)))
    }

    /// The first number that was neither delivered nor skipped with the knowledge of a writer whose last number is `last`.
    pub(super) fn acknowledged_by(&self, last: SequenceNumber) -> SequenceNumber {
        self.skips.start_of_beyond(last).map_or(self.next, |start| start.min(self.next))
    }

    /// Where the window is and what it has skipped, apart from a skip behind which nothing was delivered, and which reaches beyond the
    /// number up to which the writer has told what it has.
    pub(super) fn without_doubtful_end(&self, told: SequenceNumber) -> (SequenceNumber, Skips) {
        let mut skips = self.skips.clone();
        let is_doubtful = self.next > told.next();
        let start = if is_doubtful { skips.take_last(self.next.previous(), self.next) } else { None };
        (start.unwrap_or(self.next), skips)
    }

    /// The writer holds what it has from `first` on, and its last number is `last`, against what was claimed before. Numbers
    /// skipped from `first` on are expected again, since the same lie may have skipped them; samples held beyond `last` were made up.
    /// Delivered samples are not delivered again: where it is not known any more which of a range were, none is. Returns whether the
    /// window changed.
    pub(super) fn retreat(&mut self, first: SequenceNumber, last: SequenceNumber) -> bool {
        let end = last.next().max(self.next);
        let changes = self.settled.remove_from(end);
        while let Some((_, arrived)) = self.arrived.pop_back_if(|(number, _)| *number >= end) {
            self.held_bytes -= arrived.bytes();
        }
        self.tidy();
        let undone = self.skips.take_from(first.min(last.next()), last);
        let Some((start, _)) = undone.first().copied() else { return changes };
        let ends = undone.iter().map(|range| range.1);
        let starts = undone.iter().skip(1).map(|range| range.0).chain([self.next]);
        let delivered = ends.zip(starts).filter(|range| range.0 < range.1);
        let later = std::mem::take(&mut self.done);
        self.done = delivered.chain(later).take(RANGES_MAX).collect();
        self.reopen(start);
        self.pass_done();
        true
    }

    /// Expects everything from `start` on again.
    fn reopen(&mut self, start: SequenceNumber) {
        if self.highest() - start >= NUMBERS_MAX {
            self.settled.clear();
            self.arrived.clear();
            self.held_bytes = 0;
        }
        self.next = start;
        self.lost_below = self.lost_below.min(start);
    }

    /// A sample has come that was skipped last, beyond the number up to which a writer has told what it has: it was wrong to skip
    /// it. Nothing was delivered since, so nothing is out of order.
    pub(super) fn take_back(&mut self, sequence: SequenceNumber, told: SequenceNumber) {
        if sequence <= told || sequence >= self.next {
            return;
        }
        let Some(start) = self.skips.take_last(sequence, self.next) else { return };
        self.reopen(start);
    }

    /// Passes over what was delivered before the window came back.
    #[cold]
    pub(super) fn pass_done(&mut self) {
        while let Some((_, end)) = self.done.first().copied().filter(|range| range.0 <= self.next) {
            self.done.remove(0);
            self.next = self.next.max(end);
            self.settled.remove_below(self.next);
            while let Some((_, arrived)) = self.arrived.pop_front_if(|(number, _)| *number < self.next) {
                self.held_bytes -= arrived.bytes();
            }
        }
    }

    /// Whether `sequence` was delivered before the window came back.
    pub(super) fn is_done(&self, sequence: SequenceNumber) -> bool {
        self.done.iter().any(|range| (range.0..range.1).contains(&sequence))
    }
}

#[cfg(test)]
mod tests {
    use super::super::window_tests::{drain, number, sample};
    use super::*;

    #[test]
    fn a_window_comes_back_and_delivers_nothing_twice() {
        let mut window = Window::new(number(1));
        window.place(sample(1));
        assert_eq!(drain(&mut window), [1]);
        window.mark_irrelevant(number(2), number(4));
        for n in 4..=6 {
            window.place(sample(n));
        }
        assert_eq!(drain(&mut window), [4, 5, 6]);
        window.mark_irrelevant(number(7), number(1 << 40));
        window.place(sample(1 << 40));
        assert_eq!(drain(&mut window), [1 << 40]);
        assert_eq!(window.first_beyond(number(8)), Some(number(9)));
        assert_eq!(window.acknowledged_by(number(8)), number(7));
        assert!(window.retreat(number(8), number(8)));
        assert_eq!((window.next(), window.first_beyond(number(8))), (number(7), None));
        for n in [8, 7, 9, 1 << 40] {
            window.place(sample(n));
        }
        assert_eq!(drain(&mut window), [7, 8, 9]);
        window.mark_irrelevant(number(10), number(1 << 40));
        window.place(sample(1 << 40));
        window.place(sample((1 << 40) + 1));
        assert_eq!(drain(&mut window), [(1 << 40) + 1], "the one before was delivered");
    }

    #[test]
    fn what_was_delivered_between_lies_stays_delivered() {
        let mut window = Window::new(number(1));
        window.mark_irrelevant(number(1), number(100));
        (100..110).for_each(|n| _ = window.place(sample(n)));
        assert_eq!(drain(&mut window).len(), 10);
        assert!(window.retreat(number(1), number(5)), "the lie is that the writer has no more");
        assert_eq!(window.next(), number(1));
        (100..112).for_each(|n| _ = window.place(sample(n)));
        window.mark_irrelevant(number(1), number(100));
        assert_eq!(drain(&mut window), [110, 111]);
    }

    #[test]
    fn what_was_delivered_among_more_skips_than_are_kept_stays_delivered() {
        let mut window = Window::new(number(1));
        let odd = |from: i64| (from..200).step_by(2);
        for n in odd(1) {
            window.mark_irrelevant(number(n), number(n + 1));
            window.place(sample(n + 1));
        }
        assert_eq!(drain(&mut window).len(), 100);
        window.mark_irrelevant(number(201), number(1 << 40));
        assert!(window.retreat(number(1), number(200)));
        (1..=201).for_each(|n| _ = window.place(sample(n)));
        let again = drain(&mut window);
        assert!(again.iter().all(|n| n % 2 == 1) && again.len() < 100 && again.contains(&201), "{again:?}");
    }

    #[test]
    fn a_sample_that_comes_all_the_same_takes_its_skip_back() {
        let mut window = Window::new(number(1));
        window.mark_irrelevant(number(1), number(3));
        window.place(sample(4));
        for (sequence, told, next) in [(3, 0, 3), (2, 2, 3), (2, 1, 1)] {
            window.take_back(number(sequence), number(told));
            assert_eq!(window.next(), number(next));
        }
        (1..=3).for_each(|n| _ = window.place(sample(n)));
        assert_eq!(drain(&mut window), [1, 2, 3, 4]);
        window.mark_irrelevant(number(5), number(1 << 40));
        window.place(sample((1 << 40) + 1));
        window.take_back(number(6), number(4));
        assert_eq!((window.next(), window.load()), (number(5), (0, 0)));
    }

    #[test]
    fn what_the_same_lie_skipped_comes_back_too() {
        let mut window = Window::new(number(1));
        window.place(sample(16));
        window.mark_irrelevant(number(1), number(1 << 40));
        assert_eq!(drain(&mut window), [16]);
        assert!(window.retreat(number(1), number(17)));
        (1..=17).for_each(|n| _ = window.place(sample(n)));
        assert_eq!(drain(&mut window), (1..=15).chain([17]).collect::<Vec<i64>>());
    }

    #[test]
    fn what_is_held_beyond_the_end_goes() {
        let mut window = Window::new(number(1));
        for n in [2, 5, 900] {
            window.place(sample(n));
        }
        window.mark_irrelevant(number(7), number(1 << 40));
        assert_eq!(window.first_beyond(number(3)), Some(number(5)));
        assert!(window.retreat(number(3), number(3)));
        assert_eq!(window.load(), (2, 4));
        assert!(!window.retreat(number(3), number(3)));
        window.place(sample(1));
        assert_eq!(drain(&mut window), [1, 2]);
    }

    #[test]
    fn the_end_of_the_numbers_is_no_trap() {
        for next in [i64::MAX - 70_000, i64::MAX - 3, i64::MAX] {
            let mut window = Window::new(number(next));
            window.place(sample(i64::MAX - 1));
            window.mark_irrelevant(number(i64::MIN), number(i64::MAX));
            drain(&mut window);
            window.lose_below(number(i64::MAX));
            for last in [i64::MIN, -1, 0, 5, next, i64::MAX] {
                window.first_beyond(number(last));
                window.acknowledged_by(number(last));
            }
            window.retreat(number(1), number(0));
            window.place(sample(i64::MAX));
            drain(&mut window);
        }
    }
}
