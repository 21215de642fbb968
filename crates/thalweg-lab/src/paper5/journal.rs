//! The runs that were made, one a line, so that an interrupted preset goes on where it was.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cell::ServerCell;
use super::result::{Run, ServerCellRuns};
use crate::error::LabError;

/// A file that only grows.
pub(super) struct Journal {
    path: PathBuf,
    file: File,
}

/// A line of it.
#[derive(Serialize, Deserialize)]
enum Entry {
    /// The first: what is made.
    Begun { command: String, build: String },
    /// A run, with the number of its cell.
    Made { cell: usize, run: Box<Run> },
    /// A run without a result.
    Failed { cell: usize, reason: String },
}

impl Journal {
    /// Opens the journal in `out` and puts the runs in it that it holds for the same `command` and `build`; a journal of something else
    /// begins anew.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn open(
        out: &Path,
        command: &str,
        build: &str,
        cells: &mut [ServerCellRuns],
    ) -> Result<Journal, LabError> {
        let path = out.join("runs.jsonl");
        let text = fs::read_to_string(&path).unwrap_or_default();
        // A line that was being written when the power went is no line.
        let mut entries = text.lines().map_while(|line| serde_json::from_str(line).ok());
        let is_same = matches!(entries.next(), Some(Entry::Begun { command: known, build: of }) if known == command && of == build);
        let entries: Vec<Entry> = if is_same { entries.collect() } else { Vec::new() };
        let not_written = |error| not_written(&path, &error);
        let file = OpenOptions::new().create(true).write(true).truncate(true).open(&path).map_err(not_written)?;
        let mut journal = Journal { path: path.clone(), file };
        journal.write(&Entry::Begun { command: command.to_owned(), build: build.to_owned() })?;
        for entry in entries {
            journal.write(&entry)?;
            match entry {
                Entry::Made { cell, run } => {
                    cells.get_mut(cell).into_iter().for_each(|cell| cell.runs.push((*run).clone()))
                }
                Entry::Failed { cell, reason } => {
                    cells.get_mut(cell).into_iter().for_each(|cell| cell.failures.push(reason.clone()))
                }
                Entry::Begun { .. } => {}
            }
        }
        Ok(journal)
    }

    /// Adds a run of cell `cell`.
    pub(super) fn add(&mut self, cell: usize, run: &Run) -> Result<(), LabError> {
        self.write(&Entry::Made { cell, run: Box::new(run.clone()) })
    }

    /// Adds a run of cell `cell` that failed.
    pub(super) fn add_failure(&mut self, cell: usize, reason: &str) -> Result<(), LabError> {
        self.write(&Entry::Failed { cell, reason: reason.to_owned() })
    }

    fn write(&mut self, entry: &Entry) -> Result<(), LabError> {
        let mut line = serde_json::to_vec(entry).map_err(LabError::here)?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(|error| not_written(&self.path, &error))
    }
}

/// Cells without runs.
pub(super) fn empty(cells: Vec<ServerCell>) -> Vec<ServerCellRuns> {
    cells.into_iter().map(|cell| ServerCellRuns { cell, runs: Vec::new(), failures: Vec::new() }).collect()
}

fn not_written(path: &Path, error: &std::io::Error) -> LabError {
    LabError::Here(format!("{} cannot be written: {error}; choose another directory with --out", path.display()))
}
