//! Options of a measurement.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::host::pin_to_cpu;
use crate::scenario::ReliabilitySetting;
use crate::station::{DeliveryGuarantee, Numbered, Sending, Station, StationNetwork, TokenBucket, Wait};

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
    pub reliability: ReliabilitySetting,
    /// By what way the measured samples travel.
    pub sending: Sending,
    /// A flow controller to create for it.
    pub flow_controller: Option<TokenBucket>,
    /// Samples that may wait for acknowledgement; missing means as many as 64 MiB hold, between 4 and 32,768.
    pub history: Option<u32>,
    /// Reading processes of a stream, at least 1; round trips have one.
    pub readers: usize,
    /// The way in which an end waits for data.
    pub wait: Wait,
    /// Logical CPU of the writing end.
    pub writer_cpu: Option<usize>,
    /// Logical CPUs of the reading ends, which take them in turn; empty leaves the choice to the system.
    pub reader_cpus: Vec<usize>,
    /// Every how many samples the layers are traced, for what that costs; missing means not at all.
    pub trace: Option<NonZeroU32>,
    /// The network of both ends.
    pub network: StationNetwork,
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

impl PerfOptions {
    /// Opens this end's station on its CPU.
    pub(super) fn open(&self, cpu: Option<usize>) -> Result<Station, LabError> {
        if let Some(cpu) = cpu {
            pin_to_cpu(cpu)
                .map_err(|error| LabError::Here(format!("this process cannot run on CPU {cpu}: {error}")))?;
        }
        let station = Station::open(&self.network, self.wait)?;
        self.flow_controller.iter().try_for_each(|bucket| station.create_flow_controller(bucket))?;
        self.trace.into_iter().for_each(thalweg::trace::start);
        Ok(station)
    }

    /// The measured topics' delivery: how many samples may wait, and whether lost ones are sent again.
    pub(super) fn delivery(&self) -> DeliveryGuarantee {
        let fitting = u32::try_from(WAITING_BYTES_MAX / self.size.max(1)).unwrap_or(u32::MAX);
        let max_samples = self.history.unwrap_or(fitting.clamp(WAITING_MIN, WAITING_MAX));
        match self.reliability {
            ReliabilitySetting::BestEffort => DeliveryGuarantee::BestEffort { max_samples },
            ReliabilitySetting::Reliable => DeliveryGuarantee::Reliable { max_samples },
        }
    }

    /// About how many samples a reader will count, at the rates that today's machines reach.
    pub(super) fn samples_expected(&self) -> u64 {
        match self.limit {
            Limit::Samples(count) => count,
            Limit::Time(duration) => duration.as_secs().saturating_add(1).saturating_mul(SAMPLES_PER_SECOND_MAX),
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
const WAITING_MAX: u32 = 32_768;
const WAITING_MIN: u32 = 4;

/// Beyond this rate a reader finds memory for its notes while it measures.
const SAMPLES_PER_SECOND_MAX: u64 = 10_000_000;

/// How long an end waits for the other one to appear.
pub(super) const PEER_PATIENCE: Duration = Duration::from_secs(30);
/// How long an end waits for an answer of a peer that is there.
pub(super) const ANSWER_PATIENCE: Duration = Duration::from_secs(10);
