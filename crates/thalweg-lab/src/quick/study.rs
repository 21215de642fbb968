//! The course of the scenario: start the processes, hear them, put their answers together.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use thalweg_lab_station::BurstRequest;

use super::duel::{Course, DuelOrder, Dueled, Received, Sent};
use super::result::{Background, BurstCell, Foreground, LatencyPoint, QuickResult};
use crate::bursts::{BurstPair, BurstParty};
use crate::error::LabError;
use crate::figures::{millis, size};
use crate::host::{ConditionsWatch, Environment, HostFiles};
use crate::process::{Launcher, Stop};
use crate::progress::Progress;
use crate::station::{Sending, Setup, StationNetwork};
use crate::statistics::Summary;

/// The extent of the measurement. The default takes about a minute.
#[derive(Clone, Copy, Debug)]
pub struct QuickPlan {
    /// Runs of each kind of burst, at most; below 20 makes no sense beside the paper.
    pub runs: u64,
    /// Longest time for the runs of one kind.
    pub time_max: Duration,
    /// Length of one of the eight phases of the background experiment.
    pub phase: Duration,
}

impl Default for QuickPlan {
    fn default() -> QuickPlan {
        // 8 × 2.6 s at 100 Hz leave more than 1,000 samples for each condition, which a 99th percentile needs.
        QuickPlan { runs: 100, time_max: Duration::from_secs(5), phase: Duration::from_millis(2_600) }
    }
}

/// Runs the scenario with processes started by `launcher`; progress goes to standard error.
///
/// # Errors
/// A process cannot be started, dies, hangs or reports a fault; `stop` was requested. Then there is no result.
pub fn run(plan: &QuickPlan, launcher: &Launcher, stop: &Stop) -> Result<QuickResult, LabError> {
    let started = Instant::now();
    let started_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let environment = Environment::read();
    let watch = ConditionsWatch::start(HostFiles::here());
    let mut run = Run { launcher, stop, remarks: Vec::new() };
    let kind =
        |samples, sample_bytes| BurstKind { samples, sample_bytes, runs_max: plan.runs, time_max: plan.time_max };
    let small = [kind(3_000, 256), kind(3_000, 1 << 10), kind(10_000, 256), kind(10_000, 1 << 10)];
    let high_frequency = run.bursts("high-frequency", &small)?;
    let large = run.bursts("large", &[kind(1, 5 << 20), kind(5, 1 << 20), kind(20, 256 << 10)])?;
    let background = run.background(plan)?;
    Ok(QuickResult {
        schema: QuickResult::SCHEMA.to_owned(),
        scenario: "quick".to_owned(),
        started_unix_s,
        seconds: started.elapsed().as_secs_f64(),
        environment,
        conditions: watch.finish(),
        high_frequency,
        large,
        background,
        remarks: run.remarks,
    })
}

/// One kind of burst.
#[derive(Clone, Copy, Debug)]
struct BurstKind {
    /// Samples a run.
    samples: u32,
    /// Payload bytes of each.
    sample_bytes: u32,
    /// Runs, unless the time is up before.
    runs_max: u64,
    /// After so long no further run is started, once there are [`RUNS_MIN`].
    time_max: Duration,
}

struct Run<'a> {
    launcher: &'a Launcher,
    stop: &'a Stop,
    remarks: Vec<String>,
}

