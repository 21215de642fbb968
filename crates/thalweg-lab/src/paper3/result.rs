//! The result of `lab run paper3`, complete enough to draw its page again.

use serde::{Deserialize, Serialize};

use super::cell::{HdtvCell, HdtvPart};
use super::figures::{EndLoad, PictureFigures, StreamShown, TripsShown};
use super::plan::Paper3Plan;
use crate::host::{Conditions, Environment};
use crate::missing::Missing;
use crate::study::{CellFailure, CellResult, Difference};

/// The whole result; `results.json` is this.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paper3Result {
    /// Layout of this object: `thalweg.paper3/1`.
    pub schema: String,
    /// The plan, whose peers are those that took part.
    pub plan: Paper3Plan,
    /// First start, in seconds since 1970 UTC.
    pub started_unix_s: u64,
    /// The machine.
    pub environment: Environment,
    /// Other load on the machine meanwhile, over the time of all runs.
    pub conditions: Conditions,
    /// Name and version of each program that took part.
    pub contenders: Vec<(String, String)>,
    /// Missing measurements, with reasons and remedies.
    pub missing: Vec<Missing>,
    /// Cells and runs that were not made, with the reason.
    pub left_out: Vec<String>,
    /// Every cell, in the order of the page; one that failed with the runs before.
    pub cells: Vec<HdtvCellRuns>,
    /// Cells against their baselines.
    pub differences: Vec<Difference>,
    /// Cells that failed, and why.
    pub failures: Vec<CellFailure>,
}

impl Paper3Result {
    /// The only layout there is so far.
    pub const SCHEMA: &'static str = "thalweg.paper3/1";

    /// The cells of a part that have runs.
    pub(super) fn cells_of(&self, part: HdtvPart) -> impl Iterator<Item = &HdtvCellRuns> {
        self.cells.iter().filter(move |cell| cell.cell.part == part && !cell.runs.is_empty())
    }

    /// All runs.
    pub(super) fn runs(&self) -> impl Iterator<Item = &HdtvRun> {
        self.cells.iter().flat_map(|cell| &cell.runs)
    }
}

/// The runs of one cell.
pub type HdtvCellRuns = CellResult<HdtvCell, HdtvRun>;

/// One run: what went over a link of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HdtvRun {
    /// Which round it belongs to, from 0.
    pub round: u32,
    /// A stream of a probe.
    pub stream: Option<StreamShown>,
    /// Round trips of a probe.
    pub trips: Option<TripsShown>,
    /// A picture.
    pub picture: Option<PictureFigures>,
    /// Processor time of the picture's sender.
    pub sender_load: Option<EndLoad>,
    /// Processor time of the picture's receiver.
    pub receiver_load: Option<EndLoad>,
    /// What the layers of the receiving host counted as lost, by counter.
    pub losses: Vec<(String, u64)>,
    /// Settings that were refused.
    pub refused: Vec<String>,
    /// Other load on the machine.
    pub conditions: Conditions,
}
