//! A benchmark as an experiment that a study repeats.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use super::cells::{BenchmarkCell, Deed};
use super::contender::ContenderPlan;
use super::contest::{Contest, Outcome, Outcomes, RunFile};
use super::plan::{Benchmark, Place, WorkPlan};
use super::result::{BenchmarkCellRuns, BenchmarkResult, BenchmarkRun};
use crate::error::LabError;
use crate::figures::rounded;
use crate::network::Hosts;
use crate::process::{Launcher, Stop};
use crate::scenario::Design;
use crate::study::{
    CoursePlan, Experiment, Measure, RunName, Side, StudyError, StudyOutcome, StudyRecord, StudyRun, StudyTurn, Told,
    checksum, load_json, programs_of, write_text,
};
use crate::table::Table;

impl Benchmark {
    /// The work and the contender of a cell.
    fn parts(&self, cell: &BenchmarkCell) -> Result<(&WorkPlan, &ContenderPlan), LabError> {
        let both = self.work(&cell.work).zip(self.contender(&cell.contender));
        both.ok_or_else(|| LabError::Here(format!("the benchmark has no {cell}")))
    }

    /// The cells that a contender measures in one run, behind the first of them.
    fn run_of(&self, leader: usize) -> impl Iterator<Item = usize> {
        let first = &self.cells[leader];
        let is_same = |cell: &BenchmarkCell| cell.work == first.work && cell.contender == first.contender;
        leader..leader + self.cells[leader..].iter().take_while(|cell| is_same(cell)).count()
    }

    /// What a run says of its cells.
    fn runs_of(&self, file: &RunFile, name: RunName) -> Result<Vec<(usize, BenchmarkRun)>, LabError> {
        let leader = name.cell as usize;
        let runs: Vec<BenchmarkRun> = match &file.outcomes {
            Outcomes::Each(each) => each.iter().map(|outcome| BenchmarkRun::of(outcome, name.round, file)).collect(),
            Outcomes::Beside(sent, received) => BenchmarkRun::beside((sent, received), name.round, file).to_vec(),
        };
        Ok(self.run_of(leader).zip(runs).collect())
    }
}

impl BenchmarkRun {
    /// The median burst or transfer.
    pub(crate) const TIME: Measure<BenchmarkRun> =
        Measure { name: "burst or transfer, ms", of: |run| run.time_ms, more_is: Side::Worse, margin: 1.03 };
}

impl StudyRun for BenchmarkRun {
    const MEASURES: &'static [Measure<BenchmarkRun>] = &[
        Self::DONE,
        Self::TIME,
        Measure { name: "samples a second", of: |run| run.per_s, more_is: Side::Better, margin: 1.03 },
        Measure { name: "round trip p50, µs", of: |run| run.round_trip_us, more_is: Side::Worse, margin: 1.03 },
        Measure { name: "writer's CPU a sample, µs", of: |run| run.writer_us, more_is: Side::Worse, margin: 1.03 },
        Measure { name: "reader's CPU a sample, µs", of: |run| run.reader_us, more_is: Side::Worse, margin: 1.03 },
        Measure { name: "latency p50, µs", of: |run| run.p50_us, more_is: Side::Worse, margin: 1.03 },
        Measure { name: "latency p90, µs", of: |run| run.p90_us, more_is: Side::Worse, margin: 1.05 },
    ];
    const DONE: Measure<BenchmarkRun> = Measure {
        name: "arrived, share of sent",
        of: |run| match run.sent {
            // What failed delivered nothing.
            0 => (run.missing.is_some() && !run.is_left_out).then_some(0.0),
            sent => Some(1.0 - run.lost as f64 / sent as f64),
        },
        more_is: Side::Better,
        margin: 1.001,
    };

    fn round(&self) -> u32 {
        self.round
    }

    fn is_disturbed(&self) -> bool {
        self.conditions.is_disturbed()
    }
}

impl StudyOutcome for BenchmarkResult {
    fn to_text(&self) -> String {
        super::to_text(self)
    }

    fn shortcoming(&self) -> Option<String> {
        let ours = self.failures_of_ours();
        if !ours.is_empty() {
            return Some(ours.join("; "));
        }
        let missed = self.ratios.iter().filter(|ratio| ratio.holds == Some(false)).count();
        (missed > 0).then(|| format!("{missed} of {} expected ratios do not hold", self.ratios.len()))
    }
}

