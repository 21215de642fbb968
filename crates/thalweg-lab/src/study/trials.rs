//! Scenarios as an experiment: each run is a trial, whose publishers follow an open schedule.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::cells::CellResult;
use super::directory::{RunName, load_json, run_folder};
use super::experiment::{
    CoursePlan, Experiment, StudyCell, StudyCells, StudyOutcome, StudyRecord, StudyRun, StudyTurn, Told,
};
use super::fingerprint::{checksum, programs_of};
use super::judging::{Measure, Side};
use super::live;
use super::report;
use super::results::{self, RunSummary, StudyResult};
use super::{course, tables};
use crate::error::LabError;
use crate::host::HostEnvironment;
use crate::peers::PeerProgram;
use crate::process::{Launcher, Stop};
use crate::scenario::{Build, Cell, Precision, Scenario, Schedule};
use crate::study::StudyError;
use crate::trial::{self, Ground, RESULT, RunContext, TrialResult, evaluate, flow_folder};

/// Makes all runs of the scenario with this text, with `seed` in place of its own where one is given, into the new directory `out`.
pub fn run(
    (scenario, text): (Scenario, String),
    seed: Option<u64>,
    out: &Path,
    launcher: &Launcher,
    stop: &Stop,
) -> Result<StudyResult, LabError> {
    let seed = seed.unwrap_or(scenario.seed);
    course::begin((scenario.with_seed(seed), &text), out, launcher, stop)
}

pub(crate) const P50: Measure =
    Measure { name: "response p50, µs", of: |run| run.totals.response.p50_us, more_is: Side::Worse, margin: 1.03 };
pub(crate) const P99: Measure =
    Measure { name: "response p99, µs", of: |run| run.totals.response.p99_us, more_is: Side::Worse, margin: 1.05 };
pub(crate) const ROUND_TRIP_P50: Measure = Measure {
    name: "round trip p50, µs",
    of: |run| run.closed_loop.as_ref()?.round_trip.p50_us,
    more_is: Side::Worse,
    margin: 1.03,
};
pub(crate) const ROUND_TRIP_P99: Measure = Measure {
    name: "round trip p99, µs",
    of: |run| run.closed_loop.as_ref()?.round_trip.p99_us,
    more_is: Side::Worse,
    margin: 1.05,
};
/// What was not lost: a thousandth of the samples matters.
pub(crate) const DELIVERED: Measure = Measure {
    name: "delivered, share of due",
    of: |run| (run.totals.due > 0).then(|| run.totals.received() as f64 / run.totals.due as f64),
    more_is: Side::Better,
    margin: 1.001,
};
pub(crate) const THROUGHPUT: Measure =
    Measure { name: "received a second", of: |run| run.received_per_s, more_is: Side::Better, margin: 1.03 };
pub(crate) const CPU: Measure = Measure { name: "CPU", of: |run| Some(run.cpu), more_is: Side::Worse, margin: 1.03 };
pub(crate) const MEMORY: Measure =
    Measure { name: "memory, MiB", of: |run| run.memory_mib, more_is: Side::Worse, margin: 1.05 };

impl StudyRun for RunSummary {
    const MEASURES: &'static [Measure] =
        &[DELIVERED, P50, P99, ROUND_TRIP_P50, ROUND_TRIP_P99, THROUGHPUT, CPU, MEMORY];
    const DONE: Measure = DELIVERED;

    fn round(&self) -> u32 {
        self.round
    }

    fn is_disturbed(&self) -> bool {
        self.contaminated
    }
}

impl StudyCell for Cell {
    /// The same cell of another build where there are two, where several middleware take part the first one with the same data, else the
    /// first cell.
    fn baseline<'a, R>(
        cells: &'a [CellResult<Cell, R>],
        cell: &CellResult<Cell, R>,
    ) -> Option<&'a CellResult<Cell, R>> {
        if cells.iter().any(|other| other.cell.build == Build::Other) {
            let twin = Cell { build: Build::Other, ..cell.cell.clone() };
            return cells.iter().find(|other| other.cell == twin).filter(|_| cell.cell.build == Build::This);
        }
        let is_alone = cells.iter().all(|other| other.cell.middleware == cell.cell.middleware);
        let is_same = |other: &&CellResult<Cell, R>| {
            let likened = Cell {
                middleware: cell.cell.middleware,
                destination: cell.cell.destination,
                sending: cell.cell.sending.clone(),
                ..other.cell.clone()
            };
            is_alone && other.cell.flow == cell.cell.flow || likened == cell.cell
        };
        cells.iter().find(is_same).filter(|baseline| !std::ptr::eq(*baseline, cell))
    }
}

