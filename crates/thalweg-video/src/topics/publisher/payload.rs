//! Frames and slices to payloads: the one copy on the way out.

use std::convert::Infallible;

use thalweg::Payload;
use thalweg_base::payload::PayloadPool;

use crate::format::{Field, VideoFormat};

/// Octets that are copied and summed at a time: they stay in the processor's cache in between.
pub(super) const CHUNK_OCTETS: usize = 64 << 10;

/// A line of a field within the octets of a frame.
pub(super) fn frame_line(format: VideoFormat, octets: &[u8], field: Field, line: u16) -> &[u8] {
    let start = usize::from(format.frame_line(field, line)) * format.line_octets();
    &octets[start..start + format.line_octets()]
}

/// A payload of `bytes` in all: what `head` appends, and `parts` behind it, whose checksum is put to `checksum_at` where
/// there is one.
pub(super) fn fill<'a>(
    pool: &mut PayloadPool,
    bytes: usize,
    checksum_at: Option<usize>,
    head: impl FnOnce(&mut Vec<u8>),
    parts: impl Iterator<Item = &'a [u8]>,
) -> Payload {
    let filled = pool.fill(bytes, |buffer| -> Result<(), Infallible> {
        head(buffer);
        let mut sum = 0;
        for part in parts {
            if checksum_at.is_some() {
                sum = crc32c::crc32c_append(sum, part);
            }
            buffer.extend_from_slice(part);
        }
        if let Some(at) = checksum_at {
            buffer[at..at + 4].copy_from_slice(&sum.to_le_bytes());
        }
        Ok(())
    });
    match filled {
        Ok(payload) => payload,
        Err(never) => match never {},
    }
}
