//! libcoap's `coap-client` and `coap-server` without DTLS, as Debian has them.

mod sessions;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use thalweg_coap::endpoint::{Confirmability, RequestError};
use thalweg_coap::message::{Code, OptionNumber, RequestBuf};

use super::asking::{Asking, unknown_option};
use super::serving::Serving;
use super::{
    body, capture, check_amplification, check_found, check_packets, command, free_address, put_long_note, served_pair,
};
use crate::dissector::Capture;
use crate::host::Host;
use crate::program::{PATIENCE, Program};

fn client(host: Option<&Host>, words: &[&str], uri: &str) -> Command {
    let mut command = command(host, "coap-client-notls");
    command.args(words).arg(uri);
    command
}

/// What the client prints.
#[track_caller]
fn said(words: &[&str], uri: &str) -> String {
    Program::start("coap-client", &client(None, words, uri)).finish().well().lines.join("\n")
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("coap-libcoap-{name}"))
}

/// There is no word of the server when it listens.
#[track_caller]
fn serve(host: Option<&Host>, address: SocketAddr, words: &[&str]) -> Program {
    let mut command = command(host, "coap-server-notls");
    let (ip, port) = (address.ip().to_string(), address.port().to_string());
    command.args(["-A", &ip, "-p", &port, "-d", "10"]).args(words);
    Program::start("coap-server", &command)
}

#[track_caller]
fn wait_until_served(asking: &mut Asking) {
    asking.check_ping();
}

#[test]
fn its_client_uses_our_server() {
    let serving = Serving::start();
    let capture = capture("libcoap-client", serving.address());
    let hello = serving.uri("/hello");
    assert_eq!(said(&[], &hello), "hello world");
    assert_eq!(said(&["-N"], &hello), "hello world");
    assert_eq!(said(&[], &serving.uri("/slow?ms=1500")), "waited");
    assert_eq!(said(&[], &serving.uri("/.well-known/core?rt=lamp")), "</hello>;rt=\"lamp\"");
    assert!(said(&[], &serving.uri("/missing")).contains("4.04"));
    assert!(said(&["-O", "65001,x"], &hello).contains("4.02"));
    assert_eq!(said(&["-O", "65000,x"], &hello), "hello world");
    let note = serving.uri("/note");
    said(&["-m", "put", "-e", "start"], &note);
    said(&["-m", "post", "-e", "ed"], &note);
    assert_eq!(said(&[], &note), "started");
    said(&["-m", "ipatch", "-e", "color=red"], &serving.uri("/settings"));
    assert_eq!(said(&["-m", "fetch", "-e", "color"], &serving.uri("/settings")), "red");
    said(&["-m", "delete"], &note);
    assert_eq!(serving.note(), "");
    // No-Response: neither success nor errors are wanted.
    said(&["-N", "-m", "put", "-e", "quiet", "-O", "258,0x1a", "-B", "1"], &note);
    assert_eq!(serving.note(), "quiet");
    let packets = capture.stop();
    check_packets(&packets, 26);
    let quiet = packets.select("coap.opt.name contains \"(258)\"", "udp.srcport");
    let of_its_port = packets.select(&format!("udp.port == {}", quiet[0]), "frame.number");
    assert_eq!(of_its_port.len(), 1, "one request, and no answer to it");
}

#[test]
fn its_client_observes_and_pings_our_server() {
    let serving = Serving::start();
    serving.change_note("zero");
    let capture = capture("libcoap-observe", serving.address());
    let words = ["-s", "5", "-K", "1", "-w"];
    let mut observer = Program::start("coap-client", &client(None, &words, &serving.uri("/note")));
    observer.expect_text("zero");
    serving.wait_for_observers(1);
    for text in ["one", "two", "three"] {
        serving.change_note(text);
        observer.expect_text(text);
    }
    observer.finish().well();
    serving.wait_for_observers(0);
    let packets = capture.stop();
    check_packets(&packets, 8);
    let pings = packets.select("coap.type == 0 && coap.code == 0", "coap.mid");
    let answers = packets.select("coap.type == 3", "coap.mid");
    assert!(!pings.is_empty() && pings.iter().all(|ping| answers.contains(ping)), "{pings:?} {answers:?}");
}

