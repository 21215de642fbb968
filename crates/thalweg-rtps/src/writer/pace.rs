//! Paced output: credit that grows with time, short bursts, and changes of the rate.

use std::time::Duration;

use super::bursts::Bursts;
use super::congestion::DATAGRAM;
use super::lateness::LateInVain;
use super::loss::Loss;
use super::observed::exceeds;
use crate::time::Instant;

/// Paced output.
#[derive(Debug)]
pub(super) struct Pace {
    /// In a second.
    pub rate: u64,
    /// Bytes that may leave now; negative when more have left.
    pub credit: i64,
    credited_at: Instant,
    pub bursts: Bursts,
    /// Something had to wait since the round began, so that the rate decided how much left.
    pub waited: bool,
    /// Rounds in a row in which nothing spoke against the rate.
    pub unopposed: u32,
    /// Rounds in a row that lost much.
    pub lossy: u32,
    pub in_vain: CutsInVain,
    pub late_in_vain: LateInVain,
    /// Rounds since it was tried last whether the path's own loss goes away when less is sent.
    pub trusted: u32,
    /// It is being tried; the rate before.
    pub doubted: Option<u64>,
}

/// Rounds after one that lost much, in which far less was sent than in that one. Judged together, they tell whether less was lost as well.
#[derive(Debug, Default)]
pub(super) struct CutsInVain {
    pub rounds: u32,
    /// The rate of the round that lost much.
    pub uncut: Option<u64>,
    /// Kernel memory of which it became known in them whether it arrived, and of what was lost.
    pub known: u64,
    pub lost: Loss,
}

impl CutsInVain {
    /// Another round is over; `is_lossy` if it lost much.
    pub(super) fn note(&mut self, rate: u64, is_lossy: bool, known: u64, lost: Loss) {
        let uncut = match self.uncut {
            Some(uncut) => uncut,
            None if is_lossy => *self.uncut.insert(rate),
            None => return,
        };
        if rate <= uncut / 4 * 3 || rate <= *RATE_RANGE.start() {
            self.rounds += 1;
            self.known += known;
            self.lost = self.lost.and(lost);
        }
        if self.rounds > CUT_ROUNDS_MAX {
            *self = CutsInVain::default();
        }
    }

    /// What was lost of what was sent at the lower rates, in thousandths, if that is more than chance and a loss of `background` make:
    /// sending less does not help.
    pub(super) fn loss(&self, background: u64) -> Option<u64> {
        let share = self.lost.cost * 1_000 / self.known.max(1);
        (self.rounds >= VAIN_MAX && exceeds(share, self.known, self.lost.datagram, background)).then_some(share)
    }
}

/// Rates in a second. Beyond the highest, about 2.4 Gbit/s, timers are too coarse to pace, and processors are what limits.
pub(super) const RATE_RANGE: std::ops::RangeInclusive<u64> = 60_000..=500_000_000;
/// Round trips count as longer by so much where rates grow by a part of a datagram in each.
const ADDED_PERIOD: Duration = Duration::from_millis(10);
/// Rounds without delay or loss after which the rate grows by a quarter in each.
pub(super) const UNOPPOSED_FAST: u32 = 20;
/// And after which it doubles in each, as far as the queue has room.
pub(super) const UNOPPOSED_FASTEST: u32 = 28;
/// Rounds at a lower rate after which it is judged whether that is in vain, at the earliest.
const VAIN_MAX: u32 = 2;
/// And after which it was not.
const CUT_ROUNDS_MAX: u32 = 32;
/// Latecoming timers are made up for up to so many bursts, or so long.
const LATE_BURSTS: u32 = 4;
const LATE_MIN: Duration = Duration::from_micros(200);

impl Pace {
    /// A path was found to be full. It gets time to drain.
    pub(super) fn new(now: Instant, delivered: u64, drains: Duration, unopposed: u32) -> Pace {
        Pace {
            rate: (delivered / 100 * 95).clamp(*RATE_RANGE.start(), *RATE_RANGE.end()),
            credit: 0,
            credited_at: now + drains,
            bursts: Bursts::new(),
            waited: false,
            unopposed,
            lossy: 0,
            in_vain: CutsInVain::default(),
            late_in_vain: LateInVain::new(),
            trusted: 0,
            doubted: None,
        }
    }

    pub(super) fn refill(&mut self, now: Instant) -> u64 {
        if now > self.credited_at {
            let earned = i64::try_from(amount(self.rate, now.since(self.credited_at))).unwrap_or(i64::MAX);
            let late = amount(self.rate, (self.bursts.length * LATE_BURSTS).max(LATE_MIN));
            let most = i64::try_from(late.max(self.burst_amount())).unwrap_or(i64::MAX);
            self.credit = self.credit.saturating_add(earned).min(most);
            self.credited_at = now;
        }
        u64::try_from(self.credit).unwrap_or(0)
    }

    /// When a whole burst may leave.
    pub(super) fn full_at(&self, now: Instant) -> Instant {
        let missing = u64::try_from(self.burst_amount() as i64 - self.credit).unwrap_or(0);
        self.credited_at.max(now) + time_for(missing, self.rate)
    }

    fn burst_amount(&self) -> u64 {
        self.bursts.amount(self.rate)
    }

    /// Takes `delay` off the queue, as this sender's share.
    pub(super) fn drain(&mut self, delay: Duration) {
        self.credit -= i64::try_from(amount(self.rate, delay)).unwrap_or(i64::MAX);
    }

    /// By so many thousandths.
    pub(super) fn slow_down(&mut self, thousandths: u64) {
        self.rate = (self.rate / 1_000 * 1_000u64.saturating_sub(thousandths)).max(*RATE_RANGE.start());
        self.waited = false;
    }

