//! A condition of the application's own.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

use super::Condition;
use super::sealed::{Sealed, Source};
use crate::runtime::{Waiters, WatchId};

/// A condition that the application sets and resets (DDS 1.4 §2.2.2.1.8), for example to end the wait of another thread. Copies
/// are one condition.
#[derive(Clone, Debug, Default)]
pub struct GuardCondition(Arc<Guard>);

#[derive(Debug, Default)]
struct Guard {
    is_set: Mutex<bool>,
    waiters: Waiters,
}

impl GuardCondition {
    /// A condition that is not true.
    pub fn new() -> GuardCondition {
        GuardCondition::default()
    }

    /// Makes it true, or not.
    pub fn set_trigger_value(&self, value: bool) {
        *self.0.is_set.lock().unwrap_or_else(PoisonError::into_inner) = value;
        if value {
            self.0.waiters.wake_tasks();
        }
    }
}

impl Condition for GuardCondition {}

impl Sealed for GuardCondition {
    fn source(&self) -> Arc<dyn Source> {
        Arc::clone(&self.0) as Arc<dyn Source>
    }
}

impl Source for Guard {
    fn is_triggered(&self) -> bool {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arm(&self, watch: &mut Option<WatchId>, waker: &Waker) {
        self.waiters.arm(watch, waker);
    }

    fn disarm(&self, watch: &mut Option<WatchId>) {
        self.waiters.disarm(watch);
    }
}
