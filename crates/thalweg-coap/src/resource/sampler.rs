//! The thread that samples periodic properties.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::resource::{Clock, LocalStore};
use crate::scheduler::thread_pool::{ThreadGroup, ThreadPoolManager};

/// Samples the properties of a store at their times, until it is dropped, on a thread of the resource group. It only begins
/// reads: the device pool carries them out, so that a slow device delays no other.
#[derive(Debug)]
pub struct Sampler {
    store: LocalStore,
    stopped: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Sampler {
    /// Starts sampling.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(store: LocalStore, clock: Clock, threads: &Arc<ThreadPoolManager>) -> std::io::Result<Sampler> {
        let stopped = Arc::new(AtomicBool::new(false));
        let (seen_store, seen_stop) = (store.clone(), Arc::clone(&stopped));
        let thread = threads.spawn(ThreadGroup::Resource, "sampler", move || {
            let mut seen = 0;
            while !seen_stop.load(Ordering::Acquire) {
                let now = clock();
                let next = seen_store.handle_timeout(now);
                let rest = next.map_or(LONGEST_WAIT, |next| next.since(clock()).min(LONGEST_WAIT));
                seen = seen_store.wait_rescheduled(seen, rest);
                // A look at all of them costs time: many are looked at together.
                std::thread::sleep(LOOK_COST * u32::try_from(seen_store.timed_count()).unwrap_or(u32::MAX));
            }
        })?;
        Ok(Sampler { store, stopped, thread: Some(thread) })
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        self.store.wake();
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported there.
            let _ = thread.join();
        }
    }
}

/// Pause before the next look for each resource, ten times what looking at it costs; a thousand of them are at most 2 ms late.
const LOOK_COST: Duration = Duration::from_micros(2);
/// Longest wait without due work. It is woken for news; this is for clocks that are not the system's.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
