//! Figures computed from measurements: mean and deviation of a few runs, percentiles of many samples, shares of a whole.

mod buckets;
mod distribution;
pub(crate) mod endless;
mod inference;
mod settling;
mod summary;

pub use buckets::Buckets;
pub use distribution::{DistributionPoint, distribution};
pub use inference::{
    Interval, Middle, RUNS_MIN, Verdict, below, median, median_interval, middle, runs_needed, sides, verdicts,
};
pub use settling::unsettled;
pub use summary::Summary;
pub use thalweg_lab_station::{Latencies, is_supported};

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
