//! Neighbouring samples of one writer on their way from a datagram to its readers.

use std::ops::Range;

use super::KeyOf;
use crate::history::{ChangeKind, PayloadKind};
use crate::payload::{Payload, PayloadPool};
use crate::reader::{Arrival, BatchRange, Received};
use crate::time::Timestamp;
use crate::types::{EntityId, Guid, KeyHash, Keyed, SequenceNumber};
use crate::wire::batch::{BatchSample, DataBatch};
use crate::wire::parameters::ParameterList;
use crate::wire::{Content, Data};

/// What a datagram says of one writer, gathered so that each reader is locked once for all of it, and small samples are copied
/// out of the receive buffer side by side.
pub(super) struct Inbound {
    pub(super) writer: Guid,
    /// The one reader it is for, or [`EntityId::UNKNOWN`].
    pub(super) addressed: EntityId,
    gathered: Gathered,
    pool: PayloadPool,
    empty: Payload,
}

/// The samples themselves.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pieces: Vec<Piece>,
    /// What the samples' bytes lie in: the datagram, nothing at all, then the buffers for copies.
    slabs: Vec<Payload>,
}

/// One entry, in the order of the datagram.
#[derive(Debug)]
enum Piece {
    Sample(Head),
    Irrelevant { start: SequenceNumber, end: SequenceNumber },
    BatchEnd(BatchRange),
}

/// A sample but for its bytes.
#[derive(Debug)]
struct Head {
    sequence: SequenceNumber,
    timestamp: Option<Timestamp>,
    instance: KeyHash,
    /// The wire's word for the instance was given.
    hinted: bool,
    kind: ChangeKind,
    content_kind: PayloadKind,
    /// The header that a sample of a batch lacks; all samples of a datagram that lack it have the same.
    lacks_header: Option<[u8; ENCAPSULATION_LEN]>,
    /// Which of the slabs, and where in it.
    slab: u32,
    start: u32,
    end: u32,
}

/// Samples that are copied share buffers of this size at least: one that is kept keeps no more than that alive.
const SMALL_BUFFER_BYTES: usize = 8 << 10;
/// And of this size at most, for samples of many kilobytes: as much as a receive buffer.
const LARGE_BUFFER_BYTES: usize = 64 << 10;
/// Samples of up to this size never keep a receive buffer alive.
const SMALL_SAMPLE_BYTES: usize = 512;
/// Samples of a keyed topic and small ones keep at most this many times their own size of a receive buffer alive. The others
/// share it with what came with them, and mostly goes with them: so many times the size of all of them together.
const PINNED_RATIO_MAX: usize = 8;
/// Memory that recycled buffers for copies may keep in each size class.
const POOL_BYTES: usize = 4 << 20;
const ENCAPSULATION_LEN: usize = 4;
/// Places in [`Inbound::slabs`].
const DATAGRAM: u32 = 0;
const NOTHING: u32 = 1;

