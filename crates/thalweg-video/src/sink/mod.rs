//! Where the frames and samples of a receiver go.

mod file;
mod preview;
mod sound;
mod verify;

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::receiver::ReceivedPicture;
use crate::y4m::Y4mError;

pub use file::{RawSink, Y4mSink};
pub use preview::PreviewSink;
pub use sound::{SoundSink, ToneSink, ToneSummary, WavSink};
pub use verify::{VerifySink, VerifySummary};

/// Takes frames, one after the other.
pub trait FrameSink: Send {
    /// Takes the next frame. It is called on a thread of its own: what takes longer than a frame time loses frames, which are counted.
    ///
    /// # Errors
    ///
    /// The frame cannot be taken; the stream then ends.
    fn take(&mut self, picture: &ReceivedPicture) -> Result<(), SinkError>;

    /// No frame follows.
    ///
    /// # Errors
    ///
    /// What was taken cannot be kept.
    fn finish(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Lets frames and samples go.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullSink;

impl FrameSink for NullSink {
    fn take(&mut self, _: &ReceivedPicture) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Why a sink does not take a frame or a block of samples.
#[derive(Debug)]
pub enum SinkError {
    /// The file cannot be written.
    Write {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file has no form for such pictures.
    Refused {
        /// Its path.
        path: PathBuf,
        /// The reason.
        source: Y4mError,
    },
}

impl fmt::Display for SinkError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SinkError::Write { path, source } => write!(formatter, "cannot write {}: {source}", path.display()),
            SinkError::Refused { path, source } => write!(formatter, "{}: {source}", path.display()),
        }
    }
}

impl std::error::Error for SinkError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SinkError::Write { source, .. } => Some(source),
            SinkError::Refused { source, .. } => Some(source),
        }
    }
}

#[cfg(test)]
mod tests;
