//! Presets that consist of parts: each is a scenario file with a run directory beside it, which can be resumed, verified and compared like
//! any other, and the page puts their results together.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::circumstances;
use crate::error::LabError;
use crate::figures::{grouped, utc};
use crate::process::{Launcher, Stop};
use crate::report::{Page, Section, Tile};
use crate::scenario::{Scenario, ScenarioError};
use crate::study::{self, CellData, Experiment, StudyResult};

/// A part of a preset: a scenario of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Name of its directory.
    pub name: &'static str,
    /// Its question.
    pub title: &'static str,
    /// The scenario file.
    pub text: String,
}

/// The results of a part.
#[derive(Debug, Serialize, Deserialize)]
pub struct PartResult {
    /// Name of its run directory.
    pub name: String,
    /// Its question.
    pub title: String,
    /// The results of its runs.
    pub study: StudyResult,
    /// What the runs of each cell hold beside that; it lies in the run directory and is not written again.
    #[serde(skip)]
    pub(crate) raw: Option<Vec<CellData>>,
}

impl Part {
    /// How long its runs take.
    ///
    /// # Errors
    /// The scenario is none.
    pub fn duration(&self) -> Result<Duration, ScenarioError> {
        Scenario::parse(self.name, &self.text).map(|scenario| scenario.duration())
    }

    /// Makes its runs in a directory below `out`, which is taken up where it was.
    pub(crate) fn measure(&self, out: &Path, launcher: &Launcher, stop: &Stop) -> Result<PartResult, LabError> {
        let result = take_up::<Scenario>(self.name, &self.text, out, (launcher, stop))?;
        let raw = Some(study::raw(&out.join(self.name), &result)?);
        Ok(PartResult { raw, ..PartResult::of(self, result) })
    }
}

/// Makes the runs of the experiment with this text in the directory `name` below `out`, which is taken up where it was.
///
/// # Errors
/// As at the first start; and when the directory was begun with another text, its seed aside, or under other conditions.
pub(crate) fn take_up<E: Experiment>(
    name: &str,
    text: &str,
    out: &Path,
    (launcher, stop): (&Launcher, &Stop),
) -> Result<E::Result, LabError> {
    let (file, directory) = (out.join(format!("{name}.toml")), out.join(name));
    if study::find(&directory).iter().any(|found| found.path == directory) {
        return study::take_up::<E>(&directory, text, launcher, stop);
    }
    std::fs::write(&file, text)
        .map_err(|error| LabError::Here(format!("{} cannot be written: {error}", file.display())))?;
    study::begin((E::parse(&file.display().to_string(), text)?, text), &directory, launcher, stop)
}

impl PartResult {
    /// The results of a part without its raw data.
    pub(crate) fn of(part: &Part, study: StudyResult) -> PartResult {
        PartResult { name: part.name.to_owned(), title: part.title.to_owned(), study, raw: None }
    }
}

/// Reads what the runs of the parts hold, of those whose directories lie beside the results in `file`.
pub(crate) fn read_raw(parts: &mut [PartResult], file: &Path) -> Result<(), LabError> {
    for part in parts {
        let directory = file.with_file_name(&part.name);
        if directory.is_dir() {
            part.raw = Some(study::raw(&directory, &part.study)?);
        }
    }
    Ok(())
}

/// Everything of a page that is the same for all presets with parts: every cell behind the preset's own sections, the machine, its other load, and
/// where the runs lie.
pub(crate) fn shell(parts: &[PartResult], source: &str, command: &str, own: Vec<Section>) -> Page {
    let studies = || parts.iter().map(|part| &part.study);
    let Some(first) = studies().next() else { return Page::default() };
    let every =
        |study: &StudyResult| Section { title: format!("Every cell of {}", study.name), ..study::cells_section(study) };
    let runs = studies().flat_map(StudyResult::runs_made).count();
    let disturbed: usize = studies().map(StudyResult::contaminated).sum();
    let tile = |figure: String, meaning: &str| Tile { figure, meaning: meaning.to_owned() };
    let place = |study: &StudyResult| {
        format!(
            "Part {}: scenario and raw data in its directory beside this page, fingerprint {:.12}.",
            study.name, study.fingerprint
        )
    };
    Page {
        subtitle: format!("{} · {source}; seed {}", utc(first.started_unix_s), first.seed),
        tiles: vec![
            tile(grouped(runs as u64), "runs"),
            tile(format!("{} of {runs}", runs - disturbed), "runs were made on a quiet machine"),
        ],
        warnings: study::disturbances(studies()),
        sections: own
            .into_iter()
            .chain(studies().map(every))
            .chain(studies().filter_map(study::failures_section))
            .collect(),
        facts: circumstances::facts(&first.environment),
        conditions: studies().map(place).collect(),
        command: command.to_owned(),
        ..Page::default()
    }
}
