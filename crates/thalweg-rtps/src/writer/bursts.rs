//! How long bursts of paced output are.
//!
//! A short queue loses the end of a burst that does not fit, so that bursts become shorter where more is lost than however short they are.
//! The more messages, system calls and timers they cost, they are no shorter than need be: what a path loses of single datagrams as well is no
//! reason.

use std::time::Duration;

use super::congestion::{DATAGRAM, LOSS_MIN};
use super::observed::Observed;
use super::pace::amount;

/// The length of bursts, and what tells whether it matters.
#[derive(Debug)]
pub(super) struct Bursts {
    /// A burst is what the rate lets out in this time.
    pub length: Duration,
    /// What was lost while they were as short as need be, and while they were not.
    short: LossLately,
    long: LossLately,
}

/// Lengths of bursts.
const LENGTH_RANGE: std::ops::RangeInclusive<Duration> = Duration::from_micros(15)..=Duration::from_micros(500);

impl Bursts {
    pub(super) fn new() -> Bursts {
        Bursts { length: *LENGTH_RANGE.end(), short: LossLately::default(), long: LossLately::default() }
    }

    /// Kernel memory of one at a `rate`.
    pub(super) fn amount(&self, rate: u64) -> u64 {
        amount(rate, self.length).max(DATAGRAM)
    }

    /// True when they could be shorter at this `rate`.
    fn are_long(&self, rate: u64) -> bool {
        self.amount(rate) >= DATAGRAM * 2 && self.length > *LENGTH_RANGE.start()
    }

    /// Evaluates a round at this `rate`; a `lossy` one tells nothing of what is lost anyway. Bursts that may have lost a part in
    /// a short queue become shorter; returns whether they did.
    pub(super) fn handle_round(&mut self, observed: &Observed, rate: u64, lossy: bool) -> bool {
        let are_long = self.are_long(rate);
        let may_be_why = observed.lost.cost > 0 && observed.share > LOSS_MIN.max(self.loss_anyway(observed));
        if are_long {
            self.long.note(observed);
        } else if !lossy {
            self.short.note(observed);
        }
        if may_be_why {
            self.length = (self.length / 2).max(*LENGTH_RANGE.start());
        }
        may_be_why && are_long
    }

    /// Nothing was lost because of their length for another round.
    pub(super) fn grow(&mut self) {
        self.length = (self.length + self.length / 64).min(*LENGTH_RANGE.end());
    }

    /// Loss in thousandths that a round would have, by chance, without any that is due to their length.
    fn loss_anyway(&self, observed: &Observed) -> u64 {
        let share = self.short.share().min(if self.long.known > 0 { self.long.share() } else { 1_000 });
        let unit = observed.lost.datagram.max(DATAGRAM);
        let chance = share * (1_000 - share) * unit / observed.known.max(unit);
        share + chance.isqrt() * DEVIATIONS
    }
}

/// Standard deviations that are still chance: rounds are many, and few losses have a long tail.
const DEVIATIONS: u64 = 4;

/// What rounds have lost together, older ones less and less.
#[derive(Debug, Default)]
struct LossLately {
    /// Kernel memory of which it became known whether it arrived, and of what was lost.
    known: u64,
    lost: u64,
}

impl LossLately {
    fn note(&mut self, observed: &Observed) {
        let faded = |sum: u64| sum - sum.div_ceil(16);
        self.known = faded(self.known) + observed.known;
        self.lost = faded(self.lost) + observed.known * observed.share / 1_000;
    }

    /// The lost part in thousandths; none as long as nothing is known.
    fn share(&self) -> u64 {
        (self.lost * 1_000 / self.known.max(1)).min(1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::super::loss::Loss;
    use super::*;
    use thalweg_base::rng::Rng;

    const RATE: u64 = 200_000_000;

    /// A round of so many datagrams of which some were lost.
    fn round(datagrams: u64, lost: u64) -> Observed {
        let (known, lost) = (datagrams * DATAGRAM, Loss::datagrams(lost, DATAGRAM));
        Observed { known, lost, share: lost.cost * 1_000 / known, ..Observed::default() }
    }

    /// The lengths after each of so many rounds without anything else against them; `lost` gives what one of 200 datagrams loses by length.
    fn lengths(bursts: &mut Bursts, rounds: u64, mut lost: impl FnMut(u64) -> u64) -> Vec<Duration> {
        let mut lengths = Vec::new();
        for _ in 0..rounds {
            let count = lost(bursts.amount(RATE) / DATAGRAM);
            if !bursts.handle_round(&round(200, count), RATE, false) {
                bursts.grow();
            }
            lengths.push(bursts.length);
        }
        lengths
    }

    /// Of bursts of so many datagrams, a queue of eight loses the rest.
    fn lost_by_queue(burst: u64) -> u64 {
        200 * burst.saturating_sub(8) / burst
    }

    #[test]
    fn bursts_that_hold_a_datagram_are_no_longer_than_need_be() {
        let mut bursts = Bursts::new();
        let long = (0..10).take_while(|_| bursts.handle_round(&round(200, 100), RATE, true)).count();
        assert_eq!((long, bursts.length), (5, Duration::from_micros(15)), "until two datagrams leave at a time");
        assert!(!Bursts::new().handle_round(&round(200, 100), 1_000_000, true));
    }

    #[test]
    fn a_short_queue_gets_no_more_than_it_holds() {
        let mut bursts = Bursts::new();
        let lengths = lengths(&mut bursts, 2_000, lost_by_queue);
        assert!(lengths[10..].iter().all(|length| amount(RATE, *length) < 10 * DATAGRAM), "{lengths:?}");
    }

    #[test]
    fn what_is_lost_by_chance_shortens_no_bursts_for_long() {
        for (chance, seed) in [(0.005, 1), (0.01, 2), (0.03, 3)] {
            let (mut bursts, mut rng) = (Bursts::new(), Rng::new(seed));
            let mut draw = |_| (0..200).filter(|_| rng.chance(chance)).count() as u64;
            lengths(&mut bursts, 300, &mut draw);
            let mut late = lengths(&mut bursts, 2_000, &mut draw);
            late.sort_unstable();
            assert!(late[1_000] > Duration::from_micros(300), "{chance}: {:?}", late[1_000]);
        }
    }

    #[test]
    fn a_short_queue_shows_behind_loss_by_chance_and_after_it() {
        let (mut bursts, mut rng) = (Bursts::new(), Rng::new(4));
        let mut draw = |burst| (0..200).filter(|_| rng.chance(0.01)).count() as u64 + lost_by_queue(burst);
        lengths(&mut bursts, 300, &mut draw);
        let both = lengths(&mut bursts, 2_000, &mut draw);
        assert!(both.iter().all(|length| amount(RATE, *length) < 12 * DATAGRAM), "{both:?}");
        let after = lengths(&mut bursts, 2_000, lost_by_queue);
        assert!(after[50..].iter().all(|length| amount(RATE, *length) < 10 * DATAGRAM), "{after:?}");
    }
}
