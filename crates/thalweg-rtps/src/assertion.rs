//! When the application last asserted the liveliness of a participant, or of any writer whose liveliness is manual by participant.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::time::Instant;

/// The time of the last assertion; shared by the participant and its writers, which are written from any thread.
#[derive(Clone, Debug, Default)]
pub struct ManualAssertion(Arc<AtomicU64>);

impl ManualAssertion {
    /// The application gives a sign of life at `now`.
    pub fn assert(&self, now: Instant) {
        self.0.fetch_max(now.as_nanos(), Ordering::Relaxed);
    }

    /// The last sign of life; [`Instant::ZERO`] before the first.
    pub fn last(&self) -> Instant {
        Instant::from_nanos(self.0.load(Ordering::Relaxed))
    }
}
