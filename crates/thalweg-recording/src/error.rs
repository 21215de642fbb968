//! Why a recording cannot be made or read.

use std::fmt;

/// The reason in words for the user, with the file it is about.
#[derive(Debug)]
pub struct RecordingError(String);

impl RecordingError {
    /// An error in these words.
    pub fn new(text: impl fmt::Display) -> RecordingError {
        RecordingError(text.to_string())
    }

    /// What went wrong with a file.
    pub fn of_file(path: &std::path::Path, cause: impl fmt::Display) -> RecordingError {
        RecordingError(format!("{}: {cause}", path.display()))
    }

    /// What went wrong in a file, where the system's reason says more than that there is one.
    pub(crate) fn of_content(path: &std::path::Path, error: mcap::McapError) -> RecordingError {
        match error {
            mcap::McapError::Io(cause) => RecordingError::of_file(path, cause),
            other => RecordingError::of_file(path, other),
        }
    }
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RecordingError {}
