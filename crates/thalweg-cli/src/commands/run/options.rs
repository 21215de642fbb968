//! Options that several presets have.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Serialize;
use thalweg_lab::PartResult;
use thalweg_lab::directories::find;
use thalweg_lab::peers::PeerProgram;

use crate::commands::laboratory::not_written;
use crate::outcome::{Failure, print_either, print_place, remark};

/// Options that every preset has.
#[derive(Args, Debug)]
pub struct PresetOptions {
    /// Write report.html, results.json and what else the preset makes into DIRECTORY, which is made if it is missing (default: the
    /// preset's name in the current directory).
    #[arg(long, value_name = "DIRECTORY")]
    pub out: Option<PathBuf>,

    /// Shuffle the turns by S, to repeat the order of an earlier run (default: the time of day; the results name it).
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,

    /// Print the results as one JSON object instead of tables (default: tables).
    #[arg(long)]
    pub json: bool,
}

/// Where the programs of other middleware lie.
#[derive(Args, Debug)]
pub struct PeerFolder {
    /// Look for the peers' programs in DIRECTORY (default: the folder that THALWEG_PEERS names, else target/peers beside this program or
    /// in the current directory; `thalweg lab peers install` sets them up).
    #[arg(long, value_name = "DIRECTORY")]
    pub peer_dir: Option<PathBuf>,
}

impl PresetOptions {
    /// The folder of the results, which is there then.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn folder(&self, preset: &str) -> Result<PathBuf, Failure> {
        let folder = self.out.clone().unwrap_or_else(|| PathBuf::from(preset));
        std::fs::create_dir_all(&folder).map_err(|error| not_written(&folder, &error))?;
        Ok(folder)
    }

    /// The seed that is given, or one of the time of day.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs()))
    }

    /// The seed of the parts that `folder` holds already, which is told, or else that of [`PresetOptions::seed`].
    pub fn seed_in(&self, folder: &Path) -> u64 {
        let known = find(folder).into_iter().find_map(|found| found.manifest.ok()).map(|manifest| manifest.seed);
        let Some(seed) = known else { return self.seed() };
        remark(format_args!("The seed is {seed}, that of the runs that {} holds already.", folder.display()));
        seed
    }

    /// Writes the files of a result, prints the result, and says where the report is.
    ///
    /// # Errors
    /// A file or standard output cannot be written.
    pub fn conclude(
        &self,
        folder: &Path,
        result: &impl Serialize,
        (page, text): (String, String),
    ) -> Result<(), Failure> {
        let json = serde_json::to_string_pretty(result).map_err(Failure::from_cause)?;
        write(&folder.join("report.html"), &page)?;
        write(&folder.join("results.json"), &json)?;
        print_either(self.json, result, text.trim_end())?;
        print_place(self.json, format_args!("\nReport: {}", folder.join("report.html").display()))
    }
}

/// Writes a file.
///
/// # Errors
/// It cannot be written.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| not_written(path, &error))
}

/// A parser of the names of peers, and of `none`.
pub fn peer_names(names: impl IntoIterator<Item = &'static str>) -> PossibleValuesParser {
    PossibleValuesParser::new(names.into_iter().chain([NONE]))
}

/// The peers that `given` names: nothing given is `default`, `none` alone is no peer.
///
/// # Errors
/// `none` stands beside others.
pub fn chosen(given: &[String], default: &[&str]) -> Result<Vec<String>, Failure> {
    match given {
        [] => Ok(default.iter().map(|name| (*name).to_owned()).collect()),
        [none] if none == NONE => Ok(Vec::new()),
        names if names.iter().any(|name| name == NONE) => {
            Err(Failure::Usage("--peers none stands alone; leave it out to name peers".to_owned()))
        }
        names => Ok(names.to_vec()),
    }
}

/// The peers that `given` names, or these, whose programs are there, and the others.
///
/// # Errors
/// As [`chosen`].
pub fn set_up(
    given: &[String],
    default: &[PeerProgram],
    folder: Option<&Path>,
) -> Result<(Vec<PeerProgram>, Vec<PeerProgram>), Failure> {
    let default: Vec<&str> = default.iter().map(|peer| peer.name()).collect();
    let wanted = chosen(given, &default)?.into_iter().filter_map(|name| PeerProgram::parse(&name));
    Ok(wanted.partition(|peer| peer.find(folder).is_some()))
}

/// Fails where cells of these parts have no result.
///
/// # Errors
/// So many failed.
pub fn failed_cells(parts: &[PartResult]) -> Result<(), Failure> {
    match parts.iter().map(|part| part.study.failures.len()).sum() {
        0 => Ok(()),
        failed => Err(Failure::Failed(format!("{failed} cells have no result because they failed"))),
    }
}

/// A factor on the numbers of a paper.
pub fn scale(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(scale) if scale > 0.0 && scale <= 1.0 => Ok(scale),
        _ => Err("not a factor above 0 and at most 1; give one such as 0.01".to_owned()),
    }
}

const NONE: &str = "none";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_those_that_are_named_or_none() {
        let check = |given: &[&str]| {
            let given: Vec<String> = given.iter().map(|name| (*name).to_owned()).collect();
            chosen(&given, &["cyclone", "zenoh"])
        };
        assert_eq!(check(&[]).expect("allowed"), ["cyclone", "zenoh"]);
        assert_eq!(check(&["none"]).expect("allowed"), Vec::<String>::new());
        assert_eq!(check(&["zenoh", "dust"]).expect("allowed"), ["zenoh", "dust"]);
        assert!(matches!(check(&["none", "dust"]), Err(Failure::Usage(text)) if text.contains("stands alone")));
    }

    #[test]
    fn parts_that_are_there_keep_their_seed() {
        let folder = std::env::temp_dir().join(format!("thalweg-seed-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("search")).expect("a folder");
        let options = PresetOptions { out: None, seed: Some(6), json: false };
        assert_eq!(options.seed_in(&folder), 6);
        let manifest = serde_json::json!({
            "schema": "thalweg.run/1", "state": "interrupted", "name": "x", "seed": 5, "runs_planned": 8, "runs_done": 3,
            "started_unix_s": 0, "changed_unix_s": 0, "environment": thalweg_lab::host::Environment::read(),
            "fingerprint": { "id": "", "parts": {} }
        });
        std::fs::write(folder.join("search/manifest.json"), manifest.to_string()).expect("written");
        let kept = options.seed_in(&folder);
        std::fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(kept, 5, "whatever is asked for");
    }

    #[test]
    fn scales_are_possible_ones() {
        assert_eq!(scale("0.5"), Ok(0.5));
        assert!(scale("0").is_err() && scale("2").is_err() && scale("NaN").is_err());
    }
}