impl Run<'_> {
    /// A receiving and a sending process for a series of bursts.
    fn bursts(&mut self, title: &str, kinds: &[BurstKind]) -> Result<Vec<BurstCell>, LabError> {
        let party = BurstParty::Ours(Box::new(Setup::within(StationNetwork::apart(0))));
        let mut pair = BurstPair::start(&party, (self.launcher, &format!("{title} data")), None)?;
        let mut progress = Progress::new(title);
        let cells = kinds.iter().map(|kind| self.cell(&mut pair, kind, &mut progress)).collect();
        progress.finish();
        self.keep(pair.remarks());
        cells
    }

    /// The runs of one kind.
    fn cell(&self, pair: &mut BurstPair, kind: &BurstKind, progress: &mut Progress) -> Result<BurstCell, LabError> {
        let BurstKind { samples, sample_bytes, .. } = *kind;
        let name = format!("{} × {}", crate::figures::grouped(u64::from(samples)), size(u64::from(sample_bytes)));
        let request = |runs| BurstRequest { n: samples, size: sample_bytes, runs, ..BurstRequest::default() };
        pair.runs(&request(WARM_UP_RUNS), self.stop)?;
        let (started, mut runs_ms) = (Instant::now(), Vec::new());
        while (runs_ms.len() as u64) < kind.runs_max && (runs_ms.len() < RUNS_MIN || started.elapsed() < kind.time_max)
        {
            runs_ms.extend(pair.runs(&request(1), self.stop)?);
            progress.show(&name, runs_ms.len() as u64, kind.runs_max);
        }
        let summary = Summary::of(&runs_ms).ok_or_else(|| LabError::Here(format!("no run of {name} was measured")))?;
        Ok(BurstCell { samples: u64::from(samples), sample_bytes: u64::from(sample_bytes), runs_ms, summary })
    }

    /// A receiving and a sending process for the topic in a hurry and the transfers beside it.
    fn background(&mut self, plan: &QuickPlan) -> Result<Background, LabError> {
        let order = DuelOrder {
            network: StationNetwork::apart(0),
            period: PERIOD,
            course: Course::Phases { phase: plan.phase, loaded: LOADED.to_vec() },
            bulk: Sending::default(),
            flow_controller: None,
            bulk_history: BULK_HISTORY,
            patience: TRANSFER_PATIENCE,
            transfer_samples: 3_200,
            sample_bytes: 32 << 10,
        };
        let mut progress = Progress::new("background");
        let show = |phase: u64| {
            let next = LOADED.get(phase as usize + 1).copied().unwrap_or(false);
            let name = if next { "100 Hz with transfer" } else { "100 Hz alone" };
            progress.show(name, phase + 1, LOADED.len() as u64);
        };
        let launchers = (self.launcher, self.launcher);
        let Dueled { sent, received, remarks } = order.run(launchers, plan.phase + RUN_PATIENCE, self.stop, show)?;
        progress.finish();
        self.keep(remarks);
        join(&order, &sent, &received)
    }

    /// Keeps remarks, each line once.
    fn keep(&mut self, remarks: Vec<String>) {
        for remark in remarks {
            if !self.remarks.contains(&remark) {
                self.remarks.push(remark);
            }
        }
    }
}

/// Joins what both processes saw.
fn join(order: &DuelOrder, sent: &Sent, received: &Received) -> Result<Background, LabError> {
    let sorted = Sorted::of(order, sent, received);
    let transfers_ms = transfers_ms(sent);
    let transfers = Summary::of(&transfers_ms).ok_or_else(|| LabError::Here("no transfer was completed".to_owned()))?;
    let foreground = |loaded| {
        sorted.foreground(loaded).ok_or_else(|| LabError::Here("no sample of the small topic arrived".to_owned()))
    };
    Ok(Background {
        transfer_samples: order.transfer_samples,
        sample_bytes: order.sample_bytes,
        transfers_ms,
        transfers,
        rate_hz: 1.0 / order.period.as_secs_f64(),
        quiet: foreground(false)?,
        loaded: foreground(true)?,
        loads: sorted.loads_s(),
        points: sorted.points,
    })
}

/// Milliseconds of each transfer.
pub(crate) fn transfers_ms(sent: &Sent) -> Vec<f64> {
    sent.transfers_ns.iter().map(|(from, to)| millis(Duration::from_nanos(to - from))).collect()
}

/// The samples of the topic in a hurry, sorted by whether a transfer was running when they were due.
pub(crate) struct Sorted {
    pub(crate) points: Vec<LatencyPoint>,
    /// Whether a transfer was running when each sample that was sent was due.
    due: Vec<bool>,
    origin_ns: u64,
    loads: Vec<(u64, u64)>,
}

impl Sorted {
    pub(crate) fn of(order: &DuelOrder, sent: &Sent, received: &Received) -> Sorted {
        let loads = merge(&sent.transfers_ns);
        let is_loaded = |due: u64| loads.iter().any(|(from, to)| (*from..*to).contains(&due));
        let point = |(_, due, arrived): &(u64, u64, u64)| LatencyPoint {
            at_s: due.saturating_sub(sent.origin_ns) as f64 / 1e9,
            latency_us: arrived.saturating_sub(*due) as f64 / 1e3,
            loaded: is_loaded(*due),
        };
        let period = order.period.as_nanos() as u64;
        Sorted {
            points: received.samples_ns.iter().map(point).collect(),
            due: (0..sent.hurried).map(|number| is_loaded(sent.origin_ns + number * period)).collect(),
            origin_ns: sent.origin_ns,
            loads,
        }
    }

