//! `perf` with both ends.

use serde_json::Value;

use crate::program::{Running, command, run, tag};

/// Keys of a JSON object in the order in which they stand.
fn keys(line: &str) -> Vec<&str> {
    line.split('"').skip(1).step_by(2).collect()
}

const LATENCY: [&str; 8] = ["size", "samples", "min_us", "p50_us", "p90_us", "p99_us", "p999_us", "max_us"];
const THROUGHPUT: [&str; 10] = [
    "size",
    "sent",
    "received",
    "lost",
    "received_per_s",
    "mbit_per_s",
    "cpu_s_per_million_writer",
    "cpu_s_per_million_reader",
    "syscalls_per_sample_writer",
    "syscalls_per_sample_reader",
];

#[test]
fn latency_of_every_way_of_waiting_has_exactly_the_documented_keys() {
    for wait in ["listener", "block", "busy"] {
        let said =
            run(&["perf", "latency", "--size", "200", "--count", "300", "--wait", wait, "--json"]).expect_code(0);
        assert_eq!(keys(&said.stdout), LATENCY, "{wait}");
        let figures: Value = serde_json::from_str(&said.stdout).expect("JSON");
        assert_eq!((&figures["size"], &figures["samples"]), (&200.into(), &300.into()));
        let (min, p50, max) = (figures["min_us"].as_f64(), figures["p50_us"].as_f64(), figures["max_us"].as_f64());
        assert!(Some(0.0) < min && min <= p50 && p50 <= max, "{figures}");
        assert_eq!(figures["p99_us"], Value::Null, "300 round trips carry no 99th percentile");
    }
}

#[test]
fn throughput_has_exactly_the_documented_keys_and_loses_nothing() {
    for (size, wait) in [("0", "listener"), ("100000", "block")] {
        let said =
            run(&["perf", "throughput", "--size", size, "--count", "500", "--wait", wait, "--json"]).expect_code(0);
        assert_eq!(keys(&said.stdout), THROUGHPUT, "{wait}");
        let figures: Value = serde_json::from_str(&said.stdout).expect("JSON");
        assert_eq!((&figures["sent"], &figures["received"], &figures["lost"]), (&500.into(), &500.into(), &0.into()));
        for positive in
            ["received_per_s", "cpu_s_per_million_writer", "cpu_s_per_million_reader", "syscalls_per_sample_writer"]
        {
            assert!(figures[positive].as_f64() > Some(0.0), "{positive} in {figures}");
        }
    }
}

#[test]
fn both_ends_may_be_started_apart_and_both_have_the_result() {
    let tag = tag();
    let end = |role| {
        [
            "perf",
            "throughput",
            "--role",
            role,
            "--count",
            "200",
            "--best-effort",
            "--json",
            "--domain-tag",
            tag.as_str(),
        ]
    };
    let reader = Running::start(command(&end("sub")));
    let writer = run(&end("pub")).expect_code(0);
    let reader = reader.finish().expect_code(0);
    assert_eq!(writer.stdout, reader.stdout);
    assert_eq!(keys(&writer.stdout), THROUGHPUT);

    let reader = Running::start(command(&["perf", "latency", "--role", "sub", "--domain-tag", &tag]));
    run(&["perf", "latency", "--role", "pub", "--count", "100", "--domain-tag", &tag]).expect_code(0);
    reader.finish().expect_code(0);
}

#[test]
fn an_interrupted_measurement_is_no_result() {
    let running = Running::start(command(&["perf", "throughput", "--seconds", "60"]));
    std::thread::sleep(std::time::Duration::from_secs(2));
    running.signal("INT");
    let said = running.finish().expect_code(130);
    assert!(said.stdout.is_empty());
}

#[test]
fn simulated_worlds_are_run_and_traced() {
    let said = run(&["sim", "--seeds", "2"]).expect_code(0);
    assert!(said.stdout.starts_with("2 worlds"), "{}", said.stdout);
    let traces = [(); 2].map(|()| run(&["sim", "--seed", "1", "--trace"]).expect_code(0).stdout);
    assert!(traces[0].lines().count() > 20 && traces[0] == traces[1], "the same seed, the same trace");
}
