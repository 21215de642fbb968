//! Samples on the wire: the most significant octet first, channels in turn.

use crate::sdp::AudioEncoding;

/// The largest sample.
const MAX: i32 = (1 << 23) - 1;

/// Appends samples of 24 bits; louder ones are cut, and L16 keeps the upper 16 bits.
pub(super) fn write(encoding: AudioEncoding, samples: impl Iterator<Item = i32>, out: &mut Vec<u8>) {
    for sample in samples {
        let [_, high, middle, low] = sample.clamp(-MAX - 1, MAX).to_be_bytes();
        match encoding {
            AudioEncoding::L16 => out.extend([high, middle]),
            AudioEncoding::L24 => out.extend([high, middle, low]),
        }
    }
}

/// The samples of a payload as 24 bits; octets of an incomplete one at the end are passed over.
pub(super) fn read(encoding: AudioEncoding, payload: &[u8]) -> impl Iterator<Item = i32> {
    payload.chunks_exact(encoding.octets()).map(|octets| {
        let low = octets.get(2).copied().unwrap_or_default();
        // The sign of 24 bits is that of the upper ones of 32.
        i32::from_be_bytes([octets[0], octets[1], low, 0]) >> 8
    })
}
