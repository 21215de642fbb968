//! When the I/O thread takes its turns, and what it does first after it has stood still.

use std::time::Duration;

use thalweg_rtps::time::Instant;

/// A thread that comes so much later than it wanted to was not running: stopped, or without a processor. Timers of a busy thread are late
/// by a few milliseconds.
const STANDSTILL_MIN: Duration = Duration::from_millis(100);

/// How long timers wait for what has gathered in the sockets meanwhile: some ten thousand datagrams.
const CATCH_UP_MAX: Duration = Duration::from_millis(50);

/// The times of the turns of an I/O thread.
#[derive(Debug)]
pub(super) struct TurnTimes {
    last: Instant,
    /// Since when it handles what came while it stood still.
    catches_up_since: Option<Instant>,
}

impl TurnTimes {
    /// Those of a thread that starts at `now`.
    pub(super) fn new(now: Instant) -> TurnTimes {
        TurnTimes { last: now, catches_up_since: None }
    }

    /// The time of the last turn.
    pub(super) fn last(&self) -> Instant {
        self.last
    }

    /// A turn begins at `now` with so many datagrams; timers were due at `due`. Returns whether they are to wait: signs of life may still
    /// lie in the sockets that are older than the ends of their leases, of which a turn reads a part only.
    pub(super) fn begin_turn(&mut self, now: Instant, due: Instant, datagrams: usize) -> bool {
        let stood_still = now.since(due.max(self.last)) >= STANDSTILL_MIN;
        self.last = now;
        if stood_still {
            self.catches_up_since.get_or_insert(now);
        }
        let is_behind = |since: &Instant| datagrams > 0 && now.since(*since) < CATCH_UP_MAX;
        self.catches_up_since = self.catches_up_since.filter(is_behind);
        self.catches_up_since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn timers_wait_for_what_came_while_the_thread_stood_still() {
        let mut turns = TurnTimes::new(at(0));
        assert!(!turns.begin_turn(at(10), at(10), 32), "it is in time");
        assert!(turns.begin_turn(at(1_000), at(20), 32), "it stood still");
        assert!(turns.begin_turn(at(1_001), at(20), 32), "there may be more");
        assert!(!turns.begin_turn(at(1_002), at(20), 0), "that was all");
        assert!(!turns.begin_turn(at(1_003), at(1_003), 32));
        assert_eq!(turns.last(), at(1_003));
    }

    #[test]
    fn timers_do_not_wait_for_ever() {
        let mut turns = TurnTimes::new(at(0));
        let waiting = (1_000..2_000).filter(|millis| turns.begin_turn(at(*millis), at(20), 32)).count();
        assert_eq!(waiting, 50);
    }

    #[test]
    fn a_thread_that_sleeps_has_not_stood_still() {
        let mut turns = TurnTimes::new(at(0));
        assert!(!turns.begin_turn(at(5_000), at(5_001), 1), "a datagram has ended its sleep");
        assert!(!turns.begin_turn(at(9_000), at(8_995), 1), "a timer has");
        assert!(!turns.begin_turn(at(9_001), Instant::ZERO, 1), "something is always due");
        assert!(!turns.begin_turn(at(19_000), Instant::NEVER, 1), "nothing was");
    }
}
