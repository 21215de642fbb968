//! `thalweg lab`: experiments with a report.

use std::path::Path;

use clap::{Args, Subcommand};
use thalweg_lab::LabError;
use thalweg_lab::process::{Launcher, Stop};
use thalweg_lab::quick::{self, QuickPlan};

use super::agent::{self, AgentOptions};
use super::page::{self, PageOptions};
use super::peers::{self, PeersOptions};
use super::run::{self, RunOptions};
use super::study::{self, CompareOptions, DirectoryListOptions, ReportOptions, ResumeOptions, VerifyOptions};
use super::top::{self, TopOptions};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_either, print_place, remark};

/// Runs experiments and writes reports.
#[derive(Args, Debug)]
#[command(after_help = crate::after_help!("thalweg lab quick"))]
pub struct LaboratoryOptions {
    /// The subcommand.
    #[command(subcommand)]
    pub experiment: Experiment,
}

/// The experiments.
#[derive(Debug, Subcommand)]
pub enum Experiment {
    /// Moves three kinds of data between separate processes on this host: bursts of small samples, 5 MiB at once, and a bulk
    /// transfer beside an urgent topic. Takes about a minute.
    #[command(after_help = crate::after_help!("thalweg lab quick --out /tmp/first-report"))]
    Quick(QuickOptions),
    /// Runs a preset, each with options of its own, or a scenario file.
    #[command(after_help = crate::after_help!(
        "thalweg lab run scenario.toml --out /tmp/scenario",
        "thalweg lab run scenario.toml --against /tmp/before/thalweg",
        "thalweg lab run paper1 --quick --peers none --out /tmp/paper1",
        "thalweg lab run paper4 --quick"
    ))]
    Run(RunOptions),
    /// Draws a page of Markdown, and on request the report, from the results of an earlier run of a preset or scenario.
    #[command(after_help = crate::after_help!(
        "thalweg lab page results.json --out docs/results/paper1.md",
        "thalweg lab page paper4/results.json --findings findings.md"
    ))]
    Page(PageOptions),
    /// Lists and builds the programs that measure other middleware.
    #[command(after_help = crate::after_help!("thalweg lab peers list", "thalweg lab peers install cyclone"))]
    Peers(PeersOptions),
    /// Lists the presets with the time that they take here and what this machine leaves out, and the run directories in a folder with
    /// their states.
    #[command(after_help = crate::after_help!("thalweg lab list /tmp", "thalweg lab list --json"))]
    List(DirectoryListOptions),
    /// Makes the runs that a directory of `lab run FILE` lacks because it was interrupted or failed.
    #[command(after_help = crate::after_help!("thalweg lab resume /tmp/scenario"))]
    Resume(ResumeOptions),
    /// Computes the results of a directory of `lab run FILE` again from its raw data, and reports missing and different results.
    #[command(after_help = crate::after_help!("thalweg lab verify /tmp/scenario"))]
    Verify(VerifyOptions),
    /// Writes the report of a directory of `lab run FILE` again from its raw data.
    #[command(after_help = crate::after_help!("thalweg lab report /tmp/scenario"))]
    Report(ReportOptions),
    /// Shows the progress of a directory of `lab run FILE` while its runs are being made: the present run with the fates and
    /// latencies of its samples so far and the other load on the machine, and the results of each cell's complete runs. Ends when the runs do.
    #[command(after_help = crate::after_help!("thalweg lab top /tmp/scenario", "thalweg lab top /tmp/scenario --once --json"))]
    Top(TopOptions),
    /// Lets this machine take part in a scenario that runs elsewhere: starts, relays and ends processes here for the controller, which
    /// starts this command itself, as `ssh user@lab2 thalweg lab agent --stdio`.
    #[command(after_help = crate::after_help!("thalweg lab agent --stdio"))]
    Agent(AgentOptions),
    /// Shows the figures of two directories of `lab run FILE` side by side, without a verdict, because their runs took no turns; `lab run
    /// FILE --against PROGRAM` compares two builds.
    #[command(after_help = crate::after_help!("thalweg lab compare /tmp/before /tmp/after --force"))]
    Compare(CompareOptions),
}

/// Options of `lab quick`.
#[derive(Args, Debug)]
pub struct QuickOptions {
    /// Write report.html and report.json into DIRECTORY, which is made if it is missing (default: the current directory).
    #[arg(long, value_name = "DIRECTORY", default_value = ".", hide_default_value = true)]
    pub out: std::path::PathBuf,

    /// Make at most N runs of each kind of burst; 20 as in the paper, 100 for a 90th percentile (default: 100).
    #[arg(long, value_name = "N", default_value_t = 100, hide_default_value = true, value_parser = clap::value_parser!(u64).range(3..=10_000))]
    pub runs: u64,

    /// Length in seconds of each of the eight phases of the background experiment; short ones are for tests of this command.
    #[arg(long, value_name = "SECONDS", hide = true, value_parser = crate::parse::seconds)]
    pub phase: Option<std::time::Duration>,

    /// Print the results as one JSON object instead of tables (default: tables).
    #[arg(long)]
    pub json: bool,
}

/// Runs the chosen experiment, prints its tables and writes its report.
///
/// # Errors
/// The experiment has no result, or the report cannot be written.
pub fn run(options: &LaboratoryOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    match &options.experiment {
        Experiment::Quick(options) => run_quick(options, interrupt),
        Experiment::Run(options) => run::run(options, interrupt),
        Experiment::Page(options) => page::run(options),
        Experiment::Peers(options) => peers::run(options),
        Experiment::List(options) => study::list(options),
        Experiment::Resume(options) => study::resume(options, interrupt),
        Experiment::Verify(options) => study::verify(options),
        Experiment::Report(options) => study::report(options),
        Experiment::Top(options) => top::run(options, interrupt),
        Experiment::Agent(options) => agent::run(options, interrupt),
        Experiment::Compare(options) => study::compare(options),
    }
}

fn run_quick(options: &QuickOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    // A directory that cannot be made is better known before the minute than after it.
    std::fs::create_dir_all(&options.out).map_err(|error| not_written(&options.out, &error))?;
    remark("Three kinds of data between separate processes on this host; this takes about a minute.");
    let launcher = Launcher::this_program(WORKER).map_err(Failure::from_cause)?;
    let default = QuickPlan::default();
    let plan = QuickPlan { runs: options.runs, phase: options.phase.unwrap_or(default.phase), ..default };
    let result = quick::run(&plan, &launcher, &Stop::watching(interrupt.flag())).map_err(from_lab)?;
    let json = serde_json::to_string_pretty(&result).map_err(Failure::from_cause)?;
    let report = options.out.join("report.html");
    for (path, text) in [(&report, quick::to_html(&result)), (&options.out.join("report.json"), json)] {
        std::fs::write(path, text).map_err(|error| not_written(path, &error))?;
    }
    print_either(options.json, &result, quick::to_text(&result).trim_end())?;
    print_place(options.json, format_args!("\nReport: {}", report.display()))
}

pub(super) fn not_written(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Failed(format!("{} cannot be written: {error}; choose another directory with --out", path.display()))
}

/// An experiment's error as a command's: an interruption keeps its own exit code.
pub fn from_lab(error: LabError) -> Failure {
    match error {
        LabError::Interrupted => Failure::Interrupted,
        other => Failure::from_cause(other),
    }
}

/// Name of the hidden sub-command that experiments start their processes with.
pub const WORKER: &str = "worker";
