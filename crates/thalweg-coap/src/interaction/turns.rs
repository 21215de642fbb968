//! Changes of one resource, one after the other.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Which resources are being changed. What a conditional request found must still hold when its handler runs.
#[derive(Debug, Default)]
pub(super) struct Turns {
    taken: Mutex<Taken>,
    given_back: Condvar,
}

#[derive(Debug, Default)]
struct Taken {
    /// Hashes of paths: no more than threads run handlers.
    paths: Vec<u64>,
    /// The path that each waiting thread waits for. While there is none, nobody asks the system to wake one.
    waiting: Vec<u64>,
}

/// The turn of one request; given back when dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    path: u64,
}

impl Turns {
    /// Waits until nobody else changes the resource with this hash of its path; `None` when [`WAITING_MAX`] wait for it already.
    pub(super) fn take(&self, path: u64) -> Option<Turn<'_>> {
        let mut taken = self.lock();
        if taken.paths.contains(&path) {
            if taken.waiting.iter().filter(|other| **other == path).count() >= WAITING_MAX {
                return None;
            }
            taken.waiting.push(path);
            while taken.paths.contains(&path) {
                taken = self.given_back.wait(taken).unwrap_or_else(PoisonError::into_inner);
            }
            if let Some(place) = taken.waiting.iter().position(|other| *other == path) {
                taken.waiting.swap_remove(place);
            }
        }
        taken.paths.push(path);
        Some(Turn { turns: self, path })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut taken = self.turns.lock();
        if let Some(place) = taken.paths.iter().position(|path| *path == self.path) {
            taken.paths.swap_remove(place);
        }
        let is_awaited = !taken.waiting.is_empty();
        drop(taken);
        if is_awaited {
            self.turns.given_back.notify_all();
        }
    }
}

/// Threads that may wait for one resource. Chosen by us: behind a device that hangs they must not be all of a pool, which has 512
/// at most, and clients whose requests would wait behind 16 others do as well to ask again.
pub(super) const WAITING_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use super::*;

    #[test]
    fn changes_of_one_resource_never_overlap_and_those_of_others_do() {
        let (turns, is_changing, changes) = (Turns::default(), AtomicBool::new(false), AtomicU32::new(0));
        let other = turns.take(2);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let _turn = turns.take(1).expect("few wait");
                        assert!(!is_changing.swap(true, Ordering::SeqCst), "another one is at it");
                        std::thread::yield_now();
                        changes.fetch_add(1, Ordering::SeqCst);
                        is_changing.store(false, Ordering::SeqCst);
                    }
                });
            }
        });
        drop(other);
        assert_eq!(changes.into_inner(), 2000);
        let taken = turns.lock();
        assert!(taken.paths.is_empty() && taken.waiting.is_empty());
    }

    #[test]
    fn a_resource_whose_change_hangs_keeps_a_bounded_number_of_threads() {
        let turns = Turns::default();
        let hanging = turns.take(1);
        std::thread::scope(|scope| {
            for _ in 0..WAITING_MAX {
                scope.spawn(|| assert!(turns.take(1).is_some()));
            }
            while turns.lock().waiting.len() < WAITING_MAX {
                std::thread::yield_now();
            }
            assert!(turns.take(1).is_none());
            assert!(turns.take(2).is_some(), "others are changed meanwhile");
            drop(hanging);
        });
        assert!(turns.take(1).is_some());
    }
}
