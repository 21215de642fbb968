//! `thalweg lab run paper4`.

use clap::Args;
use clap::builder::PossibleValuesParser;
use thalweg_lab::Length;
use thalweg_lab::paper4::{self, MachineSize, PART_NAMES, Paper4Plan};
use thalweg_lab::peers::PeerProgram;
use thalweg_lab::process::{Launcher, Stop};

use super::extent::Extent;
use super::options::{PeerFolder, PresetOptions, failed_cells, peer_names, set_up};
use crate::commands::laboratory::{WORKER, from_lab};
use crate::interrupt::Interrupt;
use crate::outcome::Failure;

/// Options of `lab run paper4`.
#[derive(Args, Debug)]
pub struct Paper4Options {
    /// Make one short run of fewer cells, which gives no verdict (default: as many runs as the verdicts of the part vendors need, and all
    /// that this machine carries: under 100 minutes with Cyclone DDS and Fast DDS).
    #[arg(long)]
    pub quick: bool,

    /// Make longer runs in the parts vendors and detail: about two hours with Cyclone DDS and Fast DDS (default:
    /// at most 100 minutes).
    #[arg(long, conflicts_with = "quick")]
    pub full: bool,

    /// Make these parts, with commas between (default: all of them).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1, value_parser = PossibleValuesParser::new(PART_NAMES))]
    pub parts: Vec<String>,

    /// Let these peers take part, with commas between, or none; those that are not set up are named and left out (default: all but
    /// none).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1, value_parser = peer_names(PeerProgram::ALL.map(PeerProgram::name)))]
    pub peers: Vec<String>,

    #[command(flatten)]
    /// The peers' programs.
    pub folder: PeerFolder,

    #[command(flatten)]
    /// The results.
    pub preset: PresetOptions,
}

/// Runs the preset, prints what its figures show and writes its files; peers that are not set up are named and left out.
///
/// # Errors
/// A part has no result, a cell failed, or the files cannot be written.
pub fn run(options: &Paper4Options, interrupt: &Interrupt) -> Result<(), Failure> {
    let out = options.preset.folder("paper4")?;
    let folder = &options.folder.peer_dir;
    let (there, missing) = set_up(&options.peers, &PeerProgram::ALL, folder.as_deref())?;
    let form = Length::chosen(options.quick, options.full);
    let plan = Paper4Plan::new((form, options.preset.seed_in(&out)), &MachineSize::here(), &there, &options.parts);
    extent_of(&plan)?.without_peers(missing).announce("paper4");
    let launcher = Launcher::this_program(WORKER).map_err(from_lab)?.with_peers_in(folder.clone());
    let result = paper4::run(&plan, &out, &launcher, &Stop::watching(interrupt.flag())).map_err(from_lab)?;
    options.preset.conclude(&out, &result, (paper4::page(&result).to_html(), paper4::to_text(&result)))?;
    failed_cells(&result.parts)
}

/// What the preset makes here with its defaults.
pub fn extent(length: Length) -> Result<Extent, Failure> {
    let (there, missing) = set_up(&[], &PeerProgram::ALL, None)?;
    let plan = Paper4Plan::new((length, 1), &MachineSize::here(), &there, &[]);
    Ok(extent_of(&plan)?.without_peers(missing))
}

fn extent_of(plan: &Paper4Plan) -> Result<Extent, Failure> {
    let duration = plan.duration().map_err(Failure::from_cause)?;
    Ok(Extent::new(duration, plan.left_out.clone()))
}
