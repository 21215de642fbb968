//! Differences between two things that took turns: how large, how sure, and what that means.

use super::{CONFIDENCE, Interval, Verdict};

/// The Hodges–Lehmann estimate of the middle of paired differences (the median of all their pairwise means) with its exact interval from
/// the signed-rank distribution, which asks only that the differences spread symmetrically. `None` below six values: no interval of fewer
/// reaches [`CONFIDENCE`].
pub fn paired_difference(differences: &[f64]) -> Option<Interval> {
    let count = differences.len();
    if count > PAIRS_MAX || differences.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut means: Vec<f64> = (0..count)
        .flat_map(|one| (one..count).map(move |other| (differences[one] + differences[other]) / 2.0))
        .collect();
    means.sort_by(f64::total_cmp);
    let cut = signed_rank_cut(count)?;
    let (lower, upper) = (means.get((means.len() - 1) / 2)?, means.get(means.len() / 2)?);
    Some(Interval {
        estimate: (lower + upper) / 2.0,
        low: *means.get(cut)?,
        high: *means.get(means.len().checked_sub(cut + 1)?)?,
    })
}

/// How many pairwise means may be left out at each end; `None` where the interval from end to end is not sure enough.
fn signed_rank_cut(count: usize) -> Option<usize> {
    // Ways to reach each sum of ranks when every rank counts or not with even chance.
    let mut ways = vec![1.0_f64];
    for rank in 1..=count {
        let mut next = vec![0.0; ways.len() + rank];
        for (sum, number) in ways.iter().enumerate() {
            next[sum] += number;
            next[sum + rank] += number;
        }
        ways = next;
    }
    let all = 2.0_f64.powi(i32::try_from(count).ok()?);
    let mut below = 0.0;
    let mut cut = None;
    for (sum, number) in ways.iter().enumerate() {
        below += number;
        if 2.0 * below / all > 1.0 - CONFIDENCE {
            break;
        }
        cut = Some(sum);
    }
    cut
}

/// What the logarithm of a ratio means. `margin` is the logarithm of the ratio that nobody cares about; `noise` is how far two series of
/// the same thing lie apart, where that is known: a smaller difference is none.
pub fn verdict(difference: Option<Interval>, margin: f64, noise: Option<f64>) -> Verdict {
    let Some(Interval { estimate, low, high }) = difference else { return Verdict::Inconclusive };
    if low > -margin && high < margin {
        return Verdict::Equivalent;
    }
    if noise.is_some_and(|noise| estimate.abs() <= noise) {
        return Verdict::Inconclusive;
    }
    match (low > 0.0, high < 0.0) {
        (true, _) => Verdict::Worse,
        (_, true) => Verdict::Better,
        _ => Verdict::Inconclusive,
    }
}

/// More pairs than anybody makes; the number of their means grows with the square.
const PAIRS_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// A normal value by the sum of twelve even ones.
    fn normal(random: &mut Random) -> f64 {
        (0..12).map(|_| random.below(1 << 30) as f64 / f64::from(1 << 30)).sum::<f64>() - 6.0
    }

    #[test]
    fn estimates_agree_with_values_computed_by_hand() {
        assert_eq!(paired_difference(&[1.0; 5]), None, "five pairs are too few for 95 %");
        let six = paired_difference(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).expect("six");
        assert_eq!((six.estimate, six.low, six.high), (3.5, 1.0, 6.0));
        // The table of the signed-rank test has 3 as the critical value of 8 pairs at 5 % (two-sided).
        assert_eq!((signed_rank_cut(6), signed_rank_cut(8), signed_rank_cut(20)), (Some(0), Some(3), Some(52)));
        assert_eq!(paired_difference(&[f64::NAN; 8]), None);
    }

    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        let mut random = Random::new(11);
        let (mut held, trials) = (0, 3_000);
        for _ in 0..trials {
            // An outlier now and then: the spread is symmetric, not normal.
            let values: Vec<f64> =
                (0..10).map(|_| 0.3 + normal(&mut random) * if random.below(10) == 0 { 10.0 } else { 1.0 }).collect();
            let interval = paired_difference(&values).expect("ten");
            held += u32::from(interval.low <= 0.3 && 0.3 <= interval.high);
        }
        let share = f64::from(held) / f64::from(trials);
        assert!((0.94..0.98).contains(&share), "{share}");
    }

    #[test]
    fn verdicts_need_more_than_noise() {
        let interval = |low, high| Some(Interval { estimate: (low + high) / 2.0, low, high });
        let margin = 1.03_f64.ln();
        for (low, high, noise, expect) in [
            (-0.02, 0.02, None, Verdict::Equivalent),
            (0.005, 0.02, None, Verdict::Equivalent),
            (0.1, 0.3, None, Verdict::Worse),
            (-0.3, -0.1, Some(0.05), Verdict::Better),
            (-0.3, -0.1, Some(0.25), Verdict::Inconclusive),
            (-0.3, 0.1, None, Verdict::Inconclusive),
        ] {
            assert_eq!(verdict(interval(low, high), margin, noise), expect, "{low} {high} {noise:?}");
        }
        assert_eq!(verdict(None, margin, None), Verdict::Inconclusive);
    }
}
