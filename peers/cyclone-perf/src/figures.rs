//! The figures, under the names that `thalweg perf --json` prints.

use serde::{Deserialize, Serialize};

/// Round-trip times in microseconds.
#[derive(Serialize, Deserialize)]
pub struct Latency {
    pub size: usize,
    pub samples: usize,
    pub min_us: f64,
    pub p50_us: f64,
    pub p90_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub max_us: f64,
}

impl Latency {
    /// Sorts the round trips, given in nanoseconds, and picks the percentiles.
    pub fn new(size: usize, mut round_trips: Vec<u64>) -> Latency {
        round_trips.sort_unstable();
        let at = |share: f64| {
            let last = round_trips.len().saturating_sub(1);
            round_trips.get((last as f64 * share).round() as usize).map_or(0.0, |nanoseconds| *nanoseconds as f64 / 1e3)
        };
        Latency {
            size,
            samples: round_trips.len(),
            min_us: at(0.0),
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: at(1.0),
        }
    }
}

/// What the reading process saw.
pub struct Received {
    pub sent: u64,
    pub received: u64,
    pub lost: u64,
    pub seconds: f64,
    pub cpu_seconds: f64,
}

/// Throughput, measured where the samples arrive. Cyclone does not count its system calls.
#[derive(Serialize, Deserialize)]
pub struct Throughput {
    pub size: usize,
    pub sent: u64,
    pub received: u64,
    pub lost: u64,
    pub received_per_s: f64,
    pub mbit_per_s: f64,
    pub cpu_s_per_million_writer: Option<f64>,
    pub cpu_s_per_million_reader: f64,
    pub syscalls_per_sample_writer: Option<f64>,
    pub syscalls_per_sample_reader: Option<f64>,
}

impl Throughput {
    /// The reader's side; the writer's CPU time is for the caller to add.
    pub fn new(size: usize, received: &Received) -> Throughput {
        let millions = received.received.max(1) as f64 / 1e6;
        let per_second = received.received as f64 / received.seconds.max(1e-9);
        Throughput {
            size,
            sent: received.sent,
            received: received.received,
            lost: received.lost,
            received_per_s: per_second,
            mbit_per_s: per_second * size as f64 * 8.0 / 1e6,
            cpu_s_per_million_writer: None,
            cpu_s_per_million_reader: received.cpu_seconds / millions,
            syscalls_per_sample_writer: None,
            syscalls_per_sample_reader: None,
        }
    }
}
