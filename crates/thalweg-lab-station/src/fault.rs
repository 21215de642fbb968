//! Why a process of a run cannot go on.

use std::fmt;

/// The reason why a process of a run cannot go on; the text names the failure and a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The controller closed the process's input, or another endpoint of the process failed.
    Interrupted,
    /// This process itself cannot go on.
    Here(String),
}

impl Fault {
    /// In the words of its cause.
    pub fn here(cause: impl fmt::Display) -> Fault {
        Fault::Here(cause.to_string())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Interrupted => f.write_str("interrupted; there is no result"),
            Fault::Here(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for Fault {}

impl From<String> for Fault {
    fn from(reason: String) -> Fault {
        Fault::Here(reason)
    }
}
