//! The result of `lab run paper3`, complete enough to draw its page again.

use serde::{Deserialize, Serialize};

use super::cell::HdtvCell;
use super::figures::{EndLoad, PictureFigures, StreamShown, TripsShown};
use super::plan::Paper3Plan;
use super::truth::RelayTruth;
use crate::host::Conditions;
use crate::preset::PresetResult;
use crate::study::CellResult;

/// The whole result; `results.json` is this.
pub type Paper3Result = PresetResult<Paper3Plan, HdtvCell, HdtvRun>;

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
    /// What the relay knows of a picture by RTP; missing without a relay.
    #[serde(default)]
    pub relayed: Option<RelayTruth>,
    /// Settings that were refused.
    pub refused: Vec<String>,
    /// Other load on the machine.
    pub conditions: Conditions,
}
