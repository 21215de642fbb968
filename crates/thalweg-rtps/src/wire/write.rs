//! Appending of headers and submessages to a buffer, little endian.
//!
//! Every submessage ends on a multiple of four bytes from the start of the message, if it began on one.

use super::batch::{AckNackBatch, HeartbeatBatch};
use super::message::{DATA_FRAG_TO_INLINE_QOS, DATA_TO_INLINE_QOS, SUBMESSAGE_HEADER_LEN};
use super::{
    AckNack, AskedBy, Echo, FragmentSet, Gap, GroupInfo, Heartbeat, HeartbeatFrag, Lost, LostFrag, MAGIC, NackFrag,
    SequenceSet, flag, id,
};
use crate::time::Timestamp;
use crate::types::{EntityId, GuidPrefix, ProtocolVersion, SequenceNumber, VendorId};

/// Bytes of a message header.
pub const HEADER_LEN: usize = 20;
/// Bytes of an INFO_DST.
pub const INFO_DST_LEN: usize = 16;
/// Bytes of an INFO_TS that carries a time.
pub const INFO_TS_LEN: usize = 12;
/// Bytes of an INFO_TS that takes a time back.
pub const INFO_TS_NONE_LEN: usize = SUBMESSAGE_HEADER_LEN;
/// Bytes of a DATA in front of its inline QoS and payload.
pub const DATA_HEAD_LEN: usize = 24;
/// Bytes of a DATA_FRAG in front of its inline QoS and payload.
pub const DATA_FRAG_HEAD_LEN: usize = 36;
/// Bytes of a HEARTBEAT.
pub const HEARTBEAT_LEN: usize = 32;
/// Bytes of a HEARTBEAT that tells of the writer's publisher.
pub const GROUP_HEARTBEAT_LEN: usize = HEARTBEAT_LEN + 32;
/// Bytes of a HEARTBEAT_FRAG.
pub const HEARTBEAT_FRAG_LEN: usize = 28;
/// Bytes of a GAP with a full window of 256 numbers.
pub const GAP_MAX_LEN: usize = 64;
/// Bytes of a GAP whose list is empty.
pub const GAP_MIN_LEN: usize = 32;
/// Bytes of an ACKNACK with a full window of 256 numbers.
pub const ACKNACK_MAX_LEN: usize = 60;
/// Bytes of an ACKNACK that misses nothing.
pub const ACKNACK_MIN_LEN: usize = 28;
/// Bytes of a NACK_FRAG with a full window of 256 fragments.
pub const NACK_FRAG_MAX_LEN: usize = 64;
const NACK_FRAG_MIN_LEN: usize = 32;
/// Bytes of an ECHO.
pub const ECHO_LEN: usize = 20;
/// Bytes of the count that ends an ACKNACK or NACK_FRAG.
const COUNT_LEN: usize = 4;

/// Bytes of a HEARTBEAT_BATCH.
pub const HEARTBEAT_BATCH_LEN: usize = 48;
/// Bytes of a DATA_BATCH in front of its sample list.
pub const DATA_BATCH_HEAD_LEN: usize = 44;
/// Bytes of one entry of the sample list that carries a time.
pub const BATCH_SAMPLE_LEN: usize = 16;
/// Bytes of the encapsulation header.
pub const ENCAPSULATION_LEN: usize = 4;
/// octetsToInlineQos of a DATA_BATCH: up to octetsToSLEncapsulationId where no inline QoS follows.
const DATA_BATCH_TO_INLINE_QOS: usize = 32;
/// T: the sample's description carries a time.
const BATCH_SAMPLE_TIMESTAMP: u16 = 0x0001;
/// D: the sample's bytes are data.
const BATCH_SAMPLE_DATA: u16 = 0x0008;

/// Appends the header of a message from the Thalweg participant `prefix`; [`HEADER_LEN`] bytes.
pub fn header(out: &mut Vec<u8>, prefix: GuidPrefix) {
    let version = [ProtocolVersion::V2_5.major, ProtocolVersion::V2_5.minor];
    Fields::<HEADER_LEN>::new().bytes(MAGIC).bytes(version).bytes(VendorId::THALWEG.0).bytes(prefix.0).append(out);
}

/// A PAD, an empty submessage (RTPS 2.5 §8.3.8.11): behind the header it marks an announcement that repeats what all participants
/// of the sender's own process know.
pub const PAD: [u8; 4] = [id::PAD, 1, 0, 0];

