//! Cells with their runs, and those that failed.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::error::StudyError;
use super::experiment::{Experiment, StudyCells, StudyRecord, StudyRun};
use super::results::{QuantileInterval, RunSummary};
use crate::error::LabError;
use crate::scenario::Cell;
use crate::statistics::median;
use crate::trial::Totals;

/// The results of the runs of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellResult<C = Cell, R = RunSummary> {
    /// The measurement.
    pub cell: C,
    /// The same in words.
    pub name: String,
    /// Each run that counts, by round.
    pub runs: Vec<R>,
    /// Quantiles with their intervals; missing below eight runs.
    #[serde(default)]
    pub intervals: Vec<QuantileInterval>,
}

impl<C: fmt::Display, R> CellResult<C, R> {
    /// A cell without runs.
    pub(crate) fn new(cell: C) -> CellResult<C, R> {
        CellResult { name: cell.to_string(), cell, runs: Vec::new(), intervals: Vec::new() }
    }
}

impl CellResult {
    /// A count of all runs together.
    pub(crate) fn sum(&self, of: impl Fn(&Totals) -> u64) -> u64 {
        self.runs.iter().map(|run| of(&run.totals)).sum()
    }

    /// Payload that all subscribers of a closed loop received in each second, all runs together, in Mbit/s.
    pub(crate) fn seconds_mbit(&self) -> Vec<f64> {
        let mbit = 8e-6 * self.cell.load.bytes() as f64;
        let closed = self.runs.iter().filter_map(|run| run.closed_loop.as_ref());
        closed.flat_map(|closed| &closed.received_by_second).map(|received| mbit * *received as f64).collect()
    }
}

impl<C, R> CellResult<C, R> {
    /// The median of a figure over the runs; `None` where one of them has none.
    pub(crate) fn median_of(&self, of: impl Fn(&R) -> Option<f64>) -> Option<f64> {
        median(self.runs.iter().map(of).collect::<Option<Vec<f64>>>()?)
    }

    /// Whether the machine was not quiet in some run that counts.
    pub(crate) fn is_disturbed(&self) -> bool
    where
        R: StudyRun,
    {
        self.runs.iter().any(StudyRun::is_disturbed)
    }

    /// The runs that nothing disturbed.
    pub(crate) fn quiet_runs(&self) -> impl Iterator<Item = &R>
    where
        R: StudyRun,
    {
        self.runs.iter().filter(|run| !run.is_disturbed())
    }

    /// The run of a round.
    pub(crate) fn run_of(&self, round: u32) -> Option<&R>
    where
        R: StudyRun,
    {
        self.runs.binary_search_by_key(&round, StudyRun::round).ok().map(|place| &self.runs[place])
    }
}

/// A baseline and a subject.
pub(crate) type Pair<'a, C, R> = (&'a CellResult<C, R>, &'a CellResult<C, R>);

/// A cell that has no result because it failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellFailure {
    /// Its place in the scenario, from 0.
    pub cell: u32,
    /// The cell in words.
    pub name: String,
    /// The round in which it failed, from 0; it was left out of those after it.
    pub round: u32,
    /// The failure.
    pub reason: String,
}

impl fmt::Display for CellFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed in round {}: {}", self.name, self.round + 1, self.reason)
    }
}

impl<E: Experiment> StudyRecord<'_, E> {
    /// The cells that did not fail, which have all their runs.
    ///
    /// # Errors
    /// One lacks runs, or none is left.
    pub(crate) fn whole_cells(&self, experiment: &E) -> Result<Vec<StudyCells<E>>, LabError> {
        let has_failed = |index: usize| self.failures.iter().any(|failure| failure.cell as usize == index);
        let course = experiment.course();
        // Where the time is limited, the first round alone is certain.
        let rounds = if course.budget.is_some() { 1 } else { course.rounds.0 };
        let mut whole = Vec::new();
        for (index, cell) in self.cells.iter().enumerate().filter(|(index, _)| !has_failed(*index)) {
            let needed = (0..rounds).filter(|round| experiment.takes_part(index, *round)).count();
            if cell.runs.len() < needed {
                let (cell, found) = (cell.name.clone(), cell.runs.len());
                return Err(StudyError::TooFewRuns { directory: self.directory.to_owned(), cell, found, needed }.into());
            }
            whole.push(cell.clone());
        }
        if whole.is_empty() {
            return Err(StudyError::NothingMeasured { failures: self.failures.to_vec() }.into());
        }
        Ok(whole)
    }
}
