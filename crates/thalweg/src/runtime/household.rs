//! The participants of this process, which wake each other for news.

use std::io;
use std::sync::{Mutex, PoisonError, Weak};

use thalweg_rtps::participant::{Household, NewsFlag};
use thalweg_rtps::types::GuidPrefix;
use thalweg_transport::entropy;

use super::RuntimeState;

/// The participants of a process.
#[derive(Clone)]
pub(crate) struct Process {
    /// After a fork the child has another id, and needs a household of its own.
    id: u32,
    /// The part of their GUID prefixes that they have in common.
    name: [u8; 6],
    /// Their household.
    pub(crate) household: Household,
}

static PROCESS: Mutex<Option<Process>> = Mutex::new(None);
static RUNTIMES: Mutex<Vec<(NewsFlag, Weak<RuntimeState>)>> = Mutex::new(Vec::new());

impl Process {
    /// This process.
    ///
    /// # Errors
    /// When the kernel's random source is not available.
    pub(crate) fn this() -> io::Result<Process> {
        let id = std::process::id();
        let mut place = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(process) = place.as_ref().filter(|process| process.id == id) {
            return Ok(process.clone());
        }
        let process = Process { id, name: entropy::bytes()?, household: Household::default() };
        Ok(place.insert(process).clone())
    }

    /// A GUID prefix for one more participant.
    ///
    /// # Errors
    /// As [`Process::this`].
    pub(crate) fn new_prefix(&self) -> io::Result<GuidPrefix> {
        Ok(GuidPrefix::of_thalweg(self.name, entropy::bytes()?))
    }
}

/// Lets a runtime be woken when there is news for it.
pub(super) fn add(has_news: NewsFlag, runtime: Weak<RuntimeState>) {
    let mut runtimes = RUNTIMES.lock().unwrap_or_else(PoisonError::into_inner);
    runtimes.retain(|(_, runtime)| runtime.strong_count() > 0);
    runtimes.push((has_news, runtime));
}

/// Wakes the runtimes that have news.
pub(super) fn wake_told() {
    let runtimes = RUNTIMES.lock().unwrap_or_else(PoisonError::into_inner);
    let told = runtimes.iter().filter(|(has_news, _)| has_news.is_set());
    let told: Vec<_> = told.filter_map(|(_, runtime)| runtime.upgrade()).collect();
    // A runtime whose last reference goes here closes its sockets, which must not happen under the lock.
    drop(runtimes);
    told.iter().for_each(|runtime| runtime.alarm.wake());
}
