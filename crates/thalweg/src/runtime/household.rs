//! The participants of this process, which wake each other when one has something to tell.

use std::io;
use std::sync::{Mutex, PoisonError, Weak};

use thalweg_rtps::participant::{Household, NewsFlag};
use thalweg_rtps::types::GuidPrefix;
use thalweg_transport::entropy;

use super::RuntimeState;

/// The participants of a process.
#[derive(Clone)]
pub(crate) struct Process {
    /// Those of a parent live elsewhere.
    id: u32,
    /// Prefix of their names.
    name: [u8; 6],
    /// Their shared news.
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

    /// A name for one more participant.
    ///
    /// # Errors
    /// As [`Process::this`].
    pub(crate) fn new_prefix(&self) -> io::Result<GuidPrefix> {
        Ok(GuidPrefix::of_thalweg(self.name, entropy::bytes()?))
    }
}

/// From now on it is woken when there is news for it.
pub(super) fn add(has_news: NewsFlag, runtime: Weak<RuntimeState>) {
    let mut runtimes = RUNTIMES.lock().unwrap_or_else(PoisonError::into_inner);
    runtimes.retain(|(_, runtime)| runtime.strong_count() > 0);
    runtimes.push((has_news, runtime));
}

/// Wakes those that there is news for.
pub(super) fn wake_told() {
    let runtimes = RUNTIMES.lock().unwrap_or_else(PoisonError::into_inner);
    let told = runtimes.iter().filter(|(has_news, _)| has_news.is_set());
    let told: Vec<_> = told.filter_map(|(_, runtime)| runtime.upgrade()).collect();
    // One that ends here takes its sockets with it, not under the lock.
    drop(runtimes);
    told.iter().for_each(|runtime| runtime.alarm.wake());
}
