//! Datagrams that gather in the sockets while every endpoint of the participant leaves them time to (LATENCY_BUDGET).

use std::time::Duration;

use thalweg_rtps::time::Instant;

/// Whether the I/O thread looks at its sockets now and then instead of at each datagram: a wake-up costs more than a small sample.
#[derive(Debug)]
pub(super) struct Gathering {
    /// The least LATENCY_BUDGET of the participant's endpoints.
    budget: Duration,
    buffer_bytes: u64,
    /// What has come since then, in memory of the receive buffer.
    since: Instant,
    cost: u64,
    /// When datagrams came last.
    arrived: Instant,
    /// They came twice within a pause.
    is_steady: bool,
    /// No pause before.
    not_before: Instant,
}

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_millis(10);
/// What comes within the longest pause fills at most this part of the receive buffer: the next one may bring several times as much.
const BUFFER_SHARE: u64 = 8;
/// Time without more than that before the first pause, and before the next one.
const WATCHED_FOR: Duration = Duration::from_secs(2);
/// Memory that the kernel charges a datagram beside its bytes, about.
const DATAGRAM_COST: u64 = 1_024;

impl Gathering {
    /// Nothing gathers yet. `buffer_bytes` is the size of the receive buffers.
    pub(super) fn new(buffer_bytes: u32) -> Gathering {
        Gathering {
            budget: Duration::ZERO,
            buffer_bytes: u64::from(buffer_bytes),
            since: Instant::ZERO,
            cost: 0,
            arrived: Instant::ZERO,
            is_steady: false,
            not_before: Instant::NEVER,
        }
    }

    /// From now on samples may have this delay.
    pub(super) fn set_budget(&mut self, now: Instant, budget: Duration) {
        if budget > self.budget {
            self.not_before = now + WATCHED_FOR;
        }
        self.budget = budget;
    }

    /// Datagrams of these sizes have come.
    pub(super) fn note_arrivals(&mut self, now: Instant, datagrams: impl Iterator<Item = usize>) {
        if self.budget.is_zero() {
            return;
        }
        let cost: u64 = datagrams.map(|bytes| bytes as u64 + DATAGRAM_COST).sum();
        if cost == 0 {
            return;
        }
        if now.since(self.since) > PAUSE_MAX {
            (self.since, self.cost) = (now, 0);
        }
        self.cost += cost;
        if self.cost > self.buffer_bytes / BUFFER_SHARE {
            self.not_before = now + WATCHED_FOR;
        }
        self.is_steady = now.since(self.arrived) <= PAUSE_MAX * 2;
        self.arrived = now;
    }

    /// Until when the sockets need not be looked at, after a turn at `now`; `None` while each datagram counts.
    pub(super) fn pause_after(&self, now: Instant) -> Option<Instant> {
        let gathers = !self.budget.is_zero() && self.is_steady && now >= self.not_before;
        let until = self.arrived + PAUSE_MAX.min(self.budget / 2);
        (gathers && until > now).then_some(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(1_000_000_000 + micros * 1_000)
    }

    /// Until when a pause lasts after `count` datagrams of `bytes`, one each `period_us`.
    fn paused_until(
        gathering: &mut Gathering,
        from_us: u64,
        period_us: u64,
        count: u64,
        bytes: usize,
    ) -> Option<Instant> {
        (1..=count).fold(None, |_, number| {
            let now = at(from_us + number * period_us);
            gathering.note_arrivals(now, std::iter::once(bytes));
            gathering.pause_after(now)
        })
    }

    fn gathering(budget: Duration) -> Gathering {
        let mut gathering = Gathering::new(212_992);
        gathering.set_budget(at(0), budget);
        gathering
    }

    #[test]
    fn small_samples_gather_for_half_of_the_budget_once_they_were_watched() {
        let mut some = gathering(Duration::from_millis(20));
        assert_eq!(paused_until(&mut some, 0, 1_000, 1_999, 200), None);
        assert_eq!(paused_until(&mut some, 1_999_000, 1_000, 1, 200), Some(at(2_010_000)));
        let mut tight = gathering(Duration::from_millis(2));
        assert_eq!(paused_until(&mut tight, 0, 1_000, 2_000, 200), Some(at(2_001_000)));
    }

    #[test]
    fn nothing_gathers_without_a_budget() {
        let mut none = gathering(Duration::ZERO);
        assert_eq!(paused_until(&mut none, 0, 1_000, 4_000, 200), None);
        let mut taken_back = gathering(Duration::from_millis(20));
        assert!(paused_until(&mut taken_back, 0, 1_000, 2_100, 200).is_some());
        taken_back.set_budget(at(2_100_000), Duration::ZERO);
        assert_eq!(paused_until(&mut taken_back, 2_100_000, 1_000, 10, 200), None);
    }

    #[test]
    fn samples_that_come_seldom_are_handled_at_once() {
        assert_eq!(paused_until(&mut gathering(Duration::from_millis(20)), 0, 21_000, 1_000, 200), None);
    }

    #[test]
    fn bursts_that_fill_the_buffer_end_the_pauses_for_a_while() {
        let mut large = gathering(Duration::from_millis(20));
        assert_eq!(paused_until(&mut large, 0, 1_000, 4_000, 9_000), None, "100 kB in 10 ms");
        let mut mixed = gathering(Duration::from_millis(20));
        assert!(paused_until(&mut mixed, 0, 1_000, 2_100, 200).is_some());
        assert_eq!(paused_until(&mut mixed, 2_100_000, 10, 10, 60_000), None, "an image between them");
        assert_eq!(paused_until(&mut mixed, 2_101_000, 1_000, 1_900, 200), None);
        assert!(paused_until(&mut mixed, 4_001_000, 1_000, 200, 200).is_some());
    }
}
