//! RTPS writer, best-effort and reliable (RTPS 2.5 §8.4.7, §8.4.9): history, first transmission, repair, heartbeats.

mod acknowledge;
mod acknowledged;
mod adaptation;
mod ahead;
mod allowance;
#[cfg(test)]
mod allowance_tests;
#[cfg(test)]
mod asking_tests;
mod bursts;
mod charges;
mod coherent_sets;
mod collection;
mod congestion;
mod counters;
mod doubt;
#[cfg(test)]
mod doubt_tests;
mod echoes;
mod explanation;
mod flow;
mod footprint;
mod former;
mod group_reception;
mod heartbeat;
mod heartbeat_state;
mod judged;
#[cfg(test)]
mod judgement_tests;
#[cfg(test)]
mod laggard_tests;
mod laggards;
mod large_repair;
mod lasting;
mod lateness;
mod loss;
mod lost;
pub mod neighbourhood;
mod observed;
mod options;
mod outgoing;
#[cfg(test)]
mod overwrite_tests;
mod pace;
mod pacing;
mod pack;
mod path;
#[cfg(test)]
mod path_tests;
#[cfg(test)]
mod promise_tests;
mod promises;
mod publisher_group;
mod reader_proxy;
mod reader_set;
#[cfg(test)]
mod reader_set_tests;
mod registered;
mod relapse;
mod related;
mod repair;
mod repairs;
mod requests;
mod room;
#[cfg(test)]
mod room_tests;
mod route;
mod sharing;
#[cfg(test)]
mod sharing_tests;
#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod timer_tests;
mod timers;
mod transmission;
mod transmit;
mod write;

use std::sync::Arc;
use std::time::Duration;

pub use acknowledge::WriterOutcome;
use ahead::Ahead;
pub(crate) use allowance::{Backlog, Paid};
pub use counters::WriterCounters;
pub use explanation::WriterExplanation;
pub use footprint::WriterFootprint;
pub use neighbourhood::{Link, Medium, Neighbourhood};
pub use options::WriterOptions;
pub use publisher_group::PublisherGroup;
pub use reader_proxy::MatchedReader;
pub use registered::InstanceStanding;
pub use route::{DROP_COST_PER_MILLE, GroupExplanation, LinkExplanation, RouteExplanation};

use crate::history::{ChangeKind, WriterHistory};
use crate::outbox::Outbox;
use crate::payload::Payload;
use crate::qos::{Durability, Method, Reliability, WriterQos};
use crate::shared::{Rank, Ranked};
use crate::time::{Instant, Timestamp};
use crate::types::{Guid, KeyHash, SequenceNumber};
use crate::wire::parameters::BELONGING_MAX_BYTES;
use crate::wire::write::{GROUP_HEARTBEAT_LEN, HEARTBEAT_BATCH_LEN};
use coherent_sets::CoherentSets;
use collection::Collection;
use flow::Flow;
use former::FormerReaders;
use heartbeat_state::{
    HEARTBEAT_PERIOD_BLOCKED_MAX, HEARTBEAT_PERIOD_BUILTIN_MAX, HEARTBEAT_PERIOD_MAX, HEARTBEAT_PERIOD_REFUSED_MAX,
    HeartbeatState,
};
use outgoing::Outgoing;
use promises::Promises;
use reader_proxy::ReaderProxy;
use reader_set::ReaderSet;
use registered::RegisteredInstances;
use related::RelatedSamples;
use room::Room;
use route::Route;

/// A sample, or the end of an instance, to be written.
#[derive(Clone, Debug)]
pub struct NewChange {
    /// Write, dispose or unregister.
    pub kind: ChangeKind,
    /// The instance; all zero for keyless topics.
    pub instance: KeyHash,
    /// Source timestamp that readers see.
    pub timestamp: Option<Timestamp>,
    /// Serialized sample, or serialized key, with its encapsulation header.
    pub payload: Payload,
}

/// A change that is in the history now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its number.
    pub sequence: SequenceNumber,
    /// Set when this writer needs a timeout earlier than it told before: pass it to `Participant::rearm`.
    pub arm: Option<Instant>,
}

