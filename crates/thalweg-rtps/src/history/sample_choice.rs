//! Looking at a reader's samples, and `read` and `take` of those that the application has chosen by their values.

use std::collections::BTreeSet;

use super::bounds::Load;
use super::chain::NOWHERE;
use super::sample_access::{Access, describe, selects};
use super::sample_cache::SampleCache;
use super::{ReadFilter, SampleInfo, TakenSample, ViewState};
use crate::types::{Guid, KeyHash, Keyed, SequenceNumber};

/// Samples by their writers and numbers.
pub type Choice = BTreeSet<(Guid, SequenceNumber)>;

impl SampleCache {
    /// Whether there are samples that `filter` selects.
    pub fn selects(&self, filter: &ReadFilter) -> bool {
        match self.keyed {
            Keyed::No => self.selected_queued(filter).next().is_some(),
            Keyed::Yes => self.selected(filter).next().is_some(),
        }
    }

    /// The first instance behind `after`, in the order of key hashes, with samples that `filter` selects.
    pub fn next_selected(&self, mut after: Option<KeyHash>, filter: &ReadFilter) -> Option<KeyHash> {
        loop {
            let instance = self.next_instance(after)?;
            if self.selects(&ReadFilter { instance: Some(instance), ..*filter }) {
                return Some(instance);
            }
            after = Some(instance);
        }
    }

    /// Appends the samples that `filter` selects to `into`, without their ranks. They stay, and their states too.
    pub fn look(&self, filter: &ReadFilter, into: &mut Vec<TakenSample>) {
        match self.keyed {
            Keyed::No => into.extend(self.selected_queued(filter)),
            Keyed::Yes => {
                into.extend(self.selected(filter).map(|place| self.describe(place, self.store[place].payload.clone())))
            }
        }
    }

    /// Removes the samples of `choice` that are still there and appends them to `into` in order of reception.
    pub fn take_chosen(&mut self, choice: &Choice, into: &mut Vec<TakenSample>) -> usize {
        self.give_out_chosen(choice, Access::Take, into)
    }

    /// As [`SampleCache::take_chosen`], but the samples stay and are marked READ.
    pub fn read_chosen(&mut self, choice: &Choice, into: &mut Vec<TakenSample>) -> usize {
        self.give_out_chosen(choice, Access::Read, into)
    }

    fn give_out_chosen(&mut self, choice: &Choice, access: Access, into: &mut Vec<TakenSample>) -> usize {
        if choice.is_empty() {
            return 0;
        }
        if self.keyed == Keyed::No {
            return self.give_out_chosen_queued(choice, access, into);
        }
        let mut picked = std::mem::take(&mut self.picked);
        let is_chosen = |place: &usize| {
            let origin = &self.store[*place].origin;
            choice.contains(&(origin.writer, origin.sequence))
        };
        picked.extend(self.selected(&ReadFilter::ALL).filter(is_chosen));
        self.picked = picked;
        self.give_out_picked(access, into)
    }

    fn give_out_chosen_queued(&mut self, choice: &Choice, access: Access, into: &mut Vec<TakenSample>) -> usize {
        let Some(slot) = self.instances.find(&KeyHash::default()) else { return 0 };
        let (start, mut gone) = (into.len(), Load::default());
        let is_chosen = |origin: &super::sample_store::Origin| choice.contains(&(origin.writer, origin.sequence));
        let looked = self.selected_queued(&ReadFilter::ALL);
        into.extend(looked.filter(|sample| choice.contains(&(sample.info.writer, sample.info.sequence))));
        match access {
            Access::Read => self.queue.mark_chosen_read(|sample| is_chosen(&sample.origin)),
            Access::Take => {
                self.queue.retain(|sample| {
                    let goes = is_chosen(&sample.origin);
                    if goes {
                        gone.add(sample.is_value(), sample.bytes);
                    }
                    !goes
                });
                self.queue.trim();
            }
        }
        let count = into.len() - start;
        let generation =
            |info: &SampleInfo| info.disposed_generation_count.saturating_add(info.no_writers_generation_count);
        let newest = into[start..].last().map_or(0, |taken| generation(&taken.info));
        for (place, taken) in into[start..].iter_mut().enumerate() {
            taken.info.generation_rank = newest.saturating_sub(generation(&taken.info));
            taken.info.sample_rank = u32::try_from(count - 1 - place).unwrap_or(u32::MAX);
        }
        let instance = &mut self.instances[slot];
        instance.held.subtract(gone);
        if count > 0 {
            instance.view = ViewState::NotNew;
        }
        self.held.subtract(gone);
        self.settle(slot);
        count
    }

    /// The samples of a keyless topic that `filter` selects, oldest first.
    fn selected_queued(&self, filter: &ReadFilter) -> impl Iterator<Item = TakenSample> {
        let instance = self.instances.find(&KeyHash::default()).map(|slot| &self.instances[slot]);
        let instance = instance.filter(|instance| {
            filter.view_state.is_none_or(|view| view == instance.view)
                && filter.instance_states.contains(instance.state)
        });
        let share = self.queue.share(usize::MAX, filter);
        instance.into_iter().flat_map(move |instance| {
            self.queue.of(share).map(move |(state, sample)| {
                let (payload_kind, change) = (sample.payload_kind, sample.change);
                let payload = sample.payload.clone().unwrap_or_else(|| self.empty.clone());
                let info: SampleInfo = describe(&sample.origin, sample.valid, state, instance);
                TakenSample { payload, payload_kind, change, info, related: sample.origin.related.clone() }
            })
        })
    }

    /// The places of the samples of a keyed topic that `filter` selects, oldest first.
    fn selected(&self, filter: &ReadFilter) -> impl Iterator<Item = usize> {
        let (order, first) = self.way(filter);
        let next = move |place: &usize| Some(self.store[*place].next(order)).filter(|place| *place != NOWHERE);
        let places = std::iter::successors(Some(first).filter(|place| *place != NOWHERE), next);
        let filter = *filter;
        places.filter(move |place| {
            let stored = &self.store[*place];
            selects(&filter, stored, &self.instances[stored.instance])
        })
    }
}
