//! WAVE files of linear audio at 48 kHz: samples of 16 or 24 bits, the least significant octet first, the channels in turn.
//!
//! Files for more than two channels have the extended head, as its authors ask; channels keep their order and have no loudspeakers.

use std::fmt;
use std::io::{self, Read};

use crate::audio::{CHANNELS_MAX, SAMPLE_RATE_HZ};

/// What the head of a file tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WavHead {
    /// Channels, 1 to [`CHANNELS_MAX`].
    pub channels: u8,
    /// Octets of a sample: 2 or 3.
    pub sample_octets: u8,
    /// Octets of samples; `None` where the program that wrote them did not know, as into a pipe.
    pub data_octets: Option<u32>,
    /// Where the samples begin.
    pub start: u64,
}

impl WavHead {
    /// Octets of one sample of every channel.
    pub fn frame_octets(&self) -> usize {
        usize::from(self.channels) * usize::from(self.sample_octets)
    }
}

/// Chunks before the samples that are passed over at most, and octets of them: titles and the like are shorter.
const CHUNKS_MAX: usize = 64;
const PASSED_OVER_MAX: u64 = 16 << 20;
/// Octets of a format chunk that are read at most.
const FORMAT_OCTETS_MAX: u32 = 64;
/// Forms of samples.
const PCM: u16 = 1;
const EXTENSIBLE: u16 = 0xfffe;
/// What follows the form in the identity of an extended format: that of linear samples.
const PCM_IDENTITY: [u8; 14] = [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71];

/// Reads a file up to its first sample.
///
/// # Errors
/// It cannot be read, is no such file, or its samples are none that are sent.
pub fn read_head(reader: &mut dyn Read) -> Result<WavHead, WavError> {
    let mut place = 12;
    let riff = octets::<12>(reader)?;
    if &riff[..4] != b"RIFF" || &riff[8..] != b"WAVE" {
        return Err(WavError::NoWave);
    }
    let (mut format, mut passed_over) = (None, 0);
    for _ in 0..CHUNKS_MAX {
        let head = octets::<8>(reader)?;
        let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        place += 8;
        match (&head[..4], format) {
            (b"data", Some((channels, sample_octets))) => {
                // Programs that write into a pipe leave zero or the largest number.
                let data_octets = Some(length).filter(|length| !matches!(length, 0 | 0xffff_f000..));
                return Ok(WavHead { channels, sample_octets, data_octets, start: place });
            }
            (b"data", None) => return Err(WavError::NoFormat),
            (b"fmt ", None) if length <= FORMAT_OCTETS_MAX => format = Some(read_format(reader, length)?),
            (b"fmt ", None) => return Err(WavError::NoFormat),
            _ => pass_over(reader, length, &mut passed_over)?,
        }
        // Chunks begin at even places.
        place += u64::from(length) + u64::from(length % 2);
        if length % 2 == 1 {
            octets::<1>(reader)?;
        }
    }
    Err(WavError::NoFormat)
}

fn read_format(reader: &mut dyn Read, length: u32) -> Result<(u8, u8), WavError> {
    let mut chunk = vec![0; length as usize];
    reader.read_exact(&mut chunk).map_err(WavError::Read)?;
    let word =
        |at: usize| chunk.get(at..at + 2).map(|two| u16::from_le_bytes([two[0], two[1]])).ok_or(WavError::NoFormat);
    let rate = chunk.get(4..8).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]));
    let (channels, rate, bits) = (word(2)?, rate.ok_or(WavError::NoFormat)?, word(14)?);
    let form = match word(0)? {
        EXTENSIBLE if chunk.get(26..40) == Some(&PCM_IDENTITY) => word(24)?,
        form => form,
    };
    if form != PCM {
        return Err(WavError::Form(form));
    }
    if rate != SAMPLE_RATE_HZ {
        return Err(WavError::Rate(rate));
    }
    let sample_octets = match bits {
        16 => 2,
        24 => 3,
        _ => return Err(WavError::Bits(bits)),
    };
    let told = u8::try_from(channels).ok().filter(|channels| (1..=CHANNELS_MAX).contains(channels));
    Ok((told.ok_or(WavError::Channels(channels))?, sample_octets))
}

fn pass_over(reader: &mut dyn Read, length: u32, passed_over: &mut u64) -> Result<(), WavError> {
    *passed_over += u64::from(length);
    if *passed_over > PASSED_OVER_MAX {
        return Err(WavError::NoFormat);
    }
    let passed = io::copy(&mut reader.take(u64::from(length)), &mut io::sink()).map_err(WavError::Read)?;
    if passed < u64::from(length) { Err(WavError::Read(io::ErrorKind::UnexpectedEof.into())) } else { Ok(()) }
}

