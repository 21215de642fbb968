//! A reader's samples and instances as DDS 1.4 §2.2.2.5 describes them.

use super::bounds::{Bounds, Load, RejectReason};
use super::chain::{Ends, NOWHERE};
use super::expiry::Expiry;
use super::instance::Instance;
use super::key_table::KeyTable;
use super::purges::Purges;
use super::sample_queue::{Queued, SampleQueue};
use super::sample_store::{Origin, PLACE_BYTES, SampleStore, Stored};
use super::{CachedSample, ChangeKind, InstanceState, PayloadKind};
use crate::payload::Payload;
use crate::qos::{History, ReaderLifecycle, ResourceLimits};
use crate::time::Instant;
use crate::types::{Guid, KeyHash, Keyed, SequenceNumber};

/// What became of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insert {
    /// It is there to be taken.
    Stored,
    /// It is there, and KEEP_LAST dropped an older one of its instance for it.
    Overwrote,
    /// No room within the limits: nothing changed, the same sample may be offered again later.
    Full,
    /// Nothing to tell the application: the end of an instance that is unknown, ended already or has other writers.
    Ignored,
}

/// The samples that a reader holds for its application, in order of reception, with the state of their instances.
///
/// Bounds: RESOURCE_LIMITS, instances (max_instances, by default 1,048,576), and a byte budget. Instances that
/// nobody writes are forgotten with their last sample; disposed ones give way when another instance needs the place.
#[derive(Debug)]
pub struct SampleCache {
    pub(super) bounds: Bounds,
    pub(super) keyed: Keyed,
    /// The samples of a keyed topic.
    pub(super) store: SampleStore,
    /// The samples of a keyless topic.
    pub(super) queue: SampleQueue,
    pub(super) instances: KeyTable<Instance>,
    /// Instances without samples that are not alive, though a writer still has them: the first to go.
    pub(super) idle: Ends,
    pub(super) held: Load,
    pub(super) expiry: Expiry,
    /// What goes with instances that are not alive, where READER_DATA_LIFECYCLE says so.
    pub(super) purges: Option<Box<Purges>>,
    counts: Counts,
    pub(super) results: u64,
    pub(super) picked: Vec<usize>,
    pub(super) empty: Payload,
    /// Each instance keeps a payload that tells its key.
    keeps_keys: bool,
    /// Samples of one instance are given out one after the other, whatever came between them.
    pub(super) groups_instances: bool,
    /// Each end that a writer tells gets a notice, with the bytes that came with it.
    tells_every_end: bool,
}

/// Samples that had to go, and that could not come in.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    overwritten: u64,
    rejected: u64,
}

/// How many instances a reader without a limit of its own knows at most.
pub const INSTANCES_DEFAULT: usize = 1 << 20;
/// Bytes of payloads (and a fixed charge for each sample) a reader holds by default.
pub const BYTES_DEFAULT: usize = 1 << 30;

impl SampleCache {
    /// An empty cache. On keyless topics the instance of each sample is ignored: there is only one.
    pub fn new(history: History, limits: ResourceLimits, keyed: Keyed) -> SampleCache {
        SampleCache {
            bounds: Bounds::new(history, limits, BYTES_DEFAULT, INSTANCES_DEFAULT),
            keyed,
            store: SampleStore::default(),
            queue: SampleQueue::default(),
            instances: KeyTable::new(),
            idle: Ends::default(),
            held: Load::default(),
            expiry: Expiry::default(),
            purges: None,
            counts: Counts::default(),
            results: 0,
            picked: Vec::new(),
            empty: Payload::from(Vec::new()),
            keeps_keys: true,
            groups_instances: false,
            tells_every_end: false,
        }
    }

    /// Changes the byte budget (default [`BYTES_DEFAULT`]); one sample always fits into an empty cache.
    pub fn with_bytes_max(mut self, bytes_max: usize) -> SampleCache {
        self.bounds.bytes_max = bytes_max;
        self
    }

    /// `read` and `take` give out the samples of one instance one after the other, and the instances in the order of their first
    /// sample; else all samples come in the order of reception.
    pub fn grouped_by_instance(mut self) -> SampleCache {
        self.groups_instances = true;
        self
    }

    /// Instances that are not alive go after these times.
    pub fn purging(mut self, lifecycle: ReaderLifecycle) -> SampleCache {
        self.purges = Purges::new(lifecycle);
        self
    }

    /// The hashes of instances say all that is wanted of their keys: ends of instances bear no payload.
    pub fn without_keys(mut self) -> SampleCache {
        self.keeps_keys = false;
        self
    }

    /// From now on each end that a writer tells gets a notice, with the bytes that came with it: also one that changes nothing about its
    /// instance, and one of an instance that is not known. KEEP_LAST drops notices for want of room alone.
    pub fn tell_every_end(&mut self) {
        self.tells_every_end = true;
    }

