//! `read` and `take` of a reader's samples, with their sample infos (DDS 1.4 §2.2.2.5.1).

use super::bounds::Load;
use super::chain::NOWHERE;
use super::instance::{Instance, Ranking};
use super::sample_cache::SampleCache;
use super::sample_queue::Queued;
use super::sample_store::{Order, Origin, Stored};
use super::{PayloadKind, ReadFilter, SampleInfo, SampleState, TakenSample, ViewState};
use crate::payload::Payload;
use crate::types::{Guid, KeyHash, Keyed, SequenceNumber};

/// Indices of picked samples that are kept for the next call.
const PICKED_KEPT: usize = 1 << 16;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Take,
}

/// Which sample a place of a cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheEntry {
    /// Its writer.
    pub writer: Guid,
    /// Its number.
    pub sequence: SequenceNumber,
    /// Its instance; all zero on keyless topics.
    pub instance: KeyHash,
    /// False for notices that an instance has ended.
    pub is_value: bool,
}

impl SampleCache {
    /// The waiting samples, oldest first, without changing their state.
    pub fn entries(&self) -> impl Iterator<Item = CacheEntry> {
        let queued = self.queue.iter().map(|queued| CacheEntry {
            writer: queued.origin.writer,
            sequence: queued.origin.sequence,
            instance: KeyHash::default(),
            is_value: queued.is_value(),
        });
        let first = Some(self.store.reception.first).filter(|place| *place != NOWHERE);
        let next = |place: &usize| Some(self.store[*place].next(Order::Reception)).filter(|place| *place != NOWHERE);
        let stored = std::iter::successors(first, next).map(|place| {
            let stored = &self.store[place];
            let (origin, instance) = (&stored.origin, self.instances[stored.instance].key);
            CacheEntry { writer: origin.writer, sequence: origin.sequence, instance, is_value: stored.is_value() }
        });
        queued.chain(stored)
    }

    /// A sample or key of an instance, if any came (DDS 1.4 §2.2.2.5.3.28).
    pub fn key_payload(&self, instance: KeyHash) -> Option<(Payload, PayloadKind)> {
        self.instances.find(&self.key_of(instance)).and_then(|slot| self.instances[slot].remembered())
    }

    /// Removes up to `max` samples that `filter` selects, appends them to `into` in order of reception and returns how
    /// many there were.
    pub fn take(&mut self, max: usize, filter: &ReadFilter, into: &mut Vec<TakenSample>) -> usize {
        if self.keyed == Keyed::No {
            return self.give_out_queued(max, filter, Access::Take, into);
        }
        self.pick(max, filter);
        self.give_out_picked(Access::Take, into)
    }

    /// As [`SampleCache::take`], but the samples stay and are marked READ.
    pub fn read(&mut self, max: usize, filter: &ReadFilter, into: &mut Vec<TakenSample>) -> usize {
        if self.keyed == Keyed::No {
            return self.give_out_queued(max, filter, Access::Read, into);
        }
        self.pick(max, filter);
        self.give_out_picked(Access::Read, into)
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
        let mut describe = |sample: &Queued, state: SampleState| {
            following = following.saturating_sub(1);
            let generation_rank = newest_generation.saturating_sub(sample.origin.generation());
            let info = describe(&sample.origin, sample.valid, state, instance);
            SampleInfo { sample_rank: following, generation_rank, ..info }
        };
        if access == Access::Read {
            let copied = |(state, sample): (SampleState, &Queued)| {
                let info = describe(sample, state);
                let payload = sample.payload.clone().unwrap_or_else(|| self.empty.clone());
                let (payload_kind, change) = (sample.payload_kind, sample.change);
                TakenSample { payload, payload_kind, change, info, related: sample.origin.related.clone() }
            };
            into.extend(self.queue.of(share).map(copied));
            self.queue.mark_read(share);
        } else {
            let mut gone = Load::default();
            for (state, sample) in self.queue.remove(share) {
                gone.add(sample.is_value(), sample.bytes);
                let info = describe(&sample, state);
                let Queued { payload, payload_kind, change, origin: Origin { related, .. }, .. } = sample;
                let payload = payload.unwrap_or_else(|| self.empty.clone());
                into.push(TakenSample { payload, payload_kind, change, info, related });
            }
            self.queue.trim();
            instance.held.subtract(gone);
            self.held.subtract(gone);
        }
        instance.view = ViewState::NotNew;
        self.settle(slot);
        count
    }

