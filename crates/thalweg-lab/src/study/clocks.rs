//! The error of latencies between machines from their clocks.

use super::cells::CellResult;
use super::results::StudyResult;
use crate::figures::rounded;
use crate::statistics::median;

/// What a latency between machines may be wrong by in the worst run of these cells, in microseconds; `None` where all endpoints share a
/// clock.
pub(super) fn bound_us(cells: &[CellResult]) -> Option<f64> {
    cells.iter().flat_map(|cell| &cell.runs).filter_map(|run| run.clock_bound_us).reduce(f64::max)
}

/// How well latencies between machines are known, for a card.
pub(super) fn fact(result: &StudyResult) -> Option<String> {
    let worst = result.clock_bound_us.filter(|us| *us > 0.0)?;
    let all: Vec<f64> = result.cells.iter().flat_map(|cell| &cell.runs).filter_map(|run| run.clock_bound_us).collect();
    let middle = median(all).map_or_else(String::new, |us| format!(", ± {} µs in the median run", rounded(us)));
    Some(format!("one-way latencies between machines are ± {} µs in the worst run{middle}", rounded(worst)))
}

/// A sentence for each cell whose latency is not known well.
pub(super) fn remarks(result: &StudyResult) -> Vec<String> {
    result.cells.iter().filter_map(remark).collect()
}

fn remark(cell: &CellResult) -> Option<String> {
    let bound = bound_us(std::slice::from_ref(cell)).filter(|us| *us > 0.0)?;
    let p50 = median(cell.runs.iter().filter_map(|run| run.totals.response.p50_us).collect::<Vec<f64>>());
    if p50.is_some_and(|p50| bound <= SHARE_MAX * p50) {
        return None;
    }
    let against = p50.map_or_else(|| "no median".to_owned(), |us| format!("a median of {} µs", rounded(us)));
    Some(format!(
        "The one-way latency of {} is not known that well: the machines' clocks leave ± {} µs open, against {against}.",
        cell.name,
        rounded(bound)
    ))
}

/// A larger share of the median response latency is too much to call it known.
const SHARE_MAX: f64 = 0.1;
