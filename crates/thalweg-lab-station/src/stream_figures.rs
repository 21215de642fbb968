//! A stream as `perf` prints it: one object, its keys fixed.

use serde::{Deserialize, Serialize};

use crate::middleware::Work;

/// A stream of samples one way, to one reader or several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThroughputFigures {
    /// Payload bytes of a sample.
    pub size: u64,
    /// The work of all ends for each sample.
    pub work: Work,
    /// The transmission method, in the middleware's words; empty where there is nothing to choose.
    pub method: String,
    /// Destinations of datagrams, in the same way.
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
    /// System calls of the writer's transport (sends, receives, waits) for a sample sent; null where the middleware does not count
    /// them.
    pub syscalls_per_sample_writer: Option<f64>,
    /// System calls of a reader's transport for a sample received.
    pub syscalls_per_sample_reader: Option<f64>,
    /// Samples received for each datagram that reached a reader, HEARTBEATs that came by themselves included.
    pub samples_per_datagram: Option<f64>,
}

impl ThroughputFigures {
    /// Joins what all ends saw.
    pub fn of(size: u64, work: Work, writer: &WriterEnd, readers: &[ReaderEnd]) -> ThroughputFigures {
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
            work,
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
            "{} B, {}, {}: {} samples/s, {} Mbit/s received; {} sent, {} received, {} lost\n",
            self.size,
            if self.method.is_empty() { "as shipped" } else { &self.method },
            self.work.name(),
            short(rates.received_per_s),
            short(rates.mbit_per_s),
            self.sent,
            self.received,
            self.lost,
        );
        if self.readers > 1 {
            out.push_str(&format!(
                "{} readers, destination {}: slowest {} samples/s, all together {} deliveries/s, writer {} samples/s\n",
                self.readers,
                self.destination,
                short(rates.received_per_s_min),
                short(rates.deliveries_per_s),
                short(rates.sent_per_s)
            ));
        }
        let told = |value: Option<f64>| value.map_or_else(|| "not counted".to_owned(), short);
        out.push_str(&format!(
            "CPU seconds per million samples: writer {}, reader {}; system calls per sample: writer {}, reader {}; samples per datagram: {}",
            short(costs.cpu_s_per_million_writer),
            short(costs.cpu_s_per_million_reader),
            told(costs.syscalls_per_sample_writer),
            told(costs.syscalls_per_sample_reader),
            told(costs.samples_per_datagram)
        ));
        out
    }
}

impl SampleCosts {
    fn of(writer: &WriterEnd, readers: &[ReaderEnd], received: u64) -> SampleCosts {
        let per = |part: f64, samples: u64| if samples == 0 { 0.0 } else { part / samples as f64 };
        let sum = |part: fn(&Cost) -> Option<u64>| readers.iter().map(|reader| part(&reader.cost)).sum::<Option<u64>>();
        let cpu_ns: u64 = readers.iter().map(|reader| reader.cost.cpu_ns).sum();
        SampleCosts {
            // Nanoseconds for a sample are thousandths of seconds for a million of them.
            cpu_s_per_million_writer: per(writer.cost.cpu_ns as f64 / 1e3, writer.sent),
            cpu_s_per_million_reader: per(cpu_ns as f64 / 1e3, received),
            syscalls_per_sample_writer: writer.cost.syscalls.map(|calls| per(calls as f64, writer.sent)),
            syscalls_per_sample_reader: sum(|cost| cost.syscalls).map(|calls| per(calls as f64, received)),
            samples_per_datagram: sum(|cost| cost.datagrams).map(|datagrams| per(received as f64, datagrams)),
        }
    }
}

/// A number in few digits.
pub(crate) fn short(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 1.0 => format!("{value:.2}"),
        value => format!("{value:.4}"),
    }
}

/// Costs of a measurement for a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time in nanoseconds, all threads.
    pub cpu_ns: u64,
    /// System calls of the transport, where they are counted.
    pub syscalls: Option<u64>,
    /// Datagrams that arrived, where they are counted.
    pub datagrams: Option<u64>,
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
    use super::*;

    fn keys(value: &impl Serialize) -> Vec<String> {
        // Serialized order, not the map's.
        let text = serde_json::to_string(value).expect("json");
        text.split('"').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn objects_have_exactly_the_documented_keys() {
        let writer = WriterEnd { method: "m".to_owned(), destination: "d".to_owned(), ..WriterEnd::default() };
        let throughput = ThroughputFigures::of(64, Work::Decoded, &writer, &[ReaderEnd::default()]);
        let expect = [
            "size",
            "work",
            "decoded",
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
        let cost = Cost { cpu_ns: 5_005_000, syscalls: Some(2_002), datagrams: Some(0) };
        let writer = WriterEnd { sent: 1_001, span_ns: 1_001_000, cost, ..WriterEnd::default() };
        let reader = ReaderEnd { received: 1_001, span_ns: 10_000_000, ..ReaderEnd::default() };
        let figures = ThroughputFigures::of(1_000, Work::Decoded, &writer, &[reader]);
        check(figures.rates.sent_per_s, 1e6);
        check(figures.rates.received_per_s, 100_000.0);
        check(figures.rates.mbit_per_s, 800.0);
        check(figures.costs.cpu_s_per_million_writer, 5.0);
        assert_eq!(figures.costs.syscalls_per_sample_writer, Some(2.0));
        assert_eq!(figures.costs.syscalls_per_sample_reader, None, "a reader that does not count them");
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
            cost: Cost { cpu_ns, syscalls: Some(10), datagrams: Some(100) },
            ..ReaderEnd::default()
        };
        let figures = ThroughputFigures::of(100, Work::Decoded, &writer, &[reader(1_001, 1_001_000), reader(501, 0)]);
        assert_eq!((figures.readers, figures.received, figures.lost), (2, 1_502, 500));
        check(figures.rates.deliveries_per_s, 150_000.0);
        check(figures.rates.received_per_s, 75_000.0);
        check(figures.rates.received_per_s_min, 50_000.0);
        check(figures.costs.cpu_s_per_million_reader, 1_001.0 / 1_502.0);
        check(figures.costs.samples_per_datagram.expect("counted"), 7.51);
    }
}
