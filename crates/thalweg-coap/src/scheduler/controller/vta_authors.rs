//! Variable thread adjustment as the paper's authors built it (`SystemScheduler/ThreadAdjustment.java`).

use std::collections::VecDeque;

use super::vta_printed::capacity;
use super::{Controller, Decision, PeriodObservation, PoolLimits};

/// The published code: H is the capacity of all threads, HT the mean of the last three of them (not divided by N), the
/// queue counts by how full it is, and the cap rises by one whenever a falling H is still above the last recorded peak.
///
/// It can shrink, unlike the printed equations. The original measures R as a capacity as well; here R is what arrives.
#[derive(Clone, Debug)]
pub struct VtaAuthors {
    limits: PoolLimits,
    /// Capacities of the last periods with work, the current one not among them.
    capacities: VecDeque<f64>,
    /// Parts of a full queue that were seen and have not become a thread.
    queue_debt: f64,
    threads_max: usize,
    capacity_before: f64,
    capacity_max: f64,
}

impl VtaAuthors {
    /// One thread, and two at most.
    pub fn new(limits: PoolLimits) -> VtaAuthors {
        VtaAuthors {
            limits,
            capacities: VecDeque::new(),
            queue_debt: 0.0,
            threads_max: THREADS_MAX_AT_START,
            capacity_before: 0.0,
            capacity_max: 0.0,
        }
    }

    fn wanted(&mut self, observation: &PeriodObservation, handled: f64) -> f64 {
        self.queue_debt += observation.queue as f64 / QUEUE_MAX;
        let for_queue = self.queue_debt.floor();
        self.queue_debt -= for_queue;
        let held = observation.threads as f64;
        if self.capacities.is_empty() {
            return held - 1.0;
        }
        let mean = self.capacities.iter().sum::<f64>() / self.capacities.len() as f64;
        ((observation.arrival_rate() - handled) / mean).round() + for_queue + held
    }
}

impl Controller for VtaAuthors {
    fn handle_observation(&mut self, observation: &PeriodObservation) -> Decision {
        let handled = capacity(observation);
        let wanted = self.wanted(observation, handled);
        if handled < self.capacity_before && handled > self.capacity_max {
            self.capacity_max = handled;
            self.threads_max += 1;
        }
        self.capacity_before = handled;
        if handled > 0.0 {
            if self.capacities.len() == SAMPLES {
                self.capacities.pop_front();
            }
            self.capacities.push_back(handled);
        }
        let most = self.threads_max.min(self.limits.threads_max).max(1);
        Decision { threads: (wanted.max(1.0) as usize).min(most), threads_max: self.threads_max }
    }
}

const THREADS_MAX_AT_START: usize = 2;
/// Samples that the code averages over; the paper says five.
const SAMPLES: usize = 3;
/// Entries that the code's queue holds.
const QUEUE_MAX: f64 = 100_000.0;
