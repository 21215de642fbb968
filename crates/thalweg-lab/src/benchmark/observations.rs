//! What the data say, in sentences that are computed from them and say nothing they do not carry.

use crate::figures::{bit_rate, grouped, percent, rounded, size};
use crate::statistics::{Summary, Verdict};
use crate::study::{Judged, distinct};

use super::cells::Deed;
use super::presentation::pairs;
use super::result::{BenchmarkCellRuns, BenchmarkResult, TimedPair};

/// A cell with its bursts summarized.
pub(crate) type Timed<'a> = (&'a BenchmarkCellRuns, Summary);

/// Those that have bursts.
pub(crate) fn timed<'a>(cells: impl IntoIterator<Item = &'a BenchmarkCellRuns>) -> Vec<Timed<'a>> {
    cells.into_iter().filter_map(|cell| Some((cell, cell.times()?))).collect()
}

/// One contender's bursts: how the longest went, what decides their time, whether splitting helped, and how steady all were.
pub(super) fn bursts(result: &BenchmarkResult, cells: &[&BenchmarkCellRuns]) -> Vec<String> {
    let cells = timed(cells.iter().copied());
    let longest = cells.iter().map(|(cell, _)| cell.cell.deed.load().0).max().unwrap_or(0);
    let whole = cells.iter().find(|(cell, _)| cell.cell.deed.load().0 == 1);
    let mut out: Vec<String> = match whole {
        Some(whole) => unsplit(result, whole, &cells),
        None => cells.iter().filter(|(cell, _)| cell.cell.deed.load().0 == longest).map(burst).collect(),
    };
    if whole.is_none() {
        out.extend(what_costs(result, &cells, longest));
    }
    out.extend(steadiness(&cells));
    out
}

fn burst((cell, times): &Timed<'_>) -> String {
    let (samples, bytes) = cell.cell.deed.load();
    format!(
        "{} samples of {} were sent, received in order and answered in {} ms on average: {} samples/s, {}.",
        grouped(samples),
        size(bytes),
        rounded(times.mean),
        rounded(samples as f64 / (times.mean / 1e3)),
        bit_rate(cell.bits_per_second().unwrap_or_default())
    )
}

/// Compares the smallest with the largest sample size at the largest count.
fn what_costs(result: &BenchmarkResult, cells: &[Timed<'_>], samples: u64) -> Option<String> {
    let same_count = || cells.iter().filter(|(cell, _)| cell.cell.deed.load().0 == samples);
    let bytes_of = |(cell, _): &&Timed<'_>| cell.cell.deed.load().1;
    let (small, large) = (same_count().min_by_key(bytes_of)?, same_count().max_by_key(bytes_of)?);
    if bytes_of(&small) == bytes_of(&large) {
        return None;
    }
    let bytes = bytes_of(&large) as f64 / bytes_of(&small) as f64;
    let judged = result.judge_times(&[(small.0, large.0)]).remove(0);
    let time = judged.ratio.map_or(large.1.mean / small.1.mean, |ratio| ratio.estimate);
    // The share of the way from "size is free" to "time grows with the bytes".
    let verdict = match (judged.verdict, (time - 1.0) / (bytes - 1.0)) {
        (Verdict::Inconclusive, _) => return Some(format!("{}.", open(bytes, time, &judged))),
        (Verdict::Equivalent, _) => "the number of samples decides here, not their size",
        (_, share) if share < 0.15 => "the number of samples decides here, not their size",
        (_, share) if share > 0.7 => "the bytes decide here, not the number of samples",
        _ => "both the number of samples and their bytes count",
    };
    Some(format!("{} times the bytes took {} times as long: {verdict}.", rounded_factor(bytes), rounded_factor(time)))
}

fn open(bytes: f64, time: f64, judged: &Judged) -> String {
    format!(
        "{} times the bytes took {} times as long; whether by more than chance is open: {}",
        rounded_factor(bytes),
        rounded_factor(time),
        judged.why()
    )
}

/// How one large sample went, and whether splitting it helped.
fn unsplit(result: &BenchmarkResult, (cell, times): &Timed<'_>, all: &[Timed<'_>]) -> Vec<String> {
    let bytes = cell.cell.deed.load().1;
    let mut out = vec![format!(
        "One sample of {} was sent, put together from its fragments and answered in {} ms on average ({} to {} ms): {}.",
        size(bytes),
        rounded(times.mean),
        rounded(times.min),
        rounded(times.max),
        bit_rate(cell.bits_per_second().unwrap_or_default())
    )];
    let split: Vec<&BenchmarkCellRuns> =
        all.iter().map(|(other, _)| *other).filter(|other| other.cell.deed.load().0 > 1).collect();
    if let Some((best, judged)) = fastest(result, cell, &split) {
        let (name, change) = (best.cell.deed, judged.ratio.map_or(0.0, |ratio| ratio.estimate - 1.0));
        out.push(match judged.verdict {
            Verdict::Better => format!("Split into {name} it took {} less time.", percent(-change)),
            Verdict::Equivalent => format!("Splitting it ({name}) made no difference."),
            Verdict::Worse => {
                format!("Splitting did not help: even the best split, {name}, took {} more time.", percent(change))
            }
            Verdict::Inconclusive => format!("Whether splitting it ({name}) helped is open: {}.", judged.why()),
        });
    }
    out
}

