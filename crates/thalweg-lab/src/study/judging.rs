//! Quantities in which cells are compared, and what their runs tell of one cell against another.

use super::cells::{CellResult, Pair};
use super::experiment::StudyRun;
use super::results::RunSummary;
use crate::statistics::{Interval, RUNS_MIN, Verdict, median, median_interval, runs_needed, sides, verdicts};

/// A quantity that a run has a figure of.
pub(crate) struct Measure<R = RunSummary> {
    /// Its name with its unit.
    pub(crate) name: &'static str,
    pub(crate) of: Value<R>,
    pub(crate) more_is: Side,
    /// The ratio below which a difference does not matter.
    pub(crate) margin: f64,
}

/// A value of a run, where it has one.
pub(crate) type Value<R = RunSummary> = fn(&R) -> Option<f64>;

/// Whether a larger figure is a better one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Better,
    Worse,
}

impl<R> Clone for Measure<R> {
    fn clone(&self) -> Measure<R> {
        *self
    }
}

impl<R> Copy for Measure<R> {}

impl<R: StudyRun> Measure<R> {
    /// The median over the runs, where every run has a figure.
    pub(crate) fn median<C>(&self, cell: &CellResult<C, R>) -> Option<f64> {
        cell.median_of(self.of)
    }

    /// The subject's share of the baseline in each round in which both have a figure, the machine was quiet and the
    /// measuring program not at its limit, as logarithms of which less is
    /// better; `None` where both are infinite or zero in a round, so that they have no ratio.
    pub(crate) fn costs<C>(&self, (baseline, subject): Pair<'_, C, R>) -> Option<Vec<f64>> {
        let sign = if self.more_is == Side::Worse { 1.0 } else { -1.0 };
        let cost = |run: &R| {
            let other = baseline.run_of(run.round()).filter(|other| tells(*other))?;
            Some(sign * ((self.of)(run)? / (self.of)(other)?).ln())
        };
        let costs: Vec<f64> = subject.runs.iter().filter(|run| tells(*run)).filter_map(cost).collect();
        costs.iter().all(|cost| !cost.is_nan()).then_some(costs)
    }

