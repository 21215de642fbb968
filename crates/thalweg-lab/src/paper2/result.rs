//! The result of the preset.

use serde::{Deserialize, Serialize};

use super::answers::NEAR;
use super::groups::{Group, groups};
use super::plan::Part;
use crate::statistics::{Buckets, Interval};
use crate::study::StudyResult;

/// All parts of the preset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paper2Result {
    /// Layout of this file: `thalweg.paper2/1`.
    pub schema: String,
    /// The command that makes such a result; missing in results of earlier versions.
    #[serde(default)]
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
    /// The only layout there is so far.
    pub const SCHEMA: &'static str = "thalweg.paper2/1";
}

/// A part of the preset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartResult {
    /// Name of its run directory.
    pub name: String,
    /// Its question.
    pub title: String,
    /// The results of its runs.
    pub study: StudyResult,
    /// All response latencies of each cell; they lie in the run directory and are not written again.
    #[serde(skip)]
    pub latencies: Option<Vec<Buckets>>,
}

impl PartResult {
    pub(super) fn of(part: &Part, study: StudyResult, latencies: Option<Vec<Buckets>>) -> PartResult {
        PartResult { name: part.name.to_owned(), title: part.title.to_owned(), study, latencies }
    }

    /// Cells that differ only in the destination.
    pub(super) fn groups(&self) -> Vec<Group<'_>> {
        groups(self)
    }
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
    pub medians: [Option<f64>; 3],
    /// Multicast by unicast, from runs of the same round; missing where fewer than six rounds have both.
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
    /// `auto` by the better one, from runs of the same round.
    pub ratio: Option<Interval>,
    /// Whether the estimate is within five per cent.
    pub holds: bool,
    /// The same in words, with the reason where it does not hold.
    pub text: String,
}

impl AutoCheck {
    /// `yes`, `no`, or `open` where the runs do not tell.
    pub fn answer(&self) -> &'static str {
        // The end of the interval that is closer to the better one; what does not hold is on the far side of it.
        let least = |ratio: Interval| if ratio.estimate > 1.0 { ratio.low } else { 1.0 / ratio.high };
        match self.ratio.map(least) {
            _ if self.holds => "yes",
            Some(least) if least > NEAR => "no",
            _ => "open",
        }
    }
}