/// The mark of a datagram that begins with a [`PAD`] and comes from a participant of the same process as `prefix`: four bytes each at
/// an offset.
pub fn repetition_marks(prefix: GuidPrefix) -> [(usize, [u8; 4]); 3] {
    let [a, b, c, d, e, f, g, h, ..] = prefix.0;
    let prefix_at = HEADER_LEN - prefix.0.len();
    [(HEADER_LEN, PAD), (prefix_at, [a, b, c, d]), (prefix_at + 4, [e, f, g, h])]
}

/// Appends an INFO_DST: the following submessages are for the participant `prefix`, or for all when it is unknown.
pub fn info_destination(out: &mut Vec<u8>, prefix: GuidPrefix) {
    Fields::<INFO_DST_LEN>::submessage(id::INFO_DST, 0).bytes(prefix.0).append(out);
}

/// Appends an INFO_TS: the source time of the samples that follow; `None` takes it back (and is only 4 bytes long).
pub fn info_timestamp(out: &mut Vec<u8>, timestamp: Option<Timestamp>) {
    match timestamp {
        Some(Timestamp { seconds, fraction }) => {
            Fields::<INFO_TS_LEN>::submessage(id::INFO_TS, 0).u32(seconds).u32(fraction).append(out);
        }
        None => Fields::<SUBMESSAGE_HEADER_LEN>::submessage(id::INFO_TS, flag::INVALIDATE).append(out),
    }
}

/// The kind of the payload of a DATA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataKind {
    /// A whole sample.
    Data,
    /// Only the key of an instance.
    Key,
    /// There is no payload.
    None,
}

/// A DATA without its payload.
#[derive(Clone, Copy, Debug)]
pub struct DataHead<'a> {
    /// The reader it is for; [`EntityId::UNKNOWN`] means every matched one.
    pub reader: EntityId,
    /// The writer it comes from.
    pub writer: EntityId,
    /// Number of the sample, at least 1.
    pub sequence: SequenceNumber,
    /// An encoded parameter list with its sentinel; empty for none.
    pub inline_qos: &'a [u8],
    /// The kind of the payload.
    pub kind: DataKind,
}

/// Appends a DATA up to where its payload starts. The caller appends `payload_len` bytes (with their encapsulation header),
/// then [`padding`]. When they do not fit into the 16-bit length, the submessage must be the last of the message.
pub fn data(out: &mut Vec<u8>, head: &DataHead<'_>, payload_len: usize) {
    let kind_flag = match head.kind {
        DataKind::Data => flag::DATA,
        DataKind::Key => flag::DATA_KEY,
        DataKind::None => 0,
    };
    let length = DATA_HEAD_LEN - SUBMESSAGE_HEADER_LEN + head.inline_qos.len() + payload_len;
    Fields::<DATA_HEAD_LEN>::new()
        .bytes(submessage_header(id::DATA, kind_flag | inline_qos_flag(head.inline_qos), length))
        .u16(0)
        .u16(DATA_TO_INLINE_QOS as u16)
        .entities(head.reader, head.writer)
        .number(head.sequence)
        .append(out);
    out.extend_from_slice(head.inline_qos);
}

/// A DATA_FRAG without its bytes.
#[derive(Clone, Copy, Debug)]
pub struct DataFragHead<'a> {
    /// The reader it is for; [`EntityId::UNKNOWN`] means every matched one.
    pub reader: EntityId,
    /// The writer it comes from.
    pub writer: EntityId,
    /// Number of the sample, at least 1.
    pub sequence: SequenceNumber,
    /// Number of the first fragment in here; fragments count from 1.
    pub first_fragment: u32,
    /// Number of fragments, at least 1.
    pub fragments: u16,
    /// Bytes of every fragment but the sample's last; the same for all samples of a writer.
    pub fragment_size: u16,
    /// Bytes of the whole serialized payload with its encapsulation header.
    pub sample_size: u32,
    /// An encoded parameter list with its sentinel; empty for none.
    pub inline_qos: &'a [u8],
    /// True when the sample is only the key of an instance.
    pub key: bool,
}

