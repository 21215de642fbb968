//! Pictures to and from GStreamer: `rtpvrawdepay`, and `rtpvrawpay` with both of its scans.

mod control;
mod sound;

use std::process::Command;
use std::time::Duration;

use thalweg_testing::program::Program;
use thalweg_video::format::{PixelFormat, Scan, VideoFormat};
use thalweg_video::rfc4175::{PacketPlan, Packing};

use crate::network::{dropped, file_fills, ports, wait_for_listener};
use crate::pictures::{Pictures, file, format, read_raw};
use crate::stream::{Receiver, description, receive_options, send, send_options};

/// A pipeline of these words.
#[track_caller]
pub fn launch(words: &str) -> Program {
    launch_with_log(words, "*:1")
}

/// A pipeline that says what GStreamer's parts do, each in so much detail, such as `rtpsource:5`.
#[track_caller]
pub fn launch_with_log(words: &str, log: &str) -> Program {
    let mut command = Command::new("gst-launch-1.0");
    command.arg("-q").args(words.split_whitespace()).env("GST_DEBUG", log).env("GST_DEBUG_NO_COLOR", "1");
    Program::start("gst-launch-1.0", &command)
}

/// The caps of a stream, as GStreamer makes them of a description: each parameter under its name in small letters, as text.
pub fn caps(format: &VideoFormat, port: u16) -> String {
    let text = description(format, port).to_text();
    let parameters = text.lines().find_map(|line| line.strip_prefix("a=fmtp:96 ")).expect("a format");
    let parameters = parameters.split(';').filter_map(|parameter| parameter.trim().split_once('='));
    let parameters: String =
        parameters.map(|(key, value)| format!(",{}=(string){value}", key.to_lowercase())).collect();
    format!("application/x-rtp,media=video,clock-rate=90000,encoding-name=RAW,payload=96{parameters}")
}

/// Sends to GStreamer, and compares what it writes.
#[track_caller]
fn check_sent(pixels: PixelFormat, size: (u16, u16), rate: u32, packing: (Packing, u32)) -> PacketPlan {
    let frames = if size.1 > 500 { 3 } else { 6 };
    let format = format(pixels, size, rate, Scan::Progressive);
    let (packing, mtu) = packing;
    let pictures = Pictures::new(format, frames);
    for _ in 0..ATTEMPTS_MAX {
        let port = ports();
        let output = file(&format!("gstreamer-{port}.raw"));
        let caps = caps(&format, port);
        let pipeline = launch(&format!(
            "udpsrc address=127.0.0.1 port={port} buffer-size=16777216 caps={caps} ! rtpvrawdepay ! \
             filesink location={} buffer-mode=unbuffered sync=false",
            output.display()
        ));
        wait_for_listener(port);
        let mut options = send_options(port, frames);
        (options.packing, options.mtu) = (packing, Some(mtu));
        let report = send(format, &options);
        let octets = report.sender.frames_sent * format.frame_octets() as u64;
        let is_whole = file_fills(&output, octets, OUTPUT_PATIENCE);
        let dropped = dropped(port);
        pipeline.kill();
        if dropped == 0 {
            assert!(is_whole, "GStreamer wrote too little");
            pictures.check(&read_raw(&output, format), report.sender.frames_sent);
            return PacketPlan::new(format, packing, mtu as usize - 28).expect("a plan");
        }
        println!("GStreamer's socket had no room for {dropped} datagrams: once more");
    }
    panic!("GStreamer's socket had too little room {ATTEMPTS_MAX} times");
}

/// Octets of picture in the packets of a plan at most.
fn payload_max(plan: &PacketPlan) -> u16 {
    let octets = (0..plan.field_packets()).map(|index| {
        let (shape, _) = plan.packet(index);
        shape.datagram_octets - shape.header_octets
    });
    octets.max().unwrap_or_default()
}

