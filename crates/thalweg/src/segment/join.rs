//! Joins segments of any number of sources, in bounded memory.

use std::collections::BTreeMap;

use thalweg_cdr as cdr;

use super::wire::Part;
use crate::{Error, ErrorKind, TopicType};

/// A payload that has arrived whole.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transfer {
    /// The sender.
    pub source: [u8; 16],
    /// Its number among the payloads of this source.
    pub number: u64,
    /// The payload.
    pub bytes: Vec<u8>,
}

impl Transfer {
    /// Decodes what [`SegmentWriter::write_sample`](super::SegmentWriter::write_sample) sent.
    ///
    /// # Errors
    /// [`ErrorKind::Error`] when the bytes are not a serialized value of the type.
    pub fn decode<S: TopicType>(&self) -> Result<S, Error> {
        cdr::decode(&self.bytes).map_err(|error| {
            Error::new(ErrorKind::Error, "decode", format!("cannot read the transfer: {error}")).because(error)
        })
    }
}

/// Bounds on what unfinished transfers take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentLimits {
    /// The largest payload that is accepted, in bytes. Default 1 GiB.
    pub transfer_bytes_max: u64,
    /// Memory for all unfinished transfers together, in bytes: beyond it the one that has stood still for longest is dropped.
    /// Default 1.25 GiB.
    pub unfinished_bytes_max: u64,
    /// Sources that are remembered; beyond it the one that has been silent for longest is forgotten. Default 1,024.
    pub sources_max: usize,
}

impl Default for SegmentLimits {
    fn default() -> SegmentLimits {
        SegmentLimits { transfer_bytes_max: 1 << 30, unfinished_bytes_max: (1 << 30) + (1 << 28), sources_max: 1_024 }
    }
}

/// Counts of segments and transfers; all start at zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentCounters {
    /// Segments received, useless ones included.
    pub segments: u64,
    /// Payloads joined.
    pub completed: u64,
    /// Payloads that lost a segment: on a best-effort topic, under KEEP_LAST, or because the sender gave them up or was joined in
    /// their midst.
    pub incomplete: u64,
    /// Payloads dropped for [`SegmentLimits`].
    pub over_limit: u64,
    /// Samples that are no segments, or contradict those before them.
    pub malformed: u64,
}

/// State of a source.
#[derive(Debug)]
struct Source {
    transfer: u64,
    /// `None` once nothing more of the transfer is wanted.
    unfinished: Option<Unfinished>,
    /// Time of its last segment, counted in segments.
    touched: u64,
}

#[derive(Debug)]
struct Unfinished {
    count: u32,
    next_index: u32,
    total_bytes: u64,
    bytes: Vec<u8>,
}

/// Unfinished transfers of all sources.
#[derive(Debug)]
pub(super) struct Joiner {
    limits: SegmentLimits,
    sources: BTreeMap<[u8; 16], Source>,
    unfinished_bytes: u64,
    counters: SegmentCounters,
}

/// Room made for a transfer at its first segment; more only as it arrives, whatever size it announces.
const FIRST_ROOM_BYTES: u64 = 16 << 20;

impl Joiner {
    pub(super) fn new(limits: SegmentLimits) -> Joiner {
        Joiner { limits, sources: BTreeMap::new(), unfinished_bytes: 0, counters: SegmentCounters::default() }
    }

    pub(super) fn counters(&self) -> SegmentCounters {
        self.counters
    }

    pub(super) fn unfinished_bytes(&self) -> u64 {
        self.unfinished_bytes
    }

    /// Counts a sample that is no segment.
    pub(super) fn note_malformed(&mut self) {
        self.counters.segments += 1;
        self.counters.malformed += 1;
    }

    /// Removes the source and its unfinished transfers.
    pub(super) fn forget(&mut self, source: &[u8; 16]) {
        self.drop_unfinished(source);
        self.sources.remove(source);
    }

