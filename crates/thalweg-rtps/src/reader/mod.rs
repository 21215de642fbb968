//! RTPS reader, best-effort and reliable (RTPS 2.5 §8.4.10, §8.4.12): order, duplicates, reassembly, acknowledgement.

mod reassembly;
mod respond;
#[cfg(test)]
mod tests;
mod window;
mod writer_proxy;

use std::time::Duration;

pub use reassembly::ReassemblyBudget;
pub use writer_proxy::MatchedWriter;

use crate::history::{CachedSample, ChangeKind, Insert, PayloadKind, ReadFilter, SampleCache, TakenSample};
use crate::payload::{Payload, PayloadPool};
use crate::qos::{Durability, ReaderQos, Reliability};
use crate::time::{Instant, Timestamp};
use crate::types::{Guid, KeyHash, Keyed, SequenceNumber};
use crate::wire::{DataFrag, Gap};
use reassembly::Assembled;
use window::Placed;
use writer_proxy::WriterProxy;

/// One sample as it came from the wire, the same for every local reader that it concerns.
#[derive(Clone, Debug)]
pub struct Received {
    /// Who wrote it.
    pub writer: Guid,
    /// Its number within that writer.
    pub sequence: SequenceNumber,
    /// Source timestamp, from INFO_TS.
    pub timestamp: Option<Timestamp>,
    /// Write, dispose or unregister.
    pub kind: ChangeKind,
    /// Its instance; zero on keyless topics.
    pub instance: KeyHash,
    /// Serialized sample or key with its encapsulation header; empty when there is none.
    pub content: Payload,
    /// What the content is.
    pub content_kind: PayloadKind,
}

impl Default for Received {
    fn default() -> Received {
        Received {
            writer: Guid::UNKNOWN,
            sequence: SequenceNumber::UNKNOWN,
            timestamp: None,
            kind: ChangeKind::Write,
            instance: KeyHash::default(),
            content: Payload::from(Vec::new()),
            content_kind: PayloadKind::Data,
        }
    }
}

/// What an input changed for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderOutcome {
    /// Something can be taken that could not before.
    pub data_available: bool,
    /// [`Reader::poll_transmit`] has something to send now.
    pub answer_due: bool,
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
}

/// Memory that a reader's recycled buffers may keep in each size class.
const POOL_BYTES: usize = 16 << 20;

/// A payload this many times smaller than the buffer that it would keep alive is copied out of it.
const PINNED_RATIO_MAX: usize = 8;

/// A reader's state machine. The I/O thread hands it submessages and timeouts; application threads take samples.
#[derive(Debug)]
pub struct Reader {
    guid: Guid,
    reliable: bool,
    wants_history: bool,
    keyed: Keyed,
    writers: Vec<WriterProxy>,
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

