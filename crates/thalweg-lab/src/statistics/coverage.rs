//! Simulations: what claims 95 % holds the truth in 95 % of cases, at every number of runs and for runs that spread in any way.

use super::inference::{CONFIDENCE, RUNS_MIN, Verdict, below, median_interval, middle, runs_needed, verdicts};
use super::*;
use thalweg_base::rng::Rng;

/// How runs spread: the value below which a share of them lies, so that the true median is that of one half.
type Spread = (&'static str, fn(f64) -> f64);

const SPREADS: [Spread; 6] = [
    ("even", |share| share),
    ("symmetric with tails", |share| (share / (1.0 - share)).ln()),
    ("skewed", |share| (1.2 * (share / (1.0 - share)).ln()).exp()),
    ("skewed without a mean", |share| 1.0 / (1.0 - share)),
    ("two modes", |share| if share < 0.7 { 100.0 + share } else { 200.0 + 10.0 * share }),
    ("three modes and stalls", |share| match share {
        share if share < 0.4 => 50.0 + share,
        share if share < 0.8 => 80.0 + share,
        share if share < 0.95 => 300.0 + share,
        share => 1e6 * share,
    }),
];
const TRIALS: usize = 4_000;
/// Three standard errors of a share of 95 % in so many trials.
const ALLOWANCE: f64 = 0.0104;

fn draw(of: fn(f64) -> f64, count: usize, random: &mut Rng) -> Vec<f64> {
    // Zero has no logarithm.
    (0..count).map(|_| of(random.share().max(1e-12))).collect()
}

/// In how many trials `interval` holds `truth`.
fn coverage(
    (of, truth): (fn(f64) -> f64, f64),
    runs: usize,
    seed: u64,
    mut interval: impl FnMut(&[f64], &mut Rng) -> (f64, f64),
) -> f64 {
    let mut random = Rng::new(seed);
    let mut held = 0;
    for _ in 0..TRIALS {
        let values = draw(of, runs, &mut random);
        let (low, high) = interval(&values, &mut random);
        held += usize::from(low <= truth && truth <= high);
    }
    held as f64 / TRIALS as f64
}

/// What this crate did before: the middle 95 % of resampled means.
fn resampled(values: &[f64], random: &mut Rng) -> (f64, f64) {
    let count = values.len();
    let mut means: Vec<f64> = (0..200)
        .map(|_| (0..count).map(|_| values[random.below(count as u64) as usize]).sum::<f64>() / count as f64)
        .collect();
    means.sort_by(f64::total_cmp);
    (means[5], means[194])
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_claim() {
    for (name, of) in SPREADS {
        for runs in [8, 9, 10, 11, 12, 15, 16, 20, 24, 30, 40, 60] {
            let share = coverage((of, of(0.5)), runs, runs as u64, |values, _| {
                let interval = median_interval(values).expect("enough runs");
                (interval.low, interval.high)
            });
            assert!(share >= CONFIDENCE - ALLOWANCE, "{name}, {runs} runs: {share}");
            assert!(share < 0.995, "{name}, {runs} runs: wider than it need be, {share}");
        }
    }
}

#[test]
fn resampled_means_of_few_runs_do_not_and_the_simulation_sees_it() {
    let mean_of_even = (SPREADS[0].1, 0.5);
    let five = coverage(mean_of_even, 5, 5, resampled);
    assert!((0.75..0.87).contains(&five), "{five}");
    let eight = coverage(mean_of_even, 8, 5, resampled);
    assert!(eight < CONFIDENCE - ALLOWANCE, "{eight}");
    // 100.35 in seven runs of ten, 208.5 in three.
    let two_modes = coverage((SPREADS[4].1, 0.7 * 100.35 + 0.3 * 208.5), 8, 5, resampled);
    assert!(two_modes < 0.93, "{two_modes}");
}

#[test]
fn bounds_of_intervals_agree_with_the_binomial_distribution() {
    let of = |count: u32| {
        let values: Vec<f64> = (1..=count).map(f64::from).collect();
        median_interval(&values).map(|interval| (interval.low, interval.estimate, interval.high))
    };
    assert_eq!(of(7), None, "seven runs have a range");
    assert_eq!(of(8), Some((1.0, 4.5, 8.0)));
    assert_eq!(of(9), Some((2.0, 5.0, 8.0)));
    assert_eq!(of(12), Some((3.0, 6.5, 10.0)));
    assert_eq!(of(20), Some((6.0, 10.5, 15.0)));
    assert_eq!(of(2_000).map(|(low, ..)| low), Some(956.0));
    assert_eq!(median_interval(&[f64::NAN; 9]), None);
}

#[test]
fn few_runs_have_a_range_that_is_called_one() {
    let three = middle(&[3.0, 1.0, 9.0]).expect("runs");
    assert!(three.is_range && (three.low, three.estimate, three.high) == (1.0, 3.0, 9.0));
    assert!(!middle(&[1.0; 8]).expect("runs").is_range);
    assert_eq!(middle(&[]), None);
}

#[test]
fn runs_that_never_end_have_a_rank() {
    let mut values = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, f64::INFINITY, f64::INFINITY, f64::INFINITY];
    let interval = median_interval(&values).expect("nine");
    assert_eq!((interval.low, interval.estimate, interval.high), (2.0, 5.0, f64::INFINITY));
    let text = serde_json::to_string(&interval).expect("json");
    assert_eq!(text, r#"{"estimate":5.0,"low":2.0,"high":"never"}"#);
    assert_eq!(serde_json::from_str::<Interval>(&text).expect("json"), interval);
    values.extend([f64::INFINITY; 4]);
    assert_eq!(median(&values), Some(f64::INFINITY));
}

/// How often a page of 24 cells of 12 paired runs without any difference tells one.
fn pages_that_err(told: fn(&[Vec<f64>]) -> bool) -> f64 {
    let mut random = Rng::new(7);
    let pages = 800;
    let err = |_: &usize| {
        let cells: Vec<Vec<f64>> = (0..24)
            .map(|cell| {
                let (_, of) = SPREADS[1 + cell % 4];
                let (one, other) = (draw(of, 12, &mut random), draw(of, 12, &mut random));
                one.iter().zip(other).map(|(one, other)| one - other).collect()
            })
            .collect();
        told(&cells)
    };
    (0..pages).filter(err).count() as f64 / pages as f64
}

#[test]
fn a_page_of_many_cells_seldom_tells_a_difference_that_is_none() {
    let corrected = pages_that_err(|cells| {
        verdicts(cells, 0.0).iter().any(|verdict| matches!(verdict, Verdict::Better | Verdict::Worse))
    });
    assert!(corrected <= 0.05, "{corrected}");
    let alone = pages_that_err(|cells| {
        cells.iter().any(|cell| verdicts(std::slice::from_ref(cell), 0.0)[0] != Verdict::Inconclusive)
    });
    assert!(alone > 0.4, "without the correction pages err: {alone}");
}

fn listed(cells: &[&[f64]]) -> Vec<Vec<f64>> {
    cells.iter().map(|cell| cell.to_vec()).collect()
}

#[track_caller]
fn check(cells: &[&[f64]], margin: f64, expect: &[Verdict]) {
    assert_eq!(verdicts(&listed(cells), margin), expect);
}

#[test]
fn verdicts_follow_the_runs_and_the_number_of_cells() {
    let (worse, better, near, open) = ([0.3; 8], [-0.3; 8], [0.01; 8], [0.3, -0.3, 0.2, -0.2, 0.1, -0.1, 0.4, -0.4]);
    check(&[&worse], 0.03, &[Verdict::Worse]);
    check(&[&better], 0.03, &[Verdict::Better]);
    check(&[&near], 0.03, &[Verdict::Equivalent]);
    check(&[&open], 0.03, &[Verdict::Inconclusive]);
    check(&[&worse[..7]], 0.03, &[Verdict::Inconclusive]);
    check(&[&[f64::INFINITY; 8]], 0.03, &[Verdict::Worse]);
    check(&[&better[..]; 6], 0.03, &[Verdict::Better; 6]);
    check(&[&better[..]; 7], 0.03, &[Verdict::Inconclusive; 7]);
    let twelve = [-0.3; 12];
    check(&[&twelve, &better, &better, &open], 0.03, &{
        [Verdict::Better, Verdict::Better, Verdict::Better, Verdict::Inconclusive]
    });
    assert_eq!((runs_needed(1), runs_needed(6), runs_needed(7), runs_needed(100)), (8, 8, 9, 12));
    assert_eq!(RUNS_MIN, 8);
}

#[test]
fn a_bound_holds_where_nearly_all_runs_lie_below_it() {
    let near = [0.01, 0.02, 0.0, 0.03, -0.02, 0.04, 0.01, 0.02];
    let mut far = near;
    far[3] = 0.2;
    far[5] = 0.3;
    assert_eq!(below(&listed(&[&near, &far]), 0.05), [true, false]);
    assert_eq!(below(&listed(&[&near[..7]]), 0.05), [false]);
    assert_eq!(below(&listed(&[&near[..]; 13]), 0.05), [false; 13], "so many cells need more runs");
}
