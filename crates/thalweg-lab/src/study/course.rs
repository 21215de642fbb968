//! The runs of an experiment, one after the other.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::cells::CellFailure;
use super::compare;
use super::directory::{Directory, RESULTS, RunName, load_experiment, load_failures, load_manifest, run_folder};
use super::error::StudyError;
use super::experiment::{Experiment, StudyRecord, StudyRun, StudyTurn};
use super::fingerprint::Fingerprint;
use super::ledger::Ledger;
use super::manifest::{Manifest, State};
use super::order::{self, cells_of_round};
use super::programs::Programs;
use super::results::load;
use crate::error::LabError;
use crate::host::Environment;
use crate::process::{Launcher, Stop};
use crate::progress::{Pace, Progress};

/// Makes all runs of `experiment`, which has this text, into the new directory `out`.
///
/// A cell that fails is left out from then on and named in the result.
///
/// # Errors
/// What the runs need is not there, a program is another build after a run, the directory cannot be used or is full, the experiment does
/// not go on after a failure, or `stop` was requested; then there is no result and the directory can be resumed.
pub(crate) fn begin<E: Experiment>(
    (experiment, text): (E, &str),
    out: &Path,
    launcher: &Launcher,
    stop: &Stop,
) -> Result<E::Result, LabError> {
    let site = experiment.prepare(launcher, stop)?;
    let programs = Programs::started_by(&experiment, launcher, &site);
    let environment = Environment::read();
    let now = unix_seconds();
    let manifest = Manifest {
        schema: Manifest::SCHEMA.to_owned(),
        state: State::Running,
        reason: None,
        name: experiment.name().to_owned(),
        seed: experiment.seed(),
        runs_planned: runs_in_all(&experiment, &[]),
        runs_done: 0,
        started_unix_s: now,
        changed_unix_s: now,
        fingerprint: Fingerprint::of_study(text, &environment, experiment.dependencies(launcher, &site)?),
        environment,
        hosts: experiment.machines(&site),
    };
    let directory = Directory::create(out, text)?;
    Course::new((experiment, site, programs), directory, manifest, launcher, stop)?.run()
}

/// Makes the runs that are missing in a directory, those for which its time did not suffice among them, in as much time again.
///
/// # Errors
/// As [`begin`]; and when no run is missing, or what it was begun with is no more what is here.
pub(crate) fn resume<E: Experiment>(path: &Path, launcher: &Launcher, stop: &Stop) -> Result<E::Result, LabError> {
    let directory = Directory::open(path)?;
    let manifest = load_manifest(path)?;
    let (experiment, text) = load_experiment::<E>(path, manifest.seed)?;
    if manifest.state == State::Complete && manifest.runs_done >= runs_in_all(&experiment, &load_failures(path)?) {
        return Err(StudyError::Complete { directory: path.to_owned() }.into());
    }
    let (site, programs) = same_site(&experiment, &text, (path, &manifest), launcher, stop)?;
    Course::new((experiment, site, programs), directory, manifest, launcher, stop)?.run()
}

/// The results of a directory that was begun with `text`, whatever its seed, after the runs that are missing.
///
/// # Errors
/// As [`resume`]; and when the directory was begun with another text. One that is complete has to agree as well.
pub(crate) fn take_up<E: Experiment>(
    path: &Path,
    text: &str,
    launcher: &Launcher,
    stop: &Stop,
) -> Result<E::Result, LabError> {
    let directory = Directory::open(path)?;
    let manifest = load_manifest(path)?;
    let (experiment, begun_with) = load_experiment::<E>(path, manifest.seed)?;
    if let Some((before, now)) = other_line(&begun_with, text) {
        return Err(other_conditions(path, ("a line of its plan".to_owned(), before, now)));
    }
    let (site, programs) = same_site(&experiment, &begun_with, (path, &manifest), launcher, stop)?;
    match manifest.state {
        State::Complete => load(path),
        _ => Course::new((experiment, site, programs), directory, manifest, launcher, stop)?.run(),
    }
}

