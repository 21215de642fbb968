//! Options of `video` that contradict each other, and what session descriptions tell of them.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{PATIENCE, Running, TestFolder, command, run};

/// The description that these options write.
#[track_caller]
fn description(options: &[&str]) -> String {
    run(&[&["video", "sdp"], options].concat()).expect_code(0).stdout
}

/// Fails unless these options are wrong usage that is told in such words.
#[track_caller]
fn check_refused(words: &[&str], part: &str) {
    let said = run(&[&["video"], words].concat()).expect_code(2);
    assert!(said.stderr.contains(part), "{words:?}: {}", said.stderr);
}

/// Sockets of loopback at so many ports in a row, the first one even.
fn ports_in_a_row(count: u16) -> Vec<UdpSocket> {
    for _ in 0..1000 {
        let port = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port() & !1;
        let sockets = (0..count).map(|above| UdpSocket::bind(("127.0.0.1", port.checked_add(above)?)).ok());
        if let Some(sockets) = sockets.collect() {
            return sockets;
        }
    }
    panic!("no {count} neighbouring ports are free");
}

fn port_of(socket: &UdpSocket) -> u16 {
    socket.local_addr().expect("bound").port()
}

#[test]
fn rtcp_of_sound_has_a_port_of_its_own_where_that_of_the_picture_is_given() {
    let text = description(&["--to", "127.0.0.1:5004", "--sound", "tone", "--rtcp", "5010"]);
    let (picture, sound) = text.split_once("m=audio").expect("two media");
    assert!(picture.contains("a=rtcp:5010"), "{text}");
    assert!(sound.starts_with(" 5006 ") && !sound.contains("a=rtcp:"), "RTCP of sound at 5007: {text}");
    let sockets = ports_in_a_row(5);
    let [picture, _, sound, _, control] = &sockets.iter().map(port_of).collect::<Vec<_>>()[..] else { unreachable!() };
    let [bind, sound] = [picture, sound].map(|port| format!("127.0.0.1:{port}"));
    drop(sockets);
    let options = ["--bind", &bind, "--sound-bind", &sound, "--rtcp", &control.to_string(), "--seconds", "0.3"];
    let said = run(&[&["video", "recv"], &options[..]].concat()).expect_code(3);
    assert!(said.stderr.contains("no packet came"), "{}", said.stderr);
}

#[test]
fn two_of_picture_sound_and_rtcp_at_one_port_are_refused() {
    for command in ["send", "sdp"] {
        let with = |options: &[&str], part: &str| {
            check_refused(&[&[command, "--to", "127.0.0.1:5004", "--sound", "tone"], options].concat(), part);
        };
        with(&["--rtcp", "5006"], "RTCP of the picture and the sound would share 127.0.0.1:5006");
        with(&["--rtcp", "5007"], "RTCP of the picture and RTCP of the sound would share 127.0.0.1:5007");
        with(&["--sound-to", "127.0.0.1:5004"], "the picture and the sound would share 127.0.0.1:5004");
    }
    let bind = ["recv", "--bind", "127.0.0.1:5004"];
    check_refused(&[&bind[..], &["--rtcp", "5004"]].concat(), "give --rtcp mux");
    check_refused(&[&bind[..], &["--bind", "127.0.0.1:5014", "--rtcp", "5020"]].concat(), "would share 127.0.0.1:5020");
    check_refused(&[&bind[..], &["--sound-bind", "127.0.0.1:5005"]].concat(), "would share 127.0.0.1:5005");
}

#[test]
fn sound_that_cannot_be_heard_is_told_before_the_picture_begins() {
    let mut sockets = ports_in_a_row(3);
    let [picture, _, sound] = &sockets.iter().map(port_of).collect::<Vec<_>>()[..] else { unreachable!() };
    let [bind, sound] = [picture, sound].map(|port| format!("127.0.0.1:{port}"));
    let taken = sockets.pop().expect("the port of sound");
    drop(sockets);
    let options = ["video", "recv", "--bind", &bind, "--sound-bind", &sound, "--seconds", "50"];
    let said = Running::start(command(&options)).finish_within(Duration::from_secs(20)).expect_code(1);
    drop(taken);
    assert!(said.stderr.contains("cannot receive"), "{}", said.stderr);
}

