use std::path::Path;
use std::sync::Arc;

use thalweg_base::time::Instant;

use super::*;
use crate::format::{FrameRate, PixelFormat, Scan, VideoFormat};
use crate::receiver::LineSet;
use crate::source::{AtEnd, Filled, FrameSource, RawSource, Y4mSource};

fn picture(format: VideoFormat, number: u8) -> ReceivedPicture {
    let octets: Vec<u8> = (0..format.frame_octets()).map(|place| (place as u8).wrapping_mul(number)).collect();
    ReceivedPicture {
        octets: Arc::from(octets),
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
fn what_cannot_be_written_is_named() {
    let path = TestPath::new("rgb.y4m");
    let error = Y4mSink::create(&path.0, format(PixelFormat::Rgb8)).unwrap_err().to_string();
    assert!(error.contains("no form for RGB") && !path.0.exists(), "{error}");
    let error = RawSink::create(Path::new("/nonexistent/x.raw")).unwrap_err().to_string();
    assert!(error.contains("cannot write /nonexistent/x.raw"), "{error}");
    let mut full = RawSink::create(Path::new("/dev/full")).unwrap();
    assert!(full.take(&picture(format(PixelFormat::Rgb8), 1)).unwrap_err().to_string().contains("/dev/full"));
}
