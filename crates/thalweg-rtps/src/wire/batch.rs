//! Batches: DATA_BATCH and what acknowledges it. RTI's extension of RTPS, spoken between participants that announce it.

use std::ops::Range;

use super::cursor::Cursor;
use super::parameters::ParameterList;
use super::{Endianness, Heartbeat, SequenceSet, WireError};
use crate::time::Timestamp;
use crate::types::{EntityId, SequenceNumber};

/// Several samples of one writer in one submessage.
#[derive(Clone, Debug, PartialEq)]
pub struct DataBatch<'a> {
    /// The reader it is for; [`EntityId::UNKNOWN`] means every matched one.
    pub reader: EntityId,
    /// The writer it comes from.
    pub writer: EntityId,
    /// Number of the batch, at least 1; each writer counts its own.
    pub batch: SequenceNumber,
    /// Number of its first sample, at least 1.
    pub first: SequenceNumber,
    /// Number of its last sample.
    pub last: SequenceNumber,
    /// Number of listed samples, at least 1. Numbers up to `last` that are not listed will never come.
    pub count: u32,
    /// Inline QoS common to the samples, if sent along; a single sample may have its own.
    pub inline_qos: Option<ParameterList<'a>>,
    /// Encapsulation header that all samples have in common.
    pub encapsulation: [u8; 4],
    /// The place of the sample list and of the samples.
    pub samples: BatchSamples<'a>,
}

/// The samples of a [`DataBatch`], read one by one from the datagram. They were checked when the batch was parsed: every range
/// lies within the datagram, the numbers ascend and do not exceed the last one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchSamples<'a> {
    /// The SampleInfo list, as far as it was not read.
    infos: &'a [u8],
    /// Offset of the rest of the list in the datagram.
    infos_at: usize,
    endianness: Endianness,
    /// Offset of the next sample's bytes in the datagram.
    data_at: usize,
    /// Number of the first sample of the batch.
    first: SequenceNumber,
    /// Distance of the next sample's number from the first, unless it has its own.
    offset: u32,
}

/// One sample of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchSample<'a> {
    /// Its number.
    pub sequence: SequenceNumber,
    /// Source timestamp.
    pub timestamp: Option<Timestamp>,
    /// Key hash, status info and the like, if sent along.
    pub inline_qos: Option<ParameterList<'a>>,
    /// True when the bytes are only the key of an instance, or nothing.
    pub key: bool,
    /// False for a number whose sample is not relevant any more.
    pub valid: bool,
    /// Its bytes in the whole datagram, without the encapsulation header.
    pub bytes: Range<usize>,
}

/// Batches and samples that a writer of batches holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatBatch {
    /// Lowest batch that the writer still holds.
    pub first_batch: SequenceNumber,
    /// Highest batch that it ever sent, at least `first_batch - 1`.
    pub last_batch: SequenceNumber,
    /// The same range in samples; the reader, and the flags.
    pub heartbeat: Heartbeat,
}

/// Which batches a reader has and misses: everything below the base has arrived, the members are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckNackBatch {
    /// The reader it comes from.
    pub reader: EntityId,
    /// The writer it is for.
    pub writer: EntityId,
    /// Batches, not samples.
    pub state: SequenceSet,
    /// Grows with each new ACKNACK or ACKNACK_BATCH of this reader.
    pub count: u32,
    /// True when the writer need not answer with a heartbeat.
    pub is_final: bool,
}

