//! The locks and atomics of what threads share: the standard library's, or the model checker's in `cargo xtask test loom`.
//!
//! The model checker takes a `SeqCst` access for one that is `AcqRel`. Where the order of accesses to different variables
//! counts, a `SeqCst` fence says so.

#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic};

#[cfg(all(loom, test))]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard, atomic};