impl Experiment for Benchmark {
    type Cell = BenchmarkCell;
    type Run = BenchmarkRun;
    type Site = Option<Hosts>;
    type Result = BenchmarkResult;

    fn parse(file: &str, text: &str) -> Result<Benchmark, LabError> {
        Ok(Benchmark::parse(file, text)?)
    }

    fn with_seed(self, seed: u64) -> Benchmark {
        Benchmark { seed, ..self }
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn cells(&self) -> &[BenchmarkCell] {
        &self.cells
    }

    fn course(&self) -> CoursePlan {
        let rounds = (self.runs, self.runs);
        CoursePlan { rounds, design: Design::Abba, attempts_max: self.attempts, budget: None }
    }

    fn leader(&self, cell: usize) -> usize {
        let own = &self.cells[cell];
        let is_same = |one: &BenchmarkCell| one.work == own.work && one.contender == own.contender;
        self.cells.iter().position(is_same).unwrap_or(cell)
    }

    fn duration_of(&self, cell: usize) -> Duration {
        let link = self.link.unwrap_or_default();
        self.parts(&self.cells[cell]).map_or(Duration::ZERO, |(work, contender)| work.task.duration(contender, link))
    }

    fn prepare(&self, launcher: &Launcher, _stop: &Stop) -> Result<Option<Hosts>, LabError> {
        for peer in self.contenders.iter().filter_map(|one| one.peer) {
            launcher.program_of(peer)?;
        }
        let is_linked = self.works.iter().any(|work| work.place == Place::Link);
        is_linked.then(|| Hosts::new(2, &self.link.unwrap_or_default().to_plan())).transpose()
    }

    fn dependencies(&self, launcher: &Launcher, _site: &Option<Hosts>) -> Result<Vec<(String, String)>, LabError> {
        let mut out = programs_of(self.contenders.iter().filter_map(|one| one.peer), launcher)?;
        for one in &self.contenders {
            if let Some(program) = &one.program {
                if !program.is_file() {
                    return Err(StudyError::NoOtherBuild { program: program.clone() }.into());
                }
                out.push((format!("program of {}", one.name), checksum(program)));
            }
        }
        Ok(out)
    }

    fn programs(&self, launcher: &Launcher, _site: &Option<Hosts>) -> Vec<(String, PathBuf)> {
        let of = |one: &ContenderPlan| {
            let program = one.program.clone().or_else(|| launcher.program_of(one.peer?).ok())?;
            Some((format!("program of {}", one.name), program))
        };
        self.contenders.iter().filter_map(of).collect()
    }

    fn make(&self, turn: &StudyTurn<'_, Benchmark>, folder: &Path) -> Result<(), LabError> {
        let (work, contender) = self.parts(&self.cells[turn.cell])?;
        let omitted = |place: usize| given_up(turn.so_far.get(turn.cell + place)?, turn.round);
        let contest = Contest {
            plan: self,
            work,
            contender,
            hosts: turn.site.as_ref(),
            launcher: turn.launcher,
            stop: turn.stop,
            round: turn.round,
            chance: turn.chance,
            omitted: &omitted,
        };
        let text = serde_json::to_string(&contest.run()?).map_err(LabError::here)?;
        write_text(&folder.join(RUN_FILE), &text)
    }

    /// A contender without rivals is what the benchmark is about.
    fn goes_on_after(&self, cell: usize, _error: &LabError, has_failed: &dyn Fn(usize) -> bool) -> bool {
        let is_left = |other: usize| self.leader(other) != self.leader(cell) && !has_failed(other);
        self.cells[cell].has_rivals && (0..self.cells.len()).any(is_left)
    }

    fn load(&self, folder: &Path, name: RunName) -> Result<Vec<(usize, BenchmarkRun)>, LabError> {
        self.runs_of(&load_json(&folder.join(RUN_FILE))?, name)
    }

    fn check(&self, folder: &Path, cell: usize) -> Result<(), String> {
        let file: RunFile = load_json(&folder.join(RUN_FILE)).map_err(|error| error.to_string())?;
        let own = &self.cells[cell];
        if (&file.work, &file.contender) != (&own.work, &own.contender) {
            return Err(format!(
                "{} measured {} where {} was to measure {}",
                file.contender, file.work, own.contender, own.work
            ));
        }
        let deeds: Vec<Deed> = self.run_of(cell).map(|place| self.cells[place].deed).collect();
        match &file.outcomes {
            Outcomes::Beside(_, received) if own.deed.is_loaded().is_some() => received.check(),
            Outcomes::Each(each) if each.len() == deeds.len() => {
                match each.iter().zip(deeds).find(|(outcome, deed)| !outcome.is_of(*deed)) {
                    Some((_, deed)) => Err(format!("it does not hold the figures of {deed}")),
                    None => Ok(()),
                }
            }
            _ => Err(format!("it does not hold the figures of {own}")),
        }
    }

    fn conclude(&self, record: &StudyRecord<'_, Benchmark>) -> Result<BenchmarkResult, LabError> {
        let cells = record.whole_cells(self)?;
        let manifest = record.manifest;
        let origin = (manifest.started_unix_s, manifest.environment.clone());
        Ok(BenchmarkResult::of(self, origin, record.failures, cells))
    }

    fn cells_of(result: &BenchmarkResult) -> &[BenchmarkCellRuns] {
        &result.cells
    }

    fn files(&self, _directory: &Path, result: &BenchmarkResult) -> Result<Vec<(&'static str, String)>, LabError> {
        Ok(vec![("report.html", super::page(result).to_html())])
    }

    fn overview(cells: &[BenchmarkCellRuns]) -> Result<Told, LabError> {
        let figure = |cell: &BenchmarkCellRuns| {
            let known =
                BenchmarkRun::MEASURES[1..].iter().find_map(|measure| Some((measure.name, measure.median(cell)?)));
            known.map_or_else(|| ("–", "–".to_owned()), |(name, value)| (name, rounded(value)))
        };
        let mut table = Table::new("Whole runs: medians over the runs", &["cell", "runs", "figure", "median"]);
        table.rows.extend(cells.iter().map(|cell| {
            let (name, value) = figure(cell);
            vec![cell.name.clone(), cell.runs.len().to_string(), name.to_owned(), value]
        }));
        let told = |cell: &BenchmarkCellRuns| {
            let (name, value) = figure(cell);
            json!({ "cell": cell.name, "runs": cell.runs.len(), "figure": name, "median": value })
        };
        let json = json!({ "cells": cells.iter().map(told).collect::<Vec<_>>() });
        Ok(Told { text: table.to_text(), json })
    }
}

/// Why a cell is left out of the run of `round`: in an earlier round it failed on a quiet machine, or was so slow that one run tells enough.
/// An earlier attempt at the run of the same round gives no reason, because it does not count.
pub(super) fn given_up(cell: &BenchmarkCellRuns, round: u32) -> Option<String> {
    let tells = |run: &BenchmarkRun| run.missing.is_none() || run.is_left_out || !run.is_disturbed();
    let last = cell.runs.iter().rev().find(|run| run.round < round && tells(run))?;
    let is_slow = last.time_ms.is_some_and(|ms| ms > SLOW_MS);
    let slow =
        || is_slow.then(|| format!("one took more than {} s, so that the first run tells enough", SLOW_MS / 1e3));
    last.missing.clone().or_else(slow)
}

impl Outcome {
    fn is_of(&self, deed: Deed) -> bool {
        match (self, deed) {
            (Outcome::BurstsMs(all), Deed::Burst { .. }) => !all.is_empty() && all.iter().all(|ms| *ms > 0.0),
            (Outcome::Stream(figures), Deed::Stream { sample_bytes, .. }) => figures.size == sample_bytes,
            (Outcome::RoundTrips(figures), Deed::RoundTrip { sample_bytes }) => figures.size == sample_bytes,
            (Outcome::Lost { .. } | Outcome::Missing(_) | Outcome::LeftOut(_), _) => true,
            _ => false,
        }
    }
}

const RUN_FILE: &str = "result.json";
/// A contender that needs longer for one burst lies some hundred times behind.
const SLOW_MS: f64 = 2_000.0;