#[test]
fn its_client_moves_a_mebibyte_both_ways() {
    let serving = Serving::start();
    let capture = capture("libcoap-blocks", serving.address());
    let (up, down) = (file("up"), file("down"));
    std::fs::write(&up, body()).expect("written");
    let (up, to) = (up.to_str().expect("a plain path"), down.to_str().expect("a plain path"));
    let put = said(&["-m", "put", "-b", "1024", "-f", up], &serving.uri("/body"));
    assert_eq!(put, "", "the server compares");
    said(&["-b", "1024", "-o", to], &serving.uri("/body"));
    assert!(std::fs::read(&down).expect("written") == body());
    check_packets(&capture.stop(), 4 * 1024);
}

#[test]
fn our_client_uses_its_server() {
    let address = free_address();
    let server = serve(None, address, &[]);
    let capture = capture("libcoap-server", address);
    let mut asking = Asking::open(address);
    wait_until_served(&mut asking);
    let greeting = asking.ask(RequestBuf::get("/"));
    assert!(String::from_utf8_lossy(&greeting.payload).contains("libcoap"), "{greeting:?}");
    let non = asking.deliver(RequestBuf::get("/?non"), Confirmability::NonConfirmable);
    assert_eq!(non.payload, greeting.payload);
    asking.check(RequestBuf::get("/async?2"), Code::CONTENT, "done");
    asking.check_code(RequestBuf::get("/missing"), Code::NOT_FOUND);
    // It repeats the critical option in its answer, which makes that one to be refused as well (RFC 7252 §5.4.1).
    assert_eq!(asking.failure(unknown_option("/", 65_001)), RequestError::UnknownOption(OptionNumber(65_001)));
    asking.check_code(unknown_option("/", 65_000), Code::CONTENT);
    let ticks = "</time>;ct=0;if=\"clock\";title=\"Internal Clock\";rt=\"ticks\";obs";
    let found = asking.ask(RequestBuf::get("/.well-known/core?rt=ticks"));
    let found = String::from_utf8_lossy(&found.payload).into_owned();
    let parts = |text: &str| text.split(';').map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(parts(&found), parts(ticks));
    asking.check_code(RequestBuf::put("/new", "made"), Code::CREATED);
    asking.check(RequestBuf::get("/new"), Code::CONTENT, "made");
    asking.check_observation("/new");
    asking.check_code(RequestBuf::put("/new", body()), Code::CHANGED);
    let got = asking.ask(RequestBuf::get("/new"));
    assert!(*got.payload == body()[..], "{} bytes", got.payload.len());
    asking.check_code(RequestBuf::delete("/new"), Code::DELETED);
    check_packets(&capture.stop(), 4 * 1024);
    server.interrupt();
}

#[test]
fn its_client_returns_an_echo_value_with_the_next_block() {
    let (left, right, server) = served_pair();
    let text = put_long_note(&left);
    let capture = Capture::start(Some(&right), "eth0", "coap-libcoap-network", "udp port 5683");
    let got = Program::start("coap-client", &client(Some(&right), &["-w"], "coap://10.77.0.1/note")).finish().well();
    assert_eq!(got.lines.concat(), text);
    let packets = capture.stop();
    packets.check_well_formed();
    check_amplification(&packets);
    let second = packets.select("ip.dst == 10.77.0.1", "coap.opt.unknown").remove(1);
    assert_eq!(vec![second], packets.rows("ip.src == 10.77.0.1", &["coap.opt.unknown"]).remove(0), "it comes back");
    server.interrupt().well();
}

#[test]
fn both_find_each_other_by_the_group() {
    let (left, right, server) = served_pair();
    let uri = "coap://224.0.1.187/.well-known/core?href=/request";
    let mut client = Program::start("coap-client", &client(Some(&right), &["-N", "-B", "8", "-w"], uri));
    client.expect_text("</request>");
    let peer = serve(Some(&right), ([0, 0, 0, 0], 5683).into(), &["-g", "224.0.1.187"]);
    let start = Instant::now();
    // It says nothing when it listens.
    while start.elapsed() < PATIENCE {
        let words = ["coap", "get", "coap://10.77.0.2/time", "--timeout", "1"];
        let mut command = left.command(env!("CARGO_BIN_EXE_thalweg"));
        if Program::start("thalweg", command.args(words)).finish().status.success() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    check_found(&left, "/time");
    peer.interrupt();
    server.interrupt().well();
}
