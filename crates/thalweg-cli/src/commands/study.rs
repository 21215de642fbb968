//! `thalweg lab run FILE`, and the commands on the directory that it makes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use thalweg_lab::Scenario;
use thalweg_lab::agent::SshCommand;
use thalweg_lab::benchmark::Benchmark;
use thalweg_lab::directories::{self, Comparability, Conclusion, ExperimentFile, FoundRun};
use thalweg_lab::host::may_make_namespaces;
use thalweg_lab::process::{Launcher, Stop};
use thalweg_report::figures::about;
use thalweg_report::table::Table;

use super::laboratory::{WORKER, from_lab};
use super::run::{self, Extent};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_either, print_line, print_place, remark};

/// Options of `lab run FILE`; all else stands in the file.
#[derive(Args, Debug)]
pub struct ScenarioOptions {
    /// The file of a scenario or a benchmark.
    #[arg(value_name = "FILE", required = true)]
    file: Option<PathBuf>,

    /// Write the run directory into DIRECTORY, which is made if it is missing (default: the scenario's name in the current directory).
    #[arg(long, value_name = "DIRECTORY")]
    pub out: Option<PathBuf>,

    /// Compare this program with PROGRAM, another build of it or of a peer (NAME-perf), in each cell that measures it: both take turns,
    /// PROGRAM is the baseline, and cells of other middleware are left out (default: one build).
    #[arg(long, value_name = "PROGRAM")]
    pub against: Option<PathBuf>,

    /// Shuffle the turns by S, to repeat the order of an earlier run (default: the scenario's seed).
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,

    /// Look for the peers' programs in DIRECTORY (default: the folder that THALWEG_PEERS names, else target/peers beside this program or
    /// in the current directory; `thalweg lab peers install` sets them up).
    #[arg(long, value_name = "DIRECTORY")]
    pub peer_dir: Option<PathBuf>,

    /// Reach the machines that the scenario names as hosts by COMMAND, a program and its options with blanks between them (default: ssh).
    #[arg(long, value_name = "COMMAND")]
    pub ssh: Option<String>,

    /// Show the runs as `thalweg lab top` does while they are being made (default: one line of progress).
    #[arg(long)]
    pub live: bool,

    /// Print the results as one JSON object instead of tables (default: tables).
    #[arg(long, conflicts_with = "live")]
    pub json: bool,
}

/// How the runs of a scenario are made, beside what stands in its file.
#[derive(Debug)]
pub struct Conduct {
    /// The run directory.
    pub out: PathBuf,
    /// Decides the order of the runs; `None` for the scenario's own.
    pub seed: Option<u64>,
    /// Folder of the peers' programs; `None` for the usual ones.
    pub peer_folder: Option<PathBuf>,
    /// The command that reaches other machines; `None` for `ssh`.
    pub ssh: Option<String>,
    /// Whether the results are printed as JSON.
    pub json: bool,
}

/// Options of `lab list`.
#[derive(Args, Debug)]
pub struct DirectoryListOptions {
    /// List the run directories in FOLDER.
    #[arg(value_name = "FOLDER", default_value = ".", hide_default_value = true)]
    pub folder: PathBuf,

    /// Print one JSON object instead of tables (default: tables).
    #[arg(long)]
    pub json: bool,
}

/// Options of `lab verify`.
#[derive(Args, Debug)]
pub struct VerifyOptions {
    /// The directory that `lab run FILE` made.
    #[arg(value_name = "DIRECTORY")]
    pub directory: PathBuf,

    /// Print one JSON object instead of text (default: text).
    #[arg(long)]
    pub json: bool,
}

/// Options of `lab report`.
#[derive(Args, Debug)]
pub struct ReportOptions {
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

    /// Reach other machines by COMMAND, a program and its options with blanks between them (default: ssh).
    #[arg(long, value_name = "COMMAND")]
    pub ssh: Option<String>,

    /// Print the results as one JSON object instead of tables (default: tables).
    #[arg(long)]
    pub json: bool,
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

    /// Print one JSON object instead of a table (default: a table).
    #[arg(long)]
    pub json: bool,
}

impl ScenarioOptions {
    /// The scenario file, which the parser demands unless a preset is named.
    pub fn file(&self) -> &Path {
        self.file.as_deref().unwrap_or(Path::new(""))
    }

    /// The experiment with the other build of `--against`.
    ///
    /// # Errors
    /// It cannot be read, or is no scenario and no benchmark.
    pub fn load(&self) -> Result<ExperimentFile, Failure> {
        match ExperimentFile::load(self.file()).map_err(|error| Failure::Usage(error.to_string()))? {
            ExperimentFile::Scenario(scenario, text) => {
                let (scenario, text) = against((*scenario, text), self.against.as_deref())?;
                Ok(ExperimentFile::Scenario(Box::new(scenario), text))
            }
            ExperimentFile::Benchmark(benchmark) => {
                let benchmark = match self.against.as_deref().map(other_build).transpose()? {
                    Some(program) => Box::new(benchmark.against(&program)),
                    None => benchmark,
                };
                Ok(ExperimentFile::Benchmark(benchmark))
            }
        }
    }
}

