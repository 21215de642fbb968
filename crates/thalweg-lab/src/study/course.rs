//! The runs of a scenario, one after the other.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::compare;
use super::directory::{Directory, RunName, load_failures, load_manifest, load_scenario};
use super::fingerprint::Fingerprint;
use super::ledger::Ledger;
use super::manifest::{Manifest, State};
use super::order::{self, cells_of_round};
use super::report;
use super::results::{self, CellFailure, StudyResult};
use super::tables;
use crate::error::LabError;
use crate::host::Environment;
use crate::process::{Launcher, Stop};
use crate::progress::{Pace, Progress};
use crate::scenario::Scenario;
use crate::trial::{self, Ground, RunContext};

/// Makes all runs of the scenario with this text, with `seed` in place of its own where one is given, into the new directory `out`.
///
/// A cell that fails is left out from then on and named in the result.
///
/// # Errors
/// The program of a peer is not there, the directory cannot be used, a process of Thalweg died or said nothing, no cell of Thalweg can be
/// measured, or `stop` was requested; then there is no result and the directory can be resumed.
pub fn run(
    (mut scenario, text): (Scenario, String),
    seed: Option<u64>,
    out: &Path,
    launcher: &Launcher,
    stop: &Stop,
) -> Result<StudyResult, LabError> {
    scenario.seed = seed.unwrap_or(scenario.seed);
    let ground = Ground::prepare(&scenario, launcher, stop)?;
    let environment = Environment::read();
    let now = unix_seconds();
    let manifest = Manifest {
        schema: Manifest::SCHEMA.to_owned(),
        state: State::Running,
        reason: None,
        name: scenario.name.clone(),
        seed: scenario.seed,
        runs_planned: u64::from(scenario.schedule.runs.min) * scenario.cells.len() as u64,
        runs_done: 0,
        started_unix_s: now,
        changed_unix_s: now,
        fingerprint: Fingerprint::of_study(&scenario, &text, &environment, (launcher, ground.as_ref()))?,
        environment,
        hosts: ground.as_ref().map(Ground::environments).unwrap_or_default(),
    };
    let directory = Directory::create(out, &text)?;
    Course::new(scenario, directory, manifest, launcher, stop, ground)?.run()
}

/// Makes the runs that are missing in a directory.
///
/// # Errors
/// As [`run`]; and when the directory is complete already, or what it was begun with is no more what is here.
pub fn resume(path: &Path, launcher: &Launcher, stop: &Stop) -> Result<StudyResult, LabError> {
    let directory = Directory::open(path)?;
    let manifest = load_manifest(path)?;
    if manifest.state == State::Complete {
        let shown = path.display();
        return Err(LabError::Here(format!("{shown} is complete; `thalweg lab verify {shown}` checks it")));
    }
    let (mut scenario, text) = load_scenario(path)?;
    scenario.seed = manifest.seed;
    let ground = Ground::prepare(&scenario, launcher, stop)?;
    let here = Fingerprint::of_study(&scenario, &text, &Environment::read(), (launcher, ground.as_ref()))?;
    if let Some((name, before, now)) = manifest.fingerprint.differences(&here).into_iter().next() {
        return Err(LabError::Here(format!(
            "{} was begun under other conditions: {name} was {before} and is {now}; runs of both would not belong together",
            path.display()
        )));
    }
    Course::new(scenario, directory, manifest, launcher, stop, ground)?.run()
}

struct Course<'a> {
    ground: Option<Ground>,
    scenario: Scenario,
    directory: Directory,
    manifest: Manifest,
    launcher: &'a Launcher,
    stop: &'a Stop,
    /// The runs so far, so that no question about them reads the directory.
    ledger: Ledger,
    /// Cells that failed, in this process or before.
    failures: Vec<CellFailure>,
}

