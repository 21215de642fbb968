//! Figures computed from measurements: mean and deviation of a few runs, percentiles of many samples, shares of a whole.

mod buckets;
mod distribution;
pub(crate) mod endless;
mod inference;
mod latencies;
mod settling;
mod summary;

pub use buckets::Buckets;
pub use distribution::{DistributionPoint, distribution};
pub use inference::{
    CONFIDENCE, Interval, Middle, RUNS_MIN, Verdict, below, median, median_interval, middle, runs_needed, verdicts,
};
pub use latencies::Latencies;
pub use settling::unsettled;
pub use summary::Summary;

/// How many values must lie beyond a quantile before it is shown: with fewer, the figure describes single accidents.
pub const TAIL_MIN: f64 = 10.0;

/// Whether `count` values carry the quantile `q`: at least [`TAIL_MIN`] of them lie beyond it, or it is the median of at least three.
///
/// So p90 needs 100 values, p99 1,000 and p99.9 10,000.
pub fn is_supported(q: f64, count: u64) -> bool {
    if q <= 0.5 {
        return count >= 3;
    }
    // The small allowance absorbs that 1 − 0.99 is not exactly 0.01 in binary.
    count as f64 * (1.0 - q) >= TAIL_MIN - 1e-6
}

/// Jain's fairness index (Σx)²/(n·Σx²): 1 when all values are the same, 1/n when one has all; 1 for no values or zeros alone.
pub fn jain(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum, squares) = values
        .fold((0.0, 0.0, 0.0), |(count, sum, squares), value| (count + 1.0, sum + value, squares + value * value));
    if squares == 0.0 { 1.0 } else { sum * sum / (count * squares) }
}

#[cfg(test)]
mod coverage;
#[cfg(test)]
mod tests;
