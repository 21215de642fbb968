//! `thalweg lab run paper2`.

use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use thalweg_lab::Length;
use thalweg_lab::Part;
use thalweg_lab::host::may_make_namespaces;
use thalweg_lab::paper2::{self, PART_NAMES, Paper2Plan};
use thalweg_lab::peers::PeerProgram;
use thalweg_lab::process::{Launcher, Stop};

use super::extent::Extent;
use super::options::{PeerFolder, PresetOptions, failed_cells, peer_names, set_up};
use crate::commands::laboratory::{WORKER, from_lab};
use crate::interrupt::Interrupt;
use crate::outcome::Failure;

/// Options of `lab run paper2`.
#[derive(Args, Debug)]
pub struct Paper2Options {
    /// Make twelve short runs of each cell, and fewer cells: about half an hour (default: twelve short runs for every table and figure, in
    /// at most two hours).
    #[arg(long)]
    pub quick: bool,

    /// Make twelve runs of 20 s of all that this machine carries: about seven hours (default: at most two hours).
    #[arg(long, conflicts_with = "quick")]
    pub full: bool,

    /// Measure these numbers of publishers and as many subscribers, each 1 to 200, with commas between (default: 1,3,10,25,50,75 as far
    /// as this machine carries them; in open schedules up to 25 unless --full is given).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub counts: Vec<u32>,

    /// Make these parts, with commas between (default: all that the form has).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1, conflicts_with = "counts",
        value_parser = PossibleValuesParser::new(PART_NAMES))]
    pub parts: Vec<String>,

    /// Let these peers take part in the parts participants and perftest, by unicast and by multicast, with commas between, or none; nothing
    /// tells other peers where to send to; those that are not set up are named and left out (default: both, with --quick none).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1, value_parser = peer_names(told().map(PeerProgram::name)))]
    pub peers: Vec<String>,

    /// Make N runs of each cell, 3 to 1000 (default: 12).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=1_000))]
    pub runs: Option<u32>,

    #[command(flatten)]
    /// The peers' programs.
    pub folder: PeerFolder,

    #[command(flatten)]
    /// The results.
    pub preset: PresetOptions,
}

/// Runs the preset, prints its tables and writes its files.
///
/// # Errors
/// This process may not make network namespaces, a cell has no result, or the files cannot be written.
pub fn run(options: &Paper2Options, interrupt: &Interrupt) -> Result<(), Failure> {
    let out = options.preset.folder("paper2")?;
    let cpus = cpus();
    let make = match (options.quick, options.full) {
        (true, _) => Paper2Plan::quick,
        (_, true) => Paper2Plan::full,
        _ => Paper2Plan::new,
    };
    let mut plan = make(options.preset.seed_in(&out), cpus);
    if !options.counts.is_empty() {
        plan = plan.with_counts(&options.counts);
    }
    if !options.parts.is_empty() {
        plan = plan.with_parts(&options.parts);
    }
    if let Some(runs) = options.runs {
        plan = plan.with_runs(runs);
    }
    let folder = &options.folder.peer_dir;
    let (there, missing) = set_up(&options.peers, &by_default(options.quick), folder.as_deref())?;
    if !there.is_empty() {
        plan = plan.with_peers(&there);
    }
    extent_of(&plan)?.without_peers(missing).announce("paper2");
    let launcher = Launcher::this_program(WORKER).map_err(from_lab)?.with_peers_in(folder.clone());
    let result = paper2::run(&plan, &out, &launcher, &Stop::watching(interrupt.flag())).map_err(from_lab)?;
    options.preset.conclude(&out, &result, (paper2::page(&result).to_html(), paper2::to_text(&result)))?;
    failed_cells(&result.parts)
}

/// What the preset makes here with its defaults.
pub fn extent(length: Length) -> Result<Extent, Failure> {
    let is_quick = length == Length::Quick;
    let (there, missing) = set_up(&[], &by_default(is_quick), None)?;
    let plan = if is_quick { Paper2Plan::quick(1, cpus()) } else { Paper2Plan::new(1, cpus()) };
    let plan = if there.is_empty() { plan } else { plan.with_peers(&there) };
    let mut extent = extent_of(&plan)?.without_peers(missing);
    if !may_make_namespaces() {
        extent.left_out.insert(0, "everything: its hosts need root; run it with sudo".to_owned());
    }
    Ok(extent)
}

/// Peers that send by unicast or to groups as they are told.
fn told() -> impl Iterator<Item = PeerProgram> {
    PeerProgram::ALL.into_iter().filter(|peer| peer.is_told_destinations())
}

/// Those that take part where nobody names others.
fn by_default(is_quick: bool) -> Vec<PeerProgram> {
    told().filter(|_| !is_quick).collect()
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn extent_of(plan: &Paper2Plan) -> Result<Extent, Failure> {
    let all: Result<Duration, _> = plan.parts().iter().map(Part::duration).sum();
    let all = all.map_err(Failure::from_cause)?;
    Ok(Extent::new(all + plan.later_duration(), plan.omitted.clone()))
}
