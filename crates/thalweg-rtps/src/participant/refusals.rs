//! Pairs that do not match, of which the application was told.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::types::FORCED;
use crate::qos::{MatchResult, PolicyId};
use crate::types::{EntityId, Guid, GuidPrefix};

/// Pairs of another endpoint and a local one that do not match, with the reason that was told: what has nothing to do with it counts no pair
/// again (DDS 1.4 §2.2.4.1).
#[derive(Debug, Default)]
pub(super) struct Refusals(BTreeMap<(Guid, EntityId), Reason>);

/// What is kept of a reason: as much of each, since a peer announces what its text tells, and makes many pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reason {
    /// That of the text.
    hash: u64,
    is_for_types: bool,
}

impl Reason {
    fn of(result: &MatchResult) -> Reason {
        let mut hasher = DefaultHasher::new();
        result.to_string().hash(&mut hasher);
        Reason { hash: hasher.finish(), is_for_types: is_for_types(result) }
    }
}

/// Pairs that are remembered, chosen by us: beyond them a pair may be told again.
const REFUSALS_MAX: usize = 16_384;

impl Refusals {
    /// Remembers why a pair does not match; whether that is to be told.
    pub(super) fn note(&mut self, (local, other): (EntityId, Guid), result: &MatchResult) -> bool {
        let (key, reason) = ((other, local), Reason::of(result));
        if self.0.get(&key) == Some(&reason) {
            return false;
        }
        if self.0.len() < REFUSALS_MAX || self.0.contains_key(&key) {
            self.0.insert(key, reason);
        }
        true
    }

    /// The pairs that do not match because their types could not be validated, each as a local endpoint and the other one. Types that were
    /// compared stay as they are.
    pub(super) fn for_types(&self) -> impl Iterator<Item = (EntityId, Guid)> {
        let refused = self.0.iter().filter(|(_, reason)| reason.is_for_types);
        refused.map(|((other, local), _)| (*local, *other))
    }

    /// They match.
    pub(super) fn forget(&mut self, (local, other): (EntityId, Guid)) {
        if !self.0.is_empty() {
            self.0.remove(&(other, local));
        }
    }

    /// An endpoint is gone, perhaps one of the participant `own`.
    pub(super) fn forget_all_of(&mut self, endpoint: Guid, own: GuidPrefix) {
        let first = (endpoint, EntityId([0; 4]));
        while let Some(key) = self.0.range(first..).next().map(|(key, _)| *key).filter(|key| key.0 == endpoint) {
            self.0.remove(&key);
        }
        if endpoint.prefix == own && !self.0.is_empty() {
            self.0.retain(|(_, local), _| *local != endpoint.entity);
        }
    }
}

fn is_for_types(result: &MatchResult) -> bool {
    let MatchResult::Incompatible(mismatches) = result else { return false };
    mismatches.iter().any(|mismatch| mismatch.policy == PolicyId::TYPE_CONSISTENCY && mismatch.requested == FORCED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::Mismatch;
    use crate::types::Keyed;

    #[test]
    fn a_pair_is_told_again_for_another_reason_or_after_one_of_it_was_gone() {
        let (own, there) = (GuidPrefix([1; 12]), GuidPrefix([2; 12]));
        let reader = |prefix, key| Guid::new(prefix, EntityId::user_reader(key, Keyed::No));
        let (local, other) = (EntityId::user_writer(1, Keyed::No), reader(there, 1));
        let mut refusals = Refusals::default();
        let types = MatchResult::DifferentTopic;
        let keys = MatchResult::Incompatible(Vec::new());
        let tells = |refusals: &mut Refusals, other, result: &MatchResult| refusals.note((local, other), result);
        assert!(tells(&mut refusals, other, &keys) && !tells(&mut refusals, other, &keys));
        assert!(tells(&mut refusals, other, &types) && tells(&mut refusals, reader(there, 2), &keys));
        refusals.forget_all_of(other, own);
        assert!(tells(&mut refusals, other, &types) && !tells(&mut refusals, reader(there, 2), &keys));
        refusals.forget_all_of(Guid::new(own, local), own);
        assert!(refusals.0.is_empty());
        for key in 0..2 * REFUSALS_MAX as u32 {
            assert!(tells(&mut refusals, reader(there, key), &keys));
        }
        assert_eq!(refusals.0.len(), REFUSALS_MAX);
    }

    #[test]
    fn as_much_is_kept_of_a_long_reason_as_of_a_short_one() {
        assert_eq!(size_of::<Reason>(), 16, "nothing of it is on the heap");
        let reader = |key| Guid::new(GuidPrefix([2; 12]), EntityId::user_reader(key, Keyed::No));
        let long = |requested: &str| {
            let (offered, requested) = ("x".repeat(1 << 16), requested.to_owned());
            let mismatch = Mismatch { policy: PolicyId::TYPE_CONSISTENCY, offered, requested, rule: "" };
            MatchResult::Incompatible(vec![mismatch])
        };
        let (forced, compared) = (long(FORCED), long("another type"));
        let local = EntityId::user_writer(1, Keyed::No);
        let mut refusals = Refusals::default();
        assert!(refusals.note((local, reader(1)), &forced) && refusals.note((local, reader(2)), &compared));
        assert!(!refusals.note((local, reader(1)), &forced) && !refusals.note((local, reader(2)), &compared));
        assert_eq!(refusals.for_types().collect::<Vec<_>>(), [(local, reader(1))]);
        assert!(refusals.note((local, reader(1)), &compared), "the reason is another one");
        assert_eq!(refusals.for_types().next(), None);
    }
}
