//! The state of a property, and its one read that may be in flight. No clock, no thread.

use std::time::Duration;

use thalweg_base::time::Instant;

use crate::device::{DeviceError, Value};
use crate::resource::adaptive::{AdaptivePolicy, AdaptiveSensing, SensingReport};

/// When a property is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sampling {
    /// At fixed times; requests are answered from the store.
    Periodic {
        /// From one reading to the next.
        period: Duration,
    },
    /// On request, if the last reading is older than this.
    OnDemand {
        /// Time for which a reading answers requests; zero measures for each request, but only once for simultaneous ones.
        max_age: Duration,
    },
    /// As often as its changes and those who ask need.
    Adaptive(AdaptivePolicy),
    /// Whenever a service publishes a value.
    Pushed {
        /// Time for which a client may keep a value.
        max_age: Duration,
    },
    /// Never: it has its value for good.
    Constant {
        /// Time for which a client may keep the value, from any answer on.
        max_age: Duration,
    },
}

/// A reading in the store.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// The measured value.
    pub value: Value,
    /// When.
    pub taken: Instant,
    /// Time after `taken` for which it stays fresh.
    pub max_age: Duration,
}

impl Sampled {
    /// Time for which it is still fresh.
    pub fn fresh_for(&self, now: Instant) -> Duration {
        (self.taken + self.max_age).since(now)
    }
}

/// The state of a property; `W` is a waiter for a read.
#[derive(Debug)]
pub struct PropertyState<W> {
    sampling: Sampling,
    read_timeout: Duration,
    latest: Option<Sampled>,
    failure: Option<DeviceError>,
    flight: Flight<W>,
    sample_due: Instant,
    observed: bool,
    adaptive: Option<AdaptiveSensing>,
}

#[derive(Debug)]
enum Flight<W> {
    None,
    Reading {
        deadline: Instant,
        /// The outcome is older than an action that was taken meanwhile.
        outdated: bool,
        waiters: Vec<W>,
    },
    /// The read has run over its time and still runs. No request waits for it.
    Overdue,
}

/// The outcome of a request.
#[derive(Debug, PartialEq)]
pub enum RequestFate {
    /// It is answered at once.
    Known(Result<Sampled, DeviceError>),
    /// It waits for the read in flight, until then at the latest.
    Joined(Instant),
    /// It waits for a read that the caller must begin now.
    Begin(Instant),
}

/// The effects of the end of a read, or of its time-out.
#[derive(Debug)]
pub struct ReadEnd<W> {
    /// The answered waiters.
    pub waiters: Vec<W>,
    /// With what.
    pub outcome: Result<Sampled, DeviceError>,
    /// Whether observers are to be notified.
    pub changed: bool,
}

impl<W> PropertyState<W> {
    /// A property without a value yet. A read that takes longer than `read_timeout` has failed.
    pub fn new(sampling: Sampling, read_timeout: Duration) -> PropertyState<W> {
        PropertyState {
            sampling,
            read_timeout,
            latest: None,
            failure: None,
            flight: Flight::None,
            sample_due: Instant::ZERO,
            observed: false,
            adaptive: match sampling {
                Sampling::Adaptive(policy) => Some(AdaptiveSensing::new(policy)),
                Sampling::Periodic { .. }
                | Sampling::OnDemand { .. }
                | Sampling::Pushed { .. }
                | Sampling::Constant { .. } => None,
            },
        }
    }

