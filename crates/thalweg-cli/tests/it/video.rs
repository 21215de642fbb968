//! `video` with both ends, over loopback.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{PATIENCE, Running, Said, command, run, tag};

/// The picture of these tests: so slow that a machine with other work drops no frame.
pub const SIZE: [&str; 4] = ["--size", "320x180", "--rate", "2"];

const SENT: [&str; 19] = [
    "cpu_seconds",
    "fps_mean",
    "fps_sd",
    "frames_dropped",
    "frames_missed",
    "frames_sent",
    "late_max_us",
    "late_mean_us",
    "packets_lost_here",
    "packets_resent",
    "packets_sent",
    "picture",
    "receiver",
    "replans",
    "rtt_us",
    "seconds",
    "socket_errors",
    "sound",
    "system_calls",
];

/// What scripts were promised of a receiver.
const RECEIVED: [&str; 14] = [
    "frames_expected",
    "frames_complete",
    "frames_concealed",
    "packets_received",
    "packets_lost",
    "packets_recovered",
    "packets_reordered",
    "cpu_seconds",
    "seconds",
    "fps_mean",
    "fps_sd",
    "rtt_us",
    "jitter_rfc3550_us",
    "jitter_schedule_us",
];

/// A folder of this test, removed afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let path = std::env::temp_dir().join(format!("thalweg-video-{}", tag()));
        std::fs::create_dir(&path).expect("a new folder");
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("text").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An address of loopback with an even port that is free, as the next one is.
pub fn address() -> String {
    for _ in 0..1000 {
        let port = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port() & !1;
        if [port, port + 1].iter().all(|port| UdpSocket::bind(("127.0.0.1", *port)).is_ok()) {
            return format!("127.0.0.1:{port}");
        }
    }
    panic!("no two neighbouring ports are free");
}

/// Starts a receiver and waits until it hears.
pub fn receiver(address: &str, options: &[&str]) -> Running {
    let running = Running::start(command(&[&["video", "recv"], options].concat()));
    wait_for_listener(address);
    running
}

