//! The result of a run.

use serde::{Deserialize, Serialize};

use super::{PublisherReport, RunClocks, SubscriberReport};
use crate::figures::micros;
use crate::host::{Layers, ProcessUsage, SecondConditions};
use crate::scenario::Cell;
use crate::statistics::Buckets;
use crate::statistics::endless::option;

/// One run of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialResult {
    /// Layout of this file: `thalweg.trial/1`.
    pub schema: String,
    /// The measurement.
    pub cell: Cell,
    /// Start of the first measured sample in seconds since 1970 UTC.
    pub started_unix_s: u64,
    /// Length of the measurement in seconds.
    pub seconds: f64,
    /// Seconds at its beginning in which latencies had not settled, and whose samples do not count.
    pub unsettled_s: f64,
    /// All pairs together.
    pub totals: Totals,
    /// How evenly the pairs were served.
    pub fairness: Fairness,
    /// What a closed loop reached; missing where there is a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_loop: Option<ClosedLoopFigures>,
    /// Samples that arrived from the start of the measured time to its end, whenever they were due, once for each subscriber; missing in a
    /// closed loop, which counts by second, and in results of versions that did not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<u64>,
    /// Each publisher.
    pub publishers: Vec<PublisherResult>,
    /// Each publisher with each subscriber that is meant to hear it.
    pub pairs: Vec<PairResult>,
    /// Counts of the subscribers besides their samples.
    pub subscribers: Vec<SubscriberReport>,
    /// Each process.
    pub processes: Vec<ProcessReport>,
    /// What the layers below counted from just before the first measured sample to the end of the drain, those of the relay from the beginning of
    /// the schedule; counters that did not move are missing. Of several flows in a run the first one has them.
    pub layers: Layers,
    /// The same of each host, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<Layers>,
    /// Seconds from the reading that `layers` and `hosts` count from to the end of the schedule: what was written in that time is among
    /// what they count. Missing in results of versions that did not note it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_s: Option<f64>,
    /// How the clocks of the machines ran, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<RunClocks>,
    /// Other load on the machine.
    pub conditions: TrialConditions,
}

impl TrialResult {
    /// The only layout there is so far.
    pub const SCHEMA: &'static str = "thalweg.trial/1";
}

/// What a closed loop reached within the measured time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClosedLoopFigures {
    /// Samples received in each second, all subscribers together.
    pub received_by_second: Vec<u64>,
    /// From just before the write of a latency sample to its answer at publisher 0; one that never came is infinitely late.
    pub round_trip: LatencyFigures,
}

impl ClosedLoopFigures {
    /// Samples received a second, on the average of the measured time.
    pub fn received_per_s(&self) -> f64 {
        self.received_by_second.iter().sum::<u64>() as f64 / self.received_by_second.len().max(1) as f64
    }
}

/// The fates of samples, and their latencies. A closed loop counts from its first sample to its last, those of the warm-up included; what
/// arrives there is in time, because nothing was due.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Samples that were due, once for each pair.
    pub due: u64,
    /// Those that arrived within their time after they were due.
    pub in_time: u64,
    /// Those that arrived later.
    pub late: u64,
    /// Those that were written and never arrived.
    pub lost: u64,
    /// Those that were never written.
    pub not_sent: u64,
    /// Further arrivals of samples that had arrived before.
    pub duplicates: u64,
    /// Arrivals after a later sample of the same publisher.
    pub reordered: u64,
    /// From when a sample was due to its arrival.
    pub response: LatencyFigures,
    /// From when it was written to its arrival.
    pub service: LatencyFigures,
}

impl Totals {
    /// Samples in time as a share of those due.
    pub fn in_time_share(&self) -> f64 {
        if self.due == 0 { 0.0 } else { self.in_time as f64 / self.due as f64 }
    }

    /// Samples that arrived.
    pub fn received(&self) -> u64 {
        self.in_time + self.late
    }
}

/// A distribution in figures, in microseconds; quantiles that too few values carry are missing. A sample that never arrived counts in
/// the quantiles as infinitely late, which JSON writes as `never`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyFigures {
    /// Number of values, those that never arrived left out.
    pub count: u64,
    /// Smallest.
    pub min_us: f64,
    /// Mean.
    pub mean_us: f64,
    /// Median.
    #[serde(default, with = "option")]
    pub p50_us: Option<f64>,
    /// 90th percentile.
    #[serde(default, with = "option")]
    pub p90_us: Option<f64>,
    /// 99th percentile.
    #[serde(default, with = "option")]
    pub p99_us: Option<f64>,
    /// 99.9th percentile.
    #[serde(default, with = "option")]
    pub p999_us: Option<f64>,
    /// 99.99th percentile.
    #[serde(default, with = "option")]
    pub p9999_us: Option<f64>,
    /// Largest.
    pub max_us: f64,
}

impl LatencyFigures {
    /// The figures of a distribution.
    pub fn of(buckets: &Buckets) -> LatencyFigures {
        let quantile = |q| buckets.quantile(q);
        LatencyFigures {
            count: buckets.count(),
            min_us: micros(buckets.min()),
            mean_us: micros(buckets.mean()),
            p50_us: quantile(0.5),
            p90_us: quantile(0.9),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            p9999_us: quantile(0.9999),
            max_us: micros(buckets.max()),
        }
    }
}

/// How evenly the pairs were served.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// Jain's index of the samples received: 1 when all pairs got the same, 1/n when one got all.
    pub jain_received: f64,
    /// Jain's index of the samples in time.
    pub jain_in_time: f64,
    /// The largest 99th percentile of a pair by the smallest; missing where the pairs have too few samples or all lost too many.
    #[serde(default, with = "option")]
    pub p99_worst_by_best: Option<f64>,
    /// For each sample that more than one subscriber got: from its first arrival to its last.
    pub last_minus_first: LatencyFigures,
}

/// Counts of a publisher over the measured samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PublisherResult {
    /// Its number.
    pub writer: u32,
    /// Samples due.
    pub due: u64,
    /// Those whose write returned within their time after they were due.
    pub in_time: u64,
    /// Those whose write returned later.
    pub late: u64,
    /// Those that were never written.
    pub not_sent: u64,
    /// From when a sample was due to its write.
    pub lag: LatencyFigures,
    /// Duration of a write.
    pub write: LatencyFigures,
    /// Its own counts, the warm-up included.
    pub report: PublisherReport,
}

/// A publisher with a subscriber.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PairResult {
    /// Number of the publisher.
    pub writer: u32,
    /// Number of the subscriber.
    pub reader: u32,
    /// Fates of its samples.
    #[serde(flatten)]
    pub totals: Totals,
}

/// Resources that a process used while samples were measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessReport {
    /// Which endpoints it held.
    pub name: String,
    /// Its resources.
    #[serde(flatten)]
    pub usage: ProcessUsage,
}

/// Other load on the machine during a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialConditions {
    /// Each second; of several machines the worst in each respect.
    pub seconds: Vec<SecondConditions>,
    /// The same seconds on each machine, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<Vec<SecondConditions>>,
    /// Seconds beyond the limits.
    pub bad_seconds: u64,
    /// Whether the counters of the layers were read after the first sample was due, because the machine stood still: then they
    /// lack what moved before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counted_late: bool,
    /// Whether the bad seconds are more than the scenario allows, the counters began late, or a clock of a machine jumped.
    pub contaminated: bool,
}

impl TrialConditions {
    /// The same with what is known of the counters.
    pub(super) fn counted_late(self, is_late: bool) -> TrialConditions {
        TrialConditions { counted_late: is_late, contaminated: self.contaminated || is_late, ..self }
    }
}
