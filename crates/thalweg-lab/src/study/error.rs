//! Why a run directory cannot be made, read or compared.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::cells::CellFailure;
use super::manifest::State;

/// A failure at a run directory.
#[derive(Debug, Error)]
pub enum StudyError {
    /// A new study was to be made where there is one.
    #[error(
        "{0} holds a run already: choose another directory with --out, or `thalweg lab resume {0}`", directory.display()
    )]
    Taken { directory: PathBuf },
    #[error("{} is in use: another process makes its runs", directory.display())]
    InUse { directory: PathBuf },
    #[error(
        "{} is no run directory: it has no manifest.json; `thalweg lab list` shows those that are there",
        directory.display()
    )]
    NoDirectory { directory: PathBuf },
    /// The file that says what is measured has a schema that no experiment of this version has, or none.
    #[error("{} has {}; this version knows {}", file.display(), shown(found.as_ref()), known.join(", "))]
    UnknownSchema { file: PathBuf, found: Option<String>, known: Vec<&'static str> },
    #[error("{}: the schema is {found:?} where {expected:?} was expected", file.display())]
    OtherLayout { file: PathBuf, found: String, expected: &'static str },
    #[error("{} cannot be read: {source}", file.display())]
    Unreadable { file: PathBuf, source: io::Error },
    #[error("{} is damaged: {source}", file.display())]
    Damaged { file: PathBuf, source: serde_json::Error },
    #[error("{} cannot be written: {source}; make room or choose another directory with --out", file.display())]
    NotWritten { file: PathBuf, source: io::Error },
    /// There is nothing left to be made.
    #[error("{0} is complete; `thalweg lab verify {0}` checks it", directory.display())]
    Complete { directory: PathBuf },
    /// The results are not there yet.
    #[error(
        "{0} is no result: it is {state}; `thalweg lab resume {0}` makes the runs that are missing", directory.display()
    )]
    Incomplete { directory: PathBuf, state: State },
    /// What results depend on has changed since the first run.
    #[error(
        "{} was begun under other conditions: {name} was {before} and is {now}; runs of both would not belong together: choose another \
         directory with --out, or go back to the same options and programs",
        directory.display()
    )]
    OtherConditions { directory: PathBuf, name: String, before: String, now: String },
    /// Two directories were measured under different conditions: name and both values of what differs.
    #[error(
        "{} and {} were measured under different conditions ({}); --force shows them side by side all the same",
        directories[0].display(), directories[1].display(), told(differences)
    )]
    Incomparable { directories: [PathBuf; 2], differences: Vec<(String, String, String)> },
    #[error("{} and {} hold different experiments", directories[0].display(), directories[1].display())]
    OtherExperiment { directories: [PathBuf; 2] },
    #[error("the program to compare with, {}, is not there", program.display())]
    NoOtherBuild { program: PathBuf },
    #[error(
        "the cell {cell} has {found} of {needed} runs; `thalweg lab resume {}` makes the rest", directory.display()
    )]
    TooFewRuns { directory: PathBuf, cell: String, found: usize, needed: usize },
    /// All cells failed.
    #[error("no cell has a result: {}", failures.iter().map(CellFailure::to_string).collect::<Vec<_>>().join("; "))]
    NothingMeasured { failures: Vec<CellFailure> },
}

fn shown(schema: Option<&String>) -> String {
    schema.map_or_else(|| "no schema".to_owned(), |found| format!("the schema {found:?}"))
}

fn told(differences: &[(String, String, String)]) -> String {
    let told = |(name, a, b): &(String, String, String)| format!("{name}: {a} against {b}");
    differences.iter().map(told).collect::<Vec<_>>().join("; ")
}
