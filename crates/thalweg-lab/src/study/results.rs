//! The results of a study.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thalweg_lab_station::LinkCosts;

use super::cells::{CellFailure, CellResult};
use super::clocks;
use super::compare::{self, Difference};
use super::directory::{RESULTS, RunName, load_json, load_manifest};
use super::error::StudyError;
use super::experiment::StudyRecord;
use super::manifest::State;
use crate::error::LabError;
use crate::host::{Environment, HostEnvironment, Layers};
use crate::scenario::{Expectation, Quantity, Scenario, flows_in};
use crate::statistics::{Buckets, Interval, endless, median_interval};
use crate::trial::{ClosedLoopFigures, Fairness, LatencyFigures, LatencyKind, Totals, TrialResult, load_histograms};

/// The results of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyResult {
    /// Layout of this file: `thalweg.results/1`.
    pub schema: String,
    /// Name of the scenario.
    pub name: String,
    /// Decided the order of the runs.
    pub seed: u64,
    /// Digest of what the result depends on.
    pub fingerprint: String,
    /// First start in seconds since 1970 UTC.
    pub started_unix_s: u64,
    /// The machine.
    pub environment: Environment,
    /// The machines of agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostEnvironment>,
    /// What one-way latencies between machines may be wrong by in the worst run, in microseconds; missing where all endpoints share a clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_bound_us: Option<f64>,
    /// Each cell, in the order of the scenario.
    pub cells: Vec<CellResult>,
    /// Each cell that is compared, against its baseline.
    pub differences: Vec<Difference>,
    /// The scenario's expectations, and whether they hold.
    pub judgements: Vec<Judgement>,
    /// Cells that have no result because they failed.
    #[serde(default)]
    pub failures: Vec<CellFailure>,
    /// What the scenario says of itself, such as what a preset left out.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl StudyResult {
    /// The only layout there is so far.
    pub const SCHEMA: &'static str = "thalweg.results/1";

    /// Whether everything holds that the scenario expects.
    pub fn holds(&self) -> bool {
        self.judgements.iter().all(|judgement| judgement.holds)
    }

    /// The place of each cell in the scenario, which those that failed have as well.
    pub(super) fn places(&self) -> impl Iterator<Item = usize> {
        let has_failed = |place: &usize| self.failures.iter().any(|failure| failure.cell as usize == *place);
        (0..self.cells.len() + self.failures.len()).filter(move |place| !has_failed(place))
    }

    /// Whether publishers write as fast as they may, in all cells or in none.
    pub(crate) fn is_closed_loop(&self) -> bool {
        self.cells.iter().any(|cell| cell.cell.is_closed_loop())
    }

    /// What the latencies of its histograms are.
    pub(super) fn latency_kind(&self) -> LatencyKind {
        if self.is_closed_loop() { LatencyKind::RoundTrip } else { LatencyKind::Response }
    }

    /// Each run that was made, once: its first cell's record where it has several flows.
    pub(crate) fn runs_made(&self) -> impl Iterator<Item = &RunSummary> {
        let flows = flows_in(self.cells.iter().map(|cell| &cell.cell));
        self.cells.iter().step_by(flows).flat_map(|cell| &cell.runs)
    }

    /// Runs that count although the machine was not quiet.
    pub fn contaminated(&self) -> usize {
        self.runs_made().filter(|run| run.contaminated).count()
    }
}

/// A run in short.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Its round, from 0.
    pub round: u32,
    /// Attempts it took.
    pub attempts: u32,
    /// Whether the machine was not quiet even in the last one.
    pub contaminated: bool,
    /// Fates of the samples.
    pub totals: Totals,
    /// Seconds at the beginning of the measurement whose samples do not count.
    pub unsettled_s: f64,
    /// How evenly the pairs were served.
    pub fairness: Fairness,
    /// Counts of all publishers together.
    pub publishers: PublisherTotals,
    /// Median response latency of each pair in microseconds, where it has enough samples; infinite where most of them never arrived.
    #[serde(with = "endless::list")]
    pub pair_p50_us: Vec<f64>,
    /// CPU time of all its processes by the length of the measurement: 1 is one whole CPU.
    pub cpu: f64,
    /// The most memory that its processes used, all together, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<f64>,
    /// Samples that arrived in a second of the measurement, all subscribers together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_per_s: Option<f64>,
    /// What a closed loop reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_loop: Option<ClosedLoopFigures>,
    /// What the ways of the first publisher cost by the middleware's own account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_costs: Option<LinkCosts>,
    /// Bytes that left the hosts and bytes that reached them, headers included; missing where all endpoints share one host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<WireBytes>,
    /// What a latency between the two machines whose clocks are known worst may be wrong by, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_bound_us: Option<f64>,
    /// Datagrams, fragments and packets that the layers below lost, by counter; those of sockets by process, and samples that found the
    /// history of a reader full by subscriber.
    pub losses: Vec<(String, u64)>,
}

