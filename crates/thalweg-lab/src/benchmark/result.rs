//! What a benchmark measured, complete enough to draw its report again.

use serde::{Deserialize, Serialize};

use super::beside::{Received, Sent};
use super::cells::{BenchmarkCell, Deed, cells_of};
use super::contest::{Outcome, RunFile};
use super::plan::{Benchmark, RatioExpectation};
use super::ratios;
use super::sorted::{self, HurriedTopic};
use crate::circumstances;
use crate::figures::grouped;
use crate::host::{Conditions, Environment};
use crate::statistics::{Interval, Summary, median};
use crate::study::{CellFailure, CellResult, Difference, Judged, StudyCell, distinct, judge, within};

/// The whole result; `results.json` is this.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkResult {
    /// Layout of this object: `thalweg.benchmark-results/1`.
    pub schema: String,
    /// First start, in seconds since 1970 UTC.
    pub started_unix_s: u64,
    /// The benchmark.
    pub plan: Benchmark,
    /// The machine.
    pub environment: Environment,
    /// Other load on the machine during all runs.
    pub conditions: Conditions,
    /// The runs of each cell.
    pub cells: Vec<BenchmarkCellRuns>,
    /// Each cell against the one that it is compared with.
    pub differences: Vec<Difference>,
    /// The expected ratios.
    pub ratios: Vec<JudgedRatio>,
    /// Cells that failed.
    pub failures: Vec<CellFailure>,
    /// Each peer's version, by the contender's name.
    pub versions: Vec<(String, String)>,
    /// What the processes remarked on their standard error, each line once.
    pub remarks: Vec<String>,
}

/// The runs of one cell.
pub type BenchmarkCellRuns = CellResult<BenchmarkCell, BenchmarkRun>;

/// A baseline and a subject.
pub(crate) type TimedPair<'a> = (&'a BenchmarkCellRuns, &'a BenchmarkCellRuns);

/// The figures of a cell in one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkRun {
    /// Which round it belongs to, from 0.
    pub round: u32,
    /// Milliseconds of the median burst or transfer.
    pub time_ms: Option<f64>,
    /// Samples a second of a stream.
    pub per_s: Option<f64>,
    /// Microseconds of the median round trip.
    pub round_trip_us: Option<f64>,
    /// Microseconds of processor time of a stream's writer for each sample.
    pub writer_us: Option<f64>,
    /// The same of its readers.
    pub reader_us: Option<f64>,
    /// Median latency of the topic in a hurry in microseconds.
    pub p50_us: Option<f64>,
    /// Its 90th percentile, where enough samples carry one.
    pub p90_us: Option<f64>,
    /// Bursts, or samples of a stream or topic for all readers; none where it failed.
    pub sent: u64,
    /// Those of them that did not arrive.
    pub lost: u64,
    /// Why it has no figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// Whether that is because earlier runs told enough.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_left_out: bool,
    /// Other load on the machine.
    pub conditions: Conditions,
    /// Every single value.
    #[serde(default)]
    pub detail: RunDetail,
}

/// Every single value of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunDetail {
    /// Milliseconds of each burst or transfer.
    pub times_ms: Vec<f64>,
    /// The topic in a hurry.
    pub topic: HurriedTopic,
    /// When transfers ran, as (start, end) in seconds.
    pub loads_s: Vec<(f64, f64)>,
    /// Bits a second that left the host during each transfer.
    pub bits_per_second: Vec<f64>,
    /// Frames that the link lost by chance.
    #[serde(default)]
    pub frames_lost: u64,
    /// What the processes remarked, and a peer's version; only while the runs are read.
    #[serde(skip)]
    pub(super) remarks: (Vec<String>, String),
}

