//! What answers on a path take: at best, and usually.

use std::time::Duration;

use crate::time::Instant;

/// How long the shortest round trip counts, at least.
const PATH_PERIOD: Duration = Duration::from_secs(10);

/// What answers on a path take.
#[derive(Debug)]
pub(super) struct Path {
    /// The shortest of this period and of the one before: what they take when nobody waits for anybody.
    shortest: [Duration; 2],
    period_began: Instant,
    pub smoothed: Duration,
    /// When the queue was last let run empty.
    pub emptied_at: Instant,
}

impl Path {
    /// Nothing is known.
    pub(super) fn new(now: Instant) -> Path {
        Path { shortest: [Duration::MAX; 2], period_began: now, smoothed: Duration::ZERO, emptied_at: now }
    }

    /// An answer took so long.
    pub(super) fn note(&mut self, now: Instant, took: Duration) {
        if now.since(self.period_began) >= PATH_PERIOD {
            self.shortest = [took, self.shortest[0]];
            self.period_began = now;
        }
        self.shortest[0] = self.shortest[0].min(took);
        self.smooth(took);
    }

    /// A repair took so long at most: it is not repeated sooner.
    pub(super) fn note_repair(&mut self, took: Duration) {
        self.smooth(took);
        self.smoothed = self.smoothed.max(took);
    }

    fn smooth(&mut self, took: Duration) {
        self.smoothed = if self.smoothed.is_zero() { took } else { (self.smoothed * 3 + took) / 4 };
    }

    /// What an answer takes when nothing waits; nothing is assumed before the first.
    pub(super) fn base(&self) -> Duration {
        let shortest = self.shortest[0].min(self.shortest[1]);
        if shortest == Duration::MAX { Duration::ZERO } else { shortest }
    }
}
