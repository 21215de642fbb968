//! The result of a measurement, for programs and for people. Names of figures end with their unit.

use std::fmt::Write;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thalweg_lab_station::Latencies;

use crate::error::ProbeError;
use crate::order::{ProbeOrder, ProbeProtocol, Shape, StreamDirection};
use crate::reports::{EndReport, ProbeSecond};

/// What a measurement gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ProbeFigures {
    /// One way.
    Stream(Box<StreamFigures>),
    /// Requests and answers.
    RoundTrips(Box<ProbeTripFigures>),
}

/// Figures of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamFigures {
    /// UDP or TCP.
    pub protocol: ProbeProtocol,
    /// Who sent.
    pub direction: StreamDirection,
    /// Payload bytes of a datagram or of a TCP write.
    pub size_bytes: u32,
    /// Streams at the same time.
    pub streams: u32,
    /// How long the measurement was to last, in seconds.
    pub seconds_asked: f64,
    /// Payload megabits (10⁶) a second that were asked for, all streams; null of a closed loop.
    pub rate_asked_mbit_per_s: Option<f64>,
    /// Payload megabits a second that left, over the sender's time.
    pub sent_mbit_per_s: f64,
    /// Payload megabits a second that arrived, over the time between the first and the last arrival; duplicates do not count.
    pub goodput_mbit_per_s: f64,
    /// Standard deviation of the payload megabits of one-second windows; null below two whole seconds.
    pub goodput_mbit_per_s_sd: Option<f64>,
    /// What UDP lost; null of TCP, which loses nothing.
    pub datagrams: Option<DatagramFigures>,
    /// The sending end.
    pub sender: EndReport,
    /// The receiving end.
    pub receiver: EndReport,
    /// Each second at the receiver, the tail included.
    pub windows: Vec<ProbeSecond>,
}

/// The law of a stream of datagrams: received + lost = offered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatagramFigures {
    /// Datagrams handed to the sender's kernel.
    pub offered: u64,
    /// Different datagrams that arrived.
    pub received: u64,
    /// Datagrams that did not arrive, those included that the sender's kernel did not take.
    pub lost: u64,
    /// Lost ones in percent of those offered.
    pub lost_percent: f64,
    /// Lost ones that the sender's kernel did not take.
    pub lost_at_sender: u64,
}

/// Figures of round trips.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeTripFigures {
    /// UDP or TCP.
    pub protocol: ProbeProtocol,
    /// Payload bytes of a request and of its answer.
    pub size_bytes: u32,
    /// Streams at the same time, with one request under way in each.
    pub streams: u32,
    /// How long the measurement was to last, in seconds.
    pub seconds_asked: f64,
    /// Round trips measured, warm-up left out.
    pub round_trips: u64,
    /// Requests without an answer, warm-up included.
    pub lost: u64,
    /// Round trips a second, all streams.
    pub round_trips_per_s: f64,
    /// Shortest round trip in microseconds.
    pub min_us: f64,
    /// Mean in microseconds.
    pub mean_us: f64,
    /// Median in microseconds; null below three round trips.
    pub p50_us: Option<f64>,
    /// 90th percentile in microseconds; null below 100 round trips.
    pub p90_us: Option<f64>,
    /// 99th percentile in microseconds; null below 1,000 round trips.
    pub p99_us: Option<f64>,
    /// 99.9th percentile in microseconds; null below 10,000 round trips.
    pub p999_us: Option<f64>,
    /// Longest round trip in microseconds.
    pub max_us: f64,
    /// The end that asked and measured.
    pub client: EndReport,
    /// The end that answered.
    pub server: EndReport,
}

/// The round trips of all streams.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundTripTotals {
    latencies: Option<Latencies>,
    lost: u64,
    per_s: f64,
}

impl RoundTripTotals {
    pub(crate) fn add(&mut self, latencies: &Latencies, lost: u64, measured: Duration) {
        if !measured.is_zero() {
            self.per_s += latencies.count() as f64 / measured.as_secs_f64();
        }
        self.lost += lost;
        match &mut self.latencies {
            Some(all) => all.add(latencies),
            None => self.latencies = Some(latencies.clone()),
        }
    }
}

