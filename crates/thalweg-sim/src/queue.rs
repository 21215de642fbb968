//! What is to happen, in order of virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use thalweg_rtps::time::Instant;

/// Future occurrences; those of the same instant happen in the order in which they were planned.
#[derive(Debug)]
pub struct EventQueue<T> {
    order: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    payloads: Vec<Option<T>>,
    free: Vec<usize>,
    planned: u64,
}

impl<T> Default for EventQueue<T> {
    fn default() -> EventQueue<T> {
        EventQueue { order: BinaryHeap::new(), payloads: Vec::new(), free: Vec::new(), planned: 0 }
    }
}

impl<T> EventQueue<T> {
    /// Plans `what` for `at`; [`Instant::NEVER`] plans nothing.
    pub fn plan(&mut self, at: Instant, what: T) {
        if at == Instant::NEVER {
            return;
        }
        self.planned += 1;
        self.postpone(at, self.planned, what);
    }

    /// Plans `what`, which had `turn` when it was due before, for `at`: it comes before whatever was planned later for then.
    pub fn postpone(&mut self, at: Instant, turn: u64, what: T) {
        let place = match self.free.pop() {
            Some(place) => {
                self.payloads[place] = Some(what);
                place
            }
            None => {
                self.payloads.push(Some(what));
                self.payloads.len() - 1
            }
        };
        self.order.push(Reverse((at, turn, place)));
    }

    /// Removes and returns what happens next: when, its turn among all that was planned, and what.
    pub fn pop(&mut self) -> Option<(Instant, u64, T)> {
        let Reverse((at, turn, place)) = self.order.pop()?;
        self.free.push(place);
        self.payloads[place].take().map(|what| (at, turn, what))
    }

    /// When the next thing happens.
    pub fn next_at(&self) -> Option<Instant> {
        self.order.peek().map(|Reverse((at, _, _))| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_happen_in_order_of_time_then_of_planning() {
        let mut queue = EventQueue::default();
        for (at, what) in [(5, 'c'), (1, 'a'), (5, 'd'), (3, 'b')] {
            queue.plan(Instant::from_nanos(at), what);
        }
        queue.plan(Instant::NEVER, 'z');
        let mut happened = String::new();
        while let Some((_, _, what)) = queue.pop() {
            happened.push(what);
        }
        assert_eq!(happened, "abcd");
    }

    #[test]
    fn what_is_postponed_keeps_its_turn() {
        let mut queue = EventQueue::default();
        queue.plan(Instant::from_nanos(1), 'a');
        queue.plan(Instant::from_nanos(5), 'b');
        let (_, turn, what) = queue.pop().expect("two are planned");
        queue.postpone(Instant::from_nanos(5), turn, what);
        let mut happened = String::new();
        while let Some((_, _, what)) = queue.pop() {
            happened.push(what);
        }
        assert_eq!(happened, "ab");
    }
}
