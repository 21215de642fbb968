//! `thalweg perf udp | tcp | serve` between two hosts.

mod iperf3;

use std::process::Command;

use serde_json::Value;

use crate::host::{Addresses, Host};
use crate::program::Program;

/// Two hosts, the right one with a server for as many measurements as a test makes.
struct Probes {
    left: Host,
    right: Host,
    server: Program,
}

impl Probes {
    #[track_caller]
    fn new(mtu: u32, options: &str) -> Probes {
        let (left, right) = Host::pair(mtu, Addresses::Both);
        let mut server = start(&right, &format!("perf serve {options}"));
        server.expect_text("serving at");
        Probes { left, right, server }
    }

    /// The object that a measurement from the left prints.
    #[track_caller]
    fn measure(&self, words: &str) -> Value {
        let said = start(&self.left, &format!("perf {words} --json")).finish().well();
        said.objects().next().unwrap_or_else(|| panic!("{words}: no object among {:?}", said.lines))
    }

    #[track_caller]
    fn finish(self) {
        let said = self.server.interrupt();
        assert!(!said.lines.iter().any(|line| line.contains("panicked")), "{:?}", said.lines);
    }
}

fn start(host: &Host, words: &str) -> Program {
    let mut command: Command = host.command(env!("CARGO_BIN_EXE_thalweg"));
    command.args(words.split_whitespace());
    Program::start("thalweg", &command)
}

/// Drops every hundredth packet that arrives by UDP, and counts them.
fn drop_every_hundredth(host: &Host) {
    let rules = "add table inet t; add counter inet t lost; \
                 add chain inet t in { type filter hook prerouting priority -450; }; \
                 add rule inet t in meta l4proto udp numgen inc mod 100 == 99 counter name lost drop";
    let made = host.command("nft").arg(rules).status().expect("nftables is installed: run `cargo xtask test probe`");
    assert!(made.success());
}

fn dropped(host: &Host) -> u64 {
    let output = host.command("nft").args(["list", "counter", "inet", "t", "lost"]).output().expect("nftables");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let packets = text.split_whitespace().skip_while(|word| *word != "packets").nth(1);
    packets.and_then(|count| count.parse().ok()).expect("nft tells a number of packets")
}

#[track_caller]
fn number(figures: &Value, path: &str) -> f64 {
    figures.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {path} in {figures}"))
}

#[test]
fn a_filter_that_drops_every_hundredth_datagram_shows_one_percent() {
    let probes = Probes::new(1500, "");
    // A filter looks at messages as they arrive: each is one datagram only where nothing is joined.
    drop_every_hundredth(&probes.right);
    let figures = probes.measure("udp 10.77.0.2 --rate 20M --size 1000 --seconds 2 --no-gso --no-gro");
    let of = |name: &str| number(&figures, &format!("/datagrams/{name}"));
    assert_eq!((of("offered"), of("received"), of("lost")), (5_000.0, 4_950.0, 50.0), "{figures}");
    assert_eq!((of("lost_percent"), dropped(&probes.right)), (1.0, 50));
    let windows = figures["windows"].as_array().expect("seconds");
    assert!(windows.len() >= 2 && windows.iter().all(|window| window["missing"].as_u64() > Some(0)), "{figures}");
    probes.finish();
}

#[test]
fn both_protocols_and_directions_pass_between_hosts_of_both_families() {
    let probes = Probes::new(1500, "--data-port 7400");
    for (server, payload) in [("10.77.0.2", 1_472.0), ("[fd77:0::2]:7399", 1_452.0)] {
        for more in ["", "--reverse", "--streams 3"] {
            let figures = probes.measure(&format!("udp {server} --rate 50M --seconds 0.5 {more}"));
            assert_eq!(number(&figures, "/size_bytes"), payload);
            assert_eq!(number(&figures, "/datagrams/lost"), 0.0, "{figures}");
            let rate = number(&figures, "/goodput_mbit_per_s");
            assert!((45.0..55.0).contains(&rate), "{rate} Mbit/s of 50");
            let figures = probes.measure(&format!("tcp {server} --seconds 0.5 {more}"));
            assert!(number(&figures, "/goodput_mbit_per_s") > 50.0, "{figures}");
        }
        for protocol in ["udp", "tcp"] {
            let figures = probes.measure(&format!("{protocol} {server} --round-trips --size 200 --seconds 1"));
            assert!(number(&figures, "/p50_us") > 0.0 && number(&figures, "/lost") == 0.0, "{figures}");
        }
    }
    probes.finish();
}

