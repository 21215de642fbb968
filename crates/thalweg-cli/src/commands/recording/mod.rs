//! `thalweg record` and `thalweg replay`: topics of any type in MCAP files.

mod contents;
mod record;
mod replay;
mod verify;

pub use record::{RecordOptions, record};
pub use replay::{ReplayOptions, replay};

use thalweg::Type;
use thalweg_recording::RecordingError;

use super::topic::TypeFiles;
use super::topic::find::type_of_files;
use crate::outcome::Failure;

/// Looks a type up in the files that the user names, and in installed ROS packages.
pub fn type_source(files: &TypeFiles) -> impl Fn(&str) -> Result<Option<Type>, RecordingError> {
    move |name| match type_of_files(name, files) {
        Ok(found) => Ok(found.map(|(of, _)| of)),
        Err(Failure::Usage(text) | Failure::Failed(text)) => Err(RecordingError::new(text)),
        Err(other) => Err(RecordingError::new(format!("{other:?}"))),
    }
}
