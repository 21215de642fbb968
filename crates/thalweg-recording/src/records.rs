//! Records as they stand in a file, before the format's parser sees them.

use mcap::records::op;

/// Whether a record is used here. Of all others nothing is needed, so nothing is believed.
pub fn is_used(opcode: u8) -> bool {
    matches!(opcode, op::SCHEMA | op::CHANNEL | op::MESSAGE | op::METADATA)
}

/// Whether the texts of a record that [is used](is_used) end within it: the parser takes memory for what they say.
pub fn has_its_texts(opcode: u8, record: &[u8]) -> bool {
    let end = match opcode {
        op::SCHEMA => record.get(2..).and_then(after_text).and_then(after_text).and_then(after_text),
        op::CHANNEL => record.get(4..).and_then(after_text).and_then(after_text).and_then(after_map),
        op::METADATA => after_text(record).and_then(after_map),
        _ => Some(record),
    };
    end.is_some()
}

/// The number of channels in a record of statistics.
pub fn channel_count(statistics: &[u8]) -> Option<usize> {
    // Behind the numbers of messages and schemas.
    let count = statistics.get(10..)?.first_chunk()?;
    usize::try_from(u32::from_le_bytes(*count)).ok()
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

/// Bytes of the footer with its opcode and length, and of the magic behind it.
pub const END_BYTES: usize = 1 + 8 + 20 + 8;
