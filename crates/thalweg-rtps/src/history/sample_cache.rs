//! A reader's samples and instances as DDS 1.4 §2.2.2.5 describes them.

use super::bounds::{Bounds, Load};
use super::chain::{Ends, NOWHERE};
use super::instance::{Instance, Ranking};
use super::key_table::KeyTable;
use super::sample_queue::{Queued, SampleQueue};
use super::sample_store::{Order, Origin, PLACE_BYTES, SampleStore, Stored};
use super::{
    CachedSample, ChangeKind, InstanceState, PayloadKind, ReadFilter, SampleInfo, SampleState, TakenSample, ViewState,
};
use crate::payload::Payload;
use crate::qos::{History, ResourceLimits};
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
    bounds: Bounds,
    keyed: Keyed,
    /// The samples of a keyed topic.
    store: SampleStore,
    /// The samples of a keyless topic.
    queue: SampleQueue,
    instances: KeyTable<Instance>,
    /// Instances without samples that are not alive, though a writer still has them: the first to go.
    idle: Ends,
    held: Load,
    overwritten: u64,
    rejected: u64,
    results: u64,
    picked: Vec<usize>,
    empty: Payload,
}

/// How many instances a reader without a limit of its own knows at most.
pub const INSTANCES_DEFAULT: usize = 1 << 20;
/// Bytes of payloads (and a fixed charge for each sample) a reader holds by default.
pub const BYTES_DEFAULT: usize = 1 << 30;
/// Indices of picked samples that are kept for the next call.
const PICKED_KEPT: usize = 1 << 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Take,
}

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
            overwritten: 0,
            rejected: 0,
            results: 0,
            picked: Vec::new(),
            empty: Payload::from(Vec::new()),
        }
    }

    /// Changes the byte budget (default [`BYTES_DEFAULT`]); one sample always fits into an empty cache.
    pub fn with_bytes_max(mut self, bytes_max: usize) -> SampleCache {
        self.bounds.bytes_max = bytes_max;
        self
    }

    /// Offers one change in the order of its writer.
    pub fn insert(&mut self, sample: CachedSample) -> Insert {
        if self.keyed == Keyed::No && sample.change == ChangeKind::Write {
            return self.insert_keyless(sample);
        }
        let key = self.key_of(sample.instance);
        let slot = self.instances.find_again(&key);
        let is_value = sample.change == ChangeKind::Write;
        let is_news = is_value
            || match slot {
                Some(slot) => self.instances[slot].is_ended_by(sample.change, sample.writer),
                // Without the key nobody could tell which instance ended.
                None => sample.change.disposes() && (self.keyed == Keyed::No || !sample.payload.is_empty()),
            };
        let bytes = if is_value { sample.payload.len().saturating_add(PLACE_BYTES) } else { PLACE_BYTES };
        if is_news && !self.admits(slot, bytes) {
            self.rejected += 1;
            return Insert::Full;
        }
        if slot.is_none() && !is_news {
            return Insert::Ignored;
        }
        let slot = slot.unwrap_or_else(|| self.add_instance(key));
        let (change, writer) = (sample.change, sample.writer);
        let instance = &mut self.instances[slot];
        if self.keyed == Keyed::Yes {
            instance.remember(&sample);
        }
        if is_value {
            instance.handle_value(writer);
        } else {
            instance.handle_end(change, writer);
        }
        let overwrote = is_news && self.store(slot, sample, bytes);
        self.settle(slot);
        match (is_news, overwrote) {
            (false, _) => Insert::Ignored,
            (true, false) => Insert::Stored,
            (true, true) => Insert::Overwrote,
        }
    }

    /// What [`SampleCache::insert`] does with a value of a keyless topic, without the questions that have one answer there.
    fn insert_keyless(&mut self, sample: CachedSample) -> Insert {
        let slot = self.instances.find(&KeyHash::default());
        let bytes = sample.payload.len().saturating_add(PLACE_BYTES);
        if !self.admits(slot, bytes) {
            self.rejected += 1;
            return Insert::Full;
        }
        let slot = slot.unwrap_or_else(|| self.add_instance(KeyHash::default()));
        self.instances[slot].handle_value(sample.writer);
        match self.store(slot, sample, bytes) {
            true => Insert::Overwrote,
            false => Insert::Stored,
        }
    }

    /// Removes up to `max` samples that `filter` selects, appends them to `into` in order of reception and returns how
    /// many there were.
    pub fn take(&mut self, max: usize, filter: &ReadFilter, into: &mut Vec<TakenSample>) -> usize {
        if self.keyed == Keyed::No {
            return self.give_out_queued(max, filter, Access::Take, into);
        }
        let count = self.give_out(max, filter, Access::Take, into);
        for place in 0..count {
            self.remove(self.picked[place]);
        }
        self.picked.clear();
        self.picked.shrink_to(PICKED_KEPT);
        count
    }

    /// As [`SampleCache::take`], but the samples stay and are marked READ.
    pub fn read(&mut self, max: usize, filter: &ReadFilter, into: &mut Vec<TakenSample>) -> usize {
        if self.keyed == Keyed::No {
            return self.give_out_queued(max, filter, Access::Read, into);
        }
        let count = self.give_out(max, filter, Access::Read, into);
        for &index in &self.picked {
            self.store.mark_read(index);
        }
        self.picked.clear();
        self.picked.shrink_to(PICKED_KEPT);
        count
    }

    /// The first instance with samples behind `after` in the order of key hashes; the very first for `None`. `after`
    /// need not be known any more (DDS 1.4 §2.2.2.5.3.16).
    pub fn next_instance(&self, after: Option<KeyHash>) -> Option<KeyHash> {
        let mut instances = self.instances.iter_after(after);
        instances.find(|(_, slot)| self.instances[*slot].held.changes > 0).map(|(key, _)| key)
    }

    /// Learns that `writer` is gone: it unregisters all its instances. Each that was alive and has no other writer
    /// becomes `NOT_ALIVE_NO_WRITERS` and gets a notice that tells it.
    pub fn writer_lost(&mut self, writer: Guid, now: Instant) {
        let written = |(_, slot): &(KeyHash, usize)| self.instances[*slot].is_written_by(writer);
        let slots: Vec<usize> = self.instances.iter_after(None).filter(written).map(|(_, slot)| slot).collect();
        for slot in slots {
            let instance = &mut self.instances[slot];
            let is_news = instance.is_ended_by(ChangeKind::Unregister, writer);
            instance.handle_end(ChangeKind::Unregister, writer);
            if is_news {
                let notice = CachedSample {
                    payload: self.empty.clone(),
                    payload_kind: PayloadKind::Key,
                    valid: false,
                    writer,
                    sequence: SequenceNumber::UNKNOWN,
                    source_timestamp: None,
                    received: now,
                    instance: instance.key,
                    change: ChangeKind::Unregister,
                };
                self.store(slot, notice, PLACE_BYTES);
            }
            self.settle(slot);
        }
    }

    /// Whether a sample of `instance` with `payload_bytes` would be stored now.
    pub fn has_room(&self, instance: KeyHash, payload_bytes: usize) -> bool {
        self.admits(self.instances.find(&self.key_of(instance)), payload_bytes.saturating_add(PLACE_BYTES))
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

    /// Number of instances known.
    pub fn instances(&self) -> usize {
        self.instances.len()
    }

    /// State of an instance, or `None` when it is not known (any more).
    pub fn instance_state(&self, instance: KeyHash) -> Option<InstanceState> {
        self.instances.find(&self.key_of(instance)).map(|slot| self.instances[slot].state)
    }

    /// Bytes charged to the budget.
    pub fn bytes(&self) -> usize {
        self.held.bytes
    }

    /// How many values KEEP_LAST dropped before anybody took them.
    pub fn overwritten(&self) -> u64 {
        self.overwritten
    }

    /// How many times a sample met a full cache; one that is offered again counts again.
    pub fn rejected(&self) -> u64 {
        self.rejected
    }

    fn key_of(&self, instance: KeyHash) -> KeyHash {
        match self.keyed {
            Keyed::Yes => instance,
            Keyed::No => KeyHash::default(),
        }
    }

    fn admits(&self, slot: Option<usize>, bytes: usize) -> bool {
        match slot {
            Some(slot) => self.bounds.admit(self.held, self.instances[slot].held, bytes),
            None => {
                let has_place = self.instances.len() < self.bounds.instances_max || self.idle.first != NOWHERE;
                has_place && self.bounds.admit(self.held, Load::default(), bytes)
            }
        }
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
            source_timestamp: sample.source_timestamp,
            received: sample.received,
            disposed_generations: instance.disposed_generations,
            no_writers_generations: instance.no_writers_generations,
        };
        let payload = is_value.then_some(sample.payload);
        let queued = Queued { payload, bytes, valid: sample.valid, is_value, origin };
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
        let overwritten_before = self.overwritten;
        let mut removed_some = false;
        while let Some(oldest_is_value) = self.oldest_is_value(slot) {
            let instance = &self.instances[slot];
            let must = self.bounds.must_overwrite(self.held, instance.held, is_value, bytes);
            // A notice older than every value kept tells nothing: the instance has been reborn since.
            let has_values = instance.held.values + usize::from(is_value) > 0;
            let stale = removed_some && has_values && !oldest_is_value;
            if !must && !stale {
                break;
            }
            self.overwritten += u64::from(oldest_is_value);
            self.drop_oldest(slot);
            removed_some = true;
        }
        self.overwritten > overwritten_before
    }

    /// Whether the oldest sample of an instance carries a value; `None` without samples.
    fn oldest_is_value(&self, slot: usize) -> Option<bool> {
        match self.keyed {
            Keyed::No => self.queue.oldest().map(|oldest| oldest.is_value),
            Keyed::Yes => match self.instances[slot].samples.first {
                NOWHERE => None,
                oldest => Some(self.store[oldest].is_value),
            },
        }
    }

    fn drop_oldest(&mut self, slot: usize) {
        if self.keyed == Keyed::Yes {
            self.unlink(self.instances[slot].samples.first);
        } else if let Some(Queued { is_value, bytes, .. }) = self.queue.pop_oldest() {
            self.instances[slot].held.remove(is_value, bytes);
            self.held.remove(is_value, bytes);
        }
    }

    fn unlink(&mut self, index: usize) {
        let Stored { instance, is_value, bytes, .. } = self.store[index];
        let instance = &mut self.instances[instance];
        instance.held.remove(is_value, bytes);
        self.held.remove(is_value, bytes);
        self.store.remove(index, &mut instance.samples);
    }

    fn remove(&mut self, index: usize) {
        let slot = self.store[index].instance;
        self.unlink(index);
        self.settle(slot);
    }

    /// Forgets an instance that nothing and nobody needs, or remembers that it may be forgotten.
    fn settle(&mut self, slot: usize) {
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
        self.instances.remove(&key);
    }

    /// Appends samples of a keyless topic to `into` with their information.
    fn give_out_queued(
        &mut self,
        max: usize,
        filter: &ReadFilter,
        access: Access,
        into: &mut Vec<TakenSample>,
    ) -> usize {
        let Some(slot) = self.instances.find(&KeyHash::default()) else { return 0 };
        let instance = &mut self.instances[slot];
        let other_view = filter.view_state.is_some_and(|view| view != instance.view);
        if other_view || !filter.instance_states.contains(instance.state) {
            return 0;
        }
        let share = self.queue.share(max, filter);
        let count = share.read + share.unread;
        let Some((_, newest)) = self.queue.of(share).next_back() else { return 0 };
        let newest_generation = newest.origin.generation();
        into.reserve(count);
        let mut following = u32::try_from(count).unwrap_or(u32::MAX);
        let mut describe = |sample: &Queued, state: SampleState, payload: Option<Payload>| {
            let payload_kind = if sample.is_value { PayloadKind::Data } else { PayloadKind::Key };
            let payload = payload.unwrap_or_else(|| self.empty.clone());
            following = following.saturating_sub(1);
            let generation_rank = newest_generation.saturating_sub(sample.origin.generation());
            let info = describe(&sample.origin, sample.valid, state, instance);
            TakenSample { payload, payload_kind, info: SampleInfo { sample_rank: following, generation_rank, ..info } }
        };
        if access == Access::Read {
            into.extend(self.queue.of(share).map(|(state, sample)| describe(sample, state, sample.payload.clone())));
            self.queue.mark_read(share);
        } else {
            let mut gone = Load::default();
            let mut give = |state: SampleState, mut sample: Queued| {
                gone.add(sample.is_value, sample.bytes);
                let payload = sample.payload.take();
                describe(&sample, state, payload)
            };
            let (read, unread) = self.queue.remove(share);
            into.extend(read.map(|sample| give(SampleState::Read, sample)));
            into.extend(unread.map(|sample| give(SampleState::NotRead, sample)));
            self.queue.trim();
            instance.held.subtract(gone);
            self.held.subtract(gone);
        }
        instance.view = ViewState::NotNew;
        self.settle(slot);
        count
    }

    /// Picks samples and appends them to `into` with their information; leaves them in `picked` for the caller.
    fn give_out(&mut self, max: usize, filter: &ReadFilter, access: Access, into: &mut Vec<TakenSample>) -> usize {
        self.pick(max, filter);
        let start = into.len();
        for place in 0..self.picked.len() {
            let index = self.picked[place];
            let taken = match access {
                Access::Take => self.store[index].payload.take(),
                Access::Read => self.store[index].payload.clone(),
            };
            into.push(self.describe(index, taken));
        }
        self.rank(&mut into[start..]);
        for &index in &self.picked {
            self.instances[self.store[index].instance].view = ViewState::NotNew;
        }
        self.picked.len()
    }

    fn pick(&mut self, max: usize, filter: &ReadFilter) {
        let (order, mut index) = match (filter.instance, filter.sample_state) {
            (Some(key), _) => {
                let slot = self.instances.find(&self.key_of(key));
                (Order::Instance, slot.map_or(NOWHERE, |slot| self.instances[slot].samples.first))
            }
            (None, Some(SampleState::NotRead)) => (Order::Unread, self.store.unread.first),
            (None, _) => (Order::Reception, self.store.reception.first),
        };
        while index != NOWHERE && self.picked.len() < max {
            let stored = &self.store[index];
            if selects(filter, stored, &self.instances[stored.instance]) {
                self.picked.push(index);
            }
            index = stored.next(order);
        }
    }

    fn describe(&self, index: usize, value: Option<Payload>) -> TakenSample {
        let stored = &self.store[index];
        let instance = &self.instances[stored.instance];
        let (payload, payload_kind) = value
            .map(|payload| (payload, PayloadKind::Data))
            .or_else(|| instance.remembered())
            .unwrap_or_else(|| (self.empty.clone(), PayloadKind::Key));
        let info = describe(&stored.origin, stored.valid, sample_state(stored), instance);
        TakenSample { payload, payload_kind, info }
    }

    /// Fills in the ranks within the result, from its newest sample to its oldest.
    fn rank(&mut self, result: &mut [TakenSample]) {
        self.results += 1;
        for (taken, &index) in result.iter_mut().zip(&self.picked).rev() {
            let stored = &self.store[index];
            let ranking = &mut self.instances[stored.instance].ranking;
            if ranking.result != self.results {
                *ranking =
                    Ranking { result: self.results, following: 0, newest_generation: stored.origin.generation() };
            }
            taken.info.sample_rank = ranking.following;
            taken.info.generation_rank = ranking.newest_generation.saturating_sub(stored.origin.generation());
            ranking.following = ranking.following.saturating_add(1);
        }
    }
}

/// Everything but the ranks within the result.
fn describe(origin: &Origin, valid: bool, sample_state: SampleState, instance: &Instance) -> SampleInfo {
    SampleInfo {
        sample_state,
        view_state: instance.view,
        instance_state: instance.state,
        disposed_generation_count: origin.disposed_generations,
        no_writers_generation_count: origin.no_writers_generations,
        sample_rank: 0,
        generation_rank: 0,
        absolute_generation_rank: instance.generation().saturating_sub(origin.generation()),
        source_timestamp: origin.source_timestamp,
        received: origin.received,
        instance: instance.key,
        writer: origin.writer,
        sequence: origin.sequence,
        valid,
    }
}

fn sample_state(stored: &Stored) -> SampleState {
    if stored.read { SampleState::Read } else { SampleState::NotRead }
}

fn selects(filter: &ReadFilter, stored: &Stored, instance: &Instance) -> bool {
    filter.sample_state.is_none_or(|state| state == sample_state(stored))
        && filter.view_state.is_none_or(|view| view == instance.view)
        && filter.instance_states.contains(instance.state)
}
