//! Models of what threads share, run in every order that a bounded number of preemptions allows.
//!
//! Time is a choice: a thread that sleeps until a deadline is one that another thread may wake, and that time wakes when the
//! model says so. A thread that sleeps for ever is a deadlock, which fails the model.

mod alarm;
mod listeners;
mod writers;

use std::time::Duration;

use loom::sync::{Condvar, Mutex, MutexGuard};

use crate::sync::Lock;

/// The counterpart of [`thalweg_rtps::shared::Shared`] in models. A wait ends only by a notification.
#[derive(Default)]
struct Modelled<T> {
    state: Mutex<T>,
    changed: Condvar,
}

impl<T> Modelled<T> {
    fn new(state: T) -> Modelled<T> {
        Modelled { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl<T> Lock for Modelled<T> {
    type State = T;
    type Guard<'a>
        = MutexGuard<'a, T>
    where
        T: 'a;

    fn lock(&self) -> Self::Guard<'_> {
        self.state.lock().unwrap()
    }

    fn wait<'a>(&'a self, guard: Self::Guard<'a>, _: Duration) -> Self::Guard<'a> {
        self.changed.wait(guard).unwrap()
    }

    fn notify_all(&self) {
        self.changed.notify_all();
    }
}

/// Runs `model` in every order of its threads' steps with at most three preemptions. Most defects need no more than two.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(PREEMPTIONS));
    builder.check(model);
}

/// A greater number costs minutes; `LOOM_MAX_PREEMPTIONS` sets another one.
const PREEMPTIONS: usize = 3;
