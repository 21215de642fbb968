//! Run directories, whatever experiment made them: the schema of the text in them says which one it is.

use std::path::{Path, PathBuf};

use crate::benchmark::Benchmark;
use crate::error::LabError;
use crate::paper3::{HdtvStudy, Paper3Plan};
use crate::paper5::{CoapStudy, Paper5Plan};
use crate::preset;
use crate::process::{Launcher, Stop};
use crate::scenario::Scenario;
use crate::study::{self, Experiment, StudyError, StudyOutcome, StudyWatcher};
pub use crate::study::{Comparability, Comparison, FoundRun, RunSnapshot, Verification, find};

/// Does the same whichever experiment made the directory in `$path`, whose type is `$E` there: a function cannot be handed a function of any
/// type. For `verify` the first arm expands to `Some(Scenario::SCHEMA) => { type E = Scenario; study::verify::<E>(path) }`.
macro_rules! with_experiment {
    ($path:expr, $E:ident => $done:expr) => {{
        let found = study::schema_of($path)?;
        match found.as_deref() {
            Some(Scenario::SCHEMA) => {
                type $E = Scenario;
                $done
            }
            Some(CoapStudy::SCHEMA) => {
                type $E = CoapStudy;
                $done
            }
            Some(HdtvStudy::SCHEMA) => {
                type $E = HdtvStudy;
                $done
            }
            Some(Benchmark::SCHEMA) => {
                type $E = Benchmark;
                $done
            }
            _ => Err(unknown($path, found)),
        }
    }};
}

/// The results of a directory, in words.
#[derive(Clone, Debug)]
pub struct Conclusion {
    /// Tables and sentences for a terminal.
    pub text: String,
    /// The report.
    pub report: PathBuf,
    /// The content of `results.json`.
    pub json: serde_json::Value,
    /// Why the results are not what was asked for, where that is so.
    pub shortcoming: Option<String>,
}

impl Conclusion {
    /// The conclusion of results whose directory is `out`.
    fn of(out: &Path, result: &impl StudyOutcome) -> Result<Conclusion, LabError> {
        let json = serde_json::to_value(result).map_err(LabError::here)?;
        let (text, shortcoming) = (result.to_text(), result.shortcoming());
        Ok(Conclusion { text, report: out.join("report.html"), json, shortcoming })
    }
}

/// A file that describes an experiment.
#[derive(Clone, Debug)]
pub enum ExperimentFile {
    /// A scenario, and its text.
    Scenario(Box<Scenario>, String),
    /// A benchmark.
    Benchmark(Box<Benchmark>),
}

impl ExperimentFile {
    /// Reads the file in `path`.
    ///
    /// # Errors
    /// It cannot be read, or is neither; the text names the place.
    pub fn load(path: &Path) -> Result<ExperimentFile, LabError> {
        let (scenario, text) = match study::schema_in(path)?.as_deref() {
            Some(Benchmark::SCHEMA) => {
                let benchmark = Benchmark::parse(&path.display().to_string(), &study::read_text(path)?)?;
                return Ok(ExperimentFile::Benchmark(Box::new(benchmark)));
            }
            _ => Scenario::load(path)?,
        };
        Ok(ExperimentFile::Scenario(Box::new(scenario), text))
    }

    /// The experiment's name.
    pub fn name(&self) -> &str {
        match self {
            ExperimentFile::Scenario(scenario, _) => &scenario.name,
            ExperimentFile::Benchmark(benchmark) => &benchmark.name,
        }
    }
}

/// Makes all runs of the scenario with this text into the new directory `out`, with `seed` in place of its own where one is given. A cell that
/// fails is left out from then on and named in the result.
///
/// # Errors
/// The program of a peer is not there, the directory cannot be used, a process of Thalweg died or said nothing, no cell of Thalweg can be
/// measured, or `stop` was requested; then there is no result and the directory can be resumed.
pub fn run_scenario(
    scenario: (Scenario, String),
    seed: Option<u64>,
    out: &Path,
    (launcher, stop): (&Launcher, &Stop),
) -> Result<Conclusion, LabError> {
    study::run(scenario, seed, out, launcher, stop).and_then(|result| Conclusion::of(out, &result))
}

/// Makes all runs of the preset `paper3` into the new directory `out`; loud words about what is missing by `remark`. A cell that fails is
/// left out from then on and named in the result.
///
/// # Errors
/// This process may not make network namespaces, `stop` was requested, `out` holds runs already or cannot be written, or nothing at all could be measured.
pub fn run_paper3(
    plan: &Paper3Plan,
    out: &Path,
    (launcher, stop): (&Launcher, &Stop),
    remark: &dyn Fn(&str),
) -> Result<Conclusion, LabError> {
    preset::run(plan, out, launcher, stop, remark).and_then(|result| Conclusion::of(out, &result))
}

