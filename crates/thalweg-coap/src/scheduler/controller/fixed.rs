//! A number of threads that never changes.

use super::{Controller, Decision, PeriodObservation, PoolLimits};

/// Always the same number of threads, as in MinT.
#[derive(Clone, Copy, Debug)]
pub struct Fixed(usize);

impl Fixed {
    /// The configured number, at least one and at most the machine's limit.
    pub fn new(threads: usize, limits: PoolLimits) -> Fixed {
        Fixed(threads.clamp(1, limits.threads_max.max(1)))
    }
}

impl Controller for Fixed {
    fn handle_observation(&mut self, _: &PeriodObservation) -> Decision {
        Decision { threads: self.0, threads_max: self.0 }
    }
}
