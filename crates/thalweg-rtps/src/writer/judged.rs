//! Of how much that left for a reader it is known by now whether it arrived.
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
    /// The same when it was looked at last, and the time before.
    lately: u64,
    before: u64,
    looked_at: Instant,
    /// What had left, for all and for this reader alone, when the rate fell last: losses of that are not told any more.
    forgotten: (u64, u64),
}

impl Judged {
    pub(super) fn new(now: Instant) -> Judged {
        Judged { repaired: 0, lately: 0, before: 0, looked_at: now, forgotten: (0, 0) }
    }

    /// So much leaves for this reader alone. If it is lost, that is told after `told_after` at the earliest.
    pub(super) fn repair(&mut self, now: Instant, cost: u64, told_after: Duration) {
        self.look(now, told_after);
        self.repaired += cost;
    }

    /// What was repaired before the time before last has arrived, unless it is known to be lost.
    pub(super) fn look(&mut self, now: Instant, told_after: Duration) {
        let period = told_after * 3 / 2;
        let age = now.since(self.looked_at);
        if age >= period {
            self.before = if age >= period * 2 { self.repaired } else { self.lately };
            self.lately = self.repaired;
            self.looked_at = now;
        }
    }

    /// How much is known, of what left for all as far as it was `acknowledged`. What was forgotten counts as known.
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
        let amount_at = |judged: &mut Judged, millis| {
            judged.look(at(millis), TOLD_AFTER);
            judged.amount(0)
        };
        judged.repair(at(0), 100, TOLD_AFTER);
        judged.repair(at(29), 10, TOLD_AFTER);
        assert_eq!(amount_at(&mut judged, 30), 0);
        judged.repair(at(31), 1, TOLD_AFTER);
        assert_eq!(amount_at(&mut judged, 59), 0);
        assert_eq!(amount_at(&mut judged, 60), 110);
        assert_eq!(amount_at(&mut judged, 120), 111, "nothing happened for long");
    }

    #[test]
    fn what_left_before_the_rate_fell_is_not_counted_once_more() {
        let mut judged = Judged::new(at(0));
        judged.repair(at(0), 100, TOLD_AFTER);
        judged.forget(1_000);
        let known = judged.amount(700);
        assert_eq!(known, 1_100, "of which 700 were acknowledged");
        judged.look(at(70), TOLD_AFTER);
        assert_eq!(judged.amount(1_000) - known, 0);
        judged.repair(at(70), 10, TOLD_AFTER);
        judged.look(at(140), TOLD_AFTER);
        assert_eq!(judged.amount(1_200) - known, 210);
    }
}