/// An expected ratio and what the runs say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgedRatio {
    /// The work, and the kind in it.
    pub cell: String,
    /// The quantity.
    pub quantity: String,
    /// What is expected.
    pub expected: RatioExpectation,
    /// The best of those that it is divided by, in quiet runs; missing where none has a figure.
    pub best: Option<String>,
    /// Those of them that have no figure in some run, and so may be no rivals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// The median of the rounds' ratios, or the ratio of the medians where too few rounds have one.
    pub estimate: Option<f64>,
    /// Its interval from runs of the same round, both on a quiet machine; missing below eight of them.
    pub interval: Option<Interval>,
    /// How many such rounds there are.
    #[serde(default)]
    pub quiet_rounds: usize,
    /// Whether the ratio surely lies on the expected side, or surely beyond it; missing where neither is known. Corrected for the number of
    /// expected ratios in the quantity.
    pub holds: Option<bool>,
    /// Why it is open, where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl BenchmarkRun {
    fn empty(round: u32, file: &RunFile) -> BenchmarkRun {
        let remarks = (file.remarks.clone(), file.version.clone());
        let detail = RunDetail { remarks, frames_lost: file.frames_lost, ..RunDetail::default() };
        BenchmarkRun { round, conditions: file.conditions.clone(), detail, ..BenchmarkRun::default() }
    }

    pub(super) fn of(outcome: &Outcome, round: u32, file: &RunFile) -> BenchmarkRun {
        let mut out = BenchmarkRun::empty(round, file);
        match outcome {
            Outcome::BurstsMs(times_ms) => {
                (out.time_ms, out.sent) = (median(times_ms), times_ms.len() as u64);
                out.detail.times_ms.clone_from(times_ms);
            }
            Outcome::RoundTrips(figures) => {
                (out.sent, out.lost) = (figures.samples + figures.lost, figures.lost);
                out.round_trip_us = figures.p50_us;
            }
            Outcome::Stream(figures) => {
                let costs = &figures.costs;
                // Seconds for a million samples are microseconds for one.
                (out.writer_us, out.reader_us) =
                    (Some(costs.cpu_s_per_million_writer), Some(costs.cpu_s_per_million_reader));
                (out.per_s, out.sent) = (Some(figures.rates.received_per_s), figures.sent * figures.readers);
            }
            Outcome::Lost { lost, due } => {
                (out.sent, out.lost) = (*due, *lost);
                out.missing = Some(format!("{} of {} samples got lost", grouped(*lost), grouped(*due)));
            }
            Outcome::Missing(reason) => out.missing = Some(reason.clone()),
            Outcome::LeftOut(reason) => (out.missing, out.is_left_out) = (Some(reason.clone()), true),
        }
        out
    }

    /// The topic without transfers and with them; the second has the transfers.
    pub(super) fn beside((sent, received): (&Sent, &Received), round: u32, file: &RunFile) -> [BenchmarkRun; 2] {
        let of = |topic: HurriedTopic| {
            let mut out = BenchmarkRun::empty(round, file);
            let latency = Summary::of(&topic.latencies_us());
            (out.sent, out.lost) = (topic.due, topic.lost());
            (out.p50_us, out.p90_us) = latency.map_or((None, None), |latency| (latency.p50, latency.p90));
            out.detail.topic = topic;
            out
        };
        let [quiet, mut loaded] = sorted::sort(sent, received).map(of);
        loaded.detail.times_ms = sorted::transfers_ms(sent);
        loaded.detail.loads_s = sorted::loads_s(sent);
        loaded.detail.bits_per_second = sorted::bits_per_second(sent);
        loaded.time_ms = median(&loaded.detail.times_ms);
        [quiet, loaded]
    }
}

impl BenchmarkCellRuns {
    /// The bursts or transfers of all runs, in milliseconds.
    pub fn times_ms(&self) -> Vec<f64> {
        self.runs.iter().flat_map(|run| run.detail.times_ms.iter().copied()).collect()
    }

    /// The same summarized.
    pub fn times(&self) -> Option<Summary> {
        Summary::of(&self.times_ms())
    }

    /// Every latency of the topic in a hurry in microseconds.
    pub fn latencies_us(&self) -> Vec<f64> {
        self.runs.iter().flat_map(|run| run.detail.topic.latencies_us()).collect()
    }

    /// Payload bits a second of the mean burst or transfer.
    pub fn bits_per_second(&self) -> Option<f64> {
        let (samples, bytes) = self.cell.deed.load();
        Some((samples * bytes) as f64 * 8.0 / (self.times()?.mean / 1e3))
    }

    /// Whether it can be told and is the same contender's other deed.
    pub(super) fn is_beside(&self, other: &BenchmarkCellRuns) -> bool {
        self.cell.work == other.cell.work && self.cell.contender == other.cell.contender
    }
}

impl BenchmarkResult {
    /// The only layout there is so far.
    pub const SCHEMA: &'static str = "thalweg.benchmark-results/1";

