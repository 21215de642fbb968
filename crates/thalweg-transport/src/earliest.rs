//! The deadline that a timer is set to, while several threads set it.

use std::io;

#[cfg(all(loom, test))]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(all(loom, test)))]
use std::sync::atomic::{AtomicU64, Ordering};

/// When a timer fires, in nanoseconds, or earlier; `u64::MAX` when it has fired or was never set.
pub(crate) struct Earliest(AtomicU64);

impl Earliest {
    pub(crate) fn new() -> Earliest {
        Earliest(AtomicU64::new(u64::MAX))
    }

    /// Makes sure that the timer fires at `deadline` or earlier; uses `set`, which is what true means, only when it would fire
    /// later.
    pub(crate) fn fire_by(&self, deadline: u64, set: impl Fn(u64) -> io::Result<()>) -> io::Result<bool> {
        if self.0.fetch_min(deadline, Ordering::SeqCst) <= deadline {
            return Ok(false);
        }
        let mut wanted = deadline;
        // Another thread may ask for less meanwhile and set the timer first.
        loop {
            let last = wanted;
            set(last)?;
            wanted = self.0.load(Ordering::SeqCst);
            if wanted >= last {
                return Ok(true);
            }
        }
    }

    /// The timer has fired.
    pub(crate) fn has_fired(&self) {
        // As dear as a store; loom would let a store come between the two halves of another thread's `fetch_min`.
        self.0.swap(u64::MAX, Ordering::SeqCst);
    }
}

#[cfg(all(loom, test))]
mod models {
    use std::sync::Arc;

    use loom::sync::Mutex;
    use loom::thread;

    use super::Earliest;

    /// The kernel's timer, and its requested deadline.
    struct Timer {
        earliest: Earliest,
        set_to: Mutex<u64>,
    }

    impl Timer {
        fn fire_by(&self, deadline: u64) {
            let set = |at| {
                *self.set_to.lock().unwrap() = at;
                Ok(())
            };
            self.earliest.fire_by(deadline, set).unwrap();
        }
    }

    fn timer(at: u64) -> Arc<Timer> {
        let timer = Timer { earliest: Earliest::new(), set_to: Mutex::new(u64::MAX) };
        timer.fire_by(at);
        Arc::new(timer)
    }

    fn threads(timer: &Arc<Timer>, deadlines: &[u64]) -> Vec<thread::JoinHandle<()>> {
        let spawn = |deadline: u64| {
            let timer = Arc::clone(timer);
            thread::spawn(move || timer.fire_by(deadline))
        };
        deadlines.iter().map(|deadline| spawn(*deadline)).collect()
    }

    #[test]
    fn of_many_threads_the_earliest_deadline_wins() {
        loom::model(|| {
            let timer = timer(100);
            let others = threads(&timer, &[20, 5]);
            timer.fire_by(10);
            others.into_iter().for_each(|other| other.join().unwrap());
            assert_eq!(*timer.set_to.lock().unwrap(), 5);
        });
    }

    #[test]
    fn a_deadline_set_after_the_timer_has_fired_is_kept() {
        loom::model(|| {
            let timer = timer(3);
            // It fires, and others set it before the thread that it wakes has taken note.
            *timer.set_to.lock().unwrap() = u64::MAX;
            let others = threads(&timer, &[10, 20]);
            timer.earliest.has_fired();
            timer.fire_by(7);
            others.into_iter().for_each(|other| other.join().unwrap());
            let set_to = *timer.set_to.lock().unwrap();
            assert!(set_to <= 7, "set to {set_to}");
        });
    }
}
