//! RTPS reader, best-effort and reliable (RTPS 2.5 §8.4.10, §8.4.12): order, duplicates, reassembly, acknowledgement.

mod arrival;
mod batches;
mod departed;
#[cfg(test)]
mod departed_tests;
mod doubt;
#[cfg(test)]
mod doubt_tests;
mod explanation;
mod footprint;
#[cfg(test)]
mod fragment_tests;
mod hold;
mod identify;
#[cfg(test)]
mod lifespan_tests;
mod reassembly;
mod respond;
mod retreat;
mod shortfall;
#[cfg(test)]
mod shortfall_tests;
mod skips;
#[cfg(test)]
mod tests;
mod window;
mod writer_proxy;

use std::time::Duration;

pub use arrival::{Arrival, BatchRange, FragmentedSample, Received};
pub use explanation::ReaderExplanation;
pub use footprint::ReaderFootprint;
pub use identify::{Identified, KeyRequest};
pub use reassembly::ReassemblyBudget;
pub use shortfall::{LossReason, Losses, Rejections, StatusNews};
pub use writer_proxy::MatchedWriter;

use crate::history::{CachedSample, Insert, ReadFilter, RejectReason, SampleCache, TakenSample};
use crate::payload::PayloadPool;
use crate::qos::{Durability, ReaderQos, Reliability};
use crate::round_trip::RoundTrip;
use crate::shared::{Rank, Ranked};
use crate::time::{EpochOffset, Instant};
use crate::trace::{self, Mark, Passage};
use crate::types::{Guid, KeyHash, Keyed, SequenceNumber};
use crate::wire::{DataFrag, Gap};
use departed::Departed;
use reassembly::Assembled;
use shortfall::Shortfall;
use window::Window;
use writer_proxy::WriterProxy;

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
    /// Samples that were written but will never be handed over (SAMPLE_LOST); why: [`Reader::losses`].
    pub lost: u64,
    /// Samples refused because they lie too far ahead of a missing one, or exceed the memory for such samples.
    pub too_far: u64,
    /// HEARTBEATs, GAPs and fragments that were not believed at once, since they tell of numbers of which nobody had heard: the
    /// writer was asked.
    pub doubted: u64,
    /// Fragments refused: over budget or inconsistent.
    pub fragments_refused: u64,
    /// Samples that found no room when they came (SAMPLE_REJECTED), each once: reliable ones are kept back, best-effort ones
    /// dropped.
    pub rejected: u64,
    /// Samples that went because their writer's LIFESPAN was over before they were taken; neither lost nor rejected.
    pub expired: u64,
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
    writers: Vec<WriterProxy>,
    departed: Departed,
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
    shortfall: Shortfall,
    /// The wall clock, where it is known.
    epoch: Option<EpochOffset>,
}

impl Ranked for Reader {
    const RANK: Rank = Rank::Endpoint;
}

impl Reader {
    /// A reader without writers.
    pub fn new(guid: Guid, qos: &ReaderQos, keyed: Keyed, budget: ReassemblyBudget) -> Reader {
        Reader {
            guid,
            reliable: qos.reliability != Reliability::BestEffort,
            wants_history: qos.durability != Durability::Volatile,
            writers: Vec::new(),
            departed: Departed::default(),
            round_trip: RoundTrip::assuming(Duration::ZERO),
            cache: match guid.entity.is_builtin() {
                true => SampleCache::new(qos.history, qos.resource_limits, keyed).without_keys(),
                false => SampleCache::new(qos.history, qos.resource_limits, keyed),
            },
            pool: PayloadPool::new(POOL_BYTES),
            budget,
            stalled: false,
            refilled: false,
            next_due: None,
            armed: None,
            counters: ReaderCounters::default(),
            shortfall: Shortfall::default(),
            epoch: None,
        }
    }

    /// The first ACKNACK and NACK_FRAG to each writer matched from now on have this count.
    pub(crate) fn begin_counts_at(&mut self, first: u32) {
        self.departed.begin_counts_at(first);
    }

    /// This reader's GUID.
    pub fn guid(&self) -> Guid {
        self.guid
    }

    /// Whether its topic has a key.
    pub fn keyed(&self) -> Keyed {
        self.cache.keyed()
    }

