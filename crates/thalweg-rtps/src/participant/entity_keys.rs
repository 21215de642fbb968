//! The keys of a participant's entities: 24 bits that tell apart those of one kind (RTPS 2.5 §9.3.1.2).

use super::endpoints::Endpoints;
use crate::qos::{PolicyId, QosError, QosErrorKind};
use crate::types::{EntityId, Keyed};

/// Gives keys to new entities.
#[derive(Debug)]
pub(super) struct EntityKeys {
    /// Where the search for a free one begins.
    next: u32,
}

impl EntityKeys {
    /// The highest key.
    pub(super) const MAX: u32 = 0x00ff_ffff;

    pub(super) fn new() -> EntityKeys {
        EntityKeys { next: 1 }
    }

    /// The next key that `is_free`; `None` when all are in use. Keys of deleted entities come again after all others, when peers have
    /// forgotten those. None is 0, which is the key of the unknown entity.
    pub(super) fn take(&mut self, is_free: impl Fn(u32) -> bool) -> Option<u32> {
        let after = |key: u32| if key >= EntityKeys::MAX { 1 } else { key + 1 };
        let keys = std::iter::successors(Some(self.next), |key| Some(after(*key)));
        let found = keys.take(EntityKeys::MAX as usize).find(|key| is_free(*key))?;
        self.next = after(found);
        Some(found)
    }

    /// As after so many entities.
    #[cfg(test)]
    pub(super) fn begin_at(&mut self, next: u32) {
        self.next = next;
    }
}

impl Endpoints {
    /// The id of a new reader.
    pub(super) fn next_reader(&mut self, keyed: Keyed) -> Result<EntityId, QosError> {
        Ok(EntityId::user_reader(self.next_endpoint_key()?, keyed))
    }

    /// The id of a new writer.
    pub(super) fn next_writer(&mut self, keyed: Keyed) -> Result<EntityId, QosError> {
        Ok(EntityId::user_writer(self.next_endpoint_key()?, keyed))
    }

    fn next_endpoint_key(&mut self) -> Result<u32, QosError> {
        self.next_key(|_| true).ok_or_else(|| {
            let value = format!("with {} endpoints", self.writers.len() + self.readers.len());
            let (kind, policy) = (QosErrorKind::Exhausted, PolicyId::RESOURCE_LIMITS);
            QosError { kind, policy, value, reason: "no entity id is left in the participant; delete endpoints" }
        })
    }

    /// A key that no endpoint has and that `is_free`.
    pub(super) fn next_key(&mut self, is_free: impl Fn(u32) -> bool) -> Option<u32> {
        let Endpoints { keys, writers, readers, .. } = self;
        let is_in_use = |key: u32, keyed: Keyed| {
            writers.contains_key(&EntityId::user_writer(key, keyed))
                || readers.contains_key(&EntityId::user_reader(key, keyed))
        };
        keys.take(|key| !is_in_use(key, Keyed::Yes) && !is_in_use(key, Keyed::No) && is_free(key))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::*;
    use super::*;
    use crate::qos::History;

    #[test]
    fn keys_go_round_without_zero_and_without_those_in_use() {
        let mut keys = EntityKeys::new();
        let take = |keys: &mut EntityKeys| keys.take(|key| key != 2);
        assert_eq!([take(&mut keys), take(&mut keys)], [Some(1), Some(3)]);
        keys.begin_at(EntityKeys::MAX - 1);
        let around: Vec<_> = (0..4).map(|_| take(&mut keys)).collect();
        assert_eq!(around, [Some(EntityKeys::MAX - 1), Some(EntityKeys::MAX), Some(1), Some(3)]);
        assert_eq!(keys.take(|_| false), None);
    }

    #[test]
    fn an_endpoint_of_many_takes_nobodys_place() {
        let mut net = Net::new(2);
        let first = net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
        let second = net.reader(0, reliable_reader(History::KeepAll), Keyed::Yes);
        net.nodes[0].participant.endpoints.keys.begin_at(EntityKeys::MAX);
        let qos = || reliable_writer(History::KeepAll);
        let (last, around) = (net.writer(0, qos(), Keyed::No), net.writer(0, qos(), Keyed::No));
        let [first, last, around] = [first, last, around].map(|writer| writer.lock().guid().entity);
        assert_eq!(first, EntityId::user_writer(1, Keyed::No));
        assert_eq!(second.lock().guid().entity, EntityId::user_reader(2, Keyed::Yes));
        assert_eq!(last, EntityId::user_writer(EntityKeys::MAX, Keyed::No));
        assert_eq!(around, EntityId::user_writer(3, Keyed::No));
    }
}