#[test]
fn datagrams_larger_than_the_path_are_refused_or_cut() {
    let probes = Probes::new(1500, "");
    let said = start(&probes.left, "perf udp 10.77.0.2 --size 1473 --seconds 0.2").finish();
    assert_eq!(said.status.code(), Some(1));
    assert!(said.lines.iter().any(|line| line.contains("MTU of 1500 B: give --size 1472")), "{:?}", said.lines);
    let figures = probes.measure("udp 10.77.0.2 --size 8000 --rate 20M --seconds 0.5 --fragment");
    assert_eq!(number(&figures, "/datagrams/lost"), 0.0, "{figures}");
    let layers = &figures["receiver"]["layers"];
    assert!(layers["reassembly.ReasmOKs"].as_u64() > Some(100), "they came as fragments: {layers}");
    let figures = probes.measure("udp 10.77.0.2 --round-trips --size 8000 --seconds 0.5 --fragment");
    assert!(number(&figures, "/round_trips") > 0.0, "{figures}");
    probes.finish();
}

#[test]
fn the_mtu_that_is_asked_for_is_what_passes_the_link() {
    let probes = Probes::new(9000, "");
    let longest = "ip daddr 10.77.0.2 meta l4proto { tcp, udp } meta length";
    probes.left.send_one_by_one("eth0");
    for (protocol, mtu) in [("udp", 4_000), ("udp", 9_000), ("tcp", 1_400)] {
        let (name, longer) = (format!("{protocol}{mtu}"), format!("{protocol}{mtu}_longer"));
        probes.right.count_incoming(&name, &format!("{longest} {mtu}"));
        probes.right.count_incoming(&longer, &format!("{longest} > {mtu}"));
        let figures = probes.measure(&format!("{protocol} 10.77.0.2 --mtu-size {mtu} --rate 20M --seconds 0.5"));
        assert!(number(&figures, "/goodput_mbit_per_s") > 10.0);
        assert!(probes.right.counted(&name) > 100, "{protocol} {mtu}");
        assert_eq!(probes.right.counted(&longer), 0, "{protocol} {mtu}");
        let cleared = probes.right.command("nft").args(["flush", "ruleset"]).status();
        assert!(cleared.is_ok_and(|status| status.success()));
    }
    probes.finish();
}

#[test]
fn what_a_full_buffer_loses_is_found_at_the_socket() {
    let probes = Probes::new(1500, "");
    let figures = probes.measure("udp 10.77.0.2 --receive-buffer 5000 --no-gro --seconds 1");
    let lost = number(&figures, "/datagrams/lost") - number(&figures, "/datagrams/lost_at_sender");
    assert!(lost > 0.0, "{figures}");
    assert_eq!(number(&figures, "/receiver/socket_drops"), lost, "every one of them, by the kernel's count: {figures}");
    assert_eq!(number(&figures, "/receiver/layers/udp.RcvbufErrors"), lost);
    assert!(number(&figures, "/receiver/received/receive_buffer_granted_bytes") >= 5_000.0);
    probes.finish();
}

#[test]
fn a_client_that_vanishes_leaves_the_server_free() {
    let probes = Probes::new(1500, "");
    for protocol in ["udp", "tcp"] {
        let client = start(&probes.left, &format!("perf {protocol} 10.77.0.2 --rate 1M --seconds 60"));
        std::thread::sleep(std::time::Duration::from_millis(700));
        client.kill();
        let free = (0..100).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            start(&probes.left, "perf tcp 10.77.0.2 --round-trips --seconds 0.1").finish().status.success()
        });
        assert!(free, "{protocol}");
    }
    probes.finish();
}
