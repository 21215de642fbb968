//! How sure a quantile over several runs is, when samples of one run resemble each other.

use super::{Buckets, CONFIDENCE, Interval, is_supported};
use crate::random::Random;

/// A quantile of the latencies of all runs in microseconds, with the interval between the percentiles of a bootstrap of two levels: runs
/// are drawn with replacement, and within each the seconds. `None` below five runs, or when too few latencies carry the quantile.
pub fn quantile_interval(runs: &[Vec<Buckets>], q: f64, seed: u64) -> Option<Interval> {
    let table = Table::of(runs);
    if runs.len() < RUNS_MIN || !is_supported(q, table.count()) {
        return None;
    }
    let estimate = table.quantile(&table.all(), q)?;
    let mut random = Random::new(seed ^ q.to_bits());
    let (low, high) =
        middle_part((0..RESAMPLES).filter_map(|_| table.quantile(&table.draw(&mut random), q)).collect())?;
    Some(Interval { estimate, low, high })
}

/// One place of a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DistributionPoint {
    /// Latency in microseconds.
    pub us: f64,
    /// Share of the latencies up to it (0 to 1).
    pub share: f64,
    /// The interval of that share; missing below five runs.
    pub interval: Option<(f64, f64)>,
}

/// The distribution of the latencies of all runs at up to `points` places between the shortest and the longest, with the intervals of its
/// shares from the bootstrap of [`quantile_interval`].
pub fn distribution(runs: &[Vec<Buckets>], points: usize, seed: u64) -> Vec<DistributionPoint> {
    let table = Table::of(runs);
    let total = table.count();
    if total == 0 {
        return Vec::new();
    }
    let cumulated = table.cumulated(&table.all());
    let rank = |point: usize| (total * point as u64).div_ceil(points.max(1) as u64).max(1);
    let mut places: Vec<usize> =
        (0..=points.max(1)).map(|point| cumulated.partition_point(|below| *below < rank(point))).collect();
    places.dedup();
    let shares = |cumulated: &[u64]| -> Vec<f64> {
        let total = cumulated.last().copied().unwrap_or(0).max(1) as f64;
        places.iter().map(|place| cumulated[*place] as f64 / total).collect()
    };
    let mut random = Random::new(seed);
    let draws = if runs.len() < RUNS_MIN { 0 } else { BAND_RESAMPLES };
    let drawn: Vec<Vec<f64>> = (0..draws).map(|_| shares(&table.cumulated(&table.draw(&mut random)))).collect();
    let point = |(index, share): (usize, f64)| DistributionPoint {
        us: table.edges[places[index]] as f64 / 1e3,
        share,
        interval: middle_part(drawn.iter().map(|shares| shares[index]).collect()),
    };
    shares(&cumulated).into_iter().enumerate().map(point).collect()
}

/// The share that `runs` of (hits, tries) have together, with the interval between the percentiles of a bootstrap over the runs. `None`
/// below five runs.
pub fn share_interval(runs: &[(u64, u64)], seed: u64) -> Option<Interval> {
    let share = |drawn: &mut dyn Iterator<Item = &(u64, u64)>| {
        let (hits, tries) = drawn.fold((0, 0), |(hits, tries), run| (hits + run.0, tries + run.1));
        hits as f64 / tries.max(1) as f64
    };
    if runs.len() < RUNS_MIN {
        return None;
    }
    let mut random = Random::new(seed);
    let drawn = (0..RESAMPLES).map(|_| share(&mut (0..runs.len()).map(|_| &runs[random.below(runs.len())]))).collect();
    let (low, high) = middle_part(drawn)?;
    Some(Interval { estimate: share(&mut runs.iter()), low, high })
}

/// The mean of `values`, one for each run, with the interval between the percentiles of a bootstrap over the runs. `None` below five
/// runs.
pub fn mean_interval(values: &[f64], seed: u64) -> Option<Interval> {
    if values.len() < RUNS_MIN {
        return None;
    }
    let mut random = Random::new(seed);
    let count = values.len() as f64;
    let mut draw = || (0..values.len()).map(|_| values[random.below(values.len())]).sum::<f64>() / count;
    let (low, high) = middle_part((0..RESAMPLES).map(|_| draw()).collect())?;
    Some(Interval { estimate: values.iter().sum::<f64>() / count, low, high })
}

