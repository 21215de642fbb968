use super::*;
use crate::format::{FrameRate, PixelFormat, Scan};

fn format(pixels: PixelFormat, size: (u16, u16)) -> VideoFormat {
    VideoFormat::new(pixels, size, FrameRate::NTSC, Scan::Progressive).unwrap()
}

fn drawn(picture: &TestPicture, number: u32) -> Vec<u8> {
    let mut frame = vec![0; picture.format().frame_octets()];
    picture.draw(number, &mut frame);
    frame
}

/// The report of a picture, in words.
#[track_caller]
fn check(picture: &mut TestPicture, frame: &[u8], concealed: &[u16], expect: &str) {
    let mut lines = LineSet::default();
    concealed.iter().for_each(|line| lines.insert(*line));
    let report = picture.check(frame, &lines);
    let PictureReport { number, lines_own, lines_concealed, lines_wrong } = report;
    let told = format!("{number:?}: {lines_own} own, {lines_concealed} concealed, {lines_wrong} wrong");
    assert_eq!(told, expect);
    assert_eq!(report.is_proved(), number.is_some() && lines_wrong == 0);
}

#[test]
fn every_line_proves_its_frame_in_each_format() {
    for pixels in PixelFormat::ALL {
        for size in [(1920, 1080), (352, 288), (32, 1), (270, 30)] {
            let mut picture = TestPicture::new(format(pixels, size)).unwrap();
            for number in [0, 1, 77_777, u32::MAX] {
                let frame = drawn(&picture, number);
                check(&mut picture, &frame, &[], &format!("Some({number}): {} own, 0 concealed, 0 wrong", size.1));
            }
        }
    }
}

#[test]
fn any_changed_octet_is_found() {
    for pixels in PixelFormat::ALL {
        let mut picture = TestPicture::new(format(pixels, (250, 8))).unwrap();
        let frame = drawn(&picture, 5);
        let mut rng = thalweg_base::rng::Rng::new(1);
        for at in 0..frame.len() {
            let mut changed = frame.clone();
            changed[at] ^= 1 << rng.below(8);
            check(&mut picture, &changed, &[], "Some(5): 7 own, 0 concealed, 1 wrong");
        }
    }
}

#[test]
fn lines_of_other_frames_and_mixed_ones_are_told() {
    let mut picture = TestPicture::new(format(PixelFormat::Yuv422Bits10, (1920, 12))).unwrap();
    let (before, mut frame) = (drawn(&picture, 8), drawn(&picture, 9));
    let line = picture.format().line_octets();
    frame[line..2 * line].copy_from_slice(&before[line..2 * line]);
    // The second quarter of a line, as one packet brings it.
    frame[3 * line + 1200..3 * line + 2400].copy_from_slice(&before[3 * line + 1200..3 * line + 2400]);
    frame[5 * line..6 * line].fill(0);
    let mut origin = |at: u16| {
        let octets = &frame[usize::from(at) * line..usize::from(at + 1) * line];
        picture.line_origin(at, octets, 9)
    };
    assert_eq!(
        [0, 1, 3, 5].map(&mut origin),
        [LineOrigin::Frame(9), LineOrigin::Frame(8), LineOrigin::Mixed, LineOrigin::Damaged]
    );
    let elsewhere = picture.line_origin(2, &frame[..line], 9);
    assert_eq!(elsewhere, LineOrigin::Damaged, "a line in the place of another one");
    check(&mut picture, &frame, &[], "Some(9): 9 own, 0 concealed, 3 wrong");
    check(&mut picture, &frame, &[1, 3, 5, 7], "Some(9): 9 own, 3 concealed, 0 wrong");
    check(&mut picture, &vec![0; 12 * line], &[], "None: 0 own, 0 concealed, 12 wrong");
}

#[test]
fn the_box_moves_and_people_can_read_the_number() {
    let picture = TestPicture::new(format(PixelFormat::Rgb8, (640, 480))).unwrap();
    let (first, second) = (drawn(&picture, 0), drawn(&picture, 1));
    let pixel = |frame: &[u8], x: usize, y: usize| [0, 1, 2].map(|part| frame[(y * 640 + x) * 3 + part] & 0xf0);
    assert_eq!(pixel(&first, 20, 2), [0xf0; 3], "white");
    assert_eq!(pixel(&second, 20, 2), [0xb0; 3], "the first bar");
    assert_eq!(pixel(&second, 20, 5), [0xf0; 3]);
    // The digits as points, line by line.
    let digits = picture.layout.digits.unwrap();
    let frame = drawn(&picture, 12);
    let point = |place: usize, column: usize, row: usize| {
        let group = digits.first_group + (place * 6 + column) * digits.point_groups;
        pixel(&frame, group, digits.first_line + row * digits.point_lines) == [0xf0; 3]
    };
    let row = |place, row| (0..5).map(|column| if point(place, column, row) { '#' } else { '.' }).collect::<String>();
    assert_eq!(
        (0..7).map(|line| row(7, line)).collect::<Vec<_>>(),
        [".###.", "#...#", "....#", "...#.", "..#..", ".#...", "#####"]
    );
    assert_eq!(row(6, 1), ".##..");
}

#[test]
fn pictures_too_narrow_for_a_code_are_refused() {
    let refused = |pixels, width| TestPicture::new(format(pixels, (width, 8))).map(drop).unwrap_err().to_string();
    let expect = "a line of 30 pixels has no room for the test picture's code: give 32 or more";
    assert_eq!(refused(PixelFormat::Yuv422Bits10, 30), expect);
    let expect = "a line of 15 pixels has no room for the test picture's code: give 16 or more";
    assert_eq!(refused(PixelFormat::Rgb8, 15), expect);
}
