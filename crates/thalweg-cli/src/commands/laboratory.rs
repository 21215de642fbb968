//! `thalweg lab`: experiments with a report.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use thalweg_lab::LabError;
use thalweg_lab::{PHASE_S, quick};

use super::agent::{self, AgentOptions};
use super::page::{self, PageOptions};
use super::peers::{self, PeersOptions};
use super::profile::{self, ProfileOptions};
use super::run::{self, PresetOptions, RunOptions};
use super::study::{self, CompareOptions, Conduct, DirectoryListOptions, ReportOptions, ResumeOptions, VerifyOptions};
use super::top::{self, TopOptions};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, remark};

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
    /// Measures the methods that could serve a topic of this rate, size and deadline, says which ones do, and writes the settings of the
    /// chosen one for Thalweg, Cyclone DDS, Fast DDS and RTI Connext.
    #[command(after_help = crate::after_help!(
        "thalweg lab profile --rate 2000 --size 200 --deadline 5",
        "thalweg lab profile --rate 30 --size 100000 --deadline 20 --budget 40 --loss some --to netns",
        "thalweg lab profile --rate 2000 --size 200 --deadline 2 --from profile/study --out stricter"
    ))]
    Profile(ProfileOptions),
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
    /// Makes the runs that a directory of `lab run` lacks because it was interrupted or failed, or because the time of its form did not
    /// suffice; then they have as much time again.
    #[command(after_help = crate::after_help!("thalweg lab resume /tmp/scenario"))]
    Resume(ResumeOptions),
    /// Computes the results of a directory of `lab run FILE` again from its raw data, and reports missing and different results.
    #[command(after_help = crate::after_help!("thalweg lab verify /tmp/scenario"))]
    Verify(VerifyOptions),
    /// Writes the results and the report of a directory of `lab run FILE` again from its raw data.
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
    /// Make at most N bursts of each kind, ten in each run; 80 or more for verdicts, 20 as in the paper (default: 100).
    #[arg(long, value_name = "N", default_value_t = 100, hide_default_value = true, value_parser = clap::value_parser!(u32).range(3..=10_000))]
    pub runs: u32,

    /// Length in seconds of each phase of the background experiment, of which each run has two; short ones are for tests of this command.
    #[arg(long, value_name = "SECONDS", hide = true, value_parser = crate::parse::seconds)]
    pub phase: Option<std::time::Duration>,

    #[command(flatten)]
    /// The results.
    pub preset: PresetOptions,
}

/// Runs the chosen experiment, prints its tables and writes its report.
///
/// # Errors
/// The experiment has no result, or the report cannot be written.
pub fn run(options: &LaboratoryOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    match &options.experiment {
        Experiment::Quick(options) => run_quick(options, interrupt),
        Experiment::Run(options) => run::run(options, interrupt),
        Experiment::Profile(options) => profile::run(options, interrupt),
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
    remark("Three kinds of data between separate processes on this host.");
    let phase_s = options.phase.map_or(PHASE_S, |phase| phase.as_secs_f64());
    let benchmark = quick(options.preset.seed(), options.runs, phase_s);
    let out = options.preset.out.clone().unwrap_or_else(|| free_folder("quick"));
    let conduct = Conduct { out, seed: None, peer_folder: None, ssh: None, json: options.preset.json };
    study::run_benchmark(benchmark, &conduct, interrupt)
}

/// The folder of this name in the current directory, with a number behind it where there is one already: a second run is no mistake.
fn free_folder(name: &str) -> PathBuf {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered).map(PathBuf::from);
    names.find(|folder| !folder.exists()).unwrap_or_else(|| PathBuf::from(name))
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
