//! `thalweg lab run paper4` and `driving`: presets that are scenarios beside every peer.

use std::path::{Path, PathBuf};

use clap::Args;
use thalweg_lab::Length;
use thalweg_lab::peers::PeerProgram;
use thalweg_lab::presets::{MachineSize, Preset, driving, paper4};
use thalweg_lab::scenario::Scenario;

use super::extent::Extent;
use super::options::{PeerFolder, PresetOptions, chosen, peer_names};
use crate::commands::study::{self, Conduct};
use crate::interrupt::Interrupt;
use crate::outcome::Failure;

/// Options of `lab run paper4` and `lab run driving`.
#[derive(Args, Debug)]
pub struct Paper4Options {
    /// Make few and short runs, which give no verdict: of paper4 the cells that fit into a quarter of an hour, one run of two seconds each; of
    /// driving three runs of five seconds (default: all that this machine carries; as many runs of 20 s as verdicts need).
    #[arg(long)]
    pub quick: bool,

    /// Let these peers take part, with commas between, or none; those that are not set up are named and left out (default: all but
    /// none).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1, value_parser = peer_names(PeerProgram::ALL.map(PeerProgram::name)))]
    pub peers: Vec<String>,

    /// Compare this program with PROGRAM, another build of it or of a peer (NAME-perf), in each cell that measures it: both take turns,
    /// PROGRAM is the baseline, and cells of other middleware are left out (default: one build).
    #[arg(long, value_name = "PROGRAM")]
    pub against: Option<PathBuf>,

    #[command(flatten)]
    /// The peers' programs.
    pub folder: PeerFolder,

    #[command(flatten)]
    /// The results.
    pub preset: PresetOptions,
}

/// A scenario of a length with these peers.
type Make = fn(Length, &[PeerProgram]) -> Preset;

/// Runs the scenario that the paper and this machine make; peers that are not set up are named and left out.
///
/// # Errors
/// The scenario has no result, or one of its expectations does not hold.
pub fn run(options: &Paper4Options, interrupt: &Interrupt) -> Result<(), Failure> {
    run_computed(("paper4", of_paper), options, interrupt)
}

/// Runs the traffic of an automated vehicle; peers that are not set up are named and left out.
///
/// # Errors
/// As [`run`].
pub fn run_driving(options: &Paper4Options, interrupt: &Interrupt) -> Result<(), Failure> {
    run_computed(("driving", driving), options, interrupt)
}

fn run_computed((name, make): (&str, Make), options: &Paper4Options, interrupt: &Interrupt) -> Result<(), Failure> {
    let wanted: Vec<PeerProgram> = chosen(&options.peers, &PeerProgram::ALL.map(PeerProgram::name))?
        .iter()
        .filter_map(|name| PeerProgram::parse(name))
        .collect();
    let (there, missing) = sorted(wanted, options.folder.peer_dir.as_deref());
    let preset = make(if options.quick { Length::Quick } else { Length::Full }, &there);
    let scenario = Scenario::parse(name, &preset.text).map_err(Failure::from_cause)?;
    let (scenario, text) = study::against((scenario, preset.text), options.against.as_deref())?;
    Extent::new(scenario.duration(), preset.left_out).without_peers(missing).announce(name);
    let conduct = Conduct {
        out: options.preset.out.clone().unwrap_or_else(|| PathBuf::from(name)),
        seed: options.preset.seed,
        peer_folder: options.folder.peer_dir.clone(),
        ssh: None,
        json: options.preset.json,
    };
    study::run_scenario((scenario, text), &conduct, interrupt)
}

/// What the preset `paper4` makes here with its defaults.
pub fn extent(length: Length) -> Result<Extent, Failure> {
    extent_of(("paper4", of_paper), length)
}

/// What the preset `driving` makes here with its defaults.
pub fn extent_of_driving(length: Length) -> Result<Extent, Failure> {
    extent_of(("driving", driving), length)
}

fn extent_of((name, make): (&str, Make), length: Length) -> Result<Extent, Failure> {
    let (there, missing) = sorted(PeerProgram::ALL.to_vec(), None);
    let preset = make(length, &there);
    let scenario = Scenario::parse(name, &preset.text).map_err(Failure::from_cause)?;
    Ok(Extent::new(scenario.duration(), preset.left_out).without_peers(missing))
}

fn of_paper(length: Length, peers: &[PeerProgram]) -> Preset {
    paper4(length, &MachineSize::here(), peers)
}

/// Those whose programs are there, and the others.
fn sorted(peers: Vec<PeerProgram>, folder: Option<&Path>) -> (Vec<PeerProgram>, Vec<PeerProgram>) {
    peers.into_iter().partition(|peer| peer.find(folder).is_some())
}
