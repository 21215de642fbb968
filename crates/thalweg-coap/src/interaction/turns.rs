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
    /// Threads that wait, so that nobody asks the system to wake none.
    waiting: usize,
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
        while taken.paths.contains(&path) {
            taken.waiting += 1;
            taken = self.given_back.wait(taken).unwrap_or_else(PoisonError::into_inner);
            taken.waiting -= 1;
        }
        taken.paths.push(path);
        Turn { turns: self, path }
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
        let is_awaited = taken.waiting > 0;
        drop(taken);
        if is_awaited {
            self.turns.given_back.notify_all();
        }
    }
}

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
                        let _turn = turns.take(1);
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
        assert!(taken.paths.is_empty() && taken.waiting == 0);
    }
}
