//! Running applications.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::scheduler::thread_pool::{ThreadGroup, ThreadPoolManager};
use crate::service::Things;

/// The applications of this thing, each on a thread of the application group.
pub struct Services {
    things: Things,
    threads: Arc<ThreadPoolManager>,
    running: BTreeMap<String, (ServiceStop, JoinHandle<()>)>,
}

/// Tells an application that it shall end.
#[derive(Clone, Default)]
pub struct ServiceStop {
    shared: Arc<(Mutex<bool>, Condvar)>,
}

impl Services {
    /// No applications yet; those that come use `things`.
    pub fn new(things: Things, threads: Arc<ThreadPoolManager>) -> Services {
        Services { things, threads, running: BTreeMap::new() }
    }

    /// Starts an application; it shall return soon when `ServiceStop` says so.
    ///
    /// # Errors
    /// When one of this name runs, or there is no thread for it.
    pub fn start(&mut self, name: &str, run: impl FnOnce(&Things, &ServiceStop) + Send + 'static) -> io::Result<()> {
        self.forget_ended();
        if self.running.contains_key(name) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("the service {name} runs already")));
        }
        let (things, stop) = (self.things.clone(), ServiceStop::default());
        let told = stop.clone();
        let thread = self.threads.spawn(ThreadGroup::Application, name, move || run(&things, &told))?;
        self.running.insert(name.to_owned(), (stop, thread));
        Ok(())
    }

    /// Ends an application and waits until it has; false when none of this name runs.
    pub fn stop(&mut self, name: &str) -> bool {
        let Some((stop, thread)) = self.running.remove(name) else { return false };
        stop.stop();
        // A panic there has been reported there.
        let _ = thread.join();
        true
    }

    /// Tells an application that it shall end, and does not wait for it.
    pub(crate) fn announce_stop(&self, name: &str) {
        if let Some((stop, _)) = self.running.get(name) {
            stop.stop();
        }
    }

    /// Tells all applications that they shall end, and waits for none of them.
    pub(crate) fn announce_stops(&self) {
        self.running.values().for_each(|(stop, _)| stop.stop());
    }

    /// The names of those that run.
    pub fn running(&mut self) -> Vec<&str> {
        self.forget_ended();
        self.running.keys().map(String::as_str).collect()
    }

    fn forget_ended(&mut self) {
        self.running.retain(|_, (_, thread)| !thread.is_finished());
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        self.announce_stops();
        for (_, thread) in std::mem::take(&mut self.running).into_values() {
            // A panic there has been reported there.
            let _ = thread.join();
        }
    }
}

impl ServiceStop {
    /// Whether the application shall end.
    pub fn came(&self) -> bool {
        *self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits so long, or until the application shall end; true then.
    pub fn wait(&self, time: Duration) -> bool {
        let (stopped, wake) = &*self.shared;
        let stopped = stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = wake.wait_timeout_while(stopped, time, |stopped| !*stopped);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn stop(&self) {
        let (stopped, wake) = &*self.shared;
        *stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        wake.notify_all();
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.running.keys()).finish()
    }
}

impl fmt::Debug for ServiceStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stop({})", self.came())
    }
}
