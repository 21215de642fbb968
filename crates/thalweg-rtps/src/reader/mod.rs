//! RTPS reader, best-effort and reliable (RTPS 2.5 §8.4.10, §8.4.12): order, duplicates, reassembly, acknowledgement.

mod arrival;
mod batches;
mod hold;
mod identify;
mod reassembly;
mod respond;
#[cfg(test)]
mod tests;
mod window;
mod writer_proxy;

use std::time::Duration;

pub use arrival::{Arrival, BatchRange, FragmentedSample, Received};
pub use identify::{Identified, KeyRequest};
pub use reassembly::ReassemblyBudget;
pub use writer_proxy::MatchedWriter;

use crate::history::{CachedSample, Insert, ReadFilter, SampleCache, TakenSample};
use crate::payload::PayloadPool;
use crate::qos::{Durability, ReaderQos, Reliability};
use crate::round_trip::RoundTrip;
use crate::time::Instant;
use crate::trace::{self, Mark, Passage};
use crate::types::{Guid, Keyed, SequenceNumber};
use crate::wire::{DataFrag, Gap};
use reassembly::Assembled;
use window::Window;
use writer_proxy::{RequestCounts, WriterProxy};

/// What an input changed for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderOutcome {
    /// Something can be taken that could not before.
    pub data_available: bool,
    /// [`Reader::poll_transmit`] has something to send now.
    pub answer_due: bool,
    /// [`Reader::poll_keys`] has something to ask.
    pub keys_due: bool,
}

/// Numbers that tell what a reader did; all start at zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderCounters {
    /// Samples handed to the cache.
    pub received: u64,
    /// Samples that arrived more than once.
    pub duplicates: u64,
    /// Samples that were written but will never arrive (SAMPLE_LOST).
    pub lost: u64,
    /// Samples refused because they lie too far ahead of a missing one, or exceed the memory for such samples.
    pub too_far: u64,
    /// Fragments refused: over budget or inconsistent.
    pub fragments_refused: u64,
    /// Times the cache had no room (SAMPLE_REJECTED); reliable samples are kept back, best-effort ones dropped.
    pub rejected: u64,
    /// Samples whose key could not be computed by the driver, see [`Reader::poll_keys`]; their numbers count as used up.
    pub keyless: u64,
    /// ACKNACKs and NACK_FRAGs sent.
    pub acknacks: u64,
}

/// What `take` and `read` return besides the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakeOutcome {
    /// Samples appended.
    pub count: usize,
    /// Set when room was freed that a writer waits for: pass it to `Participant::rearm`.
    pub arm: Option<Instant>,
    /// Room was freed for samples whose instance is not known yet: [`Reader::poll_keys`] has something to ask.
    pub keys_due: bool,
}

/// Memory that a reader's recycled buffers may keep in each size class.
const POOL_BYTES: usize = 16 << 20;

/// A reader's state machine. The I/O thread hands it submessages and timeouts; application threads take samples.
#[derive(Debug)]
pub struct Reader {
    guid: Guid,
    reliable: bool,
    wants_history: bool,
    keyed: Keyed,
    writers: Vec<WriterProxy>,
    /// What writers that are forgotten have seen: one that comes back may not have forgotten this reader.
    counts: RequestCounts,
    /// What the latest requests took, whoever was asked.
    round_trip: RoundTrip,
    cache: SampleCache,
    pool: PayloadPool,
    budget: ReassemblyBudget,
    /// Some writer's next sample waits for room in the cache.
    stalled: bool,
    /// A take made room for samples that had waited; the application has not been told of them.
    refilled: bool,
    next_due: Option<Instant>,
    armed: Option<Instant>,
    counters: ReaderCounters,
}

impl Reader {
    /// A reader without writers.
    pub fn new(guid: Guid, qos: &ReaderQos, keyed: Keyed, budget: ReassemblyBudget) -> Reader {
        Reader {
            guid,
            reliable: qos.reliability != Reliability::BestEffort,
            wants_history: qos.durability != Durability::Volatile,
            keyed,
            writers: Vec::new(),
            counts: RequestCounts::default(),
            round_trip: RoundTrip::assuming(Duration::ZERO),
            cache: SampleCache::new(qos.history, qos.resource_limits, keyed),
            pool: PayloadPool::new(POOL_BYTES),
            budget,
            stalled: false,
            refilled: false,
            next_due: None,
            armed: None,
            counters: ReaderCounters::default(),
        }
    }

