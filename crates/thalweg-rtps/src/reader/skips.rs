//! Numbers that a window skipped without having received them, so that it can go back when the claim was forged.

use crate::types::SequenceNumber;

/// Numbers from the first to below the second.
pub(super) type Range = (SequenceNumber, SequenceNumber);

/// Ranges kept of either kind. Only a lying peer causes so many that matter: those that end beyond the last number that the
/// writer names.
pub(super) const RANGES_MAX: usize = 32;

/// The ranges below the number expected next that were skipped, ascending and apart; numbers between them were delivered. With
/// too many, the two with the fewest delivered samples between them become one.
#[derive(Clone, Debug, Default)]
pub(super) struct Skips(Vec<Skip>);

/// A range that was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Skip {
    start: SequenceNumber,
    end: SequenceNumber,
    /// Some of it was delivered.
    is_joined: bool,
}

impl Skips {
    /// The numbers from `start` to below `end` are skipped: nothing behind them was handled before.
    pub(super) fn record(&mut self, start: SequenceNumber, end: SequenceNumber) {
        if start >= end {
            return;
        }
        if let Some(last) = self.0.last_mut().filter(|last| last.end >= start) {
            last.end = last.end.max(end);
            return;
        }
        if self.0.len() >= RANGES_MAX {
            let between = |index: &usize| self.0[index + 1].start - self.0[*index].end;
            let closest = (0..self.0.len() - 1).min_by_key(between).unwrap_or(0);
            let joined = self.0.remove(closest + 1);
            self.0[closest] = Skip { end: joined.end, is_joined: true, ..self.0[closest] };
        }
        self.0.push(Skip { start, end, is_joined: false });
    }

    /// The first skipped number beyond `last`.
    pub(super) fn first_beyond(&self, last: SequenceNumber) -> Option<SequenceNumber> {
        self.reaching_beyond(last).map(|skip| skip.start.max(last.next()))
    }

    /// Where the first range begins that reaches beyond `last`.
    pub(super) fn start_of_beyond(&self, last: SequenceNumber) -> Option<SequenceNumber> {
        self.reaching_beyond(last).map(|skip| skip.start)
    }

    fn reaching_beyond(&self, last: SequenceNumber) -> Option<&Skip> {
        self.0.last().filter(|skip| skip.end > last.next())?;
        self.0.iter().find(|skip| skip.end > last.next())
    }

    /// Whether `sequence` was skipped.
    pub(super) fn contains(&self, sequence: SequenceNumber) -> bool {
        let place = self.0.partition_point(|skip| skip.end <= sequence);
        self.0.get(place).is_some_and(|skip| skip.start <= sequence)
    }

    /// Whether all numbers from `start` to below `end` were skipped.
    pub(super) fn cover(&self, start: SequenceNumber, end: SequenceNumber) -> bool {
        self.0.iter().any(|skip| skip.start <= start && skip.end >= end)
    }

    /// Takes the last range back if it ends at `next` and has `sequence` in it; returns where it began.
    pub(super) fn take_last(&mut self, sequence: SequenceNumber, next: SequenceNumber) -> Option<SequenceNumber> {
        let found = |skip: &mut Skip| skip.end == next && skip.start <= sequence && sequence < skip.end;
        self.0.pop_if(found).map(|skip| skip.start)
    }

    /// Removes the ranges that reach to `first` or beyond. Returns them, without those of which some was delivered, where the writer has
    /// got so far as they reach: up to `last`.
    pub(super) fn take_from(&mut self, first: SequenceNumber, last: SequenceNumber) -> Vec<Range> {
        let place = self.0.partition_point(|skip| skip.end <= first);
        let removed = self.0.split_off(place).into_iter();
        removed.filter(|skip| !skip.is_joined || skip.end > last.next()).map(|skip| (skip.start, skip.end)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(number: i64) -> SequenceNumber {
        SequenceNumber(number)
    }

    fn ranges(skips: &Skips) -> Vec<(i64, i64)> {
        skips.0.iter().map(|skip| (skip.start.0, skip.end.0)).collect()
    }

    #[test]
    fn what_reaches_beyond_the_last_number_is_found_and_taken() {
        let mut skips = Skips::default();
        for (start, end) in [(5, 7), (7, 9), (20, 20), (30, 1 << 40), (i64::MAX - 5, i64::MAX)] {
            skips.record(number(start), number(end));
        }
        assert_eq!(ranges(&skips), [(5, 9), (30, 1 << 40), (i64::MAX - 5, i64::MAX)]);
        for (last, first, start) in [(3, Some(5), Some(5)), (7, Some(8), Some(5)), (8, Some(30), Some(30))] {
            assert_eq!(skips.first_beyond(number(last)), first.map(number), "beyond {last}");
            assert_eq!(skips.start_of_beyond(number(last)), start.map(number), "beyond {last}");
        }
        assert_eq!(skips.first_beyond(number(i64::MAX - 1)), None);
        assert_eq!(skips.take_from(number(101), number(100)).len(), 2);
        assert_eq!(skips.first_beyond(number(8)), None);
    }

    #[test]
    fn the_outermost_ends_are_never_forgotten() {
        let mut skips = Skips::default();
        for index in 0..1_000 {
            skips.record(number(100 + index * 10), number(100 + index * 10 + 5));
        }
        assert_eq!(skips.0.len(), RANGES_MAX);
        assert_eq!(skips.start_of_beyond(number(1)), Some(number(100)));
        let kept = ranges(&skips);
        assert!(kept.is_sorted() && kept.last().expect("some").1 == 10_095);
    }
}
