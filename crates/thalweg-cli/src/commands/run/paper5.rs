//! `thalweg lab run paper5`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use thalweg_coap::scheduler::controller::ControlLaw;
use thalweg_lab::directories;
use thalweg_lab::paper5::{self, CoapPeer, Paper5Plan, PaperFigure, ServerSite};
use thalweg_lab::process::Stop;
use thalweg_lab::{Length, PresetPlan};

use super::extent::Extent;
use super::options::{PeerFolder, PresetOptions, chosen, peer_names, scale};
use crate::commands::study;
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, remark};

/// Options of `lab run paper5`.
#[derive(Args, Debug)]
pub struct Paper5Options {
    /// Make fewer and shorter runs without verdicts, within ten minutes (default: within a hundred minutes, with verdicts).
    #[arg(long)]
    pub quick: bool,

    /// Make every step of the paper in longer runs, for many hours (default: within a hundred minutes).
    #[arg(long, conflicts_with = "quick")]
    pub full: bool,

    /// Make only these figures, of 2 to 7, 9 to 12, capacity, overload, flood and ramp, with commas between (default: all).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1, value_parser = figures())]
    pub figures: Vec<PaperFigure>,

    /// Compare these laws for handler pools, of inline, fixed:N, vta, vta-printed, vta-authors and queue-delay, with commas between
    /// (default: those of each figure of the paper, and the adaptive ones).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1, value_parser = paper5::law_named)]
    pub laws: Vec<ControlLaw>,

    /// Let these CoAP servers of other projects take part, with commas between, or none; those that are not set up are named and left
    /// out (default: all but none).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1, value_parser = peer_names(CoapPeer::ALL.map(CoapPeer::name)))]
    pub peers: Vec<String>,

    /// Make N runs of each cell that gets a verdict and 4 at most of the others, 3 to 1000 (default: 12, with --quick 3).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=1_000))]
    pub runs: Option<u32>,

    /// Multiply numbers of clients and rates by F, above 0 up to 1; for tests of the preset, not for figures (default: 1).
    #[arg(long, value_name = "F", default_value_t = 1.0, hide_default_value = true, value_parser = scale)]
    pub scale: f64,

    /// Let the clients run on HOST, which ssh reaches and where this version of thalweg is installed, such as user@lab2; servers stay on
    /// this machine (default: on this machine).
    #[arg(long, value_name = "HOST")]
    pub clients_on: Option<String>,

    /// Reach HOST by COMMAND, a program and its options with blanks between them (default: ssh).
    #[arg(long, value_name = "COMMAND", requires = "clients_on")]
    pub ssh: Option<String>,

    #[command(flatten)]
    /// The peers' programs.
    pub folder: PeerFolder,

    #[command(flatten)]
    /// The results.
    pub preset: PresetOptions,
}

/// Runs the preset and prints its tables; peers that are not set up are named and left out.
///
/// # Errors
/// Nothing could be measured, a server failed, or the directory holds runs already.
pub fn run(options: &Paper5Options, interrupt: &Interrupt) -> Result<(), Failure> {
    let plan = options.plan()?;
    let out = options.preset.out.clone().unwrap_or_else(|| PathBuf::from("paper5"));
    Extent::new(plan.expected(), plan.left_out()).announce("paper5");
    let launcher = study::launcher(options.folder.peer_dir.clone(), options.ssh.as_deref())?;
    let loud = |text: &str| remark(format_args!("MISSING: {text}"));
    let stop = Stop::watching(interrupt.flag());
    let result = directories::run_paper5(&plan, &out, (&launcher, &stop), &loud);
    study::conclude(&out, options.preset.json, result)
}

/// What the preset makes here with its defaults.
pub fn extent(length: Length) -> Result<Extent, Failure> {
    let plan = Paper5Plan::new(length, 1, ServerSite::here());
    let missing = CoapPeer::ALL.into_iter().filter(|peer| peer.find(None).is_none());
    Ok(Extent::new(plan.expected(), plan.left_out()).without_peers(missing))
}

/// The names of figures; several have one part.
fn figures() -> impl TypedValueParser<Value = PaperFigure> {
    let names = PaperFigure::ALL.into_iter().flat_map(|(_, names)| names.iter().copied());
    PossibleValuesParser::new(names).try_map(|name| PaperFigure::named(&name).ok_or("not a figure"))
}

impl Paper5Options {
    fn plan(&self) -> Result<Paper5Plan, Failure> {
        let mut plan = Paper5Plan::new(Length::chosen(self.quick, self.full), self.preset.seed(), ServerSite::here());
        plan.scale = self.scale;
        plan.runs = self.runs.unwrap_or(plan.runs);
        let peers = chosen(&self.peers, &CoapPeer::ALL.map(CoapPeer::name))?;
        plan.peers = peers.iter().filter_map(|name| CoapPeer::named(name)).collect();
        if !self.figures.is_empty() {
            plan.figures.clone_from(&self.figures);
            plan.figures.sort_unstable();
            plan.figures.dedup();
        }
        plan.laws.clone_from(&self.laws);
        plan.clients_on.clone_from(&self.clients_on);
        Ok(plan)
    }
}