    /// Forgets an instance that has no samples here, even if somebody still writes it.
    pub fn forget_instance(&mut self, instance: KeyHash) {
        let slot = self.instances.find(&self.key_of(instance));
        if let Some(slot) = slot.filter(|slot| self.instances[*slot].held.changes == 0) {
            self.forget(slot);
        }
    }

    /// Offers one change in the order of its writer.
    #[inline(always)]
    pub fn insert(&mut self, sample: CachedSample) -> Insert {
        if self.keyed == Keyed::No && sample.change == ChangeKind::Write {
            return self.insert_keyless(sample);
        }
        let key = self.key_of(sample.instance);
        let slot = self.instances.find_again(&key);
        let is_value = sample.change == ChangeKind::Write;
        let is_news = is_value || self.is_news(slot, sample.change, sample.writer, sample.payload.len());
        let keeps_payload = is_value || self.tells_every_end;
        let bytes = if keeps_payload { sample.payload.len().saturating_add(PLACE_BYTES) } else { PLACE_BYTES };
        if is_news && !self.admits(slot, bytes) {
            self.counts.rejected += 1;
            return Insert::Full;
        }
        if slot.is_none() && !is_news {
            return Insert::Ignored;
        }
        let slot = slot.unwrap_or_else(|| self.add_instance(key));
        let (change, writer, now) = (sample.change, sample.writer, sample.received);
        let instance = &mut self.instances[slot];
        if self.keyed == Keyed::Yes && self.keeps_keys {
            instance.remember(&sample);
        }
        if is_value {
            instance.handle_value(writer);
        } else {
            instance.handle_end(change, writer);
        }
        let overwrote = is_news && self.store(slot, sample, bytes);
        self.note_state(now, slot);
        self.settle(slot);
        match (is_news, overwrote) {
            (false, _) => Insert::Ignored,
            (true, false) => Insert::Stored,
            (true, true) => Insert::Overwrote,
        }
    }

    /// Whether the end of an instance gets a notice.
    fn is_news(&self, slot: Option<usize>, change: ChangeKind, writer: Guid, payload_bytes: usize) -> bool {
        match slot {
            _ if self.tells_every_end => true,
            Some(slot) => self.instances[slot].is_ended_by(change, writer),
            // Without the key nobody could tell which instance ended.
            None => change.disposes() && (self.keyed == Keyed::No || payload_bytes > 0),
        }
    }

    /// What [`SampleCache::insert`] does with a value of a keyless topic, without the questions that have one answer there.
    #[inline(always)]
    fn insert_keyless(&mut self, sample: CachedSample) -> Insert {
        let slot = self.instances.find(&KeyHash::default());
        let bytes = sample.payload.len().saturating_add(PLACE_BYTES);
        if !self.admits(slot, bytes) {
            self.counts.rejected += 1;
            return Insert::Full;
        }
        let slot = slot.unwrap_or_else(|| self.add_instance(KeyHash::default()));
        self.instances[slot].handle_value(sample.writer);
        self.note_state(sample.received, slot);
        match self.store(slot, sample, bytes) {
            true => Insert::Overwrote,
            false => Insert::Stored,
        }
    }

    /// The first instance with samples behind `after` in the order of key hashes; the very first for `None`. `after`
    /// need not be known any more (DDS 1.4 §2.2.2.5.3.16).
    pub fn next_instance(&self, after: Option<KeyHash>) -> Option<KeyHash> {
        let mut instances = self.instances.iter_after(after);
        instances.find(|(_, slot)| self.instances[*slot].held.changes > 0).map(|(key, _)| key)
    }

    /// A value of `writer` was not handed over, which still makes it one of the instance's writers.
    pub fn note_writer(&mut self, instance: KeyHash, writer: Guid) {
        if let Some(slot) = self.instances.find(&self.key_of(instance)) {
            self.instances[slot].note_writer(writer);
        }
    }

    /// Those that write an instance.
    pub(crate) fn writers(&self, instance: KeyHash) -> &[Guid] {
        self.instances.find(&self.key_of(instance)).map_or(&[], |slot| self.instances[slot].writers())
    }

    /// Learns that `next` goes on with what `former` wrote: instances that are alive have both.
    pub(crate) fn hand_on(&mut self, former: Guid, next: Guid) {
        let written = |(_, slot): &(KeyHash, usize)| self.instances[*slot].is_written_by(former);
        let slots: Vec<usize> = self.instances.iter_after(None).filter(written).map(|(_, slot)| slot).collect();
        slots.into_iter().for_each(|slot| self.instances[slot].note_writer(next));
    }