impl RunSummary {
    /// Its response latencies, or the round trips of a closed loop.
    pub(super) fn latency(&self) -> &LatencyFigures {
        self.closed_loop.as_ref().map_or(&self.totals.response, |closed| &closed.round_trip)
    }
}

/// What the publishers of a run did with the samples that were due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublisherTotals {
    /// Samples whose write returned within their time after they were due.
    pub in_time: u64,
    /// Samples whose write returned later.
    pub late: u64,
    /// Samples that were never written.
    pub not_sent: u64,
}

/// Bytes on all devices of all hosts but loopback, whoever sent them, from just before the first measured sample to the end of the drain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WireBytes {
    /// Those that left a host.
    pub sent: u64,
    /// Those that reached one: more where groups are copied to every host.
    pub received: u64,
    /// Those that left a host by the seconds in which the samples were written that they carry; missing where the run does not tell them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_per_s: Option<f64>,
    /// The same by the samples received of those written in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_per_sample: Option<f64>,
}

/// A quantile of the response latency, or of the round trips of a closed loop, over all runs of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuantileInterval {
    /// 0.5 is the median.
    pub quantile: f64,
    /// In microseconds: the median over the runs.
    pub us: Interval,
}

/// An expectation in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The cell in words.
    pub cell: String,
    /// The expected bound.
    pub expectation: String,
    /// The measured value, infinite where too many samples never arrived; missing where too few tell.
    #[serde(default, with = "endless::option")]
    pub value: Option<f64>,
    /// Whether the expectation holds; one that cannot be judged does not.
    pub holds: bool,
}

/// Puts the runs of a scenario together.
pub(super) fn conclude(scenario: &Scenario, record: &StudyRecord<'_, Scenario>) -> Result<StudyResult, LabError> {
    let mut cells = record.whole_cells(scenario)?;
    cells.iter_mut().for_each(|cell| cell.intervals = intervals(&cell.runs));
    let manifest = record.manifest;
    let judgements = cells
        .iter()
        .flat_map(|cell| scenario.expectations_of(&cell.cell).map(|expectation| judge(cell, expectation)))
        .collect();
    Ok(StudyResult {
        schema: StudyResult::SCHEMA.to_owned(),
        name: manifest.name.clone(),
        seed: manifest.seed,
        fingerprint: manifest.fingerprint.id.clone(),
        started_unix_s: manifest.started_unix_s,
        environment: manifest.environment.clone(),
        hosts: manifest.hosts.clone(),
        clock_bound_us: clocks::bound_us(&cells),
        differences: compare::within(&cells),
        cells,
        judgements,
        failures: record.failures.to_vec(),
        notes: scenario.notes.clone(),
    })
}

/// The median over the runs of each quantile that every run carries.
fn intervals(runs: &[RunSummary]) -> Vec<QuantileInterval> {
    type Figure = (f64, fn(&LatencyFigures) -> Option<f64>);
    let figures: [Figure; 4] = [
        (0.5, |response| response.p50_us),
        (0.9, |response| response.p90_us),
        (0.99, |response| response.p99_us),
        (0.999, |response| response.p999_us),
    ];
    let interval = |(quantile, of): Figure| {
        let all: Option<Vec<f64>> = runs.iter().map(|run| of(run.latency())).collect();
        Some(QuantileInterval { quantile, us: median_interval(&all?)? })
    };
    figures.into_iter().filter_map(interval).collect()
}