/// Appends a DATA_FRAG up to where the fragments' bytes start. The caller appends `payload_len` bytes, then [`padding`]. When
/// they do not fit into the 16-bit length, the submessage must be the last of the message.
pub fn data_frag(out: &mut Vec<u8>, head: &DataFragHead<'_>, payload_len: usize) {
    let key_flag = if head.key { flag::FRAG_KEY } else { 0 };
    let length = DATA_FRAG_HEAD_LEN - SUBMESSAGE_HEADER_LEN + head.inline_qos.len() + payload_len;
    Fields::<DATA_FRAG_HEAD_LEN>::new()
        .bytes(submessage_header(id::DATA_FRAG, key_flag | inline_qos_flag(head.inline_qos), length))
        .u16(0)
        .u16(DATA_FRAG_TO_INLINE_QOS as u16)
        .entities(head.reader, head.writer)
        .number(head.sequence)
        .u32(head.first_fragment)
        .u16(head.fragments)
        .u16(head.fragment_size)
        .u32(head.sample_size)
        .append(out);
    out.extend_from_slice(head.inline_qos);
}

/// Appends the 0 to 3 zero bytes that follow a payload of `payload_len` bytes.
pub fn padding(out: &mut Vec<u8>, payload_len: usize) {
    let missing = payload_len.next_multiple_of(4) - payload_len;
    out.extend_from_slice(&[0; 3][..missing]);
}

/// Appends a HEARTBEAT; [`HEARTBEAT_LEN`] bytes.
pub fn heartbeat(out: &mut Vec<u8>, heartbeat: &Heartbeat) {
    Fields::<HEARTBEAT_LEN>::submessage(id::HEARTBEAT, heartbeat_flags(heartbeat))
        .entities(heartbeat.reader, heartbeat.writer)
        .number(heartbeat.first)
        .number(heartbeat.last)
        .u32(heartbeat.count)
        .append(out);
}

fn heartbeat_flags(heartbeat: &Heartbeat) -> u8 {
    let final_flag = if heartbeat.is_final { flag::FINAL } else { 0 };
    final_flag | if heartbeat.liveliness { flag::LIVELINESS } else { 0 }
}

/// Appends a HEARTBEAT that tells of the writer's publisher; [`GROUP_HEARTBEAT_LEN`] bytes. The digests of the publisher's writers are
/// zero: unknown.
pub fn group_heartbeat(out: &mut Vec<u8>, heartbeat: &Heartbeat, info: &GroupInfo) {
    Fields::<GROUP_HEARTBEAT_LEN>::submessage(id::HEARTBEAT, flag::GROUP_INFO | heartbeat_flags(heartbeat))
        .entities(heartbeat.reader, heartbeat.writer)
        .number(heartbeat.first)
        .number(heartbeat.last)
        .u32(heartbeat.count)
        .number(info.current)
        .number(info.first)
        .number(info.last)
        .u32(0)
        .u32(0)
        .append(out);
}

/// Appends a HEARTBEAT_FRAG; [`HEARTBEAT_FRAG_LEN`] bytes.
pub fn heartbeat_frag(out: &mut Vec<u8>, heartbeat: &HeartbeatFrag) {
    Fields::<HEARTBEAT_FRAG_LEN>::submessage(id::HEARTBEAT_FRAG, 0)
        .entities(heartbeat.reader, heartbeat.writer)
        .number(heartbeat.sequence)
        .u32(heartbeat.last_fragment)
        .u32(heartbeat.count)
        .append(out);
}

/// Appends an ACKNACK; [`ACKNACK_MIN_LEN`] to [`ACKNACK_MAX_LEN`] bytes.
pub fn acknack(out: &mut Vec<u8>, acknack: &AckNack) {
    let flags = if acknack.is_final { flag::FINAL } else { 0 };
    acknowledgement(out, id::ACKNACK, flags, (acknack.reader, acknack.writer), &acknack.state, acknack.count);
}

/// Appends a HEARTBEAT_BATCH; [`HEARTBEAT_BATCH_LEN`] bytes.
pub fn heartbeat_batch(out: &mut Vec<u8>, batch: &HeartbeatBatch) {
    let heartbeat = &batch.heartbeat;
    Fields::<HEARTBEAT_BATCH_LEN>::submessage(id::HEARTBEAT_BATCH, heartbeat_flags(heartbeat))
        .entities(heartbeat.reader, heartbeat.writer)
        .number(batch.first_batch)
        .number(batch.last_batch)
        .number(heartbeat.first)
        .number(heartbeat.last)
        .u32(heartbeat.count)
        .append(out);
}

