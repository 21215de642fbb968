//! The same measurement by Debian's iperf3, in turns on the same link.

use serde_json::Value;

use super::{Probes, drop_every_hundredth, number};
use crate::program::Program;

/// As often both measure in turns before the machine counts as too busy.
const ROUNDS_MAX: usize = 5;

/// What iperf3 prints of a measurement from the left to the right.
#[track_caller]
fn iperf3(probes: &Probes, words: &str) -> Value {
    let mut command = probes.right.command("iperf3");
    command.args(["--server", "--one-off", "--forceflush"]);
    let mut server = Program::start("iperf3 server", &command);
    server.expect_text("listening");
    let mut command = probes.left.command("iperf3");
    command.args(["--client", "10.77.0.2", "--json"]).args(words.split_whitespace());
    let said = Program::start("iperf3", &command).finish().well();
    server.finish().well();
    serde_json::from_str(&said.lines.join("\n")).expect("iperf3 prints one object")
}

/// Goodput in Mbit/s and lost datagrams in percent of both, ours first.
#[track_caller]
fn both(probes: &Probes, rate: &str, seconds: u32) -> [(f64, f64); 2] {
    let ours =
        probes.measure(&format!("udp 10.77.0.2 --rate {rate} --size 1400 --seconds {seconds} --no-gso --no-gro"));
    let theirs = iperf3(probes, &format!("--udp --bitrate {rate} --length 1400 --time {seconds}"));
    let received = theirs.pointer("/end/sum_received").or_else(|| theirs.pointer("/end/sum")).expect("a sum");
    [
        (number(&ours, "/goodput_mbit_per_s"), number(&ours, "/datagrams/lost_percent")),
        (number(received, "/bits_per_second") / 1e6, number(received, "/lost_percent")),
    ]
}

#[test]
fn an_open_loop_at_200_megabits_gives_the_goodput_of_iperf3() {
    let probes = Probes::new(1500, "");
    // A busy machine keeps either receiver from its socket for longer than the socket's buffer holds. Only rounds that both got through
    // tell whether both mean the same by goodput.
    let whole = (0..ROUNDS_MAX).map(|_| both(&probes, "200M", 3)).find(|round| {
        println!("goodput in Mbit/s and lost datagrams in percent, ours and iperf3's: {round:?}");
        round.iter().all(|(_, lost)| *lost < 1.0)
    });
    let [(ours, _), (theirs, _)] = whole.expect("a round in which neither loses one percent");
    assert!((ours / theirs - 1.0).abs() < 0.05, "ours {ours} Mbit/s, iperf3 {theirs}");
    assert!((ours / 200.0 - 1.0).abs() < 0.05, "{ours} Mbit/s of 200");
    probes.finish();
}

#[test]
fn a_filter_that_drops_one_percent_shows_the_same_to_both() {
    let probes = Probes::new(1500, "");
    drop_every_hundredth(&probes.right);
    let [(_, ours), (_, theirs)] = both(&probes, "50M", 2);
    assert!((ours - 1.0).abs() < 0.02, "ours {ours} %");
    assert!((theirs - 1.0).abs() < 0.2 && (ours - theirs).abs() < 0.2, "ours {ours} %, iperf3 {theirs} %");
    probes.finish();
}

#[test]
fn tcp_over_a_link_of_200_megabits_has_the_goodput_of_iperf3() {
    let probes = Probes::new(1500, "");
    // Behind a limit both measure the link, and not how much of the processors each takes.
    probes.left.limit("eth0", 200, 100_000);
    let ours = number(&probes.measure("tcp 10.77.0.2 --seconds 3"), "/goodput_mbit_per_s");
    let theirs = iperf3(&probes, "--time 3");
    let received = theirs.pointer("/end/sum_received").expect("a sum");
    let theirs = number(received, "/bits_per_second") / 1e6;
    assert!((ours / theirs - 1.0).abs() < 0.05, "ours {ours} Mbit/s, iperf3 {theirs}");
    // Headers take their part of each packet: 1,448 of 1,514 bytes are payload.
    assert!((ours / (200.0 * 1_448.0 / 1_514.0) - 1.0).abs() < 0.08, "{ours} Mbit/s of 200");
    probes.finish();
}
