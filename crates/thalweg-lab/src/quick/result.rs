//! What `lab quick` measured, complete enough to draw its report again.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::circumstances;
use crate::figures::{grouped, size};
use crate::host::{Conditions, Environment};
use crate::statistics::Summary;
use crate::study::{CellResult, Difference, Manifest};

/// The whole result; `results.json` is this.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuickResult {
    /// Layout of this object: `thalweg.lab/1`.
    pub schema: String,
    /// Name of the scenario: `quick`.
    pub scenario: String,
    /// First start, in seconds since 1970 UTC.
    pub started_unix_s: u64,
    /// Decided the order of the runs.
    pub seed: u64,
    /// Duration of all runs in seconds.
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
    /// The figures of each run.
    pub cells: Vec<QuickCellRuns>,
    /// Smaller samples against larger ones, whole against split, with a transfer against without.
    pub differences: Vec<Difference>,
}

impl QuickResult {
    /// The only layout there is so far.
    pub const SCHEMA: &'static str = "thalweg.lab/1";

    /// Puts the runs together; `None` where a cell has no figures.
    pub(super) fn of(
        manifest: &Manifest,
        differences: Vec<Difference>,
        cells: Vec<QuickCellRuns>,
    ) -> Option<QuickResult> {
        let bursts = |part: QuickPart| -> Option<Vec<BurstCell>> {
            cells.iter().filter(|cell| cell.cell.part() == part).map(BurstCell::of).collect()
        };
        // The cells of a part share their runs, and so what is known of each.
        let first = |part| cells.iter().find(move |cell| cell.cell.part() == part);
        let runs = || QuickPart::ALL.into_iter().filter_map(first).flat_map(|cell| &cell.runs);
        let conditions = circumstances::of_all(runs().map(|run| &run.conditions));
        let mut remarks: Vec<String> = Vec::new();
        for remark in runs().flat_map(|run| &run.detail.remarks) {
            if !remarks.contains(remark) {
                remarks.push(remark.clone());
            }
        }
        Some(QuickResult {
            schema: QuickResult::SCHEMA.to_owned(),
            scenario: manifest.name.clone(),
            started_unix_s: manifest.started_unix_s,
            seed: manifest.seed,
            seconds: conditions.seconds,
            environment: manifest.environment.clone(),
            conditions,
            high_frequency: bursts(QuickPart::HighFrequency)?,
            large: bursts(QuickPart::Large)?,
            background: Background::of(&cells)?,
            remarks,
            cells,
            differences,
        })
    }

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

/// The runs of one cell.
pub type QuickCellRuns = CellResult<QuickCell, QuickRun>;

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuickCell {
    /// So many samples at once, from the first write to the echo of the last.
    Burst {
        /// Samples of a burst.
        samples: u64,
        /// Payload bytes of each sample.
        sample_bytes: u64,
    },
    /// The periodic topic.
    Topic {
        /// Whether a transfer runs beside it.
        loaded: bool,
    },
}

/// The kinds of data; the cells of one are measured in the same runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuickPart {
    /// Bursts of small samples.
    HighFrequency,
    /// Several MiB at once, whole and in parts.
    Large,
    /// A bulk transfer beside a topic that is in a hurry.
    Background,
}

impl QuickPart {
    pub(super) const ALL: [QuickPart; 3] = [QuickPart::HighFrequency, QuickPart::Large, QuickPart::Background];
}

impl fmt::Display for QuickPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QuickPart::HighFrequency => "high-frequency",
            QuickPart::Large => "large",
            QuickPart::Background => "background",
        })
    }
}

impl QuickCell {
    /// Its kind of data.
    pub fn part(&self) -> QuickPart {
        match self {
            QuickCell::Burst { samples, .. } if *samples >= MANY_SAMPLES => QuickPart::HighFrequency,
            QuickCell::Burst { .. } => QuickPart::Large,
            QuickCell::Topic { .. } => QuickPart::Background,
        }
    }

    /// Number of samples and bytes of each, of a burst.
    pub fn burst(&self) -> Option<(u64, u64)> {
        match self {
            QuickCell::Burst { samples, sample_bytes } => Some((*samples, *sample_bytes)),
            QuickCell::Topic { .. } => None,
        }
    }
}

impl fmt::Display for QuickCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QuickCell::Burst { samples, sample_bytes } => write!(f, "{} × {}", grouped(*samples), size(*sample_bytes)),
            QuickCell::Topic { loaded } => {
                write!(f, "{RATE_HZ} Hz {} transfer", if *loaded { "with" } else { "without" })
            }
        }
    }
}