#[test]
fn jumbo_datagrams_are_described_only_as_large_as_studios_take_them() {
    let fill = |mtu| ["--to", "192.0.2.7:5004", "--packing", "fill", "--mtu", mtu];
    check_refused(&[&["sdp"], &fill("9000")[..]].concat(), "--mtu 8980 or less");
    check_refused(&[&["sdp"], &fill("9000")[..]].concat(), "--vocabulary 4175");
    let plain = description(&[&fill("9000")[..], &["--vocabulary", "4175"]].concat());
    assert!(!plain.contains("MAXUDP"), "{plain}");
    let folder = TestFolder::new();
    folder.write("jumbo.sdp", &description(&fill("8980")));
    let explained = run(&["video", "sdp", "--explain", &folder.path("jumbo.sdp")]).expect_code(0);
    assert!(explained.stdout.contains("receives it"), "{}", explained.stdout);
}

#[test]
fn the_full_range_of_rgb_is_described_where_there_is_a_key_for_it() {
    let rgb = ["--to", "192.0.2.7:5004", "--mtu", "1500", "--format", "rgb8"];
    let studio = description(&rgb);
    assert!(studio.contains("; RANGE=FULL"), "{studio}");
    let plain = description(&[&rgb[..], &["--vocabulary", "4175"]].concat());
    assert!(plain.contains("sampling=RGB") && !plain.contains("RANGE"), "{plain}");
}

#[test]
fn pixels_that_are_not_square_are_described_or_told_to_the_user() {
    let folder = TestFolder::new();
    let frame = format!("FRAME\n{}", "x".repeat(16 * 8 * 2));
    folder.write("film.y4m", &format!("YUV4MPEG2 W16 H8 F5:1 Ip A32:30 C422\n{frame}"));
    let (source, sdp) = (format!("y4m:{}", folder.path("film.y4m")), folder.path("film.sdp"));
    let hearers = ports_in_a_row(2);
    let to = format!("127.0.0.1:{}", port_of(&hearers[0]));
    let send = |options: &[&str]| {
        run(&[&["video", "send", "--to", &to, "--mtu", "1500", "--source", &source], options].concat()).expect_code(0)
    };
    let said = send(&["--sdp", &sdp]);
    assert!(!said.stderr.contains("pixels"), "{}", said.stderr);
    let explained = run(&["video", "sdp", "--explain", &sdp]).expect_code(0);
    assert!(explained.stdout.contains(", pixels 16:15"), "{}", explained.stdout);
    let untold: [&[&str]; 2] = [&[], &["--sdp", &sdp, "--vocabulary", "4175"]];
    for options in untold {
        let said = send(options);
        assert!(said.stderr.contains("The pixels are 16:15"), "{options:?}: {}", said.stderr);
    }
    assert!(!std::fs::read_to_string(&sdp).expect("written").contains("PAR"));
}

#[test]
fn a_description_tells_blocks_only_of_pictures_that_are_cut_so() {
    let packing =
        |size| description(&["--to", "192.0.2.7:5004", "--mtu", "1500", "--packing", "blocks", "--size", size]);
    assert!(packing("320x240").contains("PM=2110BPM"));
    assert!(packing("34x20").contains("PM=2110GPM"), "lines too short for blocks");
}

#[test]
fn sessions_of_one_second_are_told_apart_by_their_numbers() {
    let origin =
        |_| description(&["--to", "127.0.0.1:5004"]).lines().find(|line| line.starts_with("o=")).map(str::to_owned);
    let [first, second, third] = [(); 3].map(origin);
    assert!(first.is_some() && first != second && second != third, "{first:?} {second:?} {third:?}");
}

