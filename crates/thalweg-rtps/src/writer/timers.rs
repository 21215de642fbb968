//! What a writer does when time passes: it asks readers again, leaves those behind that stand still, and gives up those that exhaust
//! its patience (RTPS 2.5 §8.4.9). A timeout costs what is due and not what is matched.

use std::time::Duration;

use super::flow::Position;
use super::reader_proxy::{Owed, ReaderProxy};
use super::reader_set::{AnyReader, ReaderSummary};
use super::{
    HEARTBEAT_PERIOD_BLOCKED_MAX, HEARTBEAT_PERIOD_BUILTIN_MAX, HEARTBEAT_PERIOD_MAX, HEARTBEAT_PERIOD_REFUSED_MAX,
    Writer, WriterOutcome, lowest,
};
use crate::proxies::Summary;
use crate::time::{Instant, nanos};
use crate::types::{Guid, SequenceNumber};

/// When the first of some readers is to be looked at, or earlier. [`Instant::NEVER`] stands for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimerBounds {
    /// When awaited readers are asked again.
    asking: AskTimes,
    /// Beyond it one of the awaited readers owes something of which the timer has not seen that yet.
    unseen: Position,
    /// Since when one owes an acknowledgement without any progress.
    behind_since: Instant,
    /// When one that owes something is left behind.
    pub left_at: Instant,
    /// When one that was given up was called last.
    called_at: Instant,
}

impl Default for TimerBounds {
    fn default() -> TimerBounds {
        let never = Instant::NEVER;
        let unseen = Position::whole(SequenceNumber(i64::MAX));
        TimerBounds { asking: AskTimes::NEVER, unseen, behind_since: never, left_at: never, called_at: never }
    }
}

impl TimerBounds {
    pub(super) fn of(reader: &ReaderProxy) -> TimerBounds {
        let never = TimerBounds::default();
        if reader.is_given_up() {
            return TimerBounds { called_at: reader.asking.at, ..never };
        } else if !reader.is_awaited() {
            return never;
        }
        let round_trip = reader.round_trip.estimate();
        TimerBounds {
            asking: AskTimes::of(reader, round_trip),
            unseen: if reader.behind_since.is_none() { reader.owes_beyond() } else { never.unseen },
            behind_since: reader.behind_since.unwrap_or(Instant::NEVER),
            left_at: reader.behind_since.map_or(Instant::NEVER, |since| since + reader.lag_patience()),
            called_at: Instant::NEVER,
        }
    }
}

impl Summary for TimerBounds {
    fn join(self, other: TimerBounds) -> TimerBounds {
        TimerBounds {
            asking: self.asking.join(other.asking),
            unseen: self.unseen.min(other.unseen),
            behind_since: self.behind_since.min(other.behind_since),
            left_at: self.left_at.min(other.left_at),
            called_at: self.called_at.min(other.called_at),
        }
    }
}

/// What tells when a reader is asked for an acknowledgement again, or the earliest of each for several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AskTimes {
    /// It alone was asked.
    asked: Instant,
    /// It was asked or heard of.
    met: Instant,
    /// Until it is asked again, if nothing else is longer.
    pause_nanos: u64,
    round_trip_nanos: u64,
}

impl AskTimes {
    const NEVER: AskTimes =
        AskTimes { asked: Instant::NEVER, met: Instant::NEVER, pause_nanos: u64::MAX, round_trip_nanos: u64::MAX };

    fn of(reader: &ReaderProxy, round_trip: Duration) -> AskTimes {
        let asked = reader.asking.at;
        AskTimes {
            asked,
            met: asked.max(reader.last_heard),
            pause_nanos: nanos(reader.asking.pause),
            round_trip_nanos: nanos(round_trip),
        }
    }

    fn join(self, other: AskTimes) -> AskTimes {
        AskTimes {
            asked: self.asked.min(other.asked),
            met: self.met.min(other.met),
            pause_nanos: self.pause_nanos.min(other.pause_nanos),
            round_trip_nanos: self.round_trip_nanos.min(other.round_trip_nanos),
        }
    }

    /// When it is asked next, and of several none earlier: at the latest `rule.longest` after everybody was asked at `all_asked`. A
    /// question to a group counts for a reader that answered since: the network may not carry multicast.
    fn next(&self, rule: &AskRule, all_asked: Instant) -> Instant {
        let last = self.asked.max(all_asked);
        let last = if rule.uses_group { last.min(self.met) } else { last };
        let round_trip = self.round_trip_nanos.max(nanos(rule.crowd)).saturating_mul(4);
        let pause = self.pause_nanos.min(nanos(rule.longest)).max(round_trip).min(nanos(HEARTBEAT_PERIOD_MAX));
        last + Duration::from_nanos(pause)
    }
}

/// What decides at one timeout, besides the reader itself, whether it is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct AskRule {
    pub now: Instant,
    /// Number of the newest sample.
    pub last: SequenceNumber,
    /// What was sent.
    pub sent: Position,
    /// When everybody was asked last.
    pub all_asked: Instant,
    pub uses_group: bool,
    pub longest: Duration,
    /// The round trip of the readers that answered last.
    pub crowd: Duration,
}