/// Waits until somebody hears at an address of loopback.
pub fn wait_for_listener(address: &str) {
    let port: u16 = address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let socket = format!(":{port:04X} ");
    let deadline = Instant::now() + PATIENCE;
    while !std::fs::read_to_string("/proc/net/udp").expect("Linux").contains(&socket) {
        assert!(Instant::now() < deadline, "nobody hears at {address}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends from one process to the other; returns what both said, the sender first.
pub fn stream(address: &str, send: &[&str], receive: &[&str]) -> [Said; 2] {
    let receiver = receiver(address, receive);
    let sent = run(&[&["video", "send", "--to", address], send].concat());
    [sent, receiver.finish()]
}

pub fn json(said: &Said) -> Value {
    serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {}\n{}", said.stdout, said.stderr))
}

#[track_caller]
pub fn figure(figures: &Value, name: &str) -> f64 {
    figures[name].as_f64().unwrap_or_else(|| panic!("{name} in {figures}"))
}

#[test]
fn a_test_picture_arrives_line_by_line_and_both_ends_say_what_was_promised() {
    let address = address();
    let send = [&SIZE[..], &["--frames", "6", "--json"]].concat();
    let receive = [&["--bind", &address, "--playout-frames", "3", "--json"], &SIZE[..]].concat();
    let [sent, received] = stream(&address, &send, &receive);
    let (sent, received) = (json(&sent.expect_code(0)), json(&received.expect_code(0)));
    let keys: Vec<&str> = sent.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(keys, SENT);
    let missing: Vec<&str> = RECEIVED.into_iter().filter(|key| received.get(key).is_none()).collect();
    assert!(missing.is_empty(), "{missing:?} in {received}");
    assert_eq!((figure(&sent, "frames_sent"), figure(&received, "frames_complete")), (6.0, 6.0));
    assert_eq!(figure(&received, "frames_expected"), 6.0);
    assert_eq!(figure(&received, "packets_received"), figure(&sent, "packets_sent"));
    assert_eq!((figure(&received, "packets_lost"), &received["law"]["holds"]), (0.0, &true.into()));
    assert_eq!((&received["verified"]["frames_proved"], &received["verified"]["holds"]), (&6.into(), &true.into()));
    assert!(figure(&received, "rtt_us") > 0.0 && figure(&received, "seconds") > 1.0, "{received}");
}

#[test]
fn a_y4m_file_comes_out_as_it_went_in() {
    for (format, tag, planes) in [("yuv422-8", "C422", 320 * 180 * 2), ("yuv422-10", "C422p10", 320 * 180 * 4)] {
        let (folder, address) = (Folder::new(), address());
        let film = folder.path("in.y4m");
        let mut content = format!("YUV4MPEG2 W320 H180 F2:1 Ip A1:1 {tag}\n").into_bytes();
        for frame in 0..4_u32 {
            content.extend_from_slice(b"FRAME\n");
            // Of samples with 10 bits every second octet is the upper one.
            let octet = |at: u32| if planes == 320 * 180 * 4 && at % 2 == 1 { at % 3 } else { at * 7 + frame };
            content.extend((0..planes).map(|at| octet(at) as u8));
        }
        std::fs::write(&film, &content).expect("written");
        let (out, raw) = (folder.path("out.y4m"), format!("file:{}", folder.path("out.y4m")));
        let picture = ["--bind", &address, "--playout-frames", "3", "--sink", &raw, "--format", format];
        let [sent, received] = stream(&address, &["--source", &format!("y4m:{film}")], &[&picture, &SIZE[..]].concat());
        sent.expect_code(0);
        received.expect_code(0);
        let (head, body) = split(&out);
        let (head_sent, body_sent) = split(&film);
        assert!(head.starts_with("YUV4MPEG2 W320 H180 F2:1") && head_sent.contains(tag), "{head}");
        assert!(body == body_sent, "{format}: the frames differ");
    }
}

/// The first line of a file, and the rest.
fn split(path: &str) -> (String, Vec<u8>) {
    let content = std::fs::read(path).expect("readable");
    let end = content.iter().position(|octet| *octet == b'\n').expect("a line");
    (String::from_utf8_lossy(&content[..end]).into_owned(), content[end + 1..].to_vec())
}

#[test]
fn a_session_description_tells_a_receiver_everything() {
    let (folder, address) = (Folder::new(), address());
    let (film, sdp, out) = (folder.path("in.raw"), folder.path("film.sdp"), folder.path("out.raw"));
    // 16 x 8 in RGB, 4 frames.
    let content: Vec<u8> = (0..16 * 8 * 3 * 4_u32).map(|at| (at * 31 / 7) as u8).collect();
    std::fs::write(&film, &content).expect("written");
    let picture = ["--size", "16x8", "--rate", "2", "--format", "rgb8", "--scan", "interlaced"];
    let source = ["--source", &format!("raw:{film}")];
    let send = [&source, &picture[..], &["--rtcp", "mux", "--mtu", "200"]].concat();
    let written = run(&[&["video", "sdp", "--to", &address, "--out", &sdp], &send[2..]].concat());
    written.expect_code(0);
    let text = std::fs::read_to_string(&sdp).expect("the description");
    for part in ["sampling=RGB; width=16; height=8; depth=8", "exactframerate=2", "interlace", "a=rtcp-mux", "rtx"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let sink = format!("file:{out}");
    let receive = ["--sdp", &sdp, "--sink", &sink, "--playout-frames", "3"];
    let [sent, received] = stream(&address, &send, &receive);
    sent.expect_code(0);
    received.expect_code(0);
    assert!(std::fs::read(&out).expect("frames") == content, "the frames differ");
}

/// An address of loopback with an even port that is free, as the next three are: picture and sound, each with RTCP.
fn address_of_both() -> (String, String) {
    for _ in 0..1000 {
        let picture = address();
        let port: u16 = picture.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        if port < 65_000 && [port + 2, port + 3].iter().all(|port| UdpSocket::bind(("127.0.0.1", *port)).is_ok()) {
            return (picture, format!("127.0.0.1:{}", port + 2));
        }
    }
    panic!("no four neighbouring ports are free");
}

/// Sends picture and sound from one process to the other; returns what both said, the sender first.
fn stream_with_sound(send: &[&str], receive: &[&str], picture: &str, sound: &str) -> [Said; 2] {
    let receiver = receiver(picture, receive);
    wait_for_listener(sound);
    let sent = run(&[&["video", "send", "--to", picture], &SIZE[..], send].concat());
    [sent, receiver.finish()]
}

#[test]
fn sound_comes_with_its_picture_and_each_sample_is_proved() {
    for (channels, packet_time) in [("1", "1ms"), ("8", "125us")] {
        let (folder, (picture, sound)) = (Folder::new(), address_of_both());
        let sdp = folder.path("both.sdp");
        let tone = ["--sound", "tone", "--channels", channels, "--packet-time", packet_time];
        run(&[&["video", "sdp", "--to", &picture, "--out", &sdp], &SIZE[..], &tone].concat()).expect_code(0);
        let text = std::fs::read_to_string(&sdp).expect("the description");
        assert!(text.contains("m=video") && text.contains(&format!("rtpmap:98 L24/48000/{channels}")), "{text}");
        let send = [&tone[..], &["--frames", "6", "--json"]].concat();
        let receive = ["--sdp", &sdp, "--playout-frames", "3", "--json"];
        let [sent, received] = stream_with_sound(&send, &receive, &picture, &sound);
        let (sent, received) = (&json(&sent)["sound"], &json(&received)["sound"]);
        assert_eq!(
            received["packets_expected"],
            sent["packets_sent"].as_u64().unwrap() + sent["packets_dropped"].as_u64().unwrap()
        );
        // A processor that serves others for a tenth of a second costs packets here, and loopback loses none.
        assert_eq!(
            (&received["packets_lost"], &received["law_holds"]),
            (&sent["packets_dropped"], &true.into()),
            "{received}"
        );
        assert_eq!((&received["tone"]["frames_wrong"], &received["tone"]["holds"]), (&0.into(), &true.into()));
        assert!(figure(&received["tone"], "frames_proved") > 48_000.0, "{received}");
        assert!(figure(received, "behind_picture_ms").abs() < 20.0 && figure(received, "steps") > 0.0, "{received}");
    }
}

/// A WAVE file of a second, two channels of 24 bits, and its samples.
fn wave() -> (Vec<u8>, Vec<u8>) {
    let samples: Vec<u8> = (0..48_000 * 6_u32).map(|at| (at.wrapping_mul(0x9e37_79b1) >> 19) as u8).collect();
    let mut file = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x02\0".to_vec();
    file.extend(48_000_u32.to_le_bytes());
    file.extend(288_000_u32.to_le_bytes());
    file.extend(b"\x06\0\x18\0LIST\x04\0\0\0abcddata");
    file.extend((samples.len() as u32).to_le_bytes());
    file.extend(&samples);
    (file, samples)
}

#[test]
fn a_wave_file_comes_out_as_it_went_in() {
    let (folder, (picture, sound)) = (Folder::new(), address_of_both());
    let (source, sink) = (folder.path("in.wav"), folder.path("out.wav"));
    let (file, samples) = wave();
    std::fs::write(&source, file).expect("written");
    let (from, into) = (format!("wav:{source}"), format!("wav:{sink}"));
    let receive = [
        &["--bind", &picture, "--sound-bind", &sound, "--sound-sink", &into, "--playout-frames", "3", "--json"],
        &SIZE[..],
    ];
    let [sent, received] = stream_with_sound(&["--sound", &from, "--frames", "6"], &receive.concat(), &picture, &sound);
    let received = json(&received);
    sent.expect_code(0);
    assert_eq!((&received["sound"]["packets_lost"], &received["sound"]["frames_concealed"]), (&0.into(), &0.into()));
    let written = std::fs::read(&sink).expect("a file");
    assert_eq!(written[40..44], (samples.len() as u32).to_le_bytes(), "the head tells the length");
    assert!(written[44..] == samples, "the samples differ");
}

#[test]
fn sound_that_is_not_the_test_tone_fails_the_check() {
    let (folder, (picture, sound)) = (Folder::new(), address_of_both());
    let source = folder.path("in.wav");
    std::fs::write(&source, wave().0).expect("written");
    let from = format!("wav:{source}");
    let receive =
        [&["--bind", &picture, "--sound-bind", &sound, "--playout-frames", "3", "--json"], &SIZE[..]].concat();
    let [_, received] = stream_with_sound(&["--sound", &from, "--frames", "4"], &receive, &picture, &sound);
    let received = received.expect_code(1);
    assert!(received.stderr.contains("not the test tone"), "{}", received.stderr);
}

#[test]
fn frames_that_are_not_those_of_the_test_picture_fail_the_check() {
    let (folder, address) = (Folder::new(), address());
    let film = folder.path("in.raw");
    std::fs::write(&film, vec![0x55; 320 * 180 * 5 / 2 * 3]).expect("written");
    let source = format!("raw:{film}");
    let send = [&["--source", &source], &SIZE[..]].concat();
    let receive = [&["--bind", &address, "--playout-frames", "3", "--json"], &SIZE[..]].concat();
    let [sent, received] = stream(&address, &send, &receive);
    sent.expect_code(0);
    let received = received.expect_code(1);
    assert!(received.stderr.contains("not those of the test picture"), "{}", received.stderr);
    let figures = json(&received);
    assert_eq!((&figures["verified"]["holds"], &figures["frames_complete"]), (&false.into(), &3.into()));
}

#[test]
fn a_receiver_that_hears_nothing_says_so_in_time() {
    let said = run(&["video", "recv", "--bind", &address(), "--seconds", "0.3", "--json"]).expect_code(3);
    assert!(said.stderr.contains("no packet came"), "{}", said.stderr);
    assert_eq!(json(&said)["frames_expected"], 0);
}

#[test]
fn a_receiver_that_ends_before_its_sender_has_lost_nothing() {
    let address = address();
    // It ends within a frame, which takes half a second to come.
    let options = [&["--bind", &address, "--seconds", "4", "--json"], &SIZE[..]].concat();
    let receiver = receiver(&address, &options);
    let sender = Running::start(command(&[&["video", "send", "--to", &address], &SIZE[..]].concat()));
    let figures = json(&receiver.finish().expect_code(0));
    drop(sender);
    assert_eq!((&figures["frames_concealed"], &figures["packets_lost"]), (&0.into(), &0.into()), "{figures}");
    assert_eq!((&figures["law"]["holds"], &figures["verified"]["holds"]), (&true.into(), &true.into()), "{figures}");
}

#[test]
fn a_picture_of_another_size_is_told_apart_from_none() {
    let address = address();
    let send = [&SIZE[..], &["--frames", "3"]].concat();
    // The rows of the smaller picture are all beyond one of eight lines but the first eight.
    let receive = ["--bind", &address, "--size", "256x8", "--rate", "2", "--sink", "null", "--json"];
    let receiver = receiver(&address, &[&receive[..], &["--seconds", "4"]].concat());
    run(&[&["video", "send", "--to", &address], &send[..]].concat()).expect_code(0);
    let received = receiver.finish();
    let figures = json(&received);
    assert_ne!(received.code, Some(0), "{figures}");
    assert!(figures["layers"]["outside"].as_u64() > Some(0), "{figures}");
}

#[test]
fn ctrl_c_ends_a_sender_early_with_its_figures() {
    let address = address();
    let options = [&["video", "send", "--to", &address, "--seconds", "60", "--json"], &SIZE[..]].concat();
    let sender = Running::start(command(&options));
    std::thread::sleep(Duration::from_millis(1500));
    sender.signal("INT");
    let said = sender.finish().expect_code(130);
    assert!(json(&said)["frames_sent"].as_u64() > Some(0), "{}", said.stdout);
}

#[test]
fn each_wrong_option_is_named_with_a_remedy() {
    #[track_caller]
    fn check(words: &[&str], part: &str) {
        let said = run(&[&["video"], words].concat()).expect_code(2);
        assert!(said.stderr.contains(part), "{words:?}: {}", said.stderr);
    }
    let to = ["send", "--to", "127.0.0.1:5004"];
    let send = |options: &[&str], part: &str| check(&[&to, options].concat(), part);
    let bind = ["recv", "--bind", "127.0.0.1:5004"];
    let recv = |options: &[&str], part: &str| check(&[&bind, options].concat(), part);
    check(&["send"], "--to");
    check(&["recv"], "--bind");
    check(&["send", "--to", "localhost"], "invalid socket address");
    send(&["--size", "1920"], "give WIDTHxHEIGHT");
    send(&["--size", "0x0"], "not between 1x1 and 8192x8192");
    send(&["--size", "321x180"], "multiple of 2");
    send(&["--size", "16x16"], "no room for the test picture's code");
    send(&["--size", "320x181", "--scan", "interlaced"], "two fields of equal height");
    send(&["--rate", "29.97"], "30000/1001");
    send(&["--rate", "0"], "rate");
    send(&["--format", "yuv420"], "yuv422-10");
    send(&["--scan", "both"], "progressive, interlaced or psf");
    send(&["--mtu", "67"], "from 68 to 65535");
    send(&["--mtu", "68"], "give larger datagrams");
    send(&["--batching", "65"], "1 to 64");
    send(&["--packing", "tight"], "equal, blocks or fill");
    send(&["--repair", "fec"], "rtx, same, off");
    send(&["--rtcp", "0"], "1 to 65535");
    send(&["--dscp", "64"], "0..=63");
    send(&["--frames", "0"], "--frames");
    send(&["--seconds", "-1"], "seconds");
    send(&["--source", "camera"], "y4m:PATH");
    send(&["--repeat"], "leave --repeat out");
    send(&["--source", "v4l2:/dev/video0", "--repeat"], "leave --repeat out");
    #[cfg(not(feature = "v4l2"))]
    send(&["--source", "v4l2:/dev/video0"], "build it with --features v4l2");
    send(&["--sound", "drum"], "give tone or wav:PATH");
    send(&["--channels", "2"], "--sound");
    send(&["--sound", "tone", "--channels", "9"], "1..=8");
    send(&["--sound", "tone", "--packet-time", "4ms"], "1ms or 125us");
    send(&["--sound", "wav:/x", "--channels", "2"], "leave --channels out");
    send(&["--source", "y4m:/x", "--rate", "25"], "leave --rate out");
    send(&["--to", "127.0.0.1:6000", "--to", "127.0.0.1:7000"], "two paths at most");
    check(&["send", "--to", "127.0.0.1:65535"], "65535");
    check(&["send", "--to", "127.0.0.1:65534", "--sound", "tone"], "give --sound-to");
    recv(&["--sink", "window"], "file:PATH");
    recv(&["--sound-sink", "horn"], "wav:PATH");
    recv(&["--sound-sink", "verify"], "give --sound-bind");
    recv(&["--session", "x", "--sdp", "y"], "cannot be used with");
    recv(&["--playout-frames", "9"], "0.5 to 8");
    recv(&["--conceal", "blur"], "previous, interpolate, flag or drop");
    recv(&["--sdp", "x.sdp", "--size", "16x8"], "leave --size out");
}

#[test]
fn files_that_cannot_be_used_are_named() {
    #[track_caller]
    fn check(words: &[&str], part: &str) {
        let said = run(&[&["video"], words].concat()).expect_code(1);
        assert!(said.stderr.contains(part), "{words:?}: {}", said.stderr);
    }
    let folder = Folder::new();
    let (short, sdp) = (folder.path("short.raw"), folder.path("wrong.sdp"));
    std::fs::write(Path::new(&short), [0; 100]).expect("written");
    std::fs::write(Path::new(&sdp), "v=0\r\n").expect("written");
    let to = ["send", "--to", "127.0.0.1:5004", "--source"];
    check(&[&to[..], &["y4m:/nonexistent"]].concat(), "cannot read /nonexistent");
    check(&[&to[..], &[&format!("raw:{short}")]].concat(), "100 octets");
    check(&["send", "--to", "127.0.0.1:5004", "--sound", "wav:/nonexistent"], "cannot read /nonexistent");
    check(&["recv", "--sdp", "/nonexistent"], "cannot read /nonexistent");
    check(&["recv", "--sdp", &sdp], "refused");
    check(&["recv", "--bind", "192.0.2.1:5004", "--sink", "file:/nonexistent/x.y4m"], "/nonexistent/x.y4m");
    check(&["recv", "--bind", "192.0.2.1:5004"], "cannot receive");
}

#[test]
fn an_analyser_tells_how_a_stream_is_cut_and_counted() {
    let address = address();
    let picture = ["--size", "320x180", "--rate", "10", "--scan", "interlaced"];
    let options = [&["video", "analyse", "--bind", &address, "--seconds", "4", "--json"], &picture[..]].concat();
    let analyser = Running::start(command(&[&options[..], &["--expect", "2110TPN"]].concat()));
    wait_for_listener(&address);
    let send = ["--mtu", "1500", "--batching", "lan", "--seconds", "2"];
    run(&[&["video", "send", "--to", &address], &picture[..], &send].concat());
    let said = analyser.finish().expect_code(1);
    assert!(said.stderr.contains("not 2110TPN: bursts of"), "{}", said.stderr);
    let figures = json(&said);
    // 144,000 octets of a frame in equal packets of at most 1,472 octets, an even number of them in each field.
    let (packets, octets) = (figure(&figures, "packets_a_frame"), figure(&figures, "datagram_octets_max"));
    assert!(
        packets % 2.0 == 0.0 && packets * (octets - 32.0) <= 144_000.0 && packets * octets > 144_000.0,
        "{figures}"
    );
    assert_eq!(figures["datagram_octets_min"], figures["datagram_octets_max"]);
    assert_eq!((&figures["line_numbering"], &figures["line_max"]), (&"in-field".into(), &89.into()));
    assert_eq!((&figures["frame_ticks"], &figures["fps_of_ticks"]), (&9000.into(), &10.0.into()));
    assert_eq!((&figures["packets_missing"], &figures["outside"]), (&0.into(), &0.into()));
    assert_eq!(figures["kinds"].as_array().map(Vec::len), Some(3));
    for key in ["jitter_rfc3550_us", "jitter_schedule_us", "frame_interval_p50_us"] {
        assert!(figure(&figures, key) > 0.0, "{key}");
    }
}

/// What a listener hears of sessions while a sender announces one.
fn announced_sessions() -> Value {
    let send = ["video", "send", "--to", "239.255.77.1:5004", "--interface", "lo", "--announce", "--seconds", "20"];
    let listener = Running::start(command(&["video", "sdp", "--listen", "6", "--interface", "lo", "--json"]));
    let deadline = Instant::now() + PATIENCE;
    while !std::fs::read_to_string("/proc/net/udp").expect("Linux").contains("00000000:2693 ") {
        assert!(Instant::now() < deadline, "nobody hears announcements");
        std::thread::sleep(Duration::from_millis(10));
    }
    let sender = Running::start(command(&[&send[..], &["--size", "322x182", "--rate", "5"]].concat()));
    let heard = listener.finish();
    drop(sender);
    json(&heard.expect_code(0))
}

#[test]
fn an_announced_session_is_heard_with_its_picture() {
    let ours = |session: &Value| session["name"].as_str().is_some_and(|name| name.contains("322x182"));
    // The first announcement is sent at once and the next one after half a minute: a listener that a busy host starts late misses it.
    let found =
        (0..4).find_map(|_| announced_sessions().as_array().expect("a list").iter().find(|one| ours(one)).cloned());
    let stream = &found.expect("a listener that was there in time")["streams"][0];
    assert_eq!((&stream["to"][0], &stream["refusal"]), (&"239.255.77.1:5004".into(), &Value::Null));
}

#[test]
fn a_session_is_received_by_its_name() {
    // The name has the form of the picture: nobody else sends one like this.
    let name = "Thalweg 324x180 yuv422-10 7 progressive";
    let receive =
        ["video", "recv", "--session", name, "--interface", "lo", "--playout-frames", "3", "--json", "--frames", "5"];
    let receiver = Running::start(command(&receive));
    let deadline = Instant::now() + PATIENCE;
    while !std::fs::read_to_string("/proc/net/udp").expect("Linux").contains("00000000:2693 ") {
        assert!(Instant::now() < deadline, "nobody hears announcements");
        std::thread::sleep(Duration::from_millis(10));
    }
    let send = ["video", "send", "--to", "239.255.77.9:5024", "--interface", "lo", "--announce", "--seconds", "60"];
    let sender = Running::start(command(&[&send[..], &["--size", "324x180", "--rate", "7"]].concat()));
    let received = receiver.finish();
    drop(sender);
    let figures = json(&received);
    assert_eq!(figures["verified"]["frames_checked"], 5, "{figures}");
}
