//! The preset `paper2`: Peeroo, Popov, Stankovic, "Exploring the Effects of Multicast Communication on DDS Performance" (2022), asked
//! again: does multicast help when there are many publishers and subscribers, and does `auto` choose what is better?
//!
//! The preset writes scenario files and runs them like any other: each part is a run directory that can be resumed, verified and compared.

mod answers;
mod groups;
mod plan;
mod presentation;
mod result;

pub use plan::{Paper2Plan, Part};
pub use presentation::{page, to_text};
pub use result::{AutoCheck, Paper2Result, PartResult, Winner};

use std::path::Path;

use crate::error::LabError;
use crate::process::{Launcher, Stop};
use crate::scenario::Scenario;
use crate::study::{self, State};

/// Makes every part of the plan below `out` and puts them together. Parts that are complete there already are taken as they are, parts
/// that were interrupted go on.
///
/// # Errors
/// A part cannot be run here or has no result; finished parts stay.
pub fn run(plan: &Paper2Plan, out: &Path, launcher: &Launcher, stop: &Stop) -> Result<Paper2Result, LabError> {
    let mut parts = Vec::new();
    for part in plan.parts() {
        let (file, directory) = (out.join(format!("{}.toml", part.name)), out.join(part.name));
        let found = study::find(&directory).into_iter().find(|found| found.path == directory);
        let result = match found.map(|found| found.manifest).transpose()?.map(|manifest| manifest.state) {
            Some(State::Complete) => study::load(&directory)?,
            Some(_) => study::resume::<Scenario>(&directory, launcher, stop)?,
            None => {
                std::fs::write(&file, &part.text)
                    .map_err(|error| LabError::Here(format!("{} cannot be written: {error}", file.display())))?;
                study::run(Scenario::load(&file)?, None, &directory, launcher, stop)?
            }
        };
        let latencies = Some(study::latencies(&directory, &result)?);
        parts.push(PartResult::of(&part, result, latencies));
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
    for part in &mut result.parts {
        let directory = file.with_file_name(&part.name);
        if directory.is_dir() {
            part.latencies = Some(study::latencies(&directory, &part.study)?);
        }
    }
    Ok(result)
}

#[cfg(test)]
mod tests;
