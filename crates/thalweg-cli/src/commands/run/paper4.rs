//! `thalweg lab run paper4`.

use std::path::{Path, PathBuf};

use clap::Args;
use thalweg_lab::Length;
use thalweg_lab::peers::PeerProgram;
use thalweg_lab::presets::{MachineSize, paper4};
use thalweg_lab::scenario::Scenario;

use super::extent::Extent;
use super::options::{PeerFolder, PresetOptions, chosen, peer_names};
use crate::commands::study::{self, Conduct};
use crate::interrupt::Interrupt;
use crate::outcome::Failure;

/// Options of `lab run paper4`.
#[derive(Args, Debug)]
pub struct Paper4Options {
    /// Make the cells that fit into a quarter of an hour, one run of two seconds each (default: all that this machine carries).
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

/// Runs the scenario that the paper and this machine make; peers that are not set up are named and left out.
///
/// # Errors
/// The scenario has no result, or one of its expectations does not hold.
pub fn run(options: &Paper4Options, interrupt: &Interrupt) -> Result<(), Failure> {
    let wanted: Vec<PeerProgram> = chosen(&options.peers, &PeerProgram::ALL.map(PeerProgram::name))?
        .iter()
        .filter_map(|name| PeerProgram::parse(name))
        .collect();
    let (there, missing) = sorted(wanted, options.folder.peer_dir.as_deref());
    let preset = paper4(if options.quick { Length::Quick } else { Length::Full }, &MachineSize::here(), &there);
    let scenario = Scenario::parse("paper4", &preset.text).map_err(Failure::from_cause)?;
    let (scenario, text) = study::against((scenario, preset.text), options.against.as_deref())?;
    Extent::new(scenario.duration(), preset.left_out).without_peers(missing).announce("paper4");
    let conduct = Conduct {
        out: options.preset.out.clone().unwrap_or_else(|| PathBuf::from("paper4")),
        seed: options.preset.seed,
        peer_folder: options.folder.peer_dir.clone(),
        ssh: None,
        json: options.preset.json,
    };
    study::run_scenario((scenario, text), &conduct, interrupt)
}

/// What the preset makes here with its defaults.
pub fn extent(length: Length) -> Result<Extent, Failure> {
    let (there, missing) = sorted(PeerProgram::ALL.to_vec(), None);
    let preset = paper4(length, &MachineSize::here(), &there);
    let scenario = Scenario::parse("paper4", &preset.text).map_err(Failure::from_cause)?;
    Ok(Extent::new(scenario.duration(), preset.left_out).without_peers(missing))
}

/// Those whose programs are there, and the others.
fn sorted(peers: Vec<PeerProgram>, folder: Option<&Path>) -> (Vec<PeerProgram>, Vec<PeerProgram>) {
    peers.into_iter().partition(|peer| peer.find(folder).is_some())
}