    /// Handles a request. `waiter` makes the receiver of a later answer; it is called only if the request has to wait.
    pub fn handle_request(&mut self, now: Instant, waiter: impl FnOnce() -> W) -> RequestFate {
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.handle_request(now);
        }
        if let Some(latest) = self.latest.as_ref().filter(|latest| self.answers(now, latest)) {
            return RequestFate::Known(Ok(latest.clone()));
        }
        if !matches!(self.sampling, Sampling::OnDemand { .. } | Sampling::Adaptive(_)) {
            return RequestFate::Known(Err(self.failure.clone().unwrap_or_else(|| nothing_yet(self.sampling))));
        }
        match &mut self.flight {
            Flight::Overdue => RequestFate::Known(Err(DeviceError::Unresponsive)),
            Flight::Reading { waiters, .. } if waiters.len() >= WAITERS_MAX => {
                RequestFate::Known(Err(DeviceError::Overloaded))
            }
            Flight::Reading { deadline, waiters, .. } => {
                waiters.push(waiter());
                RequestFate::Joined(*deadline)
            }
            Flight::None => {
                let deadline = self.begin(now, vec![waiter()]);
                RequestFate::Begin(deadline)
            }
        }
    }

    /// The read in flight has ended, or a service has pushed a value.
    pub fn handle_outcome(&mut self, now: Instant, outcome: Result<Value, DeviceError>) -> ReadEnd<W> {
        let (waiters, outdated) = match std::mem::replace(&mut self.flight, Flight::None) {
            Flight::Reading { waiters, outdated, .. } => (waiters, outdated),
            Flight::None | Flight::Overdue => (Vec::new(), false),
        };
        match outcome {
            Ok(value) => {
                if let Some(adaptive) = &mut self.adaptive {
                    adaptive.handle_reading(now, &value);
                    self.sample_due = now + adaptive.period(now);
                }
                let changed = self.latest.as_ref().is_none_or(|latest| latest.value != value);
                let sampled =
                    Sampled { value, taken: now, max_age: if outdated { Duration::ZERO } else { self.max_age() } };
                self.latest = Some(sampled.clone());
                self.failure = None;
                ReadEnd { waiters, outcome: Ok(sampled), changed }
            }
            Err(error) => {
                self.failure = Some(error.clone());
                ReadEnd { waiters, outcome: Err(error), changed: false }
            }
        }
    }

    /// The value has been driven: earlier readings no longer answer requests.
    pub fn handle_action(&mut self, now: Instant) {
        if let Some(latest) = &mut self.latest {
            latest.max_age = Duration::ZERO;
        }
        if let Flight::Reading { outdated, .. } = &mut self.flight {
            *outdated = true;
        }
        if self.sample_period(now).is_some() {
            self.sample_due = now;
        }
    }

    /// Handles the passage of time: returns the waiters to answer because a read is overdue.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<ReadEnd<W>> {
        if !matches!(&self.flight, Flight::Reading { deadline, .. } if *deadline <= now) {
            return None;
        }
        let Flight::Reading { waiters, .. } = std::mem::replace(&mut self.flight, Flight::Overdue) else { return None };
        let error = DeviceError::TimedOut(self.read_timeout);
        self.failure = Some(error.clone());
        Some(ReadEnd { waiters, outcome: Err(error), changed: false })
    }

    /// Whether the caller must begin a read now because it is time for a sample. While one is in flight, samples are left out.
    pub fn poll_sample(&mut self, now: Instant) -> bool {
        let Some(period) = self.sample_period(now) else { return false };
        if now < self.sample_due {
            return false;
        }
        // Samples keep their rhythm, unless so much time has passed that some were missed.
        let next = self.sample_due + period;
        self.sample_due = if next > now { next } else { now + period };
        if !matches!(self.flight, Flight::None) {
            return false;
        }
        self.begin(now, Vec::new());
        true
    }

    /// When [`handle_timeout`](Self::handle_timeout) or [`poll_sample`](Self::poll_sample) has something to do next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let is_sampled = !matches!(self.sampling, Sampling::Pushed { .. } | Sampling::Constant { .. })
            && (self.observed || !matches!(self.sampling, Sampling::OnDemand { .. }));
        let sample = is_sampled.then_some(self.sample_due);
        let deadline = match &self.flight {
            Flight::Reading { deadline, .. } => Some(*deadline),
            Flight::None | Flight::Overdue => None,
        };
        sample.into_iter().chain(deadline).min()
    }

    /// Sets whether it has observers: it is then sampled without requests.
    pub fn set_observed(&mut self, now: Instant, observed: bool) {
        let is_sampled_for_observers = matches!(self.sampling, Sampling::OnDemand { .. } | Sampling::Adaptive(_));
        if observed && !self.observed && is_sampled_for_observers {
            self.sample_due = now;
        }
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.set_observed(now, observed);
        }
        self.observed = observed;
    }

    /// The effects of adaptive sensing, if the property has it.
    pub fn sensing(&self, now: Instant) -> Option<SensingReport> {
        self.adaptive.as_ref().map(|adaptive| adaptive.report(now))
    }

    fn begin(&mut self, now: Instant, waiters: Vec<W>) -> Instant {
        let deadline = now + self.read_timeout;
        self.flight = Flight::Reading { deadline, outdated: false, waiters };
        deadline
    }

    /// Whether a reading is still good enough for an answer.
    fn answers(&self, now: Instant, latest: &Sampled) -> bool {
        match self.sampling {
            Sampling::OnDemand { .. } | Sampling::Adaptive(_) => !latest.fresh_for(now).is_zero(),
            Sampling::Periodic { period } => {
                let oldest = period.saturating_mul(PERIODS_MAX).max(period.saturating_add(self.read_timeout));
                now.since(latest.taken) <= oldest
            }
            Sampling::Pushed { .. } | Sampling::Constant { .. } => true,
        }
    }

    fn max_age(&self) -> Duration {
        match self.sampling {
            Sampling::Periodic { period } => period,
            // The notification of a change asks for the state again; that must not cause the next change.
            Sampling::OnDemand { max_age } if self.observed => max_age.max(OBSERVED_PERIOD_MIN),
            Sampling::OnDemand { max_age } | Sampling::Pushed { max_age } | Sampling::Constant { max_age } => max_age,
            Sampling::Adaptive(policy) => self.adaptive.as_ref().map_or(policy.period_min, AdaptiveSensing::max_age),
        }
    }

    fn sample_period(&self, now: Instant) -> Option<Duration> {
        match self.sampling {
            Sampling::Adaptive(policy) => {
                Some(self.adaptive.as_ref().map_or(policy.period_max, |adaptive| adaptive.period(now)))
            }
            Sampling::Periodic { period } => Some(period.max(PERIOD_MIN)),
            Sampling::OnDemand { max_age } => self.observed.then_some(max_age.max(OBSERVED_PERIOD_MIN)),
            Sampling::Pushed { .. } | Sampling::Constant { .. } => None,
        }
    }
}