    /// Learns that `writer` is gone: it unregisters all its instances. Each that was alive and has no other writer
    /// becomes `NOT_ALIVE_NO_WRITERS` and gets a notice that tells it. True when there is one.
    pub fn writer_lost(&mut self, writer: Guid, now: Instant) -> bool {
        let written = |(_, slot): &(KeyHash, usize)| self.instances[*slot].is_written_by(writer);
        let slots: Vec<usize> = self.instances.iter_after(None).filter(written).map(|(_, slot)| slot).collect();
        slots.into_iter().fold(false, |any, slot| any | self.lose_writer_of(slot, writer, now))
    }

    /// As [`SampleCache::writer_lost`] for one instance: a value was inserted after its writer had gone.
    pub fn instance_left(&mut self, instance: KeyHash, writer: Guid, now: Instant) {
        if let Some(slot) = self.instances.find(&self.key_of(instance)) {
            self.lose_writer_of(slot, writer, now);
        }
    }

    fn lose_writer_of(&mut self, slot: usize, writer: Guid, now: Instant) -> bool {
        let instance = &mut self.instances[slot];
        let is_news = instance.is_ended_by(ChangeKind::Unregister, writer);
        instance.handle_end(ChangeKind::Unregister, writer);
        if is_news {
            let notice = CachedSample {
                coherent_set: SequenceNumber::ZERO,
                related: None,
                payload: self.empty.clone(),
                payload_kind: PayloadKind::Key,
                valid: false,
                writer,
                sequence: SequenceNumber::UNKNOWN,
                source_timestamp: None,
                received: now,
                expires: Instant::NEVER,
                instance: instance.key,
                change: ChangeKind::Unregister,
            };
            self.store(slot, notice, PLACE_BYTES);
        }
        self.note_state(now, slot);
        self.settle(slot);
        is_news
    }

    /// Whether a sample of `instance` with `payload_bytes` would be stored now.
    pub fn has_room(&self, instance: KeyHash, payload_bytes: usize) -> bool {
        self.admits(self.instances.find(&self.key_of(instance)), payload_bytes.saturating_add(PLACE_BYTES))
    }

    /// Why a change of `instance` with `payload_bytes` would find no room now; `None` when it would, and for ends of instances that need
    /// none.
    #[inline]
    pub fn refusal(
        &self,
        instance: KeyHash,
        change: ChangeKind,
        writer: Guid,
        payload_bytes: usize,
    ) -> Option<RejectReason> {
        let slot = self.instances.find(&self.key_of(instance));
        let refusal = self.refusal_of(slot, payload_bytes.saturating_add(PLACE_BYTES));
        refusal.filter(|_| change == ChangeKind::Write || self.is_news(slot, change, writer, payload_bytes))
    }

    /// Number of samples held, notices included.
    pub fn len(&self) -> usize {
        self.store.len() + self.queue.len()
    }

    /// True when there is nothing to take.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True when there is something that no `read` has returned.
    pub fn has_unread(&self) -> bool {
        self.queue.has_unread() || self.store.unread.first != NOWHERE
    }

    /// Whether its topic has a key.
    pub fn keyed(&self) -> Keyed {
        self.keyed
    }

    /// Number of instances known.
    pub fn instances(&self) -> usize {
        self.instances.len()
    }

    /// State of an instance, or `None` when it is not known (any more).
    pub fn instance_state(&self, instance: KeyHash) -> Option<InstanceState> {
        self.instances.find(&self.key_of(instance)).map(|slot| self.instances[slot].state)
    }

    /// The byte budget.
    pub fn bytes_max(&self) -> usize {
        self.bounds.bytes_max
    }

    /// Bytes charged to the budget.
    pub fn bytes(&self) -> usize {
        self.held.bytes
    }

    /// How many values KEEP_LAST dropped before anybody took them.
    pub fn overwritten(&self) -> u64 {
        self.counts.overwritten
    }

    /// How many times a sample met a full cache; one that is offered again counts again.
    pub fn rejected(&self) -> u64 {
        self.counts.rejected
    }

    pub(super) fn key_of(&self, instance: KeyHash) -> KeyHash {
        match self.keyed {
            Keyed::Yes => instance,
            Keyed::No => KeyHash::default(),
        }
    }

    #[inline]
    fn admits(&self, slot: Option<usize>, bytes: usize) -> bool {
        self.refusal_of(slot, bytes).is_none()
    }

    #[inline]
    fn refusal_of(&self, slot: Option<usize>, bytes: usize) -> Option<RejectReason> {
        if let Some(slot) = slot {
            return self.bounds.refusal(self.held, self.instances[slot].held, bytes);
        }
        let has_place = self.instances.len() < self.bounds.instances_max || self.idle.first != NOWHERE;
        if has_place { self.bounds.refusal(self.held, Load::default(), bytes) } else { Some(RejectReason::Instances) }
    }