/// What further runs of a directory need, which has to be what the earlier ones had.
fn same_site<E: Experiment>(
    experiment: &E,
    text: &str,
    (path, manifest): (&Path, &Manifest),
    launcher: &Launcher,
    stop: &Stop,
) -> Result<(E::Site, Programs), LabError> {
    let site = experiment.prepare(launcher, stop)?;
    let programs = Programs::started_by(experiment, launcher, &site);
    let here = Fingerprint::of_study(text, &Environment::read(), experiment.dependencies(launcher, &site)?);
    match manifest.fingerprint.differences(&here).into_iter().next() {
        Some(difference) => Err(other_conditions(path, difference)),
        None => Ok((site, programs)),
    }
}

fn other_conditions(path: &Path, (name, before, now): (String, String, String)) -> LabError {
    StudyError::OtherConditions { directory: path.to_owned(), name, before, now }.into()
}

/// The first line in which two texts differ, the seed's aside.
fn other_line(before: &str, now: &str) -> Option<(String, String)> {
    let lines = |text: &str| -> Vec<String> {
        let is_meant = |line: &&str| !line.is_empty() && !line.starts_with("seed =");
        text.lines().map(str::trim).filter(is_meant).map(str::to_owned).collect()
    };
    let (before, now) = (lines(before), lines(now));
    let at = |lines: &[String], place: usize| lines.get(place).map_or("missing".to_owned(), |line| format!("`{line}`"));
    let place = (0..before.len().max(now.len())).find(|place| before.get(*place) != now.get(*place))?;
    Some((at(&before, place), at(&now, place)))
}

/// The results of the runs in a directory, computed from them again.
pub(super) fn collect<E: Experiment>(path: &Path, experiment: &E, manifest: &Manifest) -> Result<E::Result, LabError> {
    let failures = load_failures(path)?;
    let mut ledger = Ledger::read(path, experiment);
    let cells = ledger.whole()?;
    experiment.conclude(&StudyRecord { directory: path, manifest, cells, failures: &failures })
}

/// Runs of all cells but those that failed, in the rounds that there are in any case.
fn runs_in_all<E: Experiment>(experiment: &E, failures: &[CellFailure]) -> u64 {
    let is_in = |cell: &usize| failures.iter().all(|failure| failure.cell as usize != *cell);
    leaders(experiment).filter(is_in).map(|cell| runs_of(experiment, cell)).sum()
}

/// The cells that have runs of their own.
fn leaders<E: Experiment>(experiment: &E) -> impl Iterator<Item = usize> {
    (0..experiment.cells().len()).filter(|cell| experiment.leader(*cell) == *cell)
}

/// Runs of a cell in the rounds that there are in any case.
fn runs_of<E: Experiment>(experiment: &E, cell: usize) -> u64 {
    (0..experiment.course().rounds.0).filter(|round| experiment.takes_part(cell, *round)).count() as u64
}

struct Course<'a, E: Experiment> {
    experiment: E,
    site: E::Site,
    programs: Programs,
    directory: Directory,
    manifest: Manifest,
    launcher: &'a Launcher,
    stop: &'a Stop,
    /// The runs so far, so that no question about them reads the directory.
    ledger: Ledger<E>,
    /// Cells that failed, in this process or before.
    failures: Vec<CellFailure>,
    started: Instant,
}

/// What became of an attempt at a run.
#[derive(Clone, Copy, PartialEq)]
enum Attempt {
    /// It is the one that counts.
    Counts,
    /// There is another one to make.
    Disturbed,
    /// Its cell is left out.
    Failed,
}

