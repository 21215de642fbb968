//! The result of the preset.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::answers::EQUIVALENT;
use crate::parts::PartResult;
use crate::statistics::{Interval, endless};

/// All parts of the preset.
#[derive(Debug, Serialize, Deserialize)]
pub struct Paper2Result {
    /// Layout of this file: `thalweg.paper2/2`.
    pub schema: String,
    /// The command that makes such a result.
    pub command: String,
    /// Each part, in the order of its runs.
    pub parts: Vec<PartResult>,
    /// Who is ahead in which cell, in what.
    pub winners: Vec<Winner>,
    /// Whether `auto` keeps up with the better one.
    pub checks: Vec<AutoCheck>,
    /// What the paper has and this machine or this plan has not, with the reason.
    pub omitted: Vec<String>,
}

impl Paper2Result {
    /// Checks where there is a better way: not those where unicast and multicast are equivalent, so that `auto` cannot choose wrongly.
    pub(super) fn choices(&self) -> Vec<&AutoCheck> {
        let is_choice = |check: &&AutoCheck| {
            let is_same = |winner: &&Winner| {
                (&winner.part, &winner.group, &winner.quantity) == (&check.part, &check.group, &check.quantity)
            };
            self.winners.iter().find(is_same).is_none_or(|winner| winner.verdict != EQUIVALENT)
        };
        self.checks.iter().filter(is_choice).collect()
    }

    /// The only layout there is so far.
    pub const SCHEMA: &'static str = "thalweg.paper2/2";
}

/// Unicast against multicast in one quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Winner {
    /// The part.
    pub part: String,
    /// The measurement, in words.
    pub group: String,
    /// The compared quantity, with its unit.
    pub quantity: String,
    /// Medians over the runs of unicast, multicast and `auto`.
    #[serde(with = "endless::three")]
    pub medians: [Option<f64>; 3],
    /// Multicast by unicast, from runs of the same round; missing where fewer than eight rounds have both.
    pub ratio: Option<Interval>,
    /// The better way, or the reason why it is open.
    pub verdict: String,
}

/// Whether `auto` is within five per cent of the better one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AutoCheck {
    /// The part.
    pub part: String,
    /// The measurement, in words.
    pub group: String,
    /// The compared quantity, with its unit.
    pub quantity: String,
    /// The way that `auto` chose, judged by the bytes on the wire.
    pub choice: String,
    /// What `auto` costs by what the better one costs, from runs of the same round: below 1 it is better. The median with its interval.
    pub ratio: Option<Interval>,
    /// Whether it is within five per cent.
    pub answer: AutoAnswer,
    /// The same in words, with the reason.
    pub text: String,
}

/// Whether something is so, as far as the runs tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AutoAnswer {
    /// All that the runs allow is.
    Yes,
    /// Nothing that the runs allow is.
    No,
    /// The runs allow both.
    Open,
}

impl fmt::Display for AutoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AutoAnswer::Yes => "yes",
            AutoAnswer::No => "no",
            AutoAnswer::Open => "open",
        })
    }
}