fn octets<const COUNT: usize>(reader: &mut dyn Read) -> Result<[u8; COUNT], WavError> {
    let mut octets = [0; COUNT];
    reader.read_exact(&mut octets).map_err(WavError::Read)?;
    Ok(octets)
}

/// The head of a file with samples of 24 bits, of `data_octets` in all; `None` while that is not known.
pub fn head(channels: u8, data_octets: Option<u32>) -> Vec<u8> {
    let is_extended = channels > 2;
    let format_octets: u32 = if is_extended { 40 } else { 16 };
    let unknown = u32::MAX;
    let riff_octets = data_octets.map_or(unknown, |data| data.saturating_add(20 + format_octets + data % 2));
    let frame = u16::from(channels) * 3;
    let mut out = Vec::with_capacity(28 + format_octets as usize);
    out.extend(b"RIFF");
    out.extend(riff_octets.to_le_bytes());
    out.extend(b"WAVEfmt ");
    out.extend(format_octets.to_le_bytes());
    out.extend(if is_extended { EXTENSIBLE } else { PCM }.to_le_bytes());
    out.extend(u16::from(channels).to_le_bytes());
    out.extend(SAMPLE_RATE_HZ.to_le_bytes());
    out.extend((SAMPLE_RATE_HZ * u32::from(frame)).to_le_bytes());
    out.extend(frame.to_le_bytes());
    out.extend(24_u16.to_le_bytes());
    if is_extended {
        out.extend(22_u16.to_le_bytes());
        out.extend(24_u16.to_le_bytes());
        // No channel is a loudspeaker's.
        out.extend(0_u32.to_le_bytes());
        out.extend(PCM.to_le_bytes());
        out.extend(PCM_IDENTITY);
    }
    out.extend(b"data");
    out.extend(data_octets.unwrap_or(unknown).to_le_bytes());
    out
}

/// Samples of a file as 24 bits; octets of an incomplete one at the end are passed over.
pub fn samples(sample_octets: u8, octets: &[u8]) -> impl Iterator<Item = i32> + use<'_> {
    octets.chunks_exact(usize::from(sample_octets.clamp(2, 3))).map(|sample| match *sample {
        [low, middle, high] => i32::from_le_bytes([0, low, middle, high]) >> 8,
        [low, high] => i32::from_le_bytes([0, 0, low, high]) >> 8,
        _ => 0,
    })
}

/// Appends samples of 24 bits.
pub fn write_samples(samples: &[i32], out: &mut Vec<u8>) {
    for sample in samples {
        let [low, middle, high, _] = sample.to_le_bytes();
        out.extend([low, middle, high]);
    }
}

/// Why a file is refused.
#[derive(Debug)]
pub enum WavError {
    /// It cannot be read, or ends before its samples.
    Read(io::Error),
    /// It does not begin as such a file.
    NoWave,
    /// Nothing that can be read tells the form of its samples before they begin.
    NoFormat,
    /// Its samples are not linear.
    Form(u16),
    /// The rate is not 48 kHz.
    Rate(u32),
    /// The number of channels is not from 1 to [`CHANNELS_MAX`].
    Channels(u16),
    /// Samples have neither 16 nor 24 bits.
    Bits(u16),
}

impl fmt::Display for WavError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let convert = "convert it, such as by `ffmpeg -i IN -ar 48000 -c:a pcm_s24le OUT.wav`";
        match self {
            WavError::Read(error) => write!(formatter, "the head of the WAVE file cannot be read: {error}"),
            WavError::NoWave => formatter.write_str("this is no WAVE file: it does not begin with RIFF and WAVE"),
            WavError::NoFormat => {
                formatter.write_str("the WAVE file does not tell the form of its samples before them")
            }
            WavError::Form(form) => write!(formatter, "samples of form {form} are not linear: {convert}"),
            WavError::Rate(rate) => write!(formatter, "{rate} samples a second instead of {SAMPLE_RATE_HZ}: {convert}"),
            WavError::Channels(channels) => {
                write!(formatter, "the file has {channels} channels instead of 1 to {CHANNELS_MAX}")
            }
            WavError::Bits(bits) => write!(formatter, "samples of {bits} bits instead of 16 or 24: {convert}"),
        }
    }
}

impl std::error::Error for WavError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            WavError::Read(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
