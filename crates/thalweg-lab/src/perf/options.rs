//! What to measure, and how.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::host::pin_to_cpu;
use crate::station::{Delivery, Network, Numbered, Station, Wait};

/// A measurement, as both of its ends know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PerfOptions {
    /// Round trips or a stream.
    pub measurement: Measurement,
    /// Payload bytes of a sample.
    pub size: u64,
    /// When the writer stops.
    pub limit: Limit,
    /// Whether lost samples are sent again.
    pub reliability: Reliability,
    /// How an end learns that data are there.
    pub wait: Wait,
    /// Logical CPU of the writing end.
    pub writer_cpu: Option<usize>,
    /// Logical CPU of the reading end.
    pub reader_cpu: Option<usize>,
    /// Where the ends meet.
    pub network: Network,
}

/// What is measured.
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

/// Reliability of the measured topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reliability {
    /// Lost samples stay lost.
    BestEffort,
    /// Lost samples are sent again; a full history makes the writer wait.
    Reliable,
}

impl PerfOptions {
    /// Opens this end's station on its CPU.
    pub(super) fn open(&self, cpu: Option<usize>) -> Result<Station, LabError> {
        if let Some(cpu) = cpu {
            pin_to_cpu(cpu)
                .map_err(|error| LabError::Here(format!("this process cannot run on CPU {cpu}: {error}")))?;
        }
        Station::open(&self.network, self.wait)
    }

    /// The measured topics' delivery: as many samples may wait as 64 MiB hold, between 4 and 2,000.
    pub(super) fn delivery(&self) -> Delivery {
        let fitting = WAITING_BYTES_MAX / self.size.max(1);
        let max_samples = u32::try_from(fitting).unwrap_or(u32::MAX).clamp(WAITING_MIN, WAITING_MAX);
        match self.reliability {
            Reliability::BestEffort => Delivery::BestEffort { max_samples },
            Reliability::Reliable => Delivery::Reliable { max_samples },
        }
    }

    /// A sample of the measured size whose bytes count up, so that a shifted or mixed one would be noticed.
    pub(super) fn sample(&self) -> Result<Numbered, LabError> {
        let size = usize::try_from(self.size).map_err(LabError::here)?;
        Ok(Numbered { number: 0, payload: (0..size).map(|index| index as u8).collect() })
    }

    /// An error unless a payload has the measured size.
    pub(super) fn check(&self, payload: &[u8]) -> Result<(), LabError> {
        if payload.len() as u64 == self.size {
            return Ok(());
        }
        let got = payload.len();
        Err(LabError::Here(format!(
            "a sample of {got} bytes arrived where {} were sent; give both ends the same --size",
            self.size
        )))
    }
}

/// Payload bytes that may wait for acknowledgement: more only adds latency, less starves a fast link.
const WAITING_BYTES_MAX: u64 = 64 << 20;
const WAITING_MAX: u32 = 2_000;
const WAITING_MIN: u32 = 4;

/// How long an end waits for the other one to appear.
pub(super) const PEER_PATIENCE: Duration = Duration::from_secs(30);
/// How long an end waits for an answer of a peer that is there.
pub(super) const ANSWER_PATIENCE: Duration = Duration::from_secs(10);
