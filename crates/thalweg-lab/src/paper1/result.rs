//! The result of `lab run paper1`, complete enough to draw its report and its page again.

use serde::{Deserialize, Serialize};

use super::search::Search;
use crate::figures::{grouped, size};
use crate::host::{Conditions, Environment};
use crate::profile::Profile;
use crate::quick::Foreground;
use crate::station::TokenBucket;
use crate::statistics::Summary;

/// The whole result; `results.json` is this.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paper1Result {
    /// Layout of this object: `thalweg.paper1/1`.
    pub schema: String,
    /// The settings of the run.
    pub course: Paper1Facts,
    /// The machine.
    pub environment: Environment,
    /// Other load on the machine meanwhile.
    pub conditions: Conditions,
    /// The contenders.
    pub contenders: Vec<ContenderFacts>,
    /// Missing measurements, with reasons and remedies.
    pub missing: Vec<Missing>,
    /// The searches before the measurement.
    pub searches: Vec<Search>,
    /// Table 2: bursts of small samples.
    pub high_frequency: Vec<BurstRuns>,
    /// Table 3: several MiB whole and in segments.
    pub large: Vec<BurstRuns>,
    /// Table 4: a bulk transfer under a flow controller.
    pub background: Vec<BackgroundCell>,
    /// The best settings, for programs to load.
    pub profile: Profile,
}

impl Paper1Result {
    /// The only layout there is so far.
    pub const SCHEMA: &'static str = "thalweg.paper1/1";

    /// Whether a contender is one of ours.
    pub fn is_ours(&self, name: &str) -> bool {
        self.contenders.iter().any(|contender| contender.name == name && contender.is_ours)
    }
}

/// The settings of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paper1Facts {
    /// The command that makes such a result.
    pub command: String,
    /// Start, in seconds since 1970 UTC.
    pub started_unix_s: u64,
    /// Duration of everything in seconds.
    pub seconds: f64,
    /// Seed of the order of turns.
    pub seed: u64,
    /// Runs of each cell, at most.
    pub runs: u64,
    /// Factor on the numbers of samples and bytes of the paper; 1 but in tests.
    pub scale: f64,
    /// Logical CPUs of writers and readers in Tables 2 and 3; missing where they could not be pinned.
    pub cpus: Option<(usize, usize)>,
    /// The link of Table 4.
    pub link: String,
    /// The order of turns within each round of the first cell: an example of what the seed gives.
    pub first_orders: Vec<Vec<String>>,
}

/// Configuration of a peer that was never ready.
pub(super) const NEVER_READY: &str = "never ready";

/// A contender as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContenderFacts {
    /// Name in the tables.
    pub name: String,
    /// Whether it is Thalweg.
    pub is_ours: bool,
    /// Its version or its settings.
    pub configuration: String,
    /// Its failures; cells without runs are its.
    pub failures: Vec<String>,
}

/// Something that could not be measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Missing {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
    /// The remedy: a command or an option.
    pub remedy: String,
}

/// Runs of one contender with one number and size of samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BurstRuns {
    /// Who.
    pub contender: String,
    /// Samples a run.
    pub n: u64,
    /// Payload bytes of each.
    pub size: u64,
    /// Milliseconds from the first write to the echo, in the order of the runs.
    pub runs_ms: Vec<f64>,
    /// The runs summarized.
    pub summary: Summary,
}

impl BurstRuns {
    /// Count and size, as in `3,000 × 256 B`.
    pub fn burst_name(&self) -> String {
        burst_name((self.n, self.size))
    }
}

/// Count and size, as in `3,000 × 256 B`.
pub(super) fn burst_name((n, bytes): (u64, u64)) -> String {
    format!("{} × {}", grouped(n), size(bytes))
}

/// Transfers under one flow controller, and a periodic topic beside them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackgroundCell {
    /// The flow controller.
    pub bucket: TokenBucket,
    /// Samples of a transfer.
    pub transfer_samples: u64,
    /// Payload bytes of each.
    pub sample_bytes: u64,
    /// Milliseconds of each transfer, from the first write to the echo of the last sample.
    pub runs_ms: Vec<f64>,
    /// The transfers summarized.
    pub summary: Summary,
    /// Share of the link's bits in use during each transfer, headers included (0 to 1); empty where it cannot be told.
    pub usage: Vec<f64>,
    /// The periodic topic in the pauses before, between and after the transfers; microseconds. Missing when nothing of it
    /// arrived then.
    pub quiet: Option<Foreground>,
    /// The periodic topic while transfers ran; microseconds. Missing when nothing of it was due then.
    pub loaded: Option<Foreground>,
    /// Every latency of the periodic topic in the pauses, in microseconds.
    pub quiet_us: Vec<f64>,
    /// Every latency of the periodic topic while transfers ran, in microseconds.
    pub loaded_us: Vec<f64>,
}

impl BackgroundCell {
    /// `unlimited`, `1 token`, `30 tokens`.
    pub fn name(&self) -> String {
        match self.bucket.tokens_added_per_period {
            None => "unlimited".to_owned(),
            Some(1) => "1 token".to_owned(),
            Some(tokens) => format!("{tokens} tokens"),
        }
    }

    /// Mean share of the link in use.
    pub fn mean_usage(&self) -> Option<f64> {
        Summary::of(&self.usage).map(|summary| summary.mean)
    }

    /// How many times its idle 99th percentile the periodic topic's is while transfers run; `None` where too few samples carry one.
    pub fn p99_factor(&self) -> Option<f64> {
        Some(self.loaded.as_ref()?.latency.p99? / self.quiet.as_ref()?.latency.p99?)
    }
}
