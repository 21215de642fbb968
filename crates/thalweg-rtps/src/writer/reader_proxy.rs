//! What a writer knows of one matched reader (`ReaderProxy`, RTPS 2.5 §8.4.7.5).

use std::collections::VecDeque;
use std::time::Duration;

use super::flow::Position;
use super::{HEARTBEAT_PERIOD_MAX, HEARTBEAT_PERIOD_MIN};
use crate::count::accept_count;
use crate::round_trip::RoundTrip;
use crate::time::Instant;
use crate::types::{Guid, Locator, SequenceNumber, VendorId};
use crate::wire::{FragmentSet, SequenceSet};

/// A reader that discovery matched with a writer, with the addresses that reach it.
#[derive(Clone, Debug)]
pub struct MatchedReader {
    /// The reader.
    pub guid: Guid,
    /// Who made its implementation.
    pub vendor: VendorId,
    /// Whether it acknowledges: both sides are RELIABLE.
    pub reliable: bool,
    /// Whether it asks for samples written before the match: both sides are at least TRANSIENT_LOCAL.
    pub wants_history: bool,
    /// Where to send to it alone; best first.
    pub unicast: Vec<Locator>,
    /// A group it listens to, if any.
    pub multicast: Option<Locator>,
    /// Whether it runs on this host.
    pub on_this_host: bool,
    /// The largest UDP payload that reaches it in one packet: what the path's MTU leaves.
    pub datagram_bytes: usize,
    /// Whether it understands DATA_BATCH.
    pub batches: bool,
    /// What a HEARTBEAT and its answer are taken to need before the first ones.
    pub round_trip: Duration,
    /// The receive buffer it announced.
    pub receive_buffer_bytes: Option<u32>,
}

/// Requests of one reader that wait for their repair.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    /// Samples asked for by ACKNACK.
    pub samples: Option<SequenceSet>,
    /// Packs asked for by ACKNACK_BATCH.
    pub packs: Option<SequenceSet>,
    /// Fragments asked for by NACK_FRAG, at most [`FRAGMENT_REQUESTS_MAX`] sets.
    pub fragments: VecDeque<(SequenceNumber, FragmentSet)>,
    /// Fragment to go on with in the sample that is being repaired.
    pub next_fragment: u32,
    /// What was repaired last and when: asked for again within a round trip it crossed the repair on its way.
    recent: Option<(Instant, SequenceSet)>,
    recent_packs: Option<(Instant, SequenceSet)>,
    recent_fragments: Option<(Instant, SequenceNumber, FragmentSet)>,
}

/// NACK_FRAG sets kept per reader; more are dropped, the reader asks again.
const FRAGMENT_REQUESTS_MAX: usize = 64;

impl Repairs {
    pub(super) fn is_empty(&self) -> bool {
        self.samples.is_none() && self.packs.is_none() && self.fragments.is_empty()
    }

    /// Notes which of `wanted` to send again. Numbers from `unsent` on were never sent: a reader that asks for them was lied to,
    /// and an answer would only make it ask again.
    pub(super) fn request_samples(
        &mut self,
        now: Instant,
        wanted: SequenceSet,
        unsent: SequenceNumber,
        suppression: Duration,
    ) {
        self.next_fragment = if self.samples.is_some() { self.next_fragment } else { 0 };
        self.samples = fresh(&wanted, unsent, recently(&self.recent, now, suppression));
    }

    /// As [`Repairs::request_samples`] for packs.
    pub(super) fn request_packs(
        &mut self,
        now: Instant,
        wanted: SequenceSet,
        unsent: SequenceNumber,
        suppression: Duration,
    ) {
        self.packs = fresh(&wanted, unsent, recently(&self.recent_packs, now, suppression));
    }

    pub(super) fn request_fragments(
        &mut self,
        now: Instant,
        sequence: SequenceNumber,
        wanted: FragmentSet,
        suppression: Duration,
    ) {
        if self.fragments.iter().any(|(queued, set)| *queued == sequence && set.base() == wanted.base()) {
            return;
        }
        let crossed = matches!(&self.recent_fragments, Some((at, recent, set))
            if *recent == sequence && set.base() == wanted.base() && now.since(*at) < suppression);
        if !crossed && !wanted.is_empty() && self.fragments.len() < FRAGMENT_REQUESTS_MAX {
            self.fragments.push_back((sequence, wanted));
        }
    }

    pub(super) fn record_samples(&mut self, now: Instant, repaired: SequenceSet) {
        self.recent = Some((now, repaired));
    }

    pub(super) fn record_packs(&mut self, now: Instant, repaired: SequenceSet) {
        self.recent_packs = Some((now, repaired));
    }

