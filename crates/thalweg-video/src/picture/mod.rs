//! A test picture whose every line tells which frame it is from, and the check of it.
//!
//! Colour bars, a moving white box, and the frame's number with a checksum in digits for people. For machines each line
//! carries its number, its frame's and a checksum in the lowest bits of some pixels, several times: enough to prove of
//! each line which frame it is from, pixel by pixel.

mod code;
mod font;
mod palette;

#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;

use crate::format::VideoFormat;
use crate::receiver::LineSet;
use code::{CODE_GROUPS, LineCode, SEGMENT_PIXELS, checksum};
use font::{DIGIT_HEIGHT, DIGIT_WIDTH};
use palette::Colour;

/// Digits of the frame's number, in decimal, that people read.
const NUMBER_DIGITS: usize = 8;
/// Digits of its checksum, in hexadecimal.
const CHECKSUM_DIGITS: usize = 4;
const DIGITS: usize = NUMBER_DIGITS + CHECKSUM_DIGITS;
/// Lines and groups that the box moves from frame to frame.
const BOX_STEP: usize = 4;

/// A generator and checker of test pictures of one format.
#[derive(Clone, Debug)]
pub struct TestPicture {
    format: VideoFormat,
    layout: Layout,
    /// A line of bars, of which each line is a copy.
    bars: Vec<u8>,
    /// A line of the box's colour.
    white: Vec<u8>,
    black: Vec<u8>,
    /// The line that a checked one is compared with.
    expected: Vec<u8>,
}

/// Where things lie, in lines and pixel groups.
#[derive(Clone, Copy, Debug)]
struct Layout {
    group_octets: usize,
    line_groups: usize,
    segment_groups: usize,
    height: usize,
    box_lines: usize,
    box_groups: usize,
    /// The first line of the digits, and what a point of them takes; `None` if there is no room.
    digits: Option<Digits>,
}

#[derive(Clone, Copy, Debug)]
struct Digits {
    first_line: usize,
    first_group: usize,
    point_lines: usize,
    point_groups: usize,
}

/// Where the pixels of a line are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineOrigin {
    /// All are as the frame of this number has them.
    Frame(u32),
    /// Each part is as some frame has it, but not all as one.
    Mixed,
    /// Some are as no frame has them.
    Damaged,
}

/// Where the lines of a picture are from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PictureReport {
    /// The number of the frame that most lines which were not concealed are from; `None` if none tells.
    pub number: Option<u32>,
    /// Lines from that frame, concealed ones included: concealment may show the same pixels.
    pub lines_own: usize,
    /// Concealed lines that are from another frame, mixed or damaged, as concealment makes them.
    pub lines_concealed: usize,
    /// Lines that should be from that frame and are not: the receiver is wrong, or the sender.
    pub lines_wrong: usize,
}

impl PictureReport {
    /// Whether every line that was not concealed is from one frame.
    pub fn is_proved(&self) -> bool {
        self.number.is_some() && self.lines_wrong == 0
    }
}

/// Why there is no test picture of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureError {
    /// Pixels of a line.
    pub width: u16,
    /// Pixels that a line needs.
    pub needed: u16,
}

impl fmt::Display for PictureError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PictureError { width, needed } = self;
        write!(formatter, "a line of {width} pixels has no room for the test picture's code: give {needed} or more")
    }
}

impl std::error::Error for PictureError {}

impl TestPicture {
    /// Test pictures of a format.
    ///
    /// # Errors
    ///
    /// A line has fewer than 16 pixel groups.
    pub fn new(format: VideoFormat) -> Result<TestPicture, PictureError> {
        let group = format.pixels().group();
        let line_groups = usize::from(format.width() / group.pixels);
        if line_groups < CODE_GROUPS {
            let needed = group.pixels * u16::try_from(CODE_GROUPS).expect("a small number");
            return Err(PictureError { width: format.width(), needed });
        }
        let layout = Layout::new(format);
        let line = |colour: &dyn Fn(usize) -> Colour| -> Vec<u8> {
            let groups = (0..line_groups).map(|at| colour(at).group(format.pixels()));
            groups.flat_map(|group| group.into_iter().take(layout.group_octets)).collect()
        };
        Ok(TestPicture {
            format,
            layout,
            bars: line(&|at| Colour::BARS[at * Colour::BARS.len() / line_groups]),
            white: line(&|_| Colour::WHITE),
            black: line(&|_| Colour::BLACK),
            expected: vec![0; format.line_octets()],
        })
    }

