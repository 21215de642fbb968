//! Sets of sequence numbers.

use std::collections::VecDeque;

use thalweg::types::SequenceNumber;

/// Sequence numbers, of which those that follow each other take the room of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberSet {
    /// Both ends included, in order, with a number between any two that is in neither.
    ranges: VecDeque<(i64, i64)>,
    /// Beyond so many ranges, the oldest gap counts as filled.
    ranges_max: usize,
}

impl Default for NumberSet {
    fn default() -> NumberSet {
        NumberSet::of_ranges(RANGES_MAX)
    }
}

impl NumberSet {
    /// An empty one that keeps so many ranges apart, 16 octets each, at least one; by default 1,024. Beyond them, the oldest gap counts as
    /// filled.
    pub fn of_ranges(ranges_max: usize) -> NumberSet {
        NumberSet { ranges: VecDeque::new(), ranges_max: ranges_max.max(1) }
    }

    /// All numbers up to this one.
    pub fn up_to(last: SequenceNumber) -> NumberSet {
        NumberSet { ranges: VecDeque::from([(i64::MIN, last.0)]), ranges_max: RANGES_MAX }
    }

    /// Whether a number is in the set.
    pub fn has(&self, number: SequenceNumber) -> bool {
        let place = self.ranges.partition_point(|(_, last)| *last < number.0);
        self.ranges.get(place).is_some_and(|(first, _)| *first <= number.0)
    }

    /// The highest number; `None` in an empty set.
    pub fn last(&self) -> Option<SequenceNumber> {
        self.ranges.back().map(|(_, last)| SequenceNumber(*last))
    }

    /// Adds a number; false when it was there already.
    pub fn insert(&mut self, number: SequenceNumber) -> bool {
        let SequenceNumber(number) = number;
        let place = self.ranges.partition_point(|(_, last)| *last < number.saturating_sub(1));
        match self.ranges.get_mut(place) {
            Some((first, last)) if *first <= number && number <= *last => return false,
            Some((_, last)) if last.checked_add(1) == Some(number) => {
                *last = number;
                self.join(place);
            }
            Some((first, _)) if number.checked_add(1) == Some(*first) => *first = number,
            _ => self.ranges.insert(place, (number, number)),
        }
        if self.ranges.len() > self.ranges_max
            && let Some((first, _)) = self.ranges.pop_front()
            && let Some(second) = self.ranges.front_mut()
        {
            // What was missed longest ago is the least likely to come.
            second.0 = first;
        }
        true
    }

    /// Makes one range of this and the next one where no number is between them.
    fn join(&mut self, place: usize) {
        let Some((first, last)) = self.ranges.get(place + 1).copied() else { return };
        if self.ranges[place].1.checked_add(1) == Some(first) {
            self.ranges[place].1 = last;
            self.ranges.remove(place + 1);
        }
    }
}

/// Ranges of a set, chosen by us: as many gaps are in what a bad link lets through in several seconds.
const RANGES_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_taken_once_in_any_order() {
        let mut set = NumberSet::default();
        let order = [5, 3, 4, 1, 9, 7, 8, 2, 6];
        for (place, number) in order.into_iter().enumerate() {
            let had: Vec<i64> = (0..=10).filter(|number| set.has(SequenceNumber(*number))).collect();
            let mut expected = order[..place].to_vec();
            expected.sort_unstable();
            assert_eq!(had, expected);
            assert!(set.insert(SequenceNumber(number)) && !set.insert(SequenceNumber(number)), "{number}");
        }
        assert_eq!(set.ranges, [(1, 9)]);
        assert_eq!((set.last(), NumberSet::default().last()), (Some(SequenceNumber(9)), None));
        assert!(set.insert(SequenceNumber(i64::MAX)) && set.insert(SequenceNumber(i64::MIN)));
        assert!(!set.insert(SequenceNumber(i64::MAX)) && !set.insert(SequenceNumber(i64::MIN)));
        let mut all = NumberSet::up_to(SequenceNumber(3));
        assert!(all.has(SequenceNumber(1)) && !all.insert(SequenceNumber(3)) && all.insert(SequenceNumber(4)));
        assert_eq!(all, NumberSet::up_to(SequenceNumber(4)));
    }

    #[test]
    fn gaps_without_end_take_no_memory_without_end() {
        let mut set = NumberSet::default();
        assert!((100..100_000).step_by(2).all(|number| set.insert(SequenceNumber(number))));
        assert_eq!(set.ranges.len(), RANGES_MAX);
        assert!(!set.insert(SequenceNumber(101)) && set.insert(SequenceNumber(99_997)));
        assert!(set.insert(SequenceNumber(1)), "below all gaps");
    }
}
