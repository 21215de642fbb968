//! The way of samples from a reader's writers into its cache, and the counts of those that have no use or no room there.

use super::shortfall::Shortfall;
use super::writer_proxy::WriterProxy;
use super::{LossReason, MatchedWriter, Received};
use crate::history::{CachedSample, Insert, RejectReason, SampleCache};
use crate::time::{EpochOffset, INFINITE, Instant};
use crate::trace::{self, Mark, Passage};
use crate::types::{Guid, KeyHash, SequenceNumber};

/// The cache of one reader, and the counts of samples that did not get there.
#[derive(Debug)]
pub(super) struct Handover {
    reader: Guid,
    pub cache: SampleCache,
    /// Some writer's next sample waits for room in the cache.
    pub is_stalled: bool,
    /// The wall clock, where it is known.
    pub epoch: Option<EpochOffset>,
    pub shortfall: Shortfall,
    /// Samples handed to the cache.
    pub received: u64,
    /// Samples that went because their writer's LIFESPAN was over.
    pub expired: u64,
}

impl Handover {
    pub(super) fn new(reader: Guid, cache: SampleCache) -> Handover {
        let shortfall = Shortfall::default();
        Handover { reader, cache, is_stalled: false, epoch: None, shortfall, received: 0, expired: 0 }
    }

    /// Lets samples go whose time is over; true when there were any.
    #[inline]
    pub(super) fn expire(&mut self, clock: impl Fn() -> Instant) -> bool {
        if self.cache.next_expiry() == Instant::NEVER {
            return false;
        }
        let expired = self.cache.expire(clock());
        self.expired += expired;
        expired > 0
    }

    /// The writer no longer has `count` samples that did not arrive: where its samples have a LIFESPAN, their time was over.
    pub(super) fn lose_at_writer(&mut self, writer: &MatchedWriter, count: u64) {
        match writer.qos.timing.lifespan {
            INFINITE => self.shortfall.lose(LossReason::GoneAtWriter, count),
            _ => self.expired += count,
        }
    }

    /// Hands a sample to the cache. Returns whether the application can take something new, or the sample when there is no
    /// room for it.
    #[inline(always)]
    pub(super) fn deliver(
        &mut self,
        now: Instant,
        writer: &mut WriterProxy,
        sample: Received,
    ) -> Result<bool, Received> {
        let expires = writer.expiry(now, &sample, self.epoch);
        if expires <= now {
            self.expired += 1;
            return Ok(false);
        }
        if let Some(reason) = self.cache.refusal(sample.instance, sample.content.len()) {
            self.reject(writer, reason, sample.instance, sample.sequence);
            return Err(sample);
        }
        self.received += 1;
        let from = writer.matched.guid;
        Ok(insert(&mut self.cache, self.reader, sample.into_cached(from, now, expires)) != Insert::Ignored)
    }

    /// Hands samples that are in order to the cache until one is missing or the cache is full; returns how many.
    pub(super) fn drain(&mut self, now: Instant, writer: &mut WriterProxy) -> usize {
        let reliable = writer.matched.reliable;
        let mut delivered = 0;
        while let Some(sample) = writer.window.ready() {
            if sample.expires <= now {
                writer.window.take_ready();
                self.expired += 1;
                continue;
            }
            if let Some(reason) = self.cache.refusal(sample.instance, sample.payload.len()) {
                let (instance, sequence) = (sample.instance, sample.sequence);
                self.reject(writer, reason, instance, sequence);
                if !reliable {
                    writer.window.take_ready();
                    continue;
                }
                self.is_stalled = true;
                break;
            }
            let Some(sample) = writer.window.take_ready() else { break };
            self.received += 1;
            delivered += 1;
            insert(&mut self.cache, self.reader, sample);
        }
        writer.forget_settled_parts();
        writer.batches.advanced(writer.window.next());
        delivered
    }

    /// The cache has no room for a sample. It counts once, however often it is offered again.
    fn reject(&mut self, writer: &mut WriterProxy, reason: RejectReason, instance: KeyHash, sequence: SequenceNumber) {
        let counted = &mut writer.rejected_up_to;
        if sequence > *counted {
            *counted = sequence;
            self.shortfall.reject(reason, instance);
        }
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
