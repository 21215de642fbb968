//! Video formats: how pixels lie in memory, sizes, exact rates and scans.

mod pixels;
mod rate;

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

pub use pixels::{PixelFormat, PixelGroup};
pub use rate::FrameRate;

/// The widest picture in pixels: 8K UHD with room; the wire itself ends at 32,767 (RFC 4175 §4.2).
pub const WIDTH_MAX: u16 = 8192;
/// The highest picture in lines: as high as it may be wide.
pub const HEIGHT_MAX: u16 = 8192;
/// The largest frame in octets: RGB in 8K UHD takes 99.5 million, and a receiver holds several frames.
pub const FRAME_OCTETS_MAX: usize = 128 << 20;

/// The order in which the lines of a frame are taken and sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scan {
    /// All lines of one moment, from top to bottom.
    Progressive,
    /// Two fields of two moments, half a frame time apart: the even lines (counted from 0), then the odd ones.
    Interlaced,
    /// One moment, sent as two segments like fields ("PsF", SMPTE RP 211): the form of the paper of 2006.
    SegmentedFrame,
}

impl Scan {
    /// The parts of a frame that are sent one after the other: 1 or 2.
    pub const fn fields(self) -> u16 {
        match self {
            Scan::Progressive => 1,
            Scan::Interlaced | Scan::SegmentedFrame => 2,
        }
    }
}

impl fmt::Display for Scan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Scan::Progressive => "progressive",
            Scan::Interlaced => "interlaced",
            Scan::SegmentedFrame => "psf",
        })
    }
}

impl FromStr for Scan {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Scan, FormatError> {
        match text {
            "progressive" => Ok(Scan::Progressive),
            "interlaced" => Ok(Scan::Interlaced),
            "psf" => Ok(Scan::SegmentedFrame),
            _ => Err(FormatError::Unreadable { what: "scan", expected: "progressive, interlaced or psf" }),
        }
    }
}

/// One of the two parts of an interlaced or segmented frame; a progressive frame consists of its first field alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// The even lines, counted from 0; the F bit is 0.
    First,
    /// The odd lines; the F bit is 1.
    Second,
}

impl Field {
    /// 0 or 1, as the F bit of RFC 4175 §4.2 has it.
    pub const fn bit(self) -> u16 {
        match self {
            Field::First => 0,
            Field::Second => 1,
        }
    }
}

/// A video format whose parts fit together: pixels, size, rate and scan.
///
/// A frame in memory holds its lines from top to bottom without gaps, whatever the scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VideoFormat {
    pixels: PixelFormat,
    width: u16,
    height: u16,
    rate: FrameRate,
    scan: Scan,
}

impl VideoFormat {
    /// Checks that the parts fit together.
    ///
    /// # Errors
    ///
    /// The size is zero or beyond [`WIDTH_MAX`], [`HEIGHT_MAX`] or [`FRAME_OCTETS_MAX`]; the width is no whole number
    /// of pixel groups; or a scan of two fields has an odd height.
    pub fn new(
        pixels: PixelFormat,
        (width, height): (u16, u16),
        rate: FrameRate,
        scan: Scan,
    ) -> Result<VideoFormat, FormatError> {
        let group = pixels.group();
        if width == 0 || width > WIDTH_MAX || height == 0 || height > HEIGHT_MAX {
            return Err(FormatError::Size { width, height });
        }
        if !width.is_multiple_of(group.pixels) {
            return Err(FormatError::Width { width, pixels, multiple: group.pixels });
        }
        if !height.is_multiple_of(scan.fields()) {
            return Err(FormatError::Height { height, scan });
        }
        let format = VideoFormat { pixels, width, height, rate, scan };
        match format.frame_octets() {
            octets if octets > FRAME_OCTETS_MAX => Err(FormatError::Octets { octets }),
            _ => Ok(format),
        }
    }

    /// How pixels lie in memory and on the wire.
    pub const fn pixels(&self) -> PixelFormat {
        self.pixels
    }

    /// Pixels of a line.
    pub const fn width(&self) -> u16 {
        self.width
    }

    /// Lines of a frame, of both fields together.
    pub const fn height(&self) -> u16 {
        self.height
    }

    /// Frames a second; an interlaced format has two fields in each.
    pub const fn rate(&self) -> FrameRate {
        self.rate
    }

    /// The order of the lines.
    pub const fn scan(&self) -> Scan {
        self.scan
    }