/// A line of high definition in a picture of few lines: packets have the sizes of high definition.
const STRIP: (u16, u16) = (1920, 36);
const HD: (u16, u16) = (1920, 1080);
const ETHERNET: (Packing, u32) = (Packing::Equal, 1500);
const JUMBO: (Packing, u32) = (Packing::Equal, 9000);
const FILLED: (Packing, u32) = (Packing::Fill, 9000);
/// The longest packets of GStreamer: of Ethernet, of an MTU of 4,100 and of jumbo frames.
const PACKET_OCTETS: [u32; 3] = [1472, 4072, 8972];
const ATTEMPTS_MAX: usize = 5;
/// How long GStreamer may take for what has been sent.
const OUTPUT_PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn ten_bits_reach_gstreamer_in_each_size_of_packets() {
    for (packing, octets) in [(ETHERNET, 1200), (JUMBO, 7200), (FILLED, 8945)] {
        let plan = check_sent(PixelFormat::Yuv422Bits10, STRIP, 10, packing);
        assert_eq!(payload_max(&plan), octets);
    }
}

#[test]
fn eight_bits_reach_gstreamer_in_each_size_of_packets() {
    for packing in [ETHERNET, JUMBO, FILLED] {
        check_sent(PixelFormat::Yuv422Bits8, STRIP, 10, packing);
    }
}

#[test]
fn rgb_reaches_gstreamer_in_each_size_of_packets() {
    for packing in [ETHERNET, JUMBO, FILLED] {
        check_sent(PixelFormat::Rgb8, STRIP, 10, packing);
    }
}

#[test]
fn block_packing_reaches_gstreamer() {
    check_sent(PixelFormat::Yuv422Bits10, STRIP, 10, (Packing::Blocks, 1500));
}

#[test]
fn high_definition_reaches_gstreamer() {
    check_sent(PixelFormat::Yuv422Bits10, HD, 5, JUMBO);
    check_sent(PixelFormat::Yuv422Bits10, HD, 2, ETHERNET);
}

/// GStreamer sends a file of test pictures with packets of up to `mtu` octets to us.
#[track_caller]
fn check_received(pixels: PixelFormat, size: (u16, u16), scan: Scan, mtu: u32) {
    const FRAMES: u32 = 6;
    let format = format(pixels, size, 10, scan);
    let port = ports();
    let pictures = Pictures::new(format, FRAMES);
    let input = pictures.write_raw(&format!("to-gstreamer-{port}.raw"));
    let receiver = Receiver::start(receive_options(format, port, FRAMES));
    let words = match pixels {
        PixelFormat::Yuv422Bits10 => "uyvp",
        PixelFormat::Yuv422Bits8 => "uyvy",
        PixelFormat::Rgb8 => "rgb",
    };
    // Fields too are complete from the first on: a packet in which one line follows another tells how lines are numbered.
    let interlaced = scan != Scan::Progressive;
    let pipeline = launch(&format!(
        "filesrc location={} ! rawvideoparse format={words} width={} height={} framerate=10/1 interlaced={interlaced} \
         top-field-first=true ! rtpvrawpay mtu={mtu} ! udpsink host=127.0.0.1 port={port}",
        input.display(),
        size.0,
        size.1,
    ));
    let received = receiver.finish();
    pipeline.finish().well();
    let packets = received.report.receiver.packets;
    assert_eq!((packets.lost, received.concealed), (0, 0), "{:?}", received.report.receiver);
    received.check(&pictures, FRAMES);
}

#[test]
fn progressive_pictures_come_from_gstreamer() {
    for mtu in PACKET_OCTETS {
        for pixels in PixelFormat::ALL {
            check_received(pixels, (320, 180), Scan::Progressive, mtu);
        }
    }
}

#[test]
fn fields_come_from_gstreamer_under_the_numbers_of_frame_lines() {
    for mtu in PACKET_OCTETS {
        check_received(PixelFormat::Yuv422Bits10, (320, 180), Scan::Interlaced, mtu);
    }
}

#[test]
fn high_definition_comes_from_gstreamer() {
    check_received(PixelFormat::Yuv422Bits10, HD, Scan::Progressive, 8972);
    check_received(PixelFormat::Yuv422Bits10, HD, Scan::Interlaced, 1472);
}
