//! Quantities in which cells are compared, and what their runs tell of one cell against another.

use super::order::BLOCK;
use super::results::{CellResult, RunSummary};
use crate::statistics::{Interval, RUNS_MIN, Verdict, median, median_interval, runs_needed, verdicts};

/// A quantity that a run has a figure of.
#[derive(Clone, Copy)]
pub(crate) struct Measure {
    /// Its name with its unit.
    pub(crate) name: &'static str,
    pub(crate) of: Value,
    pub(crate) more_is: Side,
    /// The ratio below which a difference does not matter.
    pub(crate) margin: f64,
}

/// A value of a run, where it has one.
pub(crate) type Value = fn(&RunSummary) -> Option<f64>;

/// Whether a larger figure is a better one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Better,
    Worse,
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

impl Measure {
    /// The median over the runs, where every run has a figure.
    pub(crate) fn median(&self, cell: &CellResult) -> Option<f64> {
        median(cell.runs.iter().map(self.of).collect::<Option<Vec<f64>>>()?)
    }

    /// The subject's share of the baseline in each round in which both have a figure, as logarithms of which less is better; `None` where
    /// both are infinite or zero in a round, so that they have no ratio.
    pub(crate) fn costs(&self, (baseline, subject): (&CellResult, &CellResult)) -> Option<Vec<f64>> {
        let sign = if self.more_is == Side::Worse { 1.0 } else { -1.0 };
        let cost = |run: &RunSummary| {
            let other = baseline.runs.iter().find(|other| other.round == run.round)?;
            Some(sign * ((self.of)(run)? / (self.of)(other)?).ln())
        };
        let costs: Vec<f64> = subject.runs.iter().filter_map(cost).collect();
        costs.iter().all(|cost| !cost.is_nan()).then_some(costs)
    }

    /// The ratio of subject to baseline that these costs tell.
    fn ratio(&self, costs: &[f64]) -> Option<Interval> {
        let Interval { estimate, low, high } = median_interval(costs)?;
        Some(match self.more_is {
            Side::Worse => Interval { estimate: estimate.exp(), low: low.exp(), high: high.exp() },
            Side::Better => Interval { estimate: (-estimate).exp(), low: (-high).exp(), high: (-low).exp() },
        })
    }
}

/// What the runs tell of a subject and its baseline in one quantity.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judged {
    /// Subject by baseline; missing where too few rounds have both.
    pub(crate) ratio: Option<Interval>,
    /// How far neighbouring runs of the same cell lie apart, as the logarithm of a ratio.
    pub(crate) noise: Option<f64>,
    pub(crate) verdict: Verdict,
    /// Why the verdict is open, where it is.
    pub(crate) reason: Option<String>,
}

/// What the runs tell of all pairs of a baseline and a subject on a page, which are one family: among so many comparisons chance makes a
/// difference somewhere, and the verdicts are corrected for that. Of a pair with a disturbed run nothing is told, and the one that
/// delivered less is better in nothing else.
pub(crate) fn judge(pairs: &[(&CellResult, &CellResult)], measure: &Measure) -> Vec<Judged> {
    let costs: Vec<Option<Vec<f64>>> = pairs.iter().map(|pair| measure.costs(*pair)).collect();
    let family: Vec<Vec<f64>> = costs.iter().map(|costs| costs.clone().unwrap_or_default()).collect();
    let all = verdicts(&family, measure.margin.ln());
    let one = |(index, verdict): (usize, Verdict)| {
        let (pair, costs) = (pairs[index], costs[index].as_deref());
        let noise = noise(measure.of, pair);
        let ratio = costs.and_then(|costs| measure.ratio(costs));
        let reason = doubt(measure, pair, (costs, noise), verdict)
            .or_else(|| (verdict == Verdict::Inconclusive).then(|| told_by(costs, pairs.len())));
        let verdict = if reason.is_some() { Verdict::Inconclusive } else { verdict };
        Judged { ratio, noise, verdict, reason }
    };
    all.into_iter().enumerate().map(one).collect()
}

/// Why a verdict does not stand although the runs tell it.
fn doubt(
    measure: &Measure,
    pair: (&CellResult, &CellResult),
    (costs, noise): (Option<&[f64]>, Option<f64>),
    verdict: Verdict,
) -> Option<String> {
    if pair.0.is_disturbed() || pair.1.is_disturbed() {
        return Some("a run was disturbed in every attempt".to_owned());
    }
    let is_difference = matches!(verdict, Verdict::Better | Verdict::Worse);
    let size = median(costs?)?.abs();
    if is_difference && noise.is_some_and(|noise| size <= noise) {
        return Some("runs of the same cell lie as far apart".to_owned());
    }
    let is_won_by_less = is_difference && measure.more_is == Side::Worse && !keeps_up(pair, verdict);
    is_won_by_less.then(|| "the one with less delivered fewer samples, or may have".to_owned())
}

/// Whether the one that this verdict prefers delivers as much as the other, within the margin.
fn keeps_up(pair: (&CellResult, &CellResult), verdict: Verdict) -> bool {
    let interval = DELIVERED.costs(pair).and_then(|costs| median_interval(&costs));
    let margin = DELIVERED.margin.ln();
    interval.is_some_and(|lost| if verdict == Verdict::Better { lost.high < margin } else { lost.low > -margin })
}

/// Why the runs tell nothing.
fn told_by(costs: Option<&[f64]>, comparisons: usize) -> String {
    match costs {
        None => "neither has a figure in some round".to_owned(),
        Some(costs) if costs.len() < RUNS_MIN => format!("fewer than {RUNS_MIN} rounds"),
        Some(costs) if costs.len() < runs_needed(comparisons) => {
            format!("{} rounds; {comparisons} comparisons need {}", costs.len(), runs_needed(comparisons))
        }
        Some(_) => "the runs lie too far apart".to_owned(),
    }
}

/// How far the two runs of a block lie apart within each cell: the larger end of the interval, as a logarithm.
fn noise(of: Value, (baseline, subject): (&CellResult, &CellResult)) -> Option<f64> {
    let apart = |cell: &CellResult| {
        let second = |run: &RunSummary| cell.runs.iter().find(|other| other.round == run.round + 1).and_then(of);
        let firsts = cell.runs.iter().filter(|run| run.round % BLOCK == 0);
        firsts.filter_map(|run| Some((second(run)? / of(run)?).ln())).collect::<Vec<f64>>()
    };
    let all: Vec<f64> = [baseline, subject].into_iter().flat_map(apart).filter(|ratio| ratio.is_finite()).collect();
    median_interval(&all).map(|interval| interval.low.abs().max(interval.high.abs()))
}
