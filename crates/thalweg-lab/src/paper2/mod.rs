//! The preset `paper2`: Peeroo, Popov, Stankovic, "Exploring the Effects of Multicast Communication on DDS Performance" (2022), asked
//! again: does multicast help when there are many publishers and subscribers, and does `auto` choose what is better?
//!
//! The preset writes scenario files and runs them like any other: each part is a run directory that can be resumed, verified and compared.

mod answers;
mod crossover;
mod groups;
mod limit;
mod plan;
mod presentation;
mod procedure;
mod result;

use plan::{CALIBRATION, PERFTEST};
pub use plan::{PART_NAMES, Paper2Plan, RunPlan};
pub use presentation::{page, to_text};
pub use result::{AutoCheck, Paper2Result, Winner};

use std::path::Path;

use crate::error::LabError;
use crate::parts;
use crate::process::{Launcher, Stop};
use crate::study;

/// Makes every part of the plan below `out` and puts them together. Parts that are complete there already are taken as they are, parts
/// that were interrupted go on.
///
/// # Errors
/// A part cannot be run here or has no result; finished parts stay.
pub fn run(plan: &Paper2Plan, out: &Path, launcher: &Launcher, stop: &Stop) -> Result<Paper2Result, LabError> {
    let mut parts = Vec::new();
    for part in plan.parts() {
        let result = part.measure(out, launcher, stop)?;
        let next = match part.name {
            PERFTEST => plan.same_rate(&result),
            CALIBRATION => plan.crossover(&result),
            _ => None,
        };
        parts.push(result);
        if let Some(part) = next {
            parts.push(part.measure(out, launcher, stop)?);
        }
    }
    Ok(Paper2Result {
        schema: Paper2Result::SCHEMA.to_owned(),
        command: plan.command.clone(),
        winners: answers::winners(&parts),
        checks: answers::checks(&parts),
        omitted: plan.omitted.clone(),
        parts,
    })
}

/// The results in `file`, with the distributions of the parts whose run directories lie beside it.
///
/// # Errors
/// The file is no result of the preset, or raw data beside it are damaged.
pub fn load(file: &Path) -> Result<Paper2Result, LabError> {
    let mut result: Paper2Result = study::load_json(file)?;
    parts::read_raw(&mut result.parts, file)?;
    Ok(result)
}

#[cfg(test)]
mod tests;
