//! What is remembered of each instance to judge its next sample by, and the samples that came too early.

use crate::history::CachedSample;
use crate::time::{Instant, Timestamp};
use crate::types::Guid;

/// What was admitted of one instance.
#[derive(Debug, Default)]
pub(super) struct Standing {
    pub owner: Option<Guid>,
    /// The owner has missed the deadline, and whoever writes next owns it.
    pub is_free: bool,
    /// Source time of the last sample, and its writer.
    pub newest: Option<(Timestamp, Guid)>,
    /// A sample that came too early; changed by [`WaitingLoad::exchange`].
    pub waiting: Option<Waiting>,
    /// Since when it waits for room in the cache, and no longer for its time.
    pub overdue_since: Option<Instant>,
}

/// A sample that came too early.
#[derive(Debug)]
pub(super) struct Waiting {
    pub sample: CachedSample,
    /// Its writer has left since, or given the instance up.
    pub has_left: bool,
    /// It has lost its liveliness since.
    pub is_silent: bool,
}

impl Standing {
    /// The writer of the sample that waits, unless it has given the instance up since, else the one that owns what was admitted.
    pub(super) fn owner(&self) -> Option<Guid> {
        let waiting = self.waiting.as_ref().filter(|waiting| !waiting.has_left);
        waiting.map(|waiting| waiting.sample.writer).or(self.owner)
    }

    /// Source time of the last sample that was admitted or waits, and its writer.
    pub(super) fn newest(&self) -> Option<(Timestamp, Guid)> {
        let waiting = self.waiting.as_ref().map(|waiting| &waiting.sample);
        waiting.and_then(|sample| Some((sample.source_timestamp?, sample.writer))).or(self.newest)
    }

    /// `writer` has left, or gives the instance up.
    pub(super) fn leave(&mut self, writer: Guid) {
        if let Some(waiting) = self.waiting.as_mut().filter(|waiting| waiting.sample.writer == writer) {
            waiting.has_left = true;
        }
    }

    /// `writer` has lost its liveliness, or is alive again.
    pub(super) fn note_alive(&mut self, writer: Guid, is_alive: bool) {
        if let Some(waiting) = self.waiting.as_mut().filter(|waiting| waiting.sample.writer == writer) {
            waiting.is_silent = !is_alive;
        }
    }
}

/// The samples that came too early, of all instances together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WaitingLoad {
    pub samples: usize,
    /// What they are charged.
    pub bytes: usize,
}

impl WaitingLoad {
    /// Has `next`, or nothing, wait in `place`. Returns what waited there.
    pub(super) fn exchange(&mut self, place: &mut Option<Waiting>, next: Option<Waiting>) -> Option<Waiting> {
        if let Some(waiting) = &next {
            self.samples += 1;
            self.bytes += waiting.bytes();
        }
        let before = std::mem::replace(place, next);
        if let Some(waiting) = &before {
            self.samples -= 1;
            self.bytes -= waiting.bytes();
        }
        before
    }
}

impl Waiting {
    /// Bytes that it is charged.
    pub(super) fn bytes(&self) -> usize {
        charge(self.sample.payload.len())
    }
}

/// Bytes that a sample is charged while it waits.
pub(super) fn charge(payload_bytes: usize) -> usize {
    size_of::<CachedSample>().saturating_add(payload_bytes)
}
