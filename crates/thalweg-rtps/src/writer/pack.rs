//! Submessages into datagrams: as few as their size allows.

use std::ops::Range;

use super::MatchedReader;
use super::charges::kernel_cost;
use super::coherent_sets::CoherentSets;
use super::related::RelatedSamples;
use crate::history::{ChangeKind, Frame, FrameAt, HeldSample};
use crate::outbox::Outbox;
use crate::time::Timestamp;
use crate::types::{EntityId, Guid, GuidPrefix, Locator, SequenceNumber};
use crate::wire::parameters::{Belonging, inline_qos_with};
use crate::wire::write::{self, DataBatchHead, DataFragHead, DataHead, DataKind};
use crate::wire::{Gap, SequenceSet};

/// Datagrams filled by one call, so that a large sample neither fills memory nor holds the lock for long.
pub(super) const OUTBOX_MAX_DATAGRAMS: usize = 64;

/// Datagrams above half of what one system call takes leave alone anyway.
const GSO_SEGMENT_MAX: usize = 32_000;

/// Packs submessages into datagrams to one list of destinations.
pub(super) struct Packer<'a> {
    pub(super) outbox: &'a mut Outbox,
    source: Guid,
    destinations: &'a [Locator],
    directed_to: Option<GuidPrefix>,
    limit: usize,
    /// Limit of [`Outbox::cost`].
    allowance: u64,
    /// How many datagrams the outbox may have.
    datagrams_max: usize,
    open: bool,
    /// The sets that samples belong to, if there are any.
    coherent: Option<&'a CoherentSets>,
    related: Option<&'a RelatedSamples>,
    /// The source time that holds at the end of the open datagram; a datagram begins without one (RTPS 2.5 §8.3.7.9).
    stamped: Option<Timestamp>,
}

impl<'a> Packer<'a> {
    pub(super) fn new(
        outbox: &'a mut Outbox,
        source: Guid,
        destinations: &'a [Locator],
        directed_to: Option<GuidPrefix>,
        limit: usize,
    ) -> Packer<'a> {
        Packer {
            outbox,
            source,
            destinations,
            directed_to,
            limit,
            allowance: u64::MAX,
            datagrams_max: OUTBOX_MAX_DATAGRAMS,
            open: false,
            coherent: None,
            related: None,
            stamped: None,
        }
    }

    /// Samples say which of these sets they belong to, and what they are related to.
    pub(super) fn marking(mut self, coherent: &'a CoherentSets, related: Option<&'a RelatedSamples>) -> Packer<'a> {
        (self.coherent, self.related) = ((!coherent.is_plain()).then_some(coherent), related);
        self
    }

    /// What a sample belongs to; `None` where no sample of the writer belongs to anything.
    #[inline]
    fn belonging(&self, sample: &HeldSample<'_>) -> Option<Belonging> {
        if self.coherent.is_none() && self.related.is_none() {
            return None;
        }
        let coherent = self.coherent.map(|coherent| coherent.belonging(sample.sequence)).unwrap_or_default();
        Some(Belonging { related: self.related.and_then(|related| related.of(sample.sequence)), ..coherent })
    }

    /// Stops before [`Outbox::cost`] exceeds `allowance`.
    pub(super) fn within(mut self, allowance: u64) -> Packer<'a> {
        self.allowance = allowance;
        self
    }

    pub(super) fn directed(outbox: &'a mut Outbox, source: Guid, matched: &'a MatchedReader) -> Packer<'a> {
        // One address is enough for an answer; without a unicast address the group has to do.
        let destinations = match matched.unicast.first() {
            Some(first) => std::slice::from_ref(first),
            None => matched.multicast.as_slice(),
        };
        Packer::new(outbox, source, destinations, Some(matched.guid.prefix), matched.datagram_bytes)
    }

    /// For what others have got already and these must get as well, however much it is.
    pub(super) fn without_limit(mut self) -> Packer<'a> {
        self.datagrams_max = usize::MAX;
        self
    }

    /// True when `bytes` more must wait for the next call, or for tokens.
    pub(super) fn is_full_for(&self, bytes: usize) -> bool {
        self.outbox.len() >= self.datagrams_max || !self.affords(bytes)
    }

    fn affords(&self, bytes: usize) -> bool {
        if self.allowance == u64::MAX {
            return true;
        }
        let datagram = if self.fits(bytes) { bytes } else { bytes + write::HEADER_LEN };
        let cost = (self.outbox.open_len() + datagram) * self.destinations.len();
        self.outbox.cost().saturating_add(cost as u64) <= self.allowance
    }

    /// True when a frame can travel as one DATA_BATCH.
    pub(super) fn can_hold(&self, bytes: usize) -> bool {
        write::HEADER_LEN + write::INFO_DST_LEN + bytes + write::HEARTBEAT_BATCH_LEN <= self.limit
    }

    fn fits(&self, bytes: usize) -> bool {
        // Room for a HEARTBEAT stays free in every datagram.
        self.open && self.outbox.open_len() + bytes + write::HEARTBEAT_BATCH_LEN <= self.limit
    }

    /// Kernel memory that `bytes` more will cost at the receiver.
    pub(super) fn cost_of(&self, bytes: usize) -> u64 {
        if self.fits(bytes) { (bytes + bytes / 16) as u64 } else { kernel_cost(bytes + write::HEADER_LEN) }
    }

    /// Makes sure that `bytes` more fit: starts a datagram where needed.
    pub(super) fn reserve(&mut self, bytes: usize) {
        if self.fits(bytes) {
            return;
        }
        self.outbox.begin(self.destinations);
        let buffer = self.outbox.buffer();
        write::header(buffer, self.source.prefix);
        if let Some(prefix) = self.directed_to {
            write::info_destination(buffer, prefix);
        }
        self.open = true;
        self.stamped = None;
    }

    /// Makes `timestamp` the source time of the samples that follow. Where it holds already nothing is said: some peers take an
    /// INFO_TS that takes no time back for the end of the message (zzdds 0.2.0).
    fn stamp(&mut self, timestamp: Option<Timestamp>) {
        if self.stamped != timestamp {
            write::info_timestamp(self.outbox.buffer(), timestamp);
            self.stamped = timestamp;
        }
    }

    /// Makes sure that a HEARTBEAT fits, in a datagram of its own where it would make the last of several equal ones longer
    /// than the others: equal ones leave by one system call.
    pub(super) fn reserve_heartbeat(&mut self) {
        let longer = self.outbox.open_len() + write::HEARTBEAT_BATCH_LEN;
        let equal = self.open && self.outbox.last_len().is_some_and(|len| len < longer && len <= GSO_SEGMENT_MAX);
        if equal || longer > self.limit {
            self.open = false;
        }
        if !self.open {
            self.reserve(write::HEARTBEAT_BATCH_LEN);
        }
    }

    /// Goes on with the datagram that the outbox has open, for submessages that have no source time.
    pub(super) fn resume(mut self) -> Packer<'a> {
        self.open = self.outbox.open_len() > 0;
        self
    }

    /// Declares `start..end` irrelevant.
    pub(super) fn gap(&mut self, reader: EntityId, start: SequenceNumber, end: SequenceNumber) {
        self.reserve(write::GAP_MIN_LEN);
        let gap = Gap { reader, writer: self.source.entity, start, list: SequenceSet::new(end) };
        write::gap(self.outbox.buffer(), &gap);
    }
}

