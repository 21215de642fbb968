//! DEADLINE at one endpoint: which of its instances were not updated within the period (DDS 1.4 §2.2.3.7).

use std::time::Duration;

use super::period_watch::PeriodWatch;
use crate::status::{Status, StatusCounts, Told};
use crate::time::{INFINITE, Instant, nanos};
use crate::types::KeyHash;

/// Periods that passed without a sample of an instance: OFFERED_DEADLINE_MISSED of a writer, REQUESTED_DEADLINE_MISSED of a reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadlineMissed {
    /// Periods ever missed, each instance by itself.
    pub total: u64,
    /// Of these, since the status was last read or told.
    pub total_change: u64,
    /// The instance that missed the last one; all zero on keyless topics.
    pub last_instance: Option<KeyHash>,
}

impl DeadlineMissed {
    /// The status as it was seen, unless another thread has looked later and been here before.
    pub fn update(&mut self, seen: DeadlineMissed) {
        if seen.total > self.total {
            *self = seen;
        }
    }
}

impl Told for DeadlineMissed {
    fn counts(&self) -> StatusCounts {
        StatusCounts { total: self.total, current: 0 }
    }

    fn since(&self, told: StatusCounts) -> DeadlineMissed {
        DeadlineMissed { total_change: self.counts().total_change(told), ..*self }
    }
}

/// The instances of an endpoint with a finite DEADLINE.
#[derive(Debug)]
pub struct Deadlines {
    watch: PeriodWatch,
    missed: Status<DeadlineMissed>,
}

impl Deadlines {
    /// `None` for an infinite period.
    pub fn new(period: Duration) -> Option<Deadlines> {
        (period != INFINITE).then(|| Deadlines { watch: PeriodWatch::new(period), missed: Status::default() })
    }

    /// Changes the period, which begins anew at `now` for every instance. With an infinite one nothing is expected any more; what was
    /// missed stays counted.
    pub fn set_period(&mut self, now: Instant, period: Duration) {
        match period {
            INFINITE => self.watch = PeriodWatch::new(INFINITE),
            period => self.watch.set_period(now, period),
        }
    }

    /// A sample of an instance came or was written: its period begins anew.
    pub fn met(&mut self, now: Instant, instance: KeyHash) {
        if self.watch.period() != INFINITE {
            self.watch.renew(now, instance);
        }
    }

    /// Nothing is expected of an instance any more.
    pub fn end(&mut self, instance: KeyHash) {
        self.watch.end(instance);
    }

    /// Something is expected only of the instances that `keep` wants.
    pub fn retain(&mut self, keep: impl Fn(KeyHash) -> bool) {
        self.watch.retain(keep);
    }

    /// When [`Deadlines::check`] has something to do.
    pub fn next_due(&self) -> Instant {
        self.watch.next_end()
    }

    /// Counts the periods that have ended by `now`, and calls `missed` for each instance. True when there were any.
    pub fn check(&mut self, now: Instant, mut missed: impl FnMut(KeyHash)) -> bool {
        let period = nanos(self.watch.period()).max(1);
        let mut any = false;
        while let Some((instance, ended)) = self.watch.pop_ended(now) {
            let periods = 1 + nanos(now.since(ended)) / period;
            self.missed.change(|status| {
                status.total += periods;
                status.last_instance = Some(instance);
            });
            self.watch.renew(now, instance);
            missed(instance);
            any = true;
        }
        any
    }

    /// The status as it is now.
    pub fn missed(&self) -> DeadlineMissed {
        *self.missed.now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> KeyHash {
        KeyHash([number; 16])
    }

    #[test]
    fn each_period_of_each_instance_counts_until_the_instance_ends() {
        let mut deadlines = Deadlines::new(Duration::from_nanos(10)).expect("a finite period");
        let at = Instant::from_nanos;
        deadlines.met(at(0), key(1));
        deadlines.met(at(5), key(2));
        let mut missed = Vec::new();
        assert!(!deadlines.check(at(9), |key| missed.push(key)));
        assert!(deadlines.check(at(10), |key| missed.push(key)));
        assert_eq!((missed.as_slice(), deadlines.missed().total, deadlines.next_due()), (&[key(1)][..], 1, at(15)));
        // The timer is late by two whole periods for the second.
        assert!(deadlines.check(at(35), |key| missed.push(key)));
        assert_eq!(missed, [key(1), key(2), key(1)]);
        assert_eq!((deadlines.missed().total, deadlines.missed().last_instance), (1 + 3 + 2, Some(key(1))));
        deadlines.end(key(1));
        deadlines.end(key(2));
        assert!(!deadlines.check(at(1_000), |_| ()));
        assert!(Deadlines::new(INFINITE).is_none());
    }
}
