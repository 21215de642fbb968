//! `perf` with both ends.

use std::io::Write;

use serde_json::Value;

use crate::program::{Running, command, run, tag};

/// Keys of a JSON object in the order in which they stand.
fn keys(line: &str) -> Vec<&str> {
    // A key is what stands in quotes before a colon; no text in these objects holds one.
    line.split('"').collect::<Vec<_>>().windows(2).filter(|pair| pair[1].starts_with(':')).map(|pair| pair[0]).collect()
}

const LATENCY: [&str; 10] =
    ["size", "work", "samples", "lost", "min_us", "p50_us", "p90_us", "p99_us", "p999_us", "max_us"];
const THROUGHPUT: [&str; 18] = [
    "size",
    "work",
    "method",
    "destination",
    "readers",
    "sent",
    "received",
    "lost",
    "sent_per_s",
    "received_per_s",
    "received_per_s_min",
    "deliveries_per_s",
    "mbit_per_s",
    "cpu_s_per_million_writer",
    "cpu_s_per_million_reader",
    "syscalls_per_sample_writer",
    "syscalls_per_sample_reader",
    "samples_per_datagram",
];

#[test]
fn latency_of_every_way_of_waiting_has_exactly_the_documented_keys() {
    for wait in ["listener", "block", "busy"] {
        let options = ["--size", "200", "--count", "300", "--wait", wait, "--method", "immediate", "--json"];
        let said = run(&[&["perf", "latency"], &options[..]].concat()).expect_code(0);
        assert_eq!(keys(&said.stdout), LATENCY, "{wait}");
        let figures: Value = serde_json::from_str(&said.stdout).expect("JSON");
        assert_eq!((&figures["size"], &figures["samples"]), (&200.into(), &300.into()));
        assert_eq!(figures["work"], "decoded");
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
fn every_method_moves_everything_and_is_reported() {
    let methods: [(&[&str], &str); 5] = [
        (&["--method", "auto"], "auto"),
        (&["--method", "immediate"], "immediate"),
        (&["--method", "coalesce", "--max-bytes", "8000"], "coalesce (at most 8000 B, 1ms)"),
        (
            &["--method", "batch", "--max-samples", "50", "--flush-delay", "200us"],
            "batch (at most 60000 B, 50 samples, 200µs)",
        ),
        (&["--method", "asynchronous"], "asynchronous (background)"),
    ];
    for (options, name) in methods {
        let said = run(&[&["perf", "throughput", "--size", "256", "--count", "2000", "--json"], options].concat());
        let figures: Value = serde_json::from_str(&said.expect_code(0).stdout).expect("JSON");
        assert_eq!(figures["method"], name);
        assert_eq!((&figures["received"], &figures["lost"]), (&2_000.into(), &0.into()), "{name}");
        assert!(figures["samples_per_datagram"].as_f64() > Some(0.0), "{figures}");
    }
}

#[test]
fn raw_work_is_done_where_it_is_asked_for_and_is_told() {
    for measurement in ["latency", "throughput"] {
        let said = run(&["perf", measurement, "--size", "1000", "--count", "300", "--work", "raw", "--json"]);
        let figures: Value = serde_json::from_str(&said.expect_code(0).stdout).expect("JSON");
        assert_eq!((&figures["work"], &figures["size"]), (&"raw".into(), &1_000.into()), "{figures}");
    }
}

#[test]
fn several_readers_all_get_everything() {
    let options = ["--readers", "3", "--size", "100", "--count", "500", "--destination", "unicast", "--json"];
    let said = run(&[&["perf", "throughput"], &options[..]].concat()).expect_code(0);
    let figures: Value = serde_json::from_str(&said.stdout).expect("JSON");
    let counts = ["readers", "sent", "received", "lost"].map(|key| figures[key].as_u64());
    assert_eq!(counts, [Some(3), Some(500), Some(1_500), Some(0)]);
    assert_eq!(figures["destination"], "unicast");
    let (all, mean, min) = (&figures["deliveries_per_s"], &figures["received_per_s"], &figures["received_per_s_min"]);
    assert!(min.as_f64() > Some(0.0) && min.as_f64() <= mean.as_f64() && mean.as_f64() < all.as_f64(), "{figures}");
}

#[test]
fn a_writer_waits_for_as_many_readers_as_it_is_told() {
    let tag = tag();
    let end = |role, readers| {
        let words = ["perf", "throughput", "--role", role, "--count", "200", "--json", "--domain-tag", tag.as_str()];
        [&words[..], &["--readers", readers]].concat()
    };
    let writer = Running::start(command(&end("pub", "2")));
    let readers = [(); 2].map(|()| Running::start(command(&end("sub", "1"))));
    let writer = writer.finish().expect_code(0);
    for reader in readers {
        assert_eq!(reader.finish().expect_code(0).stdout, writer.stdout, "every end has the whole result");
    }
}

#[test]
fn a_profile_sets_what_options_do_not() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("measure-profile.toml");
    let text = "schema = \"thalweg.profile/1\"\n[participant]\nreceive_buffer_bytes = 1000000\n[high_frequency]\nmethod = \"batch\"\n\
                max_bytes = 9000\nmax_flush_delay_us = 300\n[background]\nmethod = \"asynchronous\"\nflow_controller = \"slow\"\n\
                [[flow_controllers]]\nname = \"slow\"\nmax_tokens = 1000\ntokens_added_per_period = 1000\nperiod_us = 10000\n\
                bytes_per_token = 1000\n";
    std::fs::write(&path, text).expect("written");
    let path = path.to_str().expect("text");
    let method = |options: &[&str]| {
        let fixed = ["perf", "throughput", "--count", "300", "--json", "--profile", path];
        let said = run(&[&fixed[..], options].concat()).expect_code(0);
        serde_json::from_str::<Value>(&said.stdout).expect("JSON")["method"].clone()
    };
    assert_eq!(method(&[]), "batch (at most 9000 B, 300µs)");
    assert_eq!(method(&["--max-bytes", "7000"]), "batch (at most 7000 B, 300µs)");
    assert_eq!(method(&["--method", "immediate"]), "immediate");
    assert_eq!(method(&["--kind", "large"]), "auto");
    assert_eq!(method(&["--kind", "background"]), "asynchronous (slow)");
    let said = run(&["sub", "t", "--profile", "/nonexistent/profile.toml"]).expect_code(2);
    assert!(said.stderr.contains("/nonexistent/profile.toml"), "{}", said.stderr);
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
fn bursts_are_made_as_standard_input_asks() {
    let tag = tag();
    let end = |role, words: &str| {
        let (input, mut words_in) = std::io::pipe().expect("a pipe");
        words_in.write_all(words.as_bytes()).expect("room in the pipe");
        let mut command = command(&["perf", "burst", "--role", role, "--method", "batch", "--domain-tag", &tag]);
        command.stdin(input);
        (Running::start(command), words_in)
    };
    let (reader, reader_input) = end("sub", "");
    let requests = "{\"n\":100,\"size\":64,\"runs\":3}\n{\"n\":0,\"size\":64}\nnonsense\n\n{\"n\":2,\"size\":300000}\n";
    let (writer, writer_input) = end("pub", requests);
    drop(writer_input);
    let said = writer.finish().expect_code(0);
    let answers: Vec<Value> = said.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(answers[0]["ready"], true, "{}", said.stdout);
    assert_eq!((&answers[0]["peer"], &answers[0]["work"]), (&"Thalweg".into(), &"decoded".into()));
    let times =
        |answer: &Value| answer["runs_ms"].as_array().map(|times| times.iter().filter_map(Value::as_f64).collect());
    let positive = |times: Option<Vec<f64>>| times.map(|times| times.iter().filter(|time| **time > 0.0).count());
    assert_eq!(
        answers[1..].iter().map(|answer| positive(times(answer))).collect::<Vec<_>>(),
        [Some(3), None, None, Some(1)]
    );
    assert!(answers[2]["error"].as_str().is_some_and(|text| text.contains("not 0")), "{}", answers[2]);
    assert!(answers[3]["error"].as_str().is_some_and(|text| text.contains("nonsense")), "{}", answers[3]);
    drop(reader_input);
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
    let said = run(&["sim", "--from", "7000000", "--seeds", "3", "--jobs", "1"]).expect_code(0);
    assert!(said.stdout.starts_with("3 worlds"), "{}", said.stdout);
    let told = run(&["sim", "--seeds", "2", "--json"]).expect_code(0).stdout;
    let told: serde_json::Value = serde_json::from_str(&told).expect("one JSON object");
    assert_eq!((&told["worlds"], &told["breaches"]), (&2.into(), &serde_json::json!([])));
    assert!(told["samples_taken"].as_u64() > Some(0), "{told}");
    run(&["sim", "--from", &u64::MAX.to_string(), "--seeds", "2"]).expect_code(2);
    let traces = [(); 2].map(|()| run(&["sim", "--seed", "1", "--trace"]).expect_code(0).stdout);
    assert!(traces[0].lines().count() > 20 && traces[0] == traces[1], "the same seed, the same trace");
}