    /// The format of the pictures.
    pub fn format(&self) -> VideoFormat {
        self.format
    }

    /// Draws frame `number`.
    ///
    /// # Panics
    ///
    /// `frame` is not as large as a frame of the format.
    pub fn draw(&self, number: u32, frame: &mut [u8]) {
        assert_eq!(frame.len(), self.format.frame_octets(), "a frame of the picture's format");
        for (line, octets) in frame.chunks_exact_mut(self.format.line_octets()).enumerate() {
            self.draw_line(number, line, octets);
        }
    }

    /// Tells where line `line` of a frame is from; `octets` are those of the line. `guess` is compared first.
    ///
    /// # Panics
    ///
    /// `octets` are not as many as a line of the format has.
    pub fn line_origin(&mut self, line: u16, octets: &[u8], guess: u32) -> LineOrigin {
        assert_eq!(octets.len(), self.format.line_octets(), "a line of the picture's format");
        if self.compare(guess, line, octets, 0..octets.len()) {
            return LineOrigin::Frame(guess);
        }
        let mut first = None;
        let mut is_mixed = false;
        for (segment, range) in self.layout.segments() {
            let code = LineCode::read(self.format.pixels(), segment, &octets[range.clone()]);
            let Some(number) = code.filter(|code| code.line == line).map(|code| code.number) else {
                return LineOrigin::Damaged;
            };
            if !self.compare(number, line, octets, range) {
                return LineOrigin::Damaged;
            }
            is_mixed |= *first.get_or_insert(number) != number;
        }
        match first {
            Some(number) if !is_mixed => LineOrigin::Frame(number),
            _ => LineOrigin::Mixed,
        }
    }

    /// Checks a picture as a receiver gave it out: each line that was not concealed must be from one frame.
    ///
    /// # Panics
    ///
    /// `frame` is not as large as a frame of the format.
    pub fn check(&mut self, frame: &[u8], concealed: &LineSet) -> PictureReport {
        assert_eq!(frame.len(), self.format.frame_octets(), "a frame of the picture's format");
        let line_octets = self.format.line_octets();
        let number = self.number(frame, concealed);
        let mut report = PictureReport { number, ..PictureReport::default() };
        for (line, octets) in (0..self.format.height()).zip(frame.chunks_exact(line_octets)) {
            let origin = self.line_origin(line, octets, number.unwrap_or_default());
            let count = match origin {
                LineOrigin::Frame(found) if Some(found) == number => &mut report.lines_own,
                _ if concealed.contains(line) => &mut report.lines_concealed,
                _ => &mut report.lines_wrong,
            };
            *count += 1;
        }
        report
    }

    /// The number that most lines which were not concealed tell (Boyer and Moore's vote).
    fn number(&self, frame: &[u8], concealed: &LineSet) -> Option<u32> {
        let (mut number, mut votes) = (None, 0_usize);
        for (line, octets) in (0..self.format.height()).zip(frame.chunks_exact(self.format.line_octets())) {
            let code = LineCode::read(self.format.pixels(), 0, octets);
            let told = code.filter(|code| code.line == line && !concealed.contains(line)).map(|code| code.number);
            match told {
                None => {}
                Some(told) if number == Some(told) => votes += 1,
                Some(told) if votes == 0 => (number, votes) = (Some(told), 1),
                Some(_) => votes -= 1,
            }
        }
        number
    }

    /// Compares a range of a line with that of frame `number`.
    fn compare(&mut self, number: u32, line: u16, octets: &[u8], range: Range<usize>) -> bool {
        let mut expected = std::mem::take(&mut self.expected);
        self.draw_line(number, usize::from(line), &mut expected);
        let is_equal = expected[range.clone()] == octets[range];
        self.expected = expected;
        is_equal
    }

