//! Samples of a reader whose PRESENTATION spans its subscriber: in the order of their writers, on their way to where they are put in
//! order with those of the subscriber's other readers (DDS 1.4 §2.2.3.6, RTPS 2.5 §8.7.6).

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{CachedSample, RejectReason};
use crate::types::{Guid, KeyHash, SequenceNumber};
use crate::wire::parameters::GroupPlace;

/// What a writer says of a sample's place within its publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupMark {
    /// The sample's number within the writer.
    pub sequence: SequenceNumber,
    /// Its place.
    pub place: GroupPlace,
    /// Whether it is no sample, but ends a set to which the writer has contributed none.
    pub is_empty_part: bool,
}

/// A sample in the order of its writer, with its place within the publisher.
#[derive(Clone, Debug)]
pub struct GroupArrival {
    /// The sample; no sample but the end of a set where its `coherent_set` is [`SequenceNumber::UNKNOWN`].
    pub sample: CachedSample,
    /// Its place.
    pub mark: GroupMark,
}

/// The samples that wait to be fetched, and the places of those that have not come into order yet.
#[derive(Debug, Default)]
pub(super) struct GroupInbox {
    marks: BTreeMap<Guid, BTreeMap<SequenceNumber, GroupMark>>,
    /// Marks of all writers.
    count: usize,
    arrived: Vec<GroupArrival>,
    /// Writers of which nothing is fetched at present.
    held: BTreeSet<Guid>,
    /// What was fetched waits for room in the reader's cache.
    pub(super) awaits_room: bool,
}

/// What a reader gets of samples that appear together.
#[derive(Debug, Default)]
pub(crate) struct GroupShare {
    /// What it hands over.
    pub samples: Vec<CachedSample>,
    /// How many it has lost with a set that is not whole.
    pub lost: u64,
    /// Samples that have no room with the others of their set, by their instances.
    pub rejected: Vec<(RejectReason, KeyHash)>,
}

/// Marks of samples that are not in order yet, or whose writers are held: as four windows of numbers have room for. Beyond it, the writer with most of them
/// loses its last one. A sample whose mark found no room is handed over as one without publisher.
const MARKS_MAX: usize = 1 << 18;

impl GroupInbox {
    pub(super) fn note(&mut self, writer: Guid, mark: GroupMark) {
        let marks = self.marks.entry(writer).or_default();
        let is_new = marks.insert(mark.sequence, mark).is_none();
        self.count += usize::from(is_new);
        if self.count > MARKS_MAX
            && let Some(most) = self.marks.values_mut().max_by_key(|marks| marks.len())
        {
            self.count -= usize::from(most.pop_last().is_some());
        }
    }

    /// Whether the place of a sample within its publisher is known.
    pub(super) fn knows(&self, writer: Guid, sequence: SequenceNumber) -> bool {
        self.marks.get(&writer).is_some_and(|marks| marks.contains_key(&sequence))
    }

    /// Takes the next sample of its writer; gives it back when nothing is known of its place.
    pub(super) fn handle(&mut self, sample: CachedSample) -> Option<CachedSample> {
        let (writer, sequence) = (sample.writer, sample.sequence);
        // What came twice, or was refused, has left marks below.
        let mut mark = None;
        if let Some(marks) = self.marks.get_mut(&writer) {
            while let Some(first) = marks.first_entry().filter(|first| *first.key() <= sequence) {
                mark = Some(first.remove()).filter(|found| found.sequence == sequence);
                self.count -= 1;
            }
        }
        match mark {
            Some(mark) => self.arrived.push(GroupArrival { sample, mark }),
            None => return Some(sample),
        }
        None
    }

    pub(super) fn forget(&mut self, writer: Guid) {
        self.count -= self.marks.remove(&writer).map_or(0, |marks| marks.len());
        self.held.remove(&writer);
    }

    /// What comes of a writer stays in its window while it is held.
    pub(super) fn hold(&mut self, writer: Guid, is_held: bool) {
        match is_held {
            true => self.held.insert(writer),
            false => self.held.remove(&writer),
        };
    }

    pub(super) fn is_held(&self, writer: Guid) -> bool {
        self.held.contains(&writer)
    }

    pub(super) fn has_arrived(&self) -> bool {
        !self.arrived.is_empty()
    }

    pub(super) fn take(&mut self) -> Vec<GroupArrival> {
        std::mem::take(&mut self.arrived)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{ChangeKind, PayloadKind};
    use crate::payload::Payload;
    use crate::time::Instant;
    use crate::types::{EntityId, GuidPrefix, Keyed};

    fn mark(sequence: i64) -> GroupMark {
        let sequence = SequenceNumber(sequence);
        GroupMark { sequence, place: GroupPlace { number: sequence, set: SequenceNumber::ZERO }, is_empty_part: false }
    }

    fn sample(writer: Guid, sequence: i64) -> CachedSample {
        CachedSample {
            related: None,
            payload: Payload::from(vec![0; 4]),
            payload_kind: PayloadKind::Data,
            valid: true,
            writer,
            sequence: SequenceNumber(sequence),
            source_timestamp: None,
            received: Instant::ZERO,
            expires: Instant::NEVER,
            instance: KeyHash::default(),
            coherent_set: SequenceNumber::ZERO,
            change: ChangeKind::Write,
        }
    }

    #[test]
    fn a_writer_that_fills_the_places_takes_none_of_others() {
        let mut inbox = GroupInbox::default();
        let [greedy, honest] = [1, 2].map(|key| Guid::new(GuidPrefix([3; 12]), EntityId::user_writer(key, Keyed::No)));
        (2..MARKS_MAX as i64 + 100).for_each(|sequence| inbox.note(greedy, mark(sequence)));
        for sequence in 1..100 {
            inbox.note(honest, mark(sequence));
            assert!(inbox.handle(sample(honest, sequence)).is_none(), "its place is known");
        }
        assert_eq!(inbox.take().len(), 99);
        assert!(inbox.count <= MARKS_MAX);
        inbox.forget(greedy);
        inbox.forget(honest);
        assert_eq!(inbox.count, 0);
    }
}
