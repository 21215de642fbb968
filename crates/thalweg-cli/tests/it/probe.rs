//! `perf udp`, `tcp` and `serve` as processes.

use std::io::BufRead;

use serde_json::Value;

use crate::program::{Running, command, run};

/// A server on a port of its own, and where it is.
fn server(options: &[&str]) -> (Running, String) {
    let words = [&["perf", "serve", "--bind", "127.0.0.1:0"], options].concat();
    let mut running = Running::start(command(&words));
    let line = running.stdout().lines().next().expect("a line").expect("text");
    (running, line.strip_prefix("serving at ").expect("its address").to_owned())
}

#[track_caller]
fn objects(said: &str) -> Vec<Value> {
    said.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

#[test]
fn one_command_starts_both_ends_and_makes_each_measurement() {
    let words = ["--size", "100,1400", "--streams", "1,2", "--rate", "8M", "--seconds", "0.3", "--json"];
    for protocol in ["udp", "tcp"] {
        let said = run(&[&["perf", protocol], &words[..]].concat()).expect_code(0);
        let made: Vec<(u64, u64)> = objects(&said.stdout)
            .iter()
            .map(|figures| {
                let bytes = &figures["receiver"]["received"]["bytes"];
                // 300,000 B without what is no whole message of a stream.
                assert!((294_000..=300_000).contains(&bytes.as_u64().unwrap()), "{figures}");
                assert_eq!(figures["rate_asked_mbit_per_s"], 8.0);
                (figures["streams"].as_u64().unwrap(), figures["size_bytes"].as_u64().unwrap())
            })
            .collect();
        assert_eq!(made, [(1, 100), (1, 1_400), (2, 100), (2, 1_400)]);
    }
}

#[test]
fn a_server_measures_once_or_until_it_is_interrupted() {
    let (server_once, address) = server(&["--once"]);
    let said = run(&["perf", "udp", &address, "--round-trips", "--seconds", "0.2"]).expect_code(0);
    assert!(said.stdout.starts_with("UDP round trips, 64 B, 1 stream: "), "{}", said.stdout);
    let ended = server_once.finish().expect_code(0);
    assert!(ended.stderr.contains("UDP round trips, 64 B, streams: 1, 0.2 s: done"), "{}", ended.stderr);

    let (server, address) = server(&[]);
    for protocol in ["udp", "tcp"] {
        let said = run(&["perf", protocol, &address, "--reverse", "--seconds", "0.2"]).expect_code(0);
        assert!(said.stdout.contains("to the client"), "{}", said.stdout);
    }
    server.signal("INT");
    server.finish().expect_code(0);
}

#[test]
fn what_cannot_be_measured_is_refused_with_the_way_out() {
    let check = |words: &[&str], code: i32, expect: &str| {
        let said = run(&[&["perf"], words].concat()).expect_code(code);
        assert!(said.stderr.contains(expect), "{words:?}: {}", said.stderr);
        assert_eq!(said.stdout, "");
    };
    check(&["udp", "--size", "15"], 2, "a size of 15 B is out of range: 16 to 65507 B for UDP");
    check(&["udp", "--streams", "65"], 2, "65 streams are out of range: 1 to 64");
    check(&["udp", "--rate", "1k"], 2, "raise the rate or the time");
    check(&["udp", "--rate", "fast"], 2, "give one such as 200M");
    check(&["udp", "--rate", "1M", "--round-trips"], 2, "cannot be used with");
    check(&["tcp", "--seconds", "0"], 2, "0 ms are out of range");
    check(&["tcp", "--cpu", "0"], 2, "--cpu needs two numbers");
    check(&["tcp", "127.0.0.1", "--cpu", "0,1"], 2, "--cpu needs one number");
    check(&["tcp", "127.0.0.1:1"], 1, "start `thalweg perf serve` there");
}

#[test]
fn ctrl_c_ends_a_measurement_and_the_process_that_it_started() {
    let running = Running::start(command(&["perf", "udp", "--rate", "1M", "--seconds", "60"]));
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    running.signal("INT");
    running.finish().expect_code(130);
}
