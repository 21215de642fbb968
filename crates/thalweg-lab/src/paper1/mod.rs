//! Paper 1: transmission methods for three kinds of data, measured as it did beside other vendors' programs.
//!
//! The parts are [benchmarks](crate::benchmark), each in a directory of its own: a search for each method's best settings, Tables 2 and 3
//! on one host, the same over a link of 1 Gbit/s and over one that loses frames, and Table 4.

mod claims;
mod paper;
mod plan;
mod presentation;
mod search;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use plan::{PART_NAMES, Paper1Plan, UNLIMITED};
pub use presentation::{page, to_text};

use crate::benchmark::{Benchmark, BenchmarkResult, ContenderPlan};
use crate::error::LabError;
use crate::parts::take_up;
use crate::process::{Launcher, Stop};
use crate::profile::Profile;

/// The whole result; `results.json` is this.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paper1Result {
    /// Layout of this object: `thalweg.paper1/2`.
    pub schema: String,
    /// The command that makes such a result.
    pub command: String,
    /// The parts in their order, by name.
    pub parts: Vec<(String, BenchmarkResult)>,
    /// Each method with the settings that its tables were measured with.
    pub found: Vec<ContenderPlan>,
    /// What the paper or the options ask for and was not measured, with the reason.
    pub left_out: Vec<String>,
    /// The best settings, for programs to load.
    pub profile: Profile,
}

impl Paper1Result {
    /// The only layout there is so far.
    pub const SCHEMA: &'static str = "thalweg.paper1/2";

    /// The results of the part of this name.
    pub(crate) fn part(&self, name: &str) -> Option<&BenchmarkResult> {
        self.parts.iter().find(|(known, _)| known == name).map(|(_, result)| result)
    }

    /// Failures of Thalweg's own contenders.
    pub fn failures(&self) -> Vec<String> {
        let of = |(name, part): &(String, BenchmarkResult)| {
            part.failures_of_ours().into_iter().map(|text| format!("{name}: {text}")).collect::<Vec<_>>()
        };
        self.parts.iter().flat_map(of).collect()
    }
}

/// Makes the runs of all parts in directories below `out`, which are taken up where they were.
///
/// # Errors
/// A part cannot be measured, or `stop` was requested; a second call goes on from there.
pub fn run(plan: &Paper1Plan, out: &Path, launcher: &Launcher, stop: &Stop) -> Result<Paper1Result, LabError> {
    let mut parts: Vec<(String, BenchmarkResult)> = Vec::new();
    let mut found = search::defaults();
    for name in plan.parts() {
        let benchmark = plan.benchmark(name, &found);
        let text = toml::to_string(&benchmark).map_err(LabError::here)?;
        let result = take_up::<Benchmark>(name, &text, out, (launcher, stop))?;
        if name == plan::SEARCH {
            found = search::found(&result);
        }
        parts.push((name.to_owned(), result));
    }
    let Some((_, first)) = parts.first() else { return Err(LabError::Here("no part was asked for".to_owned())) };
    Ok(Paper1Result {
        schema: Paper1Result::SCHEMA.to_owned(),
        command: plan.command(),
        profile: search::profile(
            &found,
            first,
            parts.iter().find(|(name, _)| name == plan::TABLES).map(|(_, part)| part),
        ),
        left_out: plan.left_out.clone(),
        parts,
        found,
    })
}

#[cfg(test)]
mod tests;
