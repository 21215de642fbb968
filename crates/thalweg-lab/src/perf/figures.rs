//! The output of `perf`: one object for each measurement, its keys fixed.

use serde::{Deserialize, Serialize};

use crate::figures::{grouped, micros, rounded};
use crate::statistics::Latencies;

/// Round trips of one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundTripFigures {
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

impl RoundTripFigures {
    /// Reads the figures off a distribution of round trips.
    pub fn of(size: u64, latencies: &Latencies) -> RoundTripFigures {
        let quantile = |q| latencies.quantile(q).map(micros);
        RoundTripFigures {
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

/// A stream of samples one way, to one reader or several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThroughputFigures {
    /// Payload bytes of a sample.
    pub size: u64,
    /// The transmission method, in the middleware's words.
    pub method: String,
    /// Destinations of datagrams, in the middleware's words.
    pub destination: String,
    /// Reading processes.
    pub readers: u64,
    /// Samples written, warm-up left out.
    pub sent: u64,
    /// Different samples that arrived, all readers together.
    pub received: u64,
    /// Samples that never arrived, all readers together.
    pub lost: u64,
    /// Its rates.
    #[serde(flatten)]
    pub rates: Rates,
    /// Its costs.
    #[serde(flatten)]
    pub costs: SampleCosts,
}

/// Rates of a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Samples a second at the writer, between its first and last write.
    pub sent_per_s: f64,
    /// Samples a second at a reader, between its first and last one; the mean over the readers.
    pub received_per_s: f64,
    /// The same of the slowest reader.
    pub received_per_s_min: f64,
    /// Samples a second that reached readers, each reader counted.
    pub deliveries_per_s: f64,
    /// Payload megabits (10⁶) a second at a reader; the mean over the readers.
    pub mbit_per_s: f64,
}

/// Costs of a stream, for each sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampleCosts {
    /// CPU seconds of the writer's process for a million samples sent.
    pub cpu_s_per_million_writer: f64,
    /// CPU seconds of a reader's process for a million samples received; the mean over all that were received.
    pub cpu_s_per_million_reader: f64,
    /// System calls of the writer's transport (sends, receives, waits) for a sample sent.
    pub syscalls_per_sample_writer: f64,
    /// System calls of a reader's transport for a sample received.
    pub syscalls_per_sample_reader: f64,
    /// Samples received for each datagram that reached a reader, HEARTBEATs that came by themselves included.
    pub samples_per_datagram: f64,
}

impl ThroughputFigures {
    /// Joins what all ends saw.
    pub fn of(size: u64, writer: &WriterEnd, readers: &[ReaderEnd]) -> ThroughputFigures {
        let count = readers.len() as u64;
        let received: u64 = readers.iter().map(|reader| reader.received).sum();
        let rate =
            |samples: u64, span_ns: u64| if span_ns == 0 { 0.0 } else { samples as f64 / (span_ns as f64 / 1e9) };
        // Between the first and the last arrival lie one sample fewer than arrived.
        let arrival_rates = readers.iter().map(|reader| rate(reader.received.saturating_sub(1), reader.span_ns));
        let deliveries_per_s: f64 = arrival_rates.clone().sum();
        let received_per_s = deliveries_per_s / count.max(1) as f64;
        let rates = Rates {
            sent_per_s: rate(writer.sent, writer.span_ns),
            received_per_s,
            received_per_s_min: arrival_rates.reduce(f64::min).unwrap_or_default(),
            deliveries_per_s,
            mbit_per_s: received_per_s * size as f64 * 8.0 / 1e6,
        };
        ThroughputFigures {
            size,
            method: writer.method.clone(),
            destination: writer.destination.clone(),
            readers: count,
            sent: writer.sent,
            received,
            lost: readers.iter().map(|reader| writer.sent.saturating_sub(reader.received)).sum(),
            rates,
            costs: SampleCosts::of(writer, readers, received),
        }
    }

    /// Lines for people.
    pub fn to_text(&self) -> String {
        let ThroughputFigures { rates, costs, .. } = self;
        let mut out = format!(
            "{} B, {}: {} samples/s, {} Mbit/s received; {} sent, {} received, {} lost\n",
            self.size,
            self.method,
            rounded(rates.received_per_s),
            rounded(rates.mbit_per_s),
            grouped(self.sent),
            grouped(self.received),
            grouped(self.lost),
        );
        if self.readers > 1 {
            out.push_str(&format!(
                "{} readers, destination {}: slowest {} samples/s, all together {} deliveries/s, writer {} samples/s\n",
                self.readers,
                self.destination,
                rounded(rates.received_per_s_min),
                rounded(rates.deliveries_per_s),
                rounded(rates.sent_per_s)
            ));
        }
        out.push_str(&format!(
            "CPU seconds per million samples: writer {}, reader {}; system calls per sample: writer {}, reader {}; samples per datagram: {}",
            rounded(costs.cpu_s_per_million_writer),
            rounded(costs.cpu_s_per_million_reader),
            rounded(costs.syscalls_per_sample_writer),
            rounded(costs.syscalls_per_sample_reader),
            rounded(costs.samples_per_datagram)
        ));
        out
    }
}

