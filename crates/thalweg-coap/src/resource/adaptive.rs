//! Adaptive sensing: how often a device is read follows from how fast its value changes and who asks. No clock, no thread.

use std::time::Duration;

use thalweg_base::time::Instant;

use crate::device::Value;

/// Settings of adaptive sensing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptivePolicy {
    /// How far the true value may be from the last reading, in the value's unit; more than 0.
    pub error: f64,
    /// The shortest time between two readings.
    pub period_min: Duration,
    /// The longest time between two readings; also the time between them while nobody asks.
    pub period_max: Duration,
}

/// The effects of adaptive sensing on one device, since it was linked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SensingReport {
    /// Settings.
    pub policy: AdaptivePolicy,
    /// Time until the next reading at present.
    pub period: Duration,
    /// Whether somebody observes it, or has asked for it of late.
    pub is_wanted: bool,
    /// Readings.
    pub reads: u64,
    /// Readings that a fixed period of `period_min` would have made.
    pub reads_at_fixed_period: u64,
    /// Largest difference of two readings in a row, while it was wanted: the largest error that anybody could see.
    pub error_max: f64,
    /// Readings, while it was wanted, that differed from the one before by more than the permitted error.
    pub exceeded: u64,
    /// Readings to which that could happen.
    pub compared: u64,
}

/// The law: the next change is expected to be as fast as the fastest of the last ones, of which each counts a tenth less than
/// the one after it. A period that then uses half of the permitted error is kept; one that uses less is lengthened, by half at most,
/// and one that uses more is shortened, down to an eighth. Nobody asking, the longest period holds, and the first request after that
/// is answered by a reading of its own.
///
/// Between two readings the value can leave the bound by as much as it changes faster than in the interval before; `exceeded`
/// and `error_max` tell how often and how far it did. Noise of more than half the permitted error leads to the shortest period.
#[derive(Clone, Debug)]
pub(super) struct AdaptiveSensing {
    policy: AdaptivePolicy,
    /// What the changes of the value ask for.
    period: Duration,
    last: Option<(Instant, Value)>,
    /// How much the value changes in a second, by the last readings.
    rate: f64,
    is_observed: bool,
    asked: Option<Instant>,
    began: Option<Instant>,
    reads: u64,
    exceeded: u64,
    compared: u64,
    error_max: f64,
}

impl AdaptiveSensing {
    pub(super) fn new(policy: AdaptivePolicy) -> AdaptiveSensing {
        let period_min = policy.period_min.max(PERIOD_MIN);
        let policy = AdaptivePolicy { period_min, period_max: policy.period_max.max(period_min), ..policy };
        AdaptiveSensing {
            policy,
            period: period_min,
            last: None,
            rate: 0.0,
            is_observed: false,
            asked: None,
            began: None,
            reads: 0,
            exceeded: 0,
            compared: 0,
            error_max: 0.0,
        }
    }

    /// Somebody asks for the value.
    pub(super) fn handle_request(&mut self, now: Instant) {
        self.asked = Some(now);
    }

    /// Somebody observes it from now on, or nobody does any more.
    pub(super) fn set_observed(&mut self, now: Instant, is_observed: bool) {
        if self.is_observed && !is_observed {
            self.asked = Some(now);
        }
        self.is_observed = is_observed;
    }

    /// Takes a reading into account.
    pub(super) fn handle_reading(&mut self, now: Instant, value: &Value) {
        let is_wanted = self.is_wanted(now);
        self.began.get_or_insert(now);
        self.reads += 1;
        let Some((before, last)) = self.last.replace((now, value.clone())) else { return };
        let change = difference(&last, value);
        // A change over the long time in which nobody asked says nothing about the short one that is wanted now.
        let interval = now.since(before).max(PERIOD_MIN);
        let was_late = interval > self.period.saturating_mul(2);
        if is_wanted && !was_late {
            self.compared += 1;
            self.error_max = self.error_max.max(change);
            self.exceeded += u64::from(change > self.policy.error);
        }
        // A value that turns changes little for a while, and then as fast as before.
        let rate = (change / interval.as_secs_f64()).max(self.rate * RATE_KEPT);
        self.rate = if rate.is_finite() { rate } else { 0.0 };
        let used = rate * self.period.as_secs_f64() / self.policy.error;
        let factor = if used > 0.0 { (USED / used).clamp(SHORTER_MAX, LONGER_MAX) } else { LONGER_MAX };
        let wanted = self.period.as_secs_f64() * factor;
        let (min, max) = (self.policy.period_min.as_secs_f64(), self.policy.period_max.as_secs_f64());
        self.period = Duration::from_secs_f64(wanted.clamp(min, max));
    }

    /// Time from one reading to the next.
    pub(super) fn period(&self, now: Instant) -> Duration {
        if self.is_wanted(now) { self.period } else { self.policy.period_max }
    }

    /// Time for which a reading answers requests.
    pub(super) fn max_age(&self) -> Duration {
        self.period
    }

