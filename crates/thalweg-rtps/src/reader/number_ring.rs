//! A set of numbers that lie close to each other, a bit for each.

use std::collections::VecDeque;

use crate::types::SequenceNumber;

const BITS: i64 = 64;

/// Numbers from a first one on, which rises. Whatever is asked takes a step for 64 numbers at most.
#[derive(Debug, Default)]
pub(super) struct NumberRing {
    words: VecDeque<u64>,
    /// The first word has the numbers from 64 times this on.
    base: i64,
    count: usize,
}

impl NumberRing {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many numbers are in it.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn contains(&self, number: SequenceNumber) -> bool {
        self.word(number.0.div_euclid(BITS)) & bit(number.0) != 0
    }

    fn word(&self, index: i64) -> u64 {
        let place = index.checked_sub(self.base).and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| self.words.get(place)).copied().unwrap_or(0)
    }

    /// Puts the numbers from `start` to `end` in, both included, and returns how many are new. They lie behind what was removed, and not
    /// far from the others.
    pub(super) fn insert(&mut self, start: SequenceNumber, end: SequenceNumber) -> usize {
        if start > end {
            return 0;
        }
        let (first, last) = (start.0.div_euclid(BITS), end.0.div_euclid(BITS));
        if self.words.is_empty() {
            self.base = first;
        }
        while self.base > first {
            self.words.push_front(0);
            self.base -= 1;
        }
        let len = (last - self.base) as usize + 1;
        if self.words.len() < len {
            self.words.resize(len, 0);
        }
        let before = self.count;
        for index in first..=last {
            let word = &mut self.words[(index - self.base) as usize];
            let added = mask(index, start, end) & !*word;
            *word |= added;
            self.count += added.count_ones() as usize;
        }
        self.count - before
    }

    /// Removes what is below `number`.
    pub(super) fn remove_below(&mut self, number: SequenceNumber) {
        let index = number.0.div_euclid(BITS);
        while self.base < index
            && let Some(word) = self.words.pop_front()
        {
            self.base += 1;
            self.count -= word.count_ones() as usize;
        }
        if self.base == index
            && let Some(word) = self.words.front_mut()
        {
            let kept = *word & (u64::MAX << number.0.rem_euclid(BITS));
            self.count -= (*word ^ kept).count_ones() as usize;
            *word = kept;
        }
        self.tidy();
    }

    /// Removes what is not below `number`; false when that is nothing.
    pub(super) fn remove_from(&mut self, number: SequenceNumber) -> bool {
        let before = self.count;
        let index = number.0.div_euclid(BITS);
        while self.base + self.words.len() as i64 > index + 1
            && let Some(word) = self.words.pop_back()
        {
            self.count -= word.count_ones() as usize;
        }
        if self.base + self.words.len() as i64 == index + 1
            && let Some(word) = self.words.back_mut()
        {
            let kept = *word & !(u64::MAX << number.0.rem_euclid(BITS));
            self.count -= (*word ^ kept).count_ones() as usize;
            *word = kept;
        }
        self.tidy();
        self.count < before
    }

    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.tidy();
    }

    /// Gives memory back that a single number far ahead has taken.
    fn tidy(&mut self) {
        if self.count == 0 {
            self.words.clear();
            self.words.shrink_to(WORDS_KEPT);
        }
    }

    /// The first number from `from` on that is in it.
    pub(super) fn first_from(&self, from: SequenceNumber) -> Option<SequenceNumber> {
        self.find(from, |word| word)
    }

    /// The first number from `from` on that is not in it.
    pub(super) fn first_missing(&self, from: SequenceNumber) -> SequenceNumber {
        if self.is_empty() || from.0.div_euclid(BITS) < self.base {
            return from;
        }
        let end = (self.base + self.words.len() as i64).saturating_mul(BITS);
        self.find(from, |word| !word).unwrap_or(from.max(SequenceNumber(end)))
    }

    /// The first number from `from` on, within the words that there are, whose bit is set in what `of` makes of its word.
    fn find(&self, from: SequenceNumber, of: impl Fn(u64) -> u64) -> Option<SequenceNumber> {
        let from = from.max(SequenceNumber(self.base.saturating_mul(BITS)));
        let place = usize::try_from(from.0.div_euclid(BITS) - self.base).ok()?;
        let mut mask = u64::MAX << from.0.rem_euclid(BITS);
        for (place, word) in self.words.iter().enumerate().skip(place) {
            let found = of(*word) & mask;
            if found != 0 {
                let first = (self.base + place as i64) * BITS;
                return Some(SequenceNumber(first + i64::from(found.trailing_zeros())));
            }
            mask = u64::MAX;
        }
        None
    }

    /// The greatest number.
    pub(super) fn last(&self) -> Option<SequenceNumber> {
        let (place, word) = self.words.iter().enumerate().rfind(|(_, word)| **word != 0)?;
        let first = (self.base + place as i64) * BITS;
        Some(SequenceNumber(first + (BITS - 1 - i64::from(word.leading_zeros()))))
    }

    /// How many numbers from `start` to below `end` are in it.
    pub(super) fn count_between(&self, start: SequenceNumber, end: SequenceNumber) -> usize {
        if start >= end {
            return 0;
        }
        let first = start.0.div_euclid(BITS).max(self.base);
        let end = end.previous();
        let last = end.0.div_euclid(BITS).min(self.base + self.words.len() as i64 - 1);
        (first..=last).map(|index| (self.word(index) & mask(index, start, end)).count_ones() as usize).sum()
    }
}

