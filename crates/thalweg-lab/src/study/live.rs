//! The state of a run directory while its runs are being made, for `lab top`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::cells::CellResult;
use super::directory::{RunName, is_in_use, load_experiment, load_manifest, run_folder, run_in_the_making};
use super::experiment::{Experiment, Told};
use super::ledger::{Ledger, counted_runs};
use super::manifest::{Manifest, State};
use super::tables;
use crate::error::LabError;
use crate::figures::{duration, grouped, or_dash, percent};
use crate::scenario::{Cell, Scenario};
use crate::statistics::{Buckets, endless};
use crate::trial::{SoFar, flow_folder, in_time_ns, load_seconds_so_far};

/// Follows a run directory.
pub(crate) struct StudyWatcher<E: Experiment> {
    path: PathBuf,
    experiment: E,
    /// The whole runs that were read; reading takes time from what is measured, so each is read once.
    ledger: Ledger<E>,
    known: BTreeSet<RunName>,
}

/// The state of a run directory.
#[derive(Clone, Debug)]
pub struct RunSnapshot {
    /// Its manifest.
    manifest: Manifest,
    is_in_use: bool,
    /// Each cell, from the runs that are whole.
    overview: Told,
    current: Option<Current>,
}

/// The run that is being made.
#[derive(Clone, Debug)]
struct Current {
    name: RunName,
    cell: String,
    since: Duration,
    expected: Duration,
    /// Its figures so far.
    so_far: Told,
}

/// Fates of its samples so far.
#[derive(Clone, Debug, PartialEq)]
struct Samples {
    so_far: SoFar,
    /// Subscribers that each sample is meant for.
    subscribers: u64,
    in_time_ns: u64,
}

impl<E: Experiment> StudyWatcher<E> {
    /// Follows the directory in `path`.
    ///
    /// # Errors
    /// It is no run directory, or the text that says what it measures cannot be read.
    pub(crate) fn new(path: &Path) -> Result<StudyWatcher<E>, LabError> {
        let manifest = load_manifest(path)?;
        let (experiment, _) = load_experiment::<E>(path, manifest.seed)?;
        let ledger = Ledger::empty(&experiment);
        Ok(StudyWatcher { path: path.to_path_buf(), experiment, ledger, known: BTreeSet::new() })
    }

    /// How it stands now; runs that were read before are not read again.
    ///
    /// # Errors
    /// A file that was there is gone or damaged.
    pub(crate) fn look(&mut self) -> Result<RunSnapshot, LabError> {
        for name in counted_runs(&self.path) {
            if self.known.insert(name) {
                self.ledger.add(name, self.experiment.load(&run_folder(&self.path, name), name));
            }
        }
        Ok(RunSnapshot {
            manifest: load_manifest(&self.path)?,
            is_in_use: is_in_use(&self.path),
            overview: E::overview(self.ledger.whole()?)?,
            current: self.current(),
        })
    }

    fn current(&self) -> Option<Current> {
        let (name, folder) = run_in_the_making(&self.path)?;
        let begun = fs::metadata(&folder).and_then(|metadata| metadata.created()).ok()?;
        let cell = name.cell as usize;
        Some(Current {
            name,
            cell: self.experiment.cells().get(cell)?.to_string(),
            since: SystemTime::now().duration_since(begun).unwrap_or_default(),
            expected: self.experiment.duration_of(cell),
            so_far: self.experiment.so_far(cell, &folder),
        })
    }
}

/// The machine and the samples of a run that is being made in `folder`.
pub(super) fn so_far(scenario: &Scenario, cells: &[Cell], folder: &Path) -> Told {
    let mut text = String::new();
    let seconds = load_seconds_so_far(folder);
    if let Some(last) = seconds.last() {
        let share = |share: Option<f64>| or_dash(share, percent);
        text.push_str(&format!(
            "machine: foreign CPU {}, stolen {}, pressure {}; {} of {} seconds disturbed\n",
            share(last.foreign_cpu),
            share(last.steal),
            share(last.pressure),
            seconds.iter().filter(|second| second.bad).count(),
            seconds.len(),
        ));
    }
    let mut samples = Vec::new();
    for cell in cells {
        let own = Samples {
            so_far: SoFar::read(&flow_folder(folder, cell)),
            subscribers: cell.pairs().count() as u64 / u64::from(cell.publishers.max(1)),
            in_time_ns: in_time_ns(cell, &scenario.schedule),
        };
        let flow = cell.flow.as_ref().map(|flow| flow.name.clone());
        let name = flow.as_ref().map(|flow| format!("{flow}, ")).unwrap_or_default();
        own.to_text().unwrap_or_default().lines().for_each(|line| text.push_str(&format!("{name}{line}\n")));
        samples.extend(own.fates().map(|fates| json!({ "flow": flow, "fates": fates })));
    }
    Told { text, json: json!({ "seconds": seconds, "samples": samples }) }
}