/// The latencies of a cell: for each of its runs those of each second, all pairs together.
pub(super) fn load_seconds(
    runs: &[(RunName, PathBuf)],
    kind: LatencyKind,
) -> Result<Vec<BTreeMap<u64, Buckets>>, LabError> {
    runs.iter().map(|(_, folder)| load_histograms(folder, kind)).collect()
}

/// A whole run in short.
pub(super) fn summary(name: RunName, result: &TrialResult) -> RunSummary {
    let cpu_ns: u64 = result.processes.iter().map(|process| process.usage.cpu_ns).sum();
    let memory_kib: u64 = result.processes.iter().map(|process| process.usage.resident_max_kib).sum();
    RunSummary {
        round: name.round,
        attempts: name.attempt,
        contaminated: result.conditions.contaminated,
        totals: result.totals.clone(),
        unsettled_s: result.unsettled_s,
        fairness: result.fairness.clone(),
        publishers: PublisherTotals {
            in_time: result.publishers.iter().map(|publisher| publisher.in_time).sum(),
            late: result.publishers.iter().map(|publisher| publisher.late).sum(),
            not_sent: result.publishers.iter().map(|publisher| publisher.not_sent).sum(),
        },
        pair_p50_us: result.pairs.iter().filter_map(|pair| pair.totals.response.p50_us).collect(),
        cpu: cpu_ns as f64 / 1e9 / result.seconds,
        memory_mib: (memory_kib > 0).then_some(memory_kib as f64 / 1024.0),
        received_per_s: received_per_s(result),
        closed_loop: result.closed_loop.clone(),
        link_costs: result.publishers.first().and_then(|publisher| publisher.report.link_costs),
        wire: WireBytes::of(result),
        clock_bound_us: result.clocks.as_ref().map(|clocks| clocks.bound_us),
        losses: result
            .layers
            .losses()
            .map(|(name, count)| (name.to_owned(), count))
            .chain(socket_losses(result))
            .chain(reader_losses(result))
            .collect(),
    }
}

/// Samples that arrived in a second of the measured time; what came later, until the end of the drain, is no throughput.
fn received_per_s(result: &TrialResult) -> Option<f64> {
    let of_schedule = || Some(result.arrivals? as f64 / (result.seconds - result.unsettled_s).max(1e-9));
    result.closed_loop.as_ref().map(ClosedLoopFigures::received_per_s).or_else(of_schedule)
}

/// Samples received of those that were written in a second, whenever they came; at least one in all.
fn samples_per_s(result: &TrialResult) -> f64 {
    let seconds = (result.seconds - result.unsettled_s).max(1e-9);
    let of_schedule = || result.totals.received() as f64 / seconds;
    result.closed_loop.as_ref().map_or_else(of_schedule, ClosedLoopFigures::received_per_s).max(seconds.recip())
}

/// Drops at the sockets of processes.
fn socket_losses(result: &TrialResult) -> impl Iterator<Item = (String, u64)> + '_ {
    let drops = result.processes.iter().map(|process| (format!("socket.{}", process.name), process.usage.socket_drops));
    drops.filter(|(_, count)| *count > 0)
}

/// Samples that found the history of a reader full.
fn reader_losses(result: &TrialResult) -> impl Iterator<Item = (String, u64)> + '_ {
    let rejected = result.subscribers.iter().map(|one| (format!("reader.subscriber {}", one.index), one.rejected));
    rejected.filter(|(_, count)| *count > 0)
}

impl WireBytes {
    fn of(result: &TrialResult) -> Option<WireBytes> {
        let counted = |name: &str, counter: &str| {
            name.strip_prefix("device.")
                .is_some_and(|name| name.strip_suffix(counter).is_some_and(|name| name != "lo."))
        };
        let sum = |counter: &str| {
            let all = result.hosts.iter().flat_map(Layers::iter);
            all.filter(|(name, _)| counted(name, counter)).map(|(_, value)| value).sum()
        };
        (!result.hosts.is_empty()).then(|| {
            let (sent, received) = (sum("tx_bytes"), sum("rx_bytes"));
            let sent_per_s = result.counted_s.filter(|seconds| *seconds > 0.0).map(|seconds| sent as f64 / seconds);
            let sent_per_sample = sent_per_s.map(|bytes| bytes / samples_per_s(result));
            WireBytes { sent, received, sent_per_s, sent_per_sample }
        })
    }
}