    /// Tries whether the path's own loss is its own.
    pub(super) fn doubt(&mut self, background: u64) {
        self.doubted = Some(self.rate);
        self.rate = (self.rate * (1_000 - background) / 1_000 / 100 * 95).max(*RATE_RANGE.start());
        self.trusted = 0;
    }

    /// By an amount that is the same for all senders on a link, so that their rates become equal by and by, and by more the longer nothing
    /// speaks against it; all the less the less `room`, in thousandths, the queue has.
    pub(super) fn speed_up(&mut self, elapsed: Duration, base: Duration, room: u64) {
        let round_trip = base + ADDED_PERIOD;
        let added = rate_of(amount(rate_of(DATAGRAM, round_trip), elapsed), round_trip);
        let growth = 128 >> (self.unopposed / 4).min(7);
        let step = added.min(self.rate / 16).max(self.rate / growth);
        self.rate = (self.rate + step * room / 1_000).min(*RATE_RANGE.end());
        self.bursts.grow();
    }
}

/// Bytes at `rate` in that time.
pub(super) fn amount(rate: u64, time: Duration) -> u64 {
    u64::try_from(u128::from(rate) * time.as_nanos() / 1_000_000_000).unwrap_or(u64::MAX)
}

/// How long `amount` takes at a rate.
pub(super) fn time_for(amount: u64, rate: u64) -> Duration {
    let nanos = u128::from(amount) * 1_000_000_000 / u128::from(rate.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// In a second.
pub(super) fn rate_of(amount: u64, time: Duration) -> u64 {
    u64::try_from(u128::from(amount) * 1_000_000_000 / time.as_nanos().max(1)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 MB a second.
    fn pace() -> Pace {
        Pace::new(Instant::ZERO, 10_526_316, Duration::ZERO, 0)
    }

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    #[test]
    fn credit_grows_with_time_and_no_pause_saves_more_than_a_few_bursts() {
        let mut pace = pace();
        assert_eq!(pace.refill(at(100)), 999);
        pace.credit -= 5_000;
        assert_eq!(pace.refill(at(100)), 0);
        assert_eq!(pace.refill(at(600)), 998);
        assert_eq!(pace.refill(at(1_000_000)), 19_999, "four bursts of 500 us");
        pace.bursts.length = Duration::from_micros(15);
        pace.credit = 0;
        assert_eq!(pace.refill(at(2_000_000)), 2_560, "a datagram at least");
        assert_eq!(pace.burst_amount(), 2_560);
    }

    const ROUND: u64 = 20 * DATAGRAM;

    fn lost(datagrams: u64) -> Loss {
        Loss::datagrams(datagrams, DATAGRAM)
    }

    #[test]
    fn what_is_lost_at_lower_rates_is_judged_together() {
        let mut cuts = CutsInVain::default();
        cuts.note(900_000, false, ROUND, lost(2));
        assert_eq!(cuts.uncut, None);
        cuts.note(900_000, true, ROUND, lost(10));
        cuts.note(700_000, true, ROUND, lost(5));
        assert_eq!((cuts.uncut, cuts.rounds), (Some(900_000), 0), "hardly less was sent");
        for count in [10, 0] {
            assert_eq!(cuts.loss(0), None);
            cuts.note(600_000, count > 0, ROUND, lost(count));
        }
        assert_eq!(cuts.loss(0), Some(250));
        assert_eq!(cuts.loss(150), None, "of 40 datagrams 10 may be lost by chance");
    }

    #[test]
    fn a_loss_that_went_away_with_the_rate_is_forgotten() {
        let mut cuts = CutsInVain::default();
        cuts.note(900_000, true, ROUND, lost(10));
        (0..CUT_ROUNDS_MAX).for_each(|_| cuts.note(400_000, false, ROUND, lost(0)));
        assert_eq!(cuts.loss(0), None);
        assert_eq!(cuts.uncut, Some(900_000));
        cuts.note(400_000, false, ROUND, lost(0));
        assert_eq!(cuts.uncut, None);
    }

    #[test]
    fn where_no_less_can_be_sent_every_round_counts() {
        let mut cuts = CutsInVain::default();
        let lowest = *RATE_RANGE.start();
        (0..VAIN_MAX).for_each(|_| cuts.note(lowest, true, ROUND, lost(5)));
        assert_eq!(cuts.loss(0), Some(250));
    }

    #[test]
    fn rates_that_share_a_link_become_equal() {
        let (mut one, mut other) = (pace(), Pace::new(Instant::ZERO, 1_000_000, Duration::ZERO, 0));
        for _ in 0..300 {
            for pace in [&mut one, &mut other] {
                pace.speed_up(Duration::from_millis(10), Duration::from_millis(1), 1_000);
            }
            if one.rate + other.rate > 12_000_000 {
                one.slow_down(60);
                other.slow_down(60);
            }
        }
        assert!(one.rate.abs_diff(other.rate) < one.rate / 10, "{} and {}", one.rate, other.rate);
    }

    #[test]
    fn a_rate_that_nothing_speaks_against_doubles_soon() {
        let mut pace = pace();
        let mut rounds = 0;
        while pace.rate < 20_000_000 {
            pace.unopposed = rounds;
            pace.speed_up(Duration::from_micros(200), Duration::from_micros(200), 1_000);
            rounds += 1;
        }
        assert!((10..24).contains(&rounds), "{rounds} rounds");
        pace.rate = *RATE_RANGE.end();
        pace.speed_up(Duration::from_millis(10), Duration::ZERO, 1_000);
        assert_eq!(pace.rate, *RATE_RANGE.end());
    }
}
