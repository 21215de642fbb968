//! Pictures to and from FFmpeg, compared by the MD5 of their frames or octet by octet.

mod sound;

use std::fs;
use std::path::Path;
use std::process::Command;

use thalweg_testing::program::Program;
use thalweg_video::format::{PixelFormat, Scan, VideoFormat};
use thalweg_video::rfc4175::Packing;

use crate::network::{dropped, ports, wait_for_listener};
use crate::pictures::{Pictures, file, format};
use crate::stream::{Receiver, description, receive_options, send, send_options};

/// FFmpeg with these words.
#[track_caller]
pub fn ffmpeg(words: &str) -> Program {
    let mut command = Command::new("ffmpeg");
    command.args(["-hide_banner", "-nostdin", "-loglevel", "warning"]).args(words.split_whitespace());
    Program::start("ffmpeg", &command)
}

/// The planar form in which FFmpeg has the samples of these pixels, none of them changed.
fn planar(pixels: PixelFormat) -> &'static str {
    if pixels.depth() == 10 { "yuv422p10le" } else { "yuv422p" }
}

/// The MD5 of each frame in a file that FFmpeg wrote.
fn md5s(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(|row| row.rsplit(',').next().map(|md5| md5.trim().to_owned())).collect()
}

/// Sends to FFmpeg, which knows the stream by our description.
#[track_caller]
fn check_sent(pixels: PixelFormat, size: (u16, u16), packing: (Packing, u32), scan: Scan) {
    const FRAMES: u32 = 6;
    let format = format(pixels, size, 10, scan);
    let pictures = Pictures::new(format, FRAMES);
    let (packing, mtu) = packing;
    for _ in 0..ATTEMPTS_MAX {
        let port = ports();
        let sent = pictures.write_y4m(&format!("ffmpeg-{port}.y4m"));
        let [expected, found, session] =
            ["expected.md5", "found.md5", "sdp"].map(|end| file(&format!("ffmpeg-{port}.{end}")));
        let end = format!("-an -pix_fmt {} -fps_mode passthrough -frames:v {FRAMES} -f framemd5", planar(pixels));
        ffmpeg(&format!("-i {} {end} {}", sent.display(), expected.display())).finish().well();
        fs::write(&session, description(&format, port).to_text()).expect("the folder of tests can be written");
        let receiving =
            ffmpeg(&format!("-protocol_whitelist file,udp,rtp -i {} {end} {}", session.display(), found.display()));
        wait_for_listener(port);
        let mut options = send_options(port, FRAMES);
        (options.packing, options.mtu) = (packing, Some(mtu));
        let report = send(format, &options);
        if report.sender.frames_dropped == 0 && dropped(port) == 0 {
            receiving.finish().well();
            assert_eq!(md5s(&found), md5s(&expected));
            assert_eq!(md5s(&found).len(), FRAMES as usize);
            return;
        }
        println!("the machine was too busy for {report:?}: once more");
        receiving.kill();
    }
    panic!("the machine was too busy {ATTEMPTS_MAX} times");
}

/// FFmpeg sends a file of test pictures with packets of up to `octets` octets to us.
#[track_caller]
fn check_received(pixels: PixelFormat, scan: Scan, octets: u32) {
    const FRAMES: u32 = 6;
    let format = format(pixels, (320, 180), 10, scan);
    let port = ports();
    let pictures = Pictures::new(format, FRAMES);
    let input = pictures.write_y4m(&format!("to-ffmpeg-{port}.y4m"));
    let receiver = Receiver::start(receive_options(format, port, FRAMES));
    let sending = ffmpeg(&format!(
        "-re -i {} {} -strict -1 -f rtp rtp://127.0.0.1:{port}?pkt_size={octets}",
        input.display(),
        encoder(&format),
    ));
    let received = receiver.finish();
    sending.finish().well();
    let packets = received.report.receiver.packets;
    assert_eq!((packets.lost, received.concealed), (0, 0), "{:?}", received.report.receiver);
    received.check(&pictures, FRAMES);
}

/// What packs the pixels as they lie in packets.
fn encoder(format: &VideoFormat) -> &'static str {
    if format.pixels().depth() == 10 { "-c:v bitpacked -pix_fmt yuv422p10" } else { "-c:v rawvideo -pix_fmt uyvy422" }
}

/// A line of high definition in a picture of few lines: packets have the sizes of high definition.
const STRIP: (u16, u16) = (1920, 36);
const ATTEMPTS_MAX: usize = 5;
const SIZES: [(Packing, u32); 3] = [(Packing::Equal, 1500), (Packing::Equal, 9000), (Packing::Fill, 9000)];

#[test]
fn ffmpeg_reads_ten_bits_by_our_description() {
    SIZES.into_iter().for_each(|packing| check_sent(PixelFormat::Yuv422Bits10, STRIP, packing, Scan::Progressive));
}

#[test]
fn ffmpeg_reads_eight_bits_by_our_description() {
    SIZES.into_iter().for_each(|packing| check_sent(PixelFormat::Yuv422Bits8, STRIP, packing, Scan::Progressive));
}

#[test]
fn ffmpeg_reads_fields_by_our_description() {
    check_sent(PixelFormat::Yuv422Bits10, STRIP, SIZES[0], Scan::Interlaced);
}

#[test]
fn progressive_pictures_come_from_ffmpeg() {
    for octets in [1472, 8972] {
        check_received(PixelFormat::Yuv422Bits10, Scan::Progressive, octets);
        check_received(PixelFormat::Yuv422Bits8, Scan::Progressive, octets);
    }
}

#[test]
fn fields_come_from_ffmpeg_under_the_numbers_of_field_lines() {
    for octets in [1472, 8972] {
        check_received(PixelFormat::Yuv422Bits10, Scan::Interlaced, octets);
    }
}
