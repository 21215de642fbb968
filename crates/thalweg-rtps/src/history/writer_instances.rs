//! A writer's record of each instance: its oldest and newest change, and whether it is still registered.

use super::ChangeKind;
use super::bounds::{Bounds, Load};
use super::key_table::KeyTable;
use crate::types::{KeyHash, SequenceNumber};

/// One instance of a writer. Its changes are chained by sequence number, oldest first.
#[derive(Debug, Default)]
pub(super) struct WriterInstance {
    pub(super) oldest: SequenceNumber,
    pub(super) newest: SequenceNumber,
    pub(super) held: Load,
    key: KeyHash,
    registered: bool,
    disposed: bool,
}

impl WriterInstance {
    /// True when its newest change is held and has this number.
    pub(super) fn ends_with(&self, sequence: SequenceNumber) -> bool {
        self.newest == sequence && self.held.changes > 0
    }

    /// True when the last changes deleted the instance and gave it up: no reader needs its history.
    pub(super) fn is_departed(&self) -> bool {
        self.disposed && !self.registered
    }
}

/// The instances of one writer.
#[derive(Debug)]
pub(super) struct WriterInstances {
    table: KeyTable<WriterInstance>,
    instances_max: usize,
    in_use: usize,
}

/// Number of unused entries kept for reuse before a sweep is worth its time.
const UNUSED_MAX: usize = 64;

impl WriterInstances {
    pub(super) fn new(bounds: &Bounds) -> WriterInstances {
        WriterInstances { table: KeyTable::new(), instances_max: bounds.instances_max, in_use: 0 }
    }

    pub(super) fn get(&self, slot: usize) -> &WriterInstance {
        &self.table[slot]
    }

    /// The key of an instance.
    pub(super) fn key_of(&self, slot: usize) -> KeyHash {
        self.table[slot].key
    }

    /// The oldest change of an instance, and what it holds.
    pub(super) fn load_of(&self, slot: usize) -> (SequenceNumber, Load) {
        (self.table[slot].oldest, self.table[slot].held)
    }

    /// The oldest change of an instance that holds any, and what it holds.
    pub(super) fn oldest_of(&self, key: &KeyHash) -> Option<(SequenceNumber, Load)> {
        let slot = self.table.find(key)?;
        Some(self.load_of(slot)).filter(|(_, held)| held.changes > 0)
    }

    /// Number of instances that hold changes, or that a limit counts.
    pub(super) fn held(&self) -> usize {
        self.in_use
    }

    /// The record of an instance, or `None` when it would be one too many.
    #[inline]
    pub(super) fn admit(&self, key: &KeyHash) -> Option<Load> {
        match self.table.find(key) {
            Some(slot) if self.is_in_use(&self.table[slot]) => Some(self.table[slot].held),
            _ => (self.in_use < self.instances_max).then(Load::default),
        }
    }

    /// Slot of the instance, which is added when it is new, after a change of `kind` for it.
    pub(super) fn register(&mut self, key: KeyHash, kind: ChangeKind) -> usize {
        let slot = self.table.find_again(&key).unwrap_or_else(|| {
            let slot = self.table.insert(key);
            self.table[slot] = WriterInstance { key, ..WriterInstance::default() };
            slot
        });
        self.update(slot, |instance| {
            instance.registered = !kind.unregisters();
            instance.disposed = kind.disposes() || (instance.disposed && kind == ChangeKind::Unregister);
        });
        slot
    }

    /// Chains a new change behind the instance's newest and returns which that was.
    pub(super) fn append(
        &mut self,
        slot: usize,
        sequence: SequenceNumber,
        is_value: bool,
        bytes: usize,
    ) -> Option<SequenceNumber> {
        let before = (self.table[slot].held.changes > 0).then_some(self.table[slot].newest);
        self.update(slot, |instance| {
            instance.held.add(is_value, bytes);
            instance.newest = sequence;
            if before.is_none() {
                instance.oldest = sequence;
            }
        });
        before
    }

    /// Forgets the instance's oldest change; `next` is the one behind it.
    pub(super) fn remove_oldest(&mut self, slot: usize, next: SequenceNumber, is_value: bool, bytes: usize) {
        self.update(slot, |instance| {
            instance.held.remove(is_value, bytes);
            instance.oldest = next;
        });
    }

    /// Drops unused entries once they outnumber the used ones.
    pub(super) fn sweep(&mut self) {
        if self.table.len() - self.in_use > self.in_use.max(UNUSED_MAX) {
            let counts_registered = self.counts_registered();
            self.table.retain(|instance| is_in_use(instance, counts_registered));
        }
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    fn update(&mut self, slot: usize, change: impl FnOnce(&mut WriterInstance)) {
        self.in_use -= usize::from(self.is_in_use(&self.table[slot]));
        change(&mut self.table[slot]);
        self.in_use += usize::from(self.is_in_use(&self.table[slot]));
    }

    fn is_in_use(&self, instance: &WriterInstance) -> bool {
        is_in_use(instance, self.counts_registered())
    }

    /// With a limit on instances each registered one counts, even while nothing is held for it (DDS 1.4 §2.2.3.19).
    fn counts_registered(&self) -> bool {
        self.instances_max != usize::MAX
    }
}

fn is_in_use(instance: &WriterInstance, counts_registered: bool) -> bool {
    instance.held.changes > 0 || (counts_registered && instance.registered)
}
