//! Where sound goes: WAVE files, a check of the test tone, or nowhere.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{NullSink, SinkError};
use crate::audio::{AudioBlock, AudioFormat, TONE_PERIOD, Tones};
use crate::sdp::AudioEncoding;
use crate::wav;

/// Takes blocks of samples, one after the other.
pub trait SoundSink: Send {
    /// Takes the samples of the next block: 24 bits, the channels in turn.
    ///
    /// # Errors
    ///
    /// They cannot be taken; the stream then ends.
    fn take(&mut self, block: &AudioBlock, samples: &[i32]) -> Result<(), SinkError>;

    /// No block follows.
    ///
    /// # Errors
    ///
    /// What was taken cannot be kept.
    fn finish(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}

impl SoundSink for NullSink {
    fn take(&mut self, _: &AudioBlock, _: &[i32]) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Writes a WAVE file with samples of 24 bits: 4 GB at most, an hour of eight channels.
#[derive(Debug)]
pub struct WavSink {
    path: PathBuf,
    file: BufWriter<File>,
    channels: u8,
    data_octets: u32,
    octets: Vec<u8>,
}

impl WavSink {
    /// Opens a file or pipe for so many channels; an earlier file's content is lost.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn create(path: &Path, channels: u8) -> Result<WavSink, SinkError> {
        let failed = |source| SinkError::Write { path: path.to_owned(), source };
        let mut file = BufWriter::new(File::create(path).map_err(failed)?);
        file.write_all(&wav::head(channels, None)).map_err(failed)?;
        Ok(WavSink { path: path.to_owned(), file, channels, data_octets: 0, octets: Vec::new() })
    }

    fn failed(&self, source: io::Error) -> SinkError {
        SinkError::Write { path: self.path.clone(), source }
    }

    /// Writes what is now known into the head; a pipe keeps the one that it has.
    fn complete(&mut self) -> io::Result<()> {
        if self.data_octets % 2 == 1 {
            self.file.write_all(&[0])?;
        }
        self.file.flush()?;
        match self.file.seek(SeekFrom::Start(0)) {
            Ok(_) => self.file.write_all(&wav::head(self.channels, Some(self.data_octets)))?,
            Err(error) if error.kind() == io::ErrorKind::NotSeekable => {}
            Err(error) => return Err(error),
        }
        self.file.flush()
    }
}

impl SoundSink for WavSink {
    fn take(&mut self, _: &AudioBlock, samples: &[i32]) -> Result<(), SinkError> {
        self.octets.clear();
        wav::write_samples(samples, &mut self.octets);
        let grown = u32::try_from(self.octets.len()).ok().and_then(|octets| self.data_octets.checked_add(octets));
        // What is longer has no form, and the largest numbers mean that the length is not known.
        let Some(grown) = grown.filter(|octets| *octets < DATA_OCTETS_MAX) else {
            return Err(self.failed(io::ErrorKind::FileTooLarge.into()));
        };
        self.data_octets = grown;
        self.file.write_all(&self.octets).map_err(|source| SinkError::Write { path: self.path.clone(), source })
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        self.complete().map_err(|source| self.failed(source))
    }
}

/// Proves of each sample that it is the test tone's at its place.
#[derive(Clone, Debug)]
pub struct ToneSink {
    tones: Tones,
    channels: usize,
    /// By how much a sample may differ: what the encoding drops, and one of rounding.
    tolerance: i32,
    /// A time stamp and its place in the tones.
    known: Option<(u32, u64)>,
    summary: ToneSummary,
}

/// What a [`ToneSink`] found; samples count once for all channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToneSummary {
    /// Samples that are those of the tone.
    pub proved: u64,
    /// Samples that are not.
    pub wrong: u64,
    /// Samples of blocks of which some are concealed: they prove nothing.
    pub concealed: u64,
}

impl ToneSummary {
    /// Whether some samples were proved and none is wrong.
    pub fn is_proved(&self) -> bool {
        self.proved > 0 && self.wrong == 0
    }
}

impl ToneSink {
    /// A check of sound in a form.
    pub fn new(format: AudioFormat) -> ToneSink {
        let tolerance = match format.encoding() {
            AudioEncoding::L24 => 1,
            AudioEncoding::L16 => 257,
        };
        let (tones, channels) = (Tones::new(format.channels()), format.channels());
        ToneSink { tones, channels, tolerance, known: None, summary: ToneSummary::default() }
    }