impl StudyOutcome for StudyResult {
    fn to_text(&self) -> String {
        tables::to_text(self)
    }

    fn shortcoming(&self) -> Option<String> {
        let open = self.judgements.iter().filter(|judgement| judgement.value.is_none()).count();
        let unmet = self.judgements.iter().filter(|judgement| !judgement.holds).count() - open;
        if unmet + open > 0 {
            let all = self.judgements.len();
            return Some(format!(
                "of {all} expectations of the scenario {unmet} do not hold and {open} are not judged"
            ));
        }
        let (failed, all) = (self.failures.len(), self.failures.len() + self.cells.len());
        (failed > 0).then(|| format!("{failed} of {all} cells have no result because they failed"))
    }
}

impl Experiment for Scenario {
    type Cell = Cell;
    type Run = RunSummary;
    type Site = Ground;
    type Result = StudyResult;

    fn parse(file: &str, text: &str) -> Result<Scenario, LabError> {
        Ok(Scenario::parse(file, text)?)
    }

    fn with_seed(self, seed: u64) -> Scenario {
        Scenario { seed, ..self }
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn cells(&self) -> &[Cell] {
        &self.cells
    }

    fn course(&self) -> CoursePlan {
        let runs = &self.schedule.runs;
        CoursePlan {
            rounds: (runs.min, runs.max),
            design: self.schedule.design,
            attempts_max: self.gate.attempts,
            budget: None,
        }
    }

    fn duration_of(&self, _cell: usize) -> Duration {
        self.duration_of_run()
    }

    fn precision(&self) -> Vec<(Measure, f64)> {
        bounds(&self.schedule.runs.precision, self.cells.iter().any(Cell::is_closed_loop))
    }

    fn prepare(&self, launcher: &Launcher, stop: &Stop) -> Result<Ground, LabError> {
        Ground::prepare(self, launcher, stop)
    }

    fn dependencies(&self, launcher: &Launcher, site: &Ground) -> Result<Vec<(String, String)>, LabError> {
        let mut parts = site.fingerprint();
        let peers: BTreeSet<PeerProgram> = self.cells.iter().filter_map(|cell| cell.middleware.peer()).collect();
        if site.is_here() {
            parts.extend(programs_of(peers.iter().copied(), launcher)?);
        }
        for peer in peers {
            parts.extend(site.programs_of(peer)?);
        }
        if let Some(other) = &self.against {
            if !other.is_file() {
                return Err(StudyError::NoOtherBuild { program: other.clone() }.into());
            }
            parts.push(("program of the other build".to_owned(), checksum(other)));
        }
        Ok(parts)
    }

    fn programs(&self, launcher: &Launcher, site: &Ground) -> Vec<(String, PathBuf)> {
        let peers: BTreeSet<PeerProgram> = self.cells.iter().filter_map(|cell| cell.middleware.peer()).collect();
        let of = |peer: PeerProgram| Some((format!("program of {peer}"), launcher.program_of(peer).ok()?));
        let other = self.against.iter().map(|program| ("program of the other build".to_owned(), program.clone()));
        peers.into_iter().filter(|_| site.is_here()).filter_map(of).chain(other).collect()
    }

    fn machines(&self, site: &Ground) -> Vec<HostEnvironment> {
        site.environments()
    }

    fn make(&self, turn: &StudyTurn<'_, Scenario>, folder: &Path) -> Result<(), LabError> {
        let context = RunContext {
            scenario: self,
            launcher: turn.launcher,
            stop: turn.stop,
            ground: turn.site,
            chance: turn.chance,
        };
        trial::run(context, &self.cells[self.run_of(turn.cell)], folder)
    }

    /// After a peer failed; after Thalweg failed where its processes say why they cannot go on and another cell of it is left.
    fn goes_on_after(&self, cell: usize, error: &LabError, has_failed: &dyn Fn(usize) -> bool) -> bool {
        let is_ours = |cell: usize| self.cells[cell].middleware.peer().is_none();
        let left = (0..self.cells.len()).filter(|cell| is_ours(*cell) && !has_failed(*cell)).count();
        !is_ours(cell) || matches!(error, LabError::Failed { .. }) && left > 1
    }

    fn check_site(&self, site: &Ground) -> Result<(), LabError> {
        site.check_alive()
    }

    fn leader(&self, cell: usize) -> usize {
        self.leader_of(cell)
    }

    fn load(&self, folder: &Path, name: RunName) -> Result<Vec<(usize, RunSummary)>, LabError> {
        let load = |index: usize| {
            let file = flow_folder(folder, &self.cells[index]).join(RESULT);
            Ok((index, results::summary(name, &load_json(&file)?)))
        };
        self.run_of(name.cell as usize).map(load).collect()
    }

    fn check(&self, folder: &Path, cell: usize) -> Result<(), String> {
        self.cells[self.run_of(cell)]
            .iter()
            .try_for_each(|cell| check(&self.schedule, cell, &flow_folder(folder, cell)))
    }

    fn conclude(&self, record: &StudyRecord<'_, Scenario>) -> Result<StudyResult, LabError> {
        results::conclude(self, record)
    }

    fn cells_of(result: &StudyResult) -> &[StudyCells<Scenario>] {
        &result.cells
    }

    fn files(&self, directory: &Path, result: &StudyResult) -> Result<Vec<(&'static str, String)>, LabError> {
        let report = report::to_html(directory, result)?;
        Ok(vec![("results.csv", tables::to_csv(result)), (report::REPORT, report)])
    }

    fn overview(cells: &[StudyCells<Scenario>]) -> Result<Told, LabError> {
        live::overview(cells)
    }

    fn so_far(&self, cell: usize, folder: &Path) -> Told {
        live::so_far(self, &self.cells[self.run_of(cell)], folder)
    }
}

/// Computes the result of a cell in `folder` again from its raw data.
fn check(schedule: &Schedule, cell: &Cell, folder: &Path) -> Result<(), String> {
    let result: TrialResult = load_json(&folder.join(RESULT)).map_err(|error| error.to_string())?;
    if result.cell != *cell {
        return Err(format!("it measured {} where the scenario has {cell}", result.cell));
    }
    let reports: Vec<_> = result.publishers.iter().map(|publisher| publisher.report.clone()).collect();
    let joined = evaluate(folder, cell, schedule, &reports).map_err(|error| error.to_string())?;
    // What was told went through a file, whose numbers may differ in the last bit: so does what is computed.
    let computed = TrialResult {
        unsettled_s: joined.unsettled_s,
        totals: joined.totals,
        fairness: joined.fairness,
        closed_loop: joined.closed_loop,
        arrivals: result.arrivals.and(joined.arrivals),
        publishers: joined.publishers,
        pairs: joined.pairs,
        ..result.clone()
    };
    let text = serde_json::to_string(&computed).map_err(|error| error.to_string())?;
    match serde_json::from_str::<TrialResult>(&text) {
        Ok(computed) if computed == result => Ok(()),
        _ => Err("its result does not agree with its raw data".to_owned()),
    }
}

/// The runs of a cell among those that count, and the folder of its records in each.
pub(super) fn folders(
    directory: &Path,
    scenario: &Scenario,
    counted: &[RunName],
    cell: usize,
) -> Vec<(RunName, PathBuf)> {
    let own = counted.iter().filter(|name| name.cell as usize == scenario.leader_of(cell));
    own.map(|name| (*name, flow_folder(&run_folder(directory, *name), &scenario.cells[cell]))).collect()
}

/// The quantities whose precision ends the runs, with the bound of each.
pub(super) fn bounds(precision: &Precision, is_closed_loop: bool) -> Vec<(Measure, f64)> {
    let [median, tail] = if is_closed_loop { [ROUND_TRIP_P50, ROUND_TRIP_P99] } else { [P50, P99] };
    [(median, precision.p50), (tail, precision.p99)]
        .into_iter()
        .filter_map(|(measure, bound)| Some((measure, bound?)))
        .collect()
}
