//! How a sender counts the lines of fields: ST 2110-20, FFmpeg and MTL count them in the field, GStreamer in the frame.

use crate::format::{Field, Scan, VideoFormat};
use crate::rfc4175::{LineHeader, pixels_of};

/// Packets in a row against what was found before it is given up: damaged packets show anything.
const CONTRADICTIONS_MAX: u8 = 16;

/// What is known of a sender's line numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineDialect {
    /// Nothing: each number so far means a line in both ways, as in progressive frames.
    Unknown,
    /// From 0 to half the height in each field.
    InField,
    /// Even numbers in the first field, odd ones in the second.
    InFrame,
}

/// The line numbers of one sender.
#[derive(Clone, Debug)]
pub(crate) struct LineNumbering {
    counting: LineDialect,
    contradictions: u8,
}

/// What a line number means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinePlace {
    /// This line of the frame.
    Line(u16),
    /// Not to be told before more lines came.
    Unknown,
    /// None of the format.
    Outside,
}

impl LineNumbering {
    pub(crate) fn new() -> LineNumbering {
        LineNumbering { counting: LineDialect::Unknown, contradictions: 0 }
    }

    /// How lines are counted.
    pub(crate) fn dialect(&self) -> LineDialect {
        self.counting
    }

    /// Learns from the numbers of a packet; before [`LineNumbering::place`], as a later piece may tell of an earlier one. A packet
    /// counts once, however many pieces it has.
    pub(crate) fn handle_packet(&mut self, format: VideoFormat, pieces: impl Iterator<Item = LineHeader>) {
        if format.scan() == Scan::Progressive {
            return;
        }
        let mut before: Option<LineHeader> = None;
        let mut found: Option<LineDialect> = None;
        for header in pieces.filter(|header| header.line < format.height()) {
            let shown = shows(format, &header).or_else(|| shown_by_order(format, &before?, &header));
            before = Some(header);
            match (found, shown) {
                // Both at once are nonsense.
                (Some(found), Some(shown)) if found != shown => return,
                (None, Some(_)) => found = shown,
                _ => {}
            }
        }
        if let Some(found) = found {
            self.learn(found);
        }
    }

    /// The line of the frame that a header means.
    pub(super) fn place(&self, format: VideoFormat, header: &LineHeader) -> LinePlace {
        if header.line >= format.height() {
            return LinePlace::Outside;
        }
        if format.scan() == Scan::Progressive {
            return if header.field == Field::First { LinePlace::Line(header.line) } else { LinePlace::Outside };
        }
        match self.counting {
            // Both ways begin with it.
            LineDialect::Unknown if header.field == Field::First && header.line == 0 => LinePlace::Line(0),
            LineDialect::Unknown => LinePlace::Unknown,
            LineDialect::InField if header.line < format.field_height() => {
                LinePlace::Line(format.frame_line(header.field, header.line))
            }
            LineDialect::InFrame => LinePlace::Line(header.line),
            LineDialect::InField => LinePlace::Outside,
        }
    }

    fn learn(&mut self, shown: LineDialect) {
        if shown == self.counting {
            self.contradictions = 0;
            return;
        }
        self.contradictions += 1;
        if self.counting == LineDialect::Unknown || self.contradictions >= CONTRADICTIONS_MAX {
            *self = LineNumbering { counting: shown, contradictions: 0 };
        }
    }
}

/// The way of counting that alone gives such a number; none if both do.
fn shows(format: VideoFormat, header: &LineHeader) -> Option<LineDialect> {
    if header.line >= format.field_height() {
        Some(LineDialect::InFrame)
    } else {
        (header.line % 2 != header.field.bit()).then_some(LineDialect::InField)
    }
}

