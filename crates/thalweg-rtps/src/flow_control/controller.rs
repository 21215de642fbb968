//! One flow controller: a bucket, the writers that wait for its tokens, and its counters.

use std::fmt;
use std::time::Duration;

use super::FlowControllerSettings;
use super::bucket::{Cost, Portion, TokenBucket};
use super::queue::{Queue, Waiting};
use crate::time::Instant;
use crate::types::EntityId;

/// The state of a flow controller, and its output since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowControllerCounters {
    /// Whole tokens now; below zero after a datagram that cost more than the bucket holds. `None` where nothing is limited.
    pub tokens: Option<i64>,
    /// Bytes of UDP payload paid for, each once for each destination.
    pub bytes_sent: u64,
    /// Datagrams paid for, each once for each destination.
    pub datagrams_sent: u64,
    /// Number of times that a datagram had to wait for tokens.
    pub waits: u64,
    /// Writers that send under it.
    pub writers: usize,
    /// Writers of these that have something to send now.
    pub writers_waiting: usize,
    /// Serialized bytes of the samples that were not sent yet.
    pub bytes_waiting: u64,
}

impl fmt::Display for FlowControllerCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tokens {
            Some(tokens) => write!(f, "{tokens} tokens, ")?,
            None => f.write_str("unlimited tokens, ")?,
        }
        write!(f, "{} B in {} datagrams sent, {} waits, ", self.bytes_sent, self.datagrams_sent, self.waits)?;
        write!(f, "{} of {} writers and {} B waiting", self.writers_waiting, self.writers, self.bytes_waiting)
    }
}

/// The grant of a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub writer: EntityId,
    /// Bytes, all destinations together.
    pub bytes: u64,
}

/// The output of a writer under a grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    /// Bytes, once for each destination.
    pub bytes: u64,
    /// Datagrams, once for each destination.
    pub copies: u64,
    /// Destinations of each.
    pub destinations: u64,
}

/// A controller of a participant.
#[derive(Debug)]
pub(crate) struct FlowController {
    settings: FlowControllerSettings,
    bucket: TokenBucket,
    queue: Queue,
    /// Writers created with it.
    pub(super) users: usize,
    /// Until when it is of no use to ask again.
    resume_at: Option<Instant>,
    /// A writer that did not use its grant: it waits for its readers, and reports when it no longer does.
    stalled: Option<EntityId>,
    counters: FlowControllerCounters,
}

/// Tokens are given out in portions of two messages of 64 KiB that the kernel cuts apart, as far as the bucket holds that much: at a
/// high rate the I/O thread would else wake up for every datagram.
const PORTION: Portion =
    Portion { bytes: 131_072, shortest: Duration::from_micros(200), longest: Duration::from_micros(500) };

/// By how many bytes and a quarter a datagram may cost more than its writer said, before that counts.
const ESTIMATE_SLACK_BYTES: u64 = 64;

/// Time after which a writer that did not use its grant is asked again.
const RETRY: Duration = Duration::from_millis(1);

impl FlowController {
    pub(super) fn new(now: Instant, settings: FlowControllerSettings) -> FlowController {
        FlowController {
            settings,
            bucket: TokenBucket::new(now, &settings),
            queue: Queue::default(),
            users: 0,
            resume_at: None,
            stalled: None,
            counters: FlowControllerCounters::default(),
        }
    }

    pub(super) fn set(&mut self, now: Instant, settings: FlowControllerSettings) {
        self.bucket.advance(now, self.queue.demand());
        self.bucket.set(&settings);
        self.settings = settings;
        self.resume_at = None;
    }

    pub(crate) fn settings(&self) -> FlowControllerSettings {
        self.settings
    }

    /// Its counters; the caller gives the number of waiting bytes.
    pub(crate) fn counters(&self, now: Instant, bytes_waiting: u64) -> FlowControllerCounters {
        let mut bucket = self.bucket.clone();
        bucket.advance(now, self.queue.demand());
        FlowControllerCounters {
            tokens: bucket.tokens(),
            writers: self.users,
            writers_waiting: self.queue.len(),
            bytes_waiting,
            ..self.counters
        }
    }

