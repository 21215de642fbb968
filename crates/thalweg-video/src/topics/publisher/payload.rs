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

/// A payload of parts behind a head, which is written last since it has their checksum.
pub(super) fn fill<'a>(
    pool: &mut PayloadPool,
    head_bytes: usize,
    octets: usize,
    sums: bool,
    parts: impl Iterator<Item = &'a [u8]>,
    head: impl FnOnce(Option<u32>, &mut Vec<u8>),
) -> Payload {
    let filled = pool.fill(head_bytes + octets, |buffer| -> Result<(), Infallible> {
        buffer.resize(head_bytes, 0);
        let mut sum = 0;
        for part in parts {
            if sums {
                sum = crc32c::crc32c_append(sum, part);
            }
            buffer.extend_from_slice(part);
        }
        write_head(buffer, head_bytes, |bytes| head(sums.then_some(sum), bytes));
        Ok(())
    });
    match filled {
        Ok(payload) => payload,
        Err(never) => match never {},
    }
}

/// Puts a head of `head_bytes` to the beginning of `buffer`.
pub(super) fn write_head(buffer: &mut [u8], head_bytes: usize, head: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = Vec::with_capacity(head_bytes);
    head(&mut bytes);
    buffer[..head_bytes].copy_from_slice(&bytes);
}
