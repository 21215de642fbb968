//! Why a run directory cannot be made, read or compared.

use std::fmt;
use std::path::PathBuf;

use super::cells::CellFailure;
use super::manifest::State;

/// A failure at a run directory.
#[derive(Debug)]
pub enum StudyError {
    /// A new study was to be made where there is one.
    Taken {
        /// The directory.
        directory: PathBuf,
    },
    /// Another process makes runs there.
    InUse {
        /// The directory.
        directory: PathBuf,
    },
    /// There is no manifest.
    NoDirectory {
        /// The directory.
        directory: PathBuf,
    },
    /// The file that says what is measured has a schema that no experiment of this version has.
    UnknownSchema {
        /// The file.
        file: PathBuf,
        /// Its schema; missing where it names none.
        found: Option<String>,
        /// Those that are known.
        known: Vec<&'static str>,
    },
    /// A file has another layout than this version reads.
    OtherLayout {
        /// The file.
        file: PathBuf,
        /// Its layout.
        found: String,
        /// The layout that this version reads.
        expected: &'static str,
    },
    /// A file cannot be read.
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A file holds something else than it should.
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong in it.
        source: serde_json::Error,
    },
    /// A file cannot be written.
    NotWritten {
        /// The file.
        file: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// There is nothing left to be made.
    Complete {
        /// The directory.
        directory: PathBuf,
    },
    /// The results are not there yet.
    Incomplete {
        /// The directory.
        directory: PathBuf,
        /// What it is instead of complete.
        state: State,
    },
    /// What results depend on has changed since the first run.
    OtherConditions {
        /// The directory.
        directory: PathBuf,
        /// What has changed.
        name: String,
        /// What it was.
        before: String,
        /// What it is.
        now: String,
    },
    /// Two directories were measured under different conditions.
    Incomparable {
        /// The directories.
        directories: [PathBuf; 2],
        /// Name and both values of what differs.
        differences: Vec<(String, String, String)>,
    },
    /// Two directories hold different experiments.
    OtherExperiment {
        /// The directories.
        directories: [PathBuf; 2],
    },
    /// The program to compare with is not there.
    NoOtherBuild {
        /// The program.
        program: PathBuf,
    },
    /// A cell lacks runs.
    TooFewRuns {
        /// The directory.
        directory: PathBuf,
        /// The cell in words.
        cell: String,
        /// Its runs.
        found: usize,
        /// The runs that it needs.
        needed: usize,
    },
    /// All cells failed.
    NothingMeasured {
        /// Why.
        failures: Vec<CellFailure>,
    },
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StudyError::Taken { directory } => {
                let shown = directory.display();
                write!(
                    f,
                    "{shown} holds a run already: choose another directory with --out, or `thalweg lab resume {shown}`"
                )
            }
            StudyError::InUse { directory } => {
                write!(f, "{} is in use: another process makes its runs", directory.display())
            }
            StudyError::NoDirectory { directory } => write!(
                f,
                "{} is no run directory: it has no manifest.json; `thalweg lab list` shows those that are there",
                directory.display()
            ),
            StudyError::UnknownSchema { file, found, known } => {
                let found =
                    found.as_ref().map_or_else(|| "no schema".to_owned(), |found| format!("the schema {found:?}"));
                write!(f, "{} has {found}; this version knows {}", file.display(), known.join(", "))
            }
            StudyError::OtherLayout { file, found, expected } => {
                write!(f, "{}: the schema is {found:?} where {expected:?} was expected", file.display())
            }
            StudyError::Unreadable { file, source } => write!(f, "{} cannot be read: {source}", file.display()),
            StudyError::Damaged { file, source } => write!(f, "{} is damaged: {source}", file.display()),
            StudyError::NotWritten { file, source } => write!(
                f,
                "{} cannot be written: {source}; make room or choose another directory with --out",
                file.display()
            ),
            StudyError::Complete { directory } => {
                let shown = directory.display();
                write!(f, "{shown} is complete; `thalweg lab verify {shown}` checks it")
            }
            StudyError::Incomplete { directory, state } => {
                let shown = directory.display();
                write!(
                    f,
                    "{shown} is no result: it is {state}; `thalweg lab resume {shown}` makes the runs that are missing"
                )
            }
            StudyError::OtherConditions { directory, name, before, now } => write!(
                f,
                "{} was begun under other conditions: {name} was {before} and is {now}; runs of both would not belong together",
                directory.display()
            ),
            StudyError::Incomparable { directories: [a, b], differences } => {
                let told: Vec<String> =
                    differences.iter().map(|(name, a, b)| format!("{name}: {a} against {b}")).collect();
                write!(
                    f,
                    "{} and {} were measured under different conditions ({}); --force shows them side by side all the same",
                    a.display(),
                    b.display(),
                    told.join("; ")
                )
            }
            StudyError::OtherExperiment { directories: [a, b] } => {
                write!(f, "{} and {} hold different experiments", a.display(), b.display())
            }
            StudyError::NoOtherBuild { program } => {
                write!(f, "the program to compare with, {}, is not there", program.display())
            }
            StudyError::TooFewRuns { directory, cell, found, needed } => write!(
                f,
                "the cell {cell} has {found} of {needed} runs; `thalweg lab resume {}` makes the rest",
                directory.display()
            ),
            StudyError::NothingMeasured { failures } => {
                let reasons: Vec<String> = failures.iter().map(CellFailure::to_string).collect();
                write!(f, "no cell has a result: {}", reasons.join("; "))
            }
        }
    }
}

impl std::error::Error for StudyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StudyError::Unreadable { source, .. } | StudyError::NotWritten { source, .. } => Some(source),
            StudyError::Damaged { source, .. } => Some(source),
            _ => None,
        }
    }
}