    /// Writers that wait for tokens.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = EntityId> {
        self.queue.writers()
    }

    /// A writer was created with it.
    pub(crate) fn attach(&mut self) {
        self.users += 1;
    }

    /// A writer was deleted.
    pub(crate) fn detach(&mut self, now: Instant, writer: EntityId) {
        self.users = self.users.saturating_sub(1);
        self.dequeue(now, writer);
    }

    /// A writer has something to send.
    pub(crate) fn enqueue(&mut self, now: Instant, waiting: Waiting) {
        self.bucket.advance(now, self.queue.demand());
        let first = self.first().map(|(first, _)| first.writer);
        self.queue.insert(waiting);
        let stalled = self.stalled.take_if(|stalled| *stalled == waiting.writer).is_some();
        if stalled || self.first().map(|(first, _)| first.writer) != first {
            // Another writer is first now and may need fewer tokens; or the first one can go on.
            self.resume_at = None;
        }
    }

    /// A writer has nothing to send any more.
    pub(crate) fn dequeue(&mut self, now: Instant, writer: EntityId) {
        self.bucket.advance(now, self.queue.demand());
        if self.queue.remove(writer) {
            self.resume_at = None;
        }
    }

    /// TRANSPORT_PRIORITY of the writer that goes next; `None` when no writer waits.
    pub(crate) fn priority(&self) -> Option<i32> {
        self.first().map(|(first, _)| first.priority)
    }

    /// The writer that goes next; `None` when no writer waits.
    pub(crate) fn next_writer(&self) -> Option<EntityId> {
        self.first().map(|(first, _)| first.writer)
    }

    /// When to ask again; `None` when no writer waits or none has to wait.
    pub(crate) fn resume_at(&self) -> Option<Instant> {
        self.resume_at
    }

    /// The time of [`FlowController::resume_at`] has come.
    pub(super) fn resume(&mut self) {
        self.stalled = None;
        self.resume_at = None;
    }

    /// The writer that may send now, and its grant. `None`: no writer waits, or none may send before [`FlowController::resume_at`].
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Grant> {
        self.bucket.advance(now, self.queue.demand());
        self.resume_at = None;
        let (first, cost) = self.first()?;
        if !self.bucket.affords(cost) {
            self.counters.waits += 1;
            self.resume_at = Some(self.bucket.affordable_at(cost, PORTION));
            return None;
        }
        let alone = self.queue.is_alone(&first, self.settings.scheduling);
        // The cost of the next datagram is estimated: a grant that is a few bytes short would never be used.
        let datagram = first.next_cost + first.next_cost / 4 + ESTIMATE_SLACK_BYTES;
        let bytes = self.bucket.bytes().filter(|_| alone).unwrap_or(0).max(datagram);
        Some(Grant { writer: first.writer, bytes })
    }

    /// Records the use of a grant, and the remaining output of the writer.
    pub(crate) fn record(&mut self, now: Instant, writer: EntityId, spent: Spent, left: Option<Waiting>) {
        self.bucket.spend(Cost { bytes: spent.bytes, copies: spent.copies });
        self.counters.bytes_sent += spent.bytes;
        self.counters.datagrams_sent += spent.copies;
        let before = self.first();
        match left {
            None => self.dequeue(now, writer),
            Some(left) if spent.bytes > 0 => self.queue.served(left, spent.destinations),
            Some(left) => self.queue.insert(left),
        }
        if spent.bytes == 0 && left.is_some() && self.first() == before {
            self.resume_at = Some(now + RETRY);
            self.stalled = Some(writer);
        }
    }

    fn first(&self) -> Option<(Waiting, Cost)> {
        self.queue.first(self.settings.scheduling)
    }
}
