//! The page of any results that the lab has written.

use std::path::Path;

use serde::Deserialize;

use crate::benchmark::{self, BenchmarkResult};
use crate::error::LabError;
use crate::paper1::{self, Paper1Result};
use crate::paper2::{self, Paper2Result};
use crate::paper3::Paper3Result;
use crate::paper4::{self, Paper4Result};
use crate::paper5::Paper5Result;
use crate::preset;
use crate::report::Page;
use crate::study::{self, StudyResult, load_json};

/// Members common to every file of results.
#[derive(Deserialize)]
struct Head {
    schema: String,
    /// Of a scenario.
    name: Option<String>,
}

/// The page of the results in `file`, and a name for its files; of a scenario as much as it holds without raw data, of `paper2`
/// and `paper4` with the distributions where the run directories lie beside them.
///
/// # Errors
/// The file cannot be read, or holds no results of a preset or a scenario.
pub fn load(file: &Path) -> Result<(String, Page), LabError> {
    let head: Head = load_json(file)?;
    match head.schema.as_str() {
        Paper1Result::SCHEMA => Ok(("paper1".to_owned(), paper1::page(&load_json(file)?))),
        Paper2Result::SCHEMA => Ok(("paper2".to_owned(), paper2::page(&paper2::load(file)?))),
        Paper3Result::SCHEMA => Ok(("paper3".to_owned(), preset::page(&load_json::<Paper3Result>(file)?))),
        Paper4Result::SCHEMA => Ok(("paper4".to_owned(), paper4::page(&paper4::load(file)?))),
        Paper5Result::SCHEMA => Ok(("paper5".to_owned(), preset::page(&load_json::<Paper5Result>(file)?))),
        BenchmarkResult::SCHEMA => {
            let result: BenchmarkResult = load_json(file)?;
            Ok((result.plan.name.clone(), benchmark::page(&result)))
        }
        StudyResult::SCHEMA => Ok((head.name.unwrap_or_default(), study::page(&load_json(file)?))),
        other => Err(LabError::Here(format!(
            "{} holds {other:?}, which has no page; pages show {}",
            file.display(),
            SCHEMAS.join(", ")
        ))),
    }
}

const SCHEMAS: [&str; 7] = [
    Paper1Result::SCHEMA,
    Paper2Result::SCHEMA,
    Paper3Result::SCHEMA,
    Paper4Result::SCHEMA,
    Paper5Result::SCHEMA,
    BenchmarkResult::SCHEMA,
    StudyResult::SCHEMA,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_refused(name: &str, text: &str, expect: &str) {
        let file = std::env::temp_dir().join(format!("thalweg-pages-{}-{name}.json", std::process::id()));
        std::fs::write(&file, text).expect("written");
        let error = load(&file).expect_err("refused").to_string();
        std::fs::remove_file(&file).expect("removed");
        assert!(error.contains(expect) && error.contains(name), "{error}");
    }

    #[test]
    fn files_without_results_are_refused() {
        check_refused("none", "[]", "is damaged");
        check_refused("other", "{\"schema\": \"thalweg.perf/1\"}", "holds \"thalweg.perf/1\", which has no page");
        check_refused("half", "{\"schema\": \"thalweg.results/1\", \"name\": \"x\"}", "missing field");
    }
}