/// Appends an ACKNACK_BATCH; as long as an ACKNACK.
pub fn acknack_batch(out: &mut Vec<u8>, acknack: &AckNackBatch) {
    let flags = if acknack.is_final { flag::FINAL } else { 0 };
    acknowledgement(out, id::ACKNACK_BATCH, flags, (acknack.reader, acknack.writer), &acknack.state, acknack.count);
}

/// A DATA_BATCH without its sample list and samples.
#[derive(Clone, Copy, Debug)]
pub struct DataBatchHead {
    /// The reader it is for; [`EntityId::UNKNOWN`] means every matched one.
    pub reader: EntityId,
    /// The writer it comes from.
    pub writer: EntityId,
    /// Number of the batch, at least 1.
    pub batch: SequenceNumber,
    /// Number of the first sample.
    pub first: SequenceNumber,
    /// Number of samples, numbered consecutively; at least 1.
    pub count: u32,
}

/// Appends a DATA_BATCH up to where its sample list starts. The caller appends `infos_len` bytes of [`batch_sample`]s, the
/// encapsulation header that all samples share, the samples' `data_len` bytes without it, and [`padding`] for `data_len`.
pub fn data_batch(out: &mut Vec<u8>, head: &DataBatchHead, infos_len: usize, data_len: usize) {
    let length = DATA_BATCH_HEAD_LEN - SUBMESSAGE_HEADER_LEN + infos_len + ENCAPSULATION_LEN + data_len;
    Fields::<DATA_BATCH_HEAD_LEN>::new()
        .bytes(submessage_header(id::DATA_BATCH, 0, length))
        .u16(0)
        .u16(DATA_BATCH_TO_INLINE_QOS as u16)
        .entities(head.reader, head.writer)
        .number(head.batch)
        .number(head.first)
        .u32(head.count - 1)
        .u32(head.count)
        .u32(infos_len as u32)
        .append(out);
}

/// Appends the description of one sample of a batch with `data_len` bytes; [`BATCH_SAMPLE_LEN`] bytes.
pub fn batch_sample(out: &mut Vec<u8>, timestamp: Timestamp, data_len: usize) {
    let mut info = [0; BATCH_SAMPLE_LEN];
    // Always big endian, unlike everything else.
    info[..2].copy_from_slice(&(BATCH_SAMPLE_TIMESTAMP | BATCH_SAMPLE_DATA).to_be_bytes());
    info[4..8].copy_from_slice(&(data_len as u32).to_le_bytes());
    info[8..12].copy_from_slice(&timestamp.seconds.to_le_bytes());
    info[12..].copy_from_slice(&timestamp.fraction.to_le_bytes());
    out.extend_from_slice(&info);
}

/// Appends a NACK_FRAG; at most [`NACK_FRAG_MAX_LEN`] bytes.
pub fn nack_frag(out: &mut Vec<u8>, nack: &NackFrag) {
    fragments(out, (id::NACK_FRAG, 0, COUNT_LEN), (nack.reader, nack.writer), nack.sequence, &nack.state);
    u32(out, nack.count);
}

/// Appends a LOST_FRAG; at most [`NACK_FRAG_MAX_LEN`] bytes.
pub fn lost_frag(out: &mut Vec<u8>, lost: &LostFrag) {
    let flags = if lost.rest { flag::REST } else { 0 };
    fragments(out, (id::LOST_FRAG, flags, COUNT_LEN), (lost.reader, lost.writer), lost.sequence, &lost.state);
    u32(out, lost.fragment_size.into());
}

/// Appends a submessage about fragments of a sample up to what is behind their set, so many bytes.
fn fragments(
    out: &mut Vec<u8>,
    (id, flags, behind): (u8, u8, usize),
    (reader, writer): (EntityId, EntityId),
    sequence: SequenceNumber,
    state: &FragmentSet,
) {
    const HEAD_LEN: usize = NACK_FRAG_MIN_LEN - COUNT_LEN;
    let words = state.words();
    Fields::<HEAD_LEN>::new()
        .bytes(submessage_header(id, flags, HEAD_LEN - SUBMESSAGE_HEADER_LEN + 4 * words.len() + behind))
        .entities(reader, writer)
        .number(sequence)
        .u32(state.base())
        .u32(state.bits())
        .append(out);
    words.iter().for_each(|word| u32(out, *word));
}

/// Appends a LOST; less than [`ACKNACK_MAX_LEN`] bytes.
pub fn lost(out: &mut Vec<u8>, lost: &Lost) {
    numbers(out, (id::LOST, 0, 0), (lost.reader, lost.writer), &lost.numbers);
}

