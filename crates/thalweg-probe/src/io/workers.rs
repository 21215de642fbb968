//! A thread for each stream.

use std::thread::JoinHandle;
use std::time::Duration;

use thalweg_lab_station::Stop;

use crate::error::ProbeError;

/// The threads of a measurement at one end. Dropping it stops them and waits for them.
pub(super) struct Workers<Outcome> {
    threads: Vec<JoinHandle<Result<Outcome, ProbeError>>>,
    stop: Stop,
}

impl<Outcome: Send + 'static> Workers<Outcome> {
    /// Starts a thread for each item of `works`, which are asked to end by the [`Stop`] that they are given.
    pub(super) fn start<Work>(works: Vec<Work>, run: fn(Work, &Stop) -> Result<Outcome, ProbeError>) -> Workers<Outcome>
    where
        Work: Send + 'static,
    {
        let stop = Stop::default();
        let thread = |work| {
            let stop = stop.clone();
            std::thread::spawn(move || {
                // Its waits are as exact as the kernel can make them.
                thalweg_transport::thread::set_timer_slack(Duration::from_nanos(1));
                let outcome = run(work, &stop);
                if outcome.is_err() {
                    // Half a measurement is none.
                    stop.request();
                }
                outcome
            })
        };
        Workers { threads: works.into_iter().map(thread).collect(), stop }
    }

    pub(super) fn are_finished(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Asks them to end.
    pub(super) fn request_stop(&self) {
        self.stop.request();
    }

    /// Waits for them; what each made, in the order of the works.
    pub(super) fn finish(mut self) -> Result<Vec<Outcome>, ProbeError> {
        let outcomes: Vec<_> = self
            .threads
            .drain(..)
            .map(|thread| {
                thread.join().unwrap_or_else(|_| Err(ProbeError::Failed("a thread of a stream panicked".to_owned())))
            })
            .collect();
        // One that failed has stopped the others, whose ends tell nothing.
        let is_cause = |outcome: &Result<Outcome, ProbeError>| {
            outcome.as_ref().is_err_and(|error| !matches!(error, ProbeError::Interrupted))
        };
        let (causes, others): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(is_cause);
        causes.into_iter().chain(others).collect()
    }
}

impl<Outcome> Drop for Workers<Outcome> {
    fn drop(&mut self) {
        self.stop.request();
        // Whoever drops them has no use for what they made.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}
