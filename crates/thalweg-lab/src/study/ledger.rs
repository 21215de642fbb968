//! The whole runs of a directory, read once and kept as further ones end.

use std::collections::BTreeMap;
use std::path::Path;

use super::directory::{RunName, whole_runs};
use super::results::{CellResult, RunSummary, summarize};
use crate::error::LabError;
use crate::scenario::Scenario;

/// The last attempt at each run.
#[derive(Debug)]
pub(super) struct Ledger {
    /// Each cell of the scenario with its runs, by round.
    cells: Vec<CellResult>,
    /// The number of the last attempt at the run of a round and a cell.
    attempts: BTreeMap<(u32, u32), u32>,
    /// Why the last attempt cannot be read, where that is so.
    damaged: BTreeMap<(u32, u32), LabError>,
}

impl Ledger {
    /// Reads the last attempt at each run in `directory`.
    pub(super) fn read(directory: &Path, scenario: &Scenario) -> Ledger {
        let empty = scenario.cells.iter().map(|cell| CellResult {
            cell: cell.clone(),
            name: cell.to_string(),
            runs: Vec::new(),
            intervals: Vec::new(),
        });
        let mut ledger = Ledger { cells: empty.collect(), attempts: BTreeMap::new(), damaged: BTreeMap::new() };
        for name in counted_runs(directory) {
            ledger.add(name, summarize(directory, name));
        }
        ledger
    }

    /// Notes that the attempt `name` is whole, and its content or why that cannot be read; it takes the place of earlier attempts.
    pub(super) fn add(&mut self, name: RunName, run: Result<RunSummary, LabError>) {
        let place = (name.round, name.cell);
        let Some(cell) = self.cells.get_mut(name.cell as usize) else { return };
        self.attempts.insert(place, name.attempt);
        cell.runs.retain(|known| known.round != name.round);
        self.damaged.remove(&place);
        match run {
            Ok(run) => {
                let behind = cell.runs.partition_point(|known| known.round < name.round);
                cell.runs.insert(behind, run);
            }
            Err(error) => drop(self.damaged.insert(place, error)),
        }
    }

    /// The next attempt at a run of which there may be `attempts_max`, or `None` when one counts already.
    pub(super) fn next_attempt(&self, round: u32, cell: u32, attempts_max: u32) -> Option<u32> {
        let Some(last) = self.attempts.get(&(round, cell)) else { return Some(1) };
        let runs = self.cells.get(cell as usize).map_or(&[][..], |cell| &cell.runs);
        let run = runs.binary_search_by_key(&round, |run| run.round).ok().map(|place| &runs[place]);
        let is_clean = run.is_some_and(|run| !run.contaminated);
        (!is_clean && *last < attempts_max).then_some(last + 1)
    }

    /// Rounds and cells of which there is an attempt.
    pub(super) fn places(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.attempts.keys().copied()
    }

    /// The cells with their runs of the rounds below `rounds`.
    ///
    /// # Errors
    /// One of these runs cannot be read.
    pub(super) fn cells(&mut self, rounds: u32) -> Result<Vec<CellResult>, LabError> {
        let first = self.damaged.keys().find(|(round, _)| *round < rounds).copied();
        if let Some(error) = first.and_then(|place| self.damaged.remove(&place)) {
            return Err(error);
        }
        let until = |cell: &CellResult| CellResult {
            runs: cell.runs.iter().filter(|run| run.round < rounds).cloned().collect(),
            ..cell.clone()
        };
        Ok(self.cells.iter().map(until).collect())
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
