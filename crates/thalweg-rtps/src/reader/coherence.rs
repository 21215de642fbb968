//! Coherent access: the samples between two calls of a writer's application become visible together (DDS 1.4 §2.2.3.6, RTPS 2.5
//! §8.7.5).

use std::collections::BTreeMap;

use super::group_inbox::GroupInbox;
use crate::history::CachedSample;
use crate::qos::ReaderQos;
use crate::types::{Guid, SequenceNumber};

/// Whether a reader presents coherent sets as wholes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoherentSets {
    /// It gets their samples one by one.
    Ignored,
    /// It gets the samples of a set together, or none of them.
    Wanted,
}

/// The sets of a reader's writers that are not complete yet.
#[derive(Debug, Default)]
pub(super) struct Coherence {
    open: BTreeMap<Guid, OpenSet>,
    /// Bytes of the samples in all of them.
    bytes: usize,
    /// Samples of incomplete sets since this was last asked.
    dropped: u64,
    is_filtered: bool,
    /// False where samples are presented as they come, but for the order of their publisher.
    collects_sets: bool,
    /// Where the reader's PRESENTATION spans its subscriber: the samples that go to where that puts them together.
    pub(super) group: Option<GroupInbox>,
}

#[derive(Debug)]
struct OpenSet {
    set: SequenceNumber,
    /// The number that follows the last sample.
    next: SequenceNumber,
    samples: Vec<CachedSample>,
    /// Some sample of it is missing.
    is_broken: bool,
    /// The reader came after its first sample, and is owed nothing of it.
    is_late: bool,
}

impl Coherence {
    pub(super) fn new(qos: &ReaderQos) -> Option<Box<Coherence>> {
        let presentation = qos.presentation;
        let group = presentation.spans_group().then(GroupInbox::default);
        let collects_sets = presentation.coherent;
        let coherence = Coherence { group, collects_sets, ..Coherence::default() };
        (presentation.coherent || presentation.spans_group()).then(|| Box::new(coherence))
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A writer is gone, and with it the end of its set.
    pub(super) fn forget(&mut self, writer: Guid) {
        if let Some(open) = self.open.remove(&writer) {
            self.drop_set(&open);
        }
        if let Some(group) = &mut self.group {
            group.forget(writer);
        }
    }

    fn drop_set(&mut self, open: &OpenSet) {
        self.bytes -= open.samples.iter().map(charge).sum::<usize>();
        self.dropped += open.samples.len() as u64;
    }

    /// The reader has a content filter: what is missing in a set was not wanted.
    pub(super) fn tolerate_gaps(&mut self) {
        self.is_filtered = true;
    }

    /// Samples of incomplete sets since the last call.
    pub(super) fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    /// The samples that appear when the next sample of `writer` comes, which says `set` of sets: those of a set that has ended with
    /// nothing missing.
    pub(super) fn ending(&self, writer: Guid, set: SequenceNumber, next: SequenceNumber) -> &[CachedSample] {
        match self.open.get(&writer) {
            Some(open) if open.set != set && (self.is_filtered || open.next == next) => &open.samples,
            _ => &[],
        }
    }

    /// Whether a sample that says `set` of sets appears by itself: also where its subscriber puts others in order, but nothing tells of its
    /// place.
    pub(super) fn presents_alone(&self, writer: Guid, sequence: SequenceNumber, set: SequenceNumber) -> bool {
        let is_placed = self.group.as_ref().is_some_and(|group| group.knows(writer, sequence));
        !is_placed && (set == SequenceNumber::ZERO || !self.collects_sets && set != SequenceNumber::UNKNOWN)
    }

    /// Whether what a writer sends has to wait, since what came of it before waits for room.
    pub(super) fn holds(&self, writer: Guid) -> bool {
        self.group.as_ref().is_some_and(|group| group.is_held(writer))
    }

    /// Takes the next sample of its writer into account; returns those that can be presented now, in their order. Sets that are open
    /// may have so many bytes together.
    pub(super) fn handle(&mut self, sample: CachedSample, bytes_max: usize) -> Vec<CachedSample> {
        let sample = match &mut self.group {
            Some(group) => match group.handle(sample) {
                Some(sample) => sample,
                None => return Vec::new(),
            },
            None => sample,
        };
        if !self.collects_sets {
            return if sample.coherent_set == SequenceNumber::UNKNOWN { Vec::new() } else { vec![sample] };
        }
        let (writer, set, sequence) = (sample.writer, sample.coherent_set, sample.sequence);
        let is_member = set > SequenceNumber::ZERO;
        let mut ready = self.end(writer, set, sequence);
        if !is_member {
            if set == SequenceNumber::ZERO {
                ready.push(sample);
            }
            return ready;
        }
        let new = || OpenSet { set, next: set, samples: Vec::new(), is_broken: false, is_late: sequence != set };
        let open = self.open.entry(writer).or_insert_with(new);
        open.is_broken |= sequence != open.next && !(self.is_filtered && sequence > open.next);
        open.next = sequence.next();
        self.bytes += charge(&sample);
        open.samples.push(sample);
        if open.is_broken || self.bytes > bytes_max {
            // What comes of it still is dropped as well.
            let samples = std::mem::take(&mut open.samples);
            open.is_broken = true;
            self.bytes -= samples.iter().map(charge).sum::<usize>();
            self.dropped += if open.is_late { 0 } else { samples.len() as u64 };
        }
        ready
    }

    /// Ends the set of a writer unless it is `set`: `next` is the number of what follows. Between them, more of the set may have been
    /// lost.
    pub(super) fn end(&mut self, writer: Guid, set: SequenceNumber, next: SequenceNumber) -> Vec<CachedSample> {
        if self.open.get(&writer).is_none_or(|open| open.set == set) {
            return Vec::new();
        }
        let Some(open) = self.open.remove(&writer) else { return Vec::new() };
        if next != open.next && !self.is_filtered {
            self.drop_set(&open);
            return Vec::new();
        }
        self.bytes -= open.samples.iter().map(charge).sum::<usize>();
        open.samples
    }
}

fn charge(sample: &CachedSample) -> usize {
    size_of::<CachedSample>() + sample.payload.len()
}
