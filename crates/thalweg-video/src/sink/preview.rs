//! Pictures as coloured characters on a terminal: two pixels in each.

use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use thalweg_base::time::Instant;

use super::{FrameSink, SinkError};
use crate::format::{PixelFormat, VideoFormat};
use crate::receiver::ReceivedPicture;

/// Draws pictures on a terminal that knows colours of 24 bits, ten a second at most.
#[derive(Debug)]
pub struct PreviewSink<W> {
    format: VideoFormat,
    out: W,
    /// Characters across and down.
    size: (usize, usize),
    drawn_at: Option<Instant>,
    text: String,
}

impl<W: Write + Send> PreviewSink<W> {
    /// Draws pictures of `format` on `out`, within so many characters across and down, as large as their shape allows.
    pub fn new(format: VideoFormat, out: W, (columns, rows): (u16, u16)) -> PreviewSink<W> {
        let (columns, rows) = (usize::from(columns.max(2)), usize::from(rows.max(1)));
        let (width, height) = (usize::from(format.width()), usize::from(format.height()));
        // A character is about twice as high as it is wide, and shows a pixel above another one.
        let down = (columns * height).div_ceil(2 * width).clamp(1, rows);
        let across = (2 * down * width).div_ceil(height).clamp(1, columns);
        PreviewSink { format, out, size: (across, down), drawn_at: None, text: String::new() }
    }

    /// The picture as text.
    fn draw(&mut self, octets: &[u8]) {
        let (across, down) = self.size;
        let (width, height) = (usize::from(self.format.width()), usize::from(self.format.height()));
        self.text.clear();
        self.text.push_str(if self.drawn_at.is_none() { "\x1b[2J\x1b[H" } else { "\x1b[H" });
        for row in 0..down {
            for column in 0..across {
                let x = (2 * column + 1) * width / (2 * across);
                let [upper, lower] = [0, 1].map(|half| {
                    let y = (2 * (2 * row + half) + 1) * height / (4 * down);
                    colour(self.format, octets, x, y)
                });
                // Writing to a text cannot fail.
                let _ = write!(
                    self.text,
                    "\x1b[38;2;{};{};{}m\x1b[48;2;{};{};{}m▀",
                    upper[0], upper[1], upper[2], lower[0], lower[1], lower[2]
                );
            }
            self.text.push_str("\x1b[0m\r\n");
        }
    }

    fn show(&mut self) -> Result<(), SinkError> {
        let shown = self.out.write_all(self.text.as_bytes()).and_then(|()| self.out.flush());
        shown.map_err(|source| SinkError::Write { path: PathBuf::from("the terminal"), source })
    }
}

impl<W: Write + Send> FrameSink for PreviewSink<W> {
    fn take(&mut self, picture: &ReceivedPicture) -> Result<(), SinkError> {
        if self.drawn_at.is_some_and(|drawn| picture.deadline < drawn + PERIOD) {
            return Ok(());
        }
        self.draw(&picture.octets);
        self.drawn_at = Some(picture.deadline);
        self.show()
    }
}

/// Red, green and blue of a pixel.
fn colour(format: VideoFormat, octets: &[u8], x: usize, y: usize) -> [u8; 3] {
    let group = format.pixels().group();
    let pixels = usize::from(group.pixels);
    let start = y * format.line_octets() + x / pixels * usize::from(group.octets);
    let Some(group) = octets.get(start..start + usize::from(group.octets)) else { return [0; 3] };
    match (format.pixels(), group) {
        (PixelFormat::Rgb8, &[red, green, blue]) => [red, green, blue],
        (PixelFormat::Yuv422Bits8, &[blue, first, red, second]) => {
            of_video([if x.is_multiple_of(2) { first } else { second }, blue, red])
        }
        // The upper eight of ten bits each: Cb, Y, Cr, Y.
        (PixelFormat::Yuv422Bits10, &[a, b, c, d, e]) => {
            let upper = |high: u8, low: u8, shift: u32| (u16::from_be_bytes([high, low]) >> shift) as u8;
            let (blue, first, red, second) = (a, upper(b, c, 6), upper(c, d, 4), upper(d, e, 2));
            of_video([if x.is_multiple_of(2) { first } else { second }, blue, red])
        }
        _ => [0; 3],
    }
}

/// Red, green and blue of luma and the differences of colour (ITU-R BT.709, narrow range).
fn of_video([luma, blue, red]: [u8; 3]) -> [u8; 3] {
    let luma = 1.164 * (f32::from(luma) - 16.0);
    let (blue, red) = (f32::from(blue) - 128.0, f32::from(red) - 128.0);
    // The conversion cuts what is outside.
    [luma + 1.793 * red, luma - 0.213 * blue - 0.533 * red, luma + 2.112 * blue].map(|part| part.round() as u8)
}

/// The least time between two pictures: a terminal is no display.
const PERIOD: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{FrameRate, Scan};

    fn format(pixels: PixelFormat, size: (u16, u16)) -> VideoFormat {
        VideoFormat::new(pixels, size, FrameRate::PAL, Scan::Progressive).unwrap()
    }

    #[track_caller]
    fn check(pixels: PixelFormat, group: &[u8], expect: [[u8; 3]; 2]) {
        let format = format(pixels, (2, 1));
        let found = [0, 1].map(|x| colour(format, group, x, 0));
        let is_near = |(found, expect): (&u8, &u8)| found.abs_diff(*expect) <= 2;
        assert!(found.iter().flatten().zip(expect.iter().flatten()).all(is_near), "{found:?}");
    }

    #[test]
    fn each_kind_of_pixels_has_its_colours() {
        check(PixelFormat::Rgb8, &[1, 2, 3, 200, 100, 50], [[1, 2, 3], [200, 100, 50]]);
        check(PixelFormat::Yuv422Bits8, &[128, 235, 128, 16], [[255; 3], [0; 3]]);
        // Red of BT.709: luma 63, blue 102, red 240; with ten bits four times as much.
        check(PixelFormat::Yuv422Bits8, &[102, 63, 240, 63], [[255, 0, 0]; 2]);
        let [blue, luma, red] = [102_u64 * 4, 63 * 4, 240 * 4];
        let packed = blue << 30 | luma << 20 | red << 10 | luma;
        check(PixelFormat::Yuv422Bits10, &packed.to_be_bytes()[3..], [[255, 0, 0]; 2]);
    }

    #[test]
    fn a_picture_keeps_its_shape_within_the_terminal() {
        let size = |picture, terminal| PreviewSink::new(format(PixelFormat::Rgb8, picture), Vec::new(), terminal).size;
        assert_eq!(size((1920, 1080), (80, 24)), (80, 23));
        assert_eq!(size((1920, 1080), (200, 20)), (72, 20));
        assert_eq!(size((2, 1), (80, 24)), (80, 20));
        assert_eq!(size((8, 8192), (80, 24)), (1, 24));
    }

    #[test]
    fn a_line_of_text_shows_two_of_pixels() {
        let mut sink = PreviewSink::new(format(PixelFormat::Rgb8, (1, 2)), Vec::new(), (80, 1));
        sink.draw(&[1, 2, 3, 4, 5, 6]);
        let cell = "\x1b[38;2;1;2;3m\x1b[48;2;4;5;6m▀";
        assert_eq!(sink.text, format!("\x1b[2J\x1b[H{cell}\x1b[0m\r\n"));
    }
}