    /// Appends the picked samples of a keyed topic to `into` with their information; they go, or are marked READ.
    pub(super) fn give_out_picked(&mut self, access: Access, into: &mut Vec<TakenSample>) -> usize {
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
        let count = self.picked.len();
        for place in 0..count {
            match access {
                Access::Take => self.remove(self.picked[place]),
                Access::Read => self.store.mark_read(self.picked[place]),
            }
        }
        self.picked.clear();
        self.picked.shrink_to(PICKED_KEPT);
        count
    }

    /// The shortest chain that holds all samples of a keyed topic that `filter` selects, and its first place.
    #[inline]
    pub(super) fn way(&self, filter: &ReadFilter) -> (Order, usize) {
        match (filter.instance, filter.sample_state) {
            (Some(key), _) => {
                let slot = self.instances.find(&self.key_of(key));
                (Order::Instance, slot.map_or(NOWHERE, |slot| self.instances[slot].samples.first))
            }
            (None, Some(SampleState::NotRead)) => (Order::Unread, self.store.unread.first),
            (None, _) => (Order::Reception, self.store.reception.first),
        }
    }

    fn pick(&mut self, max: usize, filter: &ReadFilter) {
        let (order, mut index) = self.way(filter);
        if self.groups_instances && filter.instance.is_none() {
            return self.pick_by_instance(max, filter, order, index);
        }
        while index != NOWHERE && self.picked.len() < max {
            let stored = &self.store[index];
            if selects(filter, stored, &self.instances[stored.instance]) {
                self.picked.push(index);
            }
            index = stored.next(order);
        }
    }

    /// As [`SampleCache::pick`], instance by instance, in the order in which they are first met from `index` on.
    fn pick_by_instance(&mut self, max: usize, filter: &ReadFilter, order: Order, mut index: usize) {
        let call = self.results + 1;
        while index != NOWHERE && self.picked.len() < max {
            let slot = self.store[index].instance;
            if std::mem::replace(&mut self.instances[slot].picked_by, call) != call {
                let mut own = self.instances[slot].samples.first;
                while own != NOWHERE && self.picked.len() < max {
                    let stored = &self.store[own];
                    if selects(filter, stored, &self.instances[slot]) {
                        self.picked.push(own);
                    }
                    own = stored.next(Order::Instance);
                }
            }
            index = self.store[index].next(order);
        }
    }

    pub(super) fn describe(&self, index: usize, value: Option<Payload>) -> TakenSample {
        let stored = &self.store[index];
        let instance = &self.instances[stored.instance];
        let (payload, payload_kind) = value
            .map(|payload| (payload, stored.payload_kind))
            .or_else(|| instance.remembered())
            .unwrap_or_else(|| (self.empty.clone(), PayloadKind::Key));
        let info = describe(&stored.origin, stored.valid, sample_state(stored), instance);
        TakenSample { payload, payload_kind, change: stored.change, info, related: stored.origin.related.clone() }
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

/// The sample info without the ranks within the result.
pub(super) fn describe(origin: &Origin, valid: bool, sample_state: SampleState, instance: &Instance) -> SampleInfo {
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

pub(super) fn selects(filter: &ReadFilter, stored: &Stored, instance: &Instance) -> bool {
    filter.sample_state.is_none_or(|state| state == sample_state(stored))
        && filter.view_state.is_none_or(|view| view == instance.view)
        && filter.instance_states.contains(instance.state)
}