    /// The same format with another scan.
    ///
    /// # Errors
    ///
    /// As [`VideoFormat::new`].
    pub fn with_scan(self, scan: Scan) -> Result<VideoFormat, FormatError> {
        VideoFormat::new(self.pixels, (self.width, self.height), self.rate, scan)
    }

    /// Octets of a line.
    pub const fn line_octets(&self) -> usize {
        let group = self.pixels.group();
        self.width as usize / group.pixels as usize * group.octets as usize
    }

    /// Octets of a frame.
    pub const fn frame_octets(&self) -> usize {
        self.line_octets() * self.height as usize
    }

    /// Lines of a field; all lines of a progressive frame.
    pub const fn field_height(&self) -> u16 {
        self.height / self.scan.fields()
    }

    /// Octets of a field; of the frame if it is progressive.
    pub const fn field_octets(&self) -> usize {
        self.line_octets() * self.field_height() as usize
    }

    /// The line of the frame at which line `line` of `field` lies.
    pub const fn frame_line(&self, field: Field, line: u16) -> u16 {
        match self.scan {
            Scan::Progressive => line,
            Scan::Interlaced | Scan::SegmentedFrame => 2 * line + field.bit(),
        }
    }

    /// Octets of picture a second.
    pub fn octets_per_second(&self) -> f64 {
        self.frame_octets() as f64 * self.rate.hertz()
    }

    /// The time of one frame, to the nanosecond below.
    pub fn frame_time(&self) -> Duration {
        self.rate.time_of(1)
    }
}

impl fmt::Display for VideoFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let VideoFormat { pixels, width, height, rate, scan } = self;
        write!(formatter, "{width}x{height} {pixels} {rate} {scan}")
    }
}

/// Reads a size such as `1920x1080`.
///
/// # Errors
///
/// The text is not two numbers from 0 to 65,535 with an `x` between them.
pub fn parse_size(text: &str) -> Result<(u16, u16), FormatError> {
    let size = text.split_once('x').and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    size.ok_or(FormatError::Unreadable { what: "size", expected: "WIDTHxHEIGHT, such as 1920x1080" })
}

/// Why a video format is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatError {
    /// The text of a part is none of the known ones.
    Unreadable {
        /// The part of the format.
        what: &'static str,
        /// Texts that are read.
        expected: &'static str,
    },
    /// The picture is empty or too large.
    Size {
        /// Pixels of a line.
        width: u16,
        /// Lines of a frame.
        height: u16,
    },
    /// A line is no whole number of pixel groups.
    Width {
        /// Pixels of a line.
        width: u16,
        /// The format of the pixels.
        pixels: PixelFormat,
        /// What the width must be a multiple of.
        multiple: u16,
    },
    /// Two fields of an odd number of lines would differ.
    Height {
        /// Lines of a frame.
        height: u16,
        /// The scan of two fields.
        scan: Scan,
    },
    /// A frame takes too much memory.
    Octets {
        /// Octets of a frame.
        octets: usize,
    },
    /// A rate is zero, too low, too high or written with numbers that are too large.
    Rate {
        /// Frames…
        numerator: u32,
        /// …in this many seconds.
        denominator: u32,
    },
}

impl fmt::Display for FormatError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            FormatError::Unreadable { what, expected } => {
                write!(formatter, "the {what} cannot be read; give {expected}")
            }
            FormatError::Size { width, height } => {
                write!(formatter, "a picture of {width}x{height} is not between 1x1 and {WIDTH_MAX}x{HEIGHT_MAX}")
            }
            FormatError::Width { width, pixels, multiple } => {
                write!(formatter, "a width of {width} pixels does not fit {pixels}: give a multiple of {multiple}")
            }
            FormatError::Height { height, scan } => {
                write!(
                    formatter,
                    "a height of {height} lines is odd, and {scan} video needs two fields of equal height"
                )
            }
            FormatError::Octets { octets } => {
                write!(formatter, "a frame of {octets} octets is larger than {FRAME_OCTETS_MAX}")
            }
            FormatError::Rate { numerator, denominator } => write!(
                formatter,
                "a rate of {numerator}/{denominator} is refused: give {} to {} frames a second with numbers up to {}",
                rate::HERTZ_MIN,
                rate::HERTZ_MAX,
                rate::NUMBER_MAX
            ),
        }
    }
}

impl std::error::Error for FormatError {}