    /// Whether `figure` is better than `other`.
    pub(crate) fn is_better(&self, figure: f64, other: f64) -> bool {
        if self.more_is == Side::Worse { figure < other } else { figure > other }
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

impl Judged {
    /// Why the verdict is open.
    pub(crate) fn why(&self) -> &str {
        self.reason.as_deref().unwrap_or("the runs do not tell")
    }
}

/// What the runs tell of all pairs of a baseline and a subject on a page, which are one family: among so many comparisons chance makes a
/// difference somewhere, and the verdicts are corrected for that. A round with a disturbed run tells nothing of the pair, and the one that
/// delivered less is better in nothing else.
pub(crate) fn judge<C, R: StudyRun>(pairs: &[Pair<'_, C, R>], measure: &Measure<R>) -> Vec<Judged> {
    let costs: Vec<Option<Vec<f64>>> = pairs.iter().map(|pair| measure.costs(*pair)).collect();
    let family: Vec<Vec<f64>> = costs.iter().map(|costs| costs.clone().unwrap_or_default()).collect();
    let all = verdicts(&family, measure.margin.ln());
    let one = |(index, verdict): (usize, Verdict)| {
        let (pair, costs) = (pairs[index], costs[index].as_deref());
        let noise = noise(measure.of, pair);
        let ratio = costs.and_then(|costs| measure.ratio(costs));
        let reason = doubt(pair, (costs, noise), verdict)
            .or_else(|| (verdict == Verdict::Inconclusive).then(|| told_by(pair, costs, pairs.len())));
        let verdict = if reason.is_some() { Verdict::Inconclusive } else { verdict };
        Judged { ratio, noise, verdict, reason }
    };
    all.into_iter().enumerate().map(one).collect()
}

/// What the runs tell of a ratio and its bound.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bounded {
    /// Subject by baseline; missing where too few rounds have both.
    pub(crate) ratio: Option<Interval>,
    /// Rounds in which both have a figure and the machine was quiet.
    pub(crate) rounds: usize,
    /// Whether the ratio surely lies below the bound, or surely above it.
    pub(crate) is_below: Option<bool>,
    /// Why neither is told.
    pub(crate) reason: Option<String>,
}

/// On which side of its bound the ratio of each pair lies; all pairs are one family. What is no difference in [`judge`] tells nothing here:
/// runs of one cell that lie as far apart as the ratio from its bound, and a ratio that the one which delivered less is ahead by.
pub(crate) fn judge_bounds<C, R: StudyRun>(pairs: &[(Pair<'_, C, R>, f64)], measure: &Measure<R>) -> Vec<Bounded> {
    let sign = if measure.more_is == Side::Worse { 1.0 } else { -1.0 };
    let costs: Vec<Option<Vec<f64>>> = pairs.iter().map(|(pair, _)| measure.costs(*pair)).collect();
    let from_bound = |costs: &Option<Vec<f64>>, bound: f64| -> Vec<f64> {
        costs.iter().flatten().map(|cost| cost - sign * bound.ln()).collect()
    };
    let family: Vec<Vec<f64>> = costs.iter().zip(pairs).map(|(costs, (_, bound))| from_bound(costs, *bound)).collect();
    let one = |(index, side): (usize, Option<std::cmp::Ordering>)| {
        let (pair, costs) = (pairs[index].0, costs[index].as_deref());
        let verdict = match side {
            Some(std::cmp::Ordering::Less) => Verdict::Better,
            Some(_) => Verdict::Worse,
            None => Verdict::Inconclusive,
        };
        let reason = doubt(pair, (costs.map(|_| &family[index][..]), noise(measure.of, pair)), verdict)
            .or_else(|| side.is_none().then(|| told_by(pair, costs, pairs.len())));
        let is_less = (verdict == Verdict::Better) == (measure.more_is == Side::Worse);
        let ratio = costs.and_then(|costs| measure.ratio(costs));
        let rounds = costs.map_or(0, <[f64]>::len);
        Bounded { ratio, rounds, is_below: reason.is_none().then_some(is_less), reason }
    };
    sides(&family).into_iter().enumerate().map(one).collect()
}

/// Why a verdict does not stand although the runs tell it.
fn doubt<C, R: StudyRun>(
    pair: Pair<'_, C, R>,
    (costs, noise): (Option<&[f64]>, Option<f64>),
    verdict: Verdict,
) -> Option<String> {
    let is_difference = matches!(verdict, Verdict::Better | Verdict::Worse);
    let size = median(costs?)?.abs();
    if is_difference && size.is_finite() {
        match noise {
            None => return Some("too few quiet neighbouring runs tell the A/A noise".to_owned()),
            Some(noise) if size <= noise => return Some("runs of the same cell lie as far apart".to_owned()),
            Some(_) => {}
        }
    }
    let is_won_by_less = is_difference && !keeps_up(pair, verdict);
    is_won_by_less.then(|| "the one that would be better delivered fewer samples, or may have".to_owned())
}

/// Whether the one that this verdict prefers delivers as much as the other, within the margin.
fn keeps_up<C, R: StudyRun>(pair: Pair<'_, C, R>, verdict: Verdict) -> bool {
    let interval = R::DONE.costs(pair).and_then(|costs| median_interval(&costs));
    let margin = R::DONE.margin.ln();
    interval.is_some_and(|lost| if verdict == Verdict::Better { lost.high < margin } else { lost.low > -margin })
}

/// Why the runs tell nothing.
fn told_by<C, R: StudyRun>(pair: Pair<'_, C, R>, costs: Option<&[f64]>, comparisons: usize) -> String {
    let is_limited = [pair.0, pair.1].iter().any(|cell| cell.runs.iter().any(StudyRun::is_limited));
    let rounds = match pair.0.is_disturbed() || pair.1.is_disturbed() {
        _ if is_limited => "rounds in which the generator was not at its own limit",
        true => "quiet rounds",
        false => "rounds",
    };
    match costs {
        None => "neither has a figure in some round".to_owned(),
        Some(costs) if costs.len() < RUNS_MIN => format!("fewer than {RUNS_MIN} {rounds}"),
        Some(costs) if costs.len() < runs_needed(comparisons) => {
            format!("{} {rounds}; {comparisons} comparisons need {}", costs.len(), runs_needed(comparisons))
        }
        Some(_) => "the runs lie too far apart".to_owned(),
    }
}

/// Whether a run tells something of its cell.
fn tells<R: StudyRun>(run: &R) -> bool {
    !run.is_disturbed() && !run.is_limited()
}

/// How far neighbouring runs of each cell lie apart, those between them that tell nothing left out: the larger end of the interval, as a
/// logarithm. No run stands in two pairs, and two cells with the eight runs of a verdict have the eight pairs of an interval.
fn noise<C, R: StudyRun>(of: Value<R>, (baseline, subject): Pair<'_, C, R>) -> Option<f64> {
    let apart = |cell: &CellResult<C, R>| {
        let figures: Vec<f64> = cell.runs.iter().filter(|run| tells(*run)).filter_map(of).collect();
        figures.chunks_exact(2).map(|pair| (pair[1] / pair[0]).ln()).collect::<Vec<f64>>()
    };
    let all: Vec<f64> = [baseline, subject].into_iter().flat_map(apart).filter(|ratio| ratio.is_finite()).collect();
    median_interval(&all).map(|interval| interval.low.abs().max(interval.high.abs()))
}
