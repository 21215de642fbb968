//! Whether the samples of a coherent set have room together.

use std::collections::BTreeMap;

use super::bounds::{Load, RejectReason};
use super::chain::NOWHERE;
use super::sample_store::PLACE_BYTES;
use super::{CachedSample, ChangeKind, SampleCache};
use crate::types::KeyHash;

/// Why the samples of a set have no room together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetRefusal {
    /// They would have, were the cache empty.
    Now(RejectReason, KeyHash),
    /// They never have.
    Ever(RejectReason),
}

impl SampleCache {
    /// Whether so many samples may have room, by their number alone.
    pub(crate) fn has_places_for(&self, count: usize) -> bool {
        self.bounds.depth.is_some() || self.bounds.samples_max.saturating_sub(self.held.changes) >= count
    }

    /// Why these samples would find no room together; `None` when they would.
    pub(crate) fn refusal_of_set<'a>(&self, samples: impl Iterator<Item = &'a CachedSample>) -> Option<SetRefusal> {
        let mut added: BTreeMap<KeyHash, Load> = BTreeMap::new();
        let mut last = None;
        for sample in samples {
            last = Some(sample.instance);
            let load = added.entry(self.key_of(sample.instance)).or_default();
            load.add(sample.change == ChangeKind::Write, sample.payload.len().saturating_add(PLACE_BYTES));
        }
        let last = last?;
        if let Some(reason) = self.lack_for(&added, Load::default(), 0, |_| None) {
            return Some(SetRefusal::Ever(reason));
        }
        let own = |key: &KeyHash| self.instances.find(key).map(|slot| self.instances[slot].held);
        let others = self.instances_beside(&added);
        self.lack_for(&added, self.held, others, own).map(|reason| SetRefusal::Now(reason, last))
    }

    /// Number of instances that are left when as many others as are needed have given way to those of `added`.
    fn instances_beside(&self, added: &BTreeMap<KeyHash, Load>) -> usize {
        let known = self.instances.len();
        let needed = (known + added.len()).saturating_sub(self.bounds.instances_max);
        let there = |slot: usize| (slot != NOWHERE).then_some(slot);
        let idle = std::iter::successors(there(self.idle.first), |slot| there(self.instances[*slot].next_idle()));
        known - idle.filter(|slot| !added.contains_key(&self.instances[*slot].key)).take(needed).count()
    }

    /// Of `added`, what is too much beside `held` in so many instances, each of which holds what `own` says.
    fn lack_for(
        &self,
        added: &BTreeMap<KeyHash, Load>,
        held: Load,
        instances: usize,
        own: impl Fn(&KeyHash) -> Option<Load>,
    ) -> Option<RejectReason> {
        let bounds = &self.bounds;
        let (mut all, mut instances) = (held, instances);
        for (key, load) in added {
            let before = own(key);
            instances += usize::from(before.is_none());
            let before = before.unwrap_or_default();
            let Some(depth) = bounds.depth else {
                if before.changes + load.changes > bounds.samples_per_instance_max {
                    return Some(RejectReason::SamplesPerInstance);
                }
                (all.changes, all.bytes) = (all.changes + load.changes, all.bytes.saturating_add(load.bytes));
                continue;
            };
            // Values beyond the depth push out what is there, and then each other.
            let values = load.values.min(depth);
            let changes = values + (load.changes - load.values);
            let kept = before.changes.min(depth.saturating_sub(values));
            all.changes = all.changes + changes + kept - before.changes;
            all.bytes = all.bytes.saturating_add(if kept == before.changes { load.bytes } else { 0 });
        }
        let memory = (bounds.bytes_max < all.bytes && all.changes > 1).then_some(RejectReason::Memory);
        let places = (bounds.instances_max < instances).then_some(RejectReason::Instances);
        (bounds.samples_max < all.changes).then_some(RejectReason::Samples).or(places).or(memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{PayloadKind, ReadFilter};
    use crate::payload::Payload;
    use crate::qos::{History, ResourceLimits};
    use crate::time::Instant;
    use crate::types::{EntityId, Guid, GuidPrefix, Keyed, SequenceNumber};

    fn sample(instance: u8, change: ChangeKind) -> CachedSample {
        CachedSample {
            payload: Payload::from(vec![instance; 8]),
            payload_kind: if change == ChangeKind::Write { PayloadKind::Data } else { PayloadKind::Key },
            valid: change == ChangeKind::Write,
            writer: Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, Keyed::Yes)),
            sequence: SequenceNumber(1),
            source_timestamp: None,
            received: Instant::ZERO,
            expires: Instant::NEVER,
            instance: KeyHash([instance; 16]),
            coherent_set: SequenceNumber::ZERO,
            related: None,
            change,
        }
    }

    #[test]
    fn one_instance_that_gives_way_makes_room_for_one() {
        let limits = ResourceLimits { max_instances: Some(3), ..ResourceLimits::default() };
        let mut cache = SampleCache::new(History::KeepAll, limits, Keyed::Yes);
        for change in [ChangeKind::Write, ChangeKind::Dispose] {
            cache.insert(sample(1, change));
        }
        cache.take(usize::MAX, &ReadFilter::ALL, &mut Vec::new());
        for instance in [2, 3] {
            cache.insert(sample(instance, ChangeKind::Write));
        }
        assert_eq!(cache.instances(), 3, "its writer still has the first one");
        let refusal = |instances: &[u8]| {
            let set: Vec<CachedSample> =
                instances.iter().map(|instance| sample(*instance, ChangeKind::Write)).collect();
            cache.refusal_of_set(set.iter())
        };
        assert_eq!(refusal(&[4]), None);
        assert_eq!(refusal(&[1, 2, 3]), None);
        let last = |instance: u8| Some(SetRefusal::Now(RejectReason::Instances, KeyHash([instance; 16])));
        assert_eq!(refusal(&[4, 5]), last(5));
        assert_eq!(refusal(&[4, 1]), last(1), "it is part of the set");
    }
}
