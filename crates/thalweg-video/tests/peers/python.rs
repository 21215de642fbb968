//! Our packets and reports before programs that know nothing but the standards: a receiver (`reader.py`) and a sender (`sender.py`).

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use thalweg_testing::program::Program;
use thalweg_video::format::{PixelFormat, Scan};
use thalweg_video::receiver::Repair;
use thalweg_video::rfc4175::Packing;

use crate::network::{dropped, ports, wait_for_listener};
use crate::pictures::{Pictures, file, format, read_raw};
use crate::stream::{Receiver, receive_options, send, send_options};

/// Starts a script of this folder, which leaves nothing beside itself.
#[track_caller]
fn start(script: &str, numbers: impl IntoIterator<Item = u32>, file: &Path) -> Program {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers"));
    let mut command = Command::new("python3");
    command.arg("-B").arg(folder.join(script));
    command.args(numbers.into_iter().map(|number| number.to_string())).arg(file);
    Program::start(script, &command)
}

/// The shortest of the round trips that a script tells.
#[track_caller]
fn least_round_trip_ms(found: &Value) -> f64 {
    let all = found["round_trips_ms"].as_array().expect("round trips");
    all.iter().filter_map(Value::as_f64).reduce(f64::min).unwrap_or_else(|| panic!("no round trip: {found}"))
}

/// What a round trip over loopback may take: nothing but the resolution of its times, and a busy machine.
const LOOPBACK_MS: std::ops::Range<f64> = -0.1..20.0;

#[track_caller]
fn check(pixels: PixelFormat, scan: Scan, packing: (Packing, u32)) {
    const FRAMES: u32 = 6;
    let (width, height) = (1920, 36);
    let format = format(pixels, (width, height), 10, scan);
    let pictures = Pictures::new(format, FRAMES);
    for _ in 0..ATTEMPTS_MAX {
        let port = ports();
        let output = file(&format!("reader-{port}.raw"));
        let group = pixels.group();
        let numbers = [port, width, height, scan.fields(), group.octets, group.pixels];
        let reader = start("reader.py", numbers.map(u32::from), &output);
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
        assert!(
            found["early"].as_u64().is_some_and(|reports| reports >= 1),
            "while the first frame was prepared: {found}"
        );
        // A tick is 11 µs; the sender may lose its processor between the readings of its two clocks.
        assert!(found["clock_error_ms"].as_f64().is_some_and(|error| error < 1.0), "{found}");
        assert!(LOOPBACK_MS.contains(&least_round_trip_ms(&found)), "{found}");
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

#[test]
fn reports_times_and_requests_of_a_receiver_are_what_the_standards_say() {
    const FRAMES: u32 = 20;
    let format = format(PixelFormat::Yuv422Bits10, (160, 90), 10, Scan::Progressive);
    let pictures = Pictures::new(format, FRAMES);
    let (port, own) = (ports(), ports());
    let input = pictures.write_raw(&format!("from-python-{own}.raw"));
    let mut options = receive_options(format, port, FRAMES);
    options.rtcp.interval = Duration::from_millis(100);
    options.rtcp.cname = "monitor@studio".to_owned();
    options.receiver.repair = Repair::by_retransmission(97);
    let receiver = Receiver::start(options);
    let numbers = [u32::from(port), own.into(), format.line_octets() as u32, 90, FRAMES, 10];
    let found: Value = start("sender.py", numbers, &input).finish().well().objects().next().expect("what it heard");
    let received = receiver.finish();
    let packets = received.report.receiver.packets;
    let count = |name: &str| found[name].as_u64().unwrap_or_else(|| panic!("no {name}: {found}"));
    // One packet in seven comes only when it is asked for, and none of the others is.
    assert_eq!((count("again"), count("lost")), (count("kept_back"), count("kept_back")), "{found}");
    assert_eq!((packets.recovered, packets.lost), (count("kept_back"), 0), "{packets:?}");
    assert_eq!(count("highest"), count("last"), "{found}");
    let fractions = found["fractions"].as_array().expect("fractions");
    assert!(fractions.iter().filter_map(Value::as_u64).any(|of_256| (30..=44).contains(&of_256)), "{found}");
    assert!(count("reports") >= 5 && count("references") >= 2, "{found}");
    assert_eq!((&found["names"], &found["bye"]), (&Value::from(vec!["monitor@studio"]), &"receiver ends".into()));
    assert!(LOOPBACK_MS.contains(&least_round_trip_ms(&found)), "{found}");
    let told = received.report.times.round_trip.expect("it answered reference times");
    assert!(told < Duration::from_secs(1), "{told:?}");
    received.check(&pictures, FRAMES);
}
