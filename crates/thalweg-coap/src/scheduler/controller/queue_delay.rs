//! A law that looks at how long requests wait.

use std::time::Duration;

use super::work::{Work, grown, is_stuck};
use super::{Controller, Decision, PeriodObservation, PoolLimits};

/// Half as many threads more in each period in which requests waited for more than 10 ms on the average; one less in each
/// in which they waited for less than a quarter of that and threads had nothing to do for more than 30 % of their time.
///
/// It knows neither rates nor a model, and stops where more threads would get nothing more done.
#[derive(Clone, Debug)]
pub struct QueueDelay {
    limits: PoolLimits,
    work: Work,
}

impl QueueDelay {
    /// A law that has seen nothing yet.
    pub fn new(limits: PoolLimits) -> QueueDelay {
        QueueDelay { limits, work: Work::default() }
    }
}

impl Controller for QueueDelay {
    fn handle_observation(&mut self, observation: &PeriodObservation) -> Decision {
        self.work.note(observation);
        let threads_max = self.work.useful_threads(self.limits);
        let held = observation.threads.max(1);
        let threads = if observation.sojourn > DELAY_MAX || is_stuck(observation) {
            grown(held)
        } else if observation.sojourn < DELAY_MAX / 4 && observation.busy_share() < BUSY_ENOUGH {
            held - 1
        } else {
            held
        };
        Decision { threads: threads.clamp(1, threads_max), threads_max }
    }
}

/// Mean wait in the queue from which more threads are wanted.
const DELAY_MAX: Duration = Duration::from_millis(10);
/// Busy share from which no thread is superfluous.
const BUSY_ENOUGH: f64 = 0.7;