pub(super) fn fragments_of(sample: &HeldSample<'_>, fragment_bytes: u16) -> u32 {
    u32::try_from(sample.len().div_ceil(usize::from(fragment_bytes))).unwrap_or(u32::MAX)
}

/// An upper bound of the bytes that a sample takes in a datagram.
pub(super) fn sample_bytes(sample: &HeldSample<'_>) -> usize {
    SAMPLE_OVERHEAD_BYTES - write::INFO_TS_LEN + stamp_bytes(sample) + inline_qos_bytes(sample) + sample.len()
}

/// An upper bound of the bytes that a fragment of a sample takes in a datagram.
pub(super) fn fragment_datagram_bytes(sample: &HeldSample<'_>, fragment_bytes: u16) -> usize {
    stamp_bytes(sample) + write::DATA_FRAG_HEAD_LEN + inline_qos_bytes(sample) + usize::from(fragment_bytes) + 3
}

/// Bytes that are counted for what is said beside a sample; sets and related samples take the room of a HEARTBEAT.
fn inline_qos_bytes(sample: &HeldSample<'_>) -> usize {
    if sample.kind == ChangeKind::Write { 0 } else { INLINE_QOS_MAX_BYTES }
}

/// Bytes of the INFO_TS that a sample may need: one that takes back the time of the sample before it is short.
fn stamp_bytes(sample: &HeldSample<'_>) -> usize {
    if sample.timestamp.is_some() { write::INFO_TS_LEN } else { write::INFO_TS_NONE_LEN }
}

/// Bytes around a sample that travels as DATA: INFO_TS, DATA and padding.
pub(super) const SAMPLE_OVERHEAD_BYTES: usize = write::INFO_TS_LEN + write::DATA_HEAD_LEN + 3;

/// STATUS_INFO, KEY_HASH and the sentinel.
const INLINE_QOS_MAX_BYTES: usize = 8 + 20 + 4;

