//! Planes of samples and the pixel groups of RFC 4175 §4.3.

use super::Y4mError;
use crate::format::{PixelFormat, VideoFormat};

/// Octets of a picture as planes: luma, then both chromas; samples of 10 bits take two octets, the lower first.
pub fn planar_octets(format: VideoFormat) -> usize {
    2 * sample_octets(format) * usize::from(format.width()) * usize::from(format.height())
}

/// Packs the planes of a picture into `frame`.
///
/// # Errors
///
/// A sample is larger than 1,023, or the pictures are RGB.
///
/// # Panics
///
/// `planes` has not [`planar_octets`] octets, or `frame` not those of a frame.
pub fn pack(format: VideoFormat, planes: &[u8], frame: &mut [u8]) -> Result<(), Y4mError> {
    assert_eq!((planes.len(), frame.len()), (planar_octets(format), format.frame_octets()), "buffers of {format}");
    let (luma, chroma) = planes.split_at(planes.len() / 2);
    let (blue, red) = chroma.split_at(chroma.len() / 2);
    match format.pixels() {
        PixelFormat::Yuv422Bits8 => {
            let (groups, _) = frame.as_chunks_mut::<4>();
            let (luma, _) = luma.as_chunks::<2>();
            for (((group, [first, second]), blue), red) in groups.iter_mut().zip(luma).zip(blue).zip(red) {
                *group = [*blue, *first, *red, *second];
            }
            Ok(())
        }
        PixelFormat::Yuv422Bits10 => {
            let (groups, _) = frame.as_chunks_mut::<5>();
            let (luma, _) = luma.as_chunks::<4>();
            let ((blue, _), (red, _)) = (blue.as_chunks::<2>(), red.as_chunks::<2>());
            let mut all = 0;
            for (((group, [a, b, c, d]), blue), red) in groups.iter_mut().zip(luma).zip(blue).zip(red) {
                let samples = [*blue, [*a, *b], *red, [*c, *d]].map(u16::from_le_bytes);
                all |= samples.iter().fold(0, |all, sample| all | sample);
                *group = group_of(samples);
            }
            // Only where one is too large is each looked at.
            if all > SAMPLE_MAX { Err(Y4mError::Sample(largest(planes))) } else { Ok(()) }
        }
        PixelFormat::Rgb8 => Err(Y4mError::Rgb),
    }
}

/// Takes the groups of `frame` apart into planes.
///
/// # Errors
///
/// The pictures are RGB.
///
/// # Panics
///
/// As [`pack`].
pub fn unpack(format: VideoFormat, frame: &[u8], planes: &mut [u8]) -> Result<(), Y4mError> {
    assert_eq!((planes.len(), frame.len()), (planar_octets(format), format.frame_octets()), "buffers of {format}");
    let (luma, chroma) = planes.split_at_mut(planar_octets(format) / 2);
    let (blue, red) = chroma.split_at_mut(chroma.len() / 2);
    match format.pixels() {
        PixelFormat::Yuv422Bits8 => {
            let (groups, _) = frame.as_chunks::<4>();
            let (luma, _) = luma.as_chunks_mut::<2>();
            for (((group, luma), to_blue), to_red) in groups.iter().zip(luma).zip(blue).zip(red) {
                let [blue, first, red, second] = *group;
                (*to_blue, *luma, *to_red) = (blue, [first, second], red);
            }
            Ok(())
        }
        PixelFormat::Yuv422Bits10 => {
            let (groups, _) = frame.as_chunks::<5>();
            let (luma, _) = luma.as_chunks_mut::<4>();
            let ((blue, _), (red, _)) = (blue.as_chunks_mut::<2>(), red.as_chunks_mut::<2>());
            for (((group, luma), to_blue), to_red) in groups.iter().zip(luma).zip(blue).zip(red) {
                let [blue, [a, b], red, [c, d]] = samples_of(*group).map(u16::to_le_bytes);
                (*to_blue, *luma, *to_red) = (blue, [a, b, c, d], red);
            }
            Ok(())
        }
        PixelFormat::Rgb8 => Err(Y4mError::Rgb),
    }
}

fn sample_octets(format: VideoFormat) -> usize {
    if format.pixels().depth() > 8 { 2 } else { 1 }
}

/// Four samples of 10 bits in 40 bits, the most significant first.
fn group_of([blue, first, red, second]: [u16; 4]) -> [u8; 5] {
    let bits = (u64::from(blue) << 30) | (u64::from(first) << 20) | (u64::from(red) << 10) | u64::from(second);
    let [_, _, _, group @ ..] = bits.to_be_bytes();
    group
}

fn samples_of([a, b, c, d, e]: [u8; 5]) -> [u16; 4] {
    let bits = u64::from_be_bytes([0, 0, 0, a, b, c, d, e]);
    [30, 20, 10, 0].map(|shift| (bits >> shift) as u16 & SAMPLE_MAX)
}

fn largest(planes: &[u8]) -> u16 {
    let (samples, _) = planes.as_chunks::<2>();
    samples.iter().copied().map(u16::from_le_bytes).max().unwrap_or_default()
}

/// The largest sample of 10 bits.
const SAMPLE_MAX: u16 = 1023;
