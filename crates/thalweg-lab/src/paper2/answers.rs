//! The answers: the better way in each cell, and whether `auto` keeps up.

use super::groups::{Group, Measure, P50, P99, Side, THROUGHPUT};
use super::result::{AutoCheck, PartResult, Winner};
use crate::figures::percent;
use crate::statistics::{Buckets, Interval, median, paired_difference};
use crate::study::{CellResult, log_ratios};

/// The quantities compared in each group.
const MEASURES: [&Measure; 3] = [&P50, &P99, &THROUGHPUT];

/// Unicast against multicast, group by group.
pub(super) fn winners(part: &PartResult) -> Vec<Winner> {
    let of = |group: &Group<'_>| {
        let [unicast, multicast, _] = group.cells;
        let winner = |measure: &&Measure| {
            let ratio = ratio(measure, unicast, multicast);
            Winner {
                part: part.name.clone(),
                group: group.name(),
                quantity: measure.name.to_owned(),
                medians: group.cells.map(|cell| median_of(measure, cell)),
                ratio,
                verdict: judge(measure, ratio),
            }
        };
        let mut out: Vec<Winner> = MEASURES.iter().map(winner).collect();
        out.extend(group.latencies.map(|[unicast, multicast, _]| Winner {
            part: part.name.clone(),
            group: group.name(),
            quantity: "whole distribution of latency".to_owned(),
            medians: [None; 3],
            ratio: None,
            verdict: dominance(unicast, multicast).to_owned(),
        }));
        out
    };
    part.groups().iter().flat_map(of).collect()
}

/// Whether `auto` is within five per cent of the better of the two, group by group.
pub(super) fn checks(part: &PartResult) -> Vec<AutoCheck> {
    let of = |group: &Group<'_>| {
        let check = |measure: &&Measure| check(part, group, measure);
        MEASURES.iter().filter_map(check).collect::<Vec<_>>()
    };
    part.groups().iter().flat_map(of).collect()
}

fn check(part: &PartResult, group: &Group<'_>, measure: &Measure) -> Option<AutoCheck> {
    let [unicast, multicast, auto] = group.cells;
    let (one, other) = (median_of(measure, unicast)?, median_of(measure, multicast)?);
    let multicast_leads = if measure.more_is == Side::Worse { other < one } else { other > one };
    let (leader, better) = if multicast_leads { ("multicast", multicast) } else { ("unicast", unicast) };
    let ratio = ratio(measure, better, auto);
    let estimate = ratio.map_or_else(
        || Some(median_of(measure, auto)? / if multicast_leads { other } else { one }),
        |ratio| Some(ratio.estimate),
    )?;
    // Above one is worse from here on.
    let cost = |value: f64| if measure.more_is == Side::Worse { value } else { 1.0 / value };
    let holds = cost(estimate) <= NEAR;
    let choice = choice(group);
    let by = percent((cost(estimate) - 1.0).abs());
    let text = match ratio.map(|ratio| cost(ratio.low).min(cost(ratio.high))) {
        _ if estimate == 1.0 => format!("auto is level with {leader}"),
        _ if cost(estimate) < 1.0 => format!("auto is ahead of {leader} by {by}"),
        _ if holds => format!("auto is within 5 % of {leader}: {by} behind"),
        None => format!("auto is {by} behind {leader}; fewer than six rounds do not tell whether that is chance"),
        Some(least) if least <= NEAR => {
            format!(
                "auto is {by} behind {leader}, and the interval begins at {least:.3}: runs lie too far apart to tell"
            )
        }
        Some(_) => format!("auto is {by} behind {leader}: {}", reason(choice, leader)),
    };
    Some(AutoCheck {
        part: part.name.clone(),
        group: group.name(),
        quantity: measure.name.to_owned(),
        choice: choice.to_owned(),
        ratio,
        holds,
        text,
    })
}

