use std::time::Duration;

use super::*;
use crate::figures::micros;

#[track_caller]
fn check(values: &[f64], mean: f64, min: f64, max: f64, deviation: f64) {
    let summary = Summary::of(values).expect("values");
    let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
    assert!(near(summary.mean, mean), "mean {} of {values:?}", summary.mean);
    assert!(near(summary.min, min) && near(summary.max, max), "extremes of {values:?}");
    assert!(near(summary.standard_deviation, deviation), "deviation {} of {values:?}", summary.standard_deviation);
}

#[test]
fn summaries_agree_with_values_computed_by_hand() {
    check(&[5.0], 5.0, 5.0, 5.0, 0.0);
    check(&[1.0, 2.0, 3.0, 4.0], 2.5, 1.0, 4.0, (5.0_f64 / 3.0).sqrt());
    check(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0], 5.0, 2.0, 9.0, (32.0_f64 / 7.0).sqrt());
    check(&[-1.0, 1.0], 0.0, -1.0, 1.0, 2.0_f64.sqrt());
}

#[test]
fn nothing_and_nonsense_have_no_summary() {
    assert_eq!(Summary::of(&[]), None);
    assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
    assert_eq!(Summary::of(&[f64::INFINITY]), None);
}

#[test]
fn quantiles_appear_only_when_ten_values_lie_beyond_them() {
    let values: Vec<f64> = (1..=1000).map(f64::from).collect();
    let summary = |n: usize| Summary::of(&values[..n]).expect("values");
    assert_eq!((summary(2).p50, summary(3).p50), (None, Some(2.0)));
    assert_eq!((summary(99).p90, summary(100).p90), (None, Some(90.0)));
    assert_eq!((summary(999).p99, summary(1000).p99), (None, Some(990.0)));
    assert!(!is_supported(0.999, 9_999) && is_supported(0.999, 10_000));
}

#[test]
fn latencies_keep_exact_extremes_and_percentiles_to_three_digits() {
    let mut latencies = Latencies::new();
    for micros in 1..=10_000 {
        latencies.record(Duration::from_micros(micros));
    }
    assert_eq!(latencies.count(), 10_000);
    assert_eq!(latencies.min(), Duration::from_micros(1));
    assert_eq!(latencies.max(), Duration::from_millis(10));
    assert_eq!(latencies.mean(), Duration::from_nanos(5_000_500));
    for (q, micros) in [(0.5, 5_000.0), (0.9, 9_000.0), (0.99, 9_900.0), (0.999, 9_990.0)] {
        let got = latencies.quantile(q).expect("enough samples").as_secs_f64() * 1e6;
        assert!((got / micros - 1.0).abs() < 1e-3, "p{q}: {got} µs");
    }
    assert_eq!(latencies.quantile(0.9999), None);
}

#[test]
fn latencies_without_samples_are_zero_and_have_no_median() {
    let latencies = Latencies::new();
    assert_eq!((latencies.min(), latencies.mean(), latencies.max()), (Duration::ZERO, Duration::ZERO, Duration::ZERO));
    assert_eq!(latencies.quantile(0.5), None);
}

#[test]
fn a_stall_beyond_every_bucket_is_kept_as_maximum() {
    let mut latencies = Latencies::new();
    latencies.record(Duration::from_secs(7200));
    assert_eq!(latencies.max(), Duration::from_secs(7200));
}

#[test]
fn buckets_agree_with_dense_histograms_and_can_be_added() {
    let (mut dense, mut whole) = (Latencies::new(), Buckets::default());
    let mut parts = [Buckets::default(), Buckets::default(), Buckets::default()];
    for nanos in (1..=20_000_u64).map(|index| index * index) {
        dense.record(Duration::from_nanos(nanos));
        whole.record(nanos);
        parts[nanos as usize % 2].record(nanos);
    }
    let mut sum = Buckets::default();
    parts.iter().for_each(|part| sum.add(part));
    assert_eq!(sum, whole);
    for q in [0.01, 0.5, 0.9, 0.999] {
        assert_eq!(whole.quantile(q), dense.quantile(q).map(micros), "{q}");
    }
    assert_eq!(whole.quantile(0.9999), None);
    assert_eq!((whole.min(), whole.mean(), whole.max()), (dense.min(), dense.mean(), dense.max()));
    assert_eq!((whole.at_rank(1), whole.at_rank(20_000)), (micros(whole.min()), micros(whole.max())));
    assert_eq!(whole.iter().map(|(_, count)| count).sum::<u64>(), 20_000);
    assert_eq!((parts[2].count(), parts[2].min(), parts[2].quantile(0.5)), (0, Duration::ZERO, None));
}

#[test]
fn a_sample_that_never_arrives_is_infinitely_late() {
    let mut buckets = Buckets::default();
    (1..=600).for_each(|micros| buckets.record(micros * 1_000));
    let alone = buckets.quantile(0.5).expect("enough");
    buckets.record_never(300);
    let due = buckets.quantile(0.5).expect("enough");
    assert!((alone - 300.0).abs() < 1.0 && (due - 450.0).abs() < 1.0, "{alone} {due}");
    assert_eq!((buckets.quantile(0.9), buckets.due(), buckets.count()), (Some(f64::INFINITY), 900, 600));
    let mut sum = Buckets::default();
    sum.add(&buckets);
    sum.record_never(100);
    assert_eq!(sum.quantile(0.99), Some(f64::INFINITY), "1,000 were due");
    assert_eq!(sum.max(), buckets.max());
}

#[test]
fn jain_is_one_for_equals_and_a_share_for_one_that_has_all() {
    assert_eq!(jain([3.0, 3.0, 3.0].into_iter()), 1.0);
    assert_eq!(jain([5.0, 0.0, 0.0, 0.0].into_iter()), 0.25);
    assert_eq!((jain([0.0, 0.0].into_iter()), jain(std::iter::empty())), (1.0, 1.0));
    assert!((jain([1.0, 2.0, 3.0].into_iter()) - 36.0 / 42.0).abs() < 1e-12);
}
