//! Observed resources, as applications see them.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::resource::{Get, LocalStore, RemoteKey, Resource, ResourceError, ResourceRepresentation, WatchGuard};
use crate::service::remote::{Network, RemoteObservation};

/// An observed resource. It holds the newest state only: a slow application misses states, but never the last one.
pub struct Observation {
    news: Arc<News>,
    origin: Origin,
}

/// Whence states come; ends with the observation.
enum Origin {
    Own { resource: Arc<dyn Resource>, _watch: WatchGuard },
    Other { _observation: Box<dyn RemoteObservation> },
}

#[derive(Default)]
struct News {
    slot: Mutex<Slot>,
    wake: Condvar,
}

/// States that came since the application last took them.
#[derive(Default)]
enum Slot {
    #[default]
    Nothing,
    /// An own resource has changed: its state is read when the application wants it.
    Changed,
    State(Result<ResourceRepresentation, ResourceError>),
}

impl Observation {
    pub(super) fn of_own(store: LocalStore, path: &str) -> Result<Observation, ResourceError> {
        let resource = store.find(path)?;
        let news = Arc::new(News::default());
        let told = Arc::clone(&news);
        let watch = store.observe(path, move || told.put(Slot::Changed))?;
        news.put(Slot::Changed);
        Ok(Observation { news, origin: Origin::Own { resource, _watch: watch } })
    }

    pub(super) fn of_other(network: &Network, key: &RemoteKey) -> Observation {
        let news = Arc::new(News::default());
        let told = Arc::clone(&news);
        let observation = network.observe(key, move |state| told.put(Slot::State(state)));
        Observation { news, origin: Origin::Other { _observation: observation } }
    }

    /// The next state, the present one at first; `None` when none comes within `patience`.
    ///
    /// # Errors
    /// Why the resource has no state, or is not observed any more.
    pub fn next(&self, patience: Duration) -> Result<Option<ResourceRepresentation>, ResourceError> {
        match (self.news.take(patience), &self.origin) {
            (Slot::Nothing, _) => Ok(None),
            (Slot::State(state), _) => state.map(Some),
            (Slot::Changed, Origin::Own { resource, .. }) => resource.get(&Get::default()).map(Some),
            (Slot::Changed, Origin::Other { .. }) => Ok(None),
        }
    }
}

impl News {
    fn put(&self, slot: Slot) {
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = slot;
        self.wake.notify_all();
    }

    fn take(&self, patience: Duration) -> Slot {
        let slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.wake.wait_timeout_while(slot, patience, |slot| matches!(slot, Slot::Nothing));
        let (mut slot, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *slot)
    }
}

impl fmt::Debug for Observation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.origin {
            Origin::Own { .. } => "Observation(own)",
            Origin::Other { .. } => "Observation(other)",
        })
    }
}
