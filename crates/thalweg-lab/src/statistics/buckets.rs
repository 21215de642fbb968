//! Latencies as the buckets of an HdrHistogram that hold something, and how many samples have none because they never arrived.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use hdrhistogram::Histogram;
use thalweg_lab_station::LONGEST_NANOS;

use super::is_supported;

/// A distribution of latencies that takes memory for what occurs only: one for each pair and second is affordable, and any two can be
/// added. Three significant digits; extremes and mean exact. A sample that never arrived counts in every quantile as infinitely late: to
/// lose samples makes nothing faster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buckets {
    /// Number of values by their bucket's upper edge in nanoseconds.
    counts: BTreeMap<u64, u64>,
    count: u64,
    /// Samples that never arrived.
    never: u64,
    min: u64,
    max: u64,
    sum: u128,
}

impl Buckets {
    /// Adds one latency; those beyond ten minutes count as ten minutes in the quantiles.
    pub fn record(&mut self, nanos: u64) {
        *self.counts.entry(GRID.highest_equivalent(nanos.clamp(1, LONGEST_NANOS))).or_default() += 1;
        self.min = if self.count == 0 { nanos } else { self.min.min(nanos) };
        self.max = self.max.max(nanos);
        self.count += 1;
        self.sum += u128::from(nanos);
    }

    /// Adds samples that never arrived.
    pub fn record_never(&mut self, count: u64) {
        self.never += count;
    }

    /// Adds so many latencies of one bucket, known by its upper edge: what [`Buckets::iter`] gave.
    pub fn add_bucket(&mut self, edge: u64, count: u64) {
        if count == 0 {
            return;
        }
        *self.counts.entry(edge).or_default() += count;
        self.min = if self.count == 0 { edge } else { self.min.min(edge) };
        self.max = self.max.max(edge);
        self.count += count;
        self.sum += u128::from(edge) * u128::from(count);
    }

    /// Adds all of another distribution.
    pub fn add(&mut self, other: &Buckets) {
        self.never += other.never;
        if other.count == 0 {
            return;
        }
        other.counts.iter().for_each(|(edge, count)| *self.counts.entry(*edge).or_default() += count);
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
    }

    /// Samples that were due: those with a latency and those that never arrived.
    pub fn due(&self) -> u64 {
        self.count + self.never
    }

    /// Samples with a latency.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Samples that never arrived.
    pub fn never(&self) -> u64 {
        self.never
    }

    /// Shortest latency; zero when there is none.
    pub fn min(&self) -> Duration {
        Duration::from_nanos(self.min)
    }

    /// Longest latency; zero when there is none.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// Arithmetic mean; zero when there is none.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.sum / u128::from(self.count.max(1))).unwrap_or(u64::MAX))
    }

    /// The latency in microseconds that the share `q` of the samples due does not exceed, infinite where fewer arrived; `None` when too
    /// few were due to tell (see [`is_supported`]).
    pub fn quantile(&self, q: f64) -> Option<f64> {
        is_supported(q, self.due()).then(|| self.at_rank((q * self.due() as f64).ceil() as u64))
    }

    /// The latency in microseconds with so many samples up to it, itself included: from 1, the shortest, to the count, the longest;
    /// infinite beyond.
    pub fn at_rank(&self, rank: u64) -> f64 {
        if rank > self.count {
            return f64::INFINITY;
        }
        let mut below = 0;
        let edge = self.counts.iter().find_map(|(edge, count)| {
            below += count;
            (below >= rank).then_some(*edge)
        });
        // A bucket's upper edge may lie beyond the longest latency that was seen.
        edge.unwrap_or(self.max).clamp(self.min, self.max) as f64 / 1e3
    }

    /// Latencies in microseconds at even distances in rank, which stand for the distribution in a picture: infinite for samples that never
    /// arrived.
    pub fn steps(&self) -> Vec<f64> {
        let points = self.due().min(STEPS_MAX);
        let rank = |index: u64| ((index + 1) as f64 / points as f64 * self.due() as f64).round() as u64;
        (0..points).map(|index| self.at_rank(rank(index).max(1))).collect()
    }

    /// Upper edge in nanoseconds and number of latencies of each bucket, shortest first.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts.iter().map(|(edge, count)| (*edge, *count))
    }
}

/// Upper edge in nanoseconds of the bucket that holds a latency in microseconds.
pub(super) fn bucket_of(us: f64) -> u64 {
    GRID.highest_equivalent(((us * 1e3).round() as u64).clamp(1, LONGEST_NANOS))
}

/// The borders of all buckets.
static GRID: LazyLock<Histogram<u64>> = LazyLock::new(|| {
    Histogram::new_with_bounds(1, LONGEST_NANOS, 3).expect("the bounds are constants that the crate accepts")
});

/// Most points of a curve: more only make a page larger.
const STEPS_MAX: u64 = 300;
