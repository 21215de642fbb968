//! Records as they stand in a file, before the format's parser sees them.

use mcap::McapError;
use mcap::records::{Record, op};

use crate::error::RecordingError;
use crate::read::InstanceEnd;

/// What a record is to a reader of recordings.
pub enum Found {
    /// Of no use: nothing of it is believed.
    Nothing,
    /// A chunk.
    Chunk,
    /// How many channels the file has.
    ChannelCount(usize),
    Record(Record<'static>),
    InstanceEnd(EndRecord),
}

/// The end of an instance.
pub struct EndRecord {
    pub end: InstanceEnd,
    pub log_time_ns: u64,
    pub publish_time_ns: u64,
}

/// Parses a record.
///
/// # Errors
/// It is broken.
pub fn parse(opcode: u8, record: &[u8]) -> Result<Found, RecordingError> {
    match opcode {
        op::CHUNK => return Ok(Found::Chunk),
        op::STATISTICS => return Ok(channel_count(record).map_or(Found::Nothing, Found::ChannelCount)),
        op::SCHEMA | op::CHANNEL | op::MESSAGE | op::METADATA => {}
        PRIVATE => return Ok(end_record(record)?.map_or(Found::Nothing, Found::InstanceEnd)),
        _ => return Ok(Found::Nothing),
    }
    if !has_its_texts(opcode, record) {
        return Err(RecordingError::new("its content is broken: a text is longer than its record"));
    }
    Ok(Found::Record(mcap::parse_record(opcode, record).map_err(broken)?.into_owned()))
}

/// The private record of the end of an instance, whose JSON this is; see [`write_end`](crate::files::RecordingFiles::write_end).
pub fn instance_end(log_time_ns: u64, publish_time_ns: u64, json: &[u8]) -> Vec<u8> {
    let name_bytes = (INSTANCE_END.len() as u32).to_le_bytes();
    let (log_time, publish_time) = (log_time_ns.to_le_bytes(), publish_time_ns.to_le_bytes());
    [&name_bytes[..], INSTANCE_END.as_bytes(), &log_time, &publish_time, json].concat()
}

/// The end of an instance in a private record; `None` in one of another program.
fn end_record(record: &[u8]) -> Result<Option<EndRecord>, RecordingError> {
    let rest = after_text(record).filter(|rest| record[4..record.len() - rest.len()] == *INSTANCE_END.as_bytes());
    let times = rest.and_then(|rest| {
        let (log_time, rest) = rest.split_first_chunk()?;
        let (publish_time, json) = rest.split_first_chunk()?;
        Some((u64::from_le_bytes(*log_time), u64::from_le_bytes(*publish_time), json))
    });
    let Some((log_time_ns, publish_time_ns, json)) = times else { return Ok(None) };
    Ok(Some(EndRecord { end: read_end(json)?, log_time_ns, publish_time_ns }))
}

/// Reads the JSON of an end of an instance.
///
/// # Errors
/// It is not understood.
pub fn read_end(json: &[u8]) -> Result<InstanceEnd, RecordingError> {
    serde_json::from_slice(json).map_err(|error| RecordingError::new(format!("an end of an instance: {error}")))
}

/// What the format's parser does not understand.
pub fn broken(error: McapError) -> RecordingError {
    RecordingError::new(format!("its content is broken: {error}"))
}

/// Whether the records of a chunk that is not packed end within it; true for one that is packed, or has no whole head.
pub fn has_its_records(chunk: &[u8]) -> bool {
    // Behind the times, the size and the checksum of its records.
    let Some((name_bytes, rest)) = chunk.get(28..).and_then(|rest| rest.split_first_chunk()) else { return true };
    if u32::from_le_bytes(*name_bytes) > 0 {
        return true;
    }
    let Some((bytes, rest)) = rest.split_first_chunk() else { return true };
    let Some(mut records) = usize::try_from(u64::from_le_bytes(*bytes)).ok().and_then(|bytes| rest.get(..bytes)) else {
        return true;
    };
    while let Some((_, rest)) = records.split_first() {
        let after = rest.split_first_chunk().and_then(|(length, rest)| {
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            rest.get(length..)
        });
        let Some(after) = after else { return false };
        records = after;
    }
    true
}

/// Whether the texts of a record end within it: the parser takes memory for what they say.
fn has_its_texts(opcode: u8, record: &[u8]) -> bool {
    let end = match opcode {
        op::SCHEMA => record.get(2..).and_then(after_text).and_then(after_text).and_then(after_text),
        op::CHANNEL => record.get(4..).and_then(after_text).and_then(after_text).and_then(after_map),
        op::METADATA => after_text(record).and_then(after_map),
        _ => Some(record),
    };
    end.is_some()
}

/// The number of channels in a record of statistics.
fn channel_count(statistics: &[u8]) -> Option<usize> {
    // Behind the numbers of messages and schemas.
    let count = statistics.get(10..)?.first_chunk()?;
    usize::try_from(u32::from_le_bytes(*count)).ok()
}

/// The numbers of messages and chunks in a record of statistics.
pub fn counts(statistics: &[u8]) -> Option<[u64; 2]> {
    let messages = u64::from_le_bytes(*statistics.first_chunk()?);
    // Behind the numbers of schemas, channels, attachments and metadata records.
    let chunks = u32::from_le_bytes(*statistics.get(22..)?.first_chunk()?);
    Some([messages, u64::from(chunks)])
}

/// Where a chunk begins, and how many bytes its record has, by its record in the index.
pub fn indexed_chunk(index: &[u8]) -> Option<(u64, u64)> {
    // Behind the times of its messages.
    let (start, rest) = index.get(16..)?.split_first_chunk()?;
    Some((u64::from_le_bytes(*start), u64::from_le_bytes(*rest.first_chunk()?)))
}

/// Where the summary of a file begins, by its last [`END_BYTES`]; `None` without one.
pub fn summary_start(end: &[u8; END_BYTES]) -> Option<u64> {
    let footer = end.strip_suffix(mcap::MAGIC)?.strip_prefix(&[op::FOOTER])?;
    let start = footer.get(8..)?.first_chunk()?;
    Some(u64::from_le_bytes(*start)).filter(|start| *start > 0)
}

/// What follows a text or bytes with their length.
fn after_text(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.get(usize::try_from(u32::from_le_bytes(*length)).ok()?..)
}

/// What follows a map of texts, whose length is that of its bytes.
fn after_map(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (mut entries, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    while !entries.is_empty() {
        entries = after_text(entries)?;
    }
    Some(rest)
}

/// The opcode of our private records (0x80 to 0xff are those of applications).
pub const PRIVATE: u8 = 0x80;
/// What those records begin with, since another program may use the same opcode.
const INSTANCE_END: &str = "thalweg.instance_end";
/// Bytes of a record's opcode and length.
pub const HEAD_BYTES: u64 = 1 + 8;
/// Bytes of the footer with its opcode and length, and of the magic behind it.
pub const END_BYTES: usize = 1 + 8 + 20 + 8;