/// Makes all runs of a file and prints the results.
///
/// # Errors
/// The scenario cannot be run or has no result, or one of its expectations does not hold.
pub fn run(options: &ScenarioOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let file = options.load()?;
    let conduct = Conduct {
        out: options.out.clone().unwrap_or_else(|| PathBuf::from(file.name())),
        seed: options.seed,
        peer_folder: options.peer_dir.clone(),
        ssh: options.ssh.clone(),
        json: options.json,
    };
    match file {
        ExperimentFile::Scenario(scenario, text) => run_scenario((*scenario, text), &conduct, interrupt),
        ExperimentFile::Benchmark(benchmark) => run_benchmark(*benchmark, &conduct, interrupt),
    }
}

/// Makes all runs of a benchmark and prints the results; peers that are not set up are named and left out.
///
/// # Errors
/// It cannot be run or has no result, a contender of Thalweg failed, or an expected ratio does not hold.
pub fn run_benchmark(benchmark: Benchmark, conduct: &Conduct, interrupt: &Interrupt) -> Result<(), Failure> {
    let launcher = launcher(conduct.peer_folder.clone(), conduct.ssh.as_deref())?;
    let (mut benchmark, missing) = benchmark.of_those_there(|peer| launcher.program_of(peer).is_ok());
    let mut left_out = Vec::new();
    if !may_make_namespaces() {
        let (here, linked) = benchmark.without_link();
        benchmark = here;
        left_out.extend(linked.iter().map(|name| format!("{name}: its link needs root; run it with sudo")));
    }
    if benchmark.works.is_empty() {
        return Err(Failure::Failed(format!("{} has no work that can be done here", benchmark.name)));
    }
    benchmark.seed = conduct.seed.unwrap_or(benchmark.seed);
    Extent::new(benchmark.expected(), left_out).without_peers(missing).announce(&benchmark.name);
    if cfg!(debug_assertions) && benchmark.contenders.iter().any(|one| one.peer.is_some()) {
        remark(DEBUG_BUILD);
    }
    let result = directories::run_benchmark(&benchmark, &conduct.out, (&launcher, &Stop::watching(interrupt.flag())));
    conclude(&conduct.out, conduct.json, result)
}

fn other_build(program: &Path) -> Result<PathBuf, Failure> {
    std::fs::canonicalize(program).map_err(|error| Failure::Usage(format!("--against {}: {error}", program.display())))
}

/// The same scenario with the other build, where one is given.
///
/// # Errors
/// The program is not there, or the scenario names another one itself.
pub fn against((scenario, text): (Scenario, String), program: Option<&Path>) -> Result<(Scenario, String), Failure> {
    let Some(program) = program else { return Ok((scenario, text)) };
    if scenario.against.is_some() {
        return Err(Failure::Usage("--against is given, and the scenario names another build itself".to_owned()));
    }
    let program = other_build(program)?;
    let text = Scenario::text_against(&text, &program);
    let compared = Scenario::parse("--against", &text).map_err(|error| Failure::Usage(error.to_string()))?;
    let names = |scenario: &Scenario| {
        scenario.cells.iter().map(|cell| cell.middleware.to_string()).collect::<BTreeSet<String>>()
    };
    for other in names(&scenario).difference(&names(&compared)) {
        remark(format_args!("LEFT OUT: the cells of {other}: {} is no build of it", program.display()));
    }
    Ok((compared, text))
}

/// Makes all runs of a scenario and prints the results.
///
/// # Errors
/// As [`run()`].
pub fn run_scenario(
    (scenario, text): (Scenario, String),
    conduct: &Conduct,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    remark(format_args!(
        "{}: {} cells, {} runs each, {}; into {}",
        scenario.name,
        scenario.cells.len(),
        scenario.schedule.runs.min,
        about(scenario.duration()),
        conduct.out.display()
    ));
    if cfg!(debug_assertions) && scenario.cells.iter().any(|cell| cell.middleware.peer().is_some()) {
        remark(DEBUG_BUILD);
    }
    let launcher = launcher(conduct.peer_folder.clone(), conduct.ssh.as_deref())?;
    let stop = Stop::watching(interrupt.flag());
    let result = directories::run_scenario((scenario, text), conduct.seed, &conduct.out, (&launcher, &stop));
    conclude(&conduct.out, conduct.json, result)
}

/// Makes the missing runs of a directory and prints the results.
///
/// # Errors
/// As [`run()`]; or the directory is complete, none, or was begun under other conditions.
pub fn resume(options: &ResumeOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let launcher = launcher(options.peer_dir.clone(), options.ssh.as_deref())?;
    let result = directories::resume(&options.directory, &launcher, &Stop::watching(interrupt.flag()));
    conclude(&options.directory, options.json, result)
}

/// Starts this program's own processes, peers' from `folder` where one is given, and agents by the command `ssh`.
pub(super) fn launcher(folder: Option<PathBuf>, ssh: Option<&str>) -> Result<Launcher, Failure> {
    let parse = |text| SshCommand::parse(text).ok_or_else(|| Failure::Usage("--ssh names no program".to_owned()));
    let ssh = ssh.map(parse).transpose()?;
    let launcher = Launcher::this_program(WORKER).map_err(from_lab)?;
    Ok(launcher.with_peers_in(folder).with_ssh(ssh))
}

