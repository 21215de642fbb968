//! Samples of a reader whose PRESENTATION spans its subscriber: in the order of their writers, on their way to where they are put in
//! order with those of the subscriber's other readers (DDS 1.4 §2.2.3.6, RTPS 2.5 §8.7.6).

use std::collections::BTreeMap;

use crate::history::CachedSample;
use crate::types::{Guid, SequenceNumber};
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
    marks: BTreeMap<(Guid, SequenceNumber), GroupMark>,
    arrived: Vec<GroupArrival>,
}

/// Marks of samples that are not in order yet: as many as a window of numbers has room for. A sample whose mark found none is handed
/// over as one without publisher.
const MARKS_MAX: usize = 1 << 16;

impl GroupInbox {
    pub(super) fn note(&mut self, writer: Guid, mark: GroupMark) {
        if self.marks.len() < MARKS_MAX {
            self.marks.insert((writer, mark.sequence), mark);
        }
    }

    /// Takes the next sample of its writer; gives it back when nothing is known of its place.
    pub(super) fn handle(&mut self, sample: CachedSample) -> Option<CachedSample> {
        let (writer, sequence) = (sample.writer, sample.sequence);
        // What came twice, or was refused, has left marks below.
        let mut mark = None;
        while let Some((key, found)) = self.marks.range((writer, SequenceNumber(i64::MIN))..=(writer, sequence)).next()
        {
            let key = *key;
            mark = (found.sequence == sequence).then_some(*found);
            self.marks.remove(&key);
        }
        match mark {
            Some(mark) => self.arrived.push(GroupArrival { sample, mark }),
            None => return Some(sample),
        }
        None
    }

    pub(super) fn forget(&mut self, writer: Guid) {
        self.marks.retain(|(from, _), _| *from != writer);
    }

    pub(super) fn has_arrived(&self) -> bool {
        !self.arrived.is_empty()
    }

    pub(super) fn take(&mut self) -> Vec<GroupArrival> {
        std::mem::take(&mut self.arrived)
    }
}
