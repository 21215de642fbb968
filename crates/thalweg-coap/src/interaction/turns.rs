//! Changes of one resource, one after the other.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Which resources are being changed, by the hashes of their paths. What a conditional request found must still hold when its
/// handler runs.
#[derive(Debug, Default)]
pub(super) struct Turns {
    taken: Mutex<HashSet<u64>>,
    given_back: Condvar,
}

/// The turn of one request; given back when dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    path: u64,
}

impl Turns {
    /// Waits until nobody else changes the resource with this hash of its path.
    pub(super) fn take(&self, path: u64) -> Turn<'_> {
        let mut taken = self.lock();
        while !taken.insert(path) {
            taken = self.given_back.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        Turn { turns: self, path }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.lock().remove(&self.path);
        self.turns.given_back.notify_all();
    }
}
