//! The instances that a writer has registered by writing or disposing them (DDS 1.4 §2.2.2.4.2.5, §2.2.2.4.2.7).

use std::collections::BTreeSet;

use super::Writer;
use crate::history::{ChangeKind, INSTANCES_DEFAULT};
use crate::qos::ResourceLimits;
use crate::types::{KeyHash, Keyed};

/// Whether a writer has an instance registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceStanding {
    /// It has written or disposed it and has not unregistered it since.
    Registered,
    /// It has not.
    NotRegistered,
    /// It has registered more instances than are remembered, and this may be one of them.
    Unknown,
}

/// The instances that were written or disposed and not unregistered since. The history does not tell: what every reader has goes.
#[derive(Debug)]
pub(super) struct RegisteredInstances {
    keys: BTreeSet<KeyHash>,
    /// Most keys that are remembered: as many as a reader knows, or as many as RESOURCE_LIMITS allows. None on a keyless topic.
    keys_max: usize,
    /// The last one that was noted as registered: samples of one instance often follow each other.
    recent: Option<KeyHash>,
    /// Whether one was registered that is not remembered.
    has_overflowed: bool,
}

impl RegisteredInstances {
    pub(super) fn new(keyed: Keyed, limits: ResourceLimits) -> RegisteredInstances {
        let keys_max = match keyed {
            Keyed::Yes => limits.max_instances.map_or(INSTANCES_DEFAULT, |limit| limit.max(1) as usize),
            Keyed::No => 0,
        };
        RegisteredInstances { keys: BTreeSet::new(), keys_max, recent: None, has_overflowed: false }
    }

    /// A change of an instance was written.
    #[inline]
    pub(super) fn note(&mut self, instance: KeyHash, kind: ChangeKind) {
        if self.keys_max == 0 || (self.recent == Some(instance) && !kind.unregisters()) {
            return;
        }
        self.note_other(instance, kind);
    }

    fn note_other(&mut self, instance: KeyHash, kind: ChangeKind) {
        if kind.unregisters() {
            self.keys.remove(&instance);
            self.recent = None;
        } else if self.keys.len() < self.keys_max || self.keys.contains(&instance) {
            self.keys.insert(instance);
            self.recent = Some(instance);
        } else {
            self.has_overflowed = true;
        }
    }

    fn of(&self, instance: &KeyHash) -> InstanceStanding {
        match self.keys.contains(instance) {
            true => InstanceStanding::Registered,
            false if self.has_overflowed => InstanceStanding::Unknown,
            false => InstanceStanding::NotRegistered,
        }
    }

    /// Number of instances that are remembered.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }
}

impl Writer {
    /// Whether it has this instance registered. The instances of a history that it goes on with count as its own.
    pub fn registration(&self, instance: &KeyHash) -> InstanceStanding {
        self.registered.of(instance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> KeyHash {
        KeyHash([number; 16])
    }

    #[test]
    fn instances_are_registered_until_they_are_unregistered() {
        let mut registered = RegisteredInstances::new(Keyed::Yes, ResourceLimits::default());
        assert_eq!(registered.of(&key(1)), InstanceStanding::NotRegistered);
        for (kind, expect) in [
            (ChangeKind::Write, InstanceStanding::Registered),
            (ChangeKind::DisposeUnregister, InstanceStanding::NotRegistered),
            (ChangeKind::Write, InstanceStanding::Registered),
            (ChangeKind::Unregister, InstanceStanding::NotRegistered),
            (ChangeKind::Dispose, InstanceStanding::Registered),
        ] {
            registered.note(key(1), kind);
            assert_eq!(registered.of(&key(1)), expect, "{kind:?}");
            assert_eq!(registered.of(&key(2)), InstanceStanding::NotRegistered);
        }
    }

    #[test]
    fn beyond_the_bound_nothing_is_claimed_of_an_instance() {
        let limits = ResourceLimits { max_instances: Some(2), ..ResourceLimits::default() };
        let mut registered = RegisteredInstances::new(Keyed::Yes, limits);
        (1..=2).for_each(|number| registered.note(key(number), ChangeKind::Write));
        assert_eq!((registered.len(), registered.of(&key(3))), (2, InstanceStanding::NotRegistered));
        registered.note(key(3), ChangeKind::Write);
        assert_eq!((registered.len(), registered.of(&key(3))), (2, InstanceStanding::Unknown));
        registered.note(key(2), ChangeKind::Write);
        assert_eq!(registered.of(&key(2)), InstanceStanding::Registered);
        registered.note(key(2), ChangeKind::Unregister);
        assert_eq!((registered.len(), registered.of(&key(2))), (1, InstanceStanding::Unknown));
    }

    #[test]
    fn a_keyless_writer_remembers_nothing() {
        let mut registered = RegisteredInstances::new(Keyed::No, ResourceLimits::default());
        registered.note(KeyHash::default(), ChangeKind::Write);
        assert_eq!(registered.len(), 0);
    }
}