/// Words whose memory an empty set keeps.
const WORDS_KEPT: usize = 64;

fn bit(number: i64) -> u64 {
    1 << number.rem_euclid(BITS)
}

/// The numbers from `start` to `end`, both included, among those of a word.
fn mask(index: i64, start: SequenceNumber, end: SequenceNumber) -> u64 {
    let is_in = |number: SequenceNumber| number.0.div_euclid(BITS) == index;
    let from = if is_in(start) { u64::MAX << start.0.rem_euclid(BITS) } else { u64::MAX };
    let up_to = if is_in(end) { u64::MAX >> (BITS - 1 - end.0.rem_euclid(BITS)) } else { u64::MAX };
    from & up_to
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_ring_is_a_set() {
        let mut rng = crate::rng::Rng::new(3);
        for origin in [-1_000, 1, i64::MAX - 1_200] {
            let (mut ring, mut set) = (NumberRing::default(), BTreeSet::new());
            let mut first = origin;
            for _ in 0..4_000 {
                let start = first + rng.below(300) as i64;
                let most = if rng.chance(0.8) { 3 } else { 200 };
                let end = start + rng.below(most) as i64;
                match rng.below(12) {
                    0 => {
                        first = (first + rng.below(40) as i64).min(origin + 500);
                        ring.remove_below(SequenceNumber(first));
                        set.retain(|number| *number >= first);
                    }
                    1 => {
                        let any = set.range(start..).next().is_some();
                        assert_eq!(ring.remove_from(SequenceNumber(start)), any);
                        set.retain(|number| *number < start);
                    }
                    _ => {
                        let new = (start..end).filter(|number| set.insert(*number)).count();
                        assert_eq!(ring.insert(SequenceNumber(start), SequenceNumber(end - 1)), new);
                    }
                }
                let number = SequenceNumber(start);
                assert_eq!((ring.count(), ring.is_empty()), (set.len(), set.is_empty()));
                assert_eq!(ring.last().map(|last| last.0), set.last().copied());
                assert_eq!(ring.contains(number), set.contains(&start));
                assert_eq!(ring.first_from(number).map(|found| found.0), set.range(start..).next().copied());
                assert_eq!(ring.first_missing(number).0, (start..).find(|number| !set.contains(number)).unwrap());
                let between = if start < end { set.range(start..end).count() } else { 0 };
                assert_eq!(ring.count_between(number, SequenceNumber(end)), between);
            }
        }
    }

    #[test]
    fn what_one_far_number_took_is_given_back() {
        let mut ring = NumberRing::default();
        ring.insert(SequenceNumber(70_000), SequenceNumber(70_000));
        ring.insert(SequenceNumber(5), SequenceNumber(5));
        assert!(ring.words.capacity() >= 1_000);
        ring.clear();
        assert!(ring.words.capacity() <= WORDS_KEPT && ring.is_empty());
    }
}