    /// Takes a segment into account; returns the payload that it completes.
    pub(super) fn accept(&mut self, part: &Part<'_>) -> Option<Transfer> {
        self.counters.segments += 1;
        let head = part.head;
        let impossible = head.index >= head.count || part.bytes.len() as u64 > head.total_bytes;
        if impossible {
            self.counters.malformed += 1;
            return None;
        }
        let known = self.sources.get(&head.source);
        if known.is_none_or(|source| source.transfer != head.transfer) {
            self.begin(part);
        }
        let source = self.sources.get_mut(&head.source)?;
        source.touched = self.counters.segments;
        let unfinished = source.unfinished.as_mut()?;
        if head.index < unfinished.next_index {
            return None; // Repeated by its sender.
        }
        if head.index > unfinished.next_index {
            self.counters.incomplete += 1;
            self.drop_unfinished_uncounted(&head.source);
            return None;
        }
        let same = head.count == unfinished.count && head.total_bytes == unfinished.total_bytes;
        let bytes = unfinished.bytes.len() as u64 + part.bytes.len() as u64;
        let is_last = head.index + 1 == head.count;
        if !same || bytes > head.total_bytes || is_last && bytes < head.total_bytes {
            self.counters.malformed += 1;
            self.drop_unfinished_uncounted(&head.source);
            return None;
        }
        unfinished.bytes.extend_from_slice(part.bytes);
        unfinished.next_index += 1;
        self.unfinished_bytes += part.bytes.len() as u64;
        if is_last {
            let unfinished = source.unfinished.take()?;
            self.unfinished_bytes -= unfinished.bytes.len() as u64;
            self.counters.completed += 1;
            return Some(Transfer { source: head.source, number: head.transfer, bytes: unfinished.bytes });
        }
        self.keep_within_limits(&head.source);
        None
    }

    /// A source begins another transfer.
    fn begin(&mut self, part: &Part<'_>) {
        let head = part.head;
        self.drop_unfinished(&head.source);
        if !self.sources.contains_key(&head.source) && self.sources.len() >= self.limits.sources_max {
            let silent = self.sources.iter().min_by_key(|(_, source)| source.touched).map(|(name, _)| *name);
            silent.inspect(|name| self.forget(name));
        }
        let fits = head.total_bytes <= self.limits.transfer_bytes_max.min(self.limits.unfinished_bytes_max);
        if !fits {
            self.counters.over_limit += 1;
        }
        let room = usize::try_from(head.total_bytes.min(FIRST_ROOM_BYTES)).unwrap_or(0);
        let unfinished = fits.then(|| Unfinished {
            count: head.count,
            next_index: 0,
            total_bytes: head.total_bytes,
            bytes: Vec::with_capacity(if head.index == 0 { room } else { 0 }),
        });
        let source = Source { transfer: head.transfer, unfinished, touched: self.counters.segments };
        self.sources.insert(head.source, source);
    }

    /// Drops those that have stood still for longest until the rest fits.
    fn keep_within_limits(&mut self, current: &[u8; 16]) {
        while self.unfinished_bytes > self.limits.unfinished_bytes_max {
            let others = self.sources.iter().filter(|(name, source)| *name != current && source.unfinished.is_some());
            let oldest = others.min_by_key(|(_, source)| source.touched).map(|(name, _)| *name);
            self.counters.over_limit += 1;
            self.drop_unfinished_uncounted(&oldest.unwrap_or(*current));
        }
    }

    fn drop_unfinished(&mut self, source: &[u8; 16]) {
        if self.drop_unfinished_uncounted(source) {
            self.counters.incomplete += 1;
        }
    }

    /// Gives up a source's transfer; true when there was one.
    fn drop_unfinished_uncounted(&mut self, source: &[u8; 16]) -> bool {
        let unfinished = self.sources.get_mut(source).and_then(|source| source.unfinished.take());
        if let Some(unfinished) = &unfinished {
            self.unfinished_bytes -= unfinished.bytes.len() as u64;
        }
        unfinished.is_some()
    }
}
