//! Sound: the test tone, and WAVE files.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::{AtEnd, SourceError};
use crate::audio::Tones;
use crate::wav::{self, WavError, WavHead};

/// Gives samples at 48 kHz.
pub trait SoundSource: Send {
    /// Channels, 1 to 8.
    fn channels(&self) -> u8;

    /// Appends up to `frames` samples of 24 bits of each channel, the channels in turn; returns how many it had. None is the end.
    ///
    /// # Errors
    ///
    /// The samples cannot be had; the stream then ends.
    fn fill(&mut self, frames: usize, samples: &mut Vec<i32>) -> Result<usize, SourceError>;
}

/// The test tone: another one in each channel.
#[derive(Clone, Debug)]
pub struct ToneSource {
    tones: Tones,
    channels: u8,
    next: u64,
}

impl ToneSource {
    /// The tones of so many channels.
    pub fn new(channels: u8) -> ToneSource {
        ToneSource { tones: Tones::new(channels.into()), channels, next: 0 }
    }
}

impl SoundSource for ToneSource {
    fn channels(&self) -> u8 {
        self.channels
    }

    fn fill(&mut self, frames: usize, samples: &mut Vec<i32>) -> Result<usize, SourceError> {
        for _ in 0..frames {
            samples.extend_from_slice(self.tones.set(self.next));
            self.next += 1;
        }
        Ok(frames)
    }
}

/// The samples of a WAVE file or pipe.
#[derive(Debug)]
pub struct WavSource {
    path: PathBuf,
    reader: BufReader<File>,
    head: WavHead,
    at_end: AtEnd,
    /// Octets of samples that are still to come; `None` up to the end of the file.
    left: Option<u64>,
    octets: Vec<u8>,
}

impl WavSource {
    /// Opens a file and reads its head. A pipe is read too, but cannot be repeated.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is no such file, or its samples cannot be sent as they are.
    pub fn open(path: &Path, at_end: AtEnd) -> Result<WavSource, SourceError> {
        let file = File::open(path).map_err(|source| SourceError::Read { path: path.to_owned(), source })?;
        let mut reader = BufReader::new(file);
        let head = wav::read_head(&mut reader);
        let head = head.map_err(|source| SourceError::Sound { path: path.to_owned(), source })?;
        let left = head.data_octets.map(u64::from);
        Ok(WavSource { path: path.to_owned(), reader, head, at_end, left, octets: Vec::new() })
    }

    /// Reads until `octets` are there or the samples end.
    fn read(&mut self, octets: usize) -> Result<(), SourceError> {
        let octets = self.left.map_or(octets as u64, |left| left.min(octets as u64));
        self.octets.clear();
        let read = (&mut self.reader).take(octets).read_to_end(&mut self.octets);
        let read = read.map_err(|source| self.failed(source))?;
        if let Some(left) = &mut self.left {
            *left -= read as u64;
        }
        Ok(())
    }

    fn failed(&self, source: io::Error) -> SourceError {
        SourceError::Read { path: self.path.clone(), source }
    }
}

impl SoundSource for WavSource {
    fn channels(&self) -> u8 {
        self.head.channels
    }

    fn fill(&mut self, frames: usize, samples: &mut Vec<i32>) -> Result<usize, SourceError> {
        let frame = self.head.frame_octets();
        self.read(frames * frame)?;
        if self.octets.len() < frame && self.at_end == AtEnd::Repeat {
            self.reader.seek(SeekFrom::Start(self.head.start)).map_err(|source| self.failed(source))?;
            self.left = self.head.data_octets.map(u64::from);
            self.read(frames * frame)?;
            if self.octets.len() < frame {
                let source = WavError::Read(io::ErrorKind::UnexpectedEof.into());
                return Err(SourceError::Sound { path: self.path.clone(), source });
            }
        }
        // A part of a set of channels at the end is of no use.
        let whole = self.octets.len() / frame;
        samples.extend(wav::samples(self.head.sample_octets, &self.octets[..whole * frame]));
        Ok(whole)
    }
}
