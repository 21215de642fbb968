//! Small samples that were collected before they were sent: one contiguous range of numbers, described and laid out once in the form
//! in which a DATA_BATCH carries them.

use std::ops::Range;

use super::{ChangeKind, HeldSample};
use crate::payload::Payload;
use crate::time::Timestamp;
use crate::types::{KeyHash, SequenceNumber};
use crate::wire::write;

/// Collected samples of one writer with one encapsulation header.
#[derive(Debug)]
pub struct Frame {
    entries: Vec<FrameEntry>,
    /// The SampleInfo list of a DATA_BATCH.
    infos: Vec<u8>,
    /// The samples back to back, without their encapsulation headers.
    bodies: Payload,
    encapsulation: [u8; write::ENCAPSULATION_LEN],
    live: usize,
}

/// A history's record of one collected sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameEntry {
    /// Its end among the bodies; it starts at the end of the one before.
    end: u32,
    pub(super) instance: u32,
    pub(super) next_of_instance: SequenceNumber,
    timestamp: Timestamp,
    is_live: bool,
}

/// Room that every frame has in its lists.
const SAMPLES_EXPECTED: usize = 64;

/// A frame within its history.
#[derive(Clone, Copy, Debug)]
pub struct FrameAt<'a> {
    /// Number of the pack.
    pub batch: SequenceNumber,
    /// Number of its first sample.
    pub first: SequenceNumber,
    /// The samples.
    pub frame: &'a Frame,
}

impl<'a> FrameAt<'a> {
    /// Its samples from number `from` on; `dead`: those included that KEEP_LAST has overwritten since.
    pub fn samples(&self, from: SequenceNumber, dead: bool) -> impl Iterator<Item = HeldSample<'a>> + use<'a> {
        let FrameAt { first, frame, .. } = *self;
        let start = (from - first).max(0) as usize;
        (start..frame.len())
            .filter(move |index| dead || frame.is_live(*index))
            .map(move |index| frame.sample(first, index))
    }

    /// Number of its last sample.
    pub fn last(&self) -> SequenceNumber {
        self.first + (self.frame.len() as i64 - 1)
    }
}

impl Frame {
    pub(super) fn new() -> Frame {
        Frame {
            entries: Vec::new(),
            infos: Vec::new(),
            bodies: Payload::empty(),
            encapsulation: [0; write::ENCAPSULATION_LEN],
            live: 0,
        }
    }

    /// Starts anew in an empty buffer without other references.
    pub(super) fn start(&mut self, buffer: Payload, encapsulation: [u8; write::ENCAPSULATION_LEN]) {
        self.entries.clear();
        self.infos.clear();
        // So that frames of any usual length are taken from the stock without growing.
        self.entries.reserve(SAMPLES_EXPECTED);
        self.infos.reserve(SAMPLES_EXPECTED * write::BATCH_SAMPLE_LEN);
        self.bodies = buffer;
        self.encapsulation = encapsulation;
        self.live = 0;
    }

    /// Appends a sample's bytes without their encapsulation header; false when another reference to the buffer exists.
    pub(super) fn push(&mut self, instance: usize, timestamp: Timestamp, body: &[u8]) -> bool {
        if !self.bodies.append(body) {
            return false;
        }
        write::batch_sample(&mut self.infos, timestamp, body.len());
        self.entries.push(FrameEntry {
            end: self.bodies.len() as u32,
            instance: instance as u32,
            next_of_instance: SequenceNumber::ZERO,
            timestamp,
            is_live: true,
        });
        self.live += 1;
        true
    }

    /// The same samples in another buffer.
    pub(super) fn move_to(&mut self, bodies: Payload) {
        self.bodies = bodies;
    }

    /// Shrinks the lists to their need.
    pub(super) fn shrink(&mut self) {
        self.entries.shrink_to_fit();
        self.infos.shrink_to_fit();
    }

    /// Memory of the frame and its lists.
    pub(super) fn list_bytes(&self) -> usize {
        size_of::<Frame>() + self.entries.capacity() * size_of::<FrameEntry>() + self.infos.capacity()
    }

    /// Lets go of the buffer.
    pub(super) fn release(&mut self) {
        self.bodies = Payload::empty();
        self.entries.clear();
        self.infos.clear();
        self.live = 0;
    }

    /// Number of samples, those included that KEEP_LAST has overwritten since.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True for a frame without samples; a history holds none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Samples that were not overwritten.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Encapsulation header that all samples have in common.
    pub fn encapsulation(&self) -> [u8; write::ENCAPSULATION_LEN] {
        self.encapsulation
    }

    /// The SampleInfo list of a DATA_BATCH.
    pub fn infos(&self) -> &[u8] {
        &self.infos
    }

    /// The samples back to back, without their encapsulation headers.
    pub fn bodies(&self) -> &Payload {
        &self.bodies
    }

    pub(super) fn is_live(&self, index: usize) -> bool {
        self.entries.get(index).is_some_and(|entry| entry.is_live)
    }

    /// The place of the instance of sample `index` in the table of instances.
    pub(super) fn instance_of(&self, index: usize) -> Option<usize> {
        self.entries.get(index).map(|entry| entry.instance as usize)
    }

    pub(super) fn entry(&mut self, index: usize) -> Option<&mut FrameEntry> {
        self.entries.get_mut(index)
    }

    /// Sample `index` of a frame whose first sample has number `first`.
    pub(super) fn sample(&self, first: SequenceNumber, index: usize) -> HeldSample<'_> {
        HeldSample {
            sequence: first + index as i64,
            kind: ChangeKind::Write,
            instance: KeyHash::default(),
            timestamp: Some(self.entries[index].timestamp),
            fragment_bytes: None,
            encapsulation: Some(self.encapsulation),
            payload: &self.bodies,
            range: self.range(index),
        }
    }

    /// The place of sample `index` among the bodies.
    fn range(&self, index: usize) -> Range<usize> {
        let start = index.checked_sub(1).map_or(0, |before| self.entries[before].end);
        start as usize..self.entries[index].end as usize
    }

    /// Takes sample `index` out of account; its bytes stay.
    pub(super) fn kill(&mut self, index: usize) {
        if std::mem::take(&mut self.entries[index].is_live) {
            self.live -= 1;
        }
    }

    /// Bytes of the samples that were not overwritten, and how many they are.
    pub(super) fn live_bytes(&self) -> (usize, usize) {
        if self.live == self.entries.len() {
            return (self.live, self.bodies.len());
        }
        let live = (0..self.entries.len()).filter(|index| self.entries[*index].is_live);
        live.fold((0, 0), |(count, bytes), index| (count + 1, bytes + self.range(index).len()))
    }
}