    /// This reader's GUID.
    pub fn guid(&self) -> Guid {
        self.guid
    }

    /// Whether its topic has a key.
    pub fn keyed(&self) -> Keyed {
        self.keyed
    }

    /// Numbers that tell what this reader did.
    pub fn counters(&self) -> ReaderCounters {
        self.counters
    }

    /// The samples that wait to be taken.
    pub fn cache(&self) -> &SampleCache {
        &self.cache
    }

    /// GUIDs of the matched writers.
    pub fn matched_writers(&self) -> impl ExactSizeIterator<Item = Guid> {
        self.writers.iter().map(|writer| writer.matched.guid)
    }

    /// Removes up to `max` samples that `filter` selects, in order of reception, and appends them to `into`. `clock` is read
    /// only when samples had waited for room.
    pub fn take(
        &mut self,
        clock: impl FnOnce() -> Instant,
        max: usize,
        filter: &ReadFilter,
        into: &mut Vec<TakenSample>,
    ) -> TakeOutcome {
        let count = self.cache.take(max, filter, into);
        if !self.stalled || count == 0 {
            return TakeOutcome { count, ..TakeOutcome::default() };
        }
        self.stalled = false;
        let now = clock();
        for index in 0..self.writers.len() {
            if self.drain(index) > 0 {
                self.refilled = true;
                self.writers[index].answer_at(now);
                self.note_due(now);
            }
        }
        TakeOutcome { count, arm: self.newly_armed(), keys_due: self.has_keys_due() }
    }

    /// True once after a take was followed by samples that had waited for room: news for the application.
    pub(crate) fn was_refilled(&mut self) -> bool {
        std::mem::take(&mut self.refilled) && !self.cache.is_empty()
    }

    /// As [`Reader::take`], but the samples stay and are marked READ.
    pub fn read(&mut self, max: usize, filter: &ReadFilter, into: &mut Vec<TakenSample>) -> usize {
        self.cache.read(max, filter, into)
    }

    /// Matches a writer (or replaces what is known of it).
    pub fn match_writer(&mut self, now: Instant, mut matched: MatchedWriter) {
        matched.reliable &= self.reliable;
        match self.find(matched.guid) {
            Ok(index) => self.writers[index].matched = matched,
            Err(index) => {
                let crowd = self.round_trip.estimate();
                let budget = self.budget.clone();
                let proxy = WriterProxy::new(now, matched, self.wants_history, budget, self.counts, crowd);
                let due = proxy.requests.due;
                self.writers.insert(index, proxy);
                if let Some(due) = due {
                    self.note_due(due);
                }
            }
        }
    }

    /// Forgets a writer: its instances lose it.
    pub fn unmatch_writer(&mut self, now: Instant, guid: Guid) -> ReaderOutcome {
        let Ok(index) = self.find(guid) else { return ReaderOutcome::default() };
        self.counts = self.counts.max(self.writers.remove(index).requests.counts);
        let before = self.cache.len();
        self.cache.writer_lost(guid, now);
        ReaderOutcome { data_available: self.cache.len() > before, ..ReaderOutcome::default() }
    }

    fn find(&self, guid: Guid) -> Result<usize, usize> {
        self.writers.binary_search_by_key(&guid, |writer| writer.matched.guid)
    }

    /// Takes what neighbouring datagrams say of one writer into account; unknown writers are ignored.
    pub fn handle_arrivals(
        &mut self,
        now: Instant,
        writer: Guid,
        arrivals: impl Iterator<Item = Arrival>,
    ) -> ReaderOutcome {
        let Ok(index) = self.find(writer) else { return ReaderOutcome::default() };
        let data_available = if self.writers[index].matched.reliable {
            self.handle_reliable(now, index, arrivals)
        } else {
            self.handle_best_effort(now, index, arrivals)
        };
        self.outcome(now, index, data_available)
    }

    /// What an input that concerned one writer changed.
    fn outcome(&self, now: Instant, index: usize, data_available: bool) -> ReaderOutcome {
        let keys_due = self.writers[index].window.awaiting_keys(1).next().is_some();
        ReaderOutcome { data_available, answer_due: self.is_due(now), keys_due }
    }

