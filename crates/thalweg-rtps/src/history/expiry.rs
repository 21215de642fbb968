//! LIFESPAN at the reader: samples go when their time is over, whether anybody takes them or not (DDS 1.4 §2.2.3.16).

use super::bounds::Load;
use super::chain::NOWHERE;
use super::sample_cache::SampleCache;
use super::sample_store::Order;
use crate::time::Instant;
use crate::types::{KeyHash, Keyed};

/// When samples of one cache expire, as far as it takes to find them.
#[derive(Debug)]
pub(super) struct Expiry {
    /// No sample expires before; [`Instant::NEVER`] when none does.
    next: Instant,
    /// When the newest sample expires.
    newest: Instant,
    /// Samples expire in the order of reception: those that are due are the oldest.
    in_order: bool,
}

impl Default for Expiry {
    fn default() -> Expiry {
        Expiry { next: Instant::NEVER, newest: Instant::ZERO, in_order: true }
    }
}

impl Expiry {
    /// One more sample is held; `is_first`: the only one.
    #[inline]
    pub(super) fn note(&mut self, expires: Instant, is_first: bool) {
        if is_first {
            *self = Expiry::default();
        }
        self.in_order &= self.newest <= expires;
        self.newest = expires;
        self.next = self.next.min(expires);
    }
}

/// The result of a scan of all samples.
struct Remaining(Expiry);

impl Remaining {
    fn keep(&mut self, expires: Instant) {
        self.0.note(expires, false);
    }
}

impl SampleCache {
    /// When [`SampleCache::expire`] may have something to do, at the earliest; [`Instant::NEVER`] while nothing expires.
    #[inline]
    pub fn next_expiry(&self) -> Instant {
        let purges = self.purges.as_ref().map_or(Instant::NEVER, |purges| purges.next_due());
        self.expiry.next.min(purges)
    }

    /// Removes the samples that have expired by `now`, and those of instances that are purged; returns their number. The cost is proportional to it where samples expire in the
    /// order of their reception, as those of one writer do, else a look at all of them.
    pub fn expire(&mut self, now: Instant) -> u64 {
        if now < self.next_expiry() {
            return 0;
        }
        let purged = if self.purges.is_some() { self.purge(now) } else { 0 };
        let expired = match self.keyed {
            _ if now < self.expiry.next => 0,
            Keyed::No => self.expire_queued(now),
            Keyed::Yes => self.expire_stored(now),
        };
        purged + expired
    }

    fn expire_queued(&mut self, now: Instant) -> u64 {
        let Some(slot) = self.instances.find(&KeyHash::default()) else {
            self.expiry = Expiry::default();
            return 0;
        };
        let mut gone = Load::default();
        let mut count = 0;
        if self.expiry.in_order {
            while self.queue.oldest().is_some_and(|oldest| oldest.expires <= now) {
                let Some(sample) = self.queue.pop_oldest() else { break };
                gone.add(sample.is_value(), sample.bytes);
                count += 1;
            }
            self.expiry.next = self.queue.oldest().map_or(Instant::NEVER, |oldest| oldest.expires);
        } else {
            let mut remaining = Remaining(Expiry::default());
            self.queue.retain(|sample| {
                let stays = sample.expires > now;
                if stays {
                    remaining.keep(sample.expires);
                } else {
                    gone.add(sample.is_value(), sample.bytes);
                    count += 1;
                }
                stays
            });
            remaining.0.in_order &= !self.queue.is_mixed();
            self.expiry = remaining.0;
        }
        self.instances[slot].held.subtract(gone);
        self.held.subtract(gone);
        self.settle(slot);
        count
    }

    fn expire_stored(&mut self, now: Instant) -> u64 {
        let in_order = self.expiry.in_order;
        let mut remaining = Remaining(Expiry::default());
        let (mut count, mut index) = (0, self.store.reception.first);
        while index != NOWHERE {
            let (expires, next) = (self.store[index].expires, self.store[index].next(Order::Reception));
            if expires <= now {
                self.remove(index);
                count += 1;
            } else if in_order {
                self.expiry.next = expires;
                return count;
            } else {
                remaining.keep(expires);
            }
            index = next;
        }
        self.expiry = remaining.0;
        count
    }
}
