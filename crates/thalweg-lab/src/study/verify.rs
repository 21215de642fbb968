//! Verification of a run directory: all results are computed again from the raw data.

use std::path::Path;

use serde::Serialize;

use super::directory::{RunName, is_in_use, load_manifest, load_run, load_scenario, run_folder, whole_runs};
use super::fingerprint::hex_digest;
use super::manifest::State;
use super::results::{self, RESULTS};
use crate::error::LabError;
use crate::scenario::Scenario;
use crate::trial::{TrialResult, evaluate};

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
/// It is none, or its scenario cannot be read.
pub fn verify(path: &Path) -> Result<Verification, LabError> {
    let manifest = load_manifest(path)?;
    let (mut scenario, text) = load_scenario(path)?;
    scenario.seed = manifest.seed;
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
        if let Err(fault) = check_run(path, &scenario, run) {
            out.faults.push(format!("round {} of cell {}: {fault}", run.round, run.cell));
        }
    }
    if manifest.state == State::Complete {
        let collected = results::collect(path, &scenario, &manifest)
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

fn check_run(path: &Path, scenario: &Scenario, name: RunName) -> Result<(), String> {
    let cell = scenario.cells.get(name.cell as usize).ok_or("the scenario has no such cell")?;
    let result = load_run(path, name).map_err(|error| error.to_string())?;
    if result.cell != *cell {
        return Err(format!("it measured {} where the scenario has {cell}", result.cell));
    }
    let reports: Vec<_> = result.publishers.iter().map(|publisher| publisher.report.clone()).collect();
    let joined =
        evaluate(&run_folder(path, name), cell, &scenario.schedule, &reports).map_err(|error| error.to_string())?;
    // What was told went through a file, whose numbers may differ in the last bit: so does what is computed.
    let computed = TrialResult {
        unsettled_s: joined.unsettled_s,
        totals: joined.totals,
        fairness: joined.fairness,
        closed_loop: joined.closed_loop,
        publishers: joined.publishers,
        pairs: joined.pairs,
        ..result.clone()
    };
    let text = serde_json::to_string(&computed).map_err(|error| error.to_string())?;
    match serde_json::from_str::<TrialResult>(&text) {
        Ok(computed) if computed == result => Ok(()),
        _ => Err("its result does not agree with its raw data".to_owned()),
    }
}
