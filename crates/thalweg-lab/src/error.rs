//! Why an experiment has no result.

use std::fmt;
use std::time::Duration;

use thalweg_host::NamespaceError;
use thalweg_lab_station::Fault;
use thiserror::Error;

use crate::agent::AgentError;
use crate::scenario::ScenarioError;
use crate::study::StudyError;

/// The reason why an experiment ended without a result; the text names the failure, its place and a remedy.
#[derive(Debug, Error)]
pub enum LabError {
    /// The user asked to stop.
    #[error("interrupted; there is no result")]
    Interrupted,
    /// A process of the experiment could not be started.
    #[error("the {process} could not be started: {source}")]
    NotStarted {
        /// Which process.
        process: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A process of the experiment ended before it delivered its result.
    #[error("the {process} ended ({status}) before it delivered its result; there is no report{}", last(last_words))]
    Died {
        /// Which process.
        process: String,
        /// Its end: exit code or signal.
        status: String,
        /// Its last lines on stderr; may be empty.
        last_words: String,
    },
    /// A process of the experiment lives and says nothing.
    #[error("nothing was heard of the {process} for {} s; it was stopped and there is no report{}", patience.as_secs(), last(last_words))]
    Silent {
        /// Which process.
        process: String,
        /// Time of its silence.
        patience: Duration,
        /// Its last lines on stderr; may be empty.
        last_words: String,
    },
    /// A process of the experiment reported that it cannot go on.
    #[error("the {process} gave up: {reason}")]
    Failed {
        /// Which process.
        process: String,
        /// Its reason.
        reason: String,
    },
    /// A process of the experiment on another machine ended, as its agent tells.
    #[error("{process}: {reason}")]
    Ended {
        /// Which process.
        process: String,
        /// How.
        reason: String,
    },
    /// A process of the experiment said something that nobody asked for.
    #[error("{process} said something unexpected")]
    Unexpected {
        /// Which process.
        process: String,
    },
    /// Another middleware cannot take part.
    #[error(
        "{peer} is not set up: run `thalweg lab peers install {peer}`, or name the folder of its program with --peer-dir ({why})"
    )]
    NoPeer {
        /// Which one.
        peer: String,
        /// Why.
        why: String,
    },
    /// A server cannot be asked for a multiple of its capacity, which no run has shown.
    #[error("{server} has no capacity to be overloaded: its runs at capacity failed")]
    NoCapacity {
        /// The server.
        server: String,
    },
    /// Another machine does not take part.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// A file is no scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A run directory cannot be made, read or compared.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// A host of the experiment could not be made.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// This process itself cannot go on.
    #[error("{0}")]
    Here(String),
}

impl LabError {
    /// An error of this process, in the words of its cause.
    pub fn here(cause: impl fmt::Display) -> LabError {
        LabError::Here(cause.to_string())
    }
}

impl From<LabError> for Fault {
    fn from(error: LabError) -> Fault {
        match error {
            LabError::Interrupted => Fault::Interrupted,
            other => Fault::here(other),
        }
    }
}

impl From<Fault> for LabError {
    fn from(fault: Fault) -> LabError {
        match fault {
            Fault::Interrupted => LabError::Interrupted,
            Fault::Here(reason) => LabError::Here(reason),
        }
    }
}

/// How an error ends that tells a process's last words; nothing where it has none.
fn last(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!("; its last words: {words}") }
}
