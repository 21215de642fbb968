//! What tests of several modules start from.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::host::Environment;
use crate::scenario::{Cell, Scenario};
use crate::study::{CellResult, RunSummary, StudyResult};

/// The scenario with these lines in its only matrix and one run of a second.
#[track_caller]
pub(crate) fn scenario(matrix: &str) -> Scenario {
    scenario_with(matrix, "seconds = 1\nruns = 1")
}

/// The scenario with these lines in its only matrix, and these in its schedule and behind it.
#[track_caller]
pub(crate) fn scenario_with(matrix: &str, schedule: &str) -> Scenario {
    parse(matrix, schedule).unwrap_or_else(|error| panic!("{error}"))
}

/// The same, or why there is none.
pub(crate) fn parse(matrix: &str, schedule: &str) -> Result<Scenario, String> {
    let text = format!("schema = \"thalweg.scenario/1\"\nname = \"x\"\n[matrix]\n{matrix}\n[schedule]\n{schedule}\n");
    Scenario::parse("x", &text).map_err(|error| error.to_string())
}

/// The results of so many rounds of a scenario whose runs are what `run` says of a cell and a round; nothing is compared.
pub(crate) fn study(scenario: &Scenario, rounds: u32, run: impl Fn(&Cell, u32) -> RunSummary) -> StudyResult {
    let of = |cell: &Cell| {
        let runs = (0..rounds).map(|round| RunSummary { round, attempts: 1, ..run(cell, round) }).collect();
        CellResult { runs, ..CellResult::new(cell.clone()) }
    };
    StudyResult {
        schema: StudyResult::SCHEMA.to_owned(),
        name: "x".to_owned(),
        seed: 1,
        fingerprint: "0".to_owned(),
        started_unix_s: 0,
        environment: Environment::read(),
        hosts: Vec::new(),
        clock_bound_us: None,
        cells: scenario.cells.iter().map(of).collect(),
        differences: Vec::new(),
        judgements: Vec::new(),
        failures: Vec::new(),
        notes: Vec::new(),
    }
}

/// Checks that each of these parts stands in a text.
#[track_caller]
pub(crate) fn check_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} not in:\n{text}");
    }
}

/// A folder of a test, empty at first and gone when dropped.
pub(crate) struct LabFolder(PathBuf);

impl LabFolder {
    pub(crate) fn new(name: &str) -> LabFolder {
        let path = std::env::temp_dir().join(format!("thalweg-lab-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("made");
        LabFolder(path)
    }
}

impl Deref for LabFolder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for LabFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
