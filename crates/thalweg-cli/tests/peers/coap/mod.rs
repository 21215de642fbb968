//! Thalweg and other CoAP middleware, both ways, with a packet dissector beside them.

mod aiocoap;
mod asking;
mod californium;
mod go_coap;
mod libcoap;
mod node_coap;
mod serving;
mod steps;
mod wire;

use std::net::{SocketAddr, UdpSocket};
use std::process::Command;

use crate::dissector::{Capture, Packets};
use crate::host::{Addresses, Host};
use crate::program::{Program, Said};

/// What goes up and down in blocks: a mebibyte in which no two blocks are the same.
fn body() -> Vec<u8> {
    (0..1 << 20).map(|at: usize| (at * 7 + at / 251) as u8).collect()
}

/// A port of loopback that nobody listens on.
fn free_address() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.local_addr().expect("it is bound")
}

/// Captures what goes to and from a server on loopback.
#[track_caller]
fn capture(name: &str, server: SocketAddr) -> Capture {
    // Other tests may have the port at other addresses.
    let (address, port) = (server.ip(), server.port());
    Capture::start(None, "lo", &format!("coap-{name}"), &format!("host {address} and udp port {port}"))
        .decode_as(port, "coap")
}

/// Fails unless all packets are CoAP, none is malformed, and there are so many of them.
#[track_caller]
fn check_packets(packets: &Packets, at_least: usize) {
    packets.check_well_formed();
    packets.check_all_are("coap");
    let count = packets.select("coap", "frame.number").len();
    assert!(count >= at_least, "{count} packets, where there are at least {at_least}");
}

/// The value of an environment variable that `cargo xtask test` sets.
#[track_caller]
fn setting(name: &str) -> String {
    std::env::var(name).expect("no other CoAP middleware: run `cargo xtask test coap`")
}

/// A file below `peers/coap-tests`.
fn source(name: &str) -> String {
    format!("{}/../../peers/coap-tests/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A command, on `host` or beside the test.
fn command(host: Option<&Host>, program: &str) -> Command {
    host.map_or_else(|| Command::new(program), |host| host.command(program))
}

/// Two hosts that reach each other's CoAP groups, 10.77.0.1 and 10.77.0.2, with Thalweg's server on the first.
#[track_caller]
fn served_pair() -> (Host, Host, Program) {
    let (left, right) = Host::pair(1500, Addresses::Both);
    left.route_groups("eth0");
    right.route_groups("eth0");
    let mut command = left.command(env!("CARGO_BIN_EXE_thalweg"));
    command.args(["coap", "serve", "--bind", "0.0.0.0:5683", "--groups"]);
    let mut server = Program::start("thalweg coap serve", &command);
    server.expect_text("serving");
    (left, right, server)
}

/// Runs Thalweg's command with these words on `host`.
#[track_caller]
fn thalweg(host: &Host, words: &[&str]) -> Said {
    let mut command = host.command(env!("CARGO_BIN_EXE_thalweg"));
    Program::start("thalweg", command.arg("coap").args(words)).finish().well()
}

/// A text of twenty thousand letters, and Thalweg's server told to keep it.
#[track_caller]
fn put_long_note(host: &Host) -> String {
    let text: String = (0..2000).map(|line| format!("{line:09} ")).collect();
    thalweg(host, &["put", "coap://127.0.0.1/note", &text]);
    text
}

/// Fails unless every datagram of the server on 10.77.0.1 is at most three times as long as the one it answers.
#[track_caller]
fn check_amplification(packets: &Packets) {
    let rows = packets.rows("coap", &["ip.src", "ip.len"]);
    assert!(rows.len() > 100, "the text needs many small blocks: {}", rows.len());
    let mut asked = 0;
    for row in rows {
        let bytes: usize = row[1].parse().expect("a length");
        if row[0] == "10.77.0.1" {
            assert!(bytes <= 3 * asked, "{bytes} bytes answer {asked}");
        } else {
            asked = bytes;
        }
    }
}

/// Fails unless Thalweg's command finds a server on the second host by the group of all CoAP nodes.
#[track_caller]
fn check_found(left: &Host, expect: &str) {
    let said = thalweg(left, &["discover", "--timeout", "8"]);
    let is_there = said.lines.iter().any(|line| line.contains("coap://10.77.0.2:5683") && line.contains(expect));
    assert!(is_there, "{}", said.lines.join("\n"));
}
