//! Mean, extremes, deviation and percentiles of a handful of runs.

use serde::{Deserialize, Serialize};

use super::is_supported;

/// Summary of a set of runs, in the unit of the values it was computed from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of values.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Sample standard deviation (division by n − 1); zero for a single value.
    pub standard_deviation: f64,
    /// Median; missing below three values.
    pub p50: Option<f64>,
    /// 90th percentile; missing below 100 values.
    pub p90: Option<f64>,
    /// 99th percentile; missing below 1,000 values.
    pub p99: Option<f64>,
}

impl Summary {
    /// Summarizes `values`; `None` when there are none or one of them is not a finite number.
    pub fn of(values: &[f64]) -> Option<Summary> {
        if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let quantile = |q| is_supported(q, values.len() as u64).then(|| nearest_rank(&sorted, q));
        Some(Summary {
            count: values.len() as u64,
            mean,
            min: *sorted.first()?,
            max: *sorted.last()?,
            standard_deviation: if values.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 },
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
        })
    }

    /// Standard deviation as a share of the mean (0.05 = 5 %): how steady the runs were, whatever their unit.
    pub fn relative_deviation(&self) -> f64 {
        if self.mean == 0.0 { 0.0 } else { self.standard_deviation / self.mean }
    }
}

/// The smallest value that at least the share `q` of all values does not exceed: a value that was measured, never one in between.
fn nearest_rank(sorted: &[f64], q: f64) -> f64 {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}