    pub(super) fn record_fragments(&mut self, now: Instant, sequence: SequenceNumber, repaired: FragmentSet) {
        self.recent_fragments = Some((now, sequence, repaired));
    }
}

/// What was repaired so lately that a request for it has crossed the repair.
fn recently(repaired: &Option<(Instant, SequenceSet)>, now: Instant, suppression: Duration) -> Option<&SequenceSet> {
    repaired.as_ref().filter(|(at, _)| now.since(*at) < suppression).map(|(_, set)| set)
}

/// The numbers below `unsent` that are wanted and not on their way already.
fn fresh(wanted: &SequenceSet, unsent: SequenceNumber, recent: Option<&SequenceSet>) -> Option<SequenceSet> {
    let mut fresh = SequenceSet::new(wanted.base());
    for sequence in wanted.iter().take_while(|sequence| *sequence < unsent) {
        if !recent.is_some_and(|set| set.contains(sequence)) {
            fresh.insert(sequence);
        }
    }
    (!fresh.is_empty()).then_some(fresh)
}

/// Directed HEARTBEAT that a reader is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owed {
    Nothing,
    /// An answer to its ACKNACK.
    Heartbeat,
    /// First contact: tell it where it starts.
    Greeting,
}

/// When a reader alone was asked for an acknowledgement. Each reader has its own pauses: in a crowd some always make progress
/// while others are busy, and who is busy must not be asked the more often for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    /// The last time.
    pub at: Instant,
    /// Until it is asked again; twice as long after each time that it made no progress.
    pub pause: Duration,
    /// The first time since it was heard of last.
    pub unanswered: Option<Instant>,
}

impl Asking {
    /// It is asked now.
    pub(super) fn asks(&mut self, now: Instant) {
        self.at = now;
        self.unanswered.get_or_insert(now);
    }
}

/// What ACKNACKs tell of a reader's multicast group.
#[derive(Debug, Default)]
struct GroupReception {
    /// ACKNACKs that asked for something since the last one that showed that everything had come by itself.
    losses: u32,
    /// Something was asked for since the last ACKNACK that asked for nothing.
    repairing: bool,
}

/// Measured round trips are upper bounds: a repair that is lost must not be denied for longer than this.
const SUPPRESSION_MAX: Duration = Duration::from_millis(500);

/// Requests without a complete reception in between after which a reader is reached by unicast: a switch that filters
/// multicast, or a radio link, brings nothing or little.
const GROUP_LOSSES_MAX: u32 = 4;

#[derive(Debug)]
pub(super) struct ReaderProxy {
    pub matched: MatchedReader,
    /// First sample that concerns it; earlier ones are answered by GAP.
    pub start: SequenceNumber,
    /// Last sample sent before it came, or while it stood still. Until it has caught up with that, it does not hold up the
    /// others.
    pub joined: SequenceNumber,
    pub acknowledged: Position,
    /// It sent an ACKNACK that only a reader sends which matches us too.
    pub proven: bool,
    /// Last sample that the history dropped while the reader was given up or away, although it was owed to it.
    pub forsaken: SequenceNumber,
    pub active: bool,
    pub asking: Asking,
    pub last_heard: Instant,
    /// Since when it has owed an acknowledgement without any progress, as the heartbeat timer saw it.
    pub behind_since: Option<Instant>,
    pub round_trip: RoundTrip,
    pub owed: Owed,
    pub repairs: Repairs,
    group: GroupReception,
    last_acknack_count: Option<u32>,
    last_nack_frag_count: Option<u32>,
}

impl ReaderProxy {
    pub(super) fn new(
        now: Instant,
        matched: MatchedReader,
        start: SequenceNumber,
        joined: SequenceNumber,
    ) -> ReaderProxy {
        let owed = if matched.reliable { Owed::Greeting } else { Owed::Nothing };
        ReaderProxy {
            round_trip: RoundTrip::assuming(matched.round_trip),
            matched,
            start,
            joined,
            acknowledged: Position::whole(start.previous()),
            proven: false,
            forsaken: SequenceNumber::ZERO,
            active: true,
            asking: Asking { at: now, pause: HEARTBEAT_PERIOD_MIN, unanswered: None },
            last_heard: now,
            behind_since: None,
            owed,
            repairs: Repairs::default(),
            group: GroupReception::default(),
            last_acknack_count: None,
            last_nack_frag_count: None,
        }
    }

    /// True while nothing may tell the reader of samples that concern it, lest it takes them for history that it has missed: Cyclone
    /// DDS skips everything up to the last number of the first HEARTBEAT that it sees, and acknowledges it. Thalweg's readers start
    /// where they are told to.
    pub(super) fn must_prove_itself(&self) -> bool {
        self.matched.reliable && !self.proven && self.matched.vendor != VendorId::THALWEG
    }