#[test]
fn options_without_an_effect_are_refused() {
    let folder = TestFolder::new();
    folder.write("film.sdp", &description(&["--to", "127.0.0.1:5004"]));
    folder.write(
        "plain.sdp",
        &description(&["--to", "127.0.0.1:5004"])
            .replace("exactframerate=30000/1001; ", "")
            .replace("PM=2110GPM; SSN=ST2110-20:2017; TP=2110TPW", "PAR=1:1"),
    );
    for command in ["recv", "analyse"] {
        check_refused(&[command, "--sdp", &folder.path("film.sdp"), "--rate", "50"], "leave --rate out");
    }
    let said = run(&["video", "recv", "--sdp", &folder.path("plain.sdp"), "--rate", "50", "--seconds", "0.2"]);
    assert_eq!(said.code, Some(3), "a description without a rate needs one: {}", said.stderr);
    let recv = |options: &[&str], part| check_refused(&[&["recv", "--bind", "127.0.0.1:5004"], options].concat(), part);
    recv(&["--channels", "4"], "give --sound-bind or leave --channels out");
    recv(&["--sound-sink", "off", "--sound-bind", "127.0.0.1:5006"], "leave --sound-bind out");
    recv(&["--sound-sink", "off", "--channels", "4"], "leave --channels out");
}

#[test]
fn ctrl_c_ends_the_search_for_a_session() {
    let name = format!("a session of nobody {}", std::process::id());
    let receiver = Running::start(command(&["video", "recv", "--session", &name, "--interface", "lo"]));
    let deadline = Instant::now() + PATIENCE;
    while !catches_interrupts(receiver.id()) {
        assert!(Instant::now() < deadline, "the signal is not awaited");
        std::thread::sleep(Duration::from_millis(10));
    }
    receiver.signal("INT");
    receiver.finish().expect_code(130);
}

/// A description of one picture by two paths, each with its sources; `second` is what the second one has in addition.
fn two_paths(port: u16, second: &str) -> String {
    let media = |group: &str, sources: &str, mid: &str, more: &str| {
        format!(
            "m=video {port} RTP/AVP 96\r\nc=IN IP4 {group}/4\r\na=source-filter: incl IN IP4 {group} {sources}\r\n\
             a=rtpmap:96 raw/90000\r\na=fmtp:96 sampling=RGB; width=16; height=8; depth=8\r\na=framerate:25\r\n\
             a=mid:{mid}\r\n{more}"
        )
    };
    let head = "v=0\r\no=- 7 1 IN IP4 127.0.0.1\r\ns=Two\r\nt=0 0\r\na=group:DUP one two\r\n";
    let first = media("239.77.4.1", "127.0.0.1 127.0.0.3", "one", "");
    [head, &first, &media("239.77.4.2", "127.0.0.2", "two", second)].concat()
}

#[test]
fn two_paths_have_sources_of_their_own_and_a_path_several() {
    let (folder, sockets) = (TestFolder::new(), ports_in_a_row(2));
    let port = port_of(&sockets[0]);
    drop(sockets);
    folder.write("two.sdp", &two_paths(port, ""));
    let file = folder.path("two.sdp");
    let explained = run(&["video", "sdp", "--explain", &file]).expect_code(0).stdout;
    for part in ["239.77.4.1", ", from 127.0.0.1 and 127.0.0.3 alone", ", from 127.0.0.2 alone", "recv` receives it"] {
        assert!(explained.contains(part), "{part} in {explained}");
    }
    for command in [&["recv", "--sink", "null"][..], &["analyse", "--bind", &format!("239.77.4.1:{port}")]] {
        let options = ["--sdp", &file, "--interface", "lo", "--seconds", "0.3"];
        let said = run(&[&["video"], command, &options].concat()).expect_code(3);
        assert!(said.stderr.contains("no packet came"), "{}", said.stderr);
    }
}

#[test]
fn what_is_not_received_is_explained_in_the_words_of_the_receiver() {
    let folder = TestFolder::new();
    folder.write("two.sdp", &two_paths(5004, "a=rtcp-mux\r\n"));
    let reason = "RTCP of the two paths goes to ports of two kinds";
    let file = folder.path("two.sdp");
    let said = run(&["video", "recv", "--sdp", &file, "--interface", "lo", "--seconds", "0.3"]).expect_code(1);
    assert!(said.stderr.contains(reason), "{}", said.stderr);
    let explained = run(&["video", "sdp", "--explain", &file]).expect_code(0).stdout;
    assert!(explained.contains("not received here") && explained.contains(reason), "{explained}");
}

