//! Expected ratios between contenders, and what the runs say of them.

use super::plan::{RatioExpectation, WorkPlan};
use super::result::{BenchmarkCellRuns, BenchmarkRun, JudgedRatio, TimedPair};
use crate::scenario::Relation;
use crate::statistics::median;
use crate::study::{Measure, StudyRun, distinct, judge_bounds};

/// An expectation of one kind of work.
struct Asked<'a> {
    cell: String,
    expected: &'a RatioExpectation,
    measure: &'static Measure<BenchmarkRun>,
    subject: &'a BenchmarkCellRuns,
    /// The best of those that it is divided by.
    best: Option<&'a BenchmarkCellRuns>,
    /// Those of them that have no figure in some run.
    without: Vec<String>,
    /// Quiet runs of the subject that have no figure.
    lacking: usize,
}

/// What the runs say of the expected ratios of these works; those of one quantity are one family.
pub(super) fn judged(works: &[WorkPlan], cells: &[BenchmarkCellRuns]) -> Vec<JudgedRatio> {
    let asked: Vec<Asked<'_>> = works.iter().flat_map(|work| asked(work, cells)).collect();
    let mut out: Vec<JudgedRatio> = asked.iter().map(Asked::open).collect();
    for name in distinct(asked.iter().map(|one| one.measure.name)) {
        let bound = |one: &Asked<'_>| Relation::bound(&one.expected.ratio).ok().filter(|(_, bound)| *bound > 0.0);
        let own = asked.iter().enumerate().filter(|(_, one)| one.measure.name == name);
        let family: Vec<(usize, TimedPair<'_>, Relation, f64)> = own
            .filter_map(|(place, one)| {
                let (relation, bound) = bound(one)?;
                Some((place, (one.best?, one.subject), relation, bound))
            })
            .collect();
        let Some((first, ..)) = family.first() else { continue };
        let pairs: Vec<(TimedPair<'_>, f64)> = family.iter().map(|(_, pair, _, bound)| (*pair, *bound)).collect();
        for ((place, _, relation, bound), told) in family.iter().zip(judge_bounds(&pairs, asked[*first].measure)) {
            let ratio = &mut out[*place];
            (ratio.interval, ratio.quiet_rounds) = (told.ratio, told.rounds);
            ratio.estimate = told.ratio.map(|ratio| ratio.estimate).or(ratio.estimate);
            let side = |is_below: bool| relation.holds(if is_below { 0.0 } else { f64::INFINITY }, *bound);
            (ratio.holds, ratio.reason) = (told.is_below.map(side), told.reason);
        }
    }
    // One that fails in some runs keeps to no bound, whatever the others say.
    for (ratio, one) in out.iter_mut().zip(&asked).filter(|(_, one)| one.lacking > 0 && one.best.is_some()) {
        let reason = format!("it has no figure in {} of its runs", one.lacking);
        (ratio.holds, ratio.reason) = (None, Some(reason));
    }
    out
}

fn asked<'a>(work: &'a WorkPlan, cells: &'a [BenchmarkCellRuns]) -> Vec<Asked<'a>> {
    let of = |name: &str| {
        let is_meant = |cell: &&BenchmarkCellRuns| cell.cell.work == work.name && cell.cell.contender == name;
        cells.iter().filter(is_meant).collect::<Vec<_>>()
    };
    let one = |expected: &'a RatioExpectation, subject: &'a BenchmarkCellRuns| {
        let rivals = expected.by.iter().flat_map(|name| of(name)).filter(|rival| rival.cell.deed == subject.cell.deed);
        let rivals: Vec<&BenchmarkCellRuns> = rivals.collect();
        let has_figure = |cell: &&BenchmarkCellRuns, measure: &Measure<BenchmarkRun>| {
            cell.runs.iter().any(|run| (measure.of)(run).is_some())
        };
        let named = |measure: &&'static Measure<BenchmarkRun>| {
            let mut both = [subject].into_iter().chain(rivals.iter().copied());
            measure.name.starts_with(&expected.figure) && both.any(|cell| has_figure(&cell, measure))
        };
        let measure = BenchmarkRun::MEASURES[1..].iter().find(named)?;
        let best = rivals
            .iter()
            .filter_map(|rival| Some((*rival, quiet_median(measure, rival)?)))
            .reduce(|best, other| if measure.is_better(other.1, best.1) { other } else { best });
        let lacks = |rival: &&&BenchmarkCellRuns| rival.runs.iter().any(|run| (measure.of)(run).is_none());
        let lacking = subject.quiet_runs().filter(|run| (measure.of)(run).is_none()).count();
        Some(Asked {
            cell: format!("{}, {}", work.name, subject.cell.deed),
            expected,
            measure,
            subject,
            best: best.map(|(rival, _)| rival),
            without: rivals.iter().filter(lacks).map(|rival| rival.cell.contender.clone()).collect(),
            lacking,
        })
    };
    let all =
        work.expectations.iter().flat_map(|expected| of(&expected.of).into_iter().map(move |cell| (expected, cell)));
    all.filter_map(|(expected, subject)| one(expected, subject)).collect()
}

/// The median over the runs that nothing disturbed, or over all where none was quiet; `None` where one of them has no figure.
fn quiet_median(measure: &Measure<BenchmarkRun>, cell: &BenchmarkCellRuns) -> Option<f64> {
    let figures: Vec<Option<f64>> = cell.quiet_runs().map(measure.of).collect();
    if figures.is_empty() { measure.median(cell) } else { median(figures.into_iter().collect::<Option<Vec<f64>>>()?) }
}

impl Asked<'_> {
    /// The same before anything is judged.
    fn open(&self) -> JudgedRatio {
        let of_medians = |best| Some(quiet_median(self.measure, self.subject)? / quiet_median(self.measure, best)?);
        let reason = match self.best {
            None => "none of those that it is divided by has a figure in every run",
            Some(_) => "its bound is no positive number",
        };
        JudgedRatio {
            cell: self.cell.clone(),
            quantity: self.measure.name.to_owned(),
            expected: self.expected.clone(),
            best: self.best.map(|rival| rival.cell.contender.clone()),
            without: self.without.clone(),
            estimate: self.best.and_then(of_medians),
            interval: None,
            quiet_rounds: 0,
            holds: None,
            reason: Some(reason.to_owned()),
        }
    }
}
