//! Models of what threads share, run in every order that a bounded number of preemptions allows.
//!
//! Time is a choice: a thread that sleeps until a deadline is one that another thread may wake, and that time wakes when the
//! model says so. A thread that sleeps for ever is a deadlock, which fails the model.

mod alarm;
mod listeners;

/// Runs `model` in every order of its threads' steps with at most three preemptions. Most defects need no more than two.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(PREEMPTIONS));
    builder.check(model);
}

/// A greater number costs minutes; `LOOM_MAX_PREEMPTIONS` sets another one.
const PREEMPTIONS: usize = 3;
