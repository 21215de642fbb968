//! `thalweg lab profile`: from rate, size, deadline and budget to the settings that measurements on the user's machine support, for Thalweg
//! and for other vendors' middleware.
//!
//! [`ProfileGoal`] says what is needed and makes the scenario of the ways that could serve; [`ProfileChoice`] says of each what the runs
//! prove; [`files`] writes the settings of the chosen one.

mod choice;
mod files;
mod goal;
#[cfg(test)]
mod tests;
mod vendors;

use std::path::{Path, PathBuf};

use crate::error::LabError;
use crate::parts::Part;
use crate::process::{Launcher, Stop};

pub use choice::{Fitness, MeasuredWay, ProfileChoice};
pub use files::files;
pub use goal::{LossTolerance, MeasuringPlace, ProfileGoal, StudyForm, WAYS};

/// Measures the ways by a scenario with this text and returns its directory, `study` in the folder `out`; runs that are there already are
/// not made again.
///
/// # Errors
/// The runs have no result, or cannot be written.
pub fn measure(text: &str, out: &Path, (launcher, stop): (&Launcher, &Stop)) -> Result<PathBuf, LabError> {
    let part = Part { name: "study", title: "The ways that could serve", text: text.to_owned() };
    part.measure(out, launcher, stop)?;
    Ok(out.join(part.name))
}