fn reason(choice: &str, leader: &str) -> String {
    if choice == leader {
        return format!(
            "it sent by {leader} too, so that the difference is the price of deciding, or that of the first samples"
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
    let [Some(unicast), Some(multicast), Some(auto)] = group.cells.map(sent) else { return "unknown ways" };
    let distance = |other: f64| (auto / other).ln().abs();
    match distance(unicast) < distance(multicast) {
        _ if (unicast / multicast).ln().abs() < ALIKE.ln() => "ways that cost the same",
        true => "unicast",
        false => "multicast",
    }
}

fn judge(measure: &Measure, ratio: Option<Interval>) -> String {
    let Some(ratio) = ratio else { return "open: fewer than six rounds".to_owned() };
    let (low, high) =
        if measure.more_is == Side::Worse { (ratio.low, ratio.high) } else { (1.0 / ratio.high, 1.0 / ratio.low) };
    let word = match () {
        () if low > 1.0 / measure.margin && high < measure.margin => "equivalent",
        () if high < 1.0 => "multicast",
        () if low > 1.0 => "unicast",
        () => "open: the runs do not tell",
    };
    word.to_owned()
}

/// Stochastic dominance: the contender whose distribution function lies above the other's everywhere, within the precision of the buckets.
fn dominance(unicast: &Buckets, multicast: &Buckets) -> &'static str {
    let ratios = (1..100).filter_map(|percent| {
        let q = f64::from(percent) / 100.0;
        Some(multicast.quantile(q)? / unicast.quantile(q)?.max(1e-3))
    });
    let (mut is_faster, mut is_slower) = (false, false);
    for ratio in ratios {
        is_faster |= ratio < 1.0 / BUCKET;
        is_slower |= ratio > BUCKET;
    }
    match (is_faster, is_slower) {
        (true, false) => "multicast",
        (false, true) => "unicast",
        (true, true) => "mixed: the curves cross",
        (false, false) => "equivalent",
    }
}

/// Subject by baseline from runs of the same round.
fn ratio(measure: &Measure, baseline: &CellResult, subject: &CellResult) -> Option<Interval> {
    let Interval { estimate, low, high } = paired_difference(&log_ratios(measure.of, baseline, subject))?;
    Some(Interval { estimate: estimate.exp(), low: low.exp(), high: high.exp() })
}

/// The median over the runs, where every run has a figure.
pub(super) fn median_of(measure: &Measure, cell: &CellResult) -> Option<f64> {
    cell.runs.iter().map(measure.of).collect::<Option<Vec<f64>>>().and_then(median)
}

/// How far behind the better one is near enough.
pub(super) const NEAR: f64 = 1.05;
/// Numbers of bytes that tell nothing apart.
const ALIKE: f64 = 1.1;
/// Two latencies closer than this lie in one bucket or in the next.
const BUCKET: f64 = 1.01;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn buckets(micros: impl Iterator<Item = u64>) -> Buckets {
        let mut out = Buckets::default();
        micros.for_each(|micros| out.record(Duration::from_micros(micros).as_nanos() as u64));
        out
    }

    #[test]
    fn dominance_is_everywhere_or_not_at_all() {
        let even = buckets(100..10_000);
        assert_eq!(dominance(&even, &buckets((100..10_000).map(|one| one / 2))), "multicast");
        assert_eq!(dominance(&even, &buckets((100..10_000).map(|one| one * 2))), "unicast");
        assert_eq!(dominance(&even, &buckets(2_000..6_000)), "mixed: the curves cross");
        assert_eq!(dominance(&even, &even.clone()), "equivalent");
    }

    #[track_caller]
    fn check_verdict(measure: &Measure, (low, high): (f64, f64), expect: &str) {
        let estimate = (low * high).sqrt();
        assert_eq!(judge(measure, Some(Interval { estimate, low, high })), expect);
    }

    #[test]
    fn less_latency_and_more_throughput_win() {
        check_verdict(&P50, (0.8, 0.9), "multicast");
        check_verdict(&P50, (1.1, 1.2), "unicast");
        check_verdict(&THROUGHPUT, (0.8, 0.9), "unicast");
        check_verdict(&THROUGHPUT, (1.1, 1.2), "multicast");
        check_verdict(&P50, (0.99, 1.02), "equivalent");
        check_verdict(&P50, (0.8, 1.2), "open: the runs do not tell");
        assert_eq!(judge(&P50, None), "open: fewer than six rounds");
    }
}
