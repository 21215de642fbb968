//! What the numbers of samples tell: which came, and how many are missing.

use super::PacketCounters;

/// A gap wider than this is believed only when the next sample confirms it: a damaged number would end the stream. About
/// four minutes of 1080p30 in slices of eight lines.
const GAP_MAX: u64 = 1 << 20;

/// The numbers of one sender's samples, which come in their order: a topic keeps the order of a writer.
#[derive(Debug, Default)]
pub(super) struct SampleNumbers {
    /// The last one that came in order; `None` before the first.
    last: Option<u64>,
    /// A number far from all others, which the one after it confirms.
    doubted: Option<u64>,
}

/// What a number says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbered {
    /// The next one, or one after a gap.
    New,
    /// It came before, or samples after it did.
    Again,
    /// It is far from all others, and nothing confirms it yet.
    Doubted,
}

impl SampleNumbers {
    /// Counts a sample.
    pub(super) fn insert(&mut self, number: u64, counters: &mut PacketCounters) -> Numbered {
        let Some(last) = self.last else { return self.begin_at(number, counters) };
        match number.checked_sub(last) {
            Some(step @ 1..=GAP_MAX) => {
                (self.last, self.doubted) = (Some(number), None);
                counters.expected += step;
                counters.lost += step - 1;
                counters.received += 1;
                Numbered::New
            }
            _ if number <= last && last - number <= GAP_MAX => {
                counters.duplicates += 1;
                Numbered::Again
            }
            _ if self.doubted.is_some_and(|doubted| doubted.checked_add(1) == Some(number)) => {
                self.begin_at(number, counters)
            }
            _ => {
                self.doubted = Some(number);
                counters.implausible += 1;
                Numbered::Doubted
            }
        }
    }

    /// Another sender counts anew.
    pub(super) fn reset(&mut self) {
        *self = SampleNumbers::default();
    }

    fn begin_at(&mut self, number: u64, counters: &mut PacketCounters) -> Numbered {
        (self.last, self.doubted) = (Some(number), None);
        counters.expected += 1;
        counters.received += 1;
        Numbered::New
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(numbers: &[u64], expect: [u64; 5]) {
        let mut counters = PacketCounters::default();
        let mut sequence = SampleNumbers::default();
        for number in numbers {
            sequence.insert(*number, &mut counters);
            assert!(counters.are_consistent(), "{counters:?}");
        }
        let PacketCounters { expected, received, lost, duplicates, implausible, .. } = counters;
        assert_eq!([expected, received, lost, duplicates, implausible], expect, "{numbers:?}");
    }

    #[test]
    fn each_number_from_the_first_to_the_last_has_one_fate() {
        check(&[], [0; 5]);
        check(&[7, 8, 9], [3, 3, 0, 0, 0]);
        check(&[7, 9, 8, 12], [6, 3, 3, 1, 0]);
        check(&[0, u64::MAX, 1], [2, 2, 0, 0, 1]);
        check(&[0, 1 << 40, (1 << 40) + 1, (1 << 40) + 3], [4, 3, 1, 0, 1]);
        check(&[1 << 40, 3, 4, 5], [3, 3, 0, 0, 1]);
        check(&[u64::MAX, u64::MAX], [1, 1, 0, 1, 0]);
    }
}