impl Inbound {
    pub(super) fn new() -> Inbound {
        Inbound {
            writer: Guid::UNKNOWN,
            addressed: EntityId::UNKNOWN,
            gathered: Gathered::default(),
            pool: PayloadPool::new(POOL_BYTES),
            empty: Payload::from(Vec::new()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.gathered.pieces.is_empty()
    }

    /// Gives the samples away, packed and identified; [`Inbound::take_back`] returns the memory.
    pub(super) fn give_out(&mut self) -> Gathered {
        std::mem::take(&mut self.gathered)
    }

    /// Forgets the samples, keeps the memory.
    pub(super) fn take_back(&mut self, mut gathered: Gathered) {
        gathered.pieces.clear();
        gathered.slabs.clear();
        self.gathered = gathered;
    }

    /// A payload without bytes that keeps nothing alive.
    pub(super) fn nothing(&self) -> Payload {
        self.empty.clone()
    }

    /// Appends a DATA.
    pub(super) fn push_data(&mut self, data: &Data<'_>, timestamp: Option<Timestamp>) {
        let (range, content_kind) = match &data.content {
            Content::Data(range) => (range.clone(), PayloadKind::Data),
            Content::Key(range) => (range.clone(), PayloadKind::Key),
            Content::None => (0..0, PayloadKind::Key),
        };
        let (kind, hint) = change_of(data.inline_qos.as_ref(), content_kind);
        if data.content == Content::None && hint.is_none() {
            // The number is used up all the same.
            return self.gathered.pieces.push(Piece::Irrelevant { start: data.sequence, end: data.sequence.next() });
        }
        let head = Head::new(data.sequence, timestamp, kind, content_kind, hint);
        self.gathered.pieces.push(Piece::Sample(head.at(range, None)));
    }

    /// Appends a DATA_BATCH.
    pub(super) fn push_batch(&mut self, batch: &DataBatch<'_>) {
        let mut expected = batch.first;
        for sample in batch.samples {
            if sample.sequence > expected {
                self.gathered.pieces.push(Piece::Irrelevant { start: expected, end: sample.sequence });
            }
            expected = sample.sequence.next();
            self.push_batch_sample(batch, sample);
        }
        if batch.last >= expected {
            self.gathered.pieces.push(Piece::Irrelevant { start: expected, end: batch.last.next() });
        }
        let DataBatch { batch, first, last, .. } = *batch;
        self.gathered.pieces.push(Piece::BatchEnd(BatchRange { batch, first, last }));
    }

    fn push_batch_sample(&mut self, batch: &DataBatch<'_>, sample: BatchSample<'_>) {
        let sequence = sample.sequence;
        let content_kind = if sample.key { PayloadKind::Key } else { PayloadKind::Data };
        let inline_qos = sample.inline_qos.as_ref().or(batch.inline_qos.as_ref());
        let (kind, hint) = change_of(inline_qos, content_kind);
        let says_nothing = sample.key && sample.bytes.is_empty() && hint.is_none();
        if !sample.valid || says_nothing {
            return self.gathered.pieces.push(Piece::Irrelevant { start: sequence, end: sequence.next() });
        }
        let header = (!sample.key || !sample.bytes.is_empty()).then_some(batch.encapsulation);
        let head = Head::new(sequence, sample.timestamp, kind, content_kind, hint);
        self.gathered.pieces.push(Piece::Sample(head.at(sample.bytes, header)));
    }

    /// Makes the bytes of every sample contiguous and such that it keeps little else alive.
    pub(super) fn pack(&mut self, datagram: &Payload) {
        self.gathered.slabs.clear();
        self.gathered.slabs.extend([datagram.clone(), self.empty.clone()]);
        let sharing = match self.writer.entity.keyed() {
            Keyed::Yes => 0,
            Keyed::No => self.gathered.pieces.iter().map(Piece::shared_bytes).sum::<usize>(),
        };
        let ratio = Ratio { pinned: datagram.pinned_bytes(), sharing };
        let mut from = 0;
        while let Some(at) = self.gathered.pieces[from..].iter().position(|piece| ratio.has_to_move(piece)) {
            from = self.fill_buffer(datagram, ratio, from + at);
        }
    }

    /// Copies samples from piece `from` on into one buffer until it is full; returns where to go on.
    fn fill_buffer(&mut self, datagram: &Payload, ratio: Ratio, from: usize) -> usize {
        let Inbound { gathered: Gathered { pieces, slabs }, pool, .. } = self;
        let slab = slabs.len() as u32;
        let (mut bytes, mut to) = (0, from);
        let mut bytes_max = 0;
        for piece in &pieces[from..] {
            if let Piece::Sample(head) = piece
                && ratio.has_to_move(piece)
            {
                bytes_max = if bytes == 0 { ratio.buffer_bytes(head.len()) } else { bytes_max };
                if bytes > 0 && bytes + head.len() > bytes_max {
                    break;
                }
                bytes += head.len();
            }
            to += 1;
        }
        let copy = |buffer: &mut Vec<u8>| -> Result<(), std::convert::Infallible> {
            for piece in &mut pieces[from..to] {
                if !ratio.has_to_move(piece) {
                    continue;
                }
                if let Piece::Sample(head) = piece {
                    let start = buffer.len() as u32;
                    buffer.extend_from_slice(head.lacks_header.take().as_ref().map_or(&[], |header| header));
                    buffer.extend_from_slice(&datagram[head.start as usize..head.end as usize]);
                    (head.slab, head.start, head.end) = (slab, start, buffer.len() as u32);
                }
            }
            Ok(())
        };
        match pool.fill(bytes, copy) {
            Ok(buffer) => slabs.push(buffer),
            Err(never) => match never {},
        }
        to
    }

    /// Finds each sample's instance on a keyed topic: from the key, else from the hint of the wire. Those that tell neither are
    /// used-up numbers; returns how many.
    pub(super) fn identify(&mut self, key_of: Option<&KeyOf>) -> u64 {
        if self.writer.entity.keyed() == Keyed::No {
            return 0;
        }
        let mut keyless = 0;
        for piece in &mut self.gathered.pieces {
            let Piece::Sample(head) = piece else { continue };
            let content = &self.gathered.slabs[head.slab as usize][head.start as usize..head.end as usize];
            let computed = match key_of {
                Some(key_of) if !content.is_empty() => key_of(content, head.content_kind),
                _ => None,
            };
            match computed {
                Some(instance) => head.instance = instance,
                None if head.hinted => {}
                None => {
                    keyless += 1;
                    *piece = Piece::Irrelevant { start: head.sequence, end: head.sequence.next() };
                }
            }
        }
        keyless
    }
}

impl Gathered {
    /// What one reader gets.
    pub(super) fn arrivals(&self) -> impl Iterator<Item = Arrival> {
        self.pieces.iter().map(|piece| match piece {
            Piece::Sample(head) => Arrival::Sample(head.received(&self.slabs[head.slab as usize])),
            Piece::Irrelevant { start, end } => Arrival::Irrelevant { start: *start, end: *end },
            Piece::BatchEnd(range) => Arrival::BatchEnd(*range),
        })
    }
}

impl Piece {
    /// Bytes of a sample that may share a buffer with its neighbours for as long as it likes.
    fn shared_bytes(&self) -> usize {
        match self {
            Piece::Sample(head) if head.len() > SMALL_SAMPLE_BYTES => head.len(),
            _ => 0,
        }
    }
}

/// By how much a sample's bytes may be exceeded by what they keep alive.
#[derive(Clone, Copy)]
struct Ratio {
    /// Bytes that a slice of the datagram keeps alive.
    pinned: usize,
    /// Bytes of all samples in the datagram that may share it.
    sharing: usize,
}

impl Ratio {
    /// The bytes in proportion to which a sample of `len` bytes may keep others alive.
    fn base(self, len: usize) -> usize {
        if len > SMALL_SAMPLE_BYTES { self.sharing.max(len) } else { len }
    }

    /// Size of the buffer for a sample of `len` bytes and what follows it.
    fn buffer_bytes(self, len: usize) -> usize {
        (self.base(len) * PINNED_RATIO_MAX).clamp(SMALL_BUFFER_BYTES, LARGE_BUFFER_BYTES)
    }

    /// True for a sample that lacks its header, or would keep too much alive where it is.
    fn has_to_move(self, piece: &Piece) -> bool {
        let Piece::Sample(head) = piece else { return false };
        let is_wasteful = head.slab == DATAGRAM && self.pinned > self.base(head.len()) * PINNED_RATIO_MAX;
        is_wasteful || head.lacks_header.is_some()
    }
}

impl Head {
    fn new(
        sequence: SequenceNumber,
        timestamp: Option<Timestamp>,
        kind: ChangeKind,
        content_kind: PayloadKind,
        hint: Option<KeyHash>,
    ) -> Head {
        let (instance, hinted) = (hint.unwrap_or_default(), hint.is_some());
        let lacks_header = None;
        Head {
            sequence,
            timestamp,
            instance,
            hinted,
            kind,
            content_kind,
            lacks_header,
            slab: NOTHING,
            start: 0,
            end: 0,
        }
    }

    /// Says where the bytes lie in the datagram, which is shorter than 4 GiB.
    fn at(self, range: Range<usize>, lacks_header: Option<[u8; ENCAPSULATION_LEN]>) -> Head {
        if range.is_empty() {
            return Head { lacks_header, ..self };
        }
        Head { lacks_header, slab: DATAGRAM, start: range.start as u32, end: range.end as u32, ..self }
    }

    /// Bytes of the whole sample.
    fn len(&self) -> usize {
        (self.end - self.start) as usize + self.lacks_header.map_or(0, |header| header.len())
    }

    fn received(&self, slab: &Payload) -> Received {
        Received {
            sequence: self.sequence,
            timestamp: self.timestamp,
            kind: self.kind,
            instance: self.instance,
            content: slab.slice(self.start as usize..self.end as usize),
            content_kind: self.content_kind,
        }
    }
}

/// What the inline QoS says that a change does, a key without status can only end its instance; and which instance it names.
pub(super) fn change_of(inline_qos: Option<&ParameterList<'_>>, content: PayloadKind) -> (ChangeKind, Option<KeyHash>) {
    let kind = ChangeKind::from_status_info(inline_qos.map_or(0, ParameterList::status_info));
    let hint = inline_qos.and_then(ParameterList::key_hash);
    let is_key = kind == ChangeKind::Write && content == PayloadKind::Key;
    (if is_key { ChangeKind::Dispose } else { kind }, hint)
}
