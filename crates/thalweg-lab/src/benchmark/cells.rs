//! The combinations that a benchmark measures.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::plan::{Benchmark, WorkPlan, WorkTask};
use crate::figures::{grouped, size};
use crate::study::{CellResult, StudyCell};

/// What one contender does in one kind of a piece of work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BenchmarkCell {
    /// Name of the work.
    pub work: String,
    /// Name of the contender.
    pub contender: String,
    /// What it does.
    pub deed: Deed,
    /// Name of the cell that it is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Whether others do the same work, so that its name says who.
    #[serde(default)]
    pub has_rivals: bool,
}

/// One kind of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// So many samples at once, from the first write to the echo of the last.
    Burst {
        /// Samples of a burst.
        samples: u64,
        /// Payload bytes of each.
        sample_bytes: u64,
    },
    /// Samples one way.
    Stream {
        /// Payload bytes of each.
        sample_bytes: u64,
        /// Reading processes.
        readers: u64,
    },
    /// Round trips.
    RoundTrip {
        /// Payload bytes of a sample.
        sample_bytes: u64,
    },
    /// The topic in a hurry.
    Topic {
        /// Whether transfers run beside it.
        loaded: bool,
        /// Samples of a transfer.
        samples: u64,
        /// Payload bytes of each.
        sample_bytes: u64,
    },
}

impl Deed {
    /// Samples that a burst or a transfer moves, and payload bytes of each.
    pub fn load(self) -> (u64, u64) {
        match self {
            Deed::Burst { samples, sample_bytes } | Deed::Topic { samples, sample_bytes, .. } => {
                (samples, sample_bytes)
            }
            Deed::Stream { sample_bytes, .. } | Deed::RoundTrip { sample_bytes } => (1, sample_bytes),
        }
    }

    /// Whether it is the topic in a hurry, and transfers run beside it.
    pub fn is_loaded(self) -> Option<bool> {
        match self {
            Deed::Topic { loaded, .. } => Some(loaded),
            _ => None,
        }
    }
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Deed::Burst { samples, sample_bytes } => write!(f, "{} × {}", grouped(*samples), size(*sample_bytes)),
            Deed::Stream { sample_bytes, readers: 1 } => write!(f, "stream of {}", size(*sample_bytes)),
            Deed::Stream { sample_bytes, readers } => {
                write!(f, "stream of {} to {readers} readers", size(*sample_bytes))
            }
            Deed::RoundTrip { sample_bytes } => write!(f, "round trip of {}", size(*sample_bytes)),
            Deed::Topic { loaded, .. } => {
                write!(f, "{RATE_HZ} Hz {} transfer", if *loaded { "with" } else { "without" })
            }
        }
    }
}

impl fmt::Display for BenchmarkCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, ", self.work)?;
        if self.has_rivals {
            write!(f, "{}, ", self.contender)?;
        }
        write!(f, "{}", self.deed)
    }
}

impl StudyCell for BenchmarkCell {
    fn baseline<'a, R>(
        cells: &'a [CellResult<BenchmarkCell, R>],
        cell: &CellResult<BenchmarkCell, R>,
    ) -> Option<&'a CellResult<BenchmarkCell, R>> {
        let name = cell.cell.baseline.as_ref()?;
        cells.iter().find(|other| other.name == *name)
    }
}

/// The cells of all work, contender by contender.
pub(super) fn cells_of(plan: &Benchmark) -> Vec<BenchmarkCell> {
    let mut out: Vec<BenchmarkCell> = Vec::new();
    for work in &plan.works {
        let has_rivals = work.contenders.len() > 1;
        let begin = out.len();
        for contender in &work.contenders {
            let named = plan.contender(contender).and_then(|one| one.against.as_ref());
            let rival = named.filter(|name| work.contenders.contains(name)).unwrap_or(&work.contenders[0]);
            let mut own: Vec<BenchmarkCell> = Vec::new();
            for deed in deeds(work) {
                let is_rival = |other: &&BenchmarkCell| other.contender == *rival && other.deed == deed;
                let baseline = out[begin..].iter().find(is_rival);
                let baseline = baseline.or_else(|| own.iter().find(|before| is_alike(before.deed, deed)));
                let baseline = baseline.map(ToString::to_string);
                let (work, contender) = (work.name.clone(), contender.clone());
                own.push(BenchmarkCell { work, contender, deed, baseline, has_rivals });
            }
            out.extend(own);
        }
    }
    out
}

/// Whether a contender's second deed is compared with its first: as many samples or as many bytes, and the topic beside its transfers.
fn is_alike(first: Deed, second: Deed) -> bool {
    let of = |deed: Deed| deed.load();
    match (first, second) {
        (Deed::Burst { .. }, Deed::Burst { .. }) => {
            of(first).0 == of(second).0 || of(first).0 * of(first).1 == of(second).0 * of(second).1
        }
        (Deed::Topic { .. }, Deed::Topic { .. }) => true,
        _ => false,
    }
}

fn deeds(work: &WorkPlan) -> Vec<Deed> {
    match &work.task {
        WorkTask::Bursts { of, .. } => {
            let burst = |(samples, bytes): &(u32, u32)| Deed::Burst {
                samples: (*samples).into(),
                sample_bytes: (*bytes).into(),
            };
            of.iter().map(burst).collect()
        }
        WorkTask::Stream { bytes, readers, .. } => {
            bytes.iter().map(|bytes| Deed::Stream { sample_bytes: *bytes, readers: *readers as u64 }).collect()
        }
        WorkTask::RoundTrips { bytes, .. } => {
            bytes.iter().map(|bytes| Deed::RoundTrip { sample_bytes: *bytes }).collect()
        }
        WorkTask::Beside { transfer: (samples, bytes), .. } => [false, true]
            .map(|loaded| Deed::Topic { loaded, samples: (*samples).into(), sample_bytes: (*bytes).into() })
            .to_vec(),
    }
}

/// Of the topic in a hurry.
pub(super) const RATE_HZ: u64 = 100;
