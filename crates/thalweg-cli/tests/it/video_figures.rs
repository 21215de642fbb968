//! What both ends of `video` tell of a stream: at its end as JSON, and on a terminal while it runs.

use std::ops::RangeInclusive;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::program::{Running, run};
use crate::video::{address, figure, json, stream, wait_for_listener};

/// The picture of these tests.
const PICTURE: [&str; 4] = ["--size", "320x180", "--rate", "10"];

#[track_caller]
fn check(figures: &Value, ranges: &[(&str, RangeInclusive<f64>)]) {
    for (name, range) in ranges {
        assert!(range.contains(&figure(figures, name)), "{name} is not in {range:?}: {figures}");
    }
}

#[test]
fn the_figures_of_both_ends_are_those_of_the_stream() {
    let address = address();
    let send = [&PICTURE[..], &["--frames", "45", "--mtu", "1500", "--json"]].concat();
    let receive = [&["--bind", &address, "--playout-frames", "3", "--json"], &PICTURE[..]].concat();
    let [sent, received] = stream(&address, &send, &receive);
    assert!(!(sent.stderr + &received.stderr).contains(" fps"), "no line of a running stream without a terminal");
    let parse = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let (sent, received) = (parse(&sent.stdout), parse(&received.stdout));
    // Ten frames a second for four seconds and a half; a machine with other work may delay some.
    let of_both =
        [("seconds", 4.3..=20.0), ("fps_mean", 8.0..=11.0), ("fps_sd", 0.0..=3.0), ("rtt_us", 1.0..=500_000.0)];
    check(&sent, &of_both);
    check(&received, &of_both);
    for figures in [&sent, &received] {
        check(figures, &[("cpu_seconds", 0.001..=2.0 * figure(figures, "seconds"))]);
    }
    check(
        &received,
        &[
            // Batches of 16 packets, which leave 15 ms apart, and a pause behind each frame.
            ("jitter_rfc3550_us", 100.0..=50_000.0),
            ("jitter_schedule_us", 10.0..=50_000.0),
            ("frame_interval_p50_us", 85_000.0..=115_000.0),
            ("frame_latency_p50_us", 60_000.0..=110_000.0),
            // Three frame times by --playout-frames.
            ("first_picture_us", 295_000.0..=600_000.0),
            ("packets_reordered", 0.0..=0.0),
        ],
    );
    check(&sent["receiver"], &[("packets_lost", 0.0..=0.0), ("jitter_rfc3550_us", 100.0..=50_000.0)]);
}

/// The program on a terminal of its own; what it writes there is on standard output.
fn on_terminal(arguments: &[&str]) -> Running {
    let program = [&["exec", env!("CARGO_BIN_EXE_thalweg")], arguments].concat().join(" ");
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &program, "/dev/null"]);
    script.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::start(script)
}

/// The lines that a terminal showed, each over the one before.
fn shown(output: &str) -> Vec<&str> {
    let lines = output.split("\r\u{1b}[?7l").skip(1).filter_map(|line| line.split_once("\u{1b}[K\u{1b}[?7h"));
    lines.map(|(line, _)| line).collect()
}

/// The figure between two texts of a line.
#[track_caller]
fn between(line: &str, before: &str, after: &str) -> f64 {
    let rest = line.split_once(before).and_then(|(_, rest)| rest.split_once(after));
    let figure = rest.and_then(|(figure, _)| figure.trim().parse().ok());
    figure.unwrap_or_else(|| panic!("no figure between {before:?} and {after:?} in {line:?}"))
}

/// Frames a second, losses, processors, round trip and jitter of a line; the losses stand between two texts.
#[track_caller]
fn check_live(output: &str, frames: &str, (before_lost, after_lost): (&str, &str), cpu: (&str, &str)) {
    let lines = shown(output);
    assert!(lines.len() >= 4, "a line a second: {lines:?}");
    // Reports have told the round trip by then, and the stream still runs.
    let line = lines[lines.len() - 2];
    assert!((7.0..=13.0).contains(&between(line, "", " fps, ")), "{line}");
    assert!((20.0..=60.0).contains(&between(line, " fps, ", frames)), "{line}");
    assert!((0.0..=4.0).contains(&between(line, cpu.0, cpu.1)), "{line}");
    assert_eq!(between(line, before_lost, after_lost), 0.0, "{line}");
    assert!((1.0..=500_000.0).contains(&between(line, "RTT ", " µs, jitter ")), "{line}");
    assert!((1.0..=50_000.0).contains(&between(line, "µs, jitter ", " µs")), "{line}");
    assert!(output.contains("\u{1b}[?7h\r\u{1b}[K"), "the line is gone when the stream ends: {output:?}");
}

#[test]
fn on_a_terminal_both_ends_show_a_line_of_the_running_stream() {
    let address = address();
    let receive = [&["video", "recv", "--bind", &address, "--playout-frames", "3"], &PICTURE[..]].concat();
    let receiver = on_terminal(&receive);
    wait_for_listener(&address);
    let send = ["video", "send", "--to", &address, "--seconds", "6", "--mtu", "1500"];
    let sent = on_terminal(&[&send[..], &PICTURE].concat()).finish();
    let received = receiver.finish();
    check_live(&sent.stdout, " frames, ", ("receiver: ", " lost"), ("dropped, ", " CPU"));
    check_live(&received.stdout, " frames complete", ("concealed, ", " packets lost"), ("recovered, ", " CPU"));
}

#[test]
fn a_receiver_without_a_picture_tells_none_of_its_times() {
    let said = run(&["video", "recv", "--bind", &address(), "--seconds", "0.3", "--json"]).expect_code(3);
    let figures = json(&said);
    for name in ["first_picture_us", "fps_mean", "fps_sd", "rtt_us", "drift_ppm"] {
        assert!(figures.get(name).is_some_and(Value::is_null), "{name}: {figures}");
    }
}