    /// Counts towards acknowledgement: reliable and not given up for silence.
    pub(super) fn is_awaited(&self) -> bool {
        self.matched.reliable && self.active
    }

    /// Reliable, but silent for so long that nobody waits for it any more.
    pub(super) fn is_given_up(&self) -> bool {
        self.matched.reliable && !self.active
    }

    /// Takes an ACKNACK as evidence of whether the reader's group reaches it, and gives the group up when it does not.
    /// Returns whether it did.
    pub(super) fn judge_group(&mut self, has_everything: bool) -> bool {
        if !has_everything {
            self.group.repairing = true;
            self.group.losses += 1;
        } else if !std::mem::take(&mut self.group.repairing) {
            self.group.losses = 0;
        }
        let fails = self.group.losses >= GROUP_LOSSES_MAX && !self.matched.unicast.is_empty();
        fails && self.matched.multicast.take().is_some()
    }

    /// True when new samples wait for it: it is awaited and has caught up with what was written before it came.
    pub(super) fn is_up_to_date(&self) -> bool {
        self.is_awaited() && self.acknowledged.sample >= self.joined
    }

    /// False for a repeated ACKNACK: the network duplicates datagrams.
    pub(super) fn accept_acknack(&mut self, count: u32) -> bool {
        accept_count(&mut self.last_acknack_count, count)
    }

    /// False for a repeated NACK_FRAG.
    pub(super) fn accept_nack_frag(&mut self, count: u32) -> bool {
        accept_count(&mut self.last_nack_frag_count, count)
    }

    /// When to ask it for an acknowledgement again, at the latest `longest` after everybody was asked at `all_asked`. What went
    /// to a group counts for who answered since: the network may not carry multicast.
    pub(super) fn ask_again_at(
        &self,
        all_asked: Instant,
        uses_group: bool,
        longest: Duration,
        crowd: Duration,
    ) -> Instant {
        let all_asked = if uses_group { all_asked.min(self.last_heard) } else { all_asked };
        let round_trip = self.round_trip.estimate().max(crowd);
        let pause = self.asking.pause.min(longest).max(round_trip * 4).min(HEARTBEAT_PERIOD_MAX);
        self.asking.at.max(all_asked) + pause
    }

    /// How long a repeated request is taken to have crossed its repair.
    pub(super) fn suppression(&self) -> Duration {
        self.round_trip.estimate().min(SUPPRESSION_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_crossed_its_repair_is_not_served_twice() {
        let mut repairs = Repairs::default();
        let mut wanted = SequenceSet::new(SequenceNumber(1));
        wanted.insert(SequenceNumber(1));
        let rtt = Duration::from_millis(1);
        repairs.record_samples(Instant::from_nanos(1_000_000), wanted);
        repairs.request_samples(Instant::from_nanos(1_500_000), wanted, SequenceNumber(2), rtt);
        assert!(repairs.is_empty());
        repairs.request_samples(Instant::from_nanos(3_000_000), wanted, SequenceNumber(1), rtt);
        assert!(repairs.is_empty(), "not sent yet");
        repairs.request_samples(Instant::from_nanos(3_000_000), wanted, SequenceNumber(2), rtt);
        assert!(!repairs.is_empty());
    }

    #[test]
    fn a_group_that_brings_nothing_is_given_up() {
        let locator = |ip: [u8; 4]| Locator::from(std::net::SocketAddr::from((ip, 7411)));
        let matched = MatchedReader {
            guid: Guid::UNKNOWN,
            vendor: VendorId::THALWEG,
            reliable: true,
            wants_history: false,
            unicast: vec![locator([10, 0, 0, 1])],
            multicast: Some(locator([239, 255, 0, 1])),
            on_this_host: false,
            datagram_bytes: 1472,
            batches: true,
            round_trip: crate::round_trip::ASSUMED,
            receive_buffer_bytes: None,
        };
        let mut proxy = ReaderProxy::new(Instant::ZERO, matched, SequenceNumber::FIRST, SequenceNumber::ZERO);
        for _ in 0..10 {
            // A loss now and then, repaired, and samples that come by themselves in between.
            let given_up = [false, true, true].map(|has_everything| proxy.judge_group(has_everything));
            assert_eq!(given_up, [false; 3]);
        }
        let given_up = [false, true, false, true, false, true, false].map(|everything| proxy.judge_group(everything));
        assert_eq!(given_up, [false, false, false, false, false, false, true]);
        assert_eq!(proxy.matched.multicast, None);
    }
}
