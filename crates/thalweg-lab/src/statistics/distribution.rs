//! The distribution of latencies over several runs.

use super::buckets::bucket_of;
use super::{Buckets, median, median_interval};

/// One place of a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DistributionPoint {
    /// Latency in microseconds.
    pub us: f64,
    /// Share of the samples due that arrived within it (0 to 1), the median over the runs.
    pub share: f64,
    /// The interval of that share; missing below [`RUNS_MIN`](super::RUNS_MIN) runs.
    pub interval: Option<(f64, f64)>,
}

/// The distribution of the latencies of all runs at up to `points` places between the shortest and the longest. Where samples never
/// arrived it ends below 1.
pub fn distribution(runs: &[Buckets], points: usize) -> Vec<DistributionPoint> {
    let mut all = Buckets::default();
    runs.iter().for_each(|run| all.add(run));
    if all.count() == 0 {
        return Vec::new();
    }
    let points = points.max(1) as u64;
    let mut places: Vec<f64> =
        (0..=points).map(|point| all.at_rank((all.count() * point).div_ceil(points).max(1))).collect();
    places.dedup();
    let shares: Vec<Vec<f64>> = runs.iter().map(|run| shares(run, &places)).collect();
    let point = |(index, us): (usize, f64)| {
        let own: Vec<f64> = shares.iter().map(|run| run[index]).collect();
        let interval = median_interval(&own).map(|interval| (interval.low, interval.high));
        Some(DistributionPoint { us, share: median(&own)?, interval })
    };
    places.iter().copied().enumerate().filter_map(point).collect()
}

/// Which share of what was due arrived within each of these latencies in microseconds, which rise.
fn shares(run: &Buckets, places: &[f64]) -> Vec<f64> {
    let mut buckets = run.iter().peekable();
    let mut below = 0;
    let due = run.due().max(1) as f64;
    let share = |us: &f64| {
        // The longest latency of all is exact and may lie within its bucket.
        let last = bucket_of(*us);
        while let Some((_, count)) = buckets.next_if(|(edge, _)| *edge <= last) {
            below += count;
        }
        below as f64 / due
    };
    places.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_base::rng::Rng;

    /// Runs of 400 latencies, each run with a level of its own.
    fn runs(count: usize, random: &mut Rng) -> Vec<Buckets> {
        let run = |_| {
            let level = 1_000_000 + random.below(400_000);
            let mut buckets = Buckets::default();
            (0..400).for_each(|_| buckets.record(level + random.below(200_000)));
            buckets
        };
        (0..count).map(run).collect()
    }

    #[test]
    fn a_distribution_rises_within_its_band_to_what_arrived() {
        let mut all = runs(9, &mut Rng::new(5));
        let points = distribution(&all, 40);
        assert!((30..=41).contains(&points.len()), "{}", points.len());
        assert!(points.windows(2).all(|pair| pair[0].us < pair[1].us && pair[0].share <= pair[1].share));
        assert_eq!(points.last().map(|point| (point.share, point.interval)), Some((1.0, Some((1.0, 1.0)))));
        let middle = &points[points.len() / 2];
        let (low, high) = middle.interval.expect("nine runs");
        assert!(low <= middle.share && middle.share <= high && high - low > 0.1, "runs differ: {middle:?}");
        assert!(distribution(&all[..7], 40).iter().all(|point| point.interval.is_none()));
        assert!(distribution(&[], 40).is_empty());
        all.iter_mut().for_each(|run| run.record_never(100));
        assert_eq!(distribution(&all, 40).last().map(|point| point.share), Some(0.8));
    }

    #[test]
    fn the_longest_latency_counts_wherever_in_its_bucket_it_lies() {
        // The bucket of the second one reaches from 1,048,576 to 1,049,599.
        let mut run = Buckets::default();
        [900_000, 1_048_700].into_iter().for_each(|nanos| run.record(nanos));
        let points = distribution(&[run], 10);
        assert_eq!(points.last().map(|point| (point.us, point.share)), Some((1_048.7, 1.0)), "{points:?}");
    }
}