impl<'a> DataBatch<'a> {
    /// Reads the body of a DATA_BATCH that ends at `end` of the datagram, and checks the whole sample list.
    pub(super) fn parse(mut cursor: Cursor<'a>, has_inline_qos: bool, end: usize) -> Result<DataBatch<'a>, WireError> {
        let skipped = skip_to_inline_qos(&mut cursor)?;
        let reader = cursor.entity_id("reader id")?;
        let writer = cursor.entity_id("writer id")?;
        let batch = cursor.positive_sequence_number()?;
        let first = cursor.positive_sequence_number()?;
        let last = first + i64::from(cursor.u32("offset of the last sample")?);
        let count_error = cursor.error("sample count of at least 1, as many as are listed");
        let count = cursor.u32("sample count")?;
        cursor.bytes(skipped, "inline QoS")?;
        let inline_qos = match has_inline_qos {
            true => Some(ParameterList::split(&mut cursor)?),
            false => None,
        };
        let list_bytes = cursor.u32("length of the sample list")? as usize;
        let (infos_at, endianness) = (cursor.offset(), cursor.endianness());
        let infos = cursor.bytes(list_bytes, "sample list within the submessage")?;
        let encapsulation = cursor.array("encapsulation header")?;
        let data_at = cursor.offset();
        let samples = BatchSamples { infos, infos_at, endianness, data_at, first, offset: 0 };
        if samples.check(last, end)? != count || count == 0 {
            return Err(count_error);
        }
        Ok(DataBatch { reader, writer, batch, first, last, count, inline_qos, encapsulation, samples })
    }
}

/// Reads extraFlags and octetsToInlineQos; returns how many unknown bytes follow the known fields.
fn skip_to_inline_qos(cursor: &mut Cursor<'_>) -> Result<usize, WireError> {
    cursor.u16("extra flags")?;
    let error = cursor.error("octetsToInlineQos behind the known fields and within the submessage");
    let octets = usize::from(cursor.u16("octetsToInlineQos")?);
    if octets > cursor.remaining() {
        return Err(error);
    }
    octets.checked_sub(TO_INLINE_QOS).ok_or(error)
}

impl<'a> BatchSamples<'a> {
    /// Walks the list: numbers up to `last`, bytes up to `end` of the datagram. Returns how many samples there are.
    fn check(mut self, last: SequenceNumber, end: usize) -> Result<u32, WireError> {
        let mut count = 0;
        let mut least = self.first;
        while !self.infos.is_empty() {
            let at = self.infos_at;
            let sample = self.advance()?;
            if sample.sequence < least || sample.sequence > last {
                return Err(WireError { offset: at, expected: "ascending sample numbers up to the last one" });
            }
            if sample.bytes.end > end {
                return Err(WireError { offset: at, expected: "sample within the submessage" });
            }
            least = sample.sequence.next();
            count += 1;
        }
        Ok(count)
    }

    /// Reads the description of the next sample; on an error the rest cannot be read.
    fn advance(&mut self) -> Result<BatchSample<'a>, WireError> {
        match self.infos {
            // Thalweg writes this, and RTI usually does.
            [0, PLAIN, _, _, rest @ ..] if let Some((fields, rest)) = rest.split_first_chunk::<12>() => {
                let [length, seconds, fraction] = words(fields, self.endianness);
                self.infos = rest;
                self.infos_at += 16;
                let timestamp = Timestamp { seconds, fraction };
                Ok(self.sample(u16::from(PLAIN), length, Some(timestamp), None))
            }
            _ => self.advance_any(),
        }
    }

    fn advance_any(&mut self) -> Result<BatchSample<'a>, WireError> {
        let mut cursor = Cursor::new(self.infos, self.infos_at, self.endianness);
        let flags_error = cursor.error("flag D or K of a sample, not both");
        // Always big endian, unlike everything else.
        let flags = u16::from_be_bytes(cursor.array("sample flags")?);
        if flags & info::DATA != 0 && flags & info::KEY != 0 {
            return Err(flags_error);
        }
        let octets = usize::from(cursor.u16("octetsToInlineQos")?);
        let fields_at = cursor.position();
        let length = cursor.u32("length of the sample")?;
        let timestamp = match flags & info::TIMESTAMP != 0 {
            true => Some(Timestamp { seconds: cursor.u32("seconds")?, fraction: cursor.u32("fraction of a second")? }),
            false => None,
        };
        if flags & info::OFFSET != 0 {
            self.offset = cursor.u32("offset of the sample number")?;
        }
        let inline_qos = match flags & info::INLINE_QOS != 0 {
            true => {
                // Later versions may put more fields in front of it; some senders leave the number zero.
                let known = cursor.position() - fields_at;
                cursor.bytes(octets.saturating_sub(known), "inline QoS")?;
                Some(ParameterList::split(&mut cursor)?)
            }
            false => None,
        };
        self.infos = cursor.rest();
        self.infos_at = cursor.offset();
        Ok(self.sample(flags, length, timestamp, inline_qos))
    }

    fn sample(
        &mut self,
        flags: u16,
        length: u32,
        timestamp: Option<Timestamp>,
        inline_qos: Option<ParameterList<'a>>,
    ) -> BatchSample<'a> {
        let sequence = self.first + i64::from(self.offset);
        self.offset = self.offset.saturating_add(1);
        let start = self.data_at;
        self.data_at = start.saturating_add(length as usize);
        BatchSample {
            sequence,
            timestamp: timestamp.filter(|timestamp| *timestamp != Timestamp::INVALID),
            inline_qos,
            key: flags & info::DATA == 0,
            valid: flags & info::INVALID == 0,
            bytes: start..self.data_at,
        }
    }
}