impl RunSnapshot {
    /// Whether nothing will change any more.
    pub fn is_over(&self) -> bool {
        self.manifest.state != State::Running || !self.is_in_use
    }

    /// One line, for a log.
    pub fn to_line(&self) -> String {
        let current = self.current.as_ref().filter(|_| !self.is_over());
        let current = current.map_or_else(String::new, |current| format!("; {}", current.to_line()));
        let Manifest { name, runs_done, runs_planned, .. } = &self.manifest;
        format!("{name}: {}, {runs_done} of {runs_planned} runs{current}", self.state())
    }

    /// A screen of lines.
    pub fn to_text(&self) -> String {
        let Manifest { name, runs_done, runs_planned, .. } = &self.manifest;
        let mut out = format!("{name}  {}\n", self.state());
        out.push_str(&format!("{}  {runs_done} of {runs_planned} runs\n\n", bar(*runs_done, *runs_planned, 40)));
        if let Some(current) = self.current.as_ref().filter(|_| !self.is_over()) {
            out.push_str(&current.to_text());
        }
        out.push_str(&self.overview.text);
        out
    }

    fn state(&self) -> String {
        self.manifest.state_now(self.is_in_use)
    }
}

impl Serialize for RunSnapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Manifest { name, runs_done, runs_planned, .. } = &self.manifest;
        let current = self.current.as_ref().filter(|_| !self.is_over());
        let told = json!({
            "name": name,
            "state": self.state(),
            "runs_done": runs_done,
            "runs_planned": runs_planned,
            "current": current.map(Current::to_json),
            "cells": self.overview.json,
        });
        told.serialize(serializer)
    }
}

/// Fates of the present run's samples so far.
#[derive(Serialize)]
struct SampleFates {
    due: u64,
    in_time: u64,
    late: u64,
    lost_or_on_the_way: u64,
    not_sent: u64,
}

/// The whole runs of a cell.
#[derive(Serialize)]
struct CellSoFar {
    cell: String,
    runs: usize,
    due: u64,
    in_time: u64,
    late: u64,
    lost: u64,
    not_sent: u64,
    /// Medians over the runs; null where one of them has none.
    #[serde(with = "endless::option")]
    p50_us: Option<f64>,
    #[serde(with = "endless::option")]
    p99_us: Option<f64>,
    cpu: Option<f64>,
    /// Runs on a disturbed machine.
    marked: usize,
}

/// Each cell, from the runs that are whole.
pub(super) fn overview(cells: &[CellResult]) -> Result<Told, LabError> {
    let all: Vec<CellSoFar> = cells.iter().map(CellSoFar::of).collect();
    Ok(Told { text: tables::whole_runs(cells).to_text(), json: serde_json::to_value(&all).map_err(LabError::here)? })
}

impl CellSoFar {
    fn of(cell: &CellResult) -> CellSoFar {
        CellSoFar {
            cell: cell.name.clone(),
            runs: cell.runs.len(),
            due: cell.sum(|totals| totals.due),
            in_time: cell.sum(|totals| totals.in_time),
            late: cell.sum(|totals| totals.late),
            lost: cell.sum(|totals| totals.lost),
            not_sent: cell.sum(|totals| totals.not_sent),
            p50_us: cell.median_of(|run| run.latency().p50_us),
            p99_us: cell.median_of(|run| run.latency().p99_us),
            cpu: cell.median_of(|run| Some(run.cpu)),
            marked: cell.runs.iter().filter(|run| run.contaminated).count(),
        }
    }
}