/// The writer, and the destination among its readers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub writer: EntityId,
    /// UNKNOWN means all of them.
    pub reader: EntityId,
}

fn inline_qos<'a>(scratch: &'a mut Vec<u8>, sample: &HeldSample<'_>, belonging: Option<Belonging>) -> &'a [u8] {
    if sample.kind == ChangeKind::Write && belonging.is_none_or(|belonging| belonging == Belonging::default()) {
        return &[];
    }
    scratch.clear();
    let instance = (sample.kind != ChangeKind::Write).then_some(sample.instance);
    inline_qos_with(sample.kind.status_info(), instance, belonging.unwrap_or_default(), scratch);
    scratch
}

/// Appends part of a serialized sample, its encapsulation header included.
fn push_bytes(outbox: &mut Outbox, sample: &HeldSample<'_>, range: Range<usize>) {
    let header = sample.encapsulation.unwrap_or_default();
    let header_len = sample.encapsulation.map_or(0, |header| header.len());
    if range.start < header_len {
        outbox.buffer().extend_from_slice(&header[range.start..range.end.min(header_len)]);
    }
    let place = |offset: usize| sample.range.start + offset.saturating_sub(header_len);
    if range.end > header_len {
        outbox.push_payload(sample.payload, place(range.start)..place(range.end));
    }
}

/// Appends a sample as INFO_TS and DATA.
pub(super) fn push_sample(packer: &mut Packer<'_>, scratch: &mut Vec<u8>, pair: Pair, sample: &HeldSample<'_>) {
    let inline_qos = inline_qos(scratch, sample, packer.belonging(sample));
    packer.reserve(sample_bytes(sample) + inline_qos.len().saturating_sub(inline_qos_bytes(sample)));
    let bytes = sample.len();
    let kind = match sample.kind {
        // The end of a coherent set.
        _ if bytes == 0 => DataKind::None,
        ChangeKind::Write => DataKind::Data,
        _ => DataKind::Key,
    };
    packer.stamp(sample.timestamp);
    let buffer = packer.outbox.buffer();
    let head = DataHead { reader: pair.reader, writer: pair.writer, sequence: sample.sequence, inline_qos, kind };
    write::data(buffer, &head, bytes);
    push_bytes(packer.outbox, sample, 0..bytes);
    write::padding(packer.outbox.buffer(), bytes);
}

/// Appends fragment `index`, counted from zero, as INFO_TS and DATA_FRAG.
pub(super) fn push_fragment(
    packer: &mut Packer<'_>,
    scratch: &mut Vec<u8>,
    pair: Pair,
    sample: &HeldSample<'_>,
    fragment_bytes: u16,
    index: u32,
) {
    let start = index as usize * usize::from(fragment_bytes);
    let range = start..(start + usize::from(fragment_bytes)).min(sample.len());
    let inline_qos = inline_qos(scratch, sample, packer.belonging(sample));
    packer.reserve(stamp_bytes(sample) + write::DATA_FRAG_HEAD_LEN + inline_qos.len() + range.len() + 3);
    let head = DataFragHead {
        reader: pair.reader,
        writer: pair.writer,
        sequence: sample.sequence,
        first_fragment: index + 1,
        fragments: 1,
        fragment_size: fragment_bytes,
        sample_size: u32::try_from(sample.len()).unwrap_or(u32::MAX),
        inline_qos,
        key: sample.kind != ChangeKind::Write,
    };
    packer.stamp(sample.timestamp);
    write::data_frag(packer.outbox.buffer(), &head, range.len());
    let bytes = range.len();
    push_bytes(packer.outbox, sample, range);
    write::padding(packer.outbox.buffer(), bytes);
}

/// Bytes that a frame takes in a datagram as one DATA_BATCH.
pub(super) fn batch_bytes(frame: &Frame) -> usize {
    write::DATA_BATCH_HEAD_LEN + frame.infos().len() + write::ENCAPSULATION_LEN + frame.bodies().len() + 3
}

/// Appends a frame as one DATA_BATCH.
pub(super) fn push_batch(packer: &mut Packer<'_>, pair: Pair, at: &FrameAt<'_>) {
    let frame = at.frame;
    packer.reserve(batch_bytes(frame));
    let head = DataBatchHead {
        reader: pair.reader,
        writer: pair.writer,
        batch: at.batch,
        first: at.first,
        count: frame.len() as u32,
    };
    let buffer = packer.outbox.buffer();
    write::data_batch(buffer, &head, frame.infos().len(), frame.bodies().len());
    buffer.extend_from_slice(frame.infos());
    buffer.extend_from_slice(&frame.encapsulation());
    packer.outbox.push_payload(frame.bodies(), 0..frame.bodies().len());
    write::padding(packer.outbox.buffer(), frame.bodies().len());
}
