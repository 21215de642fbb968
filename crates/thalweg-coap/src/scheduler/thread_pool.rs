//! The paper's thread-pool manager: every thread belongs to one of four groups, and each group has a bound.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use super::priority::{Priorities, PriorityManager, PriorityRefusal};

/// The purpose of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThreadGroup {
    /// One thread for each service.
    Application,
    /// Threads that read devices: as many as processors, behind a queue of 100.
    Resource,
    /// Network receivers and the threads of the handler pools.
    Interaction,
    /// The performance observer.
    Profile,
}

impl ThreadGroup {
    /// All groups.
    pub const ALL: [ThreadGroup; 4] =
        [ThreadGroup::Application, ThreadGroup::Resource, ThreadGroup::Interaction, ThreadGroup::Profile];

    fn index(self) -> usize {
        ThreadGroup::ALL.iter().position(|group| *group == self).unwrap_or_default()
    }
}

impl fmt::Display for ThreadGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ThreadGroup::Application => "application",
            ThreadGroup::Resource => "resource",
            ThreadGroup::Interaction => "interaction",
            ThreadGroup::Profile => "profile",
        })
    }
}

/// Threads of all groups.
#[derive(Debug)]
pub struct ThreadPoolManager {
    running: [AtomicUsize; 4],
    /// Names of the threads that run, with their groups.
    members: Mutex<Vec<(String, ThreadGroup)>>,
    threads_max: usize,
    priorities: PriorityManager,
}

impl ThreadPoolManager {
    /// A manager that lets each group have `threads_max` threads at most.
    pub fn new(threads_max: usize, priorities: Priorities) -> ThreadPoolManager {
        let priorities = PriorityManager::new(priorities);
        ThreadPoolManager { running: Default::default(), members: Mutex::default(), threads_max, priorities }
    }

    /// Starts a thread of `group` with the group's priority.
    ///
    /// # Errors
    /// When the group has all the threads it may have, or the system gives no more.
    pub fn spawn(
        self: &Arc<Self>,
        group: ThreadGroup,
        name: &str,
        run: impl FnOnce() + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        // The kernel shows 15 letters of a name.
        let name: String = name.chars().take(15).collect();
        let place = Place::take(self, group, name.clone())?;
        let builder = Builder::new().name(name).stack_size(STACK_BYTES);
        builder.spawn(move || {
            place.manager.priorities.apply(group);
            run();
            drop(place);
        })
    }

    /// Threads that run in `group`.
    pub fn running(&self, group: ThreadGroup) -> usize {
        self.running[group.index()].load(Ordering::Relaxed)
    }

    /// Names and groups of the threads that run, as `/proc` shows their names.
    pub fn members(&self) -> Vec<(String, ThreadGroup)> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The most threads that a group may have.
    pub fn threads_max(&self) -> usize {
        self.threads_max
    }

    /// Priorities that the system refused.
    pub fn refusals(&self) -> Vec<PriorityRefusal> {
        self.priorities.refusals()
    }
}

/// A thread's place in its group, given back when the thread ends, also by a panic.
struct Place {
    manager: Arc<ThreadPoolManager>,
    group: ThreadGroup,
    name: String,
}

impl Place {
    fn take(manager: &Arc<ThreadPoolManager>, group: ThreadGroup, name: String) -> io::Result<Place> {
        let running = &manager.running[group.index()];
        if running.fetch_add(1, Ordering::Relaxed) >= manager.threads_max {
            running.fetch_sub(1, Ordering::Relaxed);
            let most = manager.threads_max;
            return Err(io::Error::other(format!("the group {group} has {most} threads, as many as it may have")));
        }
        manager.members.lock().unwrap_or_else(PoisonError::into_inner).push((name.clone(), group));
        Ok(Place { manager: Arc::clone(manager), group, name })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.manager.running[self.group.index()].fetch_sub(1, Ordering::Relaxed);
        let mut members = self.manager.members.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = members.iter().position(|(name, group)| *name == self.name && *group == self.group) {
            members.swap_remove(place);
        }
    }
}

/// Stack for the calls of handlers; the system gives memory only for its used part.
const STACK_BYTES: usize = 512 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_group_has_no_more_threads_than_it_may_and_gets_places_back() {
        let manager = Arc::new(ThreadPoolManager::new(1, Priorities::default()));
        let (go, wait) = mpsc::channel::<()>();
        let first = manager.spawn(ThreadGroup::Interaction, "first", move || wait.recv().unwrap_or_default()).unwrap();
        let refused = manager.spawn(ThreadGroup::Interaction, "second", || ()).unwrap_err().to_string();
        assert!(refused.contains("interaction has 1 threads"), "{refused}");
        assert_eq!((manager.running(ThreadGroup::Interaction), manager.running(ThreadGroup::Profile)), (1, 0));
        manager.spawn(ThreadGroup::Profile, "other", || ()).unwrap().join().unwrap();
        drop(go);
        first.join().unwrap();
        assert_eq!(manager.running(ThreadGroup::Interaction), 0);
        let panicking = manager.spawn(ThreadGroup::Interaction, "third", || panic!("as the test wants")).unwrap();
        assert!(panicking.join().is_err());
        assert_eq!(manager.running(ThreadGroup::Interaction), 0);
    }
}