impl ProbeFigures {
    /// Joins what both ends of a stream saw.
    pub(crate) fn of_stream(
        order: &ProbeOrder,
        sender: EndReport,
        receiver: EndReport,
        windows: Vec<ProbeSecond>,
    ) -> Result<ProbeFigures, ProbeError> {
        let Shape::Stream { direction, rate_bit_per_s } = order.shape else {
            return Err(ProbeError::Failed("round trips are no stream".to_owned()));
        };
        let sent = sender.sent.clone().unwrap_or_default();
        let received = receiver.received.clone().unwrap_or_default();
        let datagrams = match order.protocol {
            ProbeProtocol::Udp => Some(DatagramFigures::of(&sent.offered, &received.received, sent.not_sent)?),
            ProbeProtocol::Tcp if sent.bytes == received.bytes => None,
            ProbeProtocol::Tcp => {
                return Err(ProbeError::Contradiction(format!(
                    "{} B were sent by TCP and {} B arrived",
                    sent.bytes, received.bytes
                )));
            }
        };
        Ok(ProbeFigures::Stream(Box::new(StreamFigures {
            protocol: order.protocol,
            direction,
            size_bytes: order.size_bytes,
            streams: order.streams,
            seconds_asked: order.duration().as_secs_f64(),
            rate_asked_mbit_per_s: rate_bit_per_s.map(|rate| rate / 1e6),
            sent_mbit_per_s: megabits(sent.bytes, sent.seconds),
            goodput_mbit_per_s: megabits(received.bytes, received.seconds),
            goodput_mbit_per_s_sd: deviation(&windows, order.duration().as_secs_f64()),
            datagrams,
            sender,
            receiver,
            windows,
        })))
    }

    pub(crate) fn of_round_trips(
        order: &ProbeOrder,
        totals: &RoundTripTotals,
        client: EndReport,
        server: EndReport,
    ) -> ProbeFigures {
        let latencies = totals.latencies.clone().unwrap_or_default();
        let quantile = |q| latencies.quantile(q).map(micros);
        ProbeFigures::RoundTrips(Box::new(ProbeTripFigures {
            protocol: order.protocol,
            size_bytes: order.size_bytes,
            streams: order.streams,
            seconds_asked: order.duration().as_secs_f64(),
            round_trips: latencies.count(),
            lost: totals.lost,
            round_trips_per_s: totals.per_s,
            min_us: micros(latencies.min()),
            mean_us: micros(latencies.mean()),
            p50_us: quantile(0.5),
            p90_us: quantile(0.9),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            max_us: micros(latencies.max()),
            client,
            server,
        }))
    }

    /// Lines for people.
    pub fn to_text(&self) -> String {
        match self {
            ProbeFigures::Stream(figures) => figures.to_text(),
            ProbeFigures::RoundTrips(figures) => figures.to_text(),
        }
    }
}

impl DatagramFigures {
    fn of(offered: &[u64], received: &[u64], lost_at_sender: u64) -> Result<DatagramFigures, ProbeError> {
        if let Some((stream, (sent, came))) =
            offered.iter().zip(received).enumerate().find(|(_, (sent, came))| came > sent)
        {
            return Err(ProbeError::Contradiction(format!("stream {stream} sent {sent} datagrams and {came} arrived")));
        }
        let sum = |counts: &[u64]| counts.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
        let (offered, received) = (sum(offered), sum(received));
        let lost = offered - received;
        let lost_percent = if offered == 0 { 0.0 } else { lost as f64 * 100.0 / offered as f64 };
        Ok(DatagramFigures { offered, received, lost, lost_percent, lost_at_sender })
    }
}

