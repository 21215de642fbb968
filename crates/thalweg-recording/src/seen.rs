//! Which samples of a recording have come already.

use std::collections::BTreeMap;

use thalweg::types::SequenceNumber;

use crate::life::WriterLife;
use crate::numbers::NumberSet;
use crate::read::Entry;

/// The samples that stood in a file: what durable writers keep is repeated at the beginning of each. A writer that begins anew under its
/// old GUID has new ones.
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
        let Entry::Message { channel, sequence, publish_time_ns, .. } = entry else { return true };
        let Ok(writer) = &channel.writer else { return true };
        if writer.writer.is_empty() {
            return true;
        }
        let is_kept = writer.qos.kept_for_late_readers().is_some();
        let seen = self.writers.entry(writer.key(channel.id));
        let seen = seen.or_insert_with(|| SeenNumbers::new(SEEN_RANGES_LEAST));
        seen.insert(*sequence, *publish_time_ns, is_kept)
    }
}

/// The numbers of a writer.
struct SeenNumbers {
    life: WriterLife,
    numbers: LifeNumbers,
    /// Those of its life before, of which a durable writer's may still be repeated.
    former: Option<LifeNumbers>,
    ranges_max: usize,
}

impl SeenNumbers {
    fn new(ranges_max: usize) -> SeenNumbers {
        SeenNumbers { life: WriterLife::default(), numbers: LifeNumbers::new(ranges_max), former: None, ranges_max }
    }

    /// Adds a number with its time stamp; false when it was there already. Samples that are kept for late readers are repeated.
    fn insert(&mut self, sequence: u32, stamp_ns: u64, is_kept: bool) -> bool {
        if let Some(former) = self.former.as_mut().filter(|_| is_kept && self.life.may_be_former(stamp_ns)) {
            return former.insert(sequence);
        }
        if self.life.take(sequence, stamp_ns) {
            let former = std::mem::replace(&mut self.numbers, LifeNumbers::new(self.ranges_max));
            self.former = is_kept.then_some(former);
        }
        self.numbers.insert(sequence)
    }
}

/// The numbers of one life of a writer, which have 32 bits in files.
struct LifeNumbers {
    numbers: NumberSet,
    /// The greatest one, with bits above the 32.
    last: Option<i64>,
}

impl LifeNumbers {
    fn new(ranges_max: usize) -> LifeNumbers {
        LifeNumbers { numbers: NumberSet::of_ranges(ranges_max), last: None }
    }

    /// Adds a number; false when it was there already.
    fn insert(&mut self, sequence: u32) -> bool {
        let last = *self.last.get_or_insert(i64::from(sequence));
        let number = last + i64::from(sequence.wrapping_sub(last as u32).cast_signed());
        self.last = Some(last.max(number));
        self.numbers.insert(SequenceNumber(number))
    }
}

/// Ranges of the numbers of all writers, chosen by us: 128 MiB, the gaps of a day at 200 Hz of which every second sample is lost. Durable
/// writers that begin anew have as many once more.
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
        let is_new = order.map(|number| seen.insert(number, u64::from(number), true));
        assert_eq!(is_new, [true, true, true, true, true, false, false, false, true]);
        let mut seen = SeenNumbers::new(9);
        assert_eq!(
            [u32::MAX - 1, u32::MAX, 0, 1, u32::MAX].map(|number| seen.insert(number, 7, true)),
            [true, true, true, true, false]
        );
    }

    #[test]
    fn a_writer_that_begins_anew_is_new_and_what_its_old_life_repeats_is_not() {
        let mut seen = SeenNumbers::new(9);
        let order = [(1, 1), (2, 2), (3, 3), (3, 3), (1, 4), (2, 5), (3, 3), (2, 5), (1, 2), (3, 6)];
        let is_new = order.map(|(number, stamp_ns)| seen.insert(number, stamp_ns, true));
        assert_eq!(is_new, [true, true, true, false, true, true, false, false, false, true]);
        // Nobody repeats what a volatile writer wrote: its clock was set back behind the beginning of its new life.
        let mut seen = SeenNumbers::new(9);
        let order = [(1, 100), (2, 200), (1, 300), (2, 150)];
        assert_eq!(order.map(|(number, stamp_ns)| seen.insert(number, stamp_ns, false)), [true; 4]);
    }

    #[test]
    fn a_kept_sample_is_new_however_many_gaps_came_before_it() {
        let keys: Vec<String> = (0..100).map(|writer| format!("t {writer}")).collect();
        let mut all = SeenSamples::new(keys.iter());
        let seen = all.writers.get_mut("t 7").expect("a writer");
        let mut insert = |number: u32| seen.insert(number, u64::from(number), true);
        assert!((10_001..30_001).step_by(2).all(&mut insert));
        assert_eq!([1, 2, 7, 9, 2, 10_004].map(insert), [true, true, true, true, false, true]);
    }
}
