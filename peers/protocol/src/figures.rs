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

/// What a reading process saw.
#[derive(Clone, Copy)]
pub struct Received {
    pub sent: u64,
    pub received: u64,
    pub lost: u64,
    pub seconds: f64,
    pub cpu_seconds: f64,
}

/// Throughput, measured where the samples arrive. Peers do not count their system calls.
#[derive(Serialize, Deserialize)]
pub struct Throughput {
    pub size: usize,
    pub readers: usize,
    pub sent: u64,
    /// At all readers together, like `lost`.
    pub received: u64,
    pub lost: u64,
    /// At one reader; with several, the mean of their rates.
    pub received_per_s: f64,
    pub slowest_received_per_s: f64,
    pub mbit_per_s: f64,
    pub cpu_s_per_million_writer: Option<f64>,
    pub cpu_s_per_million_reader: f64,
    pub syscalls_per_sample_writer: Option<f64>,
    pub syscalls_per_sample_reader: Option<f64>,
}

impl Throughput {
    /// One reader's side; the writer's CPU time is for the caller to add.
    pub fn new(size: usize, received: &Received) -> Throughput {
        let millions = received.received.max(1) as f64 / 1e6;
        let per_second = received.received as f64 / received.seconds.max(1e-9);
        Throughput {
            size,
            readers: 1,
            sent: received.sent,
            received: received.received,
            lost: received.lost,
            received_per_s: per_second,
            slowest_received_per_s: per_second,
            mbit_per_s: per_second * size as f64 * 8.0 / 1e6,
            cpu_s_per_million_writer: None,
            cpu_s_per_million_reader: received.cpu_seconds / millions,
            syscalls_per_sample_writer: None,
            syscalls_per_sample_reader: None,
        }
    }

    /// Adds another reader of the same samples.
    pub fn add(mut self, other: &Throughput) -> Throughput {
        let (mine, theirs) = (self.readers as f64, other.readers as f64);
        let mean = |own: f64, other: f64| (own * mine + other * theirs) / (mine + theirs);
        self.received_per_s = mean(self.received_per_s, other.received_per_s);
        self.mbit_per_s = mean(self.mbit_per_s, other.mbit_per_s);
        self.cpu_s_per_million_reader = mean(self.cpu_s_per_million_reader, other.cpu_s_per_million_reader);
        self.slowest_received_per_s = self.slowest_received_per_s.min(other.slowest_received_per_s);
        self.readers += other.readers;
        self.sent = self.sent.max(other.sent);
        self.received += other.received;
        self.lost += other.lost;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{Received, Throughput};

    #[test]
    fn two_readers_are_averaged_and_their_losses_added() {
        let reader = |received, lost| {
            Throughput::new(100, &Received { sent: 30, received, lost, seconds: 0.1, cpu_seconds: 0.01 })
        };
        let both = reader(10, 20).add(&reader(30, 0));
        assert_eq!((both.readers, both.sent, both.received, both.lost), (2, 30, 40, 20));
        assert!((both.received_per_s - 200.0).abs() < 1e-6, "{}", both.received_per_s);
        assert!((both.slowest_received_per_s - 100.0).abs() < 1e-6, "{}", both.slowest_received_per_s);
    }
}
