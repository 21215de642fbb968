//! `thalweg lab run FILE`, and the commands on the directory that it makes.

use std::path::{Path, PathBuf};

use clap::Args;
use thalweg_lab::directories::{self, Conclusion};
use thalweg_lab::process::{Launcher, Stop};
use thalweg_lab::scenario::Scenario;
use thalweg_lab::study::Comparability;

use super::laboratory::{WORKER, from_lab};
use super::preset::{PRESETS, RunOptions};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_line, remark};

/// Options of `lab list`.
#[derive(Args, Debug)]
pub struct DirectoryListOptions {
    /// List the run directories in FOLDER.
    #[arg(value_name = "FOLDER", default_value = ".", hide_default_value = true)]
    pub folder: PathBuf,
}

/// Options of the commands that work on one run directory.
#[derive(Args, Debug)]
pub struct DirectoryOptions {
    /// The directory that `lab run FILE` made.
    #[arg(value_name = "DIRECTORY")]
    pub directory: PathBuf,
}

/// Options of `lab resume`.
#[derive(Args, Debug)]
pub struct ResumeOptions {
    /// The directory that `lab run FILE` made.
    #[arg(value_name = "DIRECTORY")]
    pub directory: PathBuf,

    /// Look for the peers' programs in DIRECTORY, as at the first start (default: as `lab run` looks for them).
    #[arg(long, value_name = "DIRECTORY")]
    pub peer_dir: Option<PathBuf>,

    /// Show the agents the key in FILE (default: thalweg/lab.key in the folder of your settings, ~/.config).
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
}

/// Options of `lab compare`.
#[derive(Args, Debug)]
pub struct CompareOptions {
    /// The first directory.
    #[arg(value_name = "A")]
    pub a: PathBuf,

    /// The second directory.
    #[arg(value_name = "B")]
    pub b: PathBuf,

    /// Show both although scenario, program, kernel, CPU or settings differ, and say in what (default: refuse).
    #[arg(long)]
    pub force: bool,
}

/// Makes all runs of the scenario in `file` and prints the results.
///
/// # Errors
/// The scenario cannot be run or has no result, or one of its expectations does not hold.
pub fn run(file: &Path, options: &RunOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    run_scenario(load(file, options)?, options, interrupt)
}

/// The scenario in `file`, with the other build of `--against`.
pub(super) fn load(file: &Path, options: &RunOptions) -> Result<(Scenario, String), Failure> {
    let scenario = Scenario::load(file).map_err(|error| Failure::Usage(error.to_string()))?;
    against(scenario, options)
}

/// The same scenario with the other build of `--against`, where one is given.
pub(super) fn against(
    (scenario, text): (Scenario, String),
    options: &RunOptions,
) -> Result<(Scenario, String), Failure> {
    let Some(program) = &options.against else { return Ok((scenario, text)) };
    if scenario.against.is_some() {
        return Err(Failure::Usage("--against is given, and the scenario names another build itself".to_owned()));
    }
    let program = std::fs::canonicalize(program)
        .map_err(|error| Failure::Usage(format!("--against {}: {error}", program.display())))?;
    let text = Scenario::text_against(&text, &program);
    let scenario = Scenario::parse("--against", &text).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok((scenario, text))
}

/// Makes all runs of a scenario and prints the results.
///
/// # Errors
/// As [`run`].
pub(super) fn run_scenario(
    (scenario, text): (Scenario, String),
    options: &RunOptions,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let out = options.out.as_deref();
    let out = out.map_or_else(|| PathBuf::from(&scenario.name), Path::to_path_buf);
    remark(format_args!(
        "{}: {} cells, {} runs each, about {} s; into {}",
        scenario.name,
        scenario.cells.len(),
        scenario.schedule.runs.min,
        scenario.duration().as_secs(),
        out.display()
    ));
    if cfg!(debug_assertions) && scenario.cells.iter().any(|cell| cell.middleware.peer().is_some()) {
        remark("This is a debug build, and the peers' programs are not: their figures do not compare with Thalweg's.");
    }
    let launcher = launcher(options.peer_dir.as_deref(), options.key.clone())?;
    let stop = Stop::watching(interrupt.flag());
    conclude(&out, directories::run_scenario((scenario, text), options.seed, &out, (&launcher, &stop)))
}

