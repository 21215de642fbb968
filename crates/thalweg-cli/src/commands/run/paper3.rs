//! `thalweg lab run paper3`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use thalweg_lab::directories;
use thalweg_lab::paper3::{HdtvPart, HdtvSite, Paper3Plan, VideoPeer};
use thalweg_lab::process::Stop;
use thalweg_lab::{Length, PresetPlan};

use super::extent::Extent;
use super::options::{PresetOptions, chosen, peer_names, scale};
use crate::commands::study;
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, remark};

/// Options of `lab run paper3`.
#[derive(Args, Debug)]
pub struct Paper3Options {
    /// Make fewer and shorter runs without verdicts, in some minutes (default: within two hours, with runs of five minutes and verdicts).
    #[arg(long)]
    pub quick: bool,

    /// Make only these parts, of mtu, streams, rtt, ladder, moderation, placement, coexistence, peers, topics and bounds, with commas
    /// between (default: all).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1, value_parser = parts())]
    pub parts: Vec<HdtvPart>,

    /// Let these programs send and receive the picture, too: gstreamer and ffmpeg, with commas between, or none; those that are not
    /// installed are named and left out (default: all but none).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1, value_parser = peer_names(VideoPeer::ALL.map(VideoPeer::name)))]
    pub peers: Vec<String>,

    /// Make N runs of each cell that gets a verdict and 3 at most of the others, 1 to 1000 (default: 9, with --quick 1).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub runs: Option<u32>,

    /// Multiply lengths of runs and lines of the picture by F, above 0 up to 1; for tests of the preset, not for figures (default: 1).
    #[arg(long, value_name = "F", default_value_t = 1.0, hide_default_value = true, value_parser = scale)]
    pub scale: f64,

    #[command(flatten)]
    /// The results.
    pub preset: PresetOptions,
}

/// Runs the preset and prints its tables; peers that are not installed are named and left out.
///
/// # Errors
/// This process is not root, nothing could be measured, a program failed, or the directory holds runs already.
pub fn run(options: &Paper3Options, interrupt: &Interrupt) -> Result<(), Failure> {
    let plan = options.plan()?;
    let out = options.preset.out.clone().unwrap_or_else(|| PathBuf::from("paper3"));
    Extent::new(plan.expected(), plan.left_out()).announce("paper3");
    let launcher = study::launcher(None, None)?;
    let loud = |text: &str| remark(format_args!("MISSING: {text}"));
    let stop = Stop::watching(interrupt.flag());
    let result = directories::run_paper3(&plan, &out, (&launcher, &stop), &loud);
    study::conclude(&out, options.preset.json, result)
}

/// What the preset makes here with its defaults.
pub fn extent(length: Length) -> Result<Extent, Failure> {
    let plan = Paper3Plan::new(length, 1, HdtvSite::here());
    let missing: Vec<VideoPeer> = VideoPeer::ALL.into_iter().filter(|peer| peer.version().is_err()).collect();
    let mut left_out = plan.left_out();
    left_out.extend(missing.iter().map(|peer| format!("the picture by {peer}: {}", peer.remedy())));
    Ok(Extent::new(plan.expected(), left_out))
}

/// The names of parts.
fn parts() -> impl TypedValueParser<Value = HdtvPart> {
    let names = HdtvPart::ALL.into_iter().map(|(_, name)| name);
    PossibleValuesParser::new(names).try_map(|name| HdtvPart::named(&name).ok_or("not a part"))
}

impl Paper3Options {
    fn plan(&self) -> Result<Paper3Plan, Failure> {
        let mut plan = Paper3Plan::new(Length::chosen(self.quick, false), self.preset.seed(), HdtvSite::here());
        plan.scale = self.scale;
        plan.runs = self.runs.unwrap_or(plan.runs);
        let peers = chosen(&self.peers, &VideoPeer::ALL.map(VideoPeer::name))?;
        plan.peers = peers.iter().filter_map(|name| VideoPeer::named(name)).collect();
        if !self.parts.is_empty() {
            plan.parts.clone_from(&self.parts);
            plan.parts.sort_unstable();
            plan.parts.dedup();
        }
        Ok(plan)
    }
}
