//! The whole runs of a directory, read once and kept as further ones end.

use std::collections::BTreeMap;
use std::path::Path;

use super::cells::CellResult;
use super::directory::{RunName, run_folder, whole_runs};
use super::experiment::{Experiment, StudyCells, StudyRun};
use crate::error::LabError;

/// The last attempt at each run.
pub(super) struct Ledger<E: Experiment> {
    /// Each cell of the experiment with its runs, by round.
    cells: Vec<StudyCells<E>>,
    /// The number of the last attempt at the run of a round and a cell.
    attempts: BTreeMap<(u32, u32), u32>,
    /// Why the last attempt cannot be read, where that is so.
    damaged: BTreeMap<(u32, u32), LabError>,
}

impl<E: Experiment> Ledger<E> {
    /// No runs.
    pub(super) fn empty(experiment: &E) -> Ledger<E> {
        let cells = experiment.cells().iter().cloned().map(CellResult::new).collect();
        Ledger { cells, attempts: BTreeMap::new(), damaged: BTreeMap::new() }
    }

    /// Reads the last attempt at each run in `directory`.
    pub(super) fn read(directory: &Path, experiment: &E) -> Ledger<E> {
        let mut ledger = Ledger::empty(experiment);
        for name in counted_runs(directory) {
            ledger.add(name, experiment.load(&run_folder(directory, name), name));
        }
        ledger
    }

    /// Notes that the attempt `name` is whole, and its content or why that cannot be read; it takes the place of earlier attempts.
    pub(super) fn add(&mut self, name: RunName, runs: Result<Vec<(usize, E::Run)>, LabError>) {
        let place = (name.round, name.cell);
        self.attempts.insert(place, name.attempt);
        self.damaged.remove(&place);
        let runs = runs.unwrap_or_else(|error| {
            self.damaged.insert(place, error);
            Vec::new()
        });
        for (cell, run) in runs {
            let Some(cell) = self.cells.get_mut(cell) else { continue };
            cell.runs.retain(|known| known.round() != name.round);
            let behind = cell.runs.partition_point(|known| known.round() < name.round);
            cell.runs.insert(behind, run);
        }
    }

    /// The next attempt at a run of which there may be `attempts_max`, or `None` when one counts already.
    pub(super) fn next_attempt(&self, round: u32, cell: u32, attempts_max: u32) -> Option<u32> {
        let Some(last) = self.attempts.get(&(round, cell)) else { return Some(1) };
        let run = self.cells.get(cell as usize).and_then(|cell| cell.run_of(round));
        let is_damaged = self.damaged.contains_key(&(round, cell));
        let is_clean = !is_damaged && run.is_some_and(|run| !run.is_disturbed());
        (!is_clean && *last < attempts_max).then_some(last + 1)
    }

    /// Rounds and cells of which there is an attempt.
    pub(super) fn places(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.attempts.keys().copied()
    }

    /// All cells with those of their runs that can be read.
    pub(super) fn readable(&self) -> &[StudyCells<E>] {
        &self.cells
    }

    /// All cells with all runs.
    ///
    /// # Errors
    /// A run cannot be read.
    pub(super) fn whole(&mut self) -> Result<&[StudyCells<E>], LabError> {
        match self.damaged.pop_first() {
            Some((_, error)) => Err(error),
            None => Ok(&self.cells),
        }
    }

    /// All cells with their runs of the rounds below `rounds`.
    ///
    /// # Errors
    /// A run cannot be read.
    pub(super) fn until(&mut self, rounds: u32) -> Result<Vec<StudyCells<E>>, LabError> {
        let mut cells = self.whole()?.to_vec();
        for cell in &mut cells {
            cell.runs.truncate(cell.runs.partition_point(|run| run.round() < rounds));
        }
        Ok(cells)
    }
}

/// The last attempt at each run.
pub(super) fn counted_runs(directory: &Path) -> Vec<RunName> {
    let mut out: Vec<RunName> = Vec::new();
    for run in whole_runs(directory) {
        match out.last_mut().filter(|last| (last.round, last.cell) == (run.round, run.cell)) {
            Some(last) => *last = run,
            None => out.push(run),
        }
    }
    out
}
