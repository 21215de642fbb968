//! Expressions of content filters, ours or a peer's: reading, checking and judging never panic, and take a bounded time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg::filter::Filter;

#[derive(thalweg::Topic, Clone, Debug)]
struct Inner {
    y: f64,
    tags: Vec<String>,
}

#[derive(thalweg::Topic, Clone, Debug)]
struct Sample {
    color: String,
    size: i32,
    big: u64,
    ok: bool,
    at: Inner,
    row: [i16; 3],
}

fuzz_target!(|data: &str| {
    let mut parts = data.split('\n');
    let expression = parts.next().unwrap_or_default();
    let parameters: Vec<&str> = parts.take(100).collect();
    let Ok(filter) = Filter::parse(expression, &parameters) else { return };
    if filter.check::<Sample>().is_ok() {
        let at = Inner { y: 0.5, tags: vec!["a".into()] };
        let sample = Sample { color: "RED".into(), size: -1, big: u64::MAX, ok: true, at, row: [1, 2, 3] };
        filter.accepts(&sample);
    }
});
