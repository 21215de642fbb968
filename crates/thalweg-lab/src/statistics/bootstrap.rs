//! How sure a quantile over several runs is, when samples of one run resemble each other.

use super::paired::CONFIDENCE;
use super::{Buckets, Interval, is_supported};
use crate::random::Random;

/// A quantile of the latencies of all runs in microseconds, with the interval between the percentiles of a bootstrap of two levels: runs
/// are drawn with replacement, and within each the seconds. `None` below five runs, or when too few latencies carry the quantile.
pub fn quantile_interval(runs: &[Vec<Buckets>], q: f64, seed: u64) -> Option<Interval> {
    let table = Table::of(runs);
    if runs.len() < RUNS_MIN || !is_supported(q, table.count()) {
        return None;
    }
    let all: Vec<(usize, usize)> = table
        .runs
        .iter()
        .enumerate()
        .flat_map(|(run, seconds)| (0..seconds.len()).map(move |second| (run, second)))
        .collect();
    let estimate = table.quantile(&all, q)?;
    let mut random = Random::new(seed ^ q.to_bits());
    let mut drawn: Vec<f64> = (0..RESAMPLES).filter_map(|_| table.quantile(&table.draw(&mut random), q)).collect();
    drawn.sort_by(f64::total_cmp);
    let at = |share: f64| drawn.get((share * (drawn.len().checked_sub(1)? as f64)).round() as usize).copied();
    let tail = (1.0 - CONFIDENCE) / 2.0;
    Some(Interval { estimate, low: at(tail)?, high: at(1.0 - tail)? })
}

/// The same latencies with short numbers for the buckets.
struct Table {
    /// Upper edges in nanoseconds.
    edges: Vec<u64>,
    /// For each run and second the places and counts of its buckets.
    runs: Vec<Vec<Vec<(usize, u64)>>>,
}

impl Table {
    fn of(runs: &[Vec<Buckets>]) -> Table {
        let mut edges: Vec<u64> = runs.iter().flatten().flat_map(Buckets::iter).map(|(edge, _)| edge).collect();
        edges.sort_unstable();
        edges.dedup();
        let place = |(edge, count): (u64, u64)| (edges.partition_point(|other| *other < edge), count);
        let second = |buckets: &Buckets| buckets.iter().map(place).collect();
        let runs = runs.iter().map(|seconds| seconds.iter().map(second).collect()).collect();
        Table { edges, runs }
    }

    fn count(&self) -> u64 {
        self.runs.iter().flatten().flatten().map(|(_, count)| count).sum()
    }

    /// As many runs as there are, and in each as many seconds as it has, by chance.
    fn draw(&self, random: &mut Random) -> Vec<(usize, usize)> {
        let mut out = Vec::new();
        for _ in 0..self.runs.len() {
            let run = random.below(self.runs.len());
            let seconds = self.runs[run].len();
            out.extend((0..seconds).map(|_| (run, random.below(seconds))));
        }
        out
    }

    /// The quantile over these seconds in microseconds; `None` when they hold nothing.
    fn quantile(&self, seconds: &[(usize, usize)], q: f64) -> Option<f64> {
        let mut counts = vec![0_u64; self.edges.len()];
        for (run, second) in seconds {
            self.runs[*run][*second].iter().for_each(|(place, count)| counts[*place] += count);
        }
        let rank = (q * counts.iter().sum::<u64>() as f64).ceil() as u64;
        let mut below = 0;
        let found = counts.iter().position(|count| {
            below += count;
            below >= rank.max(1)
        })?;
        Some(self.edges[found] as f64 / 1e3)
    }
}

/// Fewer runs tell nothing about how runs differ.
const RUNS_MIN: usize = 5;
const RESAMPLES: usize = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of four seconds with 100 latencies each; every run has a level of its own, and every second too.
    fn runs(count: usize, random: &mut Random) -> Vec<Vec<Buckets>> {
        (0..count)
            .map(|_| {
                let level = 1_000_000 + random.below(400_000) as u64;
                (0..4)
                    .map(|_| {
                        let level = level + random.below(100_000) as u64;
                        let mut buckets = Buckets::default();
                        (0..100).for_each(|_| buckets.record(level + random.below(200_000) as u64));
                        buckets
                    })
                    .collect()
            })
            .collect()
    }

    #[test]
    fn intervals_grow_with_the_spread_between_runs_and_hold_the_truth() {
        let mut random = Random::new(3);
        // The median of a sum of three even values is the sum of their middles.
        let truth = 1_000.0 + 200.0 + 50.0 + 100.0;
        let (mut held, trials) = (0, 60);
        for trial in 0..trials {
            let interval = quantile_interval(&runs(12, &mut random), 0.5, trial).expect("enough");
            held += u32::from(interval.low <= truth && truth <= interval.high);
            assert!(interval.low <= interval.estimate && interval.estimate <= interval.high);
            assert!(interval.high - interval.low > 40.0, "samples of a run are not independent: {interval:?}");
        }
        assert!((50..=60).contains(&held), "{held} of {trials}");
    }

    #[test]
    fn the_seed_repeats_an_interval_and_few_runs_have_none() {
        let all = runs(6, &mut Random::new(4));
        assert_eq!(quantile_interval(&all, 0.5, 9), quantile_interval(&all, 0.5, 9));
        assert_ne!(quantile_interval(&all, 0.5, 9), quantile_interval(&all, 0.5, 10));
        assert_eq!(quantile_interval(&all[..4], 0.5, 9), None);
        assert_eq!(quantile_interval(&all, 0.999, 9), None, "2,400 latencies carry no p99.9");
        assert_eq!(quantile_interval(&[], 0.5, 9), None);
    }
}