/// The percentiles that leave half of what is not [`CONFIDENCE`] at each end.
fn middle_part(mut values: Vec<f64>) -> Option<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values.get((share * (values.len().checked_sub(1)? as f64)).round() as usize).copied();
    let tail = (1.0 - CONFIDENCE) / 2.0;
    Some((at(tail)?, at(1.0 - tail)?))
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

    /// Every second of every run, once.
    fn all(&self) -> Vec<(usize, usize)> {
        let runs = self.runs.iter().enumerate();
        runs.flat_map(|(run, seconds)| (0..seconds.len()).map(move |second| (run, second))).collect()
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
        let cumulated = self.cumulated(seconds);
        let rank = (q * cumulated.last().copied()? as f64).ceil() as u64;
        let found = cumulated.partition_point(|below| *below < rank.max(1));
        Some(*self.edges.get(found)? as f64 / 1e3)
    }

    /// How many latencies of these seconds lie up to each edge.
    fn cumulated(&self, seconds: &[(usize, usize)]) -> Vec<u64> {
        let mut counts = vec![0_u64; self.edges.len()];
        for (run, second) in seconds {
            self.runs[*run][*second].iter().for_each(|(place, count)| counts[*place] += count);
        }
        let mut below = 0;
        counts.iter_mut().for_each(|count| {
            below += *count;
            *count = below;
        });
        counts
    }
}

/// Fewer runs tell nothing about how runs differ.
const RUNS_MIN: usize = 5;
const RESAMPLES: usize = 2_000;
/// A band is looked at, not read off.
const BAND_RESAMPLES: usize = 200;

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
    fn a_distribution_rises_to_one_within_its_band() {
        let all = runs(8, &mut Random::new(5));
        let points = distribution(&all, 40, 1);
        assert!((30..=41).contains(&points.len()), "{}", points.len());
        assert!(points.windows(2).all(|pair| pair[0].us < pair[1].us && pair[0].share <= pair[1].share));
        assert_eq!(points.last().map(|point| (point.share, point.interval)), Some((1.0, Some((1.0, 1.0)))));
        let middle = &points[points.len() / 2];
        let (low, high) = middle.interval.expect("eight runs");
        assert!(low < middle.share && middle.share < high && high - low > 0.1, "runs differ: {middle:?}");
        assert!(distribution(&all[..4], 40, 1).iter().all(|point| point.interval.is_none()));
        assert!(distribution(&[], 40, 1).is_empty());
    }

    #[test]
    fn a_share_is_as_sure_as_the_runs_agree() {
        let even = share_interval(&[(90, 100); 8], 1).expect("enough");
        assert_eq!((even.low, even.estimate, even.high), (0.9, 0.9, 0.9));
        let uneven: Vec<(u64, u64)> = (0..8).map(|run| (if run == 0 { 20 } else { 100 }, 100)).collect();
        let uneven = share_interval(&uneven, 1).expect("enough");
        assert!(uneven.low < 0.8 && (uneven.estimate - 0.9).abs() < 1e-9 && uneven.high == 1.0, "{uneven:?}");
        assert_eq!(share_interval(&[(1, 2); 4], 1), None);
    }

    #[test]
    fn a_mean_is_as_sure_as_the_runs_agree() {
        assert_eq!(mean_interval(&[4.0; 5], 1), Some(Interval { estimate: 4.0, low: 4.0, high: 4.0 }));
        let uneven = mean_interval(&[1.0, 2.0, 3.0, 4.0, 10.0], 1).expect("enough");
        assert!(
            uneven.estimate == 4.0 && (1.5..3.0).contains(&uneven.low) && (5.0..8.5).contains(&uneven.high),
            "{uneven:?}"
        );
        assert_eq!(mean_interval(&[4.0; 4], 1), None);
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
