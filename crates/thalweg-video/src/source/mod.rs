//! Where the frames and samples of a sender come from.

#[cfg(feature = "v4l2")]
mod camera;
#[cfg(any(test, feature = "v4l2"))]
mod captured;
mod file;
mod picture;
mod sound;

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::format::VideoFormat;
use crate::wav::WavError;
use crate::y4m::Y4mError;

#[cfg(feature = "v4l2")]
pub use camera::{CameraSource, CameraWishes};
pub use file::{RawSource, Y4mSource};
pub use picture::PictureSource;
pub use sound::{SoundSource, ToneSource, WavSource};

/// Gives frames, one after the other.
pub trait FrameSource: Send {
    /// The format of every frame.
    fn format(&self) -> VideoFormat;

    /// Width to height of a pixel. Default 1:1.
    fn pixel_aspect(&self) -> (u16, u16) {
        (1, 1)
    }

    /// Writes the next frame into `frame`, which has the octets of one.
    ///
    /// # Errors
    ///
    /// The frame cannot be had; the stream then ends.
    fn fill(&mut self, frame: &mut [u8]) -> Result<Filled, SourceError>;

    /// Whether every further frame is the last one again, so that nobody needs to have it written once more.
    fn is_still(&self) -> bool {
        false
    }
}

/// What a source made of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// The frame is written.
    Frame,
    /// There is none any more; what was written does not count.
    End,
}

/// What happens at the end of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtEnd {
    /// The stream ends.
    #[default]
    Stop,
    /// The file begins again, for ever. A file of one frame is read twice, and changes to it are not followed.
    Repeat,
}

/// Why a source gives no frame or sample.
#[derive(Debug)]
pub enum SourceError {
    /// The file cannot be opened or read.
    Read {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is no such file, or its pictures cannot be sent.
    Refused {
        /// Its path.
        path: PathBuf,
        /// The reason.
        source: Y4mError,
    },
    /// The file is no sound that can be sent.
    Sound {
        /// Its path.
        path: PathBuf,
        /// The reason.
        source: WavError,
    },
    /// The file has no whole number of frames, or none.
    Length {
        /// Its path.
        path: PathBuf,
        /// Octets of it, or of its last frame.
        octets: u64,
        /// Octets of a frame.
        frame_octets: usize,
    },
    /// A camera cannot be opened, captures other pictures, or fails.
    Camera {
        /// The path of its device.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A line of the file is longer than lines are or begins no frame.
    Line {
        /// Its path.
        path: PathBuf,
        /// Frames before it.
        frames: u64,
    },
}

impl fmt::Display for SourceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceError::Read { path, source } => write!(formatter, "cannot read {}: {source}", path.display()),
            SourceError::Refused { path, source } => write!(formatter, "{}: {source}", path.display()),
            SourceError::Sound { path, source } => write!(formatter, "{}: {source}", path.display()),
            SourceError::Length { path, octets, frame_octets } => write!(
                formatter,
                "{} ends after {octets} octets, and a frame takes {frame_octets}: check size and format",
                path.display()
            ),
            SourceError::Camera { path, reason } => write!(formatter, "the camera {}: {reason}", path.display()),
            SourceError::Line { path, frames } => {
                write!(formatter, "{} has no FRAME line after {frames} frames", path.display())
            }
        }
    }
}

impl std::error::Error for SourceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SourceError::Read { source, .. } => Some(source),
            SourceError::Refused { source, .. } => Some(source),
            SourceError::Sound { source, .. } => Some(source),
            SourceError::Length { .. } | SourceError::Camera { .. } | SourceError::Line { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests;