    fn handle_best_effort(&mut self, now: Instant, index: usize, arrivals: impl Iterator<Item = Arrival>) -> bool {
        let mut available = false;
        for arrival in arrivals {
            let writer = &mut self.writers[index];
            match arrival {
                Arrival::Sample(sample) if writer.window.is_empty() => {
                    match writer.accept_best_effort(sample.sequence, sample.sequence.next()) {
                        None => self.counters.duplicates += 1,
                        Some(skipped) => {
                            self.counters.lost += skipped;
                            available |= self.deliver(now, index, sample).unwrap_or(false);
                        }
                    }
                }
                Arrival::Sample(sample) => available |= self.queue(now, index, sample, Window::place),
                Arrival::AwaitsKey { sample, hint } => {
                    available |=
                        self.queue(now, index, sample, |window, sample| window.place_awaiting_key(sample, hint));
                }
                Arrival::Irrelevant { start, end } => {
                    self.counters.lost += writer.accept_best_effort(start, end).unwrap_or(0);
                }
                Arrival::BatchEnd(_) | Arrival::NextDatagram => {}
            }
        }
        available
    }

    /// Hands a sample to the cache. Returns whether the application can take something new, or the sample when there is no
    /// room for it.
    fn deliver(&mut self, now: Instant, index: usize, sample: Received) -> Result<bool, Received> {
        if !self.cache.has_room(sample.instance, sample.content.len()) {
            self.counters.rejected += 1;
            return Err(sample);
        }
        self.counters.received += 1;
        let writer = self.writers[index].matched.guid;
        Ok(insert(&mut self.cache, self.guid, sample.into_cached(writer, now)) != Insert::Ignored)
    }

    fn handle_reliable(&mut self, now: Instant, index: usize, arrivals: impl Iterator<Item = Arrival>) -> bool {
        let (mut available, mut gap) = (false, false);
        for arrival in arrivals {
            let writer = &mut self.writers[index];
            match arrival {
                Arrival::Sample(sample) => {
                    writer.heard(sample.sequence);
                    if writer.window.is_empty() && sample.sequence == writer.window.next() {
                        // The rule, at full speed; everything else is the exception.
                        match self.deliver(now, index, sample) {
                            Ok(new) => {
                                available |= new;
                                self.writers[index].window.advance();
                                if self.writers[index].is_asked() {
                                    self.note_repaired(now, index);
                                }
                            }
                            Err(sample) => {
                                self.stalled = true;
                                self.hold(now, index, sample, Window::place);
                                self.note_repaired(now, index);
                            }
                        }
                    } else {
                        let placed = self.place(now, index, sample, Window::place);
                        available |= placed.delivered;
                        gap |= placed.leaves_gap;
                    }
                }
                Arrival::AwaitsKey { sample, hint } => {
                    writer.heard(sample.sequence);
                    let awaiting = |window: &mut Window, sample| window.place_awaiting_key(sample, hint);
                    let placed = self.place(now, index, sample, awaiting);
                    available |= placed.delivered;
                    gap |= placed.leaves_gap;
                }
                Arrival::Irrelevant { start, end } => available |= self.skip(now, index, start, end),
                Arrival::BatchEnd(range) => writer.batch_arrived(range),
                Arrival::NextDatagram => self.note_gap(now, index, std::mem::take(&mut gap)),
            }
        }
        self.note_gap(now, index, gap);
        let writer = &mut self.writers[index];
        writer.reassembly.forget_below(writer.window.next());
        available
    }

    /// A datagram has ended; when it left a gap open, that is to be asked for some time.
    fn note_gap(&mut self, now: Instant, index: usize, gap: bool) {
        if gap && let Some(due) = self.writers[index].gap_seen(now) {
            self.note_due(due);
        }
    }

    /// What was missing first has come, or the news that it will not.
    fn note_repaired(&mut self, now: Instant, index: usize) {
        if let Some(took) = self.writers[index].repaired(now) {
            self.round_trip.measured(took);
        }
    }

    /// The numbers from `start` to below `end` will never come. True when the application can take something new.
    fn skip(&mut self, now: Instant, index: usize, start: SequenceNumber, end: SequenceNumber) -> bool {
        let writer = &mut self.writers[index];
        writer.heard(SequenceNumber::ZERO);
        writer.window.mark_irrelevant(start, end);
        let delivered = self.drain(index);
        self.note_repaired(now, index);
        delivered > 0
    }

