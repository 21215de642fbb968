use std::path::Path;

use thalweg_base::time::Instant;

use super::*;
use crate::format::{FrameRate, PixelFormat, Scan, VideoFormat};
use crate::receiver::LineSet;
use crate::source::{AtEnd, Filled, FrameSource, RawSource, Y4mSource};

fn picture(format: VideoFormat, number: u8) -> ReceivedPicture {
    let octets: Vec<u8> = (0..format.frame_octets()).map(|place| (place as u8).wrapping_mul(number)).collect();
    ReceivedPicture {
        octets: octets.into(),
        timestamp: 0,
        concealed_lines: LineSet::default(),
        concealed_groups: 0,
        first_arrival: Instant::ZERO,
        completed: None,
        deadline: Instant::ZERO,
    }
}

fn format(pixels: PixelFormat) -> VideoFormat {
    VideoFormat::new(pixels, (16, 6), FrameRate::NTSC, Scan::Progressive).unwrap()
}

/// A path of this test, removed afterwards.
struct TestPath(PathBuf);

impl TestPath {
    fn new(name: &str) -> TestPath {
        TestPath(std::env::temp_dir().join(format!("thalweg-video-sink-{}-{name}", std::process::id())))
    }
}

impl Drop for TestPath {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn check(format: VideoFormat, mut sink: impl FrameSink, open: impl FnOnce() -> Box<dyn FrameSource>) {
    for number in 1..4 {
        sink.take(&picture(format, number)).unwrap();
    }
    sink.finish().unwrap();
    let mut source = open();
    assert_eq!(source.format(), format);
    let mut frame = vec![0; format.frame_octets()];
    for number in 1..4 {
        assert_eq!(source.fill(&mut frame).unwrap(), Filled::Frame);
        assert_eq!(frame[..], picture(format, number).octets[..]);
    }
    assert_eq!(source.fill(&mut frame).unwrap(), Filled::End);
}

#[test]
fn sources_read_what_sinks_wrote() {
    for pixels in PixelFormat::ALL {
        let (format, path) = (format(pixels), TestPath::new(&format!("{pixels}.raw")));
        let open = || Box::new(RawSource::open(&path.0, format, AtEnd::Stop).unwrap()) as Box<dyn FrameSource>;
        check(format, RawSink::create(&path.0).unwrap(), open);
    }
    for pixels in [PixelFormat::Yuv422Bits10, PixelFormat::Yuv422Bits8] {
        let (format, path) = (format(pixels), TestPath::new(&format!("{pixels}.y4m")));
        let open = || Box::new(Y4mSource::open(&path.0, AtEnd::Stop).unwrap()) as Box<dyn FrameSource>;
        check(format, Y4mSink::create(&path.0, format).unwrap(), open);
    }
}

#[test]
fn the_form_of_pixels_goes_into_the_file_and_comes_out_of_it() {
    let path = TestPath::new("wide.y4m");
    Y4mSink::create_with_aspect(&path.0, format(PixelFormat::Yuv422Bits8), (16, 15)).unwrap();
    assert_eq!(Y4mSource::open(&path.0, AtEnd::Stop).unwrap().pixel_aspect(), (16, 15));
    Y4mSink::create(&path.0, format(PixelFormat::Yuv422Bits8)).unwrap();
    assert_eq!(Y4mSource::open(&path.0, AtEnd::Stop).unwrap().pixel_aspect(), (1, 1));
}

#[test]
fn what_cannot_be_written_is_named() {
    let path = TestPath::new("rgb.y4m");
    let error = Y4mSink::create(&path.0, format(PixelFormat::Rgb8)).unwrap_err().to_string();
    assert!(error.contains("no form for RGB") && !path.0.exists(), "{error}");
    let error = RawSink::create(Path::new("/nonexistent/x.raw")).unwrap_err().to_string();
    assert!(error.contains("cannot write /nonexistent/x.raw"), "{error}");
    let mut full = RawSink::create(Path::new("/dev/full")).unwrap();
    assert!(full.take(&picture(format(PixelFormat::Rgb8), 1)).unwrap_err().to_string().contains("/dev/full"));
}

/// What a check finds in test pictures of these numbers after `damage`, with the first `concealed` lines called concealed.
fn verify(numbers: &[u32], concealed: u16, damage: impl Fn(&mut [u8])) -> VerifySummary {
    let format = VideoFormat::new(PixelFormat::Yuv422Bits10, (64, 20), FrameRate::NTSC, Scan::Progressive).unwrap();
    let mut sink = VerifySink::new(format).unwrap();
    let drawn = crate::picture::TestPicture::new(format).unwrap();
    for number in numbers {
        let mut octets = vec![0; format.frame_octets()];
        drawn.draw(*number, &mut octets);
        damage(&mut octets);
        let mut concealed_lines = LineSet::default();
        (0..concealed).for_each(|line| concealed_lines.insert(line));
        sink.take(&ReceivedPicture { octets: octets.into(), concealed_lines, ..picture(format, 0) }).unwrap();
    }
    sink.summary()
}

#[test]
fn each_line_is_proved_or_not() {
    let sound = verify(&[7, 8, 11], 0, |_| ());
    let expect = VerifySummary { frames: 3, proved: 3, numbers_missing: 2, last: Some(11), ..VerifySummary::default() };
    assert!(sound == expect && sound.is_proved());
    // The first line has 160 octets.
    let damaged = verify(&[7], 0, |octets| octets[100] ^= 0x40);
    assert!((damaged.wrong, damaged.lines_wrong, damaged.is_proved()) == (1, 1, false), "{damaged:?}");
    let concealed = verify(&[7], 2, |octets| octets[100] ^= 0x40);
    assert!((concealed.wrong, concealed.lines_concealed, concealed.proved) == (0, 2, 0) && concealed.is_proved());
    let black = verify(&[7], 20, |octets| octets.fill(0));
    assert_eq!((black.wrong, black.last), (0, None));
    let foreign = verify(&[7], 0, |octets| octets.fill(0));
    assert_eq!((foreign.wrong, foreign.lines_wrong), (1, 20));
    let twice = verify(&[8, 8, 7], 0, |_| ());
    assert!(twice.out_of_order == 2 && !twice.is_proved());
    let wrapped = verify(&[u32::MAX, 0], 0, |_| ());
    assert!(wrapped.is_proved() && wrapped.numbers_missing == 0);
    assert!(!VerifySummary::default().is_proved(), "nothing was checked");
}
