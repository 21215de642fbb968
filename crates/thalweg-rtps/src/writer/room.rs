//! Room in a writer's history, and whether a write waits for it.

use crate::history::WriterHistory;
use crate::qos::{History, WriterQos};
use crate::types::SequenceNumber;

/// When a history counts as full and as drained again, and whether a write waits for that.
#[derive(Debug)]
pub(super) struct Room {
    samples: usize,
    bytes: usize,
    /// Room for one write is not told by how much is left: there is a limit for each instance, or acknowledged samples stay until others
    /// want their places.
    is_by_instance: bool,
    /// Samples that only late readers would get go where a write needs their room.
    pub evicts: bool,
    /// Samples after which an acknowledgement is asked for: a quarter of a KEEP_ALL history.
    pub ask_every: i64,
    /// A write was refused, and its room is not there yet.
    is_awaited: bool,
    /// Sending has made room for a write that was refused, and nobody was told.
    is_untold: bool,
    /// The lowest number whose acknowledgement somebody waits for.
    pub acknowledgement: Option<SequenceNumber>,
}

/// Samples of a KEEP_ALL history without limit between two requests for acknowledgement.
const ASK_EVERY_MAX: usize = 1024;

impl Room {
    pub(super) fn new(qos: &WriterQos, bytes: usize) -> Room {
        let limits = qos.resource_limits;
        let least = |limits: &[Option<u32>]| {
            limits.iter().flatten().min().map_or(usize::MAX, |limit| usize::try_from(*limit).unwrap_or(usize::MAX))
        };
        let samples = least(&[limits.max_samples]);
        let ask_every = match qos.history {
            History::KeepAll => {
                let least = least(&[limits.max_samples, limits.max_samples_per_instance]);
                (least / 4).clamp(1, ASK_EVERY_MAX) as i64
            }
            History::KeepLast(_) => i64::MAX,
        };
        let evicts = qos.outlives_writer();
        let is_by_instance = limits.max_samples_per_instance.is_some() || limits.max_instances.is_some() || evicts;
        let (is_awaited, is_untold, acknowledgement) = (false, false, None);
        Room { samples, bytes, is_by_instance, evicts, ask_every, is_awaited, is_untold, acknowledgement }
    }

    /// Samples that only late readers would get go where a write needs their room, if `evicts`; else as before.
    pub(super) fn evicting(self, evicts: bool) -> Room {
        Room { is_by_instance: self.is_by_instance || evicts, evicts: self.evicts || evicts, ..self }
    }

    /// True while a write waits for room that is not there yet.
    pub(super) fn is_awaited(&self) -> bool {
        self.is_awaited
    }

    /// A write waits for room from now on.
    pub(super) fn wait(&mut self) {
        self.is_awaited = true;
    }

    /// True when a quarter of the room is free again, or a write that waits is to look for itself.
    pub(super) fn is_drained(&self, history: &WriterHistory) -> bool {
        let (samples, bytes) = history.occupied();
        self.is_by_instance || samples <= self.samples - self.samples.div_ceil(4) && bytes <= self.bytes / 4 * 3
    }

    /// True when anything is free.
    pub(super) fn has_any(&self, history: &WriterHistory) -> bool {
        let (samples, bytes) = history.occupied();
        self.is_by_instance || samples < self.samples && bytes < self.bytes
    }

    /// Returns whether a write waited for the room that there is now if `has_room`; it waits no longer.
    pub(super) fn take_awaited(&mut self, has_room: bool) -> bool {
        has_room && std::mem::take(&mut self.is_awaited)
    }

    /// Somebody is to be told of room if `is_news`.
    pub(super) fn note_news(&mut self, is_news: bool) {
        self.is_untold |= is_news;
    }

    /// True once after there was news of room.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.is_untold)
    }
}
