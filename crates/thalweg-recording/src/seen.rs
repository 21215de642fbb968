//! Which samples of a recording have come already.

use std::collections::BTreeMap;

use thalweg::types::SequenceNumber;

use crate::numbers::NumberSet;
use crate::read::Entry;

/// The samples that stood in a file: what durable writers keep is repeated at the beginning of each.
pub struct SeenSamples {
    writers: BTreeMap<String, SeenNumbers>,
}

impl SeenSamples {
    /// None so far. The memory is for those writers that are replayed; little of it is left for the others.
    pub fn new<'k>(replayed: impl ExactSizeIterator<Item = &'k String>) -> SeenSamples {
        let ranges_max = (SEEN_RANGES_MAX / replayed.len().max(1)).max(SEEN_RANGES_LEAST);
        SeenSamples { writers: replayed.map(|key| (key.clone(), SeenNumbers::new(ranges_max))).collect() }
    }

    /// Adds an entry; false when it was there already. Files of others have no GUIDs, and often no numbers: theirs are always new.
    pub fn insert(&mut self, entry: &Entry) -> bool {
        let Entry::Message { channel, sequence, .. } = entry else { return true };
        let Ok(writer) = &channel.writer else { return true };
        if writer.writer.is_empty() {
            return true;
        }
        let seen = self.writers.entry(writer.key(channel.id));
        seen.or_insert_with(|| SeenNumbers::new(SEEN_RANGES_LEAST)).insert(*sequence)
    }
}

/// The numbers of a writer, which have 32 bits in files.
struct SeenNumbers {
    numbers: NumberSet,
    /// The greatest one, with bits above the 32.
    last: Option<i64>,
}

impl SeenNumbers {
    fn new(ranges_max: usize) -> SeenNumbers {
        SeenNumbers { numbers: NumberSet::of_ranges(ranges_max), last: None }
    }

    /// Adds a number; false when it was there already.
    fn insert(&mut self, sequence: u32) -> bool {
        let last = *self.last.get_or_insert(i64::from(sequence));
        let number = last + i64::from(sequence.wrapping_sub(last as u32).cast_signed());
        self.last = Some(last.max(number));
        self.numbers.insert(SequenceNumber(number))
    }
}

/// Ranges of the numbers of all writers, chosen by us: 128 MiB, the gaps of a day at 200 Hz of which every second sample is lost.
const SEEN_RANGES_MAX: usize = 8 << 20;
/// Ranges that a writer may have however many there are, and one that is not replayed, chosen by us: 16 KiB.
const SEEN_RANGES_LEAST: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_durable_writer_kept_is_replayed_behind_a_later_sample_and_once() {
        let mut seen = SeenNumbers::new(9);
        let order = [101, 1, 2, 3, 102, 2, 101, 102, 103];
        let is_new = order.map(|number| seen.insert(number));
        assert_eq!(is_new, [true, true, true, true, true, false, false, false, true]);
        let mut seen = SeenNumbers::new(9);
        assert_eq!(
            [u32::MAX - 1, u32::MAX, 0, 1, u32::MAX].map(|number| seen.insert(number)),
            [true, true, true, true, false]
        );
    }

    #[test]
    fn a_kept_sample_is_new_however_many_gaps_came_before_it() {
        let keys: Vec<String> = (0..100).map(|writer| format!("t {writer}")).collect();
        let mut all = SeenSamples::new(keys.iter());
        let seen = all.writers.get_mut("t 7").expect("a writer");
        assert!((10_001..30_001).step_by(2).all(|number| seen.insert(number)));
        assert_eq!([1, 2, 7, 9, 2, 10_004].map(|number| seen.insert(number)), [true, true, true, true, false, true]);
    }
}