impl Current {
    /// Round and attempt count from 1.
    fn to_json(&self) -> Value {
        json!({
            "cell": self.cell,
            "round": self.name.round + 1,
            "attempt": self.name.attempt,
            "since_s": self.since.as_secs_f64(),
            "expected_s": self.expected.as_secs_f64(),
            "so_far": self.so_far.json,
        })
    }

    fn to_line(&self) -> String {
        let attempt = if self.name.attempt > 1 { format!(", attempt {}", self.name.attempt) } else { String::new() };
        format!(
            "now {} in round {}{attempt}, {} of about {}",
            self.cell,
            self.name.round + 1,
            whole(self.since),
            whole(self.expected)
        )
    }

    fn to_text(&self) -> String {
        let (since, expected) = (self.since.as_millis() as u64, self.expected.as_millis() as u64);
        let mut out = format!("{}\n{}\n", self.to_line(), bar(since.min(expected), expected, 40));
        out.push_str(&self.so_far.text);
        out.push('\n');
        out
    }
}

impl Samples {
    /// Each sample's, as far as it is known; `None` before the first second is over.
    fn fates(&self) -> Option<SampleFates> {
        let SoFar { written, not_sent, arrived } = &self.so_far;
        let due = (written + not_sent) * self.subscribers;
        let all: u64 = arrived.iter().map(|(_, count)| count).sum();
        let in_time: u64 = arrived.iter().filter(|(ns, _)| *ns <= self.in_time_ns).map(|(_, count)| count).sum();
        (due > 0).then(|| SampleFates {
            due,
            in_time,
            late: all - in_time,
            lost_or_on_the_way: (written * self.subscribers).saturating_sub(all),
            not_sent: not_sent * self.subscribers,
        })
    }

    /// A line of fates and one of latencies; `None` before the first second is over.
    fn to_text(&self) -> Option<String> {
        let SampleFates { due, in_time, late, lost_or_on_the_way, not_sent } = self.fates()?;
        let mut latencies = Buckets::default();
        self.so_far.arrived.iter().for_each(|(edge, count)| latencies.add_bucket(*edge, *count));
        let quantile = |(name, q): (&str, f64)| {
            let latency = or_dash(latencies.quantile(q), |us| duration(Duration::from_secs_f64(us / 1e6)));
            format!("{name} {latency}")
        };
        Some(format!(
            "so far: {} of {} in time, {} late, {} lost or on the way, {} not sent\nresponse latency: {}\n",
            percent(in_time as f64 / due as f64),
            grouped(due),
            grouped(late),
            grouped(lost_or_on_the_way),
            grouped(not_sent),
            QUANTILES.map(quantile).join(", ")
        ))
    }
}

/// Seconds without fractions.
fn whole(time: Duration) -> String {
    duration(Duration::from_secs(time.as_secs()))
}

/// Those of a running measurement that are worth a look.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

fn bar(done: u64, total: u64, width: usize) -> String {
    let filled = (done as usize * width / total.max(1) as usize).min(width);
    format!("{}{}", "█".repeat(filled), "░".repeat(width - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(so_far: SoFar, expect: Option<&str>) {
        let samples = Samples { so_far, subscribers: 2, in_time_ns: 10_000_000 };
        assert_eq!(samples.to_text().as_deref(), expect);
    }

    #[test]
    fn fates_and_latencies_of_the_run_that_goes_on() {
        check(SoFar::default(), None);
        let arrived = vec![(200_000, 150), (9_000_000, 30), (20_000_000, 10)];
        check(
            SoFar { written: 100, not_sent: 5, arrived },
            Some(
                "so far: 85.7 % of 210 in time, 10 late, 10 lost or on the way, 10 not sent\n\
                 response latency: p50 200 µs, p90 9.00 ms, p99 –, p99.9 –\n",
            ),
        );
        check(
            SoFar { written: 0, not_sent: 5, arrived: Vec::new() },
            Some(
                "so far: 0 % of 10 in time, 0 late, 0 lost or on the way, 10 not sent\n\
                 response latency: p50 –, p90 –, p99 –, p99.9 –\n",
            ),
        );
    }
}
