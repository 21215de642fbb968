//! `thalweg lab run driving`: a preset that is a scenario beside every peer.

use std::path::PathBuf;

use clap::Args;
use thalweg_lab::peers::PeerProgram;
use thalweg_lab::{Length, Scenario, driving};

use super::extent::Extent;
use super::options::{PeerFolder, PresetOptions, peer_names, set_up};
use crate::commands::study::{self, Conduct};
use crate::interrupt::Interrupt;
use crate::outcome::Failure;

/// Options of `lab run driving`.
#[derive(Args, Debug)]
pub struct DrivingOptions {
    /// Make three runs of five seconds, which give no verdict (default: as many runs of 20 s as verdicts need).
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

/// Runs the traffic of an automated vehicle; peers that are not set up are named and left out.
///
/// # Errors
/// The scenario has no result, or one of its expectations does not hold.
pub fn run(options: &DrivingOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let (there, missing) = set_up(&options.peers, &PeerProgram::ALL, options.folder.peer_dir.as_deref())?;
    let text = driving(Length::chosen(options.quick, false), &there);
    let scenario = Scenario::parse(NAME, &text).map_err(Failure::from_cause)?;
    let (scenario, text) = study::against((scenario, text), options.against.as_deref())?;
    Extent::new(scenario.duration(), Vec::new()).without_peers(missing).announce(NAME);
    let conduct = Conduct {
        out: options.preset.out.clone().unwrap_or_else(|| PathBuf::from(NAME)),
        seed: options.preset.seed,
        peer_folder: options.folder.peer_dir.clone(),
        ssh: None,
        json: options.preset.json,
    };
    study::run_scenario((scenario, text), &conduct, interrupt)
}

/// What the preset makes here with its defaults.
pub fn extent(length: Length) -> Result<Extent, Failure> {
    let (there, missing) = set_up(&[], &PeerProgram::ALL, None)?;
    let scenario = Scenario::parse(NAME, &driving(length, &there)).map_err(Failure::from_cause)?;
    Ok(Extent::new(scenario.duration(), Vec::new()).without_peers(missing))
}

const NAME: &str = "driving";
