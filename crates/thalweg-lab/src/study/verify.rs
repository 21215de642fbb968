//! Verification of a run directory: all results are computed again from the raw data.

use std::path::Path;

use serde::Serialize;

use super::course::collect;
use super::directory::{RESULTS, is_in_use, load_experiment, load_manifest, run_folder, whole_runs};
use super::experiment::Experiment;
use super::fingerprint::hex_digest;
use super::manifest::State;
use crate::error::LabError;

/// The findings of a verification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Runs whose results were computed again from their raw data.
    pub runs: u64,
    /// Faults; empty when the results agree with the raw data.
    pub faults: Vec<String>,
}

/// Checks a run directory.
///
/// # Errors
/// It is none, or the text that says what it measures cannot be read.
pub(crate) fn verify<E: Experiment>(path: &Path) -> Result<Verification, LabError> {
    let manifest = load_manifest(path)?;
    let (experiment, text) = load_experiment::<E>(path, manifest.seed)?;
    let mut out = Verification { runs: 0, faults: Vec::new() };
    if manifest.state != State::Complete {
        let shown = match manifest.state {
            State::Running if is_in_use(path) => "its runs are being made right now".to_owned(),
            State::Running => "it ended without a word".to_owned(),
            state => format!("it is {state}: {}", manifest.reason.clone().unwrap_or_default()),
        };
        out.faults.push(format!(
            "{} is no result: {shown}; {} of {} runs are there; `thalweg lab resume {}` makes the rest",
            path.display(),
            manifest.runs_done,
            manifest.runs_planned,
            path.display()
        ));
    }
    if manifest.fingerprint.parts.get("scenario") != Some(&hex_digest(text.as_bytes())) {
        out.faults.push("scenario.toml is not the one that was run".to_owned());
    }
    for run in whole_runs(path) {
        out.runs += 1;
        let cell = run.cell as usize;
        let is_known = cell < experiment.cells().len();
        let checked = if is_known { experiment.check(&run_folder(path, run), cell) } else { Err(NO_CELL.to_owned()) };
        if let Err(fault) = checked {
            out.faults.push(format!("round {} of cell {}: {fault}", run.round, run.cell));
        }
    }
    if manifest.state == State::Complete {
        let collected = collect(path, &experiment, &manifest)
            .and_then(|result| serde_json::to_string_pretty(&result).map_err(LabError::here));
        let file = path.join(RESULTS);
        match (collected, std::fs::read_to_string(&file)) {
            (Ok(expect), Ok(found)) if expect == found => {}
            (Ok(_), Ok(_)) => out.faults.push(format!("{RESULTS} does not agree with the runs")),
            (Err(error), _) => out.faults.push(error.to_string()),
            (_, Err(error)) => out.faults.push(format!("{} cannot be read: {error}", file.display())),
        }
    }
    Ok(out)
}

const NO_CELL: &str = "the scenario has no such cell";