    /// Latencies under one condition, in microseconds.
    pub(crate) fn latencies(&self, loaded: bool) -> Vec<f64> {
        self.points.iter().filter(|point| point.loaded == loaded).map(|point| point.latency_us).collect()
    }

    /// The topic under one condition; `None` when nothing of it arrived.
    pub(crate) fn foreground(&self, loaded: bool) -> Option<Foreground> {
        let due = self.due.iter().filter(|was| **was == loaded).count() as u64;
        let latency = Summary::of(&self.latencies(loaded))?;
        Some(Foreground { lost: due.saturating_sub(latency.count), latency })
    }

    /// When transfers ran, in seconds since the start.
    fn loads_s(&self) -> Vec<(f64, f64)> {
        let seconds = |nanos: u64| nanos.saturating_sub(self.origin_ns) as f64 / 1e9;
        self.loads.iter().map(|(from, to)| (seconds(*from), seconds(*to))).collect()
    }
}

/// Joins transfers that follow each other within a few milliseconds to one stretch of load.
fn merge(transfers: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut out: Vec<(u64, u64)> = Vec::new();
    for (from, to) in transfers {
        match out.last_mut() {
            Some(last) if from.saturating_sub(last.1) < GAP_NANOS => last.1 = *to,
            _ => out.push((*from, *to)),
        }
    }
    out
}

/// Runs before the measured ones of each kind.
const WARM_UP_RUNS: u32 = 3;
/// As many runs as the paper makes, however long they take.
const RUNS_MIN: usize = 20;
/// 8 MiB of 32 KiB samples may wait for acknowledgement: enough for the link, little enough that nothing else has to wait long.
const BULK_HISTORY: u32 = 256;
const TRANSFER_PATIENCE: Duration = Duration::from_secs(20);
/// ABBA, twice: a slow drift of the machine touches both conditions alike.
const LOADED: [bool; 8] = [false, true, true, false, false, true, true, false];
const PERIOD: Duration = Duration::from_millis(10);
/// Longer than any wait inside the processes, so that their own reason is heard first.
const RUN_PATIENCE: Duration = Duration::from_secs(30);
const GAP_NANOS: u64 = 20_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn order() -> DuelOrder {
        DuelOrder {
            network: StationNetwork::default(),
            period: Duration::from_millis(10),
            course: Course::Phases { phase: Duration::from_millis(100), loaded: vec![false, true] },
            bulk: Sending::default(),
            flow_controller: None,
            bulk_history: BULK_HISTORY,
            patience: TRANSFER_PATIENCE,
            transfer_samples: 10,
            sample_bytes: 1_000,
        }
    }

    #[test]
    fn samples_are_sorted_by_the_transfers_that_really_ran() {
        let origin_ns = 1_000 * MS;
        let transfers_ns = vec![(1_100 * MS, 1_150 * MS), (1_151 * MS, 1_198 * MS)];
        let sent = Sent { origin_ns, hurried: 20, transfers_ns, transfers_bytes: Vec::new() };
        let arrive = |number: u64| {
            (
                number,
                origin_ns + number * 10 * MS,
                origin_ns + number * 10 * MS + if number < 10 { 50_000 } else { 200_000 },
            )
        };
        // Sample 3 is lost in the quiet half.
        let received = Received { samples_ns: (0..20).filter(|number| *number != 3).map(arrive).collect() };
        let background = join(&order(), &sent, &received).expect("a result");
        assert_eq!((background.quiet.latency.count, background.quiet.lost), (9, 1));
        assert_eq!((background.loaded.latency.count, background.loaded.lost), (10, 0));
        assert_eq!((background.quiet.latency.mean, background.loaded.latency.mean), (50.0, 200.0));
        assert_eq!(background.loads, [(0.1, 0.198)]);
        assert_eq!(background.transfers.count, 2);
    }
}
