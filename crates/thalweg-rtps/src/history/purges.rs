//! READER_DATA_LIFECYCLE: instances that are not alive go some time later, whether anybody takes their samples or not (DDS 1.4
//! §2.2.3.22).

use super::InstanceState;
use super::period_watch::PeriodWatch;
use super::sample_cache::SampleCache;
use crate::qos::ReaderLifecycle;
use crate::time::{INFINITE, Instant};
use crate::types::KeyHash;

/// The instances of one cache that are not alive and wait for their end. They are instances that the cache knows, or knew.
#[derive(Debug)]
pub(super) struct Purges {
    without_writers: Option<PeriodWatch>,
    disposed: Option<PeriodWatch>,
}

impl Purges {
    /// `None` where nothing is ever purged.
    pub(super) fn new(lifecycle: ReaderLifecycle) -> Option<Box<Purges>> {
        let watch = |delay| (delay != INFINITE).then(|| PeriodWatch::new(delay));
        let without_writers = watch(lifecycle.autopurge_nowriter_samples_delay);
        let disposed = watch(lifecycle.autopurge_disposed_samples_delay);
        (without_writers.is_some() || disposed.is_some()).then(|| Box::new(Purges { without_writers, disposed }))
    }

    /// An instance is in this state now, or still.
    fn note(&mut self, now: Instant, instance: KeyHash, state: InstanceState) {
        for (watch, ended) in [
            (&mut self.without_writers, InstanceState::NotAliveNoWriters),
            (&mut self.disposed, InstanceState::NotAliveDisposed),
        ] {
            let Some(watch) = watch else { continue };
            if state != ended {
                watch.end(instance);
            } else if watch.end_of(instance).is_none() {
                watch.renew(now, instance);
            }
        }
    }

    /// The cache does not know an instance any more.
    pub(super) fn forget(&mut self, instance: KeyHash) {
        self.watches().for_each(|watch| watch.end(instance));
    }

    pub(super) fn next_due(&self) -> Instant {
        let watches = [&self.without_writers, &self.disposed].into_iter().flatten();
        watches.map(PeriodWatch::next_end).min().unwrap_or(Instant::NEVER)
    }

    fn pop_due(&mut self, now: Instant) -> Option<KeyHash> {
        self.watches().find_map(|watch| watch.pop_ended(now)).map(|(instance, _)| instance)
    }

    fn watches(&mut self) -> impl Iterator<Item = &mut PeriodWatch> {
        [&mut self.without_writers, &mut self.disposed].into_iter().flatten()
    }
}

impl SampleCache {
    /// The state of an instance may have changed.
    #[inline]
    pub(super) fn note_state(&mut self, now: Instant, slot: usize) {
        if let Some(purges) = &mut self.purges {
            purges.note(now, self.instances[slot].key, self.instances[slot].state);
        }
    }

    /// Lets the samples of instances go whose time is over, and such instances that nobody writes; returns how many values went.
    #[inline(never)]
    pub(super) fn purge(&mut self, now: Instant) -> u64 {
        let mut count = 0;
        while let Some(instance) = self.purges.as_mut().and_then(|purges| purges.pop_due(now)) {
            let Some(slot) = self.instances.find(&instance) else { continue };
            while let Some(is_value) = self.oldest_is_value(slot) {
                count += u64::from(is_value);
                self.drop_oldest(slot);
            }
            self.settle(slot);
        }
        count
    }
}
