//! Appending of headers and submessages to a buffer, little endian.
//!
//! Every submessage ends on a multiple of four bytes from the start of the message, if it began on one.

use super::batch::{AckNackBatch, HeartbeatBatch};
use super::message::{DATA_FRAG_TO_INLINE_QOS, DATA_TO_INLINE_QOS, SUBMESSAGE_HEADER_LEN};
use super::{AckNack, FragmentSet, Gap, Heartbeat, HeartbeatFrag, MAGIC, NackFrag, SequenceSet, flag, id};
use crate::time::Timestamp;
use crate::types::{EntityId, GuidPrefix, ProtocolVersion, SequenceNumber, VendorId};

/// Bytes of a message header.
pub const HEADER_LEN: usize = 20;
/// Bytes of an INFO_DST.
pub const INFO_DST_LEN: usize = 16;
/// Bytes of an INFO_TS that carries a time.
pub const INFO_TS_LEN: usize = 12;
/// Bytes of a DATA in front of its inline QoS and payload.
pub const DATA_HEAD_LEN: usize = 24;
/// Bytes of a DATA_FRAG in front of its inline QoS and payload.
pub const DATA_FRAG_HEAD_LEN: usize = 36;
/// Bytes of a HEARTBEAT.
pub const HEARTBEAT_LEN: usize = 32;
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
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[ProtocolVersion::V2_5.major, ProtocolVersion::V2_5.minor]);
    out.extend_from_slice(&VendorId::THALWEG.0);
    out.extend_from_slice(&prefix.0);
}

/// Appends an INFO_DST: what follows is for the participant `prefix`, or for all when it is unknown.
pub fn info_destination(out: &mut Vec<u8>, prefix: GuidPrefix) {
    submessage(out, id::INFO_DST, 0, |body| body.extend_from_slice(&prefix.0));
}

/// Appends an INFO_TS: the source time of the samples that follow; `None` takes it back (and is only 4 bytes long).
pub fn info_timestamp(out: &mut Vec<u8>, timestamp: Option<Timestamp>) {
    match timestamp {
        Some(Timestamp { seconds, fraction }) => submessage(out, id::INFO_TS, 0, |body| {
            u32(body, seconds);
            u32(body, fraction);
        }),
        None => submessage(out, id::INFO_TS, flag::INVALIDATE, |_| ()),
    }
}

/// What the payload of a DATA is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataKind {
    /// A whole sample.
    Data,
    /// Only the key of an instance.
    Key,
    /// There is no payload.
    None,
}

/// Everything of a DATA but its payload.
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
    /// What the payload is.
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
    submessage_header(out, id::DATA, kind_flag | inline_qos_flag(head.inline_qos), length);
    u16(out, 0);
    u16(out, DATA_TO_INLINE_QOS as u16);
    entities(out, head.reader, head.writer);
    sequence_number(out, head.sequence);
    out.extend_from_slice(head.inline_qos);
}

/// Everything of a DATA_FRAG but its bytes.
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
    /// How many fragments follow, at least 1.
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
    submessage_header(out, id::DATA_FRAG, key_flag | inline_qos_flag(head.inline_qos), length);
    u16(out, 0);
    u16(out, DATA_FRAG_TO_INLINE_QOS as u16);
    entities(out, head.reader, head.writer);
    sequence_number(out, head.sequence);
    u32(out, head.first_fragment);
    u16(out, head.fragments);
    u16(out, head.fragment_size);
    u32(out, head.sample_size);
    out.extend_from_slice(head.inline_qos);
}

/// Appends the 0 to 3 zero bytes that follow a payload of `payload_len` bytes.
pub fn padding(out: &mut Vec<u8>, payload_len: usize) {
    let missing = payload_len.next_multiple_of(4) - payload_len;
    out.extend_from_slice(&[0; 3][..missing]);
}

/// Appends a HEARTBEAT; [`HEARTBEAT_LEN`] bytes.
pub fn heartbeat(out: &mut Vec<u8>, heartbeat: &Heartbeat) {
    let final_flag = if heartbeat.is_final { flag::FINAL } else { 0 };
    let liveliness_flag = if heartbeat.liveliness { flag::LIVELINESS } else { 0 };
    submessage(out, id::HEARTBEAT, final_flag | liveliness_flag, |body| {
        entities(body, heartbeat.reader, heartbeat.writer);
        sequence_number(body, heartbeat.first);
        sequence_number(body, heartbeat.last);
        u32(body, heartbeat.count);
    });
}

/// Appends a HEARTBEAT_FRAG; [`HEARTBEAT_FRAG_LEN`] bytes.
pub fn heartbeat_frag(out: &mut Vec<u8>, heartbeat: &HeartbeatFrag) {
    submessage(out, id::HEARTBEAT_FRAG, 0, |body| {
        entities(body, heartbeat.reader, heartbeat.writer);
        sequence_number(body, heartbeat.sequence);
        u32(body, heartbeat.last_fragment);
        u32(body, heartbeat.count);
    });
}