    pub(super) fn report(&self, now: Instant) -> SensingReport {
        let passed = self.began.map_or(Duration::ZERO, |began| now.since(began));
        let fixed = (passed.as_secs_f64() / self.policy.period_min.as_secs_f64()) as u64;
        SensingReport {
            policy: self.policy,
            period: self.period(now),
            is_wanted: self.is_wanted(now),
            reads: self.reads,
            reads_at_fixed_period: fixed + u64::from(self.reads > 0),
            error_max: self.error_max,
            exceeded: self.exceeded,
            compared: self.compared,
        }
    }

    fn is_wanted(&self, now: Instant) -> bool {
        let interest = self.policy.period_max.max(INTEREST_MIN);
        self.is_observed || self.asked.is_some_and(|asked| now.since(asked) <= interest)
    }
}

/// How far two values are apart; values that are no numbers are equal, or infinitely far apart.
fn difference(one: &Value, other: &Value) -> f64 {
    let number = |value: &Value| match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Real(number) => Some(*number),
        Value::Boolean(_) | Value::Text(_) | Value::Bytes(_) => None,
    };
    match (number(one), number(other)) {
        (Some(one), Some(other)) if (one - other).is_finite() => (one - other).abs(),
        _ if one == other => 0.0,
        _ => f64::INFINITY,
    }
}

/// Share of the permitted error that an interval is to use: the rest is for changes that become faster.
const USED: f64 = 0.5;
/// Part of the rate of change that an interval with a slower change leaves.
const RATE_KEPT: f64 = 0.9;
const SHORTER_MAX: f64 = 0.125;
const LONGER_MAX: f64 = 1.5;
/// Shorter ones would keep a processor busy.
const PERIOD_MIN: Duration = Duration::from_millis(1);
/// A request shows interest for this long at least.
const INTEREST_MIN: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> AdaptivePolicy {
        AdaptivePolicy { error: 0.5, period_min: Duration::from_millis(100), period_max: Duration::from_secs(60) }
    }

    /// Reads `value(seconds)` by the law for so long, observed, and reports.
    fn run(law: &mut AdaptiveSensing, from: f64, seconds: f64, value: impl Fn(f64) -> f64) -> SensingReport {
        let mut at = from;
        let instant = |seconds: f64| Instant::from_nanos((seconds * 1e9) as u64);
        law.set_observed(instant(from), true);
        while at < from + seconds {
            law.handle_reading(instant(at), &Value::Real(value(at)));
            at += law.period(instant(at)).as_secs_f64();
        }
        law.report(instant(from + seconds))
    }

    #[test]
    fn a_slow_value_is_read_seldom_and_within_the_error() {
        let mut law = AdaptiveSensing::new(policy());
        let report = run(&mut law, 0.0, 3600.0, |t| 20.0 + 5.0 * (t / 600.0 * std::f64::consts::TAU).sin());
        assert!(report.reads < report.reads_at_fixed_period / 30, "{report:?}");
        assert!(report.error_max <= 0.5 && report.exceeded == 0, "{report:?}");
    }

    #[test]
    fn a_value_that_stands_is_read_at_the_longest_period_and_one_that_runs_at_the_shortest() {
        let mut law = AdaptiveSensing::new(policy());
        assert_eq!(run(&mut law, 0.0, 3600.0, |_| 20.0).period, Duration::from_secs(60));
        let report = run(&mut law, 3600.0, 600.0, |t| 100.0 * t);
        assert_eq!(report.period, Duration::from_millis(100));
        let slow = run(&mut law, 4200.0, 3600.0, |_| 0.0);
        assert_eq!(slow.period, Duration::from_secs(60), "and it comes back");
    }

    #[test]
    fn small_noise_costs_no_readings() {
        let mut law = AdaptiveSensing::new(policy());
        let noise = |t: f64| 20.0 + 0.05 * ((t * 7919.0).fract() - 0.5);
        assert_eq!(run(&mut law, 0.0, 3600.0, noise).period, Duration::from_secs(60));
    }

    #[test]
    fn nobody_asking_means_the_longest_period_and_a_request_the_one_that_the_value_needs() {
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let mut law = AdaptiveSensing::new(policy());
        run(&mut law, 0.0, 100.0, |t| t);
        let needed = law.period(at(100));
        assert!(needed < Duration::from_secs(1), "{needed:?}");
        law.set_observed(at(100), false);
        assert_eq!(law.period(at(101)), needed, "interest does not end at once");
        assert_eq!(law.period(at(200)), Duration::from_secs(60));
        law.handle_reading(at(200), &Value::Real(200.0));
        assert_eq!(law.report(at(200)).exceeded, 0, "nobody saw that difference");
        law.handle_request(at(201));
        assert!(law.period(at(201)) < Duration::from_secs(1));
    }

    #[test]
    fn values_that_are_no_numbers_are_read_soon_after_a_change() {
        let mut law = AdaptiveSensing::new(policy());
        law.set_observed(Instant::ZERO, true);
        for second in 1..100 {
            law.handle_reading(Instant::from_nanos(second * 60_000_000_000), &Value::Text("a".to_owned()));
        }
        assert_eq!(law.period(Instant::ZERO), Duration::from_secs(60));
        law.handle_reading(Instant::from_nanos(6_000_000_000_000), &Value::Text("b".to_owned()));
        assert!(law.period(Instant::ZERO) < Duration::from_secs(10));
    }
}