/// The way of counting in which a piece at the beginning of a line follows one that ends its line in the same packet; none if both do
/// or neither. With it the first lines of a stream have their places, where numbers alone tell only in the second half of a field.
fn shown_by_order(format: VideoFormat, before: &LineHeader, header: &LineHeader) -> Option<LineDialect> {
    let end = before.offset.checked_add(pixels_of(before, format.pixels())?)?;
    let follows = end == format.width() && header.offset == 0 && before.field == header.field;
    (follows && header.line == before.line + 2).then_some(LineDialect::InFrame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{FrameRate, PixelFormat};

    fn format(scan: Scan) -> VideoFormat {
        VideoFormat::new(PixelFormat::Yuv422Bits8, (2, 100), FrameRate::PAL, scan).unwrap()
    }

    fn header(field: u16, line: u16) -> LineHeader {
        let field = if field == 0 { Field::First } else { Field::Second };
        LineHeader { length: 4, field, line, offset: 0 }
    }

    /// The places of `lines`, after the numbers in `before` were seen.
    #[track_caller]
    fn check(before: &[(u16, u16)], field: u16, line: u16, expect: LinePlace) {
        let mut numbering = LineNumbering::new();
        for (field, line) in before.iter().chain(&[(field, line)]) {
            numbering.handle_packet(format(Scan::Interlaced), [header(*field, *line)].into_iter());
        }
        assert_eq!(numbering.place(format(Scan::Interlaced), &header(field, line)), expect);
    }

    #[test]
    fn both_ways_of_counting_are_told_by_the_numbers_that_only_one_has() {
        check(&[], 0, 0, LinePlace::Line(0));
        check(&[], 0, 2, LinePlace::Unknown);
        check(&[(0, 0), (0, 2)], 0, 4, LinePlace::Unknown);
        check(&[], 0, 1, LinePlace::Line(2));
        check(&[], 1, 0, LinePlace::Line(1));
        check(&[(0, 1)], 0, 49, LinePlace::Line(98));
        check(&[(0, 1)], 1, 49, LinePlace::Line(99));
        check(&[(0, 50)], 0, 2, LinePlace::Line(2));
        check(&[(1, 51)], 1, 1, LinePlace::Line(1));
        check(&[(0, 50)], 0, 100, LinePlace::Outside);
        check(&[(0, 1)], 0, 50, LinePlace::Outside);
    }

    #[test]
    fn a_single_wrong_number_changes_nothing_and_a_row_of_them_does() {
        check(&[(0, 1), (0, 50), (0, 1)], 0, 3, LinePlace::Line(6));
        check(&[&[(0, 1)][..], &[(0, 50); 15]].concat(), 0, 2, LinePlace::Line(4));
        check(&[&[(0, 1)][..], &[(0, 50); 16]].concat(), 0, 2, LinePlace::Line(2));
        check(&[&[(0, 50)][..], &[(1, 0); 16]].concat(), 0, 1, LinePlace::Line(2));
    }

    #[test]
    fn the_line_that_follows_in_a_packet_tells_how_they_are_counted() {
        let after = |pieces: &[LineHeader]| {
            let mut numbering = LineNumbering::new();
            numbering.handle_packet(format(Scan::Interlaced), pieces.iter().copied());
            numbering.dialect()
        };
        let piece = |line| header(0, line);
        assert_eq!(after(&[piece(0), piece(2)]), LineDialect::InFrame);
        assert_eq!(after(&[header(1, 1), header(1, 3)]), LineDialect::InFrame);
        assert_eq!(after(&[piece(0), piece(1)]), LineDialect::InField);
        assert_eq!(after(&[piece(0), piece(2), piece(3)]), LineDialect::Unknown, "both at once");
        assert_eq!(after(&[piece(0), piece(4)]), LineDialect::Unknown, "lines are left out");
        assert_eq!(after(&[piece(0), header(1, 3)]), LineDialect::Unknown, "of another field");
        let half = LineHeader { length: 0, ..piece(0) };
        assert_eq!(after(&[half, piece(2)]), LineDialect::Unknown, "the line does not end");
    }

    #[test]
    fn a_progressive_frame_has_one_field() {
        let numbering = LineNumbering::new();
        let progressive = format(Scan::Progressive);
        assert_eq!(numbering.place(progressive, &header(0, 99)), LinePlace::Line(99));
        assert_eq!(numbering.place(progressive, &header(1, 0)), LinePlace::Outside);
        assert_eq!(numbering.place(progressive, &header(0, 100)), LinePlace::Outside);
    }
}
