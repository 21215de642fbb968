//! The preset `paper4`: Kouril and others, "Performance Evaluation of a ROS2 based Automated Driving System" (VEHITS 2024), measured again
//! below the client library, with every middleware in turns.
//!
//! The paper's messages, rates and topologies: 1–n is one topic with many subscribers, n–1 one node with a subscription to each of many
//! publishers, whose samples one thread handles as ROS 2's executor does, n–n are pairs with a topic each. Its nodes are processes here.

mod figures;
mod machine;
mod plan;
mod presentation;

pub use machine::MachineSize;
pub use plan::{PART_NAMES, Paper4Plan};
pub use presentation::{page, to_text};

pub(crate) use plan::contenders;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::parts::{self, PartResult};
use crate::process::{Launcher, Stop};
use crate::study;

/// All parts of the preset.
#[derive(Debug, Serialize, Deserialize)]
pub struct Paper4Result {
    /// Layout of this file: `thalweg.paper4/1`.
    pub schema: String,
    /// The command that makes such a result.
    pub command: String,
    /// Each part, in the order of its runs.
    pub parts: Vec<PartResult>,
    /// What the paper has and this machine or this plan has not, with the reason.
    pub left_out: Vec<String>,
}

impl Paper4Result {
    /// The only layout there is so far.
    pub const SCHEMA: &'static str = "thalweg.paper4/1";

    fn part(&self, name: &str) -> Option<&PartResult> {
        self.parts.iter().find(|part| part.name == name)
    }
}

/// Makes every part of the plan below `out` and puts them together. Parts that are complete there already are taken as they are, parts
/// that were interrupted go on.
///
/// # Errors
/// A part cannot be run here or has no result; finished parts stay.
pub fn run(plan: &Paper4Plan, out: &Path, launcher: &Launcher, stop: &Stop) -> Result<Paper4Result, LabError> {
    let parts: Result<Vec<PartResult>, LabError> =
        plan.parts.iter().map(|part| part.measure(out, launcher, stop)).collect();
    Ok(Paper4Result {
        schema: Paper4Result::SCHEMA.to_owned(),
        command: plan.command.clone(),
        parts: parts?,
        left_out: plan.left_out.clone(),
    })
}

/// The results in `file`, with the raw data of the parts whose run directories lie beside it.
///
/// # Errors
/// The file is no result of the preset, or raw data beside it are damaged.
pub fn load(file: &Path) -> Result<Paper4Result, LabError> {
    let mut result: Paper4Result = study::load_json(file)?;
    parts::read_raw(&mut result.parts, file)?;
    Ok(result)
}

#[cfg(test)]
mod tests;
