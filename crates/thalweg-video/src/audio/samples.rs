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
