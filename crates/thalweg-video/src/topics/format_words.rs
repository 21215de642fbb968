//! A video format as samples tell it.

use thalweg::Topic;

use super::TopicError;
use crate::format::{FrameRate, PixelFormat, Scan, VideoFormat};

/// A video format as samples tell it; [`VideoFormat`] is the checked form.
#[derive(Topic, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[topic(name = "thalweg::video::FormatWords")]
pub struct FormatWords {
    /// Frames a second, with the denominator.
    pub rate_numerator: u32,
    /// See `rate_numerator`.
    pub rate_denominator: u32,
    /// Pixels of a line.
    pub width: u16,
    /// Lines of a frame, both fields together.
    pub height: u16,
    /// 1 YCbCr 4:2:2 of 10 bits, 2 YCbCr 4:2:2 of 8 bits, 3 RGB of 8 bits.
    pub pixels: u8,
    /// 0 progressive, 1 interlaced, 2 segmented frame.
    pub scan: u8,
}

impl From<VideoFormat> for FormatWords {
    fn from(format: VideoFormat) -> FormatWords {
        FormatWords {
            rate_numerator: format.rate().numerator(),
            rate_denominator: format.rate().denominator(),
            width: format.width(),
            height: format.height(),
            pixels: match format.pixels() {
                PixelFormat::Yuv422Bits10 => 1,
                PixelFormat::Yuv422Bits8 => 2,
                PixelFormat::Rgb8 => 3,
            },
            scan: match format.scan() {
                Scan::Progressive => 0,
                Scan::Interlaced => 1,
                Scan::SegmentedFrame => 2,
            },
        }
    }
}

impl TryFrom<FormatWords> for VideoFormat {
    type Error = TopicError;

    fn try_from(words: FormatWords) -> Result<VideoFormat, TopicError> {
        let pixels = match words.pixels {
            1 => PixelFormat::Yuv422Bits10,
            2 => PixelFormat::Yuv422Bits8,
            3 => PixelFormat::Rgb8,
            found => return Err(TopicError::UnknownWord { word: "pixels", found }),
        };
        let scan = match words.scan {
            0 => Scan::Progressive,
            1 => Scan::Interlaced,
            2 => Scan::SegmentedFrame,
            found => return Err(TopicError::UnknownWord { word: "scan", found }),
        };
        let rate = FrameRate::new(words.rate_numerator, words.rate_denominator)?;
        Ok(VideoFormat::new(pixels, (words.width, words.height), rate, scan)?)
    }
}