/// What is explained of each stream of these descriptions, of which the first one has the head.
#[track_caller]
fn explain(texts: &[String]) -> Vec<(Vec<String>, Option<String>)> {
    let folder = TestFolder::new();
    let media = texts.iter().map(|text| text.split_once("m=").map_or("", |(_, media)| media));
    let head = texts[0].split_once("m=").map_or("", |(head, _)| head);
    folder.write("all.sdp", &media.fold(head.to_owned(), |text, media| format!("{text}m={media}")));
    let said = run(&["video", "sdp", "--explain", &folder.path("all.sdp"), "--json"]).expect_code(0);
    let said: serde_json::Value = serde_json::from_str(&said.stdout).expect("JSON");
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let explained = |stream: &serde_json::Value| -> (Vec<String>, Option<String>) {
        let needs = stream["needs"].as_array().expect("a list").iter().filter_map(text);
        (needs.collect(), text(&stream["refusal"]))
    };
    said["streams"].as_array().expect("streams").iter().map(explained).collect()
}

#[test]
fn what_is_received_of_a_description_is_explained_as_it_is() {
    let picture = description(&["--to", "127.0.0.1:5004"]);
    let plain = description(&["--to", "127.0.0.1:5014", "--vocabulary", "4175"]);
    let without_rate = plain.replace("exactframerate=30000/1001; ", "");
    let both = description(&["--to", "127.0.0.1:5024", "--sound", "tone"]);
    let received: (Vec<String>, Option<String>) = (Vec::new(), None);
    let first = "the first one alone is received";
    let is_refused = |(_, refusal): &(Vec<String>, Option<String>), part: &str| {
        assert!(refusal.as_ref().is_some_and(|refusal| refusal.contains(part)), "{part}: {refusal:?}");
    };
    let said = explain(&[picture.clone(), without_rate.clone()]);
    assert_eq!(said[0], received);
    is_refused(&said[1], first);
    let said = explain(&[without_rate, both.clone()]);
    assert_eq!(said[0], (vec!["--rate RATE".to_owned()], None));
    is_refused(&said[1], first);
    assert_eq!(said[2], said[0], "sound beside it");
    let said = explain(&[both.clone(), both.clone()]);
    assert_eq!(said[..2], [received.clone(), received]);
    [2, 3].iter().for_each(|stream| is_refused(&said[*stream], first));
    // Of the sound, and of its repetitions.
    let said = explain(&[both.replace("/48000", "/44100")]);
    assert_eq!(said[0], (vec!["--sound-sink off".to_owned()], None));
    is_refused(&said[1], "44100");
    let said = explain(&[both.replace("depth=10", "depth=12")]);
    is_refused(&said[0], "10 or 8 bits");
    is_refused(&said[1], "that of the description is not");
    let (head, media) = both.split_once("m=video").expect("a picture");
    let (_, sound) = media.split_once("m=audio").expect("sound");
    is_refused(&explain(&[format!("{head}m=audio{sound}")])[0], "the description has none");
}

#[test]
fn lost_packets_of_sound_can_be_asked_for_as_the_description_says() {
    let sound = |options: &[&str]| {
        let text = description(&[&["--to", "127.0.0.1:5004", "--sound", "tone"], options].concat());
        text.split_once("m=audio").expect("two media").1.to_owned()
    };
    let repeated = sound(&[]);
    for part in [" RTP/AVPF 98 99", "a=rtpmap:99 rtx/48000", "a=fmtp:99 apt=98; rtx-time=500", "a=rtcp-fb:98 nack"] {
        assert!(repeated.contains(part), "{part} in {repeated}");
    }
    let same = sound(&["--repair", "same"]);
    assert!(same.contains("a=rtcp-fb:98 nack") && !same.contains("rtx"), "{same}");
    let off = sound(&["--repair", "off"]);
    assert!(off.contains(" RTP/AVP 98") && !off.contains("rtcp-fb"), "{off}");
}