/// The history has no room: a reliable KEEP_ALL writer whose readers owe acknowledgements, or exhausted limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteRefused {
    /// Reliable readers that have not acknowledged everything yet.
    pub readers_behind: usize,
    /// All reliable readers.
    pub readers: usize,
    /// Samples in the history.
    pub held: usize,
    /// The store of its history has not kept up.
    pub awaits_store: bool,
    /// As [`Written::arm`]: an acknowledgement is asked for.
    pub arm: Option<Instant>,
}

/// A writer's state machine. Application threads write and transmit; the I/O thread hands it ACKNACKs and timeouts.
#[derive(Debug)]
pub struct Writer {
    guid: Guid,
    qos: Arc<WriterQos>,
    history: WriterHistory,
    readers: ReaderSet,
    former: FormerReaders,
    route: Route,
    outgoing: Outgoing,
    collection: Collection,
    flow: Flow,
    heartbeat: HeartbeatState,
    armed: Option<Instant>,
    ahead: Ahead,
    room: Room,
    promises: Option<Box<Promises>>,
    coherent: CoherentSets,
    related: Option<Box<RelatedSamples>>,
    registered: RegisteredInstances,
    counters: WriterCounters,
}

impl Ranked for Writer {
    const RANK: Rank = Rank::Endpoint;
}

impl Writer {
    /// A writer without readers.
    pub fn new(guid: Guid, qos: Arc<WriterQos>, options: &WriterOptions) -> Writer {
        let keeps_history = qos.durability != Durability::Volatile;
        let bytes_max = options.history_bytes_max;
        let mut history = WriterHistory::new(qos.history, qos.resource_limits, keeps_history, bytes_max);
        if qos.outlives_writer() {
            history = history.outliving(&qos.durability_service);
        }
        history.begin_at(options.first);
        Writer {
            guid,
            history,
            readers: ReaderSet::new(),
            former: FormerReaders::default(),
            route: Route::new(qos.transmission.destination),
            outgoing: Outgoing::new(options.first, &qos.transmission.method),
            collection: Collection::new(&qos.transmission.method),
            flow: Flow::new(),
            heartbeat: HeartbeatState::new(options.first),
            armed: None,
            ahead: Ahead::default(),
            room: Room::new(&qos, bytes_max).evicting(keeps_history && options.evicts_history),
            promises: Promises::new(&qos),
            coherent: CoherentSets::default(),
            related: None,
            registered: RegisteredInstances::new(guid.entity.keyed(), qos.resource_limits),
            qos,
            counters: WriterCounters::default(),
        }
    }

    /// The next HEARTBEAT and HEARTBEAT_FRAG have this count.
    pub(crate) fn begin_counts_at(&mut self, first: u32) {
        self.heartbeat.begin_counts_at(first);
    }

    /// This writer's GUID.
    pub fn guid(&self) -> Guid {
        self.guid
    }

    /// Whether it offers samples to readers that come after they were written.
    fn keeps_history(&self) -> bool {
        self.qos.durability != Durability::Volatile
    }

    /// How long a write may wait for room (RELIABILITY.max_blocking_time); zero for best effort.
    pub fn max_blocking_time(&self) -> Duration {
        match self.qos.reliability {
            Reliability::Reliable { max_blocking_time } => max_blocking_time,
            Reliability::BestEffort => Duration::ZERO,
        }
    }

    /// Numbers that tell what this writer did.
    pub fn counters(&self) -> WriterCounters {
        self.counters
    }

    /// GUIDs of the matched readers.
    pub fn matched_readers(&self) -> impl ExactSizeIterator<Item = Guid> {
        self.readers.iter().map(|reader| reader.matched.guid)
    }

    /// Matched readers that were asked several times in a row and have not answered.
    pub(crate) fn silent_readers(&self) -> impl Iterator<Item = Guid> {
        self.readers.iter().filter(|reader| reader.is_silent()).map(|reader| reader.matched.guid)
    }

    /// Whether a matched reader was asked several times in a row and has not answered.
    pub(crate) fn is_reader_silent(&self, reader: Guid) -> bool {
        self.readers.get(reader).is_some_and(ReaderProxy::is_silent)
    }

    /// The last number that a matched reader has acknowledged.
    pub fn acknowledged_by(&self, reader: Guid) -> Option<SequenceNumber> {
        Some(self.readers.get(reader)?.acknowledged.sample)
    }

    /// Number of the newest sample.
    pub fn last(&self) -> SequenceNumber {
        self.history.last()
    }

    /// Samples that the history holds.
    pub fn held(&self) -> usize {
        self.history.len()
    }