impl<'a, E: Experiment> Course<'a, E> {
    fn new(
        (experiment, site, programs): (E, E::Site, Programs),
        directory: Directory,
        mut manifest: Manifest,
        launcher: &'a Launcher,
        stop: &'a Stop,
    ) -> Result<Course<'a, E>, LabError> {
        let failures = load_failures(directory.path())?;
        let ledger = Ledger::read(directory.path(), &experiment);
        manifest.runs_planned = manifest.runs_planned.max(runs_in_all(&experiment, &failures));
        let started = Instant::now();
        Ok(Course { experiment, site, programs, directory, manifest, launcher, stop, ledger, failures, started })
    }

    fn run(mut self) -> Result<E::Result, LabError> {
        self.declare(State::Running, None)?;
        match self.make_all().and_then(|()| self.conclude()) {
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
            |(round, cell): &(u32, u32)| !self.has_failed(*cell as usize) && self.next_attempt(*round, *cell).is_none();
        self.ledger.places().filter(is_done).count() as u64
    }

    fn has_failed(&self, cell: usize) -> bool {
        self.failures.iter().any(|failure| failure.cell as usize == cell)
    }

    /// The next attempt at a run, or `None` when one counts already or the cell is left out.
    fn next_attempt(&self, round: u32, cell: u32) -> Option<u32> {
        let is_out = self.has_failed(cell as usize) || !self.experiment.takes_part(cell as usize, round);
        if is_out { None } else { self.ledger.next_attempt(round, cell, self.experiment.course().attempts_max) }
    }

    fn make_all(&mut self) -> Result<(), LabError> {
        let course = self.experiment.course();
        let (min, max) = course.rounds;
        let mut pace = Pace::new(self.rest(min).as_secs_f64());
        let mut progress = Progress::new(self.experiment.name());
        for round in 0..max {
            if round >= min && round % order::BLOCK == 0 && self.check_precision(round)? {
                break;
            }
            if round >= min {
                let cells = leaders(&self.experiment).filter(|cell| !self.has_failed(*cell)).count() as u64;
                self.manifest.runs_planned = self.manifest.runs_planned.max(u64::from(round + 1) * cells);
            }
            for mut open in cells_of_round(&self.experiment, round) {
                open.retain(|cell| self.next_attempt(round, *cell as u32).is_some());
                // What disturbs a machine lasts for seconds: what it spoilt comes again when all others had their turn.
                while !open.is_empty() {
                    let mut disturbed = Vec::new();
                    for cell in open {
                        let expected = self.experiment.duration_of(cell);
                        if round > 0 && course.budget.is_some_and(|budget| self.started.elapsed() + expected > budget) {
                            self.manifest.runs_planned = self.manifest.runs_planned.saturating_sub(1);
                            continue;
                        }
                        progress.rest(pace.rest());
                        let name = self.experiment.cells()[cell].to_string();
                        progress.show(&name, self.manifest.runs_done, self.manifest.runs_planned);
                        match self.make_attempt(round, cell as u32)? {
                            Attempt::Disturbed => disturbed.push(cell),
                            attempt => {
                                pace.advance(expected.as_secs_f64());
                                self.manifest.runs_done += u64::from(attempt == Attempt::Counts);
                            }
                        }
                        self.directory.write_manifest(&self.manifest)?;
                    }
                    open = disturbed;
                }
            }
        }
        progress.finish();
        Ok(())
    }

    /// How long the runs take that are missing in the first `rounds` rounds.
    fn rest(&self, rounds: u32) -> Duration {
        let missing =
            |cell: &usize| (0..rounds).filter(|round| self.next_attempt(*round, *cell as u32).is_some()).count();
        leaders(&self.experiment).map(|cell| self.experiment.duration_of(cell) * missing(&cell) as u32).sum()
    }

    /// Whether the rounds before `round` tell what the experiment wants to know of the cells that are left.
    fn check_precision(&mut self, round: u32) -> Result<bool, LabError> {
        let cells = self.ledger.until(round)?.into_iter().enumerate();
        let left: Vec<_> = cells.filter(|(cell, _)| !self.has_failed(*cell)).map(|(_, cell)| cell).collect();
        Ok(compare::is_precise(&left, &self.experiment.precision()))
    }

    /// Makes the next attempt at a run, if there is one.
    fn make_attempt(&mut self, round: u32, cell: u32) -> Result<Attempt, LabError> {
        let Some(attempt) = self.next_attempt(round, cell) else { return Ok(Attempt::Failed) };
        let name = RunName { round, cell, attempt };
        let partial = self.directory.begin_run(name)?;
        let turn = StudyTurn {
            launcher: self.launcher,
            stop: self.stop,
            site: &self.site,
            round,
            cell: cell as usize,
            chance: self.experiment.seed() ^ u64::from(round) << 32,
            so_far: self.ledger.readable(),
        };
        let made = self.experiment.make(&turn, &partial);
        let place = json!({ "round": round, "cell": cell, "attempt": attempt });
        let is_interrupted = matches!(made, Err(LabError::Interrupted));
        if !is_interrupted && let Some(difference) = self.programs.find_changed() {
            // Nobody knows which build made it, or failed.
            self.directory.abandon_run(&partial);
            return Err(other_conditions(self.directory.path(), difference));
        }
        if let Err(error) = made {
            // Asked while the run has its place: a full disk is no fault of the cell.
            let room = if is_interrupted { Ok(()) } else { self.directory.check_room() };
            self.directory.abandon_run(&partial);
            // The error itself is what counts; a diary that cannot be written adds nothing.
            let _ = self.directory.note("run failed", json!({ "run": place, "reason": error.to_string() }));
            room?;
            self.leave_out(round, cell, error)?;
            return Ok(Attempt::Failed);
        }
        self.directory.end_run(name, &partial)?;
        // What a reader of the directory sees counts, not what was in memory: numbers in files are rounded.
        let runs = self.experiment.load(&run_folder(self.directory.path(), name), name);
        let is_disturbed = runs.as_ref().is_ok_and(|runs| runs.iter().any(|(_, run)| run.is_disturbed()));
        self.ledger.add(name, runs);
        self.directory.note(if is_disturbed { "run contaminated" } else { "run" }, place)?;
        Ok(if self.next_attempt(round, cell).is_none() { Attempt::Counts } else { Attempt::Disturbed })
    }

    /// Leaves a cell out from now on because of `error`, or ends the study with it.
    fn leave_out(&mut self, round: u32, cell: u32, error: LabError) -> Result<(), LabError> {
        let goes_on = self.experiment.goes_on_after(cell as usize, &error, &|cell| self.has_failed(cell));
        if !goes_on || matches!(error, LabError::Interrupted) {
            return Err(error);
        }
        // What all cells need is lost to all of them.
        self.experiment.check_site(&self.site)?;
        for (index, measured) in self.experiment.cells().iter().enumerate() {
            if self.experiment.leader(index) == cell as usize {
                let (cell, name, reason) = (index as u32, measured.to_string(), error.to_string());
                self.failures.push(CellFailure { cell, name, round, reason });
            }
        }
        self.manifest.runs_planned =
            self.manifest.runs_planned.saturating_sub(runs_of(&self.experiment, cell as usize));
        self.manifest.runs_done = self.runs_done();
        self.directory.write_failures(&self.failures)
    }

    /// Writes the results of all runs.
    fn conclude(&mut self) -> Result<E::Result, LabError> {
        let path = self.directory.path().to_owned();
        let (manifest, failures) = (&self.manifest, &self.failures);
        let record = StudyRecord { directory: &path, manifest, cells: self.ledger.whole()?, failures };
        let result = self.experiment.conclude(&record)?;
        for (name, text) in self.experiment.files(&path, &result)? {
            self.directory.write(name, &text)?;
        }
        self.directory.write(RESULTS, &serde_json::to_string_pretty(&result).map_err(LabError::here)?)?;
        Ok(result)
    }
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
