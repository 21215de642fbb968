//! What a round of answers tells of a path.

use std::time::Duration;

use super::congestion::{DATAGRAM, LOSS_MIN, LOSS_MOST};
use super::lateness::{LateInVain, LateRound};
use super::loss::{Loss, RunsLately};
use super::pace::{Pace, UNOPPOSED_FAST, UNOPPOSED_FASTEST, rate_of};
use crate::time::Instant;

/// What answers may take longer while nothing is paced: as long as a burst may take alone.
const DELAY_OPEN: Duration = Duration::from_millis(3);
/// Rate in a second at which pacing begins, at least: when next to nothing arrives, that may be for a reader that does not run, and at the
/// lowest rate it takes long to find out.
const FIRST_RATE_MIN: u64 = 300_000;
/// A path that was found to be full gets at most so long to drain.
const DRAIN_MAX: Duration = Duration::from_millis(500);
/// Kernel memory of datagrams that count as lost at a time: what is paced leaves in shorter bursts once something was lost.
const RUN_MIN: u64 = 8 * DATAGRAM;

/// A round.
#[cfg_attr(test, derive(Default))]
pub(super) struct Observed {
    pub sent: u64,
    /// Of how much it became known whether it arrived.
    pub known: u64,
    /// How much became known to have arrived, repairs included.
    pub arrived: u64,
    pub lost: Loss,
    /// The lost part in thousandths.
    pub share: u64,
    /// How much longer than the shortest the quickest answer took.
    pub delay: Option<Duration>,
    /// And the latest.
    pub latest: Duration,
    /// Each of the last few took longer than the one before.
    pub rises: bool,
    pub elapsed: Duration,
    /// Rates in a second: what was acknowledged, and what is known to have arrived.
    pub delivered: u64,
    pub survived: u64,
    /// The same of this round and the one before: what it lost may have been sent there.
    pub survived_twice: u64,
    /// Less is not believed at once.
    pub least: u64,
    /// What the reader's socket leaves of the send window.
    pub window: u64,
}

/// True when a lost `share` of what is `known` is more than a path with so much loss of its own loses, and more than chance makes of that
/// where `unit` is lost at a time: of pieces larger than an Ethernet frame, which are fewer, it takes a greater share now and then.
pub(super) fn exceeds(share: u64, known: u64, unit: u64, background: u64) -> bool {
    let own = if unit > DATAGRAM { background.max(LOSS_MIN) } else { background };
    let unit = unit.max(DATAGRAM);
    let chance = own * (1_000 - own) * unit / known.max(unit);
    share > 2 * LOSS_MIN + background + chance.isqrt() * 3
}

impl Observed {
    /// True when more is lost than a path with so much loss of its own loses, and more than chance makes of that.
    pub(super) fn exceeds(&self, background: u64) -> bool {
        exceeds(self.share, self.known, self.lost.datagram, background)
    }

    /// Judges what was lost: true when that is more than a path with so much loss of its own loses.
    ///
    /// Many datagrams that were lost at a time are one accident, unless they were most of what was sent or more follow in the next
    /// rounds. One that is excused counts for no more than what a path may lose by itself.
    pub(super) fn judge_loss(&mut self, lately: &mut RunsLately, background: u64) -> bool {
        lately.note(self.known, self.lost);
        let comes_in_runs = self.lost.cost / self.lost.events.max(1) >= RUN_MIN;
        let lossy = match comes_in_runs && self.share < LOSS_MOST {
            true => lately.are_several() && exceeds(lately.share(), lately.known, lately.unit(), background),
            false => self.lost.cost >= 2 * self.lost.datagram.max(DATAGRAM) && self.exceeds(background),
        };
        if lossy {
            *lately = RunsLately::default();
        } else if comes_in_runs {
            self.share = self.share.min(LOSS_MIN);
        }
        lossy
    }

    /// What the path seems to carry.
    pub(super) fn rate(&self, lossy: bool) -> u64 {
        let survived = match self.share < LOSS_MOST {
            true => self.survived,
            false => self.survived.min(self.survived_twice),
        };
        if lossy { survived } else { self.delivered }.max(self.least.min(survived))
    }

    /// True when answers show that something waits in front of a link: all of them took long, or each longer than the one before. One
    /// that is late, with others on its heels, is that of a busy reader. Answers were late by up to `foreign` before for other reasons.
    pub(super) fn is_late(&self, base: Duration, foreign: Duration) -> bool {
        let most = DELAY_OPEN + base / 4 + foreign;
        self.delay.is_some_and(|delay| delay > most) || self.rises && self.latest > most
    }

    /// Nothing leaves until all that is on its way has passed, so that the first answers after it tell the shortest round trip.
    pub(super) fn start_pacing(&self, now: Instant, rate: u64, base: Duration) -> Pace {
        let drains = (self.latest + base).min(DRAIN_MAX);
        // Of a burst that was lost for the most part nothing tells what the path carries.
        let unopposed = if self.share < LOSS_MOST { UNOPPOSED_FAST / 2 } else { UNOPPOSED_FASTEST };
        let mut pace = Pace::new(now, rate.max(FIRST_RATE_MIN), drains, unopposed);
        pace.late_in_vain = LateInVain::since(self.delivered.min(self.survived), self.latest);
        pace
    }

    /// What it tells of lateness.
    pub(super) fn lateness(&self, is_late: bool) -> LateRound {
        LateRound {
            is_late,
            sent: rate_of(self.sent, self.elapsed),
            delivered: self.delivered.min(self.survived),
            elapsed: self.elapsed,
            latest: self.latest,
        }
    }
}
