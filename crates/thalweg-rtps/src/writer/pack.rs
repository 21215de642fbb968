//! Submessages into datagrams: as few as their size allows.

use super::MatchedReader;
use super::flow::kernel_cost;
use crate::history::{Change, ChangeKind};
use crate::outbox::Outbox;
use crate::types::{EntityId, Guid, GuidPrefix, Locator, SequenceNumber};
use crate::wire::write::{self, DataFragHead, DataHead, DataKind};
use crate::wire::{Gap, SequenceSet, parameters};

/// Datagrams filled by one call, so that a large sample neither fills memory nor holds the lock for long.
pub(super) const OUTBOX_MAX_DATAGRAMS: usize = 64;

/// Packs submessages into datagrams to one list of destinations.
pub(super) struct Packer<'a> {
    pub(super) outbox: &'a mut Outbox,
    source: Guid,
    destinations: &'a [Locator],
    directed_to: Option<GuidPrefix>,
    limit: usize,
    open: bool,
    /// Bytes that may still be sent, all destinations together.
    pub(super) allowance: u64,
}

impl<'a> Packer<'a> {
    pub(super) fn new(
        outbox: &'a mut Outbox,
        source: Guid,
        destinations: &'a [Locator],
        directed_to: Option<GuidPrefix>,
        limit: usize,
    ) -> Packer<'a> {
        Packer { outbox, source, destinations, directed_to, limit, open: false, allowance: u64::MAX }
    }

    pub(super) fn directed(outbox: &'a mut Outbox, source: Guid, matched: &'a MatchedReader) -> Packer<'a> {
        // One address is enough for an answer; without a unicast address the group has to do.
        let destinations = match matched.unicast.first() {
            Some(first) => std::slice::from_ref(first),
            None => matched.multicast.as_slice(),
        };
        Packer::new(outbox, source, destinations, Some(matched.guid.prefix), matched.datagram_bytes)
    }

    pub(super) fn is_full(&self) -> bool {
        self.outbox.len() >= OUTBOX_MAX_DATAGRAMS
    }

    fn fits(&self, bytes: usize) -> bool {
        // Room for a HEARTBEAT stays free in every datagram.
        self.open && self.outbox.open_len() + bytes + write::HEARTBEAT_LEN <= self.limit
    }

    /// The same within `allowance` bytes.
    pub(super) fn within(mut self, allowance: u64) -> Packer<'a> {
        self.allowance = allowance;
        self
    }

    /// Takes what `bytes` more cost from the allowance; false when that does not suffice.
    pub(super) fn pay(&mut self, bytes: usize) -> bool {
        let head = if self.fits(bytes) { 0 } else { write::HEADER_LEN + write::INFO_DST_LEN };
        let price = (bytes + head) as u64 * self.destinations.len() as u64;
        let affordable = price <= self.allowance;
        if affordable && self.allowance != u64::MAX {
            self.allowance -= price;
        }
        affordable
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
    }

    /// Goes on with the datagram that the outbox has open.
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

pub(super) fn fragments_of(change: &Change, fragment_bytes: u16) -> u32 {
    u32::try_from(change.payload.len().div_ceil(usize::from(fragment_bytes))).unwrap_or(u32::MAX)
}

/// An upper bound of the bytes that a sample takes in a datagram.
pub(super) fn sample_bytes(change: &Change) -> usize {
    let inline_qos = if change.kind == ChangeKind::Write { 0 } else { INLINE_QOS_MAX_BYTES };
    write::INFO_TS_LEN + write::DATA_HEAD_LEN + inline_qos + change.payload.len() + 3
}

/// An upper bound of the bytes that a fragment of a sample takes in a datagram.
pub(super) fn fragment_datagram_bytes(change: &Change, fragment_bytes: u16) -> usize {
    let inline_qos = if change.kind == ChangeKind::Write { 0 } else { INLINE_QOS_MAX_BYTES };
    write::INFO_TS_LEN + write::DATA_FRAG_HEAD_LEN + inline_qos + usize::from(fragment_bytes) + 3
}

/// STATUS_INFO, KEY_HASH and the sentinel.
const INLINE_QOS_MAX_BYTES: usize = 8 + 20 + 4;

fn inline_qos<'a>(scratch: &'a mut Vec<u8>, change: &Change) -> &'a [u8] {
    scratch.clear();
    if change.kind != ChangeKind::Write {
        parameters::inline_qos(change.kind.status_info(), Some(change.instance), scratch);
    }
    scratch
}

pub(super) fn push_sample(
    packer: &mut Packer<'_>,
    scratch: &mut Vec<u8>,
    writer: EntityId,
    reader: EntityId,
    change: &Change,
) {
    packer.reserve(sample_bytes(change));
    let kind = match change.kind {
        ChangeKind::Write => DataKind::Data,
        _ if change.payload.is_empty() => DataKind::None,
        _ => DataKind::Key,
    };
    let inline_qos = inline_qos(scratch, change);
    let buffer = packer.outbox.buffer();
    write::info_timestamp(buffer, change.timestamp);
    let head = DataHead { reader, writer, sequence: change.sequence, inline_qos, kind };
    write::data(buffer, &head, change.payload.len());
    packer.outbox.push_payload(&change.payload, 0..change.payload.len());
    write::padding(packer.outbox.buffer(), change.payload.len());
}

pub(super) fn push_fragment(
    packer: &mut Packer<'_>,
    scratch: &mut Vec<u8>,
    writer: EntityId,
    reader: EntityId,
    change: &Change,
    fragment_bytes: u16,
    index: u32,
) {
    let start = index as usize * usize::from(fragment_bytes);
    let range = start..(start + usize::from(fragment_bytes)).min(change.payload.len());
    let inline_qos = inline_qos(scratch, change);
    packer.reserve(write::INFO_TS_LEN + write::DATA_FRAG_HEAD_LEN + inline_qos.len() + range.len() + 3);
    let head = DataFragHead {
        reader,
        writer,
        sequence: change.sequence,
        first_fragment: index + 1,
        fragments: 1,
        fragment_size: fragment_bytes,
        sample_size: u32::try_from(change.payload.len()).unwrap_or(u32::MAX),
        inline_qos,
        key: change.kind != ChangeKind::Write,
    };
    let buffer = packer.outbox.buffer();
    write::info_timestamp(buffer, change.timestamp);
    write::data_frag(buffer, &head, range.len());
    let bytes = range.len();
    packer.outbox.push_payload(&change.payload, range);
    write::padding(packer.outbox.buffer(), bytes);
}
