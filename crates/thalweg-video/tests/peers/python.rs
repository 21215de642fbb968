//! Our packets and reports, read by a program that knows nothing but the standards (`reader.py`).

use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use thalweg_testing::program::Program;
use thalweg_video::format::{PixelFormat, Scan};
use thalweg_video::rfc4175::Packing;

use crate::network::{dropped, ports, wait_for_listener};
use crate::pictures::{Pictures, file, format, read_raw};
use crate::stream::{send, send_options};

#[track_caller]
fn check(pixels: PixelFormat, scan: Scan, packing: (Packing, u32)) {
    const FRAMES: u32 = 6;
    let (width, height) = (1920, 36);
    let format = format(pixels, (width, height), 10, scan);
    let pictures = Pictures::new(format, FRAMES);
    for _ in 0..ATTEMPTS_MAX {
        let port = ports();
        let output = file(&format!("reader-{port}.raw"));
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/reader.py");
        let group = pixels.group();
        let numbers = [port, width, height, scan.fields(), group.octets, group.pixels].map(|number| number.to_string());
        let reader = Program::start("reader.py", Command::new("python3").arg(script).args(numbers).arg(&output));
        wait_for_listener(port);
        wait_for_listener(port + 1);
        let mut options = send_options(port, FRAMES);
        (options.packing, options.mtu) = (packing.0, Some(packing.1));
        // The wrap of the lower half lies within the stream.
        options.sender.first_sequence = 0x1234_fff0;
        options.rtcp.interval = Duration::from_millis(100);
        options.rtcp.cname = "camera@studio".to_owned();
        let report = send(format, &options);
        let lost = dropped(port);
        if lost > 0 {
            println!("the reader's socket had no room for {lost} datagrams: once more");
            continue;
        }
        let found: Value = reader.finish().well().objects().next().expect("what it found");
        let sender = report.sender;
        assert_eq!((found["gaps"].as_u64(), found["sources"].as_u64()), (Some(0), Some(1)), "{found}");
        // Fields of two moments have two time stamps.
        let moments = if scan == Scan::Interlaced { 2 } else { 1 };
        assert_eq!(found["timestamps"].as_u64(), Some(sender.frames_sent * moments), "{found}");
        assert_eq!(found["packets"], Value::from(vec![sender.packets_sent; 2]));
        assert_eq!(found["octets"], Value::from(vec![sender.payload_octets_sent; 2]));
        assert_eq!((&found["names"], &found["bye"]), (&Value::from(vec!["camera@studio"]), &"end of stream".into()));
        assert!(found["reports"].as_u64().is_some_and(|reports| reports >= 3), "{found}");
        // A tick is 11 µs; the sender may lose its processor between the readings of its two clocks.
        assert!(found["clock_error_ms"].as_f64().is_some_and(|error| error < 1.0), "{found}");
        assert!(found["wall_clock_error_s"].as_f64().is_some_and(|error| error < 5.0), "{found}");
        pictures.check(&read_raw(&output, format), sender.frames_sent);
        return;
    }
    panic!("the reader's socket had too little room {ATTEMPTS_MAX} times");
}

const ATTEMPTS_MAX: usize = 5;

#[test]
fn packets_and_reports_are_what_the_standards_say() {
    for packing in [(Packing::Equal, 1500), (Packing::Equal, 9000), (Packing::Fill, 9000), (Packing::Blocks, 1500)] {
        check(PixelFormat::Yuv422Bits10, Scan::Progressive, packing);
    }
    check(PixelFormat::Yuv422Bits8, Scan::Progressive, (Packing::Equal, 1500));
    check(PixelFormat::Rgb8, Scan::Progressive, (Packing::Fill, 9000));
}

#[test]
fn fields_and_segments_are_what_the_standards_say() {
    check(PixelFormat::Yuv422Bits10, Scan::Interlaced, (Packing::Equal, 1500));
    check(PixelFormat::Yuv422Bits10, Scan::SegmentedFrame, (Packing::Fill, 9000));
}
