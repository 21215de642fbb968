//! Threads of the application that wait for an endpoint to change.

use std::time::Duration;

use thalweg_rtps::time::Instant;
use thalweg_transport::clock;

use crate::sync::Lock;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Counts the threads that wait for one endpoint, so that a notification without a waiting thread costs no system call.
#[derive(Debug, Default)]
pub(crate) struct Waiters(AtomicUsize);

impl Waiters {
    /// Releases the lock until the endpoint has changed or `deadline` has come. The caller checks its condition before and after,
    /// under the same lock.
    pub(crate) fn wait<'a, L: Lock>(&self, lock: &'a L, guard: L::Guard<'a>, deadline: Deadline) -> L::Guard<'a> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let woken = lock.wait(guard, deadline.left());
        self.0.fetch_sub(1, Ordering::Relaxed);
        woken
    }

    /// Wakes all waiting threads. The caller made its change under the endpoint's lock, which orders it before or after each wait.
    pub(crate) fn notify(&self, lock: &impl Lock) {
        if self.0.load(Ordering::Relaxed) > 0 {
            lock.notify_all();
        }
    }
}

/// The time until which a call may block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// A deadline that never comes.
    pub(crate) const NEVER: Deadline = Deadline(Instant::NEVER);

    /// The deadline `timeout` from now; never for an infinite one.
    pub(crate) fn after(timeout: Duration) -> Deadline {
        Deadline(clock::now() + timeout)
    }

    pub(crate) fn has_passed(self) -> bool {
        self.0 != Instant::NEVER && clock::now() >= self.0
    }

    fn left(self) -> Duration {
        // Bounded, because the system's own clock cannot count to infinity; the waiting thread checks again after an hour.
        self.0.since(clock::now()).min(Duration::from_secs(3600))
    }
}
