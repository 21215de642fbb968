//! What `lab quick` measured, complete enough to draw its report again.

use serde::{Deserialize, Serialize};

use crate::host::{Conditions, Environment};
use crate::statistics::Summary;

/// The whole result; `report.json` is this.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuickResult {
    /// Layout of this object: `thalweg.lab/1`.
    pub schema: String,
    /// Name of the scenario: `quick`.
    pub scenario: String,
    /// Start, in seconds since 1970 UTC.
    pub started_unix_s: u64,
    /// Duration of the whole scenario in seconds.
    pub seconds: f64,
    /// The machine.
    pub environment: Environment,
    /// Other load on the machine meanwhile.
    pub conditions: Conditions,
    /// Bursts of small samples.
    pub high_frequency: Vec<BurstCell>,
    /// Several MiB at once, whole and in parts.
    pub large: Vec<BurstCell>,
    /// A bulk transfer beside a topic that is in a hurry.
    pub background: Background,
    /// What the processes remarked on their standard error, each line once.
    pub remarks: Vec<String>,
}

impl QuickResult {
    /// The only layout there is so far.
    pub const SCHEMA: &'static str = "thalweg.lab/1";

    /// Payload bytes that went from one process to another in all measured runs.
    pub fn bytes_moved(&self) -> u64 {
        let bursts = self.high_frequency.iter().chain(&self.large).map(|cell| cell.bytes() * cell.summary.count);
        bursts.sum::<u64>() + self.background.transfer_bytes() * self.background.transfers_ms.len() as u64
    }

    /// Samples that went from one process to another in all measured runs.
    pub fn samples_moved(&self) -> u64 {
        let bursts = self.high_frequency.iter().chain(&self.large).map(|cell| cell.samples * cell.summary.count);
        let background = &self.background;
        let foreground = background.quiet.latency.count + background.loaded.latency.count;
        bursts.sum::<u64>() + background.transfer_samples * background.transfers_ms.len() as u64 + foreground
    }
}

/// Runs of one kind: so many samples of such a size, from the first write to the echo of the last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BurstCell {
    /// Samples a run.
    pub samples: u64,
    /// Payload bytes of each sample.
    pub sample_bytes: u64,
    /// Duration of each run in milliseconds, in the order they were made.
    pub runs_ms: Vec<f64>,
    /// The runs summarized, in milliseconds.
    pub summary: Summary,
}

impl BurstCell {
    /// Count and size, as in `3,000 × 256 B`.
    pub fn name(&self) -> String {
        format!("{} × {}", crate::figures::grouped(self.samples), crate::figures::size(self.sample_bytes))
    }

    /// Payload bytes of one run.
    pub fn bytes(&self) -> u64 {
        self.samples * self.sample_bytes
    }

    /// Samples a second in the mean run.
    pub fn samples_per_second(&self) -> f64 {
        self.samples as f64 / (self.summary.mean / 1e3)
    }

    /// Payload bits a second in the mean run.
    pub fn bits_per_second(&self) -> f64 {
        self.bytes() as f64 * 8.0 / (self.summary.mean / 1e3)
    }
}

/// A periodic topic's latency without and with a bulk transfer in the same two processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Background {
    /// Samples of one transfer.
    pub transfer_samples: u64,
    /// Payload bytes of each of them.
    pub sample_bytes: u64,
    /// Duration of each transfer in milliseconds, from the first write to the echo of the last sample.
    pub transfers_ms: Vec<f64>,
    /// The transfers summarized, in milliseconds.
    pub transfers: Summary,
    /// Samples a second of the periodic topic.
    pub rate_hz: f64,
    /// The periodic topic while nothing else was sent.
    pub quiet: Foreground,
    /// The periodic topic while transfers ran.
    pub loaded: Foreground,
    /// Every sample of the periodic topic.
    pub points: Vec<LatencyPoint>,
    /// When transfers ran, as (start, end) in seconds.
    pub loads: Vec<(f64, f64)>,
}

impl Background {
    /// Payload bytes of one transfer.
    pub fn transfer_bytes(&self) -> u64 {
        self.transfer_samples * self.sample_bytes
    }

    /// Payload bits a second of the mean transfer.
    pub fn bits_per_second(&self) -> f64 {
        self.transfer_bytes() as f64 * 8.0 / (self.transfers.mean / 1e3)
    }
}

/// The periodic topic under one condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Foreground {
    /// Latencies in microseconds, from the moment a sample was due to the moment the other process had it.
    pub latency: Summary,
    /// Samples that never arrived.
    pub lost: u64,
}

/// One sample of the periodic topic.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyPoint {
    /// When it was due, in seconds since the start of the experiment.
    pub at_s: f64,
    /// From then to its arrival, in microseconds.
    pub latency_us: f64,
    /// Whether a transfer was running when it was due.
    pub loaded: bool,
}