fn nothing_yet(sampling: Sampling) -> DeviceError {
    DeviceError::Absent(match sampling {
        Sampling::Pushed { .. } | Sampling::Constant { .. } => "nothing has been published yet".to_owned(),
        Sampling::Periodic { .. } | Sampling::OnDemand { .. } | Sampling::Adaptive(_) => {
            "nothing has been measured yet".to_owned()
        }
    })
}

/// Most requests that may wait for one read; more are refused. Chosen by us: the requests of a busy server in one second.
const WAITERS_MAX: usize = 65_536;
/// For how many periods a reading answers when none follows.
const PERIODS_MAX: u32 = 3;
/// The shortest period; shorter ones would keep a processor busy.
const PERIOD_MIN: Duration = Duration::from_millis(1);
/// The shortest time between two samples for observers alone.
const OBSERVED_PERIOD_MIN: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    fn on_demand(max_age: Duration) -> PropertyState<u32> {
        PropertyState::new(Sampling::OnDemand { max_age }, SECOND)
    }

    fn failed() -> DeviceError {
        DeviceError::Failed("x".to_owned())
    }

    #[test]
    fn one_read_answers_all_who_wait() {
        let mut state = on_demand(Duration::ZERO);
        assert_eq!(state.handle_request(at(0), || 0), RequestFate::Begin(at(1000)));
        for waiter in 1..100 {
            assert_eq!(state.handle_request(at(waiter), || waiter as u32), RequestFate::Joined(at(1000)));
        }
        let answer = state.handle_outcome(at(100), Ok(Value::Integer(1)));
        assert_eq!(answer.waiters, (0..100).collect::<Vec<u32>>());
        assert_eq!(answer.outcome.map(|sampled| sampled.value), Ok(Value::Integer(1)));
        assert_eq!(
            state.handle_request(at(100), || 100),
            RequestFate::Begin(at(1100)),
            "and with max-age 0 no one later"
        );
    }

    #[test]
    fn one_failure_answers_all_who_wait_and_nobody_later() {
        let mut state = on_demand(SECOND);
        assert_eq!(state.handle_request(at(0), || 0), RequestFate::Begin(at(1000)));
        assert_eq!(state.handle_request(at(1), || 1), RequestFate::Joined(at(1000)));
        let answer = state.handle_outcome(at(2), Err(failed()));
        assert_eq!((answer.waiters, answer.outcome), (vec![0, 1], Err(failed())));
        assert_eq!(state.handle_request(at(3), || 2), RequestFate::Begin(at(1003)));
    }

    #[test]
    fn a_reading_answers_until_its_age() {
        let mut state = on_demand(SECOND);
        state.handle_request(at(0), || 0);
        state.handle_outcome(at(10), Ok(Value::Integer(1)));
        let RequestFate::Known(Ok(sampled)) = state.handle_request(at(1009), || 1) else { panic!("it is fresh") };
        assert_eq!(sampled.fresh_for(at(1009)), Duration::from_millis(1));
        assert_eq!(state.handle_request(at(1010), || 1), RequestFate::Begin(at(2010)));
    }

    #[test]
    fn an_overdue_read_answers_all_and_holds_up_nobody() {
        let mut state = on_demand(Duration::ZERO);
        state.handle_request(at(0), || 0);
        assert!(state.handle_timeout(at(999)).is_none());
        assert_eq!(state.poll_timeout(), Some(at(1000)));
        let answer = state.handle_timeout(at(1000)).expect("overdue");
        assert_eq!((answer.waiters, answer.outcome), (vec![0], Err(DeviceError::TimedOut(SECOND))));
        assert_eq!(state.handle_request(at(1001), || 1), RequestFate::Known(Err(DeviceError::Unresponsive)));
        assert_eq!(state.poll_timeout(), None);
        assert!(state.handle_outcome(at(5000), Ok(Value::Integer(1))).waiters.is_empty());
        assert_eq!(state.handle_request(at(5001), || 2), RequestFate::Begin(at(6001)), "it has come back");
    }

    #[test]
    fn a_periodic_property_is_answered_from_the_store_only() {
        let mut state = PropertyState::new(Sampling::Periodic { period: SECOND }, SECOND);
        let RequestFate::Known(Err(DeviceError::Absent(_))) = state.handle_request(at(0), || 0) else {
            panic!("nothing yet")
        };
        assert!(state.poll_sample(at(0)), "the first sample is due at once");
        assert!(!state.poll_sample(at(0)));
        state.handle_outcome(at(5), Ok(Value::Integer(1)));
        let RequestFate::Known(Ok(sampled)) = state.handle_request(at(505), || 0) else { panic!("it is in the store") };
        assert_eq!(sampled.fresh_for(at(505)), Duration::from_millis(500));
        assert_eq!(state.poll_timeout(), Some(at(1000)));
        assert!(!state.poll_sample(at(999)));
        assert!(state.poll_sample(at(1010)));
        assert_eq!(state.poll_timeout(), Some(at(2000)), "the rhythm stays");
        state.handle_outcome(at(1500), Err(failed()));
        assert!(matches!(state.handle_request(at(3005), || 0), RequestFate::Known(Ok(_))), "for three periods");
        assert_eq!(state.handle_request(at(3006), || 0), RequestFate::Known(Err(failed())));
    }

    #[test]
    fn samples_that_were_missed_are_not_made_up_for() {
        let mut state = PropertyState::<u32>::new(Sampling::Periodic { period: SECOND }, SECOND * 10);
        assert!(state.poll_sample(at(0)));
        assert!(!state.poll_sample(at(1000)), "the first is still in flight");
        state.handle_outcome(at(5500), Ok(Value::Integer(1)));
        assert!(state.poll_sample(at(5500)));
        state.handle_outcome(at(5501), Ok(Value::Integer(1)));
        assert!(!state.poll_sample(at(6000)));
        assert!(state.poll_sample(at(6500)));
    }

    #[test]
    fn a_property_on_demand_is_sampled_while_it_is_observed() {
        let mut state = on_demand(SECOND);
        assert_eq!(state.poll_timeout(), None);
        state.set_observed(at(100), true);
        assert!(state.poll_sample(at(100)));
        assert!(state.handle_outcome(at(101), Ok(Value::Integer(1))).changed);
        assert!(state.poll_sample(at(1100)));
        assert!(!state.handle_outcome(at(1101), Ok(Value::Integer(1))).changed, "the same value is no news");
        state.set_observed(at(1200), false);
        assert_eq!(state.poll_timeout(), None);
    }

    #[test]
    fn observers_are_told_what_was_sampled_for_them() {
        let mut state = on_demand(Duration::ZERO);
        state.set_observed(at(0), true);
        assert!(state.poll_sample(at(0)));
        state.handle_outcome(at(1), Ok(Value::Integer(1)));
        assert!(
            matches!(state.handle_request(at(2), || 0), RequestFate::Known(Ok(_))),
            "and no read for each notification"
        );
    }

    #[test]
    fn an_action_outdates_what_was_measured_before_it() {
        let mut state = on_demand(SECOND);
        state.handle_request(at(0), || 0);
        state.handle_outcome(at(1), Ok(Value::Integer(1)));
        state.handle_action(at(2));
        assert_eq!(state.handle_request(at(3), || 1), RequestFate::Begin(at(1003)));
        state.handle_action(at(4));
        state.handle_outcome(at(5), Ok(Value::Integer(1)));
        assert_eq!(
            state.handle_request(at(6), || 2),
            RequestFate::Begin(at(1006)),
            "that read began before the action"
        );
    }

    #[test]
    fn an_adaptive_property_is_read_for_the_first_request_after_a_pause_and_more_often_while_it_changes() {
        let policy = AdaptivePolicy { error: 1.0, period_min: SECOND / 10, period_max: SECOND * 60 };
        let mut state = PropertyState::<u32>::new(Sampling::Adaptive(policy), SECOND);
        assert!(state.poll_sample(at(0)));
        state.handle_outcome(at(1), Ok(Value::Real(0.0)));
        assert_eq!(state.poll_timeout(), Some(at(60_001)), "nobody asks");
        assert_eq!(state.handle_request(at(5000), || 0), RequestFate::Begin(at(6000)), "that reading is too old");
        state.handle_outcome(at(5001), Ok(Value::Real(0.0)));
        assert_eq!(state.poll_timeout(), Some(at(5151)), "somebody asked");
        assert!(state.poll_sample(at(5151)));
        state.handle_outcome(at(5151), Ok(Value::Real(5.0)));
        assert_eq!(state.poll_timeout(), Some(at(5251)), "it changes fast");
        let report = state.sensing(at(5151)).expect("it has adaptive sensing");
        assert_eq!((report.reads, report.exceeded, report.error_max), (3, 1, 5.0));
    }

    #[test]
    fn a_pushed_value_stays() {
        let mut state = PropertyState::<u32>::new(Sampling::Pushed { max_age: SECOND }, SECOND);
        assert!(matches!(state.handle_request(at(0), || 0), RequestFate::Known(Err(DeviceError::Absent(_)))));
        assert!(state.handle_outcome(at(0), Ok(Value::Integer(1))).changed);
        let RequestFate::Known(Ok(sampled)) = state.handle_request(at(9000), || 0) else { panic!("it stays") };
        assert_eq!(sampled.fresh_for(at(9000)), Duration::ZERO);
    }
}
