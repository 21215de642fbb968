//! The answers: the better way in each cell, and whether `auto` keeps up.

use super::groups::{Group, RECEIVED};
use super::plan::{CALIBRATION, CROSSOVER};
use super::result::{AutoAnswer, AutoCheck, Winner};
use crate::figures::percent;
use crate::parts::PartResult;
use crate::statistics::{Interval, RUNS_MIN, Verdict, below, median, median_interval};
use crate::study::{
    CPU, CellResult, Judged, Measure, P50, P99, ROUND_TRIP_P50, ROUND_TRIP_P99, Side, THROUGHPUT, distinct, judge,
};

type Measures = [&'static Measure; 3];

/// The quantities compared in each group with a schedule.
static OPEN: Measures = [&P50, &P99, &RECEIVED];
/// Those compared where only the number of readers of one publisher differs.
static READERS: Measures = [&P50, &P99, &CPU];
/// Those compared in each closed loop.
static CLOSED: Measures = [&ROUND_TRIP_P50, &ROUND_TRIP_P99, &THROUGHPUT];

/// Unicast against multicast in every group of the page; the groups of one quantity are one family.
pub(super) fn winners(parts: &[PartResult]) -> Vec<Winner> {
    let of = |(measure, all): (&Measure, Vec<(&PartResult, Group<'_>)>)| {
        let pairs: Vec<(&CellResult, &CellResult)> = all.iter().map(|(_, group)| group.ways().into()).collect();
        let winner = |((part, group), judged): (&(&PartResult, Group<'_>), Judged)| Winner {
            part: part.name.clone(),
            group: group.name(),
            quantity: measure.name.to_owned(),
            medians: [0, 1, 2].map(|way| measure.median(group.cells.get(way)?)),
            ratio: judged.ratio,
            verdict: told(group, &judged),
        };
        all.iter().zip(judge(&pairs, measure)).map(winner).collect::<Vec<_>>()
    };
    families(parts).flat_map(of).collect()
}

/// Each quantity with the groups of all parts that have it.
fn families(parts: &[PartResult]) -> impl Iterator<Item = (&'static Measure, Vec<(&PartResult, Group<'_>)>)> {
    let all = [&OPEN, &READERS, &CLOSED].into_iter().flatten();
    let first = |name: &str| all.clone().copied().find(|measure| measure.name == name);
    let quantities = distinct(all.clone().map(|measure| measure.name)).into_iter().filter_map(first);
    quantities.collect::<Vec<_>>().into_iter().map(move |measure| {
        let has = |part: &PartResult| measures_of(part).iter().any(|own| own.name == measure.name);
        (measure, groups(parts).into_iter().filter(|(part, _)| has(part)).collect())
    })
}

/// What is compared in a part.
fn measures_of(part: &PartResult) -> &'static Measures {
    match part.name.as_str() {
        CALIBRATION | CROSSOVER => &READERS,
        _ if part.study.is_closed_loop() => &CLOSED,
        _ => &OPEN,
    }
}

fn groups(parts: &[PartResult]) -> Vec<(&PartResult, Group<'_>)> {
    parts.iter().flat_map(|part| part.groups().into_iter().map(move |group| (part, group))).collect()
}

fn told(group: &Group<'_>, judged: &Judged) -> String {
    if group.ways().iter().any(|cell| cell.runs.len() < RUNS_MIN) {
        return format!("not judged: fewer than {RUNS_MIN} runs");
    }
    match judged.verdict {
        Verdict::Better => "multicast".to_owned(),
        Verdict::Worse => "unicast".to_owned(),
        Verdict::Equivalent => EQUIVALENT.to_owned(),
        Verdict::Inconclusive => format!("open: {}", judged.why()),
    }
}

/// Whether `auto` is within five per cent of the better of the two in every group of the page: the upper end of what the runs allow,
/// corrected for the number of groups, not the estimate. The better one is chosen by the same runs, which favours it and not `auto`.
pub(super) fn checks(parts: &[PartResult]) -> Vec<AutoCheck> {
    let of = |(measure, all): (&Measure, Vec<(&PartResult, Group<'_>)>)| {
        let all: Vec<_> = all.into_iter().filter(|(_, group)| group.auto().is_some()).collect();
        let costs: Vec<Vec<f64>> = all
            .iter()
            .map(|(_, group)| {
                let leader = leader(measure, group).map(|(_, cell)| cell);
                leader.zip(group.auto()).and_then(|pair| measure.costs(pair)).unwrap_or_default()
            })
            .collect();
        let reversed: Vec<Vec<f64>> = costs.iter().map(|own| own.iter().map(|cost| -cost).collect()).collect();
        let (near, far) = (below(&costs, NEAR.ln()), below(&reversed, -NEAR.ln()));
        let check = |(index, (part, group)): (usize, &(&PartResult, Group<'_>))| {
            let answer = match (near[index], far[index]) {
                (true, _) => AutoAnswer::Yes,
                (_, true) => AutoAnswer::No,
                _ => AutoAnswer::Open,
            };
            check(part, group, measure, (&costs[index], answer))
        };
        all.iter().enumerate().filter_map(check).collect::<Vec<_>>()
    };
    families(parts).flat_map(of).collect()
}

/// The better way by the medians.
fn leader<'a>(measure: &Measure, group: &Group<'a>) -> Option<(&'static str, &'a CellResult)> {
    let [unicast, multicast] = group.ways();
    let (one, other) = (measure.median(unicast)?, measure.median(multicast)?);
    let multicast_leads = if measure.more_is == Side::Worse { other < one } else { other > one };
    Some(if multicast_leads { ("multicast", multicast) } else { ("unicast", unicast) })
}

fn check(
    part: &PartResult,
    group: &Group<'_>,
    measure: &Measure,
    (costs, answer): (&[f64], AutoAnswer),
) -> Option<AutoCheck> {
    let (leader, best) = leader(measure, group)?;
    let of_medians = || {
        let ratio = measure.median(group.auto()?)? / measure.median(best)?;
        Some(if measure.more_is == Side::Worse { ratio } else { ratio.recip() })
    };
    let cost = median(costs).map(f64::exp).or_else(of_medians)?;
    let ratio = median_interval(costs).map(|costs| costs.map(f64::exp));
    let choice = choice(group);
    let by = percent((cost - 1.0).abs());
    let (neither, never) = match measure.more_is {
        Side::Worse => ("neither has an end", "auto never ends"),
        Side::Better => ("neither brings anything", "auto brings nothing"),
    };
    let stands = match cost {
        1.0 => format!("auto is level with {leader}"),
        cost if cost < 1.0 => format!("auto is ahead of {leader} by {by}"),
        f64::INFINITY => never.to_owned(),
        cost if cost.is_nan() => neither.to_owned(),
        _ => format!("auto is {by} behind {leader}"),
    };
    let at_most = |ratio: Interval| match ratio.high.is_finite() {
        true => format!("at most {:.3} times as much", ratio.high),
        false => "nothing bounds how much more".to_owned(),
    };
    let because = match (answer, ratio) {
        (AutoAnswer::Yes, Some(ratio)) => at_most(ratio),
        (AutoAnswer::No, _) => reason(choice, leader),
        (_, None) if group.is_disturbed() => "fewer than eight quiet rounds".to_owned(),
        (_, None) => "fewer than eight rounds".to_owned(),
        (_, Some(ratio)) => format!("{}, or too many cells for so few rounds", at_most(ratio)),
    };
    Some(AutoCheck {
        part: part.name.clone(),
        group: group.name(),
        quantity: measure.name.to_owned(),
        choice: choice.to_owned(),
        ratio,
        answer,
        // Without a ratio there is nothing to explain.
        text: if cost.is_nan() { stands } else { format!("{stands}: {because}") },
    })
}

fn reason(choice: &str, leader: &str) -> String {
    if choice == leader {
        return format!(
            "it sent by {leader} too; nothing is decided for each sample, so that the difference comes from the machine, or from the time \
             before all participants were known, in which it may take a group"
        );
    }
    format!(
        "it sent by {choice}, which its model of link time prefers; hosts that share their CPUs, as here, are not in the model \
         (`thalweg why` shows the sums)"
    )
}

/// The choice of `auto`, from the bytes that left the hosts.
fn choice(group: &Group<'_>) -> &'static str {
    let sent = |cell: &CellResult| {
        median(cell.runs.iter().filter_map(|run| Some(run.wire?.sent as f64)).collect::<Vec<f64>>())
    };
    let all: Option<Vec<f64>> = group.cells.iter().map(|cell| sent(cell)).collect();
    let Some(&[unicast, multicast, auto]) = all.as_deref() else { return "unknown ways" };
    let distance = |other: f64| (auto / other).ln().abs();
    match distance(unicast) < distance(multicast) {
        _ if (unicast / multicast).ln().abs() < ALIKE.ln() => "ways that cost the same",
        true => "unicast",
        false => "multicast",
    }
}

/// What is told of two ways between which nothing is to choose.
pub(super) const EQUIVALENT: &str = "equivalent";
/// How far behind the better one is near enough.
const NEAR: f64 = 1.05;
/// Numbers of bytes that tell nothing apart.
const ALIKE: f64 = 1.1;
