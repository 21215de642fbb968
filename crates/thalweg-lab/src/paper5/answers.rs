//! Results of the runs of a cell, and of cells beside each other.

use super::cell::{Contender, PaperFigure, RequestLoad, ServerCell, ServerWork};
use super::result::{Paper5Result, Run, ServerCellRuns};
pub(super) use crate::preset::{estimate, find, median_of};
use crate::statistics::Middle;
use crate::study::distinct;
use thalweg_coap::scheduler::controller::ControlLaw;

/// Something that a run has a figure of.
pub(super) type Measure = fn(&Run) -> Option<f64>;

pub(super) const SERVED: Measure = |run| Some(run.load.served_per_s);
pub(super) const OFFERED: Measure = |run| Some(run.load.offered_per_s);
pub(super) const LOSS: Measure = |run| Some(run.loss());
pub(super) const P50: Measure = |run| run.load.latency.p50_us;
pub(super) const P99: Measure = |run| run.load.latency.p99_us;
pub(super) const CPU: Measure = |run| run.cpu_share();
pub(super) const PER_CPU_S: Measure = |run| run.served_per_cpu_s();
pub(super) const RESIDENT: Measure = |run| Some(run.server.resident_max_mib);
pub(super) const THREADS: Measure = |run| Some(run.server.threads_max as f64);
pub(super) const RECEIVED: Measure = |run| run.received_per_s();
pub(super) const HANDLED: Measure = |run| run.handled_per_s();
/// Millijoules, or without counters processor microseconds of the server, for a right answer.
pub(super) const COST: Measure = |run| {
    let answers = run.load.counts.right_answers() as f64;
    let processor_us = || Some(run.load.server.as_ref()?.cpu_s * 1e6);
    let cost = run.server.energy_j.map(|joules| joules * 1e3).or_else(processor_us)?;
    (answers > 0.0).then(|| cost / answers)
};

/// Rate of a contender at capacity with `handler`.
pub(super) fn capacity(result: &Paper5Result, contender: Contender, handler: ServerWork) -> Option<f64> {
    let is_meant = |cell: &ServerCell| cell.is_capacity() && cell.contender == contender && cell.handler == handler;
    median_of(find(result, PaperFigure::Capacity, is_meant)?, SERVED)
}

/// What `of` says of each cell of a part, each once, in the order of the plan.
pub(super) fn each<T: PartialEq>(result: &Paper5Result, figure: PaperFigure, of: impl Fn(&ServerCell) -> T) -> Vec<T> {
    distinct(result.cells_of(figure).map(|cell| of(&cell.cell)))
}

/// The fixed pool that served most of these cells, and the largest one.
pub(super) fn best_and_largest<'a>(cells: &[&'a ServerCellRuns]) -> Option<(&'a ServerCellRuns, &'a ServerCellRuns)> {
    let size = |cell: &&ServerCellRuns| match cell.cell.contender {
        Contender::Thalweg(ControlLaw::Fixed(threads)) => Some(threads),
        _ => None,
    };
    let fixed = || cells.iter().copied().filter(|cell| size(cell).is_some());
    let served = |cell: &ServerCellRuns| median_of(cell, SERVED).unwrap_or(0.0);
    let best = fixed().max_by(|one, other| served(one).total_cmp(&served(other)))?;
    Some((best, fixed().max_by_key(size)?))
}

/// What a contender served with so many clients, by their number (Figure 9).
pub(super) fn by_clients(result: &Paper5Result, contender: Contender) -> Vec<(f64, Middle)> {
    let of = |cell: &ServerCellRuns| match cell.cell.load {
        RequestLoad::Open { clients, .. } if cell.cell.contender == contender => {
            Some((f64::from(clients), estimate(cell, SERVED)?))
        }
        _ => None,
    };
    let mut points: Vec<(f64, Middle)> = result.cells_of(PaperFigure::Clients).filter_map(of).collect();
    points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    points
}

/// The mean over 1,000 and more clients (Figure 10), with the extremes over the numbers of clients. `None` where some have no figure: a
/// server that failed at the most clients is not compared by what it did with fewer.
pub(super) fn mean_of_many_clients(result: &Paper5Result, contender: Contender) -> Option<Middle> {
    let is_many = |cell: &&ServerCellRuns| {
        let is_own = cell.cell.figure == PaperFigure::Clients && cell.cell.contender == contender;
        is_own && matches!(cell.cell.load, RequestLoad::Open { clients, .. } if f64::from(clients) >= MANY_CLIENTS)
    };
    let served = |cell: &ServerCellRuns| estimate(cell, SERVED).map(|served| served.estimate);
    let many = result.cells.iter().filter(is_many).map(served).collect::<Option<Vec<f64>>>()?;
    let mean = many.iter().sum::<f64>() / many.len().max(1) as f64;
    (!many.is_empty()).then(|| Middle {
        estimate: mean,
        low: many.iter().copied().fold(f64::INFINITY, f64::min),
        high: many.iter().copied().fold(0.0, f64::max),
        is_range: true,
    })
}

/// From so many clients on the paper averages.
const MANY_CLIENTS: f64 = 1_000.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper5::tests::run_of;

    #[test]
    fn an_answer_after_the_counted_time_shares_no_cost() {
        let mut run = run_of(0, &[(1_000, 800, 1e2)], &[]);
        assert_eq!(COST(&run), Some(625.0), "an older result does not tell when answers came");
        run.load.counts.answered = Some(500);
        assert_eq!(COST(&run), Some(1_000.0));
        assert!((run.loss() - 0.2).abs() < 1e-9, "they are no losses");
    }
}
