//! How much of the data that left for a reader is known by now to have arrived or not.
//!
//! Losses are told late, those of repairs later still. Counted against what was sent meanwhile, they would make one round look as if
//! half of it were lost, and the next one as if nothing were. Counted against what is known, they do not.

use std::time::Duration;

use crate::time::Instant;

/// Of how much that left for a reader it is known by now whether it arrived, in kernel memory at the reader.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged {
    /// Repairs and history that left for this reader alone, so far.
    pub repaired: u64,
    repaired_at: Instant,
    /// How much had been repaired when an answer was looked at last, and the time before.
    lately: u64,
    before: u64,
    looked_at: Instant,
    /// How much had left, for all and for this reader alone, when the rate fell last: losses of that are not told any more.
    forgotten: (u64, u64),
}

impl Judged {
    pub(super) fn new(now: Instant) -> Judged {
        Judged { repaired: 0, repaired_at: now, lately: 0, before: 0, looked_at: now, forgotten: (0, 0) }
    }

    /// So much leaves for this reader alone.
    pub(super) fn repair(&mut self, now: Instant, cost: u64) {
        self.repaired += cost;
        self.repaired_at = now;
    }

    /// The reader answers. Repairs that had left when it answered the time before last have arrived, unless they are known to be lost:
    /// they would have been asked for again after `told_after`.
    pub(super) fn look(&mut self, now: Instant, told_after: Duration) {
        let period = told_after * 3 / 2;
        if now.since(self.repaired_at) >= period {
            self.lately = self.repaired;
        } else if now.since(self.looked_at) < period {
            return;
        }
        self.before = self.lately;
        self.lately = self.repaired;
        self.looked_at = now;
    }

    /// How much is known, of what left for all as far as it was `acknowledged`. Everything forgotten counts as known.
    pub(super) fn amount(&self, acknowledged: u64) -> u64 {
        acknowledged.max(self.forgotten.0) + self.before.max(self.forgotten.1)
    }

    /// When so much was `sent` to all, losses of it and of all repairs so far are not told any more.
    pub(super) fn forget(&mut self, sent: u64) {
        self.forgotten = (sent, self.repaired);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD_AFTER: Duration = Duration::from_millis(20);

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn repairs_are_known_once_their_losses_were_told() {
        let mut judged = Judged::new(at(0));
        let answer_at = |judged: &mut Judged, millis| {
            judged.look(at(millis), TOLD_AFTER);
            judged.amount(0)
        };
        judged.repair(at(1), 100);
        assert_eq!(answer_at(&mut judged, 30), 0);
        judged.repair(at(31), 10);
        assert_eq!(answer_at(&mut judged, 59), 0);
        assert_eq!(answer_at(&mut judged, 60), 100);
        judged.repair(at(200), 1);
        assert_eq!(answer_at(&mut judged, 200), 110, "nothing was heard for long");
        assert_eq!(answer_at(&mut judged, 229), 110);
        assert_eq!(answer_at(&mut judged, 230), 111);
    }

    #[test]
    fn what_left_before_the_rate_fell_is_not_counted_once_more() {
        let mut judged = Judged::new(at(0));
        judged.repair(at(0), 100);
        judged.forget(1_000);
        let known = judged.amount(700);
        assert_eq!(known, 1_100, "of which 700 were acknowledged");
        judged.look(at(70), TOLD_AFTER);
        assert_eq!(judged.amount(1_000) - known, 0);
        judged.repair(at(70), 10);
        judged.look(at(140), TOLD_AFTER);
        assert_eq!(judged.amount(1_200) - known, 210);
    }
}
