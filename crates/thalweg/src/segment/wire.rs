//! The sample types of segments, and their bytes without a copy in between.

use thalweg_cdr as cdr;
use thalweg_derive::Topic;
use thalweg_rtps::qos::Representation;

use crate::TopicType;

/// One part of a payload, on a topic without instances.
#[derive(Topic, Clone, Debug, Default, PartialEq, Eq)]
#[topic(crate = "thalweg_cdr", name = "thalweg::Segment")]
pub struct Segment {
    /// The sender: unique among all senders of the topic.
    pub source: [u8; 16],
    /// Numbers the payloads of a source.
    pub transfer: u64,
    /// Which segment, from 0.
    pub index: u32,
    /// Number of segments of the payload, at least 1.
    pub count: u32,
    /// Size of the whole payload.
    pub total_bytes: u64,
    /// This segment's part.
    pub bytes: Vec<u8>,
}

/// As [`Segment`], on a topic with an instance for each source: KEEP_LAST counts for each of them, and readers learn when one is
/// gone.
#[derive(Topic, Clone, Debug, Default, PartialEq, Eq)]
#[topic(crate = "thalweg_cdr", name = "thalweg::KeyedSegment")]
pub struct KeyedSegment {
    /// The sender: unique among all senders of the topic.
    #[topic(key)]
    pub source: [u8; 16],
    /// Numbers the payloads of a source.
    pub transfer: u64,
    /// Which segment, from 0.
    pub index: u32,
    /// Number of segments of the payload, at least 1.
    pub count: u32,
    /// Size of the whole payload.
    pub total_bytes: u64,
    /// This segment's part.
    pub bytes: Vec<u8>,
}

/// [`Segment`] and [`KeyedSegment`]: types whose samples [`SegmentWriter`](super::SegmentWriter) and
/// [`SegmentReader`](super::SegmentReader) exchange.
pub trait SegmentType: TopicType + sealed::Sealed {}

impl SegmentType for Segment {}
impl SegmentType for KeyedSegment {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Segment {}
    impl Sealed for super::KeyedSegment {}
}

/// The members before a segment's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub source: [u8; 16],
    pub transfer: u64,
    pub index: u32,
    pub count: u32,
    pub total_bytes: u64,
}

/// A received segment.
#[derive(Debug)]
pub(super) struct Part<'a> {
    pub head: Head,
    pub bytes: &'a [u8],
}

/// Bytes in front of a segment's part: encapsulation header, members, length of the sequence.
pub(super) const HEAD_BYTES: usize = 4 + 16 + 8 + 4 + 4 + 8 + 4;

/// The largest part that a sequence's length can tell with room for what stands in front.
pub(super) const PART_BYTES_MAX: usize = (u32::MAX as usize) - HEAD_BYTES;

/// Appends a segment as [`cdr::encode`] would, straight from the payload that it is a part of.
pub(super) fn encode(head: &Head, part: &[u8], representation: Representation, out: &mut Vec<u8>) {
    let start = out.len();
    let xcdr2 = representation == Representation::Xcdr2;
    let representation = if xcdr2 { cdr::Representation::Xcdr2 } else { cdr::Representation::Xcdr1 };
    let id = cdr::Encapsulation::new(representation, cdr::Extensibility::Final, cdr::ByteOrder::Little).id();
    out.extend_from_slice(&id.to_be_bytes());
    let padding = if xcdr2 { part.len().wrapping_neg() & 3 } else { 0 };
    out.extend_from_slice(&[0, padding as u8]);
    out.extend_from_slice(&head.source);
    out.extend_from_slice(&head.transfer.to_le_bytes());
    out.extend_from_slice(&head.index.to_le_bytes());
    out.extend_from_slice(&head.count.to_le_bytes());
    out.extend_from_slice(&head.total_bytes.to_le_bytes());
    // The caller keeps parts below PART_BYTES_MAX.
    out.extend_from_slice(&(part.len() as u32).to_le_bytes());
    debug_assert_eq!(out.len() - start, HEAD_BYTES);
    out.extend_from_slice(part);
    out.extend_from_slice(&[0; 3][..padding]);
}

/// Reads a segment in place; `None` for bytes that are none.
pub(super) fn decode(payload: &[u8]) -> Option<Part<'_>> {
    let (encapsulation, body) = payload.split_first_chunk::<4>()?;
    let encapsulation = cdr::Encapsulation::from_id(u16::from_be_bytes([encapsulation[0], encapsulation[1]]))?;
    let known = |representation, byte_order| {
        encapsulation == cdr::Encapsulation::new(representation, cdr::Extensibility::Final, byte_order)
    };
    use cdr::{ByteOrder, Representation};
    let little = known(Representation::Xcdr1, ByteOrder::Little) || known(Representation::Xcdr2, ByteOrder::Little);
    if !little && !known(Representation::Xcdr1, ByteOrder::Big) && !known(Representation::Xcdr2, ByteOrder::Big) {
        return None;
    }
    let u32_of = |bytes: &[u8; 4]| if little { u32::from_le_bytes(*bytes) } else { u32::from_be_bytes(*bytes) };
    let u64_of = |bytes: &[u8; 8]| if little { u64::from_le_bytes(*bytes) } else { u64::from_be_bytes(*bytes) };
    let (source, body) = body.split_first_chunk::<16>()?;
    let (transfer, body) = body.split_first_chunk::<8>()?;
    let (index, body) = body.split_first_chunk::<4>()?;
    let (count, body) = body.split_first_chunk::<4>()?;
    let (total_bytes, body) = body.split_first_chunk::<8>()?;
    let (length, body) = body.split_first_chunk::<4>()?;
    let head = Head {
        source: *source,
        transfer: u64_of(transfer),
        index: u32_of(index),
        count: u32_of(count),
        total_bytes: u64_of(total_bytes),
    };
    let bytes = body.get(..u32_of(length) as usize)?;
    Some(Part { head, bytes })
}
