//! When requests are due in an open loop, fixed before the run. Times are nanoseconds since its start.

use super::plan::{ArrivalProcess, LoadPlan, Phase};

/// Evenly spaced times at one rate after the other.
pub(super) struct Schedule {
    steps: Vec<Step>,
    /// The step of the next time, and how many of it were taken.
    current: usize,
    taken: u64,
}

struct Step {
    start: u64,
    interval: f64,
    count: u64,
}

impl Schedule {
    /// The times of a plan's requests, those of the warm-up among them; `None` for a closed loop.
    pub(super) fn of(plan: &LoadPlan) -> Option<Schedule> {
        let phases = match &plan.arrival {
            ArrivalProcess::Closed(_) => return None,
            ArrivalProcess::Rate(rate) => vec![Phase { rate: rate * f64::from(plan.clients), duration: plan.duration }],
            ArrivalProcess::Phases(phases) => phases.clone(),
        };
        let warm_up = Phase { rate: phases.first()?.rate, duration: plan.warm_up };
        Some(Schedule::new([warm_up].into_iter().chain(phases)))
    }

    /// Times at one rate throughout a plan.
    pub(super) fn steady(rate: f64, plan: &LoadPlan) -> Schedule {
        Schedule::new([Phase { rate, duration: plan.warm_up + plan.counted() }])
    }

    fn new(phases: impl IntoIterator<Item = Phase>) -> Schedule {
        let mut start = 0;
        let steps = phases.into_iter().map(|phase| {
            let count = (phase.duration.as_secs_f64() * phase.rate).round() as u64;
            let step = Step { start, interval: 1e9 / phase.rate, count };
            start += phase.duration.as_nanos() as u64;
            step
        });
        Schedule { steps: steps.collect(), current: 0, taken: 0 }
    }

    /// Takes the next time if it is not after `now`.
    pub(super) fn take(&mut self, now: u64) -> Option<u64> {
        loop {
            let step = self.steps.get(self.current)?;
            if self.taken < step.count {
                let due = step.start + (self.taken as f64 * step.interval) as u64;
                self.taken += u64::from(due <= now);
                return (due <= now).then_some(due);
            }
            self.current += 1;
            self.taken = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_even_within_a_phase_and_wait_for_nobody() {
        let mut plan = LoadPlan::new(([127, 0, 0, 1], 5683).into());
        plan.warm_up = Duration::from_secs(1);
        plan.arrival = ArrivalProcess::Phases(vec!["10x1s".parse().unwrap(), "100x0.5s".parse().unwrap()]);
        let mut schedule = Schedule::of(&plan).unwrap();
        assert_eq!((schedule.take(0), schedule.take(0)), (Some(0), None));
        let times: Vec<u64> = std::iter::from_fn(|| schedule.take(u64::MAX)).map(|nanos| nanos / 1_000_000).collect();
        let expected: Vec<u64> = (1..20).map(|k| k * 100).chain((0..50).map(|k| 2000 + k * 10)).collect();
        assert_eq!(times, expected);
    }

    #[test]
    fn a_rate_is_that_of_each_client() {
        let mut plan = LoadPlan::new(([127, 0, 0, 1], 5683).into());
        assert!(Schedule::of(&plan).is_none(), "a closed loop has no schedule");
        (plan.clients, plan.arrival) = (40, ArrivalProcess::Rate(2.5));
        (plan.warm_up, plan.duration) = (Duration::ZERO, Duration::from_secs(3));
        let mut schedule = Schedule::of(&plan).unwrap();
        assert_eq!(std::iter::from_fn(|| schedule.take(u64::MAX)).count(), 300);
    }
}