    /// Removes up to `max` samples that `filter` selects, in order of reception, and appends them to `into`.
    pub fn take(&mut self, now: Instant, max: usize, filter: &ReadFilter, into: &mut Vec<TakenSample>) -> TakeOutcome {
        let count = self.cache.take(max, filter, into);
        if !self.stalled || count == 0 {
            return TakeOutcome { count, arm: None };
        }
        self.stalled = false;
        for index in 0..self.writers.len() {
            if self.drain(index) > 0 {
                self.refilled = true;
                self.writers[index].answer_at(now);
                self.note_due(now);
            }
        }
        TakeOutcome { count, arm: self.newly_armed() }
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
                let reliable = matched.reliable;
                let proxy = WriterProxy::new(now, matched, self.wants_history, self.budget.clone());
                self.writers.insert(index, proxy);
                if reliable {
                    self.note_due(now);
                }
            }
        }
    }

    /// Forgets a writer: its instances lose it.
    pub fn unmatch_writer(&mut self, now: Instant, guid: Guid) -> ReaderOutcome {
        let Ok(index) = self.find(guid) else { return ReaderOutcome::default() };
        self.writers.remove(index);
        let before = self.cache.len();
        self.cache.writer_lost(guid, now);
        ReaderOutcome { data_available: self.cache.len() > before, answer_due: false }
    }

    fn find(&self, guid: Guid) -> Result<usize, usize> {
        self.writers.binary_search_by_key(&guid, |writer| writer.matched.guid)
    }

    /// Takes one sample into account; samples of unknown writers are ignored.
    pub fn handle_data(&mut self, now: Instant, sample: &Received) -> ReaderOutcome {
        let Ok(index) = self.find(sample.writer) else { return ReaderOutcome::default() };
        let available = if self.writers[index].matched.reliable {
            self.handle_reliable(now, index, sample)
        } else {
            self.handle_best_effort(now, index, sample)
        };
        ReaderOutcome { data_available: available, answer_due: self.is_due(now) }
    }

    fn handle_best_effort(&mut self, now: Instant, index: usize, sample: &Received) -> bool {
        let writer = &mut self.writers[index];
        let skipped = match writer.accept_best_effort(sample.sequence) {
            Some(skipped) => skipped,
            None => {
                self.counters.duplicates += 1;
                return false;
            }
        };
        self.counters.lost += skipped;
        let cached = self.cached(now, sample);
        if !self.cache.has_room(cached.instance, cached.payload.len()) {
            self.counters.rejected += 1;
            return false;
        }
        self.counters.received += 1;
        self.cache.insert(cached) != Insert::Ignored
    }

    fn handle_reliable(&mut self, now: Instant, index: usize, sample: &Received) -> bool {
        let writer = &mut self.writers[index];
        writer.heard(sample.sequence);
        if !writer.window.is_new(sample.sequence) {
            self.counters.duplicates += 1;
            return false;
        }
        let in_order = sample.sequence == writer.window.next();
        let straight = in_order && writer.window.is_empty();
        let cached = self.cached(now, sample);
        if straight && self.cache.has_room(cached.instance, cached.payload.len()) {
            self.writers[index].window.advance();
            self.writers[index].reassembly.forget_below(sample.sequence.next());
            self.counters.received += 1;
            return self.cache.insert(cached) != Insert::Ignored;
        }
        match self.writers[index].window.place(cached) {
            Placed::Stored => {}
            Placed::Duplicate => self.counters.duplicates += 1,
            Placed::TooFar => self.counters.too_far += 1,
        }
        if in_order {
            let delivered = self.drain(index);
            self.writers[index].repaired(now);
            return delivered > 0;
        }
        if let Some(due) = self.writers[index].gap_seen(now) {
            self.note_due(due);
        }
        false
    }

    /// Hands samples that are in order to the cache until one is missing or the cache is full; returns how many.
    fn drain(&mut self, index: usize) -> usize {
        let window = &mut self.writers[index].window;
        let mut delivered = 0;
        while let Some(sample) = window.ready() {
            if !self.cache.has_room(sample.instance, sample.payload.len()) {
                self.stalled = true;
                self.counters.rejected += 1;
                break;
            }
            let Some(sample) = window.take_ready() else { break };
            self.counters.received += 1;
            delivered += 1;
            self.cache.insert(sample);
        }
        let next = window.next();
        self.writers[index].reassembly.forget_below(next);
        delivered
    }

    fn cached(&mut self, now: Instant, sample: &Received) -> CachedSample {
        let content = &sample.content;
        let wasteful = content.pinned_bytes() > content.len().saturating_mul(PINNED_RATIO_MAX);
        CachedSample {
            payload: if wasteful { self.pool.copy(content) } else { content.clone() },
            payload_kind: sample.content_kind,
            valid: sample.kind == ChangeKind::Write,
            writer: sample.writer,
            sequence: sample.sequence,
            source_timestamp: sample.timestamp,
            received: now,
            instance: sample.instance,
            change: sample.kind,
        }
    }

    /// Takes fragments into account. Returns the sample once it is whole: the caller adds its instance and hands it to
    /// [`Reader::handle_data`]. `head` describes the sample, without content; `bytes` are those of the fragments.
    pub fn handle_data_frag(
        &mut self,
        now: Instant,
        fragments: &DataFrag<'_>,
        bytes: &[u8],
        head: &Received,
    ) -> (Option<Received>, ReaderOutcome) {
        let nothing = (None, ReaderOutcome::default());
        let Ok(index) = self.find(head.writer) else { return nothing };
        let writer = &mut self.writers[index];
        if !writer.wants_fragments(fragments.sequence) {
            self.counters.duplicates += 1;
            return nothing;
        }
        match writer.reassembly.insert(fragments, bytes, head, &mut self.pool) {
            Assembled::Complete(sample) => return (Some(sample), ReaderOutcome::default()),
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
        (None, ReaderOutcome { data_available: false, answer_due: self.is_due(now) })
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
        self.writers[index].repaired(now);
        ReaderOutcome { data_available: delivered > 0, answer_due: self.is_due(now) }
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

/// The shortest time after which a request is repeated; two round trips where that is longer.
const REPEAT_MIN: Duration = Duration::from_millis(5);
/// The longest time between repeated requests while nothing comes.
const REPEAT_MAX: Duration = Duration::from_millis(500);
