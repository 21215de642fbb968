//! YUV4MPEG2, the files in which mjpegtools, FFmpeg and x264 exchange uncompressed video, with 4:2:2 pictures.
//!
//! Their planes are packed into the pixel groups of RFC 4175 and back without a change of any sample; what would need one is
//! refused.

mod planes;

use std::fmt;

use crate::format::{FormatError, FrameRate, PixelFormat, Scan, VideoFormat};

pub use planes::{pack, planar_octets, unpack};

/// The longest header or frame line that is read, in octets without the line feed.
pub const LINE_OCTETS_MAX: usize = 1024;

/// Reads the first line of a file, without its line feed.
///
/// A file that names no rate has 25 frames a second, as FFmpeg reads it.
///
/// # Errors
///
/// The line is none of YUV4MPEG2, its pictures are not 4:2:2 with 8 or 10 bits or have the full range, the order of its fields is not
/// one that is sent, or the parts do not fit together.
pub fn read_header(line: &[u8]) -> Result<VideoFormat, Y4mError> {
    let text = std::str::from_utf8(line).map_err(|_| Y4mError::Magic)?;
    let mut words = text.split(' ');
    if words.next() != Some(MAGIC) {
        return Err(Y4mError::Magic);
    }
    let (mut width, mut height, mut rate) = (None, None, FrameRate::PAL);
    let (mut scan, mut pixels) = (Scan::Progressive, None);
    for word in words.filter(|word| !word.is_empty()) {
        let broken = || Y4mError::Word(word.chars().take(WORD_SHOWN_MAX).collect());
        // Words of several octets in one character begin no known one.
        let Some((tag, value)) = word.split_at_checked(1) else { continue };
        match tag {
            "W" => width = Some(value.parse::<u16>().map_err(|_| broken())?),
            "H" => height = Some(value.parse::<u16>().map_err(|_| broken())?),
            "F" => {
                let (numerator, denominator) = value.split_once(':').ok_or_else(broken)?;
                let number = |text: &str| text.parse().map_err(|_| broken());
                rate = FrameRate::new(number(numerator)?, number(denominator)?).map_err(Y4mError::Format)?;
            }
            "I" => scan = scan_of(value).ok_or_else(broken)??,
            "C" => pixels = Some(pixels_of(value)?),
            "X" if value == FULL_RANGE => return Err(Y4mError::FullRange),
            // The form of pixels, which is told apart, comments, and what others have added.
            _ => {}
        }
    }
    let pixels = pixels.map_or_else(|| pixels_of(DEFAULT_COLOURS), Ok)?;
    let size = (width.ok_or(Y4mError::Missing("width"))?, height.ok_or(Y4mError::Missing("height"))?);
    VideoFormat::new(pixels, size, rate, scan).map_err(Y4mError::Format)
}

/// Reads width to height of a pixel in the first line of a file, without its line feed; in the lowest terms. 1:1 where the line does not
/// tell it, or says by a zero that it is not known.
///
/// # Errors
///
/// It is no ratio, or one of numbers that are too large.
pub fn read_pixel_aspect(line: &[u8]) -> Result<(u16, u16), Y4mError> {
    let text = String::from_utf8_lossy(line);
    let Some(word) = text.split(' ').rfind(|word| word.starts_with('A')) else { return Ok((1, 1)) };
    let broken = || Y4mError::Word(word.chars().take(WORD_SHOWN_MAX).collect());
    let (width, height) = word[1..].split_once(':').ok_or_else(broken)?;
    let side = |text: &str| text.parse::<u32>().map_err(|_| broken());
    let (width, height) = (side(width)?, side(height)?);
    if width == 0 || height == 0 {
        return Ok((1, 1));
    }
    let divisor = common_divisor(width, height);
    let lowest = |side: u32| u16::try_from(side / divisor).map_err(|_| broken());
    Ok((lowest(width)?, lowest(height)?))
}

/// The greatest number that divides both.
fn common_divisor(first: u32, second: u32) -> u32 {
    if second == 0 { first } else { common_divisor(second, first % second) }
}

/// The first line of a file of these pictures, with its line feed; their pixels are square.
///
/// # Errors
///
/// The pictures are RGB, for which the files have no form.
pub fn header(format: VideoFormat) -> Result<String, Y4mError> {
    header_with_aspect(format, (1, 1))
}