impl<'a> Iterator for BatchSamples<'a> {
    type Item = BatchSample<'a>;

    fn next(&mut self) -> Option<BatchSample<'a>> {
        if self.infos.is_empty() {
            return None;
        }
        self.advance().ok()
    }
}

/// Three neighbouring integers.
fn words(bytes: &[u8; 12], endianness: Endianness) -> [u32; 3] {
    let word = |at: usize| {
        let bytes = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        match endianness {
            Endianness::Big => u32::from_be_bytes(bytes),
            Endianness::Little => u32::from_le_bytes(bytes),
        }
    };
    [word(0), word(4), word(8)]
}

impl HeartbeatBatch {
    /// Reads the body of a HEARTBEAT_BATCH with the flags F and L.
    pub(super) fn parse(mut cursor: Cursor<'_>, is_final: bool, liveliness: bool) -> Result<HeartbeatBatch, WireError> {
        let reader = cursor.entity_id("reader id")?;
        let writer = cursor.entity_id("writer id")?;
        let (first_batch, last_batch) = range(&mut cursor)?;
        let (first, last) = range(&mut cursor)?;
        let count = cursor.u32("heartbeat count")?;
        let heartbeat = Heartbeat { reader, writer, first, last, count, is_final, liveliness };
        Ok(HeartbeatBatch { first_batch, last_batch, heartbeat })
    }
}

/// The lowest number and the highest one, which is at least the lowest minus 1.
fn range(cursor: &mut Cursor<'_>) -> Result<(SequenceNumber, SequenceNumber), WireError> {
    let first = cursor.positive_sequence_number()?;
    let error = cursor.error("last number of at least the first minus 1");
    let last = cursor.sequence_number()?;
    if last < first.previous() { Err(error) } else { Ok((first, last)) }
}

impl AckNackBatch {
    /// Reads the body of an ACKNACK_BATCH, which is that of an ACKNACK.
    pub(super) fn parse(mut cursor: Cursor<'_>, is_final: bool) -> Result<AckNackBatch, WireError> {
        let reader = cursor.entity_id("reader id")?;
        let writer = cursor.entity_id("writer id")?;
        let state = SequenceSet::parse(&mut cursor)?;
        let count = cursor.u32("acknack count")?;
        Ok(AckNackBatch { reader, writer, state, count, is_final })
    }
}

/// Flags of one sample of a batch.
mod info {
    /// T: a source timestamp follows.
    pub const TIMESTAMP: u16 = 0x0001;
    /// Q: inline QoS follows.
    pub const INLINE_QOS: u16 = 0x0002;
    /// O: its number follows as an offset from the batch's first; otherwise it is the one after the previous sample's.
    pub const OFFSET: u16 = 0x0004;
    /// D: the bytes are a sample.
    pub const DATA: u16 = 0x0008;
    /// I: the number is not relevant any more.
    pub const INVALID: u16 = 0x0010;
    /// K: the bytes are a key.
    pub const KEY: u16 = 0x0020;
}

/// Flags T and D, and nothing else.
const PLAIN: u8 = (info::TIMESTAMP | info::DATA) as u8;
/// octetsToInlineQos of a DATA_BATCH whose fields are the known ones.
const TO_INLINE_QOS: usize = 32;