    fn add_instance(&mut self, key: KeyHash) -> usize {
        if self.instances.len() >= self.bounds.instances_max && self.idle.first != NOWHERE {
            self.forget(self.idle.first);
        }
        let slot = self.instances.insert(key);
        self.instances[slot].reset(key);
        slot
    }

    /// Appends a sample or notice; returns whether a value had to go for it.
    fn store(&mut self, slot: usize, sample: CachedSample, bytes: usize) -> bool {
        let is_value = sample.change == ChangeKind::Write;
        let overwrote = self.overwrite_for(slot, is_value, bytes);
        let instance = &mut self.instances[slot];
        let origin = Origin {
            writer: sample.writer,
            sequence: sample.sequence,
            related: sample.related,
            source_timestamp: sample.source_timestamp,
            received: sample.received,
            disposed_generations: instance.disposed_generations,
            no_writers_generations: instance.no_writers_generations,
        };
        let (payload, payload_kind) = match is_value {
            true => (Some(sample.payload), PayloadKind::Data),
            false if self.tells_every_end && !sample.payload.is_empty() => (Some(sample.payload), sample.payload_kind),
            false => (None, PayloadKind::Key),
        };
        let (valid, change, expires) = (sample.valid, sample.change, sample.expires);
        let queued = Queued { place: 0, payload, payload_kind, bytes, valid, change, expires, origin };
        self.expiry.note(sample.expires, self.held.changes == 0);
        instance.held.add(is_value, bytes);
        self.held.add(is_value, bytes);
        match self.keyed {
            Keyed::No => self.queue.push(queued),
            Keyed::Yes => self.store.append(Stored::new(queued, slot), &mut instance.samples),
        }
        overwrote
    }

    fn overwrite_for(&mut self, slot: usize, is_value: bool, bytes: usize) -> bool {
        if self.bounds.depth.is_none() {
            return false;
        }
        let overwritten_before = self.counts.overwritten;
        let mut removed_some = false;
        while let Some(oldest_is_value) = self.oldest_is_value(slot) {
            let instance = &self.instances[slot];
            let must = self.bounds.must_overwrite(self.held, instance.held, is_value, bytes);
            // A notice older than every value kept tells nothing, unless each is to be told: the instance has been reborn since.
            let has_values = instance.held.values + usize::from(is_value) > 0;
            let stale = removed_some && has_values && !oldest_is_value && !self.tells_every_end;
            if !must && !stale {
                break;
            }
            self.counts.overwritten += u64::from(oldest_is_value);
            self.drop_oldest(slot);
            removed_some = true;
        }
        self.counts.overwritten > overwritten_before
    }

    /// Whether the oldest sample of an instance carries a value; `None` without samples.
    pub(super) fn oldest_is_value(&self, slot: usize) -> Option<bool> {
        match self.keyed {
            Keyed::No => self.queue.oldest().map(Queued::is_value),
            Keyed::Yes => match self.instances[slot].samples.first {
                NOWHERE => None,
                oldest => Some(self.store[oldest].is_value()),
            },
        }
    }

    pub(super) fn drop_oldest(&mut self, slot: usize) {
        if self.keyed == Keyed::Yes {
            self.unlink(self.instances[slot].samples.first);
        } else if let Some(oldest) = self.queue.pop_oldest() {
            self.instances[slot].held.remove(oldest.is_value(), oldest.bytes);
            self.held.remove(oldest.is_value(), oldest.bytes);
        }
    }

    fn unlink(&mut self, index: usize) {
        let stored = &self.store[index];
        let (is_value, bytes) = (stored.is_value(), stored.bytes);
        let instance = &mut self.instances[stored.instance];
        instance.held.remove(is_value, bytes);
        self.held.remove(is_value, bytes);
        self.store.remove(index, &mut instance.samples);
    }

    pub(super) fn remove(&mut self, index: usize) {
        let slot = self.store[index].instance;
        self.unlink(index);
        self.settle(slot);
    }

    /// Forgets an instance that nothing and nobody needs, or remembers that it may be forgotten.
    pub(super) fn settle(&mut self, slot: usize) {
        let instance = &self.instances[slot];
        let is_idle = instance.held.changes == 0 && instance.state != InstanceState::Alive;
        if is_idle && !instance.has_writers() {
            self.forget(slot);
        } else if is_idle != instance.is_idle {
            self.instances[slot].is_idle = is_idle;
            match is_idle {
                true => self.idle.append(&mut self.instances, slot),
                false => self.idle.remove(&mut self.instances, slot),
            }
        }
    }

    fn forget(&mut self, slot: usize) {
        if self.instances[slot].is_idle {
            self.idle.remove(&mut self.instances, slot);
        }
        self.instances[slot].release();
        let key = self.instances[slot].key;
        if let Some(purges) = &mut self.purges {
            purges.forget(key);
        }
        self.instances.remove(&key);
    }
}