/// As [`header`], of pictures whose pixels have this width to height.
///
/// # Errors
///
/// As there.
pub fn header_with_aspect(format: VideoFormat, (pixel_width, pixel_height): (u16, u16)) -> Result<String, Y4mError> {
    let colours = match format.pixels() {
        // FFmpeg writes the second word for programs older than the first, and so do others.
        PixelFormat::Yuv422Bits10 => "C422p10 XYSCSS=422P10",
        PixelFormat::Yuv422Bits8 => "C422 XYSCSS=422",
        PixelFormat::Rgb8 => return Err(Y4mError::Rgb),
    };
    let scan = match format.scan() {
        // Both fields of a segmented frame are of one moment: such a picture is progressive.
        Scan::Progressive | Scan::SegmentedFrame => 'p',
        Scan::Interlaced => 't',
    };
    let (width, height, rate) = (format.width(), format.height(), format.rate());
    let (numerator, denominator) = (rate.numerator(), rate.denominator());
    let aspect = format!("{pixel_width}:{pixel_height}");
    Ok(format!("{MAGIC} W{width} H{height} F{numerator}:{denominator} I{scan} A{aspect} {colours}\n"))
}

/// Whether the line before a picture, without its line feed, is one.
pub fn is_frame_line(line: &[u8]) -> bool {
    line.strip_prefix(b"FRAME").is_some_and(|rest| rest.is_empty() || rest[0] == b' ')
}

/// The line before a picture, with its line feed.
pub const FRAME_LINE: &[u8] = b"FRAME\n";

/// The scan of an interlace word; `None` for one that is unknown.
fn scan_of(value: &str) -> Option<Result<Scan, Y4mError>> {
    match value {
        "p" | "?" => Some(Ok(Scan::Progressive)),
        "t" => Some(Ok(Scan::Interlaced)),
        "b" => Some(Err(Y4mError::Fields("the bottom field first"))),
        "m" => Some(Err(Y4mError::Fields("an order of fields that changes"))),
        _ => None,
    }
}

fn pixels_of(value: &str) -> Result<PixelFormat, Y4mError> {
    match value {
        "422" => Ok(PixelFormat::Yuv422Bits8),
        "422p10" => Ok(PixelFormat::Yuv422Bits10),
        other => Err(Y4mError::Colours(other.chars().take(WORD_SHOWN_MAX).collect())),
    }
}

/// Why a file is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Y4mError {
    /// It does not begin as such a file.
    Magic,
    /// A word of the first line cannot be read.
    Word(String),
    /// The first line lacks this.
    Missing(&'static str),
    /// The samples are other than 4:2:2 with 8 or 10 bits.
    Colours(String),
    /// The samples have the full range, and those that are sent the narrow one.
    FullRange,
    /// The fields come in this order.
    Fields(&'static str),
    /// Size, rate and scan do not fit together.
    Format(FormatError),
    /// RGB has no form in such files.
    Rgb,
    /// A sample of 10 bits is larger than they hold.
    Sample(u16),
}

impl fmt::Display for Y4mError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Y4mError::Magic => write!(formatter, "this is no YUV4MPEG2 file: it does not begin with {MAGIC:?}"),
            Y4mError::Word(word) => write!(formatter, "the word {word:?} of the YUV4MPEG2 header cannot be read"),
            Y4mError::Missing(what) => write!(formatter, "the YUV4MPEG2 header has no {what}"),
            Y4mError::Colours(colours) => write!(
                formatter,
                "pictures in {colours:?} are not sent as they are: convert them to 4:2:2, \
                 such as by `ffmpeg -i IN -pix_fmt yuv422p10le -strict -1 OUT.y4m`"
            ),
            Y4mError::FullRange => formatter.write_str(
                "pictures of full range (XCOLORRANGE=FULL) are not sent as they are: convert them to the narrow one, \
                 such as by `ffmpeg -i IN -vf scale=out_range=tv -strict -1 OUT.y4m`",
            ),
            Y4mError::Fields(order) => {
                write!(formatter, "the file has {order}: only the top field is sent first; convert it")
            }
            Y4mError::Format(error) => error.fmt(formatter),
            Y4mError::Rgb => formatter.write_str("YUV4MPEG2 has no form for RGB: write a raw file"),
            Y4mError::Sample(sample) => write!(formatter, "a sample of {sample} does not fit 10 bits"),
        }
    }
}

impl std::error::Error for Y4mError {}

const MAGIC: &str = "YUV4MPEG2";
/// What FFmpeg says behind an X of samples that have the full range.
const FULL_RANGE: &str = "COLORRANGE=FULL";
/// What a file without a word for it has.
const DEFAULT_COLOURS: &str = "420jpeg";
/// Characters of a foreign word that an error shows.
const WORD_SHOWN_MAX: usize = 40;

#[cfg(test)]
mod tests;
