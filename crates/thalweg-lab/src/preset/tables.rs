//! Tables of cells: a row for each, a column for each quantity.

use super::result::{estimate, median_of};
use super::{CellOf, PresetPage};
use crate::figures::or_dash;
use crate::study::{CellResult, Column, StudyRun, cell_table, ranged};
use crate::table::Table;

/// Each cell so far, for those who watch.
pub(super) fn overview<P: PresetPage>(cells: &[CellOf<P>]) -> Table {
    let named: [Column<P::Cell, P::Run>; 2] =
        [("cell", |cell| cell.name.clone()), ("runs", |cell| cell.runs.len().to_string())];
    let marked: [Column<P::Cell, P::Run>; 1] = [("marked", |cell| count_disturbed(cell).to_string())];
    cell_table("Whole runs: medians over the runs", cells, &[&named, P::OVERVIEW, &marked])
}

/// How many runs of a cell were disturbed.
pub(super) fn count_disturbed<C, R: StudyRun>(cell: &CellResult<C, R>) -> usize {
    cell.runs.iter().filter(|run| run.is_disturbed()).count()
}

/// The median as `text` writes it.
pub(crate) fn figure<C, R>(cell: &CellResult<C, R>, of: fn(&R) -> Option<f64>, text: impl Fn(f64) -> String) -> String {
    or_dash(median_of(cell, of), text)
}

/// A figure with its interval, or with the range of too few runs.
pub(crate) fn with_interval<C, R>(cell: &CellResult<C, R>, of: fn(&R) -> Option<f64>) -> String {
    or_dash(estimate(cell, of), |middle| ranged(&middle))
}