    /// Numbers that tell what this reader did.
    pub fn counters(&self) -> ReaderCounters {
        let (lost, rejected) = (self.shortfall.losses.total(), self.shortfall.rejections.total);
        ReaderCounters { lost, rejected, ..self.counters }
    }

    /// SAMPLE_LOST: how many samples will never be taken, and why.
    pub fn losses(&self) -> Losses {
        self.shortfall.losses
    }

    /// SAMPLE_REJECTED: how many samples found no room, and why the last one did not.
    pub fn rejections(&self) -> Rejections {
        self.shortfall.rejections
    }

    /// Which statuses have changed since the last call.
    #[inline]
    pub(crate) fn take_news(&mut self) -> StatusNews {
        self.shortfall.take_news()
    }

    /// Forgets an instance whose samples were taken, whatever its writers say next of it.
    pub(crate) fn forget_instance(&mut self, instance: KeyHash) {
        self.cache.forget_instance(instance);
    }

    /// The samples that wait to be taken.
    pub fn cache(&self) -> &SampleCache {
        &self.cache
    }

    /// GUIDs of the matched writers.
    pub fn matched_writers(&self) -> impl ExactSizeIterator<Item = Guid> {
        self.writers.iter().map(|writer| writer.matched.guid)
    }

    /// Takes note of the wall clock, by which the age of samples of writers with a LIFESPAN is told.
    #[inline]
    pub(crate) fn set_epoch(&mut self, epoch: Option<EpochOffset>) {
        self.epoch = epoch;
    }

    /// Removes up to `max` samples that `filter` selects, in order of reception, and appends them to `into`. `clock` is read
    /// only when samples had waited for room, or may have expired.
    pub fn take(
        &mut self,
        clock: impl Fn() -> Instant,
        max: usize,
        filter: &ReadFilter,
        into: &mut Vec<TakenSample>,
    ) -> TakeOutcome {
        let expired = self.expire(&clock);
        let count = self.cache.take(max, filter, into);
        if !self.stalled || count == 0 && !expired {
            return TakeOutcome { count, ..TakeOutcome::default() };
        }
        self.refilled |= self.use_room(clock());
        TakeOutcome { count, arm: self.newly_armed(), keys_due: self.has_keys_due() }
    }

    /// Lets samples go whose time is over; true when there were any.
    #[inline]
    fn expire(&mut self, clock: impl Fn() -> Instant) -> bool {
        if self.cache.next_expiry() == Instant::NEVER {
            return false;
        }
        let expired = self.cache.expire(clock());
        self.counters.expired += expired;
        expired > 0
    }

    /// Hands over what had waited for room; true when something had.
    fn use_room(&mut self, now: Instant) -> bool {
        self.stalled = false;
        let mut refilled = false;
        for index in 0..self.writers.len() {
            if self.drain(now, index) > 0 {
                refilled = true;
                let due = self.writers[index].answer_after_take(now);
                self.note_due(due);
            }
        }
        refilled
    }

    /// Does what is due at `now` besides answers: samples expire, and others take their room.
    pub fn handle_timeout(&mut self, now: Instant) -> ReaderOutcome {
        let data_available = self.expire(|| now) && self.stalled && self.use_room(now);
        ReaderOutcome { data_available, answer_due: self.is_due(now), keys_due: self.has_keys_due() }
    }

    /// True once after a take was followed by samples that had waited for room: news for the application.
    pub(crate) fn take_refilled(&mut self) -> bool {
        std::mem::take(&mut self.refilled) && !self.cache.is_empty()
    }

    /// As [`Reader::take`], but the samples stay and are marked READ.
    pub fn read(
        &mut self,
        clock: impl Fn() -> Instant,
        max: usize,
        filter: &ReadFilter,
        into: &mut Vec<TakenSample>,
    ) -> TakeOutcome {
        let refilled = self.expire(&clock) && self.stalled && self.use_room(clock());
        self.refilled |= refilled;
        let count = self.cache.read(max, filter, into);
        if !refilled {
            return TakeOutcome { count, ..TakeOutcome::default() };
        }
        TakeOutcome { count, arm: self.newly_armed(), keys_due: self.has_keys_due() }
    }