    /// Hands samples that are in order to the cache until one is missing or the cache is full; returns how many.
    fn drain(&mut self, index: usize) -> usize {
        let reliable = self.writers[index].matched.reliable;
        let window = &mut self.writers[index].window;
        let mut delivered = 0;
        while let Some(sample) = window.ready() {
            if !self.cache.has_room(sample.instance, sample.payload.len()) {
                self.counters.rejected += 1;
                if !reliable {
                    window.take_ready();
                    continue;
                }
                self.stalled = true;
                break;
            }
            let Some(sample) = window.take_ready() else { break };
            self.counters.received += 1;
            delivered += 1;
            insert(&mut self.cache, self.guid, sample);
        }
        let next = window.next();
        let writer = &mut self.writers[index];
        writer.reassembly.forget_below(next);
        writer.batches.advanced(next);
        delivered
    }

    /// Takes fragments into account. Returns the sample once it is whole: the caller adds its instance and hands it to
    /// [`Reader::handle_arrivals`]. `head` describes the sample, without content; `bytes` are those of the fragments.
    pub fn handle_data_frag(
        &mut self,
        now: Instant,
        writer: Guid,
        fragments: &DataFrag<'_>,
        bytes: &[u8],
        head: FragmentedSample,
    ) -> (Option<Received>, ReaderOutcome) {
        let nothing = (None, ReaderOutcome::default());
        let Ok(index) = self.find(writer) else { return nothing };
        let writer = &mut self.writers[index];
        if !writer.wants_fragments(fragments.sequence) {
            self.counters.duplicates += 1;
            return nothing;
        }
        match writer.reassembly.insert(fragments, bytes, head, &mut self.pool) {
            Assembled::Complete(sample) => {
                let (writer, reader, sequence) = (writer.matched.guid, self.guid, sample.sequence);
                trace::pass(|| Mark::Reassembled(Passage { writer, reader, sequence }));
                return (Some(sample), ReaderOutcome::default());
            }
            Assembled::Refused => self.counters.fragments_refused += 1,
            Assembled::Unfinished if writer.matched.reliable => {
                writer.heard(fragments.sequence);
                writer.fragment_seen(now, fragments);
                if let Some(due) = writer.requests.due {
                    self.note_due(due);
                }
            }
            Assembled::Unfinished => self.counters.lost += writer.forget_stale_fragments(),
        }
        (None, ReaderOutcome { answer_due: self.is_due(now), ..ReaderOutcome::default() })
    }

    /// Takes a GAP into account: numbers that will never come.
    pub fn handle_gap(&mut self, now: Instant, writer: Guid, gap: &Gap) -> ReaderOutcome {
        let Ok(index) = self.find(writer) else { return ReaderOutcome::default() };
        let proxy = &mut self.writers[index];
        if !proxy.matched.reliable {
            return ReaderOutcome::default();
        }
        proxy.heard(SequenceNumber::ZERO);
        proxy.window.mark_irrelevant(gap.start, gap.list.base());
        for sequence in gap.list.iter() {
            proxy.window.mark_irrelevant(sequence, sequence.next());
        }
        let delivered = self.drain(index);
        self.note_repaired(now, index);
        self.outcome(now, index, delivered > 0)
    }

    fn note_due(&mut self, due: Instant) {
        self.next_due = Some(self.next_due.map_or(due, |next| next.min(due)));
    }

    fn is_due(&self, now: Instant) -> bool {
        self.next_due.is_some_and(|due| due <= now)
    }

    /// When [`Reader::poll_transmit`] will have something to send.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next_due
    }

    /// The next timeout if it is earlier than the last one told; remembers it as told.
    pub(crate) fn newly_armed(&mut self) -> Option<Instant> {
        let next = self.next_due?;
        let earlier = self.armed.is_none_or(|armed| next < armed);
        earlier.then(|| {
            self.armed = Some(next);
            next
        })
    }

    /// The participant's timer ran out: whatever comes next must be told anew.
    pub(crate) fn disarm(&mut self) {
        self.armed = None;
    }
}

/// Hands the next sample to the cache of `reader`.
#[inline]
fn insert(cache: &mut SampleCache, reader: Guid, sample: CachedSample) -> Insert {
    if !trace::is_on() {
        return cache.insert(sample);
    }
    let passage = Passage { writer: sample.writer, reader, sequence: sample.sequence };
    trace::pass(|| Mark::Ordered(passage));
    let inserted = cache.insert(sample);
    trace::pass(|| Mark::Cached(passage));
    inserted
}

/// The shortest time after which a request is repeated; two round trips where that is longer.
const REPEAT_MIN: Duration = Duration::from_millis(5);
/// The longest time between repeated requests while nothing comes.
const REPEAT_MAX: Duration = Duration::from_millis(500);
