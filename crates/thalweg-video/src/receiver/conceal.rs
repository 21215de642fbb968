//! What is shown where pixels are missing.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use super::coverage::Coverage;
use super::lines::LineSet;
use crate::format::{FormatError, PixelFormat, VideoFormat};

/// Lines of the same field above and below that are looked at for pixels to interpolate from: beyond them a picture has
/// too little in common with the missing line.
const INTERPOLATION_LINES_MAX: usize = 8;

/// What becomes of a frame whose pixels did not all arrive in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Concealment {
    /// Missing pixels are those of the frame presented before (default); black before the first one.
    #[default]
    Previous,
    /// Missing pixels are the mean of the lines above and below in the same field; those of the frame before where both
    /// are missing.
    Interpolate,
    /// Missing pixels are black, and the frame says where.
    Flag,
    /// The frame is not presented.
    Drop,
}

impl fmt::Display for Concealment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Concealment::Previous => "previous",
            Concealment::Interpolate => "interpolate",
            Concealment::Flag => "flag",
            Concealment::Drop => "drop",
        })
    }
}

impl FromStr for Concealment {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Concealment, FormatError> {
        use Concealment::{Drop, Flag, Interpolate, Previous};
        let found = [Previous, Interpolate, Flag, Drop].into_iter().find(|policy| policy.to_string() == text);
        found.ok_or(FormatError::Unreadable { what: "concealment", expected: "previous, interpolate, flag or drop" })
    }
}

/// Fills the pixels of `frame` that `coverage` misses; tells the lines of them.
pub(super) fn conceal(
    policy: Concealment,
    format: VideoFormat,
    frame: &mut [u8],
    coverage: &Coverage,
    previous: Option<&[u8]>,
) -> LineSet {
    let mut concealed = LineSet::default();
    let (line_octets, group) = (format.line_octets(), usize::from(format.pixels().group().octets));
    for number in 0..format.height() {
        let line = usize::from(number);
        for run in coverage.missing_runs(line) {
            concealed.insert(number);
            let octets = run.start * group..run.end * group;
            let at = line * line_octets + octets.start..line * line_octets + octets.end;
            let sources = match policy {
                Concealment::Interpolate => neighbours(format, coverage, line, run),
                Concealment::Previous | Concealment::Flag | Concealment::Drop => [None, None],
            };
            match (sources, previous.filter(|_| policy != Concealment::Flag)) {
                ([Some(above), Some(below)], _) => {
                    let below = below * line_octets + octets.start;
                    mean(format.pixels(), frame, above * line_octets + octets.start, below, at);
                }
                ([Some(source), None] | [None, Some(source)], _) => {
                    let start = source * line_octets + octets.start;
                    frame.copy_within(start..start + at.len(), at.start);
                }
                ([None, None], Some(previous)) => frame[at.clone()].copy_from_slice(&previous[at]),
                ([None, None], None) => blacken(format.pixels(), &mut frame[at]),
            }
        }
    }
    concealed
}

/// The nearest lines of the same field above and below in which these groups arrived.
fn neighbours(format: VideoFormat, coverage: &Coverage, line: usize, run: Range<usize>) -> [Option<usize>; 2] {
    let step = usize::from(format.scan().fields());
    let has_arrived = |line: &usize| coverage.is_covered(*line, run.clone());
    let above = (1..=INTERPOLATION_LINES_MAX).map_while(|count| line.checked_sub(count * step)).find(has_arrived);
    let lines = (1..=INTERPOLATION_LINES_MAX).map(|count| line + count * step);
    let below = lines.take_while(|line| *line < usize::from(format.height())).find(has_arrived);
    [above, below]
}

/// Fills a range with black pixels.
fn blacken(pixels: PixelFormat, octets: &mut [u8]) {
    let group = usize::from(pixels.group().octets);
    let black = pixels.black();
    octets.chunks_exact_mut(group).for_each(|chunk| chunk.copy_from_slice(&black[..group]));
}

/// Fills `at` with the means of the components that begin at `above` and `below`.
fn mean(pixels: PixelFormat, frame: &mut [u8], above: usize, below: usize, at: Range<usize>) {
    match pixels {
        PixelFormat::Yuv422Bits10 => {
            let groups = at.len() / 5;
            for offset in (0..groups).map(|index| 5 * index) {
                let sum = mean_of_tens(read_group(frame, above + offset), read_group(frame, below + offset));
                frame[at.start + offset..at.start + offset + 5].copy_from_slice(&sum.to_be_bytes()[3..]);
            }
        }
        PixelFormat::Yuv422Bits8 | PixelFormat::Rgb8 => {
            for offset in 0..at.len() {
                let mean = u16::midpoint(u16::from(frame[above + offset]), u16::from(frame[below + offset]));
                frame[at.start + offset] = u8::try_from(mean).expect("between two octets");
            }
        }
    }
}