    /// Whether [`Writer::write`] would find room for a payload of this instance now. If not, `Event::SpaceAvailable` tells when
    /// it may: room that there was since the write was refused has been told already, and others have used it.
    pub fn ask_for_room(&mut self, instance: &KeyHash, payload_bytes: usize) -> bool {
        let has_room = self.make_room_for(instance, payload_bytes);
        if !has_room {
            self.room.wait();
        }
        has_room
    }

    /// True once after sending has made room for a write that was refused: samples that nobody acknowledges go when they leave.
    pub fn poll_space(&mut self) -> bool {
        self.room.take_news()
    }

    /// Samples that wait for company wait no longer: they leave with the next [`Writer::start_sending`] or
    /// [`Writer::poll_transmit`].
    pub fn flush(&mut self) {
        self.collection.force();
    }

    /// Asks all readers for an acknowledgement at once, at most once a round trip.
    pub fn request_acknowledgement(&mut self, now: Instant) {
        if self.is_awaiting() {
            self.heartbeat.want(now, self.readers.summary().round_trip);
        }
        self.schedule_heartbeat(now);
    }

    /// True when there may be something for [`Writer::start_sending`]: samples that do not wait for others, or a HEARTBEAT.
    pub fn wants_to_send(&self, now: Instant) -> bool {
        let owes = self.heartbeat.wanted || self.promises.as_ref().is_some_and(|promises| promises.owes_assertion());
        !self.collection.is_asynchronous() && (owes || !self.collection.holds(now))
    }

    /// Takes the sender token and fills `outbox` with what is to be sent. False when another thread holds the token
    /// (what was written leaves with that thread's next datagrams) or when nothing is to be sent.
    pub fn start_sending(&mut self, now: Instant, outbox: &mut Outbox) -> bool {
        if self.collection.is_asynchronous() {
            return false;
        }
        if self.outgoing.leave_to_holder() {
            return false;
        }
        let more = self.poll_transmit(now, outbox);
        if outbox.is_empty() {
            return false;
        }
        self.outgoing.take_token(more);
        true
    }

    /// To be called by the holder of the token when its `datagrams`, ready at `start`, are sent: fills `outbox` (cleared by
    /// the caller) again when more is waiting, else gives the token back and returns false.
    pub fn continue_sending(&mut self, start: Instant, now: Instant, datagrams: usize, outbox: &mut Outbox) -> bool {
        self.collection.note_sent(start, now, datagrams);
        self.outgoing.return_token() && self.start_sending(now, outbox)
    }

    /// True when a thread holds the sender token; it then sends on behalf of everybody.
    pub(crate) fn leave_to_holder(&mut self) -> bool {
        self.outgoing.leave_to_holder()
    }

    /// Matches a reader (or replaces what is known of it).
    pub fn match_reader(&mut self, now: Instant, mut matched: MatchedReader) {
        matched.reliable &= self.qos.reliability.is_reliable();
        matched.datagram_bytes = matched.datagram_bytes.min(self.qos.transmission.max_datagram_bytes);
        if self.coherent.is_grouped() {
            matched.datagram_bytes = matched.datagram_bytes.saturating_sub(GROUP_ROOM_BYTES);
        }
        matched.batches &= !matches!(self.qos.transmission.method, Method::Coalesce(_));
        let wants_history = self.keeps_history() && matched.qos.durability != Durability::Volatile;
        self.route.insert(&matched);
        if let Some(mut known) = self.readers.get_mut(matched.guid) {
            // It may acknowledge a sample in other fragments than those that were sent.
            let place = self.outgoing.place;
            let has_all = place.fragment == 0 && known.acknowledged.sample >= place.sample.previous();
            known.renew(matched, has_all);
        } else {
            let next = self.history.last().next();
            let former = self.former.take(matched.guid).filter(|_| !wants_history);
            let start = match former {
                Some(acknowledged) => acknowledged.next().max(self.history.first()).min(next),
                None if wants_history => self.history.first(),
                None => next,
            };
            let joined = self.outgoing.place.sample.previous();
            let mut proxy = ReaderProxy::new(now, matched, start, joined, self.qos.transmission.heartbeat_period);
            proxy.slowed_at = self.outgoing.place.position();
            if former.is_some_and(|acknowledged| acknowledged.next() < start) {
                proxy.forsaken = start.previous();
            }
            self.readers.insert(proxy);
        }
        self.readers_changed();
        self.hasten_heartbeat(now);
    }

