//! Frames into files: YUV4MPEG2, and frames one behind the other as they lay in packets.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::{FrameSink, SinkError};
use crate::format::VideoFormat;
use crate::receiver::ReceivedPicture;
use crate::y4m;

/// Writes frames without any header: what [`RawSource`](crate::source::RawSource) reads.
#[derive(Debug)]
pub struct RawSink(OpenFile);

/// Writes a YUV4MPEG2 file.
#[derive(Debug)]
pub struct Y4mSink {
    file: OpenFile,
    format: VideoFormat,
    planes: Vec<u8>,
}

#[derive(Debug)]
struct OpenFile {
    path: PathBuf,
    file: File,
}

impl RawSink {
    /// Opens a file or pipe; an earlier file's content is lost.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn create(path: &Path) -> Result<RawSink, SinkError> {
        OpenFile::create(path).map(RawSink)
    }
}

impl FrameSink for RawSink {
    fn take(&mut self, picture: &ReceivedPicture) -> Result<(), SinkError> {
        self.0.write(&picture.octets)
    }
}

impl Y4mSink {
    /// Opens a file or pipe for pictures of `format` with square pixels; an earlier file's content is lost.
    ///
    /// # Errors
    ///
    /// It cannot be written, or such files have no form for the pictures.
    pub fn create(path: &Path, format: VideoFormat) -> Result<Y4mSink, SinkError> {
        Y4mSink::create_with_aspect(path, format, (1, 1))
    }

    /// As [`Y4mSink::create`], for pictures whose pixels have this width to height.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn create_with_aspect(
        path: &Path,
        format: VideoFormat,
        pixel_aspect: (u16, u16),
    ) -> Result<Y4mSink, SinkError> {
        let header = y4m::header_with_aspect(format, pixel_aspect);
        let header = header.map_err(|source| SinkError::Refused { path: path.to_owned(), source })?;
        let mut file = OpenFile::create(path)?;
        file.write(header.as_bytes())?;
        Ok(Y4mSink { file, format, planes: vec![0; y4m::planar_octets(format)] })
    }
}

impl FrameSink for Y4mSink {
    fn take(&mut self, picture: &ReceivedPicture) -> Result<(), SinkError> {
        let refused = |source| SinkError::Refused { path: self.file.path.clone(), source };
        y4m::unpack(self.format, &picture.octets, &mut self.planes).map_err(refused)?;
        self.file.write(y4m::FRAME_LINE)?;
        self.file.write(&self.planes)
    }
}

impl OpenFile {
    fn create(path: &Path) -> Result<OpenFile, SinkError> {
        let path = path.to_owned();
        match File::create(&path) {
            Ok(file) => Ok(OpenFile { path, file }),
            Err(source) => Err(SinkError::Write { path, source }),
        }
    }

    fn write(&mut self, octets: &[u8]) -> Result<(), SinkError> {
        self.file.write_all(octets).map_err(|source| SinkError::Write { path: self.path.clone(), source })
    }
}
