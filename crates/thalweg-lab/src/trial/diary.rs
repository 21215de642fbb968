//! The seconds of a run that is being made, for those who watch it; the result holds them in the end.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::LabError;
use crate::host::SecondConditions;
use thalweg_lab_station::not_written;

/// A file that grows by a line a second and goes with the end of the run.
pub(super) struct Diary {
    path: PathBuf,
    file: File,
}

impl Diary {
    pub(super) fn create(folder: &Path) -> Result<Diary, LabError> {
        let path = folder.join(FILE);
        let file = File::create(&path).map_err(|error| LabError::from(not_written(&path, &error)))?;
        Ok(Diary { path, file })
    }

    pub(super) fn note(&mut self, second: &SecondConditions) -> Result<(), LabError> {
        let line = serde_json::to_string(second).map_err(LabError::here)?;
        writeln!(self.file, "{line}").map_err(|error| LabError::from(not_written(&self.path, &error)))
    }

    pub(super) fn close(self) -> Result<(), LabError> {
        fs::remove_file(&self.path).map_err(|error| LabError::from(not_written(&self.path, &error)))
    }
}

/// The seconds so far; a line that is just being written does not count.
pub(crate) fn load(folder: &Path) -> Vec<SecondConditions> {
    let text = fs::read_to_string(folder.join(FILE)).unwrap_or_default();
    text.lines().map_while(|line| serde_json::from_str(line).ok()).collect()
}

const FILE: &str = "seconds.jsonl";