    /// Forgets a reader. Returns whether that freed room for a blocked write.
    pub fn unmatch_reader(&mut self, guid: Guid) -> bool {
        self.route.remove(guid);
        if let Some(reader) = self.readers.remove(guid) {
            self.remember_former_reader(&reader);
        }
        self.pass_over_unowed();
        self.readers_changed();
        self.release_acknowledged()
    }

    /// Takes note of what the readers have in common now that one of them has changed.
    fn readers_changed(&mut self) {
        self.readmit_where_none_follows(self.flow.sent_at());
        let together = *self.readers.summary();
        self.flow.set_unacknowledged_buffer(lowest(together.unacknowledged_buffer, together.given_up_buffer));
        self.paths_changed();
        let awaited = together.awaited_count as usize;
        self.ahead.readers_on_this_host = (awaited > 0 && !together.any.elsewhere).then_some(awaited);
        self.heartbeat.is_withheld = together.any.unproved;
    }

    /// How long its latest answers took, from whichever readers; zero before the first one.
    pub(crate) fn crowd_round_trip(&self) -> Duration {
        self.heartbeat.round_trip.estimate()
    }

    /// How long the latest answers of a reader took; `None` if that is not known.
    pub(crate) fn round_trip_of(&self, reader: Guid) -> Option<Duration> {
        self.readers.get(reader)?.round_trip.measurement()
    }

    /// True while some reader's acknowledgement is waited for.
    fn is_awaiting(&self) -> bool {
        self.readers.summary().awaited().is_some()
    }

    /// Makes sure that the heartbeat timer runs.
    fn schedule_heartbeat(&mut self, now: Instant) {
        self.heartbeat.schedule(now, self.heartbeat_period());
    }

    /// Makes sure that the heartbeat timer runs and does not wait longer than for a reader that is asked for the first time.
    fn hasten_heartbeat(&mut self, now: Instant) {
        self.heartbeat.hasten(now, self.qos.transmission.heartbeat_period, self.heartbeat_period());
    }

    fn heartbeat_period(&self) -> Duration {
        self.qos.transmission.heartbeat_period.max(self.readers.summary().round_trip * 4).min(HEARTBEAT_PERIOD_MAX)
    }

    /// When [`Writer::handle_timeout`] is to be called.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timeout_where_sending_waits(Instant::ZERO)
    }

    /// As [`Writer::poll_timeout`] where nothing can be sent before `until`.
    fn timeout_where_sending_waits(&self, until: Instant) -> Option<Instant> {
        let or_never = |due: Option<Instant>| due.unwrap_or(Instant::NEVER);
        let sending =
            or_never(self.heartbeat.due).min(or_never(self.flow.next_due())).min(or_never(self.collection.due()));
        let due = sending.max(until).min(self.promises_due()).min(self.history.cleanup_due());
        (due != Instant::NEVER).then_some(due)
    }

    /// The next timeout if it is earlier than the last one told; remembers it as told.
    pub(crate) fn newly_armed(&mut self) -> Option<Instant> {
        self.newly_armed_where_sending_waits(Instant::ZERO)
    }

    /// As [`Writer::newly_armed`] where nothing can be sent before `until`.
    pub(crate) fn newly_armed_where_sending_waits(&mut self, until: Instant) -> Option<Instant> {
        let next = self.timeout_where_sending_waits(until)?;
        let earlier = self.armed.is_none_or(|armed| next < armed);
        earlier.then(|| {
            self.armed = Some(next);
            next
        })
    }

    /// When the I/O thread is to go on with what the thread that sends may not send yet, if that is news.
    pub fn pause_to_arm(&mut self) -> Option<Instant> {
        self.flow.next_due()?;
        self.newly_armed()
    }

    /// The participant's timer ran out: whatever comes next must be told anew.
    pub(crate) fn disarm(&mut self) {
        self.armed = None;
    }
}

/// The lower one of those there are; of two deadlines the earlier.
fn lowest<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Bytes of each datagram that stay free for what is said of a sample's publisher, and of the writer's in a HEARTBEAT.
const GROUP_ROOM_BYTES: usize = BELONGING_MAX_BYTES + GROUP_HEARTBEAT_LEN - HEARTBEAT_BATCH_LEN;