/// The one of these that took the smallest share of the time of `baseline`, with what the runs tell of it; those that were surely faster
/// than `baseline` come first.
pub(crate) fn fastest<'a>(
    result: &BenchmarkResult,
    baseline: &'a BenchmarkCellRuns,
    others: &[&'a BenchmarkCellRuns],
) -> Option<(&'a BenchmarkCellRuns, Judged)> {
    let pairs: Vec<TimedPair<'_>> = others.iter().map(|other| (baseline, *other)).collect();
    let mean = |cell: &BenchmarkCellRuns| cell.times().map_or(f64::INFINITY, |times| times.mean);
    let share = |(cell, judged): &(&BenchmarkCellRuns, Judged)| {
        judged.ratio.map_or_else(|| mean(cell) / mean(baseline), |ratio| ratio.estimate)
    };
    let all = others.iter().copied().zip(result.judge_times(&pairs));
    let is_open = |(_, judged): &(&BenchmarkCellRuns, Judged)| judged.verdict != Verdict::Better;
    all.min_by(|one, other| is_open(one).cmp(&is_open(other)).then(share(one).total_cmp(&share(other))))
}

fn steadiness(cells: &[Timed<'_>]) -> Option<String> {
    let by_spread = |a: &&Timed<'_>, b: &&Timed<'_>| a.1.relative_deviation().total_cmp(&b.1.relative_deviation());
    let (steadiest, roughest) = (cells.iter().min_by(by_spread)?, cells.iter().max_by(by_spread)?);
    if cells.len() < 2 {
        return None;
    }
    Some(format!(
        "The standard deviation lies between {} of the mean ({}) and {} ({}); the worst outlier took {} times the mean of its kind.",
        percent(steadiest.1.relative_deviation()),
        steadiest.0.cell.deed,
        percent(roughest.1.relative_deviation()),
        roughest.0.cell.deed,
        rounded_factor(cells.iter().map(|(_, times)| times.max / times.mean).fold(0.0, f64::max))
    ))
}

/// Several contenders: the fastest of Thalweg's against the fastest peer, packing by the application left out, because no peer was offered it.
pub(super) fn rivals(result: &BenchmarkResult, cells: &[&BenchmarkCellRuns]) -> Vec<String> {
    let is_packed = |name: &str| result.plan.contender(name).is_some_and(|one| one.wrap_bytes > 0);
    let cells: Vec<Timed<'_>> =
        timed(cells.iter().copied()).into_iter().filter(|(cell, _)| !is_packed(&cell.cell.contender)).collect();
    let fastest = |kind: Deed, ours: bool| {
        let of =
            cells.iter().filter(|(cell, _)| cell.cell.deed == kind && result.is_ours(&cell.cell.contender) == ours);
        of.min_by(|a, b| a.1.mean.total_cmp(&b.1.mean))
    };
    let kinds = distinct(cells.iter().map(|(cell, _)| cell.cell.deed));
    let pair = |kind: &Deed| {
        let (ours, peer) = (fastest(*kind, true)?, fastest(*kind, false)?);
        Some((peer.1.mean / ours.1.mean, peer.0))
    };
    let pairs: Vec<(f64, &BenchmarkCellRuns)> = kinds.iter().filter_map(pair).collect();
    let Some((least, closest)) = pairs.iter().min_by(|a, b| a.0.total_cmp(&b.0)) else { return Vec::new() };
    let most = pairs.iter().map(|(factor, _)| *factor).fold(0.0, f64::max);
    let ahead = pairs.iter().filter(|(factor, _)| *factor > 1.0).count();
    let left_out = result.plan.contenders.iter().any(|one| one.wrap_bytes > 0);
    let left_out =
        if left_out { "Wrapping by the application, which no peer was offered, left out: the" } else { "The" };
    vec![format!(
        "{left_out} mean of the fastest peer was {} to {} times that of the fastest of Thalweg's, which was ahead in {ahead} of {} kinds. \
         The closest was {} with {}.",
        rounded_factor(*least),
        rounded_factor(most),
        pairs.len(),
        closest.cell.contender,
        closest.cell.deed
    )]
}

/// What transfers did to the topic beside them.
pub(super) fn beside(cells: &[&BenchmarkCellRuns]) -> Vec<String> {
    let pairs = pairs(cells);
    let mut out = Vec::new();
    for (quiet, loaded) in &pairs {
        let whose = if pairs.len() > 1 { format!("{}: ", loaded.cell.contender) } else { String::new() };
        let (samples, bytes) = loaded.cell.deed.load();
        if let Some(times) = loaded.times() {
            out.push(format!(
                "{whose}{} transfers of {} in samples of {} took {} ms each on average: {}.",
                grouped(times.count),
                size(samples * bytes),
                size(bytes),
                rounded(times.mean),
                bit_rate(loaded.bits_per_second().unwrap_or_default())
            ));
        }
        let both = [quiet, loaded].map(|cell| Summary::of(&cell.latencies_us()));
        let [Some(without), Some(with)] = both else { continue };
        let quantiles = [("median", without.p50, with.p50), ("99th percentile", without.p99, with.p99)];
        for (name, without, with) in quantiles.into_iter().filter_map(|(name, a, b)| Some((name, a?, b?))) {
            out.push(format!(
                "{whose}The {name} of the 100 Hz topic's latency {}: {} µs without, {} µs with the transfer.",
                change(without, with),
                rounded(without),
                rounded(with)
            ));
        }
        let lost: u64 = [quiet, loaded].iter().flat_map(|cell| &cell.runs).map(|run| run.lost).sum();
        let count = without.count + with.count;
        out.push(match lost {
            0 => format!("{whose}All {} samples of that topic arrived.", grouped(count)),
            _ => format!("{whose}{} of {} samples of that topic never arrived.", grouped(lost), grouped(count + lost)),
        });
    }
    out
}

fn change(from: f64, to: f64) -> String {
    match to / from {
        factor if factor >= 1.1 => format!("grew {}-fold", rounded_factor(factor)),
        factor if factor <= 0.9 => format!("fell to {}", percent(factor)),
        _ => "stayed the same within 10 %".to_owned(),
    }
}

/// A factor without needless zeros: `4`, `1.07`.
pub(crate) fn rounded_factor(factor: f64) -> String {
    let text = rounded(factor);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
