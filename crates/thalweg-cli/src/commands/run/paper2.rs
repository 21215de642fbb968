//! `thalweg lab run paper2`.

use std::time::Duration;

use clap::Args;
use thalweg_lab::Length;
use thalweg_lab::Part;
use thalweg_lab::host::may_make_namespaces;
use thalweg_lab::paper2::{self, Paper2Plan};
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
    /// Make ten short runs of each cell, and fewer cells: about half an hour (default: twelve runs of all that this machine carries).
    #[arg(long)]
    pub quick: bool,

    /// Measure these numbers of publishers and as many subscribers, each 1 to 200, with commas between (default: 1,3,10,25,50,75 as far
    /// as this machine carries them, with --quick up to 25).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub counts: Vec<u32>,

    /// Let these peers take part in the parts participants and perftest, by unicast and by multicast, with commas between, or none; nothing
    /// tells other peers where to send to (default: none).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1, value_parser = peer_names(told()))]
    pub peers: Vec<String>,

    /// Make N runs of each cell, 3 to 1000 (default: 12, with --quick 10).
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
    let mut plan = plan(if options.quick { Length::Quick } else { Length::Full }, options.preset.seed());
    if !options.counts.is_empty() {
        plan = plan.with_counts(&options.counts);
    }
    if let Some(runs) = options.runs {
        plan = plan.with_runs(runs);
    }
    let folder = &options.folder.peer_dir;
    let (there, missing) = set_up(&options.peers, &[], folder.as_deref())?;
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
    let mut extent = extent_of(&plan(length, 1))?;
    if !may_make_namespaces() {
        extent.left_out.insert(0, "everything: its hosts need root; run it with sudo".to_owned());
    }
    Ok(extent)
}

/// Names of the peers that send by unicast or to groups as they are told.
fn told() -> impl Iterator<Item = &'static str> {
    PeerProgram::ALL.into_iter().filter(|peer| peer.is_told_destinations()).map(PeerProgram::name)
}

fn plan(length: Length, seed: u64) -> Paper2Plan {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    match length {
        Length::Quick => Paper2Plan::quick(seed, cpus),
        Length::Full => Paper2Plan::full(seed, cpus),
    }
}

fn extent_of(plan: &Paper2Plan) -> Result<Extent, Failure> {
    let all: Result<Duration, _> = plan.parts().iter().map(Part::duration).sum();
    let all = all.map_err(Failure::from_cause)?;
    Ok(Extent::new(all + plan.same_rate_duration(), plan.omitted.clone()))
}
