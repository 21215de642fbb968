use std::path::Path;

use super::*;
use crate::format::{FrameRate, PixelFormat, Scan};
use crate::y4m;

/// A file of this test, removed afterwards.
struct TestFile(PathBuf);

impl TestFile {
    fn new(name: &str, content: &[u8]) -> TestFile {
        let path = std::env::temp_dir().join(format!("thalweg-video-{}-{name}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        TestFile(path)
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn format() -> VideoFormat {
    VideoFormat::new(PixelFormat::Yuv422Bits8, (4, 2), FrameRate::PAL, Scan::Progressive).unwrap()
}

/// A file of frames that are filled with these numbers.
fn y4m_of(numbers: &[u8]) -> Vec<u8> {
    let mut file = y4m::header(format()).unwrap().into_bytes();
    for number in numbers {
        file.extend_from_slice(if number % 2 == 0 { b"FRAME\n" } else { b"FRAME Ip\n" });
        file.extend(std::iter::repeat_n(*number, y4m::planar_octets(format())));
    }
    file
}

/// The number of each of the first frames, at most `max`, and why there are no more.
fn numbers(source: Result<impl FrameSource, SourceError>, max: usize) -> (Vec<u8>, String) {
    let mut source = match source {
        Ok(source) => source,
        Err(error) => return (Vec::new(), error.to_string()),
    };
    assert_eq!(source.format(), format());
    let (mut numbers, mut frame) = (Vec::new(), vec![0; format().frame_octets()]);
    while numbers.len() < max {
        match source.fill(&mut frame) {
            Ok(Filled::Frame) => numbers.push(frame[0]),
            Ok(Filled::End) => return (numbers, "end".to_owned()),
            Err(error) => return (numbers, error.to_string()),
        }
        assert!(frame.iter().all(|octet| *octet == frame[0]));
    }
    (numbers, "more".to_owned())
}

#[track_caller]
fn check_y4m(name: &str, content: &[u8], at_end: AtEnd, expect: &[u8], reason: &str) {
    let file = TestFile::new(&format!("{name}.y4m"), content);
    let (found, why) = numbers(Y4mSource::open(&file.0, at_end), 7);
    assert_eq!(found, expect);
    assert!(why.contains(reason), "{why}");
}

#[track_caller]
fn check_raw(name: &str, content: &[u8], at_end: AtEnd, expect: &[u8], reason: &str) {
    let file = TestFile::new(&format!("{name}.raw"), content);
    let (found, why) = numbers(RawSource::open(&file.0, format(), at_end), 7);
    assert_eq!(found, expect);
    assert!(why.contains(reason), "{why}");
}

#[test]
fn frames_of_a_y4m_file_come_in_order_once_or_for_ever() {
    check_y4m("once", &y4m_of(&[1, 2, 3]), AtEnd::Stop, &[1, 2, 3], "end");
    check_y4m("again", &y4m_of(&[1, 2, 3]), AtEnd::Repeat, &[1, 2, 3, 1, 2, 3, 1], "more");
    check_y4m("none", &y4m_of(&[]), AtEnd::Repeat, &[], "end");
}

#[test]
fn a_broken_y4m_file_gives_what_is_whole() {
    let whole = y4m_of(&[1, 2]);
    check_y4m("short", &whole[..whole.len() - 1], AtEnd::Stop, &[1], "ends after 15 octets, and a frame takes 16");
    check_y4m("tail", &[&whole[..], b"FRAM\n"].concat(), AtEnd::Stop, &[1, 2], "no FRAME line after 2 frames");
    check_y4m("half", &[&whole[..], b"FRAME"].concat(), AtEnd::Stop, &[1, 2], "no FRAME line after 2 frames");
    check_y4m("long", &[b'Y'; 5000], AtEnd::Stop, &[], "no FRAME line after 0 frames");
    check_y4m("empty", &[], AtEnd::Stop, &[], "no YUV4MPEG2 file");
    let wide = [y4m::header(format()).unwrap().as_bytes(), b"FRAME X"].concat();
    check_y4m(
        "line",
        &[&wide[..], &[b'x'; 2000], b"\n", &[0; 16]].concat(),
        AtEnd::Stop,
        &[],
        "no FRAME line after 0 frames",
    );
}

/// Whether a source is still before its first frame and after each of the first three.
fn stills(mut source: impl FrameSource) -> [bool; 4] {
    let mut frame = vec![0; format().frame_octets()];
    [0, 1, 2, 3].map(|filled| {
        if filled > 0 {
            assert_eq!(source.fill(&mut frame).unwrap(), Filled::Frame);
        }
        source.is_still()
    })
}

#[test]
fn a_file_of_one_frame_is_still_once_it_came_round() {
    let raw = |name: &str, octets: &[u8]| {
        let file = TestFile::new(&format!("{name}.raw"), octets);
        stills(RawSource::open(&file.0, format(), AtEnd::Repeat).unwrap())
    };
    assert_eq!(raw("still", &[4; 16]), [false, false, true, true]);
    assert_eq!(raw("moving", &[[4; 16], [5; 16]].concat()), [false; 4]);
    let file = TestFile::new("still.y4m", &y4m_of(&[1]));
    assert_eq!(stills(Y4mSource::open(&file.0, AtEnd::Repeat).unwrap()), [false, false, true, true]);
}

#[test]
fn frames_of_a_raw_file_come_in_order_once_or_for_ever() {
    let content: Vec<u8> = [[4; 16], [5; 16]].concat();
    check_raw("once", &content, AtEnd::Stop, &[4, 5], "end");
    check_raw("again", &content, AtEnd::Repeat, &[4, 5, 4, 5, 4, 5, 4], "more");
    check_raw("short", &content[..31], AtEnd::Stop, &[], "31 octets, and a frame takes 16");
    check_raw("empty", &[], AtEnd::Stop, &[], "0 octets");
    let missing = RawSource::open(Path::new("/nonexistent"), format(), AtEnd::Stop);
    assert!(numbers(missing, 1).1.contains("cannot read /nonexistent"));
}