    fn draw_line(&self, number: u32, line: usize, out: &mut [u8]) {
        out.copy_from_slice(&self.bars);
        if let Some(range) = self.layout.box_range(number, line) {
            out[range.clone()].copy_from_slice(&self.white[range]);
        }
        if let Some(digits) = self.layout.digits {
            self.draw_digits(number, line, digits, out);
        }
        let code = LineCode { number, line: u16::try_from(line).expect("a frame has at most HEIGHT_MAX lines") };
        for (segment, range) in self.layout.segments() {
            code.write(self.format.pixels(), segment, &mut out[range]);
        }
    }

    fn draw_digits(&self, number: u32, line: usize, digits: Digits, out: &mut [u8]) {
        let Some(row) = line.checked_sub(digits.first_line).map(|line| line / digits.point_lines) else { return };
        if row >= DIGIT_HEIGHT {
            return;
        }
        for (place, digit) in digits_of(number).into_iter().enumerate() {
            // A point of space after each digit.
            let start = digits.first_group + place * (DIGIT_WIDTH + 1) * digits.point_groups;
            for column in 0..DIGIT_WIDTH {
                let source = if font::is_lit(digit, column, row) { &self.white } else { &self.black };
                let range = self.layout.octets(start + column * digits.point_groups, digits.point_groups);
                out[range.clone()].copy_from_slice(&source[range]);
            }
        }
    }
}

impl Layout {
    fn new(format: VideoFormat) -> Layout {
        let group = format.pixels().group();
        let line_groups = usize::from(format.width() / group.pixels);
        let height = usize::from(format.height());
        let layout = Layout {
            group_octets: usize::from(group.octets),
            line_groups,
            segment_groups: SEGMENT_PIXELS / usize::from(group.pixels),
            height,
            box_lines: (height / 6).max(1),
            box_groups: (line_groups / 12).max(1),
            digits: None,
        };
        // A fifteenth of the height; points that are as wide as high where two pixels are a group.
        let point_lines = height / 15 / DIGIT_HEIGHT;
        let point_groups = point_lines / usize::from(group.pixels);
        let groups = DIGITS * (DIGIT_WIDTH + 1) * point_groups;
        let has_room = point_groups > 0 && groups < line_groups;
        let digits = Digits {
            first_line: height - 2 * DIGIT_HEIGHT * point_lines.max(1).min(height / (2 * DIGIT_HEIGHT)),
            first_group: line_groups.saturating_sub(groups) / 2,
            point_lines,
            point_groups,
        };
        Layout { digits: has_room.then_some(digits), ..layout }
    }

    /// The octets of `count` groups from `first` on.
    fn octets(&self, first: usize, count: usize) -> Range<usize> {
        first * self.group_octets..(first + count) * self.group_octets
    }

    /// The parts of a line that carry a code each; the last one reaches to the end of the line.
    fn segments(self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let groups = self.segment_groups;
        let (whole, rest) = (self.line_groups / groups, self.line_groups % groups);
        // What is too short for a code belongs to the part before.
        let count = if whole == 0 || rest >= CODE_GROUPS { whole + 1 } else { whole };
        (0..count).map(move |segment| {
            let start = segment * groups;
            let end = if segment + 1 == count { self.line_groups } else { start + groups };
            (segment, self.octets(start, end - start))
        })
    }

    /// The octets of a line that the box of frame `number` covers.
    fn box_range(&self, number: u32, line: usize) -> Option<Range<usize>> {
        let step = number as usize * BOX_STEP;
        let first_line = step % (self.height - self.box_lines + 1);
        let first_group = step % (self.line_groups - self.box_groups + 1);
        let is_inside = (first_line..first_line + self.box_lines).contains(&line);
        is_inside.then(|| self.octets(first_group, self.box_groups))
    }
}

/// The digits that people read: the number, and its checksum.
fn digits_of(number: u32) -> [usize; DIGITS] {
    let mut digits = [0; DIGITS];
    let mut rest = number as usize;
    for digit in digits[..NUMBER_DIGITS].iter_mut().rev() {
        (*digit, rest) = (rest % 10, rest / 10);
    }
    let checksum = usize::from(checksum(number.into()));
    for (place, digit) in digits[NUMBER_DIGITS..].iter_mut().enumerate() {
        *digit = checksum >> (4 * (CHECKSUM_DIGITS - 1 - place)) & 15;
    }
    digits
}
