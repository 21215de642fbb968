//! Lateness that sending less does not take away: processors are busy, or others keep the queue of a link full.

use std::time::Duration;

/// Rounds since one that was late, and what was sent in them. Where a quarter of what then arrived is sent, a queue that this sender filled runs empty; answers that
/// are late even so are late for another reason.
#[derive(Debug)]
pub(super) struct LateInVain {
    /// What arrived in a second when answers were late first, if they were.
    uncut: Option<u64>,
    /// The longest delay since, as far as it may be this sender's own.
    own: Duration,
    /// For how long a quarter of that or less has been sent.
    low: Duration,
    /// Rounds in a row that were not late.
    quiet: u32,
}

/// So little is sent for so long, at least, before lateness counts as foreign.
const LOW_MIN: Duration = Duration::from_millis(100);
/// Rounds in a row that are not late, after which those before are forgotten. Fewer would be met between busy processors by chance.
const QUIET_MAX: u32 = 64;
/// Longer delays do not count as foreign: answers are then of no use to find a link's queue.
const FOREIGN_MAX: Duration = Duration::from_millis(500);
/// A foreign delay that is not seen again is forgotten in about this time.
const FORGOTTEN_IN: Duration = Duration::from_secs(4);

impl LateInVain {
    /// Nothing was late.
    pub(super) fn new() -> LateInVain {
        LateInVain { uncut: None, own: Duration::ZERO, low: Duration::ZERO, quiet: 0 }
    }

    /// Answers are late, by up to `delay`, when so much arrives in a second.
    pub(super) fn since(delivered: u64, delay: Duration) -> LateInVain {
        LateInVain { uncut: Some(delivered), own: delay, ..LateInVain::new() }
    }

    /// A round is over. Returns true once it is known that sending less does not help.
    pub(super) fn note(&mut self, round: &LateRound) -> bool {
        let Some(uncut) = self.uncut else {
            if round.is_late {
                *self = LateInVain::since(round.delivered, round.latest);
            }
            return false;
        };
        self.quiet = if round.is_late { 0 } else { self.quiet + 1 };
        if self.quiet >= QUIET_MAX {
            *self = LateInVain::new();
            return false;
        }
        if round.sent > uncut / 4 {
            if round.is_late {
                self.own = self.own.max(round.latest);
            }
            self.low = Duration::ZERO;
            return false;
        }
        let is_empty = self.low >= LOW_MIN.max(self.own * 2);
        self.low += round.elapsed;
        is_empty && round.is_late
    }

    /// True while so little is sent that it will be known why answers are late.
    pub(super) fn tries(&self) -> bool {
        self.low > Duration::ZERO
    }
}

/// What a round tells of lateness.
pub(super) struct LateRound {
    pub is_late: bool,
    /// What was sent in a second, and what arrived.
    pub sent: u64,
    pub delivered: u64,
    pub elapsed: Duration,
    /// How much longer than the shortest the latest answer took.
    pub latest: Duration,
}

/// The delay that is not this sender's, after answers that were late in vain. Those that follow may be later still.
pub(super) fn foreign(latest: Duration) -> Duration {
    (latest * 2).min(FOREIGN_MAX)
}

/// What remains of a `foreign` delay after a round in which answers took up to `latest` longer than the shortest.
pub(super) fn fade(foreign: Duration, latest: Duration, elapsed: Duration) -> Duration {
    let excess = foreign.saturating_sub(latest);
    let part = excess.as_nanos() * elapsed.as_nanos() / (FORGOTTEN_IN + elapsed).as_nanos();
    foreign - Duration::from_nanos(u64::try_from(part).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round of 50 ms that sends so many bytes a second, whose latest answer is late by so many milliseconds.
    fn round(sent: u64, late_ms: u64) -> LateRound {
        let latest = Duration::from_millis(late_ms);
        LateRound { is_late: late_ms > 0, sent, delivered: sent, elapsed: Duration::from_millis(50), latest }
    }

    /// After how many rounds like this it is known that a rate of 1 MB a second, with answers 100 ms late, was cut in vain.
    fn rounds_until_known(round: LateRound) -> Option<usize> {
        let mut late = LateInVain::since(1_000_000, Duration::from_millis(100));
        (1..=50).find(|_| late.note(&round))
    }

    #[test]
    fn answers_that_stay_late_after_the_queue_has_run_empty_are_late_for_another_reason() {
        assert_eq!(rounds_until_known(round(250_000, 30)), Some(5), "a queue of 100 ms has had 200 ms");
        assert_eq!(rounds_until_known(round(250_001, 30)), None, "the queue may be fuller than before");
        assert_eq!(rounds_until_known(round(250_000, 0)), None);
    }

    #[test]
    fn a_longer_queue_gets_more_time() {
        let mut late = LateInVain::new();
        assert!(!late.note(&round(1_000_000, 10)) && !late.note(&round(900_000, 300)));
        let known = (1..=50).find(|_| late.note(&round(100_000, 30)));
        assert_eq!(known, Some(13), "600 ms first");
    }

    #[test]
    fn what_was_late_long_ago_is_forgotten() {
        let mut late = LateInVain::since(1_000_000, Duration::from_millis(100));
        (0..QUIET_MAX).for_each(|_| assert!(!late.note(&round(100_000, 0))));
        assert!(!late.tries() && !late.note(&round(100_000, 30)));
        assert!(!(0..50).any(|_| late.note(&round(100_000, 30))), "a new beginning");
    }

    #[test]
    fn a_foreign_delay_fades_once_answers_are_quick() {
        let start = foreign(Duration::from_millis(40));
        assert_eq!(start, Duration::from_millis(80));
        assert_eq!(foreign(Duration::from_secs(3)), FOREIGN_MAX);
        let fade_for = |rounds, latest| (0..rounds).fold(start, |delay, _| fade(delay, latest, FORGOTTEN_IN / 40));
        assert!((27..33).contains(&fade_for(40, Duration::ZERO).as_millis()), "{:?}", fade_for(40, Duration::ZERO));
        assert_eq!(fade_for(40, start), start);
    }
}