/// Makes all runs of the preset `paper5` into the new directory `out`; loud words about what is missing by `remark`. A cell that fails is
/// left out from then on and named in the result.
///
/// # Errors
/// `stop` was requested, `out` holds runs already or cannot be written, or nothing at all could be measured.
pub fn run_paper5(
    plan: &Paper5Plan,
    out: &Path,
    (launcher, stop): (&Launcher, &Stop),
    remark: &dyn Fn(&str),
) -> Result<Conclusion, LabError> {
    preset::run(plan, out, launcher, stop, remark).and_then(|result| Conclusion::of(out, &result))
}

/// Makes all runs of a benchmark into the new directory `out`.
///
/// # Errors
/// As [`run_scenario`].
pub fn run_benchmark(
    benchmark: &Benchmark,
    out: &Path,
    (launcher, stop): (&Launcher, &Stop),
) -> Result<Conclusion, LabError> {
    let text = toml::to_string(benchmark).map_err(LabError::here)?;
    study::begin((benchmark.clone(), &text), out, launcher, stop).and_then(|result| Conclusion::of(out, &result))
}

/// Makes the runs that are missing in the directory in `path`.
///
/// # Errors
/// As at the first start; and when the directory is complete already, or what it was begun with is no more what is here.
pub fn resume(path: &Path, launcher: &Launcher, stop: &Stop) -> Result<Conclusion, LabError> {
    with_experiment!(path, E => study::resume::<E>(path, launcher, stop).and_then(|result| Conclusion::of(path, &result)))
}

/// Computes all results of the directory in `path` again from its raw data.
///
/// # Errors
/// It is none, or the text that says what it measures cannot be read.
pub fn verify(path: &Path) -> Result<Verification, LabError> {
    with_experiment!(path, E => study::verify::<E>(path))
}

/// Writes the results and the report of the complete directory in `path` again from its raw data, and says where the report is.
///
/// # Errors
/// The directory is none or not complete, raw data are missing or damaged, or one of them cannot be written.
pub fn report(path: &Path) -> Result<PathBuf, LabError> {
    with_experiment!(path, E => study::rewrite::<E>(path))
}

/// Puts the complete directories `a` and `b` side by side.
///
/// # Errors
/// One of them is no result, they hold different experiments, or they were measured under different conditions and `conditions` does not
/// allow that.
pub fn compare(a: &Path, b: &Path, conditions: Comparability) -> Result<Comparison, LabError> {
    if study::schema_of(a)? != study::schema_of(b)? {
        return Err(StudyError::OtherExperiment { directories: [a.to_owned(), b.to_owned()] }.into());
    }
    with_experiment!(a, E => {
        let [one, other]: [<E as Experiment>::Result; 2] = [study::load(a)?, study::load(b)?];
        study::compare((a, E::cells_of(&one)), (b, E::cells_of(&other)), conditions)
    })
}

/// Follows a run directory while its runs are being made.
pub struct RunWatcher(Box<dyn Watch>);

impl RunWatcher {
    /// Follows the directory in `path`.
    ///
    /// # Errors
    /// It is no run directory, or the text that says what it measures cannot be read.
    pub fn new(path: &Path) -> Result<RunWatcher, LabError> {
        with_experiment!(path, E => Ok(RunWatcher(Box::new(StudyWatcher::<E>::new(path)?))))
    }

    /// How it stands now; runs that were read before are not read again.
    ///
    /// # Errors
    /// A file that was there is gone or damaged.
    pub fn look(&mut self) -> Result<RunSnapshot, LabError> {
        self.0.look()
    }
}

trait Watch {
    fn look(&mut self) -> Result<RunSnapshot, LabError>;
}

impl<E: Experiment> Watch for StudyWatcher<E> {
    fn look(&mut self) -> Result<RunSnapshot, LabError> {
        StudyWatcher::look(self)
    }
}

/// The error for a directory whose text has this schema.
fn unknown(path: &Path, found: Option<String>) -> LabError {
    let known = vec![Scenario::SCHEMA, CoapStudy::SCHEMA, HdtvStudy::SCHEMA, Benchmark::SCHEMA];
    StudyError::UnknownSchema { file: path.join("scenario.toml"), found, known }.into()
}
