//! Latencies of any number of samples in fixed memory.

use std::time::Duration;

use hdrhistogram::Histogram;

/// A distribution of latencies: constant memory and time for each sample, three significant digits, extremes and mean exact.
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u64>,
    min: u64,
    max: u64,
    sum: u128,
}

impl Latencies {
    /// An empty distribution, all its memory (some 200 kB) allocated.
    pub fn new() -> Latencies {
        let histogram =
            Histogram::new_with_bounds(1, LONGEST_NANOS, 3).expect("the bounds are constants that the crate accepts");
        Latencies { histogram, min: u64::MAX, max: 0, sum: 0 }
    }

    /// Adds one latency; those beyond ten minutes count as ten minutes in the percentiles.
    pub fn record(&mut self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.histogram.saturating_record(nanos.clamp(1, LONGEST_NANOS));
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
        self.sum += u128::from(nanos);
    }

    /// Adds all latencies of another distribution.
    pub fn add(&mut self, other: &Latencies) {
        self.histogram.add(&other.histogram).expect("both have the same bounds");
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
    }

    /// Number of latencies recorded.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Shortest latency; zero when there is none.
    pub fn min(&self) -> Duration {
        Duration::from_nanos(if self.count() == 0 { 0 } else { self.min })
    }

    /// Longest latency; zero when there is none.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// Arithmetic mean; zero when there is no latency.
    pub fn mean(&self) -> Duration {
        let mean = self.sum / u128::from(self.count().max(1));
        Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The latency that the share `q` of all does not exceed (0.5 = median); `None` when too few were recorded to tell
    /// (see [`is_supported`]).
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        is_supported(q, self.count()).then(|| {
            let nanos = self.histogram.value_at_quantile(q);
            // A bucket's upper edge may lie beyond the longest latency that was seen.
            Duration::from_nanos(nanos.clamp(self.min, self.max))
        })
    }

    /// The latency in microseconds that the share `q` of `due` things does not exceed, where `due` also counts those that never came:
    /// infinite where fewer came, `None` when too few were due to tell (see [`is_supported`]).
    pub fn quantile_of(&self, q: f64, due: u64) -> Option<f64> {
        let rank = ((q * due as f64).ceil() as u64).max(1);
        is_supported(q, due).then(|| match rank > self.count() {
            true => f64::INFINITY,
            false => {
                // Half a place short of the rank, so that rounding does not lead to the next one.
                let nanos = self.histogram.value_at_quantile((rank as f64 - 0.5) / self.count() as f64);
                nanos.clamp(self.min, self.max) as f64 / 1e3
            }
        })
    }
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies::new()
    }
}

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

/// Ten minutes: a latency beyond it is a stall that no quantile describes; histograms count it as this long.
pub const LONGEST_NANOS: u64 = 600_000_000_000;
