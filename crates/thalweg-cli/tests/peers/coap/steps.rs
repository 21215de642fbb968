//! What a client of another middleware does with Thalweg's server, step by step.

use std::process::Command;

use thalweg_coap::identity::Transport;

use super::serving::Serving;
use super::{capture, check_packets};
use crate::dissector::Packets;
use crate::program::Program;

/// What `client` prints for each step: its name, the code and the payload. A diagnosis is anything.
const EXPECTED: [(&str, &str, &str); 18] = [
    ("con", "2.05", "hello world"),
    ("non", "2.05", "hello world"),
    ("slow", "2.05", "waited"),
    ("core", "2.05", "</hello>;rt=\"lamp\""),
    ("missing", "4.04", DIAGNOSIS),
    ("critical", "4.02", DIAGNOSIS),
    ("elective", "2.05", "hello world"),
    ("put", "2.04", ""),
    ("post", "2.04", ""),
    ("get", "2.05", "started"),
    ("ipatch", "2.04", ""),
    ("fetch", "2.05", "red"),
    ("observe", "2.05", "started"),
    ("notification", "2.05", "one"),
    ("notification", "2.05", "two"),
    ("notification", "2.05", "three"),
    ("delete", "2.02", ""),
    ("up", "2.04", ""),
];
const DIAGNOSIS: &str = "*";

/// Runs `client` with the address of a server and compares what it prints; what it prints beside is returned with the
/// packets.
#[track_caller]
pub fn check(name: &str, client: impl FnOnce(&str) -> Command) -> (Vec<String>, Packets) {
    let serving = Serving::start();
    let capture = capture(&format!("{name}-client"), serving.address());
    let said = Program::start(name, &client(&serving.uri(""))).finish().well();
    serving.wait_for_observers(0);
    let packets = capture.stop();
    let others = compare(&said.lines);
    assert_eq!(serving.note(), "", "it was deleted");
    check_packets(&packets, 4 * 1024);
    (others, packets)
}

/// The same over another transport, which no dissector looks into.
#[track_caller]
pub fn check_over(name: &str, transport: Transport, client: impl FnOnce(&str) -> Command) {
    let serving = Serving::start();
    let said = Program::start(name, &client(&serving.uri_over(transport, ""))).finish().well();
    serving.wait_for_observers(0);
    compare(&said.lines);
    assert_eq!(serving.note(), "", "it was deleted");
}

/// Compares what a client printed; what it printed beside is returned.
#[track_caller]
fn compare(lines: &[String]) -> Vec<String> {
    let mut steps = lines.iter().filter(|line| !line.starts_with("! "));
    let mut others = Vec::new();
    let mut next = || steps.next().map_or(Vec::new(), |line| line.split('\t').map(str::to_owned).collect());
    for (step, code, text) in EXPECTED.into_iter().chain([("down", "2.05", "body True")]) {
        let mut got: Vec<String> = next();
        while got.first().is_some_and(|first| first == "ping") {
            others.push(got.join(" "));
            got = next();
        }
        let expected = [step, code, if text == DIAGNOSIS { got.get(2).map_or("", String::as_str) } else { text }];
        assert_eq!(got, expected, "{}", lines.join("\n"));
    }
    others
}