#[test]
fn rtcp_at_the_port_of_rtp_is_that_of_the_sound_too() {
    let (folder, sockets) = (TestFolder::new(), ports_in_a_row(4));
    let to = format!("127.0.0.1:{}", port_of(&sockets[0]));
    folder.write("both.sdp", &description(&["--to", &to, "--sound", "tone"]));
    // The ports beside those of RTP stay taken.
    let taken: Vec<UdpSocket> = sockets.into_iter().skip(1).step_by(2).collect();
    let file = folder.path("both.sdp");
    let said = run(&["video", "recv", "--sdp", &file, "--rtcp", "mux", "--seconds", "0.3"]).expect_code(3);
    assert!(said.stderr.contains("no packet came") && taken.len() == 2, "{}", said.stderr);
}

#[test]
fn sound_that_is_larger_than_the_mtu_is_refused() {
    let sound = ["--to", "127.0.0.1:5004", "--sound", "tone", "--channels", "8", "--mtu"];
    for command in ["send", "sdp"] {
        let with = |options: &[&str], part: &str| check_refused(&[&[command], &sound[..], options].concat(), part);
        // The number of its original makes a repetition two octets longer.
        with(&["600"], "1166 octets, and --mtu 600 has room for 572; give --packet-time 125us, fewer");
        with(&["600", "--repair", "off"], "1164 octets, and --mtu 600 has room for 572");
        with(&["1193"], "--mtu 1194 or more");
        with(&["1200", "--sound-to", "[::1]:5006"], "--mtu 1214 or more");
        with(&["180", "--packet-time", "125us"], "give fewer channels");
    }
    for fitting in [&["1194"][..], &["1192", "--repair", "off"], &["600", "--packet-time", "125us"]] {
        assert!(description(&[&sound[..], fitting].concat()).contains("L24/48000/8"), "{fitting:?}");
    }
}

#[test]
fn options_of_a_stream_to_be_made_are_refused_beside_one_to_explain() {
    let options: [&[&str]; 17] = [
        &["--size", "320x180"],
        &["--rate", "25"],
        &["--format", "rgb8"],
        &["--scan", "psf"],
        &["--mtu", "1500"],
        &["--packing", "fill"],
        &["--batching", "lan"],
        &["--repair", "off"],
        &["--rtcp", "mux"],
        &["--dscp", "34"],
        &["--ttl", "4"],
        &["--vocabulary", "4175"],
        &["--sound", "tone"],
        &["--sound", "tone", "--channels", "2"],
        &["--sound", "tone", "--sound-to", "127.0.0.1:5006"],
        &["--sound", "tone", "--packet-time", "1ms"],
        &["--out", "x.sdp"],
    ];
    for option in options {
        for command in [["sdp", "--explain", "x.sdp"], ["sdp", "--listen", "1"]] {
            check_refused(&[&command[..], option].concat(), "cannot be used with");
        }
    }
    check_refused(&["sdp", "--explain", "x.sdp", "--interface", "lo"], "cannot be used with");
}

#[test]
fn a_sender_tells_how_evenly_its_packets_leave_where_it_is_asked() {
    let hearer = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let to = format!("127.0.0.1:{}", port_of(&hearer));
    let send = ["--size", "320x180", "--rate", "10", "--mtu", "1500", "--frames", "5", "--json"];
    let told = |more: &[&str]| -> Value {
        let said = run(&[&["video", "send", "--to", &to], &send[..], more].concat()).expect_code(0);
        serde_json::from_str(&said.stdout).expect("one object")
    };
    let burst = |figures: &Value| figures["burst_max"].as_u64().unwrap_or_else(|| panic!("{figures}"));
    assert_eq!(told(&[]).get("burst_max"), None);
    let lan = told(&["--conformance", "--batching", "lan"]);
    assert!((101..=106).contains(&burst(&lan)), "two messages of 53 packets leave at once: {lan}");
    assert_eq!((&lan["pacing"], &lan["frames_measured"]), (&Value::Null, &5.into()));
    let one_by_one = told(&["--conformance", "--batching", "1"]);
    assert!(burst(&one_by_one) < 50, "{one_by_one}");
    assert_eq!(one_by_one["kinds"].as_array().map(Vec::len), Some(3));
}

/// Whether a process has its handlers of SIGINT and of SIGTERM, signal 15, which is the later one.
fn catches_interrupts(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("Linux");
    u64::from_str_radix(caught.trim(), 16).expect("a mask") & (1 << 14) != 0
}
