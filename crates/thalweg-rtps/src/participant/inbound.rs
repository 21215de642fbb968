//! Neighbouring samples of one writer on their way from a datagram to its readers.

mod arrivals;
mod gathered;

use std::ops::Range;
use std::sync::Arc;

use super::beside::{Said, change_of, directed_to, kind_of, related_of};
use super::{KeyOf, KeySource};
use crate::history::{ChangeKind, PayloadKind};
use crate::payload::{Payload, PayloadPool};
use crate::reader::{BatchRange, GroupMark, Received};
use crate::time::{Instant, Timestamp};
use crate::types::{EntityId, Guid, KeyHash, Keyed, SampleIdentity, SequenceNumber};
use crate::wire::batch::{BatchSample, DataBatch};
use crate::wire::parameters::ParameterList;
use crate::wire::{Content, Data};

/// Samples of one writer from neighbouring datagrams, gathered so that each reader is locked once for all of them, and small
/// samples are copied out of the receive buffers side by side.
pub(super) struct Inbound {
    pub(super) writer: Guid,
    /// The one reader that they are addressed to, or [`EntityId::UNKNOWN`] for all.
    pub(super) addressed: EntityId,
    /// The local readers matched with the writer.
    pub(super) readers: Vec<EntityId>,
    /// Readers that another submessage concerns; kept between calls for its memory.
    pub(super) concerned: Vec<EntityId>,
    /// The latest answer of the present datagram, while the reader's path was not judged by it.
    pub(super) answered: Option<Answered>,
    gathered: Gathered,
    /// Receive buffers among the slabs.
    sources: Vec<Source>,
    /// The slab of the present datagram, if one of its samples was gathered.
    datagram: Option<u32>,
    pool: PayloadPool,
    empty: Payload,
}

/// An answer that a reader sent to a local writer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    pub writer: EntityId,
    pub reader: Guid,
    pub now: Instant,
}

/// A receive buffer.
#[derive(Debug)]
struct Source {
    /// Bytes that a slice of it keeps alive.
    pinned: usize,
    /// Bytes of all samples in it that may share it.
    sharing: usize,
    /// First of the neighbouring datagrams that lie in the same buffer: that one's `sharing` counts.
    first: u32,
}

/// The samples themselves.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pieces: Vec<Piece>,
    /// What the samples' bytes lie in: nothing at all, the datagrams, then the buffers for copies.
    slabs: Vec<Payload>,
    /// The places of samples within the writer's publisher, where it tells them.
    marks: Vec<GroupMark>,
    /// Samples that are for some readers only, with these in ascending order.
    directed: Vec<(SequenceNumber, Arc<[Guid]>)>,
}

/// One entry, in the order of the datagram.
#[derive(Debug)]
enum Piece {
    Sample(Head),
    Irrelevant { start: SequenceNumber, end: SequenceNumber },
    BatchEnd(BatchRange),
    NextDatagram,
}

/// A sample without its bytes.
#[derive(Debug)]
struct Head {
    sequence: SequenceNumber,
    timestamp: Option<Timestamp>,
    instance: KeyHash,
    /// The instance is known, if only by the key hash on the wire.
    told: bool,
    /// The topic is keyed, and nothing tells the instance.
    keyless: bool,
    kind: ChangeKind,
    content_kind: PayloadKind,
    coherent_set: SequenceNumber,
    related: Option<Arc<SampleIdentity>>,
    /// The encapsulation header, which a sample of a batch lacks.
    lacks_header: Option<[u8; ENCAPSULATION_LEN]>,
    /// It has to be copied into a buffer.
    moves: bool,
    /// The slab that its bytes lie in, and their place in it.
    slab: u32,
    start: u32,
    end: u32,
}

/// How a reader learns the instances of its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instances {
    /// They are told with the samples.
    Told,
    /// The reader asks its driver.
    Asked,
}

impl Instances {
    pub(super) fn for_reader(keys: &KeySource) -> Instances {
        if matches!(keys, KeySource::Driver) { Instances::Asked } else { Instances::Told }
    }
}