/// Prints the results of the directory `out`, as JSON or as tables.
///
/// # Errors
/// There are none, or they are not what was asked for.
pub(super) fn conclude(
    out: &Path,
    json: bool,
    result: Result<Conclusion, thalweg_lab::LabError>,
) -> Result<(), Failure> {
    let conclusion = result.map_err(|error| {
        let is_begun = |found: &FoundRun| found.path == out && !found.has_result();
        if directories::find(out).iter().any(is_begun) {
            remark(format_args!("There is no result yet; `thalweg lab resume {}` goes on.", out.display()));
        }
        from_lab(error)
    })?;
    print_either(json, &conclusion.json, conclusion.text.trim_end())?;
    print_place(json, format_args!("\nReport: {}", conclusion.report.display()))?;
    conclusion.shortcoming.map_or(Ok(()), |reason| Err(Failure::Failed(reason)))
}

const DEBUG_BUILD: &str =
    "This is a debug build, and the peers' programs are not: their figures do not compare with Thalweg's.";

/// Prints the presets and the run directories in a folder.
///
/// # Errors
/// Standard output cannot be written.
pub fn list(options: &DirectoryListOptions) -> Result<(), Failure> {
    let listing = Listing {
        presets: run::outlines()?,
        directories: directories::find(&options.folder).iter().map(Listed::of).collect(),
    };
    print_either(options.json, &listing, listing.to_text(&options.folder).trim_end())
}

/// What `lab list` prints.
#[derive(Serialize)]
struct Listing {
    presets: Vec<run::PresetOutline>,
    directories: Vec<Listed>,
}

/// A run directory.
#[derive(Serialize)]
struct Listed {
    path: PathBuf,
    /// Null where its manifest cannot be read.
    name: Option<String>,
    runs_done: Option<u64>,
    runs_planned: Option<u64>,
    state: String,
}

impl Listed {
    fn of(found: &FoundRun) -> Listed {
        let manifest = found.manifest.as_ref().ok();
        Listed {
            path: found.path.clone(),
            name: manifest.map(|manifest| manifest.name.clone()),
            runs_done: manifest.map(|manifest| manifest.runs_done),
            runs_planned: manifest.map(|manifest| manifest.runs_planned),
            state: found.state(),
        }
    }
}

impl Listing {
    fn to_text(&self, folder: &Path) -> String {
        let mut presets =
            Table::new("Presets of `thalweg lab run` on this machine", &["preset", "measures", "--quick", "usual"]);
        presets.words = vec![1];
        let row = |preset: &run::PresetOutline| {
            vec![preset.name.to_owned(), preset.about.to_owned(), preset.quick.length(), preset.usual.length()]
        };
        presets.rows = self.presets.iter().map(row).collect();
        let mut out = presets.to_text();
        for preset in &self.presets {
            for (form, extent) in [("--quick", &preset.quick), ("usual", &preset.usual)] {
                out.extend(extent.remarks().iter().map(|line| format!("  {} {form}: {line}\n", preset.name)));
            }
        }
        if self.directories.is_empty() {
            return format!("{out}\nNo run directories in {}\n", folder.display());
        }
        let mut runs =
            Table::new(format!("Run directories in {}", folder.display()), &["directory", "scenario", "runs", "state"]);
        runs.words = vec![1, 3];
        let count = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
        let row = |found: &Listed| {
            let made = format!("{} of {}", count(found.runs_done), count(found.runs_planned));
            vec![found.path.display().to_string(), found.name.clone().unwrap_or_default(), made, found.state.clone()]
        };
        runs.rows = self.directories.iter().map(row).collect();
        format!("{out}\n{}", runs.to_text())
    }
}

/// Checks a directory against its raw data.
///
/// # Errors
/// The results differ from the raw data, or there are none yet.
pub fn verify(options: &VerifyOptions) -> Result<(), Failure> {
    let verification = directories::verify(&options.directory).map_err(from_lab)?;
    let is_sound = verification.faults.is_empty();
    if options.json {
        print_either(true, &verification, "")?;
    } else if is_sound {
        print_line(format_args!("{} runs and the results agree with their raw data", verification.runs))?;
    }
    if is_sound { Ok(()) } else { Err(Failure::Failed(verification.faults.join("\n"))) }
}

/// Writes the results and the report of a directory again from its raw data.
///
/// # Errors
/// It is not complete, its raw data are damaged, or the report cannot be written.
pub fn report(options: &ReportOptions) -> Result<(), Failure> {
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
    let different = comparison.conditions.iter();
    let different = different.map(|(name, a, b)| format!("DIFFERENT {name}: {a} in A, {b} in B\n"));
    let unpaired = comparison.unpaired.iter().map(|cell| format!("UNPAIRED {cell}\n"));
    let text: String = different.chain(unpaired).chain([comparison.table().to_text()]).collect();
    print_either(options.json, &comparison, text.trim_end())
}
