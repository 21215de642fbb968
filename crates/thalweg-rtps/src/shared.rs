//! The one lock type of Thalweg.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// One endpoint (or other piece of state) that an application handle and the I/O thread use in turn.
///
/// Rules: hold at most one endpoint lock; never hold it over a system call, user code, encoding or decoding.
#[derive(Debug)]
pub struct Shared<T>(Arc<Cell<T>>);

#[derive(Debug)]
struct Cell<T> {
    state: Mutex<T>,
    changed: Condvar,
}

impl<T> Shared<T> {
    /// Wraps `state`.
    pub fn new(state: T) -> Shared<T> {
        Shared(Arc::new(Cell { state: Mutex::new(state), changed: Condvar::new() }))
    }

    /// Locks the state. A panic in another holder does not spread: the state machines keep their invariants per call.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Condition variable that goes with [`Shared::lock`]; used only by the runtime for blocking calls.
    #[inline]
    pub fn changed(&self) -> &Condvar {
        &self.0.changed
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared(Arc::clone(&self.0))
    }
}