    /// What was found so far.
    pub fn summary(&self) -> ToneSummary {
        self.summary
    }

    /// How many samples of each channel are those from `place` on.
    fn matches(&self, place: u64, samples: &[i32]) -> usize {
        let sets = samples.chunks_exact(self.channels).zip(place..);
        let is_tone = |(set, place): &(&[i32], u64)| {
            set.iter()
                .zip(self.tones.set(*place))
                .all(|(sample, tone)| sample.abs_diff(*tone) <= self.tolerance.unsigned_abs())
        };
        sets.filter(is_tone).count()
    }

    /// The place of a block, by the time stamps since the first one that was recognized.
    fn place(&mut self, block: &AudioBlock, samples: &[i32]) -> Option<u64> {
        let period = TONE_PERIOD as i64;
        if let Some((timestamp, place)) = self.known {
            let ahead = i64::from(block.timestamp.wrapping_sub(timestamp) as i32);
            if ahead.abs() < STREAM_STEP_MAX {
                return Some((place as i64 + ahead).rem_euclid(period) as u64);
            }
        }
        (0..TONE_PERIOD as u64).find(|place| self.matches(*place, samples) == block.frames)
    }
}

impl SoundSink for ToneSink {
    fn take(&mut self, block: &AudioBlock, samples: &[i32]) -> Result<(), SinkError> {
        let frames = block.frames as u64;
        if block.concealed > 0 {
            self.summary.concealed += frames;
            return Ok(());
        }
        let place = self.place(block, samples);
        let proved = place.map_or(0, |place| self.matches(place, samples) as u64);
        self.known = place.map(|place| (block.timestamp, place));
        self.summary.proved += proved;
        self.summary.wrong += frames - proved;
        Ok(())
    }
}

/// Octets of samples in a file at most.
const DATA_OCTETS_MAX: u32 = 0xffff_0000;
/// A longer step of the time stamps is that of another stream, whose tone begins anew.
const STREAM_STEP_MAX: i64 = 480_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::PacketTime;
    use thalweg_base::time::Instant;

    fn format(channels: u8) -> AudioFormat {
        AudioFormat::new(AudioEncoding::L24, channels, PacketTime::Millisecond).unwrap()
    }

    fn block(timestamp: u32, concealed: u64) -> AudioBlock {
        AudioBlock { timestamp, due: Instant::ZERO, frames: 48, concealed }
    }

    /// What a check of two channels finds in blocks that begin at these places of the tone; `change` spoils samples.
    fn found(blocks: &[(u32, u64)], change: impl Fn(usize, &mut Vec<i32>)) -> (u64, u64) {
        let (tones, mut sink) = (Tones::new(2), ToneSink::new(format(2)));
        for (index, (timestamp, place)) in blocks.iter().enumerate() {
            let mut samples: Vec<i32> = (*place..).take(48).flat_map(|place| tones.set(place).to_vec()).collect();
            change(index, &mut samples);
            sink.take(&block(*timestamp, 0), &samples).unwrap();
        }
        (sink.summary().proved, sink.summary().wrong)
    }

    #[test]
    fn a_tone_is_proved_at_its_place_and_nowhere_else() {
        let as_it_is = |_, _: &mut Vec<i32>| ();
        assert_eq!(found(&[(u32::MAX - 20, 700), (27, 748), (123, 844)], as_it_is), (144, 0), "a block did not come");
        assert!(found(&[(0, 0), (48, 0)], as_it_is).1 > 40, "the same block twice");
        assert_eq!(found(&[(0, 0), (1 << 30, 5)], as_it_is), (96, 0), "another sender");
        assert_eq!(found(&[(0, 0), (48, 48)], |block, samples| samples[9] += 2 * block as i32), (95, 1));
        assert_eq!(found(&[(0, 0)], |_, samples| samples.chunks_mut(2).for_each(|set| set.reverse())).0, 0);
        assert_eq!(found(&[(0, 0)], |_, samples| samples.fill(0)).0, 0, "silence is no tone");
    }

    #[test]
    fn concealed_blocks_prove_nothing() {
        let mut sink = ToneSink::new(format(1));
        sink.take(&block(0, 7), &[0; 48]).unwrap();
        assert_eq!(sink.summary(), ToneSummary { concealed: 48, ..ToneSummary::default() });
        assert!(!sink.summary().is_proved());
    }
}
