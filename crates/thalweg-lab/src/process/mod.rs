//! An experiment's processes: the same executable started again, told what to do on its standard input, heard on its standard output.
//!
//! Orders and answers are JSON, one a line. A worker stops when its standard input ends and dies with its parent, so that neither
//! Ctrl-C nor a killed parent leaves one behind.

mod supervisor;
mod worker;

pub use supervisor::{Launcher, Supervised};
pub use worker::{Link, serve};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a worker says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// A part of the work is done; the content is the order's own affair.
    Progress(Value),
    /// The work is done and this is its result. Nothing follows.
    Done(Value),
    /// The work cannot go on, and why. Nothing follows.
    Failed(String),
}

/// A request to stop that any thread can make and every loop of an experiment looks at.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Shares a flag that is set from elsewhere, for example by a signal.
    pub fn watching(flag: Arc<AtomicBool>) -> Stop {
        Stop(flag)
    }

    /// Asks everybody who holds this request to stop soon.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked to stop.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