/// Four components of 10 bits.
fn read_group(frame: &[u8], at: usize) -> u64 {
    frame[at..at + 5].iter().fold(0, |word, octet| word << 8 | u64::from(*octet))
}

/// The mean of each of four components of 10 bits, rounded down.
fn mean_of_tens(left: u64, right: u64) -> u64 {
    // The lowest bit of each component would fall into the next one.
    const UPPER_BITS: u64 = 0x3fe << 30 | 0x3fe << 20 | 0x3fe << 10 | 0x3fe;
    (left & right) + ((left ^ right) & UPPER_BITS) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{FrameRate, Scan};

    /// A picture of 2 pixels a line, of which lines are missing: each line tells where its pixels are from.
    #[track_caller]
    fn check(policy: &str, scan: Scan, missing: &[usize], has_previous: bool, expect: &[u8]) {
        let height = u16::try_from(expect.len()).unwrap();
        let format = VideoFormat::new(PixelFormat::Yuv422Bits8, (2, height), FrameRate::PAL, scan).unwrap();
        let mut coverage = Coverage::new(format);
        let mut frame: Vec<u8> = (0..expect.len()).flat_map(|line| [10 * line as u8; 4]).collect();
        for line in 0..expect.len() {
            if missing.contains(&line) {
                frame[4 * line..4 * line + 4].fill(0xee);
            } else {
                coverage.cover(line, 0..1);
            }
        }
        let previous = vec![201; frame.len()];
        let previous = has_previous.then_some(&previous[..]);
        let concealed = conceal(policy.parse().unwrap(), format, &mut frame, &coverage, previous);
        assert_eq!(concealed.iter().map(usize::from).collect::<Vec<_>>(), missing);
        // The second octet of each line: luma.
        assert_eq!(frame.chunks(4).map(|line| line[1]).collect::<Vec<_>>(), expect);
        assert!(!frame.contains(&0xee));
    }

    #[test]
    fn missing_lines_come_from_where_the_policy_says() {
        check("previous", Scan::Progressive, &[1, 2], true, &[0, 201, 201, 30]);
        check("previous", Scan::Progressive, &[1], false, &[0, 16, 20, 30]);
        check("flag", Scan::Progressive, &[0, 3], true, &[16, 10, 20, 16]);
        check("interpolate", Scan::Progressive, &[1], true, &[0, 10, 20, 30]);
        check("interpolate", Scan::Progressive, &[1, 2], true, &[0, 15, 15, 30]);
        check("interpolate", Scan::Progressive, &[0, 3], true, &[10, 10, 20, 20]);
        check("interpolate", Scan::Interlaced, &[2, 3], true, &[0, 10, 20, 30, 40, 50]);
        check("interpolate", Scan::Interlaced, &[0, 2], true, &[201, 10, 201, 30]);
        check("interpolate", Scan::Progressive, &[0, 1], false, &[16, 16]);
        assert!("mend".parse::<Concealment>().is_err());
    }

    #[test]
    fn ten_bit_components_do_not_leak_into_each_other() {
        let pack = |parts: [u64; 4]| parts.into_iter().fold(0, |word, part| word << 10 | part);
        let mut rng = thalweg_base::rng::Rng::new(3);
        for _ in 0..1000 {
            let [left, right] = [(); 2].map(|()| [(); 4].map(|()| rng.below(1024)));
            let expect: Vec<u64> = left.iter().zip(right).map(|(left, right)| (left + right) / 2).collect();
            assert_eq!(mean_of_tens(pack(left), pack(right)), pack(expect.try_into().unwrap()));
        }
    }

    #[test]
    fn every_format_is_blackened_and_interpolated_in_whole_groups() {
        for pixels in PixelFormat::ALL {
            let format = VideoFormat::new(pixels, (4, 3), FrameRate::PAL, Scan::Progressive).unwrap();
            let mut coverage = Coverage::new(format);
            let groups = usize::from(4 / pixels.group().pixels);
            coverage.cover(0, 0..groups);
            coverage.cover(2, 0..groups);
            let line = format.line_octets();
            let mut frame = vec![0; 3 * line];
            blacken(pixels, &mut frame[..line]);
            blacken(pixels, &mut frame[2 * line..]);
            conceal(Concealment::Interpolate, format, &mut frame, &coverage, None);
            assert_eq!(frame[line..2 * line], frame[..line], "{pixels}: the mean of black and black");
            assert!(frame.chunks(pixels.group().octets.into()).all(|group| pixels.black().starts_with(group)));
        }
    }
}
