//! Why an experiment has no result.

use std::fmt;
use std::time::Duration;

use thalweg_host::NamespaceError;
use thalweg_lab_station::Fault;

use crate::scenario::ScenarioError;
use crate::study::StudyError;

/// The reason why an experiment ended without a result; the text names the failure, its place and a remedy.
#[derive(Debug)]
pub enum LabError {
    /// The user asked to stop.
    Interrupted,
    /// A process of the experiment could not be started.
    NotStarted {
        /// Which process.
        process: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A process of the experiment ended before it delivered its result.
    Died {
        /// Which process.
        process: String,
        /// Its end: exit code or signal.
        status: String,
        /// Its last lines on stderr; may be empty.
        last_words: String,
    },
    /// A process of the experiment lives and says nothing.
    Silent {
        /// Which process.
        process: String,
        /// Time of its silence.
        patience: Duration,
        /// Its last lines on stderr; may be empty.
        last_words: String,
    },
    /// A process of the experiment reported that it cannot go on.
    Failed {
        /// Which process.
        process: String,
        /// Its reason.
        reason: String,
    },
    /// A process of the experiment on another machine ended, as its agent tells.
    Ended {
        /// Which process.
        process: String,
        /// How.
        reason: String,
    },
    /// A process of the experiment said something that nobody asked for.
    Unexpected {
        /// Which process.
        process: String,
    },
    /// Another middleware cannot take part.
    NoPeer {
        /// Which one.
        peer: String,
        /// Why.
        why: String,
    },
    /// A server cannot be asked for a multiple of its capacity, which no run has shown.
    NoCapacity {
        /// The server.
        server: String,
    },
    /// A file is no scenario.
    Scenario(ScenarioError),
    /// A run directory cannot be made, read or compared.
    Study(StudyError),
    /// A host of the experiment could not be made.
    Namespace(NamespaceError),
    /// This process itself cannot go on.
    Here(String),
}

impl LabError {
    /// An error of this process, in the words of its cause.
    pub fn here(cause: impl fmt::Display) -> LabError {
        LabError::Here(cause.to_string())
    }
}

impl From<NamespaceError> for LabError {
    fn from(error: NamespaceError) -> LabError {
        LabError::Namespace(error)
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

impl From<ScenarioError> for LabError {
    fn from(error: ScenarioError) -> LabError {
        LabError::Scenario(error)
    }
}

impl From<StudyError> for LabError {
    fn from(error: StudyError) -> LabError {
        LabError::Study(error)
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

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabError::Interrupted => write!(f, "interrupted; there is no result"),
            LabError::NotStarted { process, source } => write!(f, "the {process} could not be started: {source}"),
            LabError::Died { process, status, last_words } => {
                write!(f, "the {process} ended ({status}) before it delivered its result; there is no report")?;
                write_last_words(f, last_words)
            }
            LabError::Silent { process, patience, last_words } => {
                write!(
                    f,
                    "nothing was heard of the {process} for {} s; it was stopped and there is no report",
                    patience.as_secs()
                )?;
                write_last_words(f, last_words)
            }
            LabError::Failed { process, reason } => write!(f, "the {process} gave up: {reason}"),
            LabError::Ended { process, reason } => write!(f, "{process}: {reason}"),
            LabError::Unexpected { process } => write!(f, "{process} said something unexpected"),
            LabError::NoPeer { peer, why } => write!(
                f,
                "{peer} is not set up: run `thalweg lab peers install {peer}`, or name the folder of its program with --peer-dir ({why})"
            ),
            LabError::NoCapacity { server } => {
                write!(f, "{server} has no capacity to be overloaded: its runs at capacity failed")
            }
            LabError::Scenario(error) => error.fmt(f),
            LabError::Study(error) => error.fmt(f),
            LabError::Namespace(error) => error.fmt(f),
            LabError::Here(reason) => f.write_str(reason),
        }
    }
}

fn write_last_words(f: &mut fmt::Formatter<'_>, words: &str) -> fmt::Result {
    if words.is_empty() { Ok(()) } else { write!(f, "; its last words: {words}") }
}

impl std::error::Error for LabError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LabError::NotStarted { source, .. } => Some(source),
            LabError::Study(error) => error.source(),
            LabError::Namespace(error) => error.source(),
            _ => None,
        }
    }
}
