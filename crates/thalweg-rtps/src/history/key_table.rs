//! Instances by key hash: an ordered map into reusable slots, with the last one found again at once.

use std::collections::BTreeMap;
use std::ops::{Bound, Index, IndexMut};

use crate::types::KeyHash;

/// Entries of type `T` by key hash. A slot number stays valid until its entry is removed; slots are reused.
///
/// Entries of removed keys keep their memory for the next key, so that a stable number of instances allocates nothing.
#[derive(Debug)]
pub(super) struct KeyTable<T> {
    by_key: BTreeMap<KeyHash, usize>,
    entries: Vec<T>,
    free: Vec<usize>,
    recent: Option<(KeyHash, usize)>,
}

impl<T: Default> KeyTable<T> {
    pub(super) fn new() -> KeyTable<T> {
        KeyTable { by_key: BTreeMap::new(), entries: Vec::new(), free: Vec::new(), recent: None }
    }

    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    #[inline]
    pub(super) fn find(&self, key: &KeyHash) -> Option<usize> {
        match &self.recent {
            Some((recent, slot)) if recent == key => Some(*slot),
            _ => self.by_key.get(key).copied(),
        }
    }

    /// As [`KeyTable::find`]; the next search for the same key is then free.
    pub(super) fn find_again(&mut self, key: &KeyHash) -> Option<usize> {
        let slot = self.find(key)?;
        self.recent = Some((*key, slot));
        Some(slot)
    }

    /// Slot of a key that is not in the table. The entry holds the content of its last use: reset it.
    pub(super) fn insert(&mut self, key: KeyHash) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.entries.push(T::default());
            self.entries.len() - 1
        });
        self.by_key.insert(key, slot);
        self.recent = Some((key, slot));
        slot
    }

    pub(super) fn remove(&mut self, key: &KeyHash) {
        self.recent = None;
        if let Some(slot) = self.by_key.remove(key) {
            self.free.push(slot);
        }
    }

    /// Removes every entry that `keep` refuses.
    pub(super) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.recent = None;
        let KeyTable { by_key, entries, free, .. } = self;
        by_key.retain(|_, slot| {
            let kept = keep(&entries[*slot]);
            if !kept {
                free.push(*slot);
            }
            kept
        });
    }

    /// Keys and slots behind `after`, in the order of the keys; all of them for `None`.
    pub(super) fn iter_after(&self, after: Option<KeyHash>) -> impl Iterator<Item = (KeyHash, usize)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_key.range((from, Bound::Unbounded)).map(|(key, slot)| (*key, *slot))
    }
}

impl<T> Index<usize> for KeyTable<T> {
    type Output = T;

    fn index(&self, slot: usize) -> &T {
        &self.entries[slot]
    }
}

impl<T> IndexMut<usize> for KeyTable<T> {
    fn index_mut(&mut self, slot: usize) -> &mut T {
        &mut self.entries[slot]
    }
}