/// Least size of a buffer that copied samples share; a small sample keeps no more than that alive.
const SMALL_BUFFER_BYTES: usize = 8 << 10;
/// Greatest size of such a buffer, for samples of many kilobytes: that of a receive buffer.
const LARGE_BUFFER_BYTES: usize = 64 << 10;
/// Samples of up to this size never keep a receive buffer alive.
const SMALL_SAMPLE_BYTES: usize = 512;
/// A small sample, or one of a keyed topic, keeps at most this many times its own size of a receive buffer alive. Others share the
/// buffer with the samples that came with them and mostly go with them: for these it is this many times the size of all together.
const PINNED_RATIO_MAX: usize = 8;
/// Memory that recycled buffers for copies may keep in each size class.
const POOL_BYTES: usize = 4 << 20;
const ENCAPSULATION_LEN: usize = 4;
/// The slab of samples without bytes.
const NOTHING: u32 = 0;
/// Entries beyond which nothing of another datagram is added: enough that the cost of each hand-over disappears, few enough to stay
/// in the processor's cache.
const PIECES_MAX: usize = 512;

impl Inbound {
    pub(super) fn new() -> Inbound {
        Inbound {
            writer: Guid::UNKNOWN,
            addressed: EntityId::UNKNOWN,
            readers: Vec::new(),
            concerned: Vec::new(),
            answered: None,
            gathered: Gathered::default(),
            sources: Vec::new(),
            datagram: None,
            pool: PayloadPool::new(POOL_BYTES),
            empty: Payload::from(Vec::new()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.gathered.pieces.is_empty()
    }

    /// Whether a sample of `writer` for `addressed` can be added to what is there.
    #[inline]
    pub(super) fn goes_with(&self, writer: Guid, addressed: EntityId) -> bool {
        let is_same = !self.is_empty() && self.writer == writer && self.addressed == addressed;
        is_same && (self.datagram.is_some() || self.gathered.pieces.len() < PIECES_MAX)
    }

    /// Notes that what follows lies in another datagram.
    pub(super) fn next_datagram(&mut self) {
        self.datagram = None;
    }

    /// Adds `datagram` to the slabs unless it is the present one.
    #[inline]
    pub(super) fn open(&mut self, datagram: &Payload) {
        if self.datagram.is_none() {
            self.add_source(datagram);
        }
    }

    fn add_source(&mut self, datagram: &Payload) {
        let Gathered { pieces, slabs, .. } = &mut self.gathered;
        if slabs.is_empty() {
            slabs.push(self.empty.clone());
        }
        if !pieces.is_empty() {
            pieces.push(Piece::NextDatagram);
        }
        let number = self.sources.len() as u32;
        // Datagrams that the kernel joined follow each other in one buffer.
        let follows = slabs.last().is_some_and(|last| last.as_ptr_range().end == datagram.as_ptr());
        let first = self.sources.last().filter(|_| follows).map_or(number, |last| last.first);
        self.sources.push(Source { pinned: datagram.pinned_bytes(), sharing: 0, first });
        self.datagram = Some(slabs.len() as u32);
        slabs.push(datagram.clone());
    }

    /// Gives the samples away, packed and identified, with their readers; [`Inbound::take_back`] returns the memory.
    pub(super) fn give_out(&mut self) -> (Gathered, Vec<EntityId>) {
        self.sources.clear();
        self.datagram = None;
        (std::mem::take(&mut self.gathered), std::mem::take(&mut self.readers))
    }

    /// Forgets the samples, keeps the memory.
    pub(super) fn take_back(&mut self, mut gathered: Gathered, readers: Vec<EntityId>) {
        gathered.pieces.clear();
        gathered.slabs.clear();
        gathered.marks.clear();
        gathered.directed.clear();
        (self.gathered, self.readers) = (gathered, readers);
    }

    /// Appends a DATA.
    pub(super) fn push_data(&mut self, data: &Data<'_>, timestamp: Option<Timestamp>) {
        let (range, content_kind) = match &data.content {
            Content::Data(range) => (range.clone(), PayloadKind::Data),
            Content::Key(range) => (range.clone(), PayloadKind::Key),
            Content::None => (0..0, PayloadKind::Key),
        };
        let inline_qos = data.inline_qos.as_ref();
        let (kind, hint) = change_of(inline_qos, content_kind);
        let mut coherent_set = inline_qos.map(ParameterList::coherent_set).unwrap_or_default();
        let place = inline_qos.and_then(ParameterList::group_place);
        let has_nothing = data.content == Content::None && hint.is_none();
        if let Some(place) = place {
            let is_empty_part = has_nothing && coherent_set == SequenceNumber::ZERO;
            self.gathered.marks.push(GroupMark { sequence: data.sequence, place, is_empty_part });
            coherent_set = if has_nothing { SequenceNumber::UNKNOWN } else { coherent_set };
        }
        if has_nothing && coherent_set == SequenceNumber::ZERO {
            // It says nothing, but its number is used.
            return self.gathered.pieces.push(Piece::Irrelevant { start: data.sequence, end: data.sequence.next() });
        }
        if kind.is_none() && coherent_set == SequenceNumber::ZERO {
            return self.push_no_change(data.sequence);
        }
        self.note_directed(data.sequence, directed_to(inline_qos));
        let related = related_of(inline_qos, self.writer).map(Arc::new);
        let head = Head::new(data.sequence, timestamp, kind.unwrap_or(ChangeKind::Dispose), content_kind, hint);
        self.push(Head { coherent_set, related, ..head }, range);
    }

    /// Appends what changes nothing: its number is used, and a coherent set ends in front of it, as in front of any sample
    /// that is part of none.
    fn push_no_change(&mut self, sequence: SequenceNumber) {
        let head = Head::new(sequence, None, ChangeKind::Dispose, PayloadKind::Key, None);
        self.push(Head { coherent_set: SequenceNumber::UNKNOWN, ..head }, 0..0);
    }

    fn note_directed(&mut self, sequence: SequenceNumber, readers: Option<Arc<[Guid]>>) {
        if let Some(readers) = readers {
            self.gathered.directed.push((sequence, readers));
        }
    }

    /// Appends a DATA_BATCH.
    pub(super) fn push_batch(&mut self, batch: &DataBatch<'_>) {
        let mut expected = batch.first;
        // Read once: the list may be long, and the samples many.
        let said_of_all = Said::of(batch.inline_qos.as_ref(), self.writer);
        for sample in batch.samples {
            if sample.sequence > expected {
                self.gathered.pieces.push(Piece::Irrelevant { start: expected, end: sample.sequence });
            }
            expected = sample.sequence.next();
            self.push_batch_sample(batch, sample, &said_of_all);
        }
        if batch.last >= expected {
            self.gathered.pieces.push(Piece::Irrelevant { start: expected, end: batch.last.next() });
        }
        let DataBatch { batch, first, last, .. } = *batch;
        self.gathered.pieces.push(Piece::BatchEnd(BatchRange { batch, first, last }));
    }

    fn push_batch_sample(&mut self, batch: &DataBatch<'_>, sample: BatchSample<'_>, said_of_all: &Said) {
        let sequence = sample.sequence;
        let content_kind = if sample.key { PayloadKind::Key } else { PayloadKind::Data };
        let Said { status, hint, related, directed_to } = match &sample.inline_qos {
            Some(list) => Said::of(Some(list), self.writer),
            None => said_of_all.clone(),
        };
        let says_nothing = sample.key && sample.bytes.is_empty() && hint.is_none();
        if !sample.valid || says_nothing {
            return self.gathered.pieces.push(Piece::Irrelevant { start: sequence, end: sequence.next() });
        }
        let Some(kind) = kind_of(status, content_kind) else { return self.push_no_change(sequence) };
        self.note_directed(sequence, directed_to);
        let lacks_header = (!sample.key || !sample.bytes.is_empty()).then_some(batch.encapsulation);
        let head = Head::new(sequence, sample.timestamp, kind, content_kind, hint);
        self.push(Head { lacks_header, moves: lacks_header.is_some(), related, ..head }, sample.bytes);
    }

    /// Appends a sample whose bytes are `range` of the present datagram, which is shorter than 4 GiB.
    #[inline]
    fn push(&mut self, head: Head, range: Range<usize>) {
        let slab = match self.datagram {
            Some(slab) if !range.is_empty() => slab,
            _ => return self.gathered.pieces.push(Piece::Sample(head)),
        };
        let head = Head { slab, start: range.start as u32, end: range.end as u32, ..head };
        if head.len() > SMALL_SAMPLE_BYTES && self.writer.entity.keyed() == Keyed::No {
            let first = self.sources[slab as usize - 1].first;
            self.sources[first as usize].sharing += head.len();
        }
        self.gathered.pieces.push(Piece::Sample(head));
    }

    /// Copies the samples that lack a header or would keep too much of a receive buffer alive.
    pub(super) fn pack(&mut self) {
        let mut first = None;
        for (index, piece) in self.gathered.pieces.iter_mut().enumerate() {
            if let Piece::Sample(head) = piece
                && head.slab != NOTHING
            {
                let source = &self.sources[head.slab as usize - 1];
                head.moves |= source.pinned > self.sources[source.first as usize].base(head.len()) * PINNED_RATIO_MAX;
            }
            if first.is_none() && piece.moving().is_some() {
                first = Some(index);
            }
        }
        let mut next = first;
        while let Some(from) = next {
            let to = self.fill_buffer(from);
            let more = self.gathered.pieces[to..].iter().position(|piece| piece.moving().is_some());
            next = more.map(|at| to + at);
        }
    }

    /// Copies samples from piece `from` on into one buffer until it is full; returns where to go on.
    fn fill_buffer(&mut self, from: usize) -> usize {
        let (mut bytes, mut bytes_max, mut to) = (0, 0, from);
        for piece in &self.gathered.pieces[from..] {
            if let Some(head) = piece.moving() {
                if bytes == 0 {
                    bytes_max = self.buffer_bytes(head);
                } else if bytes + head.len() > bytes_max {
                    break;
                }
                bytes += head.len();
            }
            to += 1;
        }
        let Gathered { pieces, slabs, .. } = &mut self.gathered;
        let slab = slabs.len() as u32;
        let copy = |buffer: &mut Vec<u8>| -> Result<(), std::convert::Infallible> {
            for piece in &mut pieces[from..to] {
                let Piece::Sample(head) = piece else { continue };
                if head.moves {
                    let start = buffer.len() as u32;
                    buffer.extend_from_slice(head.lacks_header.as_ref().map_or(&[], |header| header));
                    buffer.extend_from_slice(&slabs[head.slab as usize][head.start as usize..head.end as usize]);
                    (head.slab, head.start, head.end) = (slab, start, buffer.len() as u32);
                    (head.moves, head.lacks_header) = (false, None);
                }
            }
            Ok(())
        };
        match self.pool.fill(bytes, copy) {
            Ok(buffer) => slabs.push(buffer),
            Err(never) => match never {},
        }
        to
    }

    /// Size of the buffer for a sample and those that follow it.
    fn buffer_bytes(&self, head: &Head) -> usize {
        let source = head.slab.checked_sub(1).map(|source| &self.sources[source as usize]);
        let sharing = source.map_or(head.len(), |source| self.sources[source.first as usize].base(head.len()));
        (sharing * PINNED_RATIO_MAX).clamp(SMALL_BUFFER_BYTES, LARGE_BUFFER_BYTES)
    }

    /// Finds the instance of each sample of a keyed topic: from the key, else from the key hash beside it. Returns the number of
    /// samples that have neither; they are lost to their readers.
    pub(super) fn identify(&mut self, key_of: Option<&KeyOf>) -> u64 {
        let mut keyless = 0;
        for piece in &mut self.gathered.pieces {
            let Piece::Sample(head) = piece else { continue };
            if head.ends_set() {
                continue;
            }
            let content = &self.gathered.slabs[head.slab as usize][head.start as usize..head.end as usize];
            let computed = match key_of {
                Some(key_of) if !content.is_empty() => key_of(content, head.content_kind),
                _ => None,
            };
            match computed {
                Some(instance) => (head.instance, head.told) = (instance, true),
                None if head.told => {}
                None => {
                    keyless += 1;
                    head.keyless = true;
                }
            }
        }
        keyless
    }
}

impl Source {
    /// The bytes that a sample of `len` bytes counts for, in proportion to those that it may keep alive.
    fn base(&self, len: usize) -> usize {
        if len > SMALL_SAMPLE_BYTES { self.sharing.max(len) } else { len }
    }
}

impl Piece {
    /// The sample, if it has to be copied.
    fn moving(&self) -> Option<&Head> {
        match self {
            Piece::Sample(head) if head.moves => Some(head),
            _ => None,
        }
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
        let (instance, told) = (hint.unwrap_or_default(), hint.is_some());
        let (keyless, lacks_header, moves) = (false, None, false);
        let (slab, start, end) = (NOTHING, 0, 0);
        let coherent_set = SequenceNumber::ZERO;
        Head {
            sequence,
            timestamp,
            instance,
            told,
            keyless,
            kind,
            content_kind,
            coherent_set,
            related: None,
            lacks_header,
            moves,
            slab,
            start,
            end,
        }
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the whole sample.
    fn len(&self) -> usize {
        (self.end - self.start) as usize + self.lacks_header.map_or(0, |header| header.len())
    }

    #[inline]
    fn received(&self, slab: &Payload) -> Received {
        Received {
            sequence: self.sequence,
            timestamp: self.timestamp,
            kind: self.kind,
            instance: self.instance,
            content: slab.slice(self.start as usize..self.end as usize),
            content_kind: self.content_kind,
            coherent_set: self.coherent_set,
            related: self.related.clone(),
        }
    }

    /// It is no sample, but says that a coherent set is complete.
    #[inline]
    fn ends_set(&self) -> bool {
        self.coherent_set != SequenceNumber::ZERO && self.is_empty() && !self.told
    }
}
