//! Pictures whose every octet is known.

use std::time::Duration;

use thalweg_video::format::{FrameRate, PixelFormat, Scan, VideoFormat};
use thalweg_video::source::{Filled, FrameSource, SourceError};

/// A small picture of 240 lines at 50 frames a second, in 45 packets of two lines.
pub fn small(scan: Scan) -> VideoFormat {
    VideoFormat::new(PixelFormat::Yuv422Bits10, (320, 240), FrameRate::new(50, 1).unwrap(), scan).unwrap()
}

/// The octet at a place of frame `number`.
pub fn octet(number: u64, place: usize) -> u8 {
    (number as usize * 31 + place * 7 + place / 251) as u8
}

/// The number of the frame with this first octet, below 256.
pub fn number_of(first: u8) -> u64 {
    // 31 times 223 is 1 in eight bits.
    u64::from(first.wrapping_mul(223))
}

/// Frames that are numbered from 0.
pub struct Numbered {
    format: VideoFormat,
    next: u64,
    end: u64,
    /// How long each takes to make.
    pub delay: Duration,
}

impl Numbered {
    pub fn new(format: VideoFormat, end: u64) -> Numbered {
        Numbered { format, next: 0, end, delay: Duration::ZERO }
    }
}

impl FrameSource for Numbered {
    fn format(&self) -> VideoFormat {
        self.format
    }

    fn fill(&mut self, frame: &mut [u8]) -> Result<Filled, SourceError> {
        if self.next == self.end {
            return Ok(Filled::End);
        }
        std::thread::sleep(self.delay);
        frame.iter_mut().enumerate().for_each(|(place, out)| *out = octet(self.next, place));
        self.next += 1;
        Ok(Filled::Frame)
    }
}
