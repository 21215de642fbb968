//! Ctrl-C, SIGTERM and SIGHUP: of the former two, the first asks every loop to finish in order, the second ends the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Whether the user asked to stop.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Watches for the signals from now on; where the system refuses, they end the process as usual.
    pub fn watch() -> Interrupt {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the shutdown looks at the flag before this signal sets it, so that only a second one exits.
            let _ = flag::register_conditional_shutdown(signal, EXIT_INTERRUPTED, Arc::clone(&flag));
            let _ = flag::register(signal, Arc::clone(&flag));
        }
        Interrupt(flag)
    }

    /// Whether a signal came.
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits until `due`, but not longer than the user wants.
    pub fn wait_until(&self, due: Instant) {
        while !self.came() {
            let rest = due.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return;
            }
            std::thread::sleep(rest.min(LOOK_PERIOD));
        }
    }

    /// The first signal ends the process from now on: this command has nothing to finish in order.
    pub fn end_at_once(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Does what leaves nothing to finish in order: the first signal within it ends the process, and one after it asks again to stop.
    pub fn end_at_once_during<T>(&self, work: impl FnOnce() -> T) -> T {
        self.end_at_once();
        let done = work();
        self.0.store(false, Ordering::Relaxed);
        done
    }

    /// The flag itself, for loops of other crates.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

/// Whether the user asked to read settings again (SIGHUP).
#[derive(Clone, Debug)]
pub struct Hangup(Arc<AtomicBool>);

impl Hangup {
    /// Watches for the signal from now on; where the system refuses, it ends the process as usual.
    pub fn watch() -> Hangup {
        let flag = Arc::new(AtomicBool::new(false));
        let _ = flag::register(SIGHUP, Arc::clone(&flag));
        Hangup(flag)
    }

    /// Whether a signal came since the last call.
    pub fn came(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// Interval at which a wait looks for a signal: a signal that another thread handles does not end its sleep.
const LOOK_PERIOD: Duration = Duration::from_millis(50);
const EXIT_INTERRUPTED: i32 = 130;
