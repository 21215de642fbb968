//! When a writer asks its readers for acknowledgements, and by which count (RTPS 2.5 §8.4.15.4).

use std::time::Duration;

use super::echoes::LatelyAsked;
use super::reader_proxy::AllAsked;
use crate::round_trip::RoundTrip;
use crate::time::Instant;
use crate::types::SequenceNumber;
use crate::wire::AskedBy;

/// The slowest heartbeat repetition while a reader owes an acknowledgement.
pub(super) const HEARTBEAT_PERIOD_MAX: Duration = Duration::from_secs(3);

/// The slowest repetition while samples wait to be sent until somebody acknowledges others.
pub(super) const HEARTBEAT_PERIOD_BLOCKED_MAX: Duration = Duration::from_millis(80);
/// The slowest repetition of discovery: until it has told a reader, writes wait for room or go astray.
pub(super) const HEARTBEAT_PERIOD_BUILTIN_MAX: Duration = Duration::from_secs(1);
/// And while a write waits for room.
pub(super) const HEARTBEAT_PERIOD_REFUSED_MAX: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(super) struct HeartbeatState {
    count: u32,
    fragment_count: u32,
    pub lately_asked: LatelyAsked,
    /// When all readers that owe an acknowledgement were last asked for it.
    pub all_asked: AllAsked,
    /// Last sample that the latest HEARTBEAT announced.
    pub asked_for: SequenceNumber,
    /// Asked for by the application or by a refused write.
    pub wanted: bool,
    pub due: Option<Instant>,
    /// How long the latest answers took, from whichever readers: in a crowd all are slow.
    pub round_trip: RoundTrip,
    /// Some reader must prove itself before it is told of samples: HEARTBEATs go to the others one by one.
    pub is_withheld: bool,
}

impl HeartbeatState {
    /// Nobody was asked yet; the first sample has number `first`.
    pub(super) fn new(first: SequenceNumber) -> HeartbeatState {
        HeartbeatState {
            count: 0,
            fragment_count: 0,
            lately_asked: LatelyAsked::default(),
            all_asked: AllAsked::default(),
            asked_for: first.previous(),
            wanted: false,
            due: None,
            round_trip: RoundTrip::assuming(Duration::ZERO),
            is_withheld: false,
        }
    }

    /// The first sample to be asked for has number `first`.
    pub(super) fn begin_at(&mut self, first: SequenceNumber) {
        self.asked_for = first.previous();
    }

    /// The next HEARTBEAT and HEARTBEAT_FRAG have this count.
    pub(super) fn begin_counts_at(&mut self, first: u32) {
        (self.count, self.fragment_count) = (first.wrapping_sub(1), first.wrapping_sub(1));
    }

    /// The count of one more HEARTBEAT, which measures no round trip.
    pub(super) fn take_count(&mut self) -> u32 {
        self.count = self.count.wrapping_add(1);
        self.count
    }

    /// The count of one more HEARTBEAT, which leaves now and asks for an answer.
    pub(super) fn ask(&mut self, now: Instant) -> u32 {
        let count = self.take_count();
        self.lately_asked.note(now, AskedBy::Heartbeat(count));
        count
    }

    /// The count of one more HEARTBEAT_FRAG, which leaves now.
    pub(super) fn ask_for_fragments(&mut self, now: Instant) -> u32 {
        self.fragment_count = self.fragment_count.wrapping_add(1);
        self.lately_asked.note(now, AskedBy::HeartbeatFrag(self.fragment_count));
        self.fragment_count
    }

    /// Everybody is asked now for what was sent, up to `sent`.
    pub(super) fn note_all_asked(&mut self, now: Instant, sent: SequenceNumber) {
        self.asked_for = sent;
        self.wanted = false;
        self.all_asked.asks(now);
    }

    /// Makes sure that the timer runs; `period` is the pause between two HEARTBEATs.
    pub(super) fn schedule(&mut self, now: Instant, period: Duration) {
        self.due.get_or_insert(now + period);
    }

    /// Makes sure that the timer runs and does not wait longer than for a reader that is asked for the first time: `least` where
    /// round trips are short.
    pub(super) fn hasten(&mut self, now: Instant, least: Duration, period: Duration) {
        if self.due.is_none_or(|due| due > now + least) {
            let soon = now + period;
            self.due = Some(self.due.map_or(soon, |due| due.min(soon)));
        }
    }

    /// Asks for an acknowledgement as soon as may be, unless everybody was asked less than a `round_trip` ago.
    pub(super) fn want(&mut self, now: Instant, round_trip: Duration) {
        self.wanted |= self.all_asked.last.is_none_or(|sent| now.since(sent) >= round_trip);
    }
}
