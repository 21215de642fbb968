//! Sound beside pictures by the program, to and from GStreamer and FFmpeg.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::program::{PATIENCE, Program};
use crate::thalweg;

/// A file of these tests.
fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Waits until somebody hears at a port of loopback.
#[track_caller]
fn wait_for_listener(port: u16) {
    let (socket, end) = (format!(":{port:04X} "), Instant::now() + PATIENCE);
    while !fs::read_to_string("/proc/net/udp").expect("Linux").contains(&socket) {
        assert!(Instant::now() < end, "nobody hears at {port}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until a file has so many octets.
#[track_caller]
fn wait_for_octets(path: &PathBuf, octets: u64) {
    let end = Instant::now() + PATIENCE;
    while fs::metadata(path).map_or(0, |file| file.len()) < octets {
        assert!(Instant::now() < end, "{} stays too short", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Samples of 24 bits of so many seconds and two channels, no two neighbours alike; the most significant octet first.
fn samples(seconds: usize) -> Vec<u8> {
    let mixed = |at: usize| (at as u32 + 1).wrapping_mul(0x9e37_79b1).to_be_bytes();
    (0..48_000 * 2 * seconds).flat_map(|at| mixed(at).into_iter().take(3)).collect()
}

/// Samples with the other octet first.
fn swapped(samples: &[u8]) -> Vec<u8> {
    samples.chunks_exact(3).flat_map(|sample| [sample[2], sample[1], sample[0]]).collect()
}

/// The samples of a WAVE file that this program wrote for two channels.
fn of_wave(path: &PathBuf) -> Vec<u8> {
    fs::read(path).expect("a file").split_off(44)
}

/// Fails unless `found` is a part of `sent` of at least so many octets: ends may start late.
#[track_caller]
fn check_part(found: &[u8], sent: &[u8], least: usize) {
    assert!(found.len() >= least, "{} octets came", found.len());
    let head = &found[..600];
    let start = sent.windows(600).step_by(6).position(|window| window == head).expect("the first samples were sent");
    let (found, sent) = (&found[..least], &sent[start * 6..]);
    assert!(found.iter().zip(sent).all(|(found, sent)| found == sent), "a sample differs");
}

/// A receiver of picture and sound, and what it is to hear.
struct Hearing {
    input: PathBuf,
    output: PathBuf,
    sent: Vec<u8>,
    receiver: Program,
}

impl Hearing {
    /// Hears pictures at `port` and sound two ports above.
    #[track_caller]
    fn start(name: &str, port: u16) -> Hearing {
        let (input, output) = (file(&format!("{name}-sound.raw")), file(&format!("{name}-sound.wav")));
        let (sent, sound_port) = (samples(6), port + 2);
        fs::write(&input, &sent).expect("written");
        let receiver = thalweg::start_alone(&format!(
            "video recv --bind 127.0.0.1:{port} --size 320x180 --rate 10 --format yuv422-8 --sink null \
             --sound-bind 127.0.0.1:{sound_port} --sound-sink wav:{} --playout-frames 4 --seconds 9 --json",
            output.display()
        ));
        [port, sound_port].into_iter().for_each(wait_for_listener);
        Hearing { input, output, sent, receiver }
    }
}

mod gstreamer {
    use super::*;

    fn launch(words: &str) -> Program {
        let mut command = Command::new("gst-launch-1.0");
        command.arg("-q").args(words.split_whitespace());
        Program::start("gst-launch-1.0", &command)
    }

    #[test]
    fn picture_and_sound_of_gstreamer_reach_us() {
        let Hearing { input, output, sent, mut receiver } = Hearing::start("gstreamer", 21_004);
        let pipeline = launch(&format!(
            "rtpbin name=bin videotestsrc is-live=true num-buffers=60 ! video/x-raw,format=UYVY,width=320,height=180,framerate=10/1 ! \
             rtpvrawpay pt=96 mtu=1472 ! bin.send_rtp_sink_0 bin.send_rtp_src_0 ! udpsink host=127.0.0.1 port=21004 \
             bin.send_rtcp_src_0 ! udpsink host=127.0.0.1 port=21005 sync=false async=false \
             filesrc location={} ! rawaudioparse format=pcm pcm-format=s24be sample-rate=48000 num-channels=2 ! \
             rtpL24pay pt=98 min-ptime=1000000 max-ptime=1000000 ! bin.send_rtp_sink_1 bin.send_rtp_src_1 ! \
             udpsink host=127.0.0.1 port=21006 bin.send_rtcp_src_1 ! udpsink host=127.0.0.1 port=21007 sync=false async=false",
            input.display()
        ));
        let mut told = String::new();
        while !told.ends_with("\n}") {
            told.push('\n');
            told.push_str(&receiver.expect("a JSON object", |_| true));
        }
        pipeline.kill();
        let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
        assert_eq!(told["sound"]["packets_lost"], 0, "{told}");
        // GStreamer reports of both under one name, in the first three seconds: they are brought together.
        assert!(told["sound"]["behind_picture_ms"].as_f64().is_some_and(|millis| millis.abs() < 5.0), "{told}");
        check_part(&swapped(&of_wave(&output)), &sent, 48_000 * 6);
    }

    #[test]
    fn our_picture_and_sound_reach_gstreamer() {
        let output = file("gstreamer-tone.raw");
        let _ = fs::remove_file(&output);
        let pipeline = launch(&format!(
            "udpsrc address=127.0.0.1 port=21012 buffer-size=16777216 \
             caps=application/x-rtp,media=video,clock-rate=90000,encoding-name=RAW,payload=96,sampling=(string)YCbCr-4:2:2,depth=(string)8,width=(string)320,height=(string)180 ! \
             rtpvrawdepay ! fakesink sync=false \
             udpsrc address=127.0.0.1 port=21014 buffer-size=16777216 \
             caps=application/x-rtp,media=audio,clock-rate=48000,encoding-name=L24,channels=2,payload=98 ! \
             rtpL24depay ! filesink location={} buffer-mode=unbuffered sync=false",
            output.display()
        ));
        [21_012, 21_014].into_iter().for_each(wait_for_listener);
        let source = file("gstreamer-sent.raw");
        let (wave, sent) = (file("gstreamer-sent.wav"), samples(2));
        fs::write(&source, &sent).expect("written");
        write_wave(&wave, &sent);
        let words = format!(
            "video send --to 127.0.0.1:21012 --size 320x180 --rate 10 --format yuv422-8 --frames 30 --sound wav:{} --json",
            wave.display()
        );
        thalweg::start_alone(&words).expect("a JSON object", |line| line.starts_with('{'));
        wait_for_octets(&output, sent.len() as u64);
        pipeline.kill();
        assert!(fs::read(&output).expect("a file") == sent, "the samples differ");
    }
}

mod ffmpeg {
    use super::*;

    #[test]
    fn ffmpeg_hears_our_sound_by_the_description_of_both() {
        let [session, output, wave] = ["sdp", "raw", "wav"].map(|end| file(&format!("ffmpeg-both.{end}")));
        let _ = fs::remove_file(&output);
        let sent = samples(2);
        write_wave(&wave, &sent);
        let stream =
            format!("--to 127.0.0.1:21020 --size 320x180 --rate 10 --format yuv422-8 --sound wav:{}", wave.display());
        thalweg::start_alone(&format!("video sdp {stream} --out {}", session.display())).finish().well();
        let mut command = Command::new("ffmpeg");
        let words = format!(
            "-hide_banner -nostdin -loglevel warning -protocol_whitelist file,udp,rtp -analyzeduration 100000 -i {} -map 0:a -c copy \
             -flush_packets 1 -f s24be {}",
            session.display(),
            output.display()
        );
        command.args(words.split_whitespace());
        let hearing = Program::start("ffmpeg", &command);
        [21_020, 21_022].into_iter().for_each(wait_for_listener);
        thalweg::start_alone(&format!("video send {stream} --frames 30 --json"))
            .expect("a JSON object", |line| line.starts_with('{'));
        // FFmpeg passes over what comes while it looks at the streams.
        wait_for_octets(&output, 48_000 * 6);
        hearing.kill();
        check_part(&fs::read(&output).expect("a file"), &sent, 48_000 * 6);
    }

    #[test]
    fn sound_of_ffmpeg_beside_our_picture_reaches_us() {
        let Hearing { input, output, sent, mut receiver } = Hearing::start("ffmpeg", 21_028);
        let mut command = Command::new("ffmpeg");
        let words = format!(
            "-hide_banner -nostdin -loglevel warning -re -f s24be -ar 48000 -ac 2 -i {} -c:a pcm_s24be -payload_type 98 \
             -f rtp rtp://127.0.0.1:21030?pkt_size=1472",
            input.display()
        );
        command.args(words.split_whitespace());
        let sending = Program::start("ffmpeg", &command);
        let picture = "video send --to 127.0.0.1:21028 --size 320x180 --rate 10 --format yuv422-8 --frames 40 --json";
        thalweg::start_alone(picture).expect("a JSON object", |line| line.starts_with('{'));
        receiver.expect("a JSON object", |line| line.starts_with('{'));
        sending.kill();
        check_part(&swapped(&of_wave(&output)), &sent, 48_000 * 6);
    }
}

/// Writes samples of two channels, the most significant octet first, as a WAVE file.
fn write_wave(path: &PathBuf, samples: &[u8]) {
    let mut octets = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x02\0".to_vec();
    octets.extend(48_000_u32.to_le_bytes());
    octets.extend(288_000_u32.to_le_bytes());
    octets.extend(b"\x06\0\x18\0data");
    octets.extend((samples.len() as u32).to_le_bytes());
    octets.extend(swapped(samples));
    fs::write(path, octets).expect("written");
}
