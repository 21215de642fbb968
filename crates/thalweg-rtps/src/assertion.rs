//! When the application last asserted the liveliness of a participant, or of any writer whose liveliness is manual by participant.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::time::Instant;

/// The time of the last assertion; shared by the participant and its writers, which are written from any thread.
#[derive(Clone, Debug, Default)]
pub struct ManualAssertion(Arc<Signs>);

#[derive(Debug, Default)]
struct Signs {
    last: AtomicU64,
    /// From when on an assertion is to be told to others at once.
    awaited_from: AtomicU64,
}

impl ManualAssertion {
    /// The application gives a sign of life at `now`. True when the participant awaits it: the caller is to wake it, so that it tells
    /// others. Of several calls until it has told, one is answered so.
    pub fn assert(&self, now: Instant) -> bool {
        let Signs { last, awaited_from } = &*self.0;
        last.fetch_max(now.as_nanos(), Ordering::Relaxed);
        let from = awaited_from.load(Ordering::Relaxed);
        // Whoever is first asks. The others see that somebody has; the participant looks by itself if that one does not wake it.
        from <= now.as_nanos()
            && awaited_from
                .compare_exchange(from, Instant::NEVER.as_nanos(), Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// The last sign of life; [`Instant::ZERO`] before the first.
    pub fn last(&self) -> Instant {
        Instant::from_nanos(self.0.last.load(Ordering::Relaxed))
    }

    /// The participant awaits assertions from `from` on, [`Instant::NEVER`] for none.
    pub fn await_from(&self, from: Instant) {
        self.0.awaited_from.store(from.as_nanos(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_assertion_wakes_the_participant_until_it_has_told() {
        let at = Instant::from_nanos;
        let signs = ManualAssertion::default();
        signs.await_from(at(10));
        assert!(!signs.assert(at(9)), "it was told of one a moment ago");
        assert_eq!([10, 11, 12].map(|now| signs.assert(at(now))), [true, false, false]);
        assert_eq!(signs.last(), at(12));
        signs.await_from(at(20));
        assert_eq!([15, 20].map(|now| signs.assert(at(now))), [false, true]);
        signs.await_from(Instant::NEVER);
        assert!(!signs.assert(at(30)), "nobody listens");
    }
}