/// Makes the missing runs of a directory and prints the results.
///
/// # Errors
/// As [`run`]; or the directory is complete, none, or was begun under other conditions.
pub fn resume(options: &ResumeOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let launcher = launcher(options.peer_dir.as_deref(), options.key.clone())?;
    let result = directories::resume(&options.directory, &launcher, &Stop::watching(interrupt.flag()));
    conclude(&options.directory, result)
}

/// Starts this program's own processes, and peers' from `folder` where one is given; agents are shown the key in `key`.
pub(super) fn launcher(folder: Option<&Path>, key: Option<PathBuf>) -> Result<Launcher, Failure> {
    let launcher = Launcher::this_program(WORKER).map_err(from_lab)?;
    Ok(launcher.with_peers_in(folder.map(Path::to_path_buf)).with_key_in(key))
}

pub(super) fn conclude(out: &Path, result: Result<Conclusion, thalweg_lab::LabError>) -> Result<(), Failure> {
    let conclusion = result.map_err(|error| {
        if directories::find(out).iter().any(|found| found.path == out) {
            remark(format_args!("There is no result yet; `thalweg lab resume {}` goes on.", out.display()));
        }
        from_lab(error)
    })?;
    print_line(conclusion.text.trim_end())?;
    print_line(format_args!("\nReport: {}", conclusion.report.display()))?;
    conclusion.shortcoming.map_or(Ok(()), |reason| Err(Failure::Failed(reason)))
}

/// Prints the presets and the run directories in a folder.
///
/// # Errors
/// Standard output cannot be written.
pub fn list(options: &DirectoryListOptions) -> Result<(), Failure> {
    print_line(format_args!("Presets: {}", PRESETS.join(", ")))?;
    let found = directories::find(&options.folder);
    if found.is_empty() {
        return print_line(format_args!("No run directories in {}", options.folder.display()));
    }
    for found in found {
        let runs = found.manifest.as_ref().map_or_else(
            |_| String::new(),
            |manifest| format!("  {}  {} of {} runs", manifest.name, manifest.runs_done, manifest.runs_planned),
        );
        print_line(format_args!("{}{runs}  {}", found.path.display(), found.state()))?;
    }
    Ok(())
}

/// Checks a directory against its raw data.
///
/// # Errors
/// The results differ from the raw data, or there are none yet.
pub fn verify(options: &DirectoryOptions) -> Result<(), Failure> {
    let verification = directories::verify(&options.directory).map_err(from_lab)?;
    if verification.faults.is_empty() {
        return print_line(format_args!("{} runs and the results agree with their raw data", verification.runs));
    }
    Err(Failure::Failed(verification.faults.join("\n")))
}

/// Writes the report of a directory again from its raw data.
///
/// # Errors
/// It is not complete, its raw data are damaged, or the report cannot be written.
pub fn report(options: &DirectoryOptions) -> Result<(), Failure> {
    let report = directories::report(&options.directory).map_err(from_lab)?;
    print_line(format_args!("Report: {}", report.display()))
}

/// Prints two directories side by side.
///
/// # Errors
/// One of them is no result, or their conditions differ and --force is not given.
pub fn compare(options: &CompareOptions) -> Result<(), Failure> {
    let conditions = if options.force { Comparability::Any } else { Comparability::Same };
    let comparison = directories::compare(&options.a, &options.b, conditions).map_err(from_lab)?;
    for (name, a, b) in &comparison.conditions {
        print_line(format_args!("DIFFERENT {name}: {a} in A, {b} in B"))?;
    }
    for cell in &comparison.unpaired {
        print_line(format_args!("UNPAIRED {cell}"))?;
    }
    print_line(comparison.table().to_text().trim_end())
}