/// When a reader is to be asked for an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextQuestion {
    /// It owes nothing.
    Never,
    /// It lacks samples that were not sent yet, or the news of those that do not concern it.
    AfterMoreIsSent,
    At {
        due: Instant,
        /// It does not know yet where it starts.
        greets: bool,
    },
}

impl AskRule {
    /// The first sample that no reader owes an acknowledgement of.
    fn owed_below(&self) -> SequenceNumber {
        if self.sent.fragments > 0 { self.last.max(self.sent.sample) } else { self.sent.sample }
    }

    pub(super) fn question(&self, reader: &ReaderProxy) -> NextQuestion {
        if !reader.is_awaited() {
            return NextQuestion::Never;
        }
        let times = || AskTimes::of(reader, reader.round_trip.estimate());
        let acknowledged = reader.acknowledged.sample;
        let is_told_again = reader.is_to_be_told_again();
        let greets = !reader.proven || is_told_again && reader.start <= self.sent.sample.next();
        if greets {
            return NextQuestion::At { due: times().next(self, Instant::ZERO), greets };
        } else if acknowledged < self.owed_below() {
            // What is sent to all does not reach one that gets nothing but repairs.
            let all_asked = if reader.repairs_only.is_some() { Instant::ZERO } else { self.all_asked };
            return NextQuestion::At { due: times().next(self, all_asked), greets };
        } else if reader.relapse.is_open() {
            return NextQuestion::At { due: times().next(self, Instant::ZERO), greets };
        } else if acknowledged < self.last || is_told_again {
            return NextQuestion::AfterMoreIsSent;
        }
        NextQuestion::Never
    }

    /// No reader of the summary is to be asked earlier.
    pub(super) fn bound(&self, readers: &ReaderSummary, timers: &TimerBounds) -> Instant {
        let owes = readers.awaited().is_some_and(|acknowledged| acknowledged < self.owed_below());
        let AnyReader { unheard, untold, repairs_only, relapsed, .. } = readers.any;
        match unheard || untold || repairs_only || relapsed {
            true => timers.asking.next(self, Instant::ZERO),
            false if owes => timers.asking.next(self, self.all_asked),
            false => Instant::NEVER,
        }
    }

    /// Whether a reader of the summary is to be looked at now.
    pub(super) fn is_due(&self, readers: &ReaderSummary, timers: &TimerBounds) -> bool {
        let begins_to_owe = timers.unseen < self.sent && readers.slowest.is_some_and(|slowest| slowest < self.sent);
        begins_to_owe || self.bound(readers, timers) <= self.now
    }

    /// Whether a reader of the summary may have to be asked when more was sent.
    fn may_wait(&self, readers: &ReaderSummary) -> bool {
        let lags = readers.awaited().is_some_and(|acknowledged| acknowledged < self.last);
        let has_all = readers.furthest.is_some_and(|acknowledged| acknowledged.sample >= self.owed_below());
        lags && has_all || readers.any.untold
    }
}

impl ReaderProxy {
    /// Where more than that was sent it owes an acknowledgement: of parts of a sample only if it acknowledges them.
    pub(super) fn owes_beyond(&self) -> Position {
        match self.matched.vendor.traits().confirms_fragments {
            true => self.acknowledged,
            false => Position { fragments: u32::MAX, ..self.acknowledged },
        }
    }

    fn handle_timeout(&mut self, rule: &AskRule) {
        if self.acknowledged.sample < rule.last {
            // A reader that has acknowledged everything sent is not stalled: the others hold up the writer.
            let owes = self.owes_beyond() < rule.sent;
            self.behind_since = owes.then(|| self.behind_since.unwrap_or(rule.now));
        }
        if let NextQuestion::At { due, greets } = rule.question(self)
            && due <= rule.now
        {
            self.owed = if greets { Owed::Greeting } else { self.owed.max_with(Owed::Heartbeat) };
            self.relapse.note_asked();
            (self.asking.at, self.asking.pause) = (rule.now, (self.asking.pause * 2).min(HEARTBEAT_PERIOD_MAX));
        }
    }
}

