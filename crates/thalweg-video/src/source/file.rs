//! Frames from files: YUV4MPEG2, and frames one behind the other as they lie in packets.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::{AtEnd, Filled, FrameSource, SourceError};
use crate::format::VideoFormat;
use crate::y4m;

/// The frames of a YUV4MPEG2 file or pipe.
pub struct Y4mSource {
    file: OpenFile,
    format: VideoFormat,
    pixel_aspect: (u16, u16),
    planes: Vec<u8>,
    /// Where the first frame begins.
    start: u64,
}

/// The frames of a file without any header.
pub struct RawSource {
    file: OpenFile,
    format: VideoFormat,
}

/// A file that is read frame by frame.
struct OpenFile {
    path: PathBuf,
    reader: BufReader<File>,
    at_end: AtEnd,
    /// Frames since its beginning.
    frames: u64,
    /// Whether it has come round, and has one frame.
    is_still: bool,
}

impl Y4mSource {
    /// Opens a file and reads its header. A pipe is read too, but cannot be repeated.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is no such file, or its pictures cannot be sent as they are.
    pub fn open(path: &Path, at_end: AtEnd) -> Result<Y4mSource, SourceError> {
        let mut file = OpenFile::open(path, at_end)?;
        let line = file.line()?.unwrap_or_default();
        let refused = |source| SourceError::Refused { path: path.to_owned(), source };
        let format = y4m::read_header(&line).map_err(refused)?;
        let pixel_aspect = y4m::read_pixel_aspect(&line).map_err(refused)?;
        let (planes, start) = (vec![0; y4m::planar_octets(format)], line.len() as u64 + 1);
        Ok(Y4mSource { file, format, pixel_aspect, planes, start })
    }
}

impl FrameSource for Y4mSource {
    fn format(&self) -> VideoFormat {
        self.format
    }

    fn pixel_aspect(&self) -> (u16, u16) {
        self.pixel_aspect
    }

    fn fill(&mut self, frame: &mut [u8]) -> Result<Filled, SourceError> {
        let mut line = self.file.line()?;
        if line.is_none() && self.file.repeats() {
            self.file.rewind(self.start)?;
            line = self.file.line()?;
        }
        let Some(line) = line else { return Ok(Filled::End) };
        if !y4m::is_frame_line(&line) {
            return Err(self.file.no_line());
        }
        match self.file.read(&mut self.planes)? {
            octets if octets == self.planes.len() => {}
            octets => return Err(self.file.ends_within(octets as u64, self.planes.len())),
        }
        let refused = |source| SourceError::Refused { path: self.file.path.clone(), source };
        y4m::pack(self.format, &self.planes, frame).map_err(refused)?;
        self.file.frames += 1;
        Ok(Filled::Frame)
    }

    fn is_still(&self) -> bool {
        self.file.is_still
    }
}

impl RawSource {
    /// Opens a file of frames of `format`. A pipe is read too, but cannot be repeated.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or its length is not that of some whole frames.
    pub fn open(path: &Path, format: VideoFormat, at_end: AtEnd) -> Result<RawSource, SourceError> {
        let file = OpenFile::open(path, at_end)?;
        let metadata = file.reader.get_ref().metadata().map_err(|source| file.failed(source))?;
        let (octets, frame_octets) = (metadata.len(), format.frame_octets());
        if metadata.is_file() && (octets == 0 || !octets.is_multiple_of(frame_octets as u64)) {
            return Err(SourceError::Length { path: file.path, octets, frame_octets });
        }
        Ok(RawSource { file, format })
    }
}

impl FrameSource for RawSource {
    fn format(&self) -> VideoFormat {
        self.format
    }

    fn fill(&mut self, frame: &mut [u8]) -> Result<Filled, SourceError> {
        let mut octets = self.file.read(frame)?;
        if octets == 0 && self.file.repeats() {
            self.file.rewind(0)?;
            octets = self.file.read(frame)?;
        }
        match octets {
            0 => Ok(Filled::End),
            octets if octets == frame.len() => {
                self.file.frames += 1;
                Ok(Filled::Frame)
            }
            octets => Err(self.file.ends_within(octets as u64, frame.len())),
        }
    }

    fn is_still(&self) -> bool {
        self.file.is_still
    }
}

impl OpenFile {
    fn open(path: &Path, at_end: AtEnd) -> Result<OpenFile, SourceError> {
        let file = File::open(path).map_err(|source| SourceError::Read { path: path.to_owned(), source })?;
        Ok(OpenFile { path: path.to_owned(), reader: BufReader::new(file), at_end, frames: 0, is_still: false })
    }

    fn repeats(&self) -> bool {
        self.at_end == AtEnd::Repeat
    }

    fn rewind(&mut self, start: u64) -> Result<(), SourceError> {
        self.is_still = self.frames == 1;
        self.frames = 0;
        self.reader.seek(SeekFrom::Start(start)).map(drop).map_err(|source| self.failed(source))
    }

    /// The next line without its line feed; `None` at the end.
    fn line(&mut self) -> Result<Option<Vec<u8>>, SourceError> {
        let mut line = Vec::new();
        let mut bounded = (&mut self.reader).take(y4m::LINE_OCTETS_MAX as u64 + 1);
        if let Err(source) = bounded.read_until(b'\n', &mut line) {
            return Err(self.failed(source));
        }
        match line.pop() {
            None => Ok(None),
            Some(b'\n') => Ok(Some(line)),
            Some(_) => Err(self.no_line()),
        }
    }

    /// Reads until `into` is full or the file ends; returns how many octets that was.
    fn read(&mut self, into: &mut [u8]) -> Result<usize, SourceError> {
        let mut octets = 0;
        while octets < into.len() {
            match self.reader.read(&mut into[octets..]) {
                Ok(0) => break,
                Ok(count) => octets += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(self.failed(source)),
            }
        }
        Ok(octets)
    }

    fn failed(&self, source: io::Error) -> SourceError {
        SourceError::Read { path: self.path.clone(), source }
    }

    fn no_line(&self) -> SourceError {
        SourceError::Line { path: self.path.clone(), frames: self.frames }
    }

    fn ends_within(&self, octets: u64, frame_octets: usize) -> SourceError {
        SourceError::Length { path: self.path.clone(), octets, frame_octets }
    }
}
