//! The results of a preset, complete enough to draw its page again.

use serde::{Deserialize, Serialize};

use super::{CellOf, PresetPage, PresetPlan, ResultOf};
use crate::host::{Conditions, Environment};
use crate::statistics::{Middle, middle};
use crate::study::{CellFailure, CellResult, Difference};

/// The whole results of a plan; `results.json` is this.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PresetResult<P, C, R> {
    /// Layout of this object, such as `thalweg.paper5/3`.
    pub schema: String,
    /// The plan, whose peers are those that took part.
    pub plan: P,
    /// First start, in seconds since 1970 UTC.
    pub started_unix_s: u64,
    /// The machine.
    pub environment: Environment,
    /// Other load on the machine meanwhile, over the time of all runs.
    pub conditions: Conditions,
    /// The programs that took part.
    pub contenders: Vec<ContenderFacts>,
    /// Missing measurements, with reasons and remedies.
    pub missing: Vec<Missing>,
    /// Cells and runs that were not made, with the reason.
    pub left_out: Vec<String>,
    /// Every cell, in the order of the page; one that failed with the runs before.
    pub cells: Vec<CellResult<C, R>>,
    /// Cells against their baselines.
    pub differences: Vec<Difference>,
    /// Cells that failed, and why.
    pub failures: Vec<CellFailure>,
}

/// A program as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContenderFacts {
    /// Its name.
    pub name: String,
    /// What it says of itself.
    pub version: String,
}

/// Something that could not be measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Missing {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
    /// The remedy: a command or an option.
    pub remedy: String,
}

impl<P: PresetPlan, R> PresetResult<P, P::Cell, R> {
    /// The only layout there is so far.
    pub const SCHEMA: &'static str = P::RESULT_SCHEMA;

    /// The cells of a part that have runs.
    pub(crate) fn cells_of(&self, part: P::Part) -> impl Iterator<Item = &CellResult<P::Cell, R>> {
        self.cells.iter().filter(move |cell| P::part_of(&cell.cell) == part && !cell.runs.is_empty())
    }

    /// All runs.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &R> + Clone {
        self.cells.iter().flat_map(|cell| &cell.runs)
    }
}

/// The median over the runs of a cell with its interval, or with the range of too few runs. `None` where a run lacks the figure: the others
/// may be the better ones.
pub(crate) fn estimate<C, R>(cell: &CellResult<C, R>, figure: fn(&R) -> Option<f64>) -> Option<Middle> {
    middle(&cell.runs.iter().map(figure).collect::<Option<Vec<f64>>>()?)
}

/// The median alone.
pub(crate) fn median_of<C, R>(cell: &CellResult<C, R>, figure: fn(&R) -> Option<f64>) -> Option<f64> {
    estimate(cell, figure).map(|middle| middle.estimate)
}

/// The cell of a part for which `is_meant` holds.
pub(crate) fn find<P: PresetPage>(
    result: &ResultOf<P>,
    part: P::Part,
    is_meant: impl Fn(&P::Cell) -> bool,
) -> Option<&CellOf<P>> {
    result.cells_of(part).find(|cell| is_meant(&cell.cell))
}
