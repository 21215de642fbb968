//! A writer that is far ahead of readers on its own host: what it writes has left the processor's cache before it is sent.

use super::Writer;
use super::write::FRAMED_BYTES_MAX;
use crate::qos::History;
use crate::types::KeyHash;

/// Bytes that may wait to be sent before writes wait for the readers to follow.
const AHEAD_BYTES_MAX: u64 = 512 << 10;

/// Window for one reader on this host, whose datagrams are not under way for long: they stay in the processor's
/// cache, from the history through the kernel to the reader. Several readers wait longer for their turn to run.
const ON_HOST_WINDOW: u64 = 2 << 20;
/// Smaller collected samples cost more by themselves than their bytes do, and frequent acknowledgements more than the cache gives.
/// Samples that leave by themselves do so up to the size at which they are not copied.
const CACHED_BYTES_MIN: usize = 512;

/// How often in a window an acknowledgement is asked for.
pub(super) const REQUESTS: u64 = 4;
/// Where samples are collected, each answer takes the processor from the thread that writes.
const COLLECTED_REQUESTS: u64 = 2;

/// A send window that the processor's cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CacheWindow {
    /// Kernel memory at the readers.
    pub bytes: u64,
    /// How often within it an acknowledgement is asked for.
    pub requests: u64,
}

/// Bytes that wait to be sent, and whether writes wait for them.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Bytes that wait to be sent, about.
    pub unsent_bytes: u64,
    /// The readers that are waited for, if all of them run on this host.
    pub readers_on_this_host: Option<usize>,
    /// A write waits for the readers to follow.
    awaited: bool,
    /// One has waited in vain: no other does until the readers have moved.
    in_vain: bool,
}

impl Writer {
    /// True while a write does better to wait, for a moment, until the readers have followed: all of them run on this host, and
    /// they are so far behind that what is written now will have left the processor's cache before it is sent, although the
    /// history has room. `Event::SpaceAvailable` tells when they have followed.
    pub fn await_readers(&mut self) -> bool {
        let far = self.is_far_ahead();
        self.ahead.awaited |= far;
        far
    }

    fn is_far_ahead(&self) -> bool {
        // Writes of a KEEP_ALL history wait for readers anyway. Others overwrite what readers do not follow.
        self.qos.history == History::KeepAll
            && self.cache_window().is_some()
            && !self.ahead.in_vain
            && !self.collection.is_asynchronous()
            && self.collection.was_blocked()
            && self.history.room_for(&KeyHash::default(), 0)
            && self.ahead.unsent_bytes > AHEAD_BYTES_MAX + self.flow.room()
    }

    /// A write has waited for the readers as long as it would: the history takes what is written until they move.
    pub fn stop_awaiting_readers(&mut self) {
        self.ahead.in_vain = true;
    }

    /// The window in which samples of the usual size stay in the processor's cache; `None` while they are so small that it
    /// does not matter, or a reader runs on another host.
    pub(super) fn cache_window(&self) -> Option<CacheWindow> {
        let (least, requests) = match self.collection.collects() {
            true => (CACHED_BYTES_MIN, COLLECTED_REQUESTS),
            false => (FRAMED_BYTES_MAX + 1, REQUESTS),
        };
        let readers = self.ahead.readers_on_this_host.filter(|_| self.collection.sample_bytes() >= least)?;
        Some(CacheWindow { bytes: ON_HOST_WINDOW.saturating_mul(readers as u64), requests })
    }

    /// The readers have moved. Returns whether a write that waited for them may go on.
    pub(super) fn note_movement(&mut self) -> bool {
        self.ahead.in_vain = false;
        let awaited = std::mem::take(&mut self.ahead.awaited);
        awaited && !self.await_readers()
    }

    /// Of what waited, datagrams that cost the window `cost` were sent.
    pub(super) fn note_unsent(&mut self, cost: u64) {
        self.ahead.unsent_bytes = self.ahead.unsent_bytes.saturating_sub(cost);
        if self.outgoing.place.sample > self.history.last() {
            self.ahead.unsent_bytes = 0;
        }
    }
}
