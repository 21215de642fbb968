//! The participants of this process, which wake each other when one has something to tell.

use std::sync::{Mutex, PoisonError, Weak};

use thalweg_rtps::participant::{Household, NewsFlag};

use super::RuntimeState;

/// What the participants of this process tell each other, and which process that is: those of a parent live elsewhere.
static HOUSEHOLD: Mutex<Option<(u32, Household)>> = Mutex::new(None);
static RUNTIMES: Mutex<Vec<(NewsFlag, Weak<RuntimeState>)>> = Mutex::new(Vec::new());

/// The household of every participant of this process.
pub(crate) fn household() -> Household {
    let own = std::process::id();
    let mut place = HOUSEHOLD.lock().unwrap_or_else(PoisonError::into_inner);
    match &*place {
        Some((process, household)) if *process == own => household.clone(),
        _ => place.insert((own, Household::default())).1.clone(),
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