/// Appends an ECHO; [`ECHO_LEN`] bytes.
pub fn echo(out: &mut Vec<u8>, echo: &Echo) {
    let (flags, count) = match echo.asked_by {
        AskedBy::Heartbeat(count) => (0, count),
        AskedBy::HeartbeatFrag(count) => (flag::PARTS, count),
    };
    Fields::<ECHO_LEN>::submessage(id::ECHO, flags)
        .entities(echo.reader, echo.writer)
        .u32(count)
        .u32(echo.held_micros)
        .append(out);
}

/// Appends a GAP; [`GAP_MIN_LEN`] to [`GAP_MAX_LEN`] bytes.
pub fn gap(out: &mut Vec<u8>, gap: &Gap) {
    let words = gap.list.words();
    Fields::<GAP_MIN_LEN>::new()
        .bytes(submessage_header(id::GAP, 0, GAP_MIN_LEN - SUBMESSAGE_HEADER_LEN + 4 * words.len()))
        .entities(gap.reader, gap.writer)
        .number(gap.start)
        .number(gap.list.base())
        .u32(gap.list.bits())
        .append(out);
    words.iter().for_each(|word| u32(out, *word));
}

/// Appends an ACKNACK or ACKNACK_BATCH.
fn acknowledgement(
    out: &mut Vec<u8>,
    id: u8,
    flags: u8,
    entities: (EntityId, EntityId),
    state: &SequenceSet,
    count: u32,
) {
    numbers(out, (id, flags, COUNT_LEN), entities, state);
    u32(out, count);
}

/// Appends a submessage about numbers up to what is behind their set, so many bytes.
fn numbers(
    out: &mut Vec<u8>,
    (id, flags, behind): (u8, u8, usize),
    (reader, writer): (EntityId, EntityId),
    state: &SequenceSet,
) {
    const HEAD_LEN: usize = ACKNACK_MIN_LEN - COUNT_LEN;
    let words = state.words();
    Fields::<HEAD_LEN>::new()
        .bytes(submessage_header(id, flags, HEAD_LEN - SUBMESSAGE_HEADER_LEN + 4 * words.len() + behind))
        .entities(reader, writer)
        .number(state.base())
        .u32(state.bits())
        .append(out);
    words.iter().for_each(|word| u32(out, *word));
}

/// Length 0 means "to the end of the message", the only way to tell a length above 16 bits (RTPS 2.5 §9.4.5.1.3).
#[inline]
fn submessage_header(id: u8, flags: u8, length: usize) -> [u8; SUBMESSAGE_HEADER_LEN] {
    let [low, high] = u16::try_from(length.next_multiple_of(4)).unwrap_or(0).to_le_bytes();
    [id, flags | flag::LITTLE_ENDIAN, low, high]
}

fn inline_qos_flag(inline_qos: &[u8]) -> u8 {
    if inline_qos.is_empty() { 0 } else { flag::INLINE_QOS }
}

fn u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// N bytes of fixed layout, filled in field by field and appended at once.
struct Fields<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Fields<N> {
    #[inline]
    fn new() -> Fields<N> {
        Fields { bytes: [0; N], len: 0 }
    }

    /// Begins with the header of a submessage that is N bytes long.
    #[inline]
    fn submessage(id: u8, flags: u8) -> Fields<N> {
        Fields::new().bytes(submessage_header(id, flags, N - SUBMESSAGE_HEADER_LEN))
    }

    #[inline]
    fn bytes<const M: usize>(mut self, field: [u8; M]) -> Fields<N> {
        if let Some(place) = self.bytes[self.len..].first_chunk_mut() {
            *place = field;
            self.len += M;
        }
        self
    }

    #[inline]
    fn u16(self, value: u16) -> Fields<N> {
        self.bytes(value.to_le_bytes())
    }

    #[inline]
    fn u32(self, value: u32) -> Fields<N> {
        self.bytes(value.to_le_bytes())
    }

    #[inline]
    fn entities(self, reader: EntityId, writer: EntityId) -> Fields<N> {
        self.bytes(reader.0).bytes(writer.0)
    }

    #[inline]
    fn number(self, number: SequenceNumber) -> Fields<N> {
        self.u32((number.0 >> 32) as u32).u32(number.0 as u32)
    }

    #[inline]
    fn append(self, out: &mut Vec<u8>) {
        debug_assert_eq!(self.len, N, "all fields are there");
        out.extend_from_slice(&self.bytes);
    }
}
