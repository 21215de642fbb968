//! Estimates of the work from the last periods: the rate of one thread, and its share of a processor.

use std::collections::VecDeque;

use super::{PeriodObservation, PoolLimits, SAMPLES};

/// The last periods in which handlers worked.
#[derive(Clone, Debug, Default)]
pub(super) struct Work {
    periods: VecDeque<PeriodObservation>,
    rate: Option<f64>,
}

impl Work {
    /// Takes a period in which something was done; an idle one says nothing about the work. One in which nothing was
    /// finished belongs to the one before it, or handlers that take longer than a period would look as if they never ended.
    pub(super) fn note(&mut self, observation: &PeriodObservation) {
        if observation.busy.is_zero() && observation.completions == 0 {
            return;
        }
        match self.periods.back_mut().filter(|_| observation.completions == 0) {
            Some(last) => {
                last.busy += observation.busy;
                last.processor += observation.processor;
                last.processor_wait += observation.processor_wait;
            }
            None => self.periods.push_back(*observation),
        }
        if self.periods.len() > SAMPLES {
            self.periods.pop_front();
        }
        let completions: u64 = self.periods.iter().map(|period| period.completions).sum();
        let busy: f64 = self.periods.iter().map(|period| period.busy.as_secs_f64()).sum();
        if completions > 0 && busy > 0.0 {
            self.rate = Some(completions as f64 / busy);
        }
    }

    /// Requests that one busy thread finishes a second (HT): the inverse of the mean service time. Kept while nothing is
    /// done; `None` before anything was.
    pub(super) fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// Threads beyond which more of them get nothing more done: with as many the processors have no time left.
    ///
    /// The share of a processor that the work asks for leaves out the time it waited for one. Else more threads would
    /// make it look as if it blocked, and the cap would rise with them.
    pub(super) fn useful_threads(&self, limits: PoolLimits) -> usize {
        let sum = |part: fn(&PeriodObservation) -> f64| self.periods.iter().map(part).sum::<f64>();
        let processor = sum(|period| period.processor.as_secs_f64());
        let wanted = sum(|period| period.busy.saturating_sub(period.processor_wait).as_secs_f64()).max(processor);
        let ceiling = limits.threads_max.max(1);
        let share = processor / wanted;
        if !share.is_finite() || share <= 0.0 {
            return ceiling;
        }
        let processors = limits.processors.max(1) as f64;
        let useful = if share > PROCESSOR_BOUND { processors } else { (processors / share).ceil() };
        (useful as usize).clamp(1, ceiling)
    }
}

/// The number of threads after one that was too small: half as many more, at least one.
pub(super) fn grown(threads: usize) -> usize {
    threads + (threads / 2).max(1)
}

/// Whether the threads finished no job although they had work: all of them block for longer than a period.
pub(super) fn is_stuck(observation: &PeriodObservation) -> bool {
    observation.queue > 0 && observation.completions == 0
}

/// Share of a processor from which work counts as bound by it: then one thread a processor is enough.
const PROCESSOR_BOUND: f64 = 0.8;
