//! The lock of state that an application handle and the I/O thread use in turn, and the order in which such locks are taken.

#[cfg(debug_assertions)]
use std::cell::Cell as Bits;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A state that may stand behind a [`Shared`] lock, with its place in the order of locks.
pub trait Ranked {
    /// A thread takes a lock only while all that it holds rank lower.
    const RANK: Rank;
}

/// Places in the order of locks, lowest first. Two locks of one rank are never held together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// A participant.
    Participant,
    /// A writer or a reader.
    Endpoint,
}

/// One endpoint (or other piece of state) that an application handle and the I/O thread use in turn.
///
/// Rules: hold at most one endpoint lock; never hold it over a system call, user code, encoding or decoding. Builds with debug
/// assertions check the order.
#[derive(Debug)]
pub struct Shared<T>(Arc<Cell<T>>);

#[derive(Debug)]
struct Cell<T> {
    state: Mutex<T>,
    changed: Condvar,
}

impl<T: Ranked> Shared<T> {
    /// Wraps `state`.
    pub fn new(state: T) -> Shared<T> {
        Shared(Arc::new(Cell { state: Mutex::new(state), changed: Condvar::new() }))
    }

    /// Locks the state. A panic in another holder does not spread: the state machines keep their invariants per call.
    ///
    /// # Panics
    /// With debug assertions, when the thread holds a lock that does not rank lower.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn lock(&self) -> Held<'_, T> {
        // Before it waits: a wrong order is reported where it would otherwise be a deadlock.
        let place = Place::enter(T::RANK);
        Held { state: self.0.state.lock().unwrap_or_else(PoisonError::into_inner), place }
    }

    /// Gives the lock away until [`Shared::notify_all`], at most for so long.
    pub fn wait<'a>(&'a self, held: Held<'a, T>, at_most: Duration) -> Held<'a, T> {
        let Held { state, place } = held;
        let (state, _) = self.0.changed.wait_timeout(state, at_most).unwrap_or_else(PoisonError::into_inner);
        Held { state, place }
    }

    /// Ends all waits.
    #[inline]
    pub fn notify_all(&self) {
        self.0.changed.notify_all();
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared(Arc::clone(&self.0))
    }
}

/// A state that this thread has locked, until it is dropped.
#[derive(Debug)]
pub struct Held<'a, T> {
    state: MutexGuard<'a, T>,
    place: Place,
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.state
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.state
    }
}

/// Fails while the thread holds a lock: the following call may take long, or take a lock. Does nothing without debug assertions.
#[inline]
#[cfg_attr(debug_assertions, track_caller)]
pub fn debug_assert_none_held() {
    #[cfg(debug_assertions)]
    assert_eq!(HELD.get(), 0, "a lock is held over a system call or user code");
}

#[cfg(debug_assertions)]
thread_local! {
    /// The ranks that the thread holds, a bit each.
    static HELD: Bits<u8> = const { Bits::new(0) };
}

/// That a lock is held; nothing without debug assertions.
#[derive(Debug)]
struct Place {
    #[cfg(debug_assertions)]
    rank: Rank,
}

#[cfg(debug_assertions)]
impl Place {
    #[track_caller]
    fn enter(rank: Rank) -> Place {
        let held = HELD.get();
        assert_eq!(held >> rank as u8, 0, "{rank:?} does not rank above all that this thread holds");
        HELD.set(held | 1 << rank as u8);
        Place { rank }
    }
}

#[cfg(debug_assertions)]
impl Drop for Place {
    fn drop(&mut self) {
        HELD.set(HELD.get() & !(1 << self.rank as u8));
    }
}

#[cfg(not(debug_assertions))]
impl Place {
    #[inline]
    fn enter(_: Rank) -> Place {
        Place {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Whole;
    struct Part;

    impl Ranked for Whole {
        const RANK: Rank = Rank::Participant;
    }

    impl Ranked for Part {
        const RANK: Rank = Rank::Endpoint;
    }

    /// Whether the locks can be taken by a thread of its own.
    fn passes(locks: impl FnOnce() + Send) -> bool {
        std::thread::scope(|scope| scope.spawn(locks).join().is_ok())
    }

    #[test]
    #[cfg(debug_assertions)]
    fn locks_are_taken_in_their_order_only() {
        let (whole, part, other) = (Shared::new(Whole), Shared::new(Part), Shared::new(Part));
        assert!(passes(|| {
            let held = whole.lock();
            drop(part.lock());
            drop(other.lock());
            drop(held);
            // Given back in the order in which they were taken.
            drop((whole.lock(), part.lock()));
            let held = part.lock();
            drop(part.wait(held, Duration::ZERO));
            debug_assert_none_held();
            drop(whole.lock());
        }));
        assert!(!passes(|| drop((part.lock(), whole.lock()))), "an endpoint before its participant");
        assert!(!passes(|| drop((part.lock(), other.lock()))), "two endpoints");
        assert!(!passes(|| drop((whole.lock(), whole.lock()))), "one twice, which never ends");
        assert!(!passes(|| {
            let _held = part.lock();
            debug_assert_none_held();
        }));
    }

    #[test]
    fn outside_of_debug_builds_a_lock_costs_no_more_than_its_mutex() {
        if !cfg!(debug_assertions) {
            assert_eq!(size_of::<Held<'_, Part>>(), size_of::<MutexGuard<'_, Part>>());
        }
    }
}
