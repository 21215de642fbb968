//! When the I/O thread takes its turns and looks at all of its sockets, and what it does first after it has stood still.

use std::time::Duration;

use thalweg_rtps::time::Instant;

/// A thread that comes so much later than it wanted to was not running: stopped, or without a processor. Timers of a busy thread are late
/// by a few milliseconds.
const STANDSTILL_MIN: Duration = Duration::from_millis(100);

/// For how long a thread that always has something to read reads the sockets alone that it knows to have more. Signs of life and
/// announcements come in by others; asking for them costs a call.
const LOOK_AROUND_PERIOD: Duration = Duration::from_millis(1);

/// How long timers wait for what has gathered in the sockets meanwhile: some ten thousand datagrams.
const CATCH_UP_MAX: Duration = Duration::from_millis(50);

/// The times of the turns of an I/O thread.
#[derive(Debug)]
pub(super) struct TurnTimes {
    last: Instant,
    /// The first turn since it asked which sockets have something; `None` where it has taken none since.
    unasked_since: Option<Instant>,
    /// Whether only waiting remains.
    is_settled: bool,
    /// Since when it handles what came while it stood still.
    catches_up_since: Option<Instant>,
}

impl TurnTimes {
    /// Those of a thread that starts at `now`.
    pub(super) fn new(now: Instant) -> TurnTimes {
        TurnTimes { last: now, unasked_since: None, is_settled: false, catches_up_since: None }
    }

    /// The time of the last turn.
    pub(super) fn last(&self) -> Instant {
        self.last
    }

    /// The thread has asked which sockets have something. What it was told is told once, a wake-up by another thread among it: a turn has
    /// to follow before it sleeps.
    pub(super) fn note_asked(&mut self, has_news: bool) {
        self.unasked_since = None;
        self.is_settled &= !has_news;
    }

    /// A turn ends, with or without more to be done.
    pub(super) fn end_turn(&mut self, has_more: bool) {
        self.is_settled = !has_more;
    }

    /// Whether only waiting remains. Once it is over, a turn has to follow.
    pub(super) fn take_settled(&mut self) -> bool {
        std::mem::take(&mut self.is_settled)
    }

    /// Whether it is time to ask, though some socket is known to have more.
    pub(super) fn wants_to_ask(&self) -> bool {
        self.unasked_since.is_some_and(|since| self.last.since(since) >= LOOK_AROUND_PERIOD)
    }

    /// Whether the thread, whose next turn begins at `now`, has stood still since it asked: then nobody has told what came meanwhile.
    pub(super) fn has_missed(&self, now: Instant, due: Instant) -> bool {
        self.unasked_since.is_some() && self.has_stood_still(now, due)
    }

    fn has_stood_still(&self, now: Instant, due: Instant) -> bool {
        now.since(due.max(self.last)) >= STANDSTILL_MIN
    }

    /// A turn begins at `now` with so many datagrams; timers were due at `due`. Returns whether they are to wait: signs of life may still
    /// lie in the sockets that are older than the ends of their leases, of which a turn reads a part only.
    pub(super) fn begin_turn(&mut self, now: Instant, due: Instant, datagrams: usize) -> bool {
        let stood_still = self.has_stood_still(now, due);
        self.last = now;
        self.unasked_since.get_or_insert(now);
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
    fn a_thread_that_always_has_something_to_read_looks_at_the_other_sockets_all_the_same() {
        let mut turns = TurnTimes::new(at(0));
        let turn = |turns: &mut TurnTimes, millis| {
            turns.begin_turn(at(millis), Instant::NEVER, 32);
            turns.wants_to_ask()
        };
        assert_eq!([10, 10, 11].map(|millis| turn(&mut turns, millis)), [false, false, true]);
        turns.note_asked(false);
        assert_eq!([11, 15, 15].map(|millis| turn(&mut turns, millis)), [false, true, true]);
        turns.note_asked(false);
        assert!(!turns.wants_to_ask() && !turn(&mut turns, 9_000), "it was asked while the thread slept");
    }

    #[test]
    fn what_came_while_the_thread_stood_still_within_a_turn_is_asked_for() {
        let mut turns = TurnTimes::new(at(0));
        turns.begin_turn(at(10), at(20), 1);
        assert!(!turns.has_missed(at(90), at(20)), "it has not stood still");
        assert!(turns.has_missed(at(1_000), at(20)));
        turns.note_asked(false);
        assert!(!turns.has_missed(at(1_000), at(20)), "it has asked since");
    }

    #[test]
    fn a_thread_that_was_woken_while_it_looked_around_does_not_sleep_before_its_next_turn() {
        let mut turns = TurnTimes::new(at(0));
        assert!(!turns.take_settled(), "it has taken no turn");
        turns.end_turn(true);
        assert!(!turns.take_settled());
        turns.end_turn(false);
        turns.note_asked(false);
        assert!(turns.take_settled() && !turns.take_settled());
        turns.end_turn(false);
        turns.note_asked(true);
        assert!(!turns.take_settled(), "nobody tells it again");
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
