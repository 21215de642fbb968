//! Links that are narrower than what is written to them: the kernel's token bucket filter with a queue before it.

use std::time::Duration;

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
    // The other tests of the suite use the processors, too, and a sender that comes late sends less. Without a pace, it is the queue
    // that overflows.
    assert!(carried >= f64::from(MEGABITS) * 0.4, "{carried} Mbit/s of payload; {dropped} of {sent} packets dropped");
    assert!(dropped * 20 <= sent, "{dropped} packets dropped, {sent} sent");
}

#[test]
fn others_on_a_narrow_link_do_not_wait_for_a_full_queue() {
    let (left, right) = narrow();
    let (writer, reader) = stream(&left, &right, 8);
    let echo = thalweg::start(Some(&right), 0, "perf latency --role sub --size 100");
    std::thread::sleep(Duration::from_secs(1));
    let latency = thalweg::start(Some(&left), 0, "perf latency --role pub --size 100 --seconds 4 --json");
    let p99_us = finish(latency, "p99_us");
    echo.finish().well();
    let carried = finish(writer, "mbit_per_s");
    reader.finish().well();
    assert!(p99_us < 20_000.0, "99 % of the round trips within {p99_us} µs beside {carried} Mbit/s");
    assert!(carried > f64::from(MEGABITS) * 0.5, "{carried} Mbit/s beside round trips");
}
