//! Variable thread adjustment as the paper prints it, with its defects, so that its figures can be reproduced.

use std::collections::VecDeque;

use super::{Controller, Decision, PeriodObservation, PoolLimits, REPEAT_AFTER, SAMPLES};

/// Equations (1) to (6) of the paper to the letter. They never take a thread away: equation (4) adds a number that is
/// never negative to the threads that run.
///
/// - (1) HT = (1/n) Σ H/N over i = 0…n, so n + 1 samples divided by n; as many as there are until then.
/// - (2) PD = (R − H) / HT
/// - (3) Q = (QS + e) / (HT · W)
/// - (4) P = max(PD, Q) + N
/// - (5) `NT_max` + 1 if HT fell and exceeds the highest HT for which this rule held before
/// - (6) N = 1 if P < 1; `NT_max` + 1 if P > `NT_max` (of the next period); else P, rounded
#[derive(Clone, Debug)]
pub struct VtaPrinted {
    handler_rate: HandlerRate,
    peak: PeakOf,
    limits: PoolLimits,
    /// H and N of the last n + 1 periods.
    samples: VecDeque<(f64, f64)>,
    /// R of the last n periods.
    arrivals: VecDeque<f64>,
    threads_max: usize,
    /// The input of (5), in the last period and at the highest value for which the rule held.
    rate_before: f64,
    rate_max: f64,
}

/// The meaning of H; the paper says "handler rate" and shows figures that only a capacity explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlerRate {
    /// Requests finished a second.
    Completions,
    /// Requests that all threads together could finish a second if they were always busy.
    Capacity,
}

/// Which rate equation (5) compares with its highest value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeakOf {
    /// HT, as the paper prints it.
    ThreadRate,
    /// H, as its draft and its authors' code have it.
    HandlerRate,
}

impl HandlerRate {
    fn of(self, observation: &PeriodObservation) -> f64 {
        match self {
            HandlerRate::Completions => observation.completion_rate(),
            HandlerRate::Capacity => capacity(observation),
        }
    }
}

/// Requests a second that the threads of a period could have finished together.
pub(super) fn capacity(observation: &PeriodObservation) -> f64 {
    let busy = observation.busy.as_secs_f64();
    if busy > 0.0 { observation.completions as f64 / busy * observation.threads as f64 } else { 0.0 }
}

impl VtaPrinted {
    /// The equations in their first period: one thread, and two at most (the authors' `N_0` and `NT_max,0`).
    pub fn new(handler_rate: HandlerRate, peak: PeakOf, limits: PoolLimits) -> VtaPrinted {
        VtaPrinted {
            handler_rate,
            peak,
            limits,
            samples: VecDeque::new(),
            arrivals: VecDeque::new(),
            threads_max: THREADS_MAX_AT_START,
            rate_before: 0.0,
            rate_max: 0.0,
        }
    }

    fn note(&mut self, handled: f64, observation: &PeriodObservation) {
        if self.samples.len() > SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back((handled, observation.threads.max(1) as f64));
        if self.arrivals.len() == SAMPLES {
            self.arrivals.pop_front();
        }
        self.arrivals.push_back(observation.arrival_rate());
    }

    /// Equation (5).
    fn adjust_maximum(&mut self, rate: f64) {
        if rate < self.rate_before && rate > self.rate_max {
            self.rate_max = rate;
            self.threads_max += 1;
        }
        self.rate_before = rate;
    }
}

impl Controller for VtaPrinted {
    fn handle_observation(&mut self, observation: &PeriodObservation) -> Decision {
        let held = observation.threads.max(1);
        let handled = self.handler_rate.of(observation);
        self.note(handled, observation);
        let threads_max_before = self.threads_max;
        let ceiling = self.limits.threads_max.max(1);
        let divisor = self.samples.len().min(SAMPLES) as f64;
        let per_thread = self.samples.iter().map(|(handled, threads)| handled / threads).sum::<f64>() / divisor;
        self.adjust_maximum(match self.peak {
            PeakOf::ThreadRate => per_thread,
            PeakOf::HandlerRate => handled,
        });
        if per_thread <= 0.0 {
            // The equations divide by it and say nothing about a pool that has done nothing.
            return Decision { threads: held.min(ceiling), threads_max: self.threads_max };
        }
        let expected = self.arrivals.iter().sum::<f64>() / self.arrivals.len() as f64;
        let deficit = (observation.arrival_rate() - handled) / per_thread;
        let for_queue = (observation.queue as f64 + expected) / (per_thread * REPEAT_AFTER.as_secs_f64());
        let wanted = deficit.max(for_queue) + held as f64;
        let threads = if wanted < 1.0 {
            1
        } else if wanted > self.threads_max as f64 {
            threads_max_before + 1
        } else {
            wanted.round() as usize
        };
        Decision { threads: threads.clamp(1, ceiling), threads_max: self.threads_max }
    }
}

const THREADS_MAX_AT_START: usize = 2;
