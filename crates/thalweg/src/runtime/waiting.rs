//! Threads and tasks of the application that wait for an endpoint to change.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::task::Waker;
use std::time::Duration;

use thalweg_rtps::time::Instant;
use thalweg_transport::clock;

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Lock, Mutex, MutexGuard};

/// The threads and tasks that wait for one endpoint. A notification that nobody waits for costs no system call and no lock.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    /// Waiting threads in the lower half of the bits, armed watches in the upper half.
    waiting: AtomicUsize,
    watches: Mutex<Watches>,
}

const THREAD: usize = 1;
const WATCH: usize = 1 << (usize::BITS / 2);

impl Waiters {
    /// Releases the lock until the endpoint has changed or `deadline` has come. The caller checks its condition before and after,
    /// under the same lock.
    pub(crate) fn wait<'a, L: Lock>(&self, lock: &'a L, guard: L::Guard<'a>, deadline: Deadline) -> L::Guard<'a> {
        self.waiting.fetch_add(THREAD, Ordering::Relaxed);
        let woken = lock.wait(guard, deadline.left());
        self.waiting.fetch_sub(THREAD, Ordering::Relaxed);
        woken
    }

    /// Lets the next notification wake `waker`, once. The caller checks its condition again afterwards, under the lock that the
    /// condition changes under: a change before that check is seen by it, and one after it finds the watch armed.
    pub(crate) fn arm(&self, watch: &mut Option<WatchId>, waker: &Waker) {
        let mut watches = self.watches();
        let place = watch.get_or_insert_with(|| WatchId(watches.occupy())).0;
        if let Place::Armed(present) = &watches.places[place]
            && present.will_wake(waker)
        {
            return;
        }
        let before = std::mem::replace(&mut watches.places[place], Place::Armed(waker.clone()));
        if !matches!(before, Place::Armed(_)) {
            self.waiting.fetch_add(WATCH, Ordering::Relaxed);
        }
        // What the application's waker does when it is dropped is not to happen under the lock.
        drop(watches);
        drop(before);
    }

    /// Ends a watch.
    pub(crate) fn disarm(&self, watch: &mut Option<WatchId>) {
        let Some(WatchId(place)) = watch.take() else { return };
        let mut watches = self.watches();
        let before = watches.vacate(place);
        if matches!(before, Place::Armed(_)) {
            self.waiting.fetch_sub(WATCH, Ordering::Relaxed);
        }
        drop(watches);
        drop(before);
    }

    /// Wakes all waiting threads and tasks. The caller made its change under the endpoint's lock, which orders it before or after
    /// each wait, and holds no lock now.
    #[inline]
    pub(crate) fn notify(&self, lock: &impl Lock) {
        let waiting = self.waiting.load(Ordering::Relaxed);
        if waiting != 0 {
            self.wake(waiting, lock);
        }
    }

    #[cold]
    fn wake(&self, waiting: usize, lock: &impl Lock) {
        if !waiting.is_multiple_of(WATCH) {
            lock.notify_all();
        }
        self.wake_tasks();
    }

    /// As [`Waiters::notify`] where no thread waits.
    pub(crate) fn wake_tasks(&self) {
        if self.waiting.load(Ordering::Relaxed) < WATCH {
            return;
        }
        let mut place = 0;
        while let Some(waker) = self.take_armed(&mut place) {
            // The application's executor may panic: the thread that wakes serves others as well.
            if catch_unwind(AssertUnwindSafe(|| waker.wake())).is_err() {
                tracing::error!("a waker panicked");
            }
        }
    }

    /// The next armed waker from `place` on, which moves behind it: a task that waits again meanwhile is not woken twice.
    fn take_armed(&self, place: &mut usize) -> Option<Waker> {
        let mut watches = self.watches();
        while let Some(watch) = watches.places.get_mut(*place) {
            *place += 1;
            if matches!(watch, Place::Armed(_))
                && let Place::Armed(waker) = std::mem::replace(watch, Place::Spent)
            {
                self.waiting.fetch_sub(WATCH, Ordering::Relaxed);
                return Some(waker);
            }
        }
        None
    }

    fn watches(&self) -> MutexGuard<'_, Watches> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a task's waker among those of one endpoint.
#[derive(Debug)]
pub struct WatchId(usize);

/// The watches of one endpoint: one for each future that is being awaited and each condition of a wait set.
#[derive(Debug, Default)]
struct Watches {
    places: Vec<Place>,
    /// The first of the free places.
    free: Option<usize>,
}

#[derive(Debug)]
enum Place {
    /// Free, with the next free place.
    Free(Option<usize>),
    /// Its waker was woken.
    Spent,
    Armed(Waker),
}

impl Watches {
    fn occupy(&mut self) -> usize {
        match self.free {
            Some(place) => {
                if let Place::Free(next) = self.places[place] {
                    self.free = next;
                }
                self.places[place] = Place::Spent;
                place
            }
            None => {
                self.places.push(Place::Spent);
                self.places.len() - 1
            }
        }
    }

    fn vacate(&mut self, place: usize) -> Place {
        let before = std::mem::replace(&mut self.places[place], Place::Free(self.free));
        self.free = Some(place);
        before
    }
}

/// The time until which a call may block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// A deadline that never comes.
    pub(crate) const NEVER: Deadline = Deadline(Instant::NEVER);

    /// The deadline `timeout` from now; never for an infinite one.
    pub(crate) fn after(timeout: Duration) -> Deadline {
        Deadline(clock::now() + timeout)
    }

    pub(crate) fn has_passed(self) -> bool {
        self.0 != Instant::NEVER && clock::now() >= self.0
    }

    pub(crate) fn left(self) -> Duration {
        // Bounded, because the system's own clock cannot count to infinity; the waiting thread checks again after an hour.
        self.0.since(clock::now()).min(Duration::from_secs(3600))
    }
}
