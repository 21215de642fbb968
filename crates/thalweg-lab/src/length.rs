//! How much of a paper is measured again.

use serde::{Deserialize, Serialize};

/// How long the repetition of a paper may take. What is left out for it stands with each paper's plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Length {
    /// Some minutes: fewer cells and fewer runs of them, mostly without verdicts.
    Quick,
    /// Two hours at most, with verdicts.
    Usual,
    /// Every step, for as long as that takes; presets without it are as usual.
    Full,
}

impl Length {
    /// The length that the options `--quick` and `--full` choose.
    pub fn chosen(quick: bool, full: bool) -> Length {
        match (quick, full) {
            (true, _) => Length::Quick,
            (_, true) => Length::Full,
            _ => Length::Usual,
        }
    }

    /// Its option behind a blank; empty for the usual length.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Length::Quick => " --quick",
            Length::Usual => "",
            Length::Full => " --full",
        }
    }
}
