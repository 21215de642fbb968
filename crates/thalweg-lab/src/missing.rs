//! What an experiment lacks.

use serde::{Deserialize, Serialize};

/// Something that could not be measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Missing {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
    /// The remedy: a command or an option.
    pub remedy: String,
}