fn judge(cell: &CellResult, expectation: &Expectation) -> Judgement {
    let value = measured(cell, expectation.quantity);
    Judgement {
        cell: cell.name.clone(),
        expectation: expectation.to_string(),
        value,
        holds: value.is_some_and(|value| expectation.comparison.holds(value, expectation.bound)),
    }
}

/// The worst run for counts and shares, the median over the runs for latencies; `None` where a run has too few samples to tell.
fn measured(cell: &CellResult, quantity: Quantity) -> Option<f64> {
    let worst = |of: fn(&Totals) -> u64| cell.runs.iter().map(|run| of(&run.totals)).max().map(|count| count as f64);
    let least = |of: fn(&RunSummary) -> f64| cell.runs.iter().map(of).reduce(f64::min);
    let of_runs = |of: fn(&RunSummary) -> Option<f64>| cell.median_of(of);
    match quantity {
        Quantity::InTimePct => least(|run| 100.0 * run.totals.in_time_share()),
        Quantity::Lost => worst(|totals| totals.lost),
        Quantity::Late => worst(|totals| totals.late),
        Quantity::NotSent => worst(|totals| totals.not_sent),
        Quantity::Duplicates => worst(|totals| totals.duplicates),
        Quantity::Reordered => worst(|totals| totals.reordered),
        Quantity::P50Us => of_runs(|run| run.totals.response.p50_us),
        Quantity::P99Us => of_runs(|run| run.totals.response.p99_us),
        Quantity::P999Us => of_runs(|run| run.totals.response.p999_us),
        Quantity::RoundTripP50Us => of_runs(|run| run.closed_loop.as_ref()?.round_trip.p50_us),
        Quantity::RoundTripP99Us => of_runs(|run| run.closed_loop.as_ref()?.round_trip.p99_us),
        Quantity::ReceivedPerS => of_runs(|run| run.received_per_s),
        Quantity::Jain => least(|run| run.fairness.jain_in_time),
    }
}

/// The results of a complete directory.
pub(crate) fn load<T: DeserializeOwned>(path: &Path) -> Result<T, LabError> {
    let state = load_manifest(path)?.state;
    if state != State::Complete {
        return Err(StudyError::Incomplete { directory: path.to_owned(), state }.into());
    }
    load_json(&path.join(RESULTS))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    #[test]
    fn an_expectation_that_lost_samples_break_is_no_less_broken_in_its_file() {
        let [cell, expectation] = ["a cell", "p99_us <= 500"].map(str::to_owned);
        let broken = Judgement { cell, expectation, value: Some(f64::INFINITY), holds: false };
        let open = Judgement { value: None, ..broken.clone() };
        for judgement in [broken, open] {
            let text = serde_json::to_string(&judgement).expect("JSON");
            assert_eq!(serde_json::from_str::<Judgement>(&text).expect("JSON"), judgement, "{text}");
        }
    }

    #[test]
    fn bytes_on_the_links_are_divided_by_the_time_whose_samples_they_carry() {
        let cell = fixtures::scenario("payload_bytes = 1\nrate_hz = 100").cells.remove(0);
        let totals = Totals { due: 200, in_time: 200, ..Totals::default() };
        let mut told = json!({
            "schema": TrialResult::SCHEMA, "cell": cell, "started_unix_s": 0, "seconds": 2.0, "unsettled_s": 0.0, "totals": totals,
            "fairness": Fairness::default(), "publishers": [], "pairs": [], "subscribers": [], "processes": [], "layers": {},
            "hosts": [{ "device.eth0.tx_bytes": 210_000, "device.lo.tx_bytes": 7 }], "conditions": crate::trial::TrialConditions::default()
        });
        let wire = |told: &serde_json::Value| WireBytes::of(&serde_json::from_value(told.clone()).expect("a result"));
        let untold = wire(&told).expect("several hosts");
        assert_eq!((untold.sent, untold.sent_per_s, untold.sent_per_sample), (210_000, None, None));
        // The counters were read 0.1 s before the first sample.
        told["counted_s"] = json!(2.1);
        let wire = wire(&told).expect("several hosts");
        assert_eq!(
            (wire.sent_per_s.map(f64::round), wire.sent_per_sample.map(f64::round)),
            (Some(100_000.0), Some(1_000.0))
        );
    }
}