/// Appends an ACKNACK; [`ACKNACK_MIN_LEN`] to [`ACKNACK_MAX_LEN`] bytes.
pub fn acknack(out: &mut Vec<u8>, acknack: &AckNack) {
    let flags = if acknack.is_final { flag::FINAL } else { 0 };
    submessage(out, id::ACKNACK, flags, |body| {
        entities(body, acknack.reader, acknack.writer);
        sequence_set(body, &acknack.state);
        u32(body, acknack.count);
    });
}

/// Appends a HEARTBEAT_BATCH; [`HEARTBEAT_BATCH_LEN`] bytes.
pub fn heartbeat_batch(out: &mut Vec<u8>, batch: &HeartbeatBatch) {
    let heartbeat = &batch.heartbeat;
    let flags = if heartbeat.is_final { flag::FINAL } else { 0 };
    submessage(out, id::HEARTBEAT_BATCH, flags, |body| {
        entities(body, heartbeat.reader, heartbeat.writer);
        for number in [batch.first_batch, batch.last_batch, heartbeat.first, heartbeat.last] {
            sequence_number(body, number);
        }
        u32(body, heartbeat.count);
    });
}

/// Appends an ACKNACK_BATCH; as long as an ACKNACK.
pub fn acknack_batch(out: &mut Vec<u8>, acknack: &AckNackBatch) {
    let flags = if acknack.is_final { flag::FINAL } else { 0 };
    submessage(out, id::ACKNACK_BATCH, flags, |body| {
        entities(body, acknack.reader, acknack.writer);
        sequence_set(body, &acknack.state);
        u32(body, acknack.count);
    });
}

/// Everything of a DATA_BATCH but its sample list and samples.
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
    /// How many samples follow, numbered consecutively; at least 1.
    pub count: u32,
}

/// Appends a DATA_BATCH up to where its sample list starts. The caller appends `infos_len` bytes of [`batch_sample`]s, the
/// encapsulation header that all samples share, the samples' `data_len` bytes without it, and [`padding`] for `data_len`.
pub fn data_batch(out: &mut Vec<u8>, head: &DataBatchHead, infos_len: usize, data_len: usize) {
    let length = DATA_BATCH_HEAD_LEN - SUBMESSAGE_HEADER_LEN + infos_len + ENCAPSULATION_LEN + data_len;
    submessage_header(out, id::DATA_BATCH, 0, length);
    u16(out, 0);
    u16(out, DATA_BATCH_TO_INLINE_QOS as u16);
    entities(out, head.reader, head.writer);
    sequence_number(out, head.batch);
    sequence_number(out, head.first);
    u32(out, head.count - 1);
    u32(out, head.count);
    u32(out, infos_len as u32);
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
    submessage(out, id::NACK_FRAG, 0, |body| {
        entities(body, nack.reader, nack.writer);
        sequence_number(body, nack.sequence);
        fragment_set(body, &nack.state);
        u32(body, nack.count);
    });
}

/// Appends a GAP; [`GAP_MIN_LEN`] to [`GAP_MAX_LEN`] bytes.
pub fn gap(out: &mut Vec<u8>, gap: &Gap) {
    submessage(out, id::GAP, 0, |body| {
        entities(body, gap.reader, gap.writer);
        sequence_number(body, gap.start);
        sequence_set(body, &gap.list);
    });
}

/// Appends a submessage whose body is what `fill` writes, and fixes its length.
fn submessage(out: &mut Vec<u8>, id: u8, flags: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    submessage_header(out, id, flags, 0);
    let start = out.len();
    fill(out);
    // Every body that comes through here is of a fixed size or a set of at most 256 bits.
    let length = (out.len() - start) as u16;
    out[start - 2..start].copy_from_slice(&length.to_le_bytes());
}

/// Length 0 means "to the end of the message", the only way to tell a length above 16 bits (RTPS 2.5 §9.4.5.1.3).
fn submessage_header(out: &mut Vec<u8>, id: u8, flags: u8, length: usize) {
    let octets_to_next = u16::try_from(length.next_multiple_of(4)).unwrap_or(0);
    out.extend_from_slice(&[id, flags | flag::LITTLE_ENDIAN]);
    u16(out, octets_to_next);
}

fn inline_qos_flag(inline_qos: &[u8]) -> u8 {
    if inline_qos.is_empty() { 0 } else { flag::INLINE_QOS }
}

fn entities(out: &mut Vec<u8>, reader: EntityId, writer: EntityId) {
    out.extend_from_slice(&reader.0);
    out.extend_from_slice(&writer.0);
}

fn sequence_number(out: &mut Vec<u8>, number: SequenceNumber) {
    u32(out, (number.0 >> 32) as u32);
    u32(out, number.0 as u32);
}

fn sequence_set(out: &mut Vec<u8>, set: &SequenceSet) {
    sequence_number(out, set.base());
    bitmap(out, set.bits(), set.words());
}

fn fragment_set(out: &mut Vec<u8>, set: &FragmentSet) {
    u32(out, set.base());
    bitmap(out, set.bits(), set.words());
}

fn bitmap(out: &mut Vec<u8>, bits: u32, words: &[u32]) {
    u32(out, bits);
    words.iter().for_each(|word| u32(out, *word));
}

fn u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}
