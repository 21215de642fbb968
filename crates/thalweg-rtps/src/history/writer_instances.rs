//! A writer's record of each instance: its oldest and newest change, and whether it is still registered.

use super::ChangeKind;
use super::bounds::{Bounds, Load};
use super::change::END_OF_SET;
use super::key_table::KeyTable;
use super::writer_history::CHANGE_BYTES;
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
    /// Whether it is no instance, but holds ends of coherent sets of which nothing else is here.
    pub(super) fn is_of_ends(&self) -> bool {
        self.key == END_OF_SET
    }

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
    counts: Counts,
    /// The ends of coherent sets that are held by themselves.
    ends: Load,
}

/// Numbers of instances; what holds the ends of coherent sets is none.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Those that hold changes, or that the limit counts.
    in_use: usize,
    /// Those that hold changes.
    holding: usize,
    /// Those that the limit counts whatever they hold.
    registered: usize,
}

impl Counts {
    /// What one instance counts as.
    fn of(instance: &WriterInstance, is_of_ends: bool, counts_registered: bool) -> Counts {
        let count = |counts: bool| usize::from(counts && !is_of_ends);
        Counts {
            in_use: count(is_in_use(instance, counts_registered)),
            holding: count(instance.held.changes > 0),
            registered: count(counts_registered && instance.registered),
        }
    }
}

/// Number of unused entries kept for reuse before a sweep is worth its time.
const UNUSED_MAX: usize = 64;

impl WriterInstances {
    pub(super) fn new(bounds: &Bounds) -> WriterInstances {
        let (counts, ends) = (Counts::default(), Load::default());
        WriterInstances { table: KeyTable::new(), instances_max: bounds.instances_max, counts, ends }
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

    /// The place of an instance that is known.
    pub(super) fn find(&self, key: &KeyHash) -> Option<usize> {
        self.table.find(key)
    }

    /// The ends of coherent sets that are held by themselves; no limit counts them.
    pub(super) fn ends(&self) -> Load {
        self.ends
    }

    /// Number of instances that hold changes.
    pub(super) fn held(&self) -> usize {
        self.counts.holding
    }

    /// The record of an instance, or `None` when it would be one too many.
    #[inline]
    pub(super) fn admit(&self, key: &KeyHash) -> Option<Load> {
        match self.table.find(key) {
            Some(slot) if self.is_in_use(&self.table[slot]) => Some(self.table[slot].held),
            _ => (self.counts.in_use < self.instances_max).then(Load::default),
        }
    }

    /// Whether an instance has a place, or gets one once every change up to `acknowledged` has gone. Instances that are registered keep
    /// theirs.
    pub(super) fn may_admit(&self, key: &KeyHash, acknowledged: SequenceNumber) -> bool {
        let leaves = |(_, slot): &(KeyHash, usize)| {
            let instance = &self.table[*slot];
            let is_counted = instance.held.changes > 0 && !instance.is_of_ends();
            is_counted && !instance.registered && instance.newest <= acknowledged
        };
        self.admit(key).is_some()
            || self.counts.registered < self.instances_max
                && self.counts.in_use - self.table.iter_after(None).filter(leaves).count() < self.instances_max
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
        if self.table.len() - self.counts.in_use > self.counts.in_use.max(UNUSED_MAX) {
            let counts_registered = self.counts_registered();
            self.table.retain(|instance| is_in_use(instance, counts_registered));
        }
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    fn update(&mut self, slot: usize, change: impl FnOnce(&mut WriterInstance)) {
        let (counts_registered, is_of_ends) = (self.counts_registered(), self.table[slot].is_of_ends());
        let before = Counts::of(&self.table[slot], is_of_ends, counts_registered);
        change(&mut self.table[slot]);
        let after = Counts::of(&self.table[slot], is_of_ends, counts_registered);
        let counts = &mut self.counts;
        counts.in_use = counts.in_use + after.in_use - before.in_use;
        counts.holding = counts.holding + after.holding - before.holding;
        counts.registered = counts.registered + after.registered - before.registered;
        if is_of_ends {
            let held = self.table[slot].held;
            let changes = held.changes.saturating_sub(held.values);
            self.ends = Load { changes, values: 0, bytes: changes * CHANGE_BYTES };
        }
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
