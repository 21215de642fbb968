use std::time::Duration;

use super::*;

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
