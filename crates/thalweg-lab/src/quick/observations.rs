//! What the data say, in sentences that are computed from them and say nothing they do not carry.

use crate::figures::{bit_rate, grouped, percent, rounded, size};
use crate::statistics::Summary;

use super::result::{Background, BurstCell};

/// How sending and echoing the longest bursts went, what decides their time, and how steady all were.
pub(super) fn high_frequency(cells: &[BurstCell]) -> Vec<String> {
    let longest = cells.iter().map(|cell| cell.samples).max();
    let mut out: Vec<String> = cells.iter().filter(|cell| Some(cell.samples) == longest).map(burst).collect();
    if let Some(sentence) = what_costs(cells) {
        out.push(sentence);
    }
    if let Some(sentence) = steadiness(cells) {
        out.push(sentence);
    }
    out
}

fn burst(cell: &BurstCell) -> String {
    format!(
        "{} samples of {} were sent, received in order and answered in {} ms on average: {} samples/s, {}.",
        grouped(cell.samples),
        size(cell.sample_bytes),
        rounded(cell.summary.mean),
        rounded(cell.samples_per_second()),
        bit_rate(cell.bits_per_second())
    )
}

/// Compares the smallest with the largest sample size at the largest count.
fn what_costs(cells: &[BurstCell]) -> Option<String> {
    let samples = cells.iter().map(|cell| cell.samples).max()?;
    let same_count = || cells.iter().filter(|cell| cell.samples == samples);
    let small = same_count().min_by_key(|cell| cell.sample_bytes)?;
    let large = same_count().max_by_key(|cell| cell.sample_bytes)?;
    if small.sample_bytes == large.sample_bytes {
        return None;
    }
    let bytes = large.sample_bytes as f64 / small.sample_bytes as f64;
    let time = large.summary.mean / small.summary.mean;
    if !differs(&small.summary, &large.summary) {
        let bytes = rounded_factor(bytes);
        return Some(format!(
            "{bytes} times the bytes made no difference beyond the scatter of the runs: the number of samples decides here."
        ));
    }
    // The share of the way from "size is free" to "time grows with the bytes".
    let share = (time - 1.0) / (bytes - 1.0);
    let verdict = match share {
        s if s < 0.15 => "the number of samples decides here, not their size",
        s if s > 0.7 => "the bytes decide here, not the number of samples",
        _ => "both the number of samples and their bytes count",
    };
    Some(format!("{} times the bytes took {} times as long: {verdict}.", rounded_factor(bytes), rounded_factor(time)))
}

fn steadiness(cells: &[BurstCell]) -> Option<String> {
    let by_spread =
        |a: &&BurstCell, b: &&BurstCell| a.summary.relative_deviation().total_cmp(&b.summary.relative_deviation());
    let steadiest = cells.iter().min_by(by_spread)?;
    let roughest = cells.iter().max_by(by_spread)?;
    if cells.len() < 2 {
        return None;
    }
    Some(format!(
        "The standard deviation lies between {} of the mean ({}) and {} ({}); the worst outlier took {} times the mean of its kind.",
        percent(steadiest.summary.relative_deviation()),
        steadiest.name(),
        percent(roughest.summary.relative_deviation()),
        roughest.name(),
        rounded_factor(cells.iter().map(|cell| cell.summary.max / cell.summary.mean).fold(0.0, f64::max))
    ))
}

/// How one large sample went, and whether splitting it helped.
pub(super) fn large(cells: &[BurstCell]) -> Vec<String> {
    let mut out = Vec::new();
    let Some(whole) = cells.iter().find(|cell| cell.samples == 1) else { return out };
    out.push(format!(
        "One sample of {} was sent, put together from its fragments and answered in {} ms on average ({} to {} ms): {}.",
        size(whole.sample_bytes),
        rounded(whole.summary.mean),
        rounded(whole.summary.min),
        rounded(whole.summary.max),
        bit_rate(whole.bits_per_second())
    ));
    let split = cells.iter().filter(|cell| cell.samples > 1);
    if let Some(best) = split.min_by(|a, b| a.summary.mean.total_cmp(&b.summary.mean)) {
        let change = best.summary.mean / whole.summary.mean - 1.0;
        out.push(match differs(&best.summary, &whole.summary) {
            false => format!("Splitting it ({}) made no difference beyond the scatter of the runs.", best.name()),
            true if change < 0.0 => format!("Split into {} it took {} less time.", best.name(), percent(-change)),
            true => format!(
                "Splitting did not help: even the best split, {}, took {} more time.",
                best.name(),
                percent(change)
            ),
        });
    }
    out
}

/// What a bulk transfer did to the topic beside it.
pub(super) fn background(result: &Background) -> Vec<String> {
    let mut out = vec![format!(
        "{} transfers of {} in samples of {} took {} ms each on average: {}.",
        grouped(result.transfers_ms.len() as u64),
        size(result.transfer_bytes()),
        size(result.sample_bytes),
        rounded(result.transfers.mean),
        bit_rate(result.bits_per_second())
    )];
    let (quiet, loaded) = (&result.quiet.latency, &result.loaded.latency);
    let quantiles = [("median", quiet.p50, loaded.p50), ("99th percentile", quiet.p99, loaded.p99)];
    for (name, quiet, loaded) in quantiles.into_iter().filter_map(|(name, a, b)| Some((name, a?, b?))) {
        out.push(format!(
            "The {name} of the {} Hz topic's latency {}: {} µs without, {} µs with the transfer.",
            rounded_factor(result.rate_hz),
            change(quiet, loaded),
            rounded(quiet),
            rounded(loaded)
        ));
    }
    let lost = result.quiet.lost + result.loaded.lost;
    let count = quiet.count + loaded.count;
    out.push(match lost {
        0 => format!("All {} samples of that topic arrived.", grouped(count)),
        _ => format!("{} of {} samples of that topic never arrived.", grouped(lost), grouped(count + lost)),
    });
    out
}

fn change(from: f64, to: f64) -> String {
    match to / from {
        factor if factor >= 1.1 => format!("grew {}-fold", rounded_factor(factor)),
        factor if factor <= 0.9 => format!("fell to {}", percent(factor)),
        _ => "stayed the same within 10 %".to_owned(),
    }
}

/// Whether two means differ by more than three standard errors: beyond what chance does to such runs.
pub(crate) fn differs(a: &Summary, b: &Summary) -> bool {
    let error = |s: &Summary| s.standard_deviation.powi(2) / s.count as f64;
    (a.mean - b.mean).abs() > 3.0 * (error(a) + error(b)).sqrt()
}

/// A factor without needless zeros: `4`, `1.07`.
pub(crate) fn rounded_factor(factor: f64) -> String {
    let text = rounded(factor);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
