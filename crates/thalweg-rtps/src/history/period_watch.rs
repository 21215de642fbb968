//! Instances whose period ends unless something happens to them first.

use std::time::Duration;

use super::chain::{Ends, Link, Links, NOWHERE};
use super::key_table::KeyTable;
use crate::time::Instant;
use crate::types::KeyHash;

/// Instances in the order in which their period ends. The period is the same for all, so that the one renewed last ends last: renewing
/// costs a search by key and no more, however many there are.
#[derive(Debug)]
pub struct PeriodWatch {
    period: Duration,
    instances: KeyTable<Watched>,
    order: Ends,
}

#[derive(Debug, Default)]
struct Watched {
    key: KeyHash,
    ends: Instant,
    link: Link,
}

impl Links for KeyTable<Watched> {
    fn link(&mut self, index: usize) -> &mut Link {
        &mut self[index].link
    }
}

impl PeriodWatch {
    /// A watch over no instance yet.
    pub fn new(period: Duration) -> PeriodWatch {
        PeriodWatch { period, instances: KeyTable::new(), order: Ends::default() }
    }

    /// The period that each instance has.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Changes the period. That of every instance begins anew at `now`, in the same order.
    pub fn set_period(&mut self, now: Instant, period: Duration) {
        self.period = period;
        let mut slot = self.order.first;
        while slot != NOWHERE {
            self.instances[slot].ends = now + period;
            slot = self.instances[slot].link.next();
        }
    }

    /// Number of instances.
    pub fn len(&self) -> usize {
        self.instances.len()
    }

    /// True without instances.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The period of an instance, which may be a new one, begins at `now`.
    pub fn renew(&mut self, now: Instant, instance: KeyHash) {
        let slot = match self.instances.find_again(&instance) {
            Some(slot) => {
                self.order.remove(&mut self.instances, slot);
                slot
            }
            None => self.instances.insert(instance),
        };
        self.instances[slot] = Watched { key: instance, ends: now + self.period, link: Link::default() };
        self.order.append(&mut self.instances, slot);
    }

    /// When the period of an instance ends; `None` for one that is not watched.
    pub fn end_of(&self, instance: KeyHash) -> Option<Instant> {
        self.instances.find(&instance).map(|slot| self.instances[slot].ends)
    }

    /// Watches an instance no longer.
    pub fn end(&mut self, instance: KeyHash) {
        if let Some(slot) = self.instances.find(&instance) {
            self.order.remove(&mut self.instances, slot);
            self.instances.remove(&instance);
        }
    }

    /// Watches only the instances that `keep` wants.
    pub fn retain(&mut self, keep: impl Fn(KeyHash) -> bool) {
        let mut slot = self.order.first;
        while slot != NOWHERE {
            let (key, next) = (self.instances[slot].key, self.instances[slot].link.next());
            if !keep(key) {
                self.end(key);
            }
            slot = next;
        }
    }

    /// When the first period ends; [`Instant::NEVER`] without instances.
    pub fn next_end(&self) -> Instant {
        match self.order.first {
            NOWHERE => Instant::NEVER,
            first => self.instances[first].ends,
        }
    }

    /// Takes out the instance whose period has ended first by `now`, with that end.
    pub fn pop_ended(&mut self, now: Instant) -> Option<(KeyHash, Instant)> {
        if self.next_end() > now {
            return None;
        }
        let Watched { key, ends, .. } = self.instances[self.order.first];
        self.end(key);
        Some((key, ends))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_nanos(10);

    fn key(number: u8) -> KeyHash {
        KeyHash([number; 16])
    }

    #[test]
    fn periods_end_in_the_order_of_their_last_renewal() {
        let mut watch = PeriodWatch::new(PERIOD);
        let at = Instant::from_nanos;
        (0..4).for_each(|number| watch.renew(at(u64::from(number)), key(number)));
        watch.renew(at(4), key(0));
        watch.end(key(2));
        watch.end(key(9));
        assert_eq!((watch.len(), watch.next_end(), watch.pop_ended(at(10))), (3, at(11), None));
        let ended: Vec<_> = std::iter::from_fn(|| watch.pop_ended(at(14))).collect();
        assert_eq!(ended, [(key(1), at(11)), (key(3), at(13)), (key(0), at(14))]);
        assert_eq!((watch.is_empty(), watch.next_end()), (true, Instant::NEVER));
    }

    #[test]
    fn only_what_is_wanted_stays() {
        let mut watch = PeriodWatch::new(PERIOD);
        (0..6).for_each(|number| watch.renew(Instant::ZERO, key(number)));
        watch.retain(|key| key.0[0] % 2 == 1);
        assert_eq!((watch.len(), watch.pop_ended(Instant::NEVER).map(|(key, _)| key)), (3, Some(key(1))));
    }
}
