//! How the rate of a path follows what a round of answers tells of it.

use std::time::Duration;

use super::congestion::{BACKGROUND_MAX, Background, Change, DATAGRAM, EMPTY_MAX, LOSS_MIN};
use super::observed::Observed;
use super::pace::{CutsInVain, Pace, UNOPPOSED_FAST, time_for};

/// What answers may take longer before a link counts as full.
const DELAY_MIN: Duration = Duration::from_micros(300);
/// Who sends less than others may let more wait: the geometric mean of this and of the time between two of its datagrams.
const DELAY_SHARED: Duration = Duration::from_millis(1);
/// By how many thousandths delay slows down.
const CUT_RANGE: std::ops::RangeInclusive<u64> = 40..=400;
/// Loss in thousandths at which the next decision waits for nothing.
const LOSS_HEAVY: u64 = 300;
/// The first round that loses much slows down by no more, in thousandths: what it lost may have been lost before.
const CUT_MAX: u64 = 500;
/// Rounds after which that is tried again.
const TRUSTED_MAX: u32 = 16;

impl Pace {
    /// What the quickest answer of a round may take beyond the shortest.
    pub(super) fn target(&self, base: Duration) -> Duration {
        let packet = time_for(DATAGRAM, self.rate);
        DELAY_MIN + base / 8 + (packet * 5 / 4).max(geometric_mean(packet, DELAY_SHARED))
    }

    /// Changes the rate, or the length of bursts, after a round.
    pub(super) fn adapt(
        &mut self,
        observed: &Observed,
        lossy: bool,
        base: Duration,
        background: &mut Background,
    ) -> Change {
        let delay = observed.delay.unwrap_or_default();
        let target = self.target(base) + background.delay;
        let shortens = self.bursts.handle_round(observed, self.rate, lossy);
        let (late, lossy) = (delay > target, lossy && self.waited);
        let background_loss = &mut background.loss;
        // Shorter bursts may be all that it takes.
        let shortens = shortens && lossy && !late && observed.share < LOSS_HEAVY;
        if observed.exceeds(BACKGROUND_MAX) {
            // No path loses so much by itself.
            self.in_vain = CutsInVain::default();
        } else {
            self.in_vain.note(self.rate, lossy, observed.known, observed.lost);
        }
        self.lossy = if lossy { self.lossy + 1 } else { 0 };
        self.unopposed = if late || lossy && !shortens { 0 } else { self.unopposed + 1 };
        if let Some(before) = self.doubted.take() {
            if observed.share * 2 < *background_loss {
                // The loss was the link's, which was full.
                *background_loss = observed.share;
            } else {
                self.rate = before;
            }
        } else if let Some(loss) = self.in_vain.loss(*background_loss).filter(|_| lossy) {
            let cuts = std::mem::take(&mut self.in_vain);
            *background_loss = loss.min(BACKGROUND_MAX);
            self.rate = self.rate.midpoint(cuts.uncut.unwrap_or(0).max(self.rate));
            self.unopposed = UNOPPOSED_FAST;
        } else if late && !lossy && self.late_in_vain.tries() {
            self.drain(delay.min(EMPTY_MAX + base));
        } else if late {
            // What was too much has gathered in the queue since the round began.
            let excess = (delay - target).as_nanos() * 1_000 / observed.elapsed.as_nanos().max(1);
            self.drain(delay.min(EMPTY_MAX + base));
            self.slow_down(u64::try_from(excess).unwrap_or(u64::MAX).clamp(*CUT_RANGE.start(), *CUT_RANGE.end()));
        } else if shortens {
            self.waited = false;
        } else if lossy {
            let most = if self.lossy > 1 { 1_000 } else { CUT_MAX };
            self.slow_down(observed.share.saturating_sub(*background_loss).min(most) + CUT_RANGE.start());
        } else {
            *background_loss = ((*background_loss * 7 + observed.share) / 8).min(BACKGROUND_MAX);
            self.trusted += 1;
            if *background_loss > LOSS_MIN && self.trusted >= TRUSTED_MAX {
                self.doubt(*background_loss);
                return Change::Slower;
            }
            if std::mem::take(&mut self.waited) {
                let room = target.saturating_sub(observed.latest).as_nanos() * 1_000 / target.as_nanos();
                self.speed_up(observed.elapsed, base, u64::try_from(room).unwrap_or(0));
            }
        }
        if late || lossy { Change::Slower } else { Change::Other }
    }
}

fn geometric_mean(one: Duration, other: Duration) -> Duration {
    Duration::from_nanos((one.as_nanos() * other.as_nanos()).isqrt() as u64)
}