    /// Puts the runs together.
    pub(super) fn of(
        plan: &Benchmark,
        (started_unix_s, environment): (u64, Environment),
        failures: &[CellFailure],
        cells: Vec<BenchmarkCellRuns>,
    ) -> BenchmarkResult {
        // The cells of a run share what is known of it.
        let is_first = |place: &usize| *place == 0 || !cells[place - 1].is_beside(&cells[*place]);
        let leaders: Vec<&BenchmarkCellRuns> = (0..cells.len()).filter(is_first).map(|place| &cells[place]).collect();
        let runs = || leaders.iter().flat_map(|cell| &cell.runs);
        let conditions = circumstances::of_all(runs().map(|run| &run.conditions));
        let remarks = distinct(runs().flat_map(|run| &run.detail.remarks.0).cloned());
        let version = |cell: &BenchmarkCellRuns, (_, version): &(Vec<String>, String)| {
            (!version.is_empty()).then(|| (cell.cell.contender.clone(), version.clone()))
        };
        let versions =
            leaders.iter().flat_map(|cell| cell.runs.iter().map(move |run| version(cell, &run.detail.remarks)));
        let versions = distinct(versions.flatten());
        BenchmarkResult {
            schema: BenchmarkResult::SCHEMA.to_owned(),
            started_unix_s,
            plan: plan.clone(),
            environment,
            conditions,
            differences: within(&cells),
            ratios: ratios::judged(&plan.works, &cells),
            failures: failures.to_vec(),
            versions,
            remarks,
            cells,
        }
    }

    /// The cells of a piece of work, in their order.
    pub fn of_work(&self, work: &str) -> Vec<&BenchmarkCellRuns> {
        self.cells.iter().filter(|cell| cell.cell.work == work).collect()
    }

    /// The runs that a piece of work had: the cells of one contender share theirs.
    pub(super) fn runs_of_work(&self, work: &str) -> Vec<&BenchmarkRun> {
        let cells = self.of_work(work);
        let is_first = |place: &usize| *place == 0 || !cells[place - 1].is_beside(cells[*place]);
        (0..cells.len()).filter(is_first).flat_map(|place| &cells[place].runs).collect()
    }

    /// What the runs tell of the times of these baselines and subjects, which are one family with what the page compares anyway.
    pub(crate) fn judge_times(&self, pairs: &[TimedPair<'_>]) -> Vec<Judged> {
        let compared = self.cells.iter().filter_map(|cell| Some((BenchmarkCell::baseline(&self.cells, cell)?, cell)));
        let is_same =
            |one: &TimedPair<'_>, other: &TimedPair<'_>| std::ptr::eq(one.0, other.0) && std::ptr::eq(one.1, other.1);
        let further = compared.filter(|pair| !pairs.iter().any(|own| is_same(own, pair)));
        let family: Vec<TimedPair<'_>> = pairs.iter().copied().chain(further).collect();
        judge(&family, &BenchmarkRun::TIME).into_iter().take(pairs.len()).collect()
    }

    /// Whether a contender is Thalweg.
    pub fn is_ours(&self, contender: &str) -> bool {
        self.plan.contender(contender).is_some_and(|one| one.peer.is_none())
    }

    /// Failures of Thalweg's own.
    pub(crate) fn failures_of_ours(&self) -> Vec<String> {
        // A plan that was read from a file of results has no cells.
        let cells = cells_of(&self.plan);
        let is_ours =
            |failure: &&CellFailure| cells.get(failure.cell as usize).is_none_or(|cell| self.is_ours(&cell.contender));
        self.failures.iter().filter(is_ours).map(ToString::to_string).collect()
    }

    /// Samples that were sent in all bursts and transfers, in streams, in round trips and on the topic in a hurry.
    pub fn samples_moved(&self) -> u64 {
        let of = |cell: &BenchmarkCellRuns| {
            let sent = || cell.runs.iter().map(|run| run.sent).sum::<u64>();
            let single = if matches!(cell.cell.deed, Deed::Burst { .. }) { 0 } else { sent() };
            cell.cell.deed.load().0 * cell.times_ms().len() as u64 + single
        };
        self.cells.iter().map(of).sum()
    }

    /// Their payload bytes, those of the topic in a hurry left out.
    pub fn bytes_moved(&self) -> u64 {
        let of = |cell: &BenchmarkCellRuns| {
            let (samples, bytes) = cell.cell.deed.load();
            let sent = || cell.runs.iter().map(|run| run.sent).sum::<u64>();
            let is_single = matches!(cell.cell.deed, Deed::Stream { .. } | Deed::RoundTrip { .. });
            samples * bytes * (cell.times_ms().len() as u64 + if is_single { sent() } else { 0 })
        };
        self.cells.iter().map(of).sum()
    }
}
