//! `manifest.json`: the content and the state of a directory.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::fingerprint::Fingerprint;
use crate::host::{Environment, HostEnvironment};

/// The content and the state of a run directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Layout of the directory: `thalweg.run/1`.
    pub schema: String,
    /// Its state.
    pub state: State,
    /// Why it is in this state, where there is more to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Name of the scenario.
    pub name: String,
    /// Decides the order of the runs.
    pub seed: u64,
    /// Runs that make it complete, at least.
    pub runs_planned: u64,
    /// Runs that count.
    pub runs_done: u64,
    /// First start in seconds since 1970 UTC.
    pub started_unix_s: u64,
    /// Last change in seconds since 1970 UTC.
    pub changed_unix_s: u64,
    /// The machine.
    pub environment: Environment,
    /// The machines of agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostEnvironment>,
    /// The environment that the result depends on.
    pub fingerprint: Fingerprint,
}

impl Manifest {
    /// The only layout there is so far.
    pub const SCHEMA: &'static str = "thalweg.run/1";

    /// The state in words, where it is known whether a process writes into the directory now.
    pub(super) fn state_now(&self, is_in_use: bool) -> String {
        match self.state {
            State::Running if !is_in_use => "ended without a word; it can be resumed".to_owned(),
            state => state.to_string(),
        }
    }
}

/// The state of a run directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Its runs are being made; when no process makes them any more, it ended without a word.
    Running,
    /// The results are there, and all runs but those for which the time of the experiment did not suffice.
    Complete,
    /// Something went wrong; there is no result.
    Failed,
    /// It was stopped; there is no result.
    Interrupted,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Running => "running",
            State::Complete => "complete",
            State::Failed => "failed",
            State::Interrupted => "interrupted",
        })
    }
}