/// The figures of a cell in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuickRun {
    /// Which round it belongs to, from 0.
    pub round: u32,
    /// The median burst in milliseconds; of bursts alone.
    pub burst_ms: Option<f64>,
    /// The periodic topic's median latency in microseconds; of it alone.
    pub p50_us: Option<f64>,
    /// Its 90th percentile, where enough samples carry one.
    pub p90_us: Option<f64>,
    /// Bursts, or samples of the periodic topic.
    pub sent: u64,
    /// Those of them that did not arrive.
    pub lost: u64,
    /// Other load on the machine.
    pub conditions: Conditions,
    /// What the kinds of data show together, and the folder of the run keeps.
    #[serde(skip)]
    pub(super) detail: RunDetail,
}

/// Every single value of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RunDetail {
    /// Milliseconds of each burst or transfer.
    pub(super) runs_ms: Vec<f64>,
    /// Each sample of the periodic topic, in both conditions; of the loaded cell alone.
    pub(super) points: Vec<LatencyPoint>,
    /// When transfers ran, as (start, end) in seconds.
    pub(super) loads: Vec<(f64, f64)>,
    /// What the processes remarked.
    pub(super) remarks: Vec<String>,
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
    /// The bursts of all runs; `None` where there is none.
    fn of(cell: &QuickCellRuns) -> Option<BurstCell> {
        let (samples, sample_bytes) = cell.cell.burst()?;
        let runs_ms: Vec<f64> = cell.runs.iter().flat_map(|run| run.detail.runs_ms.iter().copied()).collect();
        Some(BurstCell { samples, sample_bytes, summary: Summary::of(&runs_ms)?, runs_ms })
    }

    /// Count and size, as in `3,000 × 256 B`.
    pub fn name(&self) -> String {
        QuickCell::Burst { samples: self.samples, sample_bytes: self.sample_bytes }.to_string()
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
    /// The runs one after the other; `None` where there is none.
    pub(super) fn of(cells: &[QuickCellRuns]) -> Option<Background> {
        let cell = |loaded| cells.iter().find(|cell| cell.cell == QuickCell::Topic { loaded });
        let (quiet, loaded) = (cell(false)?, cell(true)?);
        let (mut points, mut loads, mut transfers_ms) = (Vec::new(), Vec::new(), Vec::new());
        for run in loaded.runs.iter().map(|run| &run.detail) {
            let ends =
                [points.last().map(|last: &LatencyPoint| last.at_s), loads.last().map(|load: &(f64, f64)| load.1)];
            let begun_s = ends.into_iter().flatten().reduce(f64::max).map_or(0.0, |end| end + PAUSE_S);
            points.extend(run.points.iter().map(|point| LatencyPoint { at_s: begun_s + point.at_s, ..*point }));
            loads.extend(run.loads.iter().map(|(from, to)| (begun_s + from, begun_s + to)));
            transfers_ms.extend(&run.runs_ms);
        }
        let foreground = |cell: &QuickCellRuns, is_loaded: bool| {
            let of_cell = points.iter().filter(|point| point.loaded == is_loaded);
            let values: Vec<f64> = of_cell.map(|point| point.latency_us).collect();
            Some(Foreground { latency: Summary::of(&values)?, lost: cell.runs.iter().map(|run| run.lost).sum() })
        };
        Some(Background {
            transfer_samples: TRANSFER_SAMPLES,
            sample_bytes: TRANSFER_SAMPLE_BYTES,
            transfers: Summary::of(&transfers_ms)?,
            rate_hz: RATE_HZ as f64,
            quiet: foreground(quiet, false)?,
            loaded: foreground(loaded, true)?,
            transfers_ms,
            points,
            loads,
        })
    }

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

/// In the order of the report.
pub(super) const CELLS: [QuickCell; 9] = [
    QuickCell::Burst { samples: 3_000, sample_bytes: 256 },
    QuickCell::Burst { samples: 3_000, sample_bytes: 1 << 10 },
    QuickCell::Burst { samples: 10_000, sample_bytes: 256 },
    QuickCell::Burst { samples: 10_000, sample_bytes: 1 << 10 },
    QuickCell::Burst { samples: 1, sample_bytes: 5 << 20 },
    QuickCell::Burst { samples: 5, sample_bytes: 1 << 20 },
    QuickCell::Burst { samples: 20, sample_bytes: 256 << 10 },
    QuickCell::Topic { loaded: false },
    QuickCell::Topic { loaded: true },
];
/// A burst of as many is one of high frequency.
const MANY_SAMPLES: u64 = 1_000;
/// Of the periodic topic.
pub(super) const RATE_HZ: u64 = 100;
pub(super) const TRANSFER_SAMPLES: u64 = 3_200;
pub(super) const TRANSFER_SAMPLE_BYTES: u64 = 32 << 10;
/// Between the runs in a figure over time.
const PAUSE_S: f64 = 0.1;
