//! What `perf` prints: one object for each measurement, its keys fixed.

use serde::{Deserialize, Serialize};

use crate::figures::{grouped, micros, rounded};
use crate::statistics::Latencies;

/// Round trips of one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyFigures {
    /// Payload bytes of a sample.
    pub size: u64,
    /// Round trips measured, warm-up left out.
    pub samples: u64,
    /// Shortest round trip in microseconds.
    pub min_us: f64,
    /// Median in microseconds; null below three samples.
    pub p50_us: Option<f64>,
    /// 90th percentile in microseconds; null below 100 samples.
    pub p90_us: Option<f64>,
    /// 99th percentile in microseconds; null below 1,000 samples.
    pub p99_us: Option<f64>,
    /// 99.9th percentile in microseconds; null below 10,000 samples.
    pub p999_us: Option<f64>,
    /// Longest round trip in microseconds.
    pub max_us: f64,
}

impl LatencyFigures {
    /// Reads the figures off a distribution of round trips.
    pub fn of(size: u64, latencies: &Latencies) -> LatencyFigures {
        let quantile = |q| latencies.quantile(q).map(micros);
        LatencyFigures {
            size,
            samples: latencies.count(),
            min_us: micros(latencies.min()),
            p50_us: quantile(0.5),
            p90_us: quantile(0.9),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            max_us: micros(latencies.max()),
        }
    }

    /// One line for people.
    pub fn to_text(&self) -> String {
        let quantile = |name: &str, value: Option<f64>| match value {
            Some(value) => format!(" {name} {}", rounded(value)),
            None => String::new(),
        };
        format!(
            "{} B: {} round trips in µs: min {}{}{}{}{} max {}",
            self.size,
            grouped(self.samples),
            rounded(self.min_us),
            quantile("p50", self.p50_us),
            quantile("p90", self.p90_us),
            quantile("p99", self.p99_us),
            quantile("p99.9", self.p999_us),
            rounded(self.max_us)
        )
    }
}

/// A stream of samples one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThroughputFigures {
    /// Payload bytes of a sample.
    pub size: u64,
    /// Samples written, warm-up left out.
    pub sent: u64,
    /// Different samples that arrived.
    pub received: u64,
    /// Samples that never arrived.
    pub lost: u64,
    /// Samples a second at the reader, between its first and last one.
    pub received_per_s: f64,
    /// Payload megabits (10⁶) a second at the reader.
    pub mbit_per_s: f64,
    /// CPU seconds of the writer's process for a million samples sent.
    pub cpu_s_per_million_writer: f64,
    /// CPU seconds of the reader's process for a million samples received.
    pub cpu_s_per_million_reader: f64,
    /// System calls of the writer's transport (sends, receives, waits) for a sample sent.
    pub syscalls_per_sample_writer: f64,
    /// System calls of the reader's transport for a sample received.
    pub syscalls_per_sample_reader: f64,
}

impl ThroughputFigures {
    /// Joins what both ends saw.
    pub fn of(size: u64, writer: &WriterEnd, reader: &ReaderEnd) -> ThroughputFigures {
        let per = |part: f64, samples: u64| if samples == 0 { 0.0 } else { part / samples as f64 };
        // Between the first and the last arrival lie one sample fewer than arrived.
        let intervals = reader.received.saturating_sub(1) as f64;
        let seconds = reader.span_ns as f64 / 1e9;
        let received_per_s = if seconds > 0.0 { intervals / seconds } else { 0.0 };
        ThroughputFigures {
            size,
            sent: writer.sent,
            received: reader.received,
            lost: writer.sent.saturating_sub(reader.received),
            received_per_s,
            mbit_per_s: received_per_s * size as f64 * 8.0 / 1e6,
            cpu_s_per_million_writer: per(writer.cost.cpu_ns as f64 / 1e3, writer.sent),
            cpu_s_per_million_reader: per(reader.cost.cpu_ns as f64 / 1e3, reader.received),
            syscalls_per_sample_writer: per(writer.cost.syscalls as f64, writer.sent),
            syscalls_per_sample_reader: per(reader.cost.syscalls as f64, reader.received),
        }
    }

    /// Two lines for people.
    pub fn to_text(&self) -> String {
        format!(
            "{} B: {} samples/s, {} Mbit/s received; {} sent, {} received, {} lost\n\
             CPU seconds per million samples: writer {}, reader {}; system calls per sample: writer {}, reader {}",
            self.size,
            rounded(self.received_per_s),
            rounded(self.mbit_per_s),
            grouped(self.sent),
            grouped(self.received),
            grouped(self.lost),
            rounded(self.cpu_s_per_million_writer),
            rounded(self.cpu_s_per_million_reader),
            rounded(self.syscalls_per_sample_writer),
            rounded(self.syscalls_per_sample_reader)
        )
    }
}

/// What a measurement cost a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time in nanoseconds, all threads.
    pub cpu_ns: u64,
    /// System calls of the transport.
    pub syscalls: u64,
}

/// What the writer saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WriterEnd {
    /// Samples written, warm-up left out.
    pub sent: u64,
    /// From the first to the last write.
    pub cost: Cost,
}

/// What the reader saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReaderEnd {
    /// Different samples that arrived.
    pub received: u64,
    /// Arrivals of a sample that had arrived before.
    pub duplicates: u64,
    /// Samples that arrived after a later one.
    pub out_of_order: u64,
    /// Nanoseconds between the first and the last arrival.
    pub span_ns: u64,
    /// From the first to the last arrival.
    pub cost: Cost,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn keys(value: &impl Serialize) -> Vec<String> {
        // Serialized order, not the map's.
        let text = serde_json::to_string(value).expect("json");
        text.split('"').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn objects_have_exactly_the_documented_keys() {
        let latency = LatencyFigures::of(64, &Latencies::new());
        let expect = ["size", "samples", "min_us", "p50_us", "p90_us", "p99_us", "p999_us", "max_us"];
        assert_eq!(keys(&latency), expect);
        let throughput = ThroughputFigures::of(64, &WriterEnd::default(), &ReaderEnd::default());
        let expect = [
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
        assert_eq!(keys(&throughput), expect);
    }

    #[test]
    fn rates_count_the_intervals_between_arrivals() {
        let writer = WriterEnd { sent: 1_001, cost: Cost { cpu_ns: 5_005_000, syscalls: 2_002 } };
        let reader = ReaderEnd { received: 1_001, span_ns: 10_000_000, ..ReaderEnd::default() };
        let figures = ThroughputFigures::of(1_000, &writer, &reader);
        assert!((figures.received_per_s - 100_000.0).abs() < 1e-6);
        assert!((figures.mbit_per_s - 800.0).abs() < 1e-9);
        assert!((figures.cpu_s_per_million_writer - 5.0).abs() < 1e-9);
        assert!((figures.syscalls_per_sample_writer - 2.0).abs() < 1e-9);
        assert_eq!(figures.lost, 0);
    }

    #[test]
    fn percentiles_that_too_few_round_trips_carry_are_null() {
        let mut latencies = Latencies::new();
        (0..100).for_each(|_| latencies.record(Duration::from_micros(20)));
        let json = serde_json::to_value(LatencyFigures::of(64, &latencies)).expect("json");
        assert_eq!((&json["p90_us"], &json["p99_us"]), (&serde_json::json!(20.0), &serde_json::Value::Null));
    }
}
