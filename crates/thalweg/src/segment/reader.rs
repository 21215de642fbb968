//! The receiving half: takes segments and gives payloads.

use std::collections::VecDeque;
use std::time::Duration;

use thalweg_rtps::history::ReadFilter;
use thalweg_transport::clock;

use super::join::{Joiner, SegmentCounters, SegmentLimits, Transfer};
use super::wire::{Segment, SegmentType, decode};
use crate::{DataReader, Sample};

/// Joins the segments that a reader receives, of any number of senders at once.
///
/// The reader's QoS decides what arrives: RELIABLE with KEEP_ALL loses nothing; with BEST_EFFORT a payload that misses a segment is
/// dropped and counted. Segments are taken only when a payload is requested, so that RESOURCE_LIMITS hold back the senders.
#[derive(Debug)]
pub struct SegmentReader<T = Segment> {
    reader: DataReader<T>,
    joiner: Joiner,
    /// Taken, not joined yet.
    taken: VecDeque<Sample<T>>,
    /// Empty between calls; keeps its memory.
    batch: Vec<Sample<T>>,
}

/// Segments taken from the reader at once.
const TAKE_MAX: usize = 64;

impl<T: SegmentType> SegmentReader<T> {
    /// Joins with the default limits.
    pub fn new(reader: DataReader<T>) -> SegmentReader<T> {
        SegmentReader::with_limits(reader, SegmentLimits::default())
    }

    /// Joins within `limits`.
    pub fn with_limits(reader: DataReader<T>, limits: SegmentLimits) -> SegmentReader<T> {
        SegmentReader { reader, joiner: Joiner::new(limits), taken: VecDeque::new(), batch: Vec::new() }
    }

    /// The next payload that is whole, `None` while there is none. Payloads of a source come in the order in which they were sent.
    pub fn take(&mut self) -> Option<Transfer> {
        loop {
            let joined = self.join_taken();
            if joined.is_some() || self.take_segments() == 0 {
                return joined;
            }
        }
    }

    /// As [`SegmentReader::take`], but waits up to `timeout` for a payload to become whole.
    pub fn wait(&mut self, timeout: Duration) -> Option<Transfer> {
        let deadline = clock::now() + timeout;
        // The segments that are there at first count whatever the time-out; those of a sender that is faster than this thread have no end.
        let mut first = self.reader.available();
        loop {
            let joined = self.join_taken();
            if joined.is_some() || (first == 0 && clock::now() >= deadline) {
                return joined;
            }
            match self.take_segments() {
                0 if !self.reader.wait(deadline.since(clock::now())) => return None,
                0 => first = 0,
                taken => first = first.saturating_sub(taken),
            }
        }
    }

    /// Joins what was taken until a payload is whole.
    fn join_taken(&mut self) -> Option<Transfer> {
        while let Some(sample) = self.taken.pop_front() {
            let joined = self.join(&sample);
            if joined.is_some() {
                return joined;
            }
        }
        None
    }

    /// Takes the next segments; returns how many.
    fn take_segments(&mut self) -> usize {
        self.reader.take_into(TAKE_MAX, &ReadFilter::ALL, &mut self.batch);
        self.taken.extend(self.batch.drain(..));
        self.taken.len()
    }

    fn join(&mut self, sample: &Sample<T>) -> Option<Transfer> {
        if !sample.is_valid() {
            // Of a keyed topic: the key of 16 bytes is its own hash.
            self.joiner.forget(&sample.info().instance.0);
            return None;
        }
        match decode(sample.bytes()) {
            Some(part) => self.joiner.accept(&part),
            None => {
                self.joiner.note_malformed();
                None
            }
        }
    }

    /// Counts of segments and payloads so far.
    pub fn counters(&self) -> SegmentCounters {
        self.joiner.counters()
    }

    /// Bytes that unfinished payloads take now.
    pub fn unfinished_bytes(&self) -> u64 {
        self.joiner.unfinished_bytes()
    }

    /// The reader, for its statuses and counters; samples taken from it directly are missing here.
    pub fn reader(&self) -> &DataReader<T> {
        &self.reader
    }
}
