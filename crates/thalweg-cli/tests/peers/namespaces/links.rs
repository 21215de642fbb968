//! Links that are narrower than what is written to them: the kernel's token bucket filter with a queue before it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::host::{Addresses, Host};
use crate::program::Program;
use crate::thalweg;

/// 20 Mbit/s behind a queue of 40 ms.
const MEGABITS: u32 = 20;
const QUEUE_BYTES: u32 = 100_000;

/// Two hosts whose left one reaches the right one by such a link.
fn narrow() -> (Host, Host) {
    let (left, right) = Host::pair(1500, Addresses::Both);
    left.limit("eth0", MEGABITS, QUEUE_BYTES);
    (left, right)
}

/// A stream of samples of a megabyte to the right for so many seconds: both of its ends.
fn stream(left: &Host, right: &Host, seconds: u32) -> (Program, Program) {
    let words = "--size 1000000 --history 6";
    let reader = thalweg::start(Some(right), 0, &format!("perf throughput --role sub {words}"));
    let words = format!("perf throughput --role pub {words} --seconds {seconds} --json");
    (thalweg::start(Some(left), 0, &words), reader)
}

/// A number of the result that a program has printed.
#[track_caller]
fn finish(program: Program, name: &str) -> f64 {
    let said = program.finish().well();
    let result = said.objects().find_map(|object| object[name].as_f64());
    result.unwrap_or_else(|| panic!("no {name}: {:?}", said.lines))
}

#[test]
fn a_narrow_link_is_filled_and_loses_little() {
    let (left, right) = narrow();
    let (writer, reader) = stream(&left, &right, 6);
    let carried = finish(writer, "mbit_per_s");
    reader.finish().well();
    let (sent, dropped) = left.passed("eth0");
    // 92 % alone; twice as many busy processes as processors leave 78 %, since a sender that comes late sends less. Without any
    // bound nearly as much arrives, and it is the queue that overflows.
    assert!(carried >= f64::from(MEGABITS) * 0.4, "{carried} Mbit/s of payload; {dropped} of {sent} packets dropped");
    assert!(dropped * 20 <= sent, "{dropped} packets dropped, {sent} sent");
}

/// How long samples of `pub --rate` took until they were read here, in milliseconds, shortest first: the clock is one for all hosts.
fn latencies(left: &Host, right: &Host, samples: usize) -> Vec<f64> {
    let mut reader = thalweg::start(Some(right), 0, &format!("sub probe --json --count {samples}"));
    let writer = thalweg::start(Some(left), 0, &format!("pub probe x --rate 50 --count {samples}"));
    let mut took = Vec::new();
    while took.len() < samples {
        let line = reader.expect("a sample", |line| line.starts_with('{'));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock that was set");
        let written = serde_json::from_str::<Value>(&line).expect("JSON")["source_timestamp_ns"].as_u64();
        let written = Duration::from_nanos(written.expect("a time stamp"));
        took.push(now.saturating_sub(written).as_secs_f64() * 1e3);
    }
    reader.finish().well();
    writer.finish().well();
    took.sort_by(f64::total_cmp);
    took
}

#[test]
fn others_on_a_narrow_link_do_not_wait_for_a_full_queue() {
    let (left, right) = narrow();
    let mut told = Vec::new();
    // Tests beside this one take the processors at times, and answers that are late for it look like a full link.
    for _ in 0..3 {
        let (writer, reader) = stream(&left, &right, 8);
        std::thread::sleep(Duration::from_secs(1));
        // At a rate, since who waits for an answer before the next question asks mostly while the queue is empty.
        let took = latencies(&left, &right, 200);
        let carried = finish(writer, "mbit_per_s");
        reader.finish().well();
        let (median, most) = (took[took.len() / 2], took[took.len() * 9 / 10]);
        // A window without a pace keeps the queue at 32 ms; without either it is now empty, now full.
        if median < 10.0 && most < 25.0 && carried >= f64::from(MEGABITS) * 0.4 {
            return;
        }
        told.push(format!("half take {median} ms, 90 % at most {most} ms beside {carried} Mbit/s"));
    }
    panic!("{}", told.join("; "));
}