impl StreamFigures {
    fn to_text(&self) -> String {
        let mut out = format!(
            "{} {}, {} B, {}: {:.1} Mbit/s arrived",
            self.protocol.name(),
            self.direction.name(),
            self.size_bytes,
            plural(self.streams),
            self.goodput_mbit_per_s
        );
        if let Some(sd) = self.goodput_mbit_per_s_sd {
            let _ = write!(out, " (σ of one-second windows {sd:.1})");
        }
        let _ = match self.rate_asked_mbit_per_s {
            Some(rate) => write!(out, ", {:.1} sent, {rate:.1} asked for", self.sent_mbit_per_s),
            None => write!(out, ", {:.1} sent, as fast as possible", self.sent_mbit_per_s),
        };
        let (sent, received) =
            (self.sender.sent.clone().unwrap_or_default(), self.receiver.received.clone().unwrap_or_default());
        if let Some(datagrams) = &self.datagrams {
            let _ = write!(
                out,
                "\ndatagrams: {} offered, {} received, {} lost ({:.4} %), of these {} at the sender; {} duplicates, {} reordered; \
                 jitter (RFC 3550) {:.1} µs",
                datagrams.offered,
                datagrams.received,
                datagrams.lost,
                datagrams.lost_percent,
                datagrams.lost_at_sender,
                received.duplicates,
                received.reordered,
                received.jitter_us
            );
        }
        if let Some(segments) = sent.retransmitted_segments {
            let _ = write!(out, "\nTCP segments sent again: {segments}");
        }
        let asked = match received.receive_buffer_asked_bytes {
            0 => "left to the kernel".to_owned(),
            bytes => format!("{bytes} B asked for"),
        };
        let _ = write!(out, "\nreceive buffer: {asked}, {} B granted", received.receive_buffer_granted_bytes);
        if self.rate_asked_mbit_per_s.is_some() {
            let _ = write!(out, "; sender at most {:.0} µs behind its schedule", sent.behind_us_max);
        }
        self.sender.write_costs(&mut out, "sender");
        self.receiver.write_costs(&mut out, "receiver");
        let drops = self.receiver.socket_drops.max(received.overflow_drops);
        if drops > 0 {
            let _ = write!(
                out,
                "\nthe receiver's sockets were full {drops} times: raise --receive-buffer, and net.core.rmem_max where less is granted"
            );
        }
        out
    }
}

impl ProbeTripFigures {
    fn to_text(&self) -> String {
        let mut out = format!(
            "{} round trips, {} B, {}: {:.0}/s, {} measured, {} lost; in µs: min {:.1}, mean {:.1}",
            self.protocol.name(),
            self.size_bytes,
            plural(self.streams),
            self.round_trips_per_s,
            self.round_trips,
            self.lost,
            self.min_us,
            self.mean_us
        );
        let quantiles = [("p50", self.p50_us), ("p90", self.p90_us), ("p99", self.p99_us), ("p99.9", self.p999_us)];
        for (name, value) in quantiles.iter().filter_map(|(name, value)| Some((name, (*value)?))) {
            let _ = write!(out, ", {name} {value:.1}");
        }
        let _ = write!(out, ", max {:.1}", self.max_us);
        self.client.write_costs(&mut out, "client");
        self.server.write_costs(&mut out, "server");
        out
    }
}

impl EndReport {
    /// Processor time, and the layers that lost something.
    fn write_costs(&self, out: &mut String, end: &str) {
        let share = |share: f64| share * 100.0;
        let _ = write!(out, "\n{end}: {:.2} s of processor time in {:.2} s", self.cpu_seconds, self.seconds);
        if let Some(other) = self.other_cpu_share {
            let _ = write!(out, ", {:.1} % of the machine used by others and the kernel", share(other));
        }
        let losses: Vec<String> = self.layers.losses().map(|(name, count)| format!("{name} {count}")).collect();
        let _ = match losses.as_slice() {
            [] => write!(out, "; no layer counted a loss"),
            losses => write!(out, "; losses by layer: {}", losses.join(", ")),
        };
    }
}

fn plural(streams: u32) -> String {
    if streams == 1 { "1 stream".to_owned() } else { format!("{streams} streams") }
}

fn megabits(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / 1e6 / seconds } else { 0.0 }
}

fn micros(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}

/// The sample's standard deviation of the rates of whole seconds, without those in which the tail came.
fn deviation(windows: &[ProbeSecond], seconds: f64) -> Option<f64> {
    let whole = windows.iter().filter(|window| window.start_s + window.seconds < seconds + LATE_S);
    let rates: Vec<f64> = whole.map(|window| megabits(window.bytes, window.seconds)).collect();
    if rates.len() < 2 {
        return None;
    }
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    Some((squares / (rates.len() - 1) as f64).sqrt())
}

/// How late a second may be cut on a busy machine and still be one of the stream.
const LATE_S: f64 = 0.5;

#[cfg(test)]
mod tests;
