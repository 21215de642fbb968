//! The locks and atomics of what threads share: the standard library's, or the model checker's in `cargo xtask test loom`.
//!
//! The model checker takes a `SeqCst` access for one that is `AcqRel`. Where the order of accesses to different variables
//! counts, a `SeqCst` fence says so.

use std::ops::DerefMut;
use std::time::Duration;

use thalweg_rtps::shared::{Held, Ranked, Shared};

#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic};

#[cfg(all(loom, test))]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard, atomic};

/// A state behind a lock with a condition variable: [`Shared`], or its like in a model.
pub(crate) trait Lock {
    type State;
    type Guard<'a>: DerefMut<Target = Self::State>
    where
        Self: 'a;

    fn lock(&self) -> Self::Guard<'_>;

    /// Gives the lock away until [`Lock::notify_all`], at most for the given time.
    fn wait<'a>(&'a self, guard: Self::Guard<'a>, at_most: Duration) -> Self::Guard<'a>;

    fn notify_all(&self);
}

impl<T: Ranked> Lock for Shared<T> {
    type State = T;
    type Guard<'a>
        = Held<'a, T>
    where
        T: 'a;

    fn lock(&self) -> Self::Guard<'_> {
        Shared::lock(self)
    }

    fn wait<'a>(&'a self, guard: Self::Guard<'a>, at_most: Duration) -> Self::Guard<'a> {
        Shared::wait(self, guard, at_most)
    }

    fn notify_all(&self) {
        Shared::notify_all(self);
    }
}
