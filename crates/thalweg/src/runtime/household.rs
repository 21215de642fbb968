//! The participants of this process, which wake each other when one has something to tell.

use std::sync::{Mutex, PoisonError, Weak};

use thalweg_rtps::participant::Household;

use super::RuntimeState;

/// What the participants of this process tell each other, and which process that is: those of a parent live elsewhere.
static HOUSEHOLD: Mutex<Option<(u32, Household)>> = Mutex::new(None);
static RUNTIMES: Mutex<Vec<Weak<RuntimeState>>> = Mutex::new(Vec::new());

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
pub(super) fn add(runtime: Weak<RuntimeState>) {
    let mut runtimes = RUNTIMES.lock().unwrap_or_else(PoisonError::into_inner);
    runtimes.retain(|runtime| runtime.strong_count() > 0);
    runtimes.push(runtime);
}

/// Wakes those that there is news for.
pub(super) fn wake_told() {
    let runtimes: Vec<_> = RUNTIMES.lock().unwrap_or_else(PoisonError::into_inner).iter().map(Weak::upgrade).collect();
    for runtime in runtimes.into_iter().flatten().filter(|runtime| runtime.household_news.is_set()) {
        runtime.alarm.wake();
    }
}
