//! Round trips as `perf` prints them: one object, its keys fixed.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::latencies::Latencies;
use crate::middleware::Work;
use crate::stream_figures::short;

/// Round trips of one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundTripFigures {
    /// Payload bytes of a sample.
    pub size: u64,
    /// The work of both ends for each sample.
    pub work: Work,
    /// Round trips measured, warm-up left out.
    pub samples: u64,
    /// Best-effort samples that did not come back within half a second; they are infinitely late in the quantiles.
    #[serde(default)]
    pub lost: u64,
    /// Shortest round trip in microseconds.
    pub min_us: f64,
    /// Median in microseconds; null below three samples, or where half of them were lost.
    pub p50_us: Option<f64>,
    /// 90th percentile in microseconds; null below 100 samples, or where too many were lost.
    pub p90_us: Option<f64>,
    /// 99th percentile in microseconds; null below 1,000 samples, or where too many were lost.
    pub p99_us: Option<f64>,
    /// 99.9th percentile in microseconds; null below 10,000 samples, or where too many were lost.
    pub p999_us: Option<f64>,
    /// Longest round trip in microseconds.
    pub max_us: f64,
}

impl RoundTripFigures {
    /// Reads the figures off a distribution of round trips, with the number of those that were lost.
    pub fn of(size: u64, work: Work, (latencies, lost): (&Latencies, u64)) -> RoundTripFigures {
        let quantile = |q| latencies.quantile_of(q, latencies.count() + lost).filter(|us| us.is_finite());
        RoundTripFigures {
            size,
            work,
            samples: latencies.count(),
            lost,
            min_us: micros(latencies.min()),
            p50_us: quantile(0.5),
            p90_us: quantile(0.9),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            max_us: micros(latencies.max()),
        }
    }

    /// One line for people.
    pub fn to_text(&self) -> String {
        let quantile = |name: &str, value: Option<f64>| match value {
            Some(value) => format!(" {name} {}", short(value)),
            None => String::new(),
        };
        format!(
            "{} B, {}: {} round trips{} in µs: min {}{}{}{}{} max {}",
            self.size,
            self.work.name(),
            self.samples,
            if self.lost > 0 { format!(", {} lost,", self.lost) } else { String::new() },
            short(self.min_us),
            quantile("p50", self.p50_us),
            quantile("p90", self.p90_us),
            quantile("p99", self.p99_us),
            quantile("p99.9", self.p999_us),
            short(self.max_us)
        )
    }
}

fn micros(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_has_exactly_the_documented_keys() {
        let text = serde_json::to_string(&RoundTripFigures::of(64, Work::Raw, (&Latencies::new(), 0))).expect("json");
        let expect = r#"{"size":64,"work":"raw","samples":0,"lost":0,"min_us":0.0,"p50_us":null,"p90_us":null,"p99_us":null,"p999_us":null,"max_us":0.0}"#;
        assert_eq!(text, expect);
    }

    #[test]
    fn a_lost_round_trip_is_infinitely_late() {
        let mut latencies = Latencies::new();
        (1..=80).for_each(|us| latencies.record(Duration::from_micros(us)));
        let figures = |lost| RoundTripFigures::of(64, Work::Decoded, (&latencies, lost));
        let p50_us = |lost| figures(lost).p50_us.map(f64::round);
        assert_eq!((p50_us(0), p50_us(20), figures(20).p90_us), (Some(40.0), Some(50.0), None));
        assert_eq!((p50_us(90), figures(90).lost), (None, 90));
        assert!(figures(20).to_text().contains("80 round trips, 20 lost, in µs"), "{}", figures(20).to_text());
    }

    #[test]
    fn percentiles_that_too_few_round_trips_carry_are_null() {
        let mut latencies = Latencies::new();
        (0..100).for_each(|_| latencies.record(Duration::from_micros(20)));
        let json = serde_json::to_value(RoundTripFigures::of(64, Work::Decoded, (&latencies, 0))).expect("json");
        assert_eq!((&json["p90_us"], &json["p99_us"]), (&serde_json::json!(20.0), &serde_json::Value::Null));
    }
}