    /// Matches a writer (or replaces what is known of it). One that was matched before and comes back, as after a lease that
    /// ended too early, continues where this reader was: nothing is handed over twice, what was written meanwhile and is still
    /// held arrives, and what is gone counts as lost. The last 256 writers are remembered.
    pub fn match_writer(&mut self, now: Instant, mut matched: MatchedWriter) {
        matched.reliable &= self.reliable;
        match self.find(matched.guid) {
            Ok(index) => self.writers[index].matched = matched,
            Err(index) => {
                let crowd = self.round_trip.estimate();
                let budget = self.budget.clone();
                let left_off = self.departed.recall(matched.guid);
                let counts = self.departed.counts();
                let mut proxy = WriterProxy::new(now, matched, self.wants_history, budget, counts, crowd);
                if let Some(left_off) = left_off {
                    proxy.resume(left_off);
                }
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
        let writer = self.writers.remove(index);
        self.departed.remember(guid, writer.requests.counts, writer.place_to_resume());
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
                    match writer.accept_best_effort(now, sample.sequence, sample.sequence.next()) {
                        None => self.note_refused(index, sample.sequence),
                        Some(skipped) => {
                            self.shortfall.lose(LossReason::NeverArrived, skipped);
                            available |= self.deliver(now, index, sample).unwrap_or(false);
                        }
                    }
                }
                Arrival::Sample(sample) => available |= self.queue(now, index, sample, Window::place),
                Arrival::AwaitsKey { sample, hint } => {
                    available |=
                        self.queue(now, index, sample, |window, sample| window.place_awaiting_key(sample, hint));
                }
                Arrival::Unidentified(sequence) => match writer.accept_best_effort(now, sequence, sequence.next()) {
                    None => self.note_refused(index, sequence),
                    Some(skipped) => {
                        self.shortfall.lose(LossReason::NeverArrived, skipped);
                        self.shortfall.lose(LossReason::KeyUnknown, 1);
                    }
                },
                Arrival::Irrelevant { start, end } => {
                    let skipped = writer.accept_best_effort(now, start, end).unwrap_or(0);
                    self.shortfall.lose(LossReason::NeverArrived, skipped);
                }
                Arrival::BatchEnd(_) | Arrival::NextDatagram => {}
            }
        }
        available
    }

    /// A best-effort sample is too old, or too new.
    #[cold]
    fn note_refused(&mut self, index: usize, sequence: SequenceNumber) {
        let is_new = self.writers[index].window.is_new(sequence);
        *(if is_new { &mut self.counters.too_far } else { &mut self.counters.duplicates }) += 1;
    }

    /// Hands a sample to the cache. Returns whether the application can take something new, or the sample when there is no
    /// room for it.
    #[inline(always)]
    fn deliver(&mut self, now: Instant, index: usize, sample: Received) -> Result<bool, Received> {
        let expires = self.writers[index].expiry(now, &sample, self.epoch);
        if expires <= now {
            self.counters.expired += 1;
            return Ok(false);
        }
        if let Some(reason) = self.cache.refusal(sample.instance, sample.content.len()) {
            self.reject(index, reason, sample.instance, sample.sequence);
            return Err(sample);
        }
        self.counters.received += 1;
        let writer = self.writers[index].matched.guid;
        Ok(insert(&mut self.cache, self.guid, sample.into_cached(writer, now, expires)) != Insert::Ignored)
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
                Arrival::Unidentified(sequence) => available |= self.give_up(now, index, sequence),
                Arrival::BatchEnd(range) => writer.batch_arrived(range),
                Arrival::NextDatagram => self.note_gap(now, index, std::mem::take(&mut gap)),
            }
        }
        self.note_gap(now, index, gap);
        self.writers[index].forget_settled_parts();
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
        let end = writer.believed_end(end);
        writer.heard(SequenceNumber::ZERO);
        writer.window.mark_irrelevant(start, end);
        let delivered = self.drain(now, index);
        self.note_repaired(now, index);
        delivered > 0
    }

    /// A sample came that cannot be handed over: its instance cannot be told. True when the application can take something new.
    fn give_up(&mut self, now: Instant, index: usize, sequence: SequenceNumber) -> bool {
        let window = &self.writers[index].window;
        if !window.is_new(sequence) {
            self.counters.duplicates += 1;
        } else if !window.reaches(sequence) {
            self.counters.too_far += 1;
        } else {
            self.writers[index].heard(sequence);
            self.shortfall.lose(LossReason::KeyUnknown, 1);
            return self.skip(now, index, sequence, sequence.next());
        }
        false
    }

    /// The cache has no room for a sample. It counts once, however often it is offered again.
    fn reject(&mut self, index: usize, reason: RejectReason, instance: KeyHash, sequence: SequenceNumber) {
        let counted = &mut self.writers[index].rejected_up_to;
        if sequence > *counted {
            *counted = sequence;
            self.shortfall.reject(reason, instance);
        }
    }

    /// Hands samples that are in order to the cache until one is missing or the cache is full; returns how many.
    fn drain(&mut self, now: Instant, index: usize) -> usize {
        let reliable = self.writers[index].matched.reliable;
        let mut delivered = 0;
        while let Some(sample) = self.writers[index].window.ready() {
            if sample.expires <= now {
                self.writers[index].window.take_ready();
                self.counters.expired += 1;
                continue;
            }
            if let Some(reason) = self.cache.refusal(sample.instance, sample.payload.len()) {
                let (instance, sequence) = (sample.instance, sample.sequence);
                self.reject(index, reason, instance, sequence);
                if !reliable {
                    self.writers[index].window.take_ready();
                    continue;
                }
                self.stalled = true;
                break;
            }
            let Some(sample) = self.writers[index].window.take_ready() else { break };
            self.counters.received += 1;
            delivered += 1;
            insert(&mut self.cache, self.guid, sample);
        }
        let writer = &mut self.writers[index];
        writer.forget_settled_parts();
        writer.batches.advanced(writer.window.next());
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
        if writer.matched.reliable {
            writer.take_back(fragments.sequence);
        }
        if !writer.wants_fragments(fragments.sequence) {
            self.counters.duplicates += 1;
            return nothing;
        }
        if writer.matched.reliable && !writer.window.reaches(fragments.sequence) {
            return (None, self.doubt(now, index));
        }
        if !writer.matched.reliable && !writer.believes_number(fragments.sequence) {
            self.counters.too_far += 1;
            return nothing;
        }
        match writer.reassembly.insert(now, fragments, bytes, head, &mut self.pool) {
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
            Assembled::Unfinished => self.shortfall.lose(LossReason::Incomplete, writer.forget_stale_fragments()),
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
        if proxy.is_passed_over(gap) && !(self.wants_history && proxy.matched.keeps_history) {
            if let Some(doubted) = self.doubt_passing_over(now, index, gap) {
                return doubted;
            }
            let lost = self.writers[index].window.lose_below(gap.list.base());
            self.shortfall.lose(LossReason::GoneAtWriter, lost);
        }
        let proxy = &mut self.writers[index];
        let end = proxy.believed_end(gap.list.base());
        let is_believed = end == gap.list.base();
        proxy.heard(SequenceNumber::ZERO);
        proxy.window.mark_irrelevant(gap.start, end);
        for sequence in gap.list.iter().take_while(|_| is_believed) {
            proxy.window.mark_irrelevant(sequence, sequence.next());
        }
        self.counters.doubted += u64::from(!is_believed);
        let delivered = self.drain(now, index);
        self.note_repaired(now, index);
        self.outcome(now, index, delivered > 0)
    }

    fn note_due(&mut self, due: Instant) {
        self.next_due = Some(self.next_due.map_or(due, |next| next.min(due)));
    }

    fn is_due(&self, now: Instant) -> bool {
        self.next_due.is_some_and(|due| due <= now)
    }

    /// When [`Reader::poll_transmit`] will have something to send, or [`Reader::handle_timeout`] something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let expiry = Some(self.cache.next_expiry()).filter(|expiry| *expiry != Instant::NEVER);
        [self.next_due, expiry].into_iter().flatten().min()
    }

    /// The next timeout if it is earlier than the last one told; remembers it as told.
    pub(crate) fn newly_armed(&mut self) -> Option<Instant> {
        let next = self.poll_timeout()?;
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
    if trace::is_on() { insert_traced(cache, reader, sample) } else { cache.insert(sample) }
}

#[cold]
fn insert_traced(cache: &mut SampleCache, reader: Guid, sample: CachedSample) -> Insert {
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