impl Writer {
    /// Repeats heartbeats and gives up readers that exhaust the writer's patience. To be called at [`Writer::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) -> WriterOutcome {
        let mut outcome = WriterOutcome::default();
        self.flow.end_pauses(now);
        self.check_promises(now, &mut outcome);
        outcome.space |= self.history.clean_up(now) && self.room.take_awaited(true);
        if self.heartbeat.due.is_none_or(|due| now < due) {
            return outcome;
        }
        self.heartbeat.due = None;
        // Nobody has acknowledged more for a while: a write that waits for a quarter of the room gets what there is.
        let has_any = self.room.has_any(&self.history);
        outcome.space |= self.room.take_awaited(has_any);
        let called = self.call_given_up_readers(now);
        let Some(mut next) = lowest(called, self.ask_again(now)) else { return outcome };
        if self.leave_laggards_behind(now) {
            self.readmit_where_none_follows(now);
            self.paths_changed();
            outcome.space |= self.release_acknowledged();
        }
        outcome.given_up = self.give_up_stuck_reader(now);
        if outcome.given_up.is_some() {
            self.readers_changed();
            self.pass_over_forgone();
            outcome.space |= self.release_acknowledged();
        }
        if let Some(since) = self.first_behind_since() {
            next = next.min((since + self.qos.reader_patience).max(now));
        }
        self.heartbeat.due = Some(next);
        outcome
    }

    /// Owes a HEARTBEAT to each reader that is to be asked now. Returns when to ask the next one, if there is any.
    fn ask_again(&mut self, now: Instant) -> Option<Instant> {
        let rule = AskRule {
            now,
            last: self.history.last(),
            sent: self.outgoing.place.position(),
            all_asked: self.heartbeat.all_asked.last.unwrap_or(Instant::ZERO),
            uses_group: self.route.uses_group(),
            // A reader that holds up samples or a write is asked again soon.
            longest: match (self.collection.was_blocked(), self.room.is_awaited()) {
                (true, _) => HEARTBEAT_PERIOD_BLOCKED_MAX,
                (false, true) => HEARTBEAT_PERIOD_REFUSED_MAX,
                (false, false) if self.guid.entity.is_builtin() => HEARTBEAT_PERIOD_BUILTIN_MAX,
                (false, false) => HEARTBEAT_PERIOD_MAX,
            },
            crowd: self.heartbeat.round_trip.estimate(),
        };
        self.readers.change(|readers, timers| rule.is_due(readers, timers), |reader| reader.handle_timeout(&rule));
        let exact = |reader: &ReaderProxy| match rule.question(reader) {
            NextQuestion::At { due, .. } => due,
            NextQuestion::Never | NextQuestion::AfterMoreIsSent => Instant::NEVER,
        };
        let next = self.readers.earliest(|readers, timers| rule.bound(readers, timers), exact);
        // One that lacks only what was not sent yet, or what does not concern it, is looked at again when more was sent.
        let later = now + HEARTBEAT_PERIOD_BLOCKED_MAX;
        let waits = |reader: &ReaderProxy| rule.question(reader) == NextQuestion::AfterMoreIsSent;
        let is_sooner = next > later && self.readers.find(|readers, _| rule.may_wait(readers), waits).is_some();
        let next = if is_sooner { later } else { next };
        (next != Instant::NEVER).then_some(next)
    }

    /// A reader that was given up may only have been out of reach: it is asked now and then whether it is back. Returns when
    /// to ask the next one, if there is any.
    fn call_given_up_readers(&mut self, now: Instant) -> Option<Instant> {
        let called_at = |reader: &ReaderProxy| if reader.is_given_up() { reader.asking.at } else { Instant::NEVER };
        let is_due = |called_at: Instant| called_at != Instant::NEVER && now.since(called_at) >= HEARTBEAT_PERIOD_MAX;
        self.readers.change(
            |readers, timers| readers.any.given_up && is_due(timers.called_at),
            |reader| {
                if is_due(called_at(reader)) {
                    reader.asking.at = now;
                    reader.owed = reader.owed.max_with(Owed::Heartbeat);
                }
            },
        );
        let first = self.readers.earliest(
            |readers, timers| if readers.any.given_up { timers.called_at } else { Instant::NEVER },
            called_at,
        );
        (first != Instant::NEVER).then(|| first + HEARTBEAT_PERIOD_MAX)
    }

    /// A reader that has owed acknowledgements without any progress for as long as the QoS allows is not waited for any more.
    /// The first number of HEARTBEATs tells it what it misses from then on, which counts as lost.
    fn give_up_stuck_reader(&mut self, now: Instant) -> Option<Guid> {
        let since = self.first_behind_since().filter(|since| now.since(*since) >= self.qos.reader_patience)?;
        let first = |reader: &ReaderProxy| reader.is_awaited() && reader.behind_since == Some(since);
        let mut stuck = self.readers.find(|_, timers| timers.behind_since <= since, first)?;
        stuck.active = false;
        stuck.asking.at = now;
        stuck.repairs = Default::default();
        self.counters.readers_given_up += 1;
        Some(stuck.matched.guid)
    }

    /// Since when the reader has owed an acknowledgement without any progress that has done so for the longest time.
    fn first_behind_since(&mut self) -> Option<Instant> {
        let sent = self.outgoing.place.position();
        let since = self.readers.earliest(
            |readers, timers| match readers.slowest.is_some_and(|acknowledged| acknowledged < sent) {
                true => timers.behind_since,
                false => Instant::NEVER,
            },
            |reader| reader.behind_since.filter(|_| reader.is_awaited()).unwrap_or(Instant::NEVER),
        );
        (since != Instant::NEVER).then_some(since)
    }
}
