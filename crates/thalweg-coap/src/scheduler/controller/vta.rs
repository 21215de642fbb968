//! Variable thread adjustment in the reading that works.

use std::collections::VecDeque;
use std::time::Duration;

use super::work::{Work, grown, is_stuck};
use super::{Controller, Decision, PeriodObservation, PoolLimits, REPEAT_AFTER, SAMPLES, SHORTEST_PERIOD};

/// Equations (1) to (6) with their meaning instead of their letters; the default law.
///
/// - (1) HT is finished requests per *busy* thread-second, over the last five periods with work.
/// - (2) D1 = R / (HT · ρ): threads for what arrives, at a utilisation ρ of 0.8.
/// - (3) D2 = (QS + W · e) / (HT · W): threads that clear the queue before clients repeat their requests (W = 2 s). A
///   backlog asks for more: to be gone within half a second, D3 = (QS / 0.5 s + R) / HT.
/// - (4) P = ⌈max(D1, D2, D3)⌉. Nothing is added to N: all three are numbers of threads. Threads that work now are not
///   superfluous; and while all of them block so long that nothing is finished in a period, half as many more are needed.
/// - (5) `NT_max` is computed: processors ÷ the share of a processor that the handlers ask for, within what memory allows.
/// - (6) N = P within 1 and `NT_max`: more at once, fewer by half of the difference a second.
#[derive(Clone, Debug)]
pub struct Vta {
    limits: PoolLimits,
    work: Work,
    /// Arrivals a second of the last periods.
    arrivals: VecDeque<f64>,
    idle: Duration,
}

impl Vta {
    /// A law that has seen nothing yet.
    pub fn new(limits: PoolLimits) -> Vta {
        Vta { limits, work: Work::default(), arrivals: VecDeque::new(), idle: Duration::ZERO }
    }

    /// P of equation (4).
    fn wanted(&self, observation: &PeriodObservation) -> usize {
        let working = observation.busy.as_secs_f64() / observation.period.as_secs_f64().max(SHORTEST_PERIOD);
        let working = (working.ceil() as usize).min(observation.threads);
        let stuck = if is_stuck(observation) { grown(observation.threads) } else { 0 };
        let Some(rate) = self.work.rate() else { return working.max(stuck) };
        let repeat_after = REPEAT_AFTER.as_secs_f64();
        let arrivals = observation.arrival_rate();
        let expected = self.arrivals.iter().sum::<f64>() / self.arrivals.len().max(1) as f64;
        let queue = observation.queue as f64;
        let for_arrivals = arrivals / (rate * UTILISATION);
        let for_repeats = (queue + repeat_after * expected) / (rate * repeat_after);
        let for_backlog = if observation.queue > 0 { (queue / BACKLOG_SECONDS + arrivals) / rate } else { 0.0 };
        let wanted = for_arrivals.max(for_repeats).max(for_backlog).ceil() as usize;
        wanted.max(working).max(stuck)
    }
}

impl Controller for Vta {
    fn handle_observation(&mut self, observation: &PeriodObservation) -> Decision {
        self.work.note(observation);
        if self.arrivals.len() == SAMPLES {
            self.arrivals.pop_front();
        }
        self.arrivals.push_back(observation.arrival_rate());
        let is_idle = observation.arrivals == 0 && observation.queue == 0;
        self.idle = if is_idle { self.idle + observation.period } else { Duration::ZERO };

        let threads_max = self.work.useful_threads(self.limits);
        let held = observation.threads.max(1);
        let wanted = if self.idle >= IDLE_MAX { 1 } else { self.wanted(observation).clamp(1, threads_max) };
        let threads = if wanted >= held || self.idle >= IDLE_MAX {
            wanted
        } else {
            held - ((held - wanted) as f64 * part_of_way_down(observation.period)).ceil() as usize
        };
        Decision { threads: threads.clamp(1, threads_max), threads_max }
    }
}

/// The part of the difference that a pool that is too large loses in `period`: half in each second.
fn part_of_way_down(period: Duration) -> f64 {
    1.0 - 0.5f64.powf(period.as_secs_f64())
}

/// Busy share that the pool is sized for (ρ): the rest is room for requests that come in bunches.
const UTILISATION: f64 = 0.8;
/// Time in which an observed backlog shall be gone.
const BACKLOG_SECONDS: f64 = 0.5;
/// Without requests for this long, one thread stays.
const IDLE_MAX: Duration = Duration::from_secs(10);
