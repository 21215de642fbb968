//! The paper's control period for laws that count their samples in seconds.

use std::time::Duration;

use super::{Controller, Decision, PeriodObservation};

/// Gathers the observations of a second into one for `law`, whatever the period of the scheduler: the paper decides "every
/// second", and its n = 5 samples are the last five seconds.
#[derive(Clone, Debug)]
pub struct EverySecond<C> {
    law: C,
    gathered: PeriodObservation,
    /// Sum of the waits of the jobs that were taken, as far as means tell.
    waited: Duration,
    decided: Option<Decision>,
}

impl<C: Controller> EverySecond<C> {
    /// The law, in its first second.
    pub fn new(law: C) -> EverySecond<C> {
        EverySecond { law, gathered: PeriodObservation::default(), waited: Duration::ZERO, decided: None }
    }

    fn gather(&mut self, observation: &PeriodObservation) {
        let gathered = &mut self.gathered;
        gathered.period += observation.period;
        gathered.arrivals += observation.arrivals;
        gathered.completions += observation.completions;
        gathered.busy += observation.busy;
        gathered.processor += observation.processor;
        gathered.processor_wait += observation.processor_wait;
        self.waited += observation.sojourn * u32::try_from(observation.completions).unwrap_or(u32::MAX);
        (gathered.threads, gathered.queue) = (observation.threads, observation.queue);
    }
}

impl<C: Controller> Controller for EverySecond<C> {
    fn handle_observation(&mut self, observation: &PeriodObservation) -> Decision {
        self.gather(observation);
        if self.gathered.period < ALMOST_A_SECOND {
            let threads = observation.threads.max(1);
            return self.decided.unwrap_or(Decision { threads, threads_max: threads });
        }
        let mut gathered = std::mem::take(&mut self.gathered);
        let finished = u32::try_from(gathered.completions.max(1)).unwrap_or(u32::MAX);
        gathered.sojourn = std::mem::take(&mut self.waited) / finished;
        let decision = self.law.handle_observation(&gathered);
        self.decided = Some(decision);
        decision
    }
}

/// A timer that fires a little early must not double the period.
const ALMOST_A_SECOND: Duration = Duration::from_millis(950);

#[cfg(test)]
mod tests {
    use super::*;

    /// Tells what it was shown.
    #[derive(Default)]
    struct Shown(Vec<PeriodObservation>);

    impl Controller for Shown {
        fn handle_observation(&mut self, observation: &PeriodObservation) -> Decision {
            self.0.push(*observation);
            Decision { threads: 7, threads_max: 9 }
        }
    }

    #[test]
    fn five_samples_are_five_seconds_whatever_the_period() {
        for milliseconds in [100, 200, 1000] {
            let mut law = EverySecond::new(Shown::default());
            let period = Duration::from_millis(milliseconds);
            for _ in 0..5000 / milliseconds {
                let observation = PeriodObservation {
                    period,
                    threads: 2,
                    arrivals: milliseconds,
                    completions: milliseconds / 2,
                    busy: period,
                    queue: 3,
                    sojourn: Duration::from_millis(4),
                    ..PeriodObservation::default()
                };
                law.handle_observation(&observation);
            }
            let second = Duration::from_secs(1);
            let expected = PeriodObservation {
                period: second,
                threads: 2,
                arrivals: 1000,
                completions: 500,
                busy: second,
                queue: 3,
                sojourn: Duration::from_millis(4),
                ..PeriodObservation::default()
            };
            assert_eq!(law.law.0, [expected; 5], "{milliseconds} ms");
        }
    }

    #[test]
    fn a_decision_holds_until_the_next() {
        let mut law = EverySecond::new(Shown::default());
        let observation =
            PeriodObservation { period: Duration::from_millis(500), threads: 3, ..PeriodObservation::default() };
        let mut threads = || law.handle_observation(&observation).threads;
        assert_eq!([threads(), threads(), threads()], [3, 7, 7]);
    }
}