impl<'a> Course<'a> {
    fn new(
        scenario: Scenario,
        directory: Directory,
        manifest: Manifest,
        launcher: &'a Launcher,
        stop: &'a Stop,
        ground: Option<Ground>,
    ) -> Result<Course<'a>, LabError> {
        let failures = load_failures(directory.path())?;
        let ledger = Ledger::read(directory.path(), &scenario);
        Ok(Course { ground, scenario, directory, manifest, launcher, stop, ledger, failures })
    }

    fn run(mut self) -> Result<StudyResult, LabError> {
        self.declare(State::Running, None)?;
        match self.runs().and_then(|()| self.conclude()) {
            Ok(result) => {
                self.declare(State::Complete, None)?;
                Ok(result)
            }
            Err(error) => {
                let state = if matches!(error, LabError::Interrupted) { State::Interrupted } else { State::Failed };
                // Where even this cannot be written, the directory says that it ended without a word.
                let _ = self.declare(state, Some(error.to_string()));
                Err(error)
            }
        }
    }

    fn declare(&mut self, state: State, reason: Option<String>) -> Result<(), LabError> {
        self.manifest.state = state;
        self.manifest.reason = reason;
        self.manifest.changed_unix_s = unix_seconds();
        self.manifest.runs_done = self.runs_done();
        self.directory.write_manifest(&self.manifest)?;
        self.directory.note(&state.to_string(), &self.manifest.reason)
    }

    /// Places of runs that have an attempt that counts.
    fn runs_done(&self) -> u64 {
        let is_done =
            |(round, cell): &(u32, u32)| !self.has_failed(*cell) && self.next_attempt(*round, *cell).is_none();
        self.ledger.places().filter(is_done).count() as u64
    }

    fn has_failed(&self, cell: u32) -> bool {
        self.failures.iter().any(|failure| failure.cell == cell)
    }

    /// The next attempt at a run, or `None` when one counts already or the cell is left out.
    fn next_attempt(&self, round: u32, cell: u32) -> Option<u32> {
        if self.has_failed(cell) { None } else { self.ledger.next_attempt(round, cell, self.scenario.gate.attempts) }
    }

    fn runs(&mut self) -> Result<(), LabError> {
        let total = self.manifest.runs_planned;
        let per_run = self.scenario.duration().as_secs_f64() / total.max(1) as f64;
        let mut pace = Pace::new(total.saturating_sub(self.manifest.runs_done) as f64 * per_run);
        let mut progress = Progress::new(&self.scenario.name);
        let runs = self.scenario.schedule.runs;
        for round in 0..runs.max {
            if round >= runs.min && round % order::BLOCK == 0 && self.is_known_well(round)? {
                break;
            }
            let cells = (self.scenario.cells.len() - self.failures.len()) as u64;
            self.manifest.runs_planned = self.manifest.runs_planned.max(u64::from(round + 1) * cells);
            for cell in cells_of_round(&self.scenario, round) {
                if self.next_attempt(round, cell as u32).is_none() {
                    continue;
                }
                progress.rest(pace.rest());
                progress.show(
                    &self.scenario.cells[cell].to_string(),
                    self.manifest.runs_done,
                    self.manifest.runs_planned,
                );
                let is_whole = self.run_cell(round, cell as u32)?;
                pace.advance(per_run);
                self.manifest.runs_done += u64::from(is_whole);
                self.directory.write_manifest(&self.manifest)?;
            }
        }
        progress.finish();
        Ok(())
    }

    /// Whether the rounds before `round` tell what the scenario wants to know.
    fn is_known_well(&mut self, round: u32) -> Result<bool, LabError> {
        Ok(compare::is_precise(&self.ledger.cells(round)?, &self.scenario.schedule.runs.precision))
    }

    /// Makes one run, again where the machine was not quiet, until one counts; `false` when it failed.
    fn run_cell(&mut self, round: u32, cell: u32) -> Result<bool, LabError> {
        while let Some(attempt) = self.next_attempt(round, cell) {
            let name = RunName { round, cell, attempt };
            let partial = self.directory.begin_run(name)?;
            let context = RunContext {
                scenario: &self.scenario,
                launcher: self.launcher,
                stop: self.stop,
                ground: self.ground.as_ref(),
                // The cells of a round meet the same chance.
                chance: self.scenario.seed ^ u64::from(round) << 32,
            };
            let outcome = trial::run(context, &self.scenario.cells[cell as usize], &partial);
            let place = json!({ "round": round, "cell": cell, "attempt": attempt });
            match outcome {
                Ok(result) => {
                    self.directory.end_run(name, &partial)?;
                    self.ledger.add(name, results::summarize(self.directory.path(), name));
                    let event = if result.conditions.contaminated { "run contaminated" } else { "run" };
                    self.directory.note(event, place)?;
                }
                Err(error) => {
                    self.directory.abandon_run(&partial);
                    // The error itself is what counts; a diary that cannot be written adds nothing.
                    let _ = self.directory.note("run failed", json!({ "run": place, "reason": error.to_string() }));
                    let measured = &self.scenario.cells[cell as usize];
                    let ends = measured.middleware.peer().is_none() && !self.goes_on_after(&error);
                    if ends || matches!(error, LabError::Interrupted) {
                        return Err(error);
                    }
                    // A lost agent is lost to all cells.
                    self.ground.as_ref().map_or(Ok(()), Ground::check_alive)?;
                    let failure = CellFailure { cell, name: measured.to_string(), round, reason: error.to_string() };
                    self.failures.push(failure);
                    self.manifest.runs_planned = self
                        .manifest
                        .runs_planned
                        .saturating_sub(u64::from(self.scenario.schedule.runs.min.saturating_sub(round)));
                    self.directory.write_failures(&self.failures)?;
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether the others are measured after a cell of ours has failed: its processes say why they cannot go on, and there are others.
    fn goes_on_after(&self, error: &LabError) -> bool {
        let is_ours = |cell: u32| self.scenario.cells[cell as usize].middleware.peer().is_none();
        let cells = 0..self.scenario.cells.len() as u32;
        let left = cells.filter(|cell| is_ours(*cell) && !self.has_failed(*cell)).count();
        matches!(error, LabError::Failed { .. }) && left > 1
    }

    /// Writes the results of all runs.
    fn conclude(&mut self) -> Result<StudyResult, LabError> {
        let cells = self.ledger.cells(self.scenario.schedule.runs.max)?;
        let result = results::put_together(self.directory.path(), &self.scenario, &self.manifest, (cells, &self.failures))?;
        let json = serde_json::to_string_pretty(&result).map_err(LabError::here)?;
        self.directory.write("results.csv", &tables::to_csv(&result))?;
        self.directory.write(report::REPORT, &report::to_html(self.directory.path(), &result, &report::Panel::ALL)?)?;
        self.directory.write(results::RESULTS, &json)?;
        Ok(result)
    }
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