impl SampleCosts {
    fn of(writer: &WriterEnd, readers: &[ReaderEnd], received: u64) -> SampleCosts {
        let per = |part: f64, samples: u64| if samples == 0 { 0.0 } else { part / samples as f64 };
        let sum = |part: fn(&Cost) -> u64| readers.iter().map(|reader| part(&reader.cost)).sum::<u64>();
        SampleCosts {
            // Nanoseconds for a sample are thousandths of seconds for a million of them.
            cpu_s_per_million_writer: per(writer.cost.cpu_ns as f64 / 1e3, writer.sent),
            cpu_s_per_million_reader: per(sum(|cost| cost.cpu_ns) as f64 / 1e3, received),
            syscalls_per_sample_writer: per(writer.cost.syscalls as f64, writer.sent),
            syscalls_per_sample_reader: per(sum(|cost| cost.syscalls) as f64, received),
            samples_per_datagram: per(received as f64, sum(|cost| cost.datagrams)),
        }
    }
}

/// Costs of a measurement for a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time in nanoseconds, all threads.
    pub cpu_ns: u64,
    /// System calls of the transport.
    pub syscalls: u64,
    /// Datagrams that arrived.
    pub datagrams: u64,
}

/// Figures of the writer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WriterEnd {
    /// The transmission method.
    pub method: String,
    /// Destinations of datagrams.
    pub destination: String,
    /// Samples written, warm-up left out.
    pub sent: u64,
    /// Nanoseconds from the first to the last write.
    pub span_ns: u64,
    /// From the first to the last write.
    pub cost: Cost,
}

/// Figures of a reader.
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
        let latency = RoundTripFigures::of(64, &Latencies::new());
        let expect = ["size", "samples", "min_us", "p50_us", "p90_us", "p99_us", "p999_us", "max_us"];
        assert_eq!(keys(&latency), expect);
        let writer = WriterEnd { method: "m".to_owned(), destination: "d".to_owned(), ..WriterEnd::default() };
        let throughput = ThroughputFigures::of(64, &writer, &[ReaderEnd::default()]);
        let expect = [
            "size",
            "method",
            "m",
            "destination",
            "d",
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
        assert_eq!(keys(&throughput), expect);
    }

    #[test]
    fn rates_count_the_intervals_between_arrivals() {
        let cost = Cost { cpu_ns: 5_005_000, syscalls: 2_002, datagrams: 0 };
        let writer = WriterEnd { sent: 1_001, span_ns: 1_001_000, cost, ..WriterEnd::default() };
        let reader = ReaderEnd { received: 1_001, span_ns: 10_000_000, ..ReaderEnd::default() };
        let figures = ThroughputFigures::of(1_000, &writer, &[reader]);
        check(figures.rates.sent_per_s, 1e6);
        check(figures.rates.received_per_s, 100_000.0);
        check(figures.rates.mbit_per_s, 800.0);
        check(figures.costs.cpu_s_per_million_writer, 5.0);
        check(figures.costs.syscalls_per_sample_writer, 2.0);
        assert_eq!(figures.lost, 0);
    }

    #[track_caller]
    fn check(got: f64, expect: f64) {
        assert!((got - expect).abs() < 1e-6, "{got} where {expect} was expected");
    }

    #[test]
    fn several_readers_are_summed_and_the_slowest_is_named() {
        let writer = WriterEnd { sent: 1_001, ..WriterEnd::default() };
        let reader = |received, cpu_ns| ReaderEnd {
            received,
            span_ns: 10_000_000,
            cost: Cost { cpu_ns, syscalls: 10, datagrams: 100 },
            ..ReaderEnd::default()
        };
        let figures = ThroughputFigures::of(100, &writer, &[reader(1_001, 1_001_000), reader(501, 0)]);
        assert_eq!((figures.readers, figures.received, figures.lost), (2, 1_502, 500));
        check(figures.rates.deliveries_per_s, 150_000.0);
        check(figures.rates.received_per_s, 75_000.0);
        check(figures.rates.received_per_s_min, 50_000.0);
        check(figures.costs.cpu_s_per_million_reader, 1_001.0 / 1_502.0);
        check(figures.costs.samples_per_datagram, 7.51);
    }

    #[test]
    fn percentiles_that_too_few_round_trips_carry_are_null() {
        let mut latencies = Latencies::new();
        (0..100).for_each(|_| latencies.record(Duration::from_micros(20)));
        let json = serde_json::to_value(RoundTripFigures::of(64, &latencies)).expect("json");
        assert_eq!((&json["p90_us"], &json["p99_us"]), (&serde_json::json!(20.0), &serde_json::Value::Null));
    }
}
