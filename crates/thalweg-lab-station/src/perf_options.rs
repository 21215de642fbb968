//! Options of a measurement.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::channel::{Keep, ProcessEnd, SampleChannel};
use crate::fault::Fault;
use crate::middleware::{Middleware, NumberedSample};
use crate::order::ReliabilitySetting;
use crate::station::pin;

/// A measurement, as both of its ends know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PerfOptions<Setup> {
    /// Round trips or a stream.
    pub measurement: Measurement,
    /// Octets of a sample.
    pub size: u64,
    /// When the writer stops.
    pub limit: Limit,
    /// Whether lost samples are sent again.
    pub reliability: ReliabilitySetting,
    /// Samples that may wait for acknowledgement, and that a reader keeps; missing means of a stream as many as 64 MiB hold, between 4
    /// and 32,768, and of round trips the last 16.
    pub history: Option<u32>,
    /// Reading processes of a stream, at least 1; round trips have one.
    pub readers: usize,
    /// The number of this reading process, from 0, where a middleware must know it: one that does not join several writers.
    pub reader: usize,
    /// Logical CPU of the writing end.
    pub writer_cpu: Option<usize>,
    /// Logical CPUs of the reading ends, which take them in turn; empty leaves the choice to the system.
    pub reader_cpus: Vec<usize>,
    /// Settings of the middleware.
    pub setup: Setup,
}

/// The measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Measurement {
    /// The round trip of a sample.
    Latency,
    /// Samples a second one way.
    Throughput,
}

/// When a measurement is long enough; warm-up does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// After so many samples.
    Samples(u64),
    /// After so long.
    Time(Duration),
}

impl<Setup> PerfOptions<Setup> {
    /// The options of reading process `number`, from 0, with its own CPU.
    pub fn of_reader(&self, number: usize) -> PerfOptions<Setup>
    where
        Setup: Clone,
    {
        let cpu = self.reader_cpus.get(number % self.reader_cpus.len().max(1));
        PerfOptions { reader: number, reader_cpus: cpu.copied().into_iter().collect(), ..self.clone() }
    }

    /// Joins as this end on its CPU.
    pub(crate) fn open<M: Middleware<Setup = Setup>>(&self, end: &ProcessEnd) -> Result<M, Fault> {
        pin(match end {
            ProcessEnd::Publisher(_) => self.writer_cpu,
            ProcessEnd::Subscriber(_) => self.reader_cpus.first().copied(),
        })?;
        let middleware = M::open(&self.setup, end)?;
        M::begin_measurement(&self.setup);
        Ok(middleware)
    }

    /// A measured topic.
    pub(crate) fn channel(&self, topic: &str) -> SampleChannel {
        let fitting = u32::try_from(WAITING_BYTES_MAX / self.size.max(1)).unwrap_or(u32::MAX);
        let keep = match (self.measurement, self.history) {
            // Echoes are written by the thread that receives, in which a full history would wait for ever.
            (Measurement::Latency, None) => Keep::Last(ECHOES_KEPT),
            _ => Keep::All,
        };
        SampleChannel {
            keep,
            best_effort: self.reliability == ReliabilitySetting::BestEffort,
            samples_max: Some(self.history.unwrap_or(fitting.clamp(WAITING_MIN, WAITING_MAX))),
            is_measured: true,
            ..SampleChannel::reliable(topic)
        }
    }

    /// About how many samples a reader will count, at the rates that today's machines reach.
    pub(crate) fn samples_expected(&self) -> u64 {
        match self.limit {
            Limit::Samples(count) => count,
            Limit::Time(duration) => duration.as_secs().saturating_add(1).saturating_mul(SAMPLES_PER_SECOND_MAX),
        }
    }

    /// A sample of the measured size whose octets count up, so that a shifted or mixed one would be noticed.
    pub(crate) fn sample<S: NumberedSample>(&self) -> Result<S, Fault> {
        let size = usize::try_from(self.size).map_err(Fault::here)?;
        Ok(S::of((0..size).map(|index| index as u8).collect()))
    }
}

/// An error unless a sample has the measured size.
pub(crate) fn check_size(bytes: &[u8], size: u64) -> Result<(), Fault> {
    let got = bytes.len();
    if got as u64 == size {
        return Ok(());
    }
    Err(Fault::Here(format!("a sample of {got} bytes arrived where {size} were sent; give both ends the same --size")))
}

/// Octets that may wait for acknowledgement: more only adds latency, less starves a fast link.
const WAITING_BYTES_MAX: u64 = 64 << 20;
const WAITING_MAX: u32 = 32_768;
const WAITING_MIN: u32 = 4;
/// Only one sample is under way at a time; the others are those that somebody has not acknowledged yet.
const ECHOES_KEPT: u32 = 16;

/// Beyond this rate a reader finds memory for its notes while it measures.
const SAMPLES_PER_SECOND_MAX: u64 = 10_000_000;

/// How long an end waits for the other one to appear.
pub(crate) const PEER_PATIENCE: Duration = Duration::from_secs(30);
/// How long an end waits for an answer of a peer that is there.
pub(crate) const ANSWER_PATIENCE: Duration = Duration::from_secs(10);
