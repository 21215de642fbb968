//! `thalweg lab run paper1`.

use clap::Args;
use clap::builder::PossibleValuesParser;
use thalweg_lab::Length;
use thalweg_lab::host::may_make_namespaces;
use thalweg_lab::paper1::{self, PART_NAMES, Paper1Plan, UNLIMITED};
use thalweg_lab::peers::PeerProgram;
use thalweg_lab::process::{Launcher, Stop};

use super::extent::Extent;
use super::options::{PeerFolder, PresetOptions, peer_names, scale, set_up, write};
use crate::commands::laboratory::{WORKER, from_lab};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_place};

/// Options of `lab run paper1`.
#[derive(Args, Debug)]
pub struct Paper1Options {
    /// Make three runs of each cell, short searches, and transfers of 10 MB in the background (default: as many runs as verdicts need,
    /// 100 MB).
    #[arg(long)]
    pub quick: bool,

    /// Make these parts, with commas between (default: all of them; link, loss and background need root).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1, value_parser = PossibleValuesParser::new(PART_NAMES))]
    pub parts: Vec<String>,

    /// Let these peers take part, with commas between, or none; those that are not set up are named and left out (default: all but
    /// none).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1, value_parser = peer_names(peers().into_iter().map(PeerProgram::name)))]
    pub peers: Vec<String>,

    /// Make N runs of each cell, 2 to 1000 (default: as many as verdicts need, with --quick 3).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1_000))]
    pub runs: Option<u32>,

    /// Make only these cells of Table 4: tokens a period, 1 to 1220, or `unlimited`, with commas between (default:
    /// unlimited,65,30,20,10,5,1).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1, value_parser = tokens)]
    pub tokens: Vec<Tokens>,

    /// Multiply the paper's numbers of samples by F, above 0 up to 1; for tests of the preset, not for figures (default: 1).
    #[arg(long, value_name = "F", default_value_t = 1.0, hide_default_value = true, value_parser = scale)]
    pub scale: f64,

    #[command(flatten)]
    /// The peers' programs.
    pub folder: PeerFolder,

    #[command(flatten)]
    /// The results.
    pub preset: PresetOptions,
}

/// Tokens a period of one cell of Table 4; `None` is without limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens(Option<u32>);

/// Runs the preset, prints its tables and writes its files; peers that are not set up are named and left out.
///
/// # Errors
/// A part has no result, one of Thalweg's own methods failed, or the files cannot be written.
pub fn run(options: &Paper1Options, interrupt: &Interrupt) -> Result<(), Failure> {
    let folder = &options.folder.peer_dir;
    let (there, missing) = set_up(&options.peers, &peers(), folder.as_deref())?;
    let out = options.preset.folder("paper1")?;
    let plan = options.plan(&there, options.preset.seed_in(&out));
    extent_of(&plan).without_peers(missing).announce("paper1");
    let launcher = Launcher::this_program(WORKER).map_err(from_lab)?.with_peers_in(folder.clone());
    let result = paper1::run(&plan, &out, &launcher, &Stop::watching(interrupt.flag())).map_err(from_lab)?;
    let profile = out.join("profile.toml");
    write(&profile, &result.profile.to_toml().map_err(from_lab)?)?;
    options.preset.conclude(&out, &result, (paper1::page(&result).to_html(), paper1::to_text(&result)))?;
    let use_of_profile = format!("Profile: thalweg perf throughput --size 256 --profile {}", profile.display());
    print_place(options.preset.json, use_of_profile)?;
    match result.failures() {
        failures if failures.is_empty() => Ok(()),
        failures => Err(Failure::Failed(failures.join("; "))),
    }
}

/// What the preset makes here with its defaults.
pub fn extent(length: Length) -> Result<Extent, Failure> {
    let (there, missing) = set_up(&[], &peers(), None)?;
    Ok(extent_of(&Paper1Plan::new(length, 1, &there, may_make_namespaces())).without_peers(missing))
}

fn extent_of(plan: &Paper1Plan) -> Extent {
    Extent::new(plan.duration(), plan.left_out.clone())
}

impl Paper1Options {
    fn plan(&self, there: &[PeerProgram], seed: u64) -> Paper1Plan {
        let length = Length::chosen(self.quick, false);
        // A part that is asked for by name and cannot be made is an error with its reason.
        let may = may_make_namespaces() || !self.parts.is_empty();
        let mut plan = Paper1Plan::new(length, seed, there, may);
        (plan.runs, plan.scale) = (self.runs, self.scale);
        if !self.parts.is_empty() {
            plan.wanted.clone_from(&self.parts);
        }
        if !self.tokens.is_empty() {
            plan.tokens = self.tokens.iter().map(|tokens| tokens.0).collect();
        }
        plan
    }
}

/// Those that are no floor.
fn peers() -> Vec<PeerProgram> {
    PeerProgram::ALL.into_iter().filter(|peer| *peer != PeerProgram::Raw).collect()
}

fn tokens(text: &str) -> Result<Tokens, String> {
    match text.parse() {
        _ if text == UNLIMITED => Ok(Tokens(None)),
        Ok(tokens @ 1..=TOKENS_MAX) => Ok(Tokens(Some(tokens))),
        _ => Err(format!("not a number of tokens; give 1 to {TOKENS_MAX} or {UNLIMITED:?}")),
    }
}

/// 8 Gbit/s, far beyond the link.
const TOKENS_MAX: u32 = 1_220;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_numbers_or_unlimited() {
        assert_eq!(tokens("unlimited"), Ok(Tokens(None)));
        assert_eq!(tokens("75"), Ok(Tokens(Some(75))));
        assert!(["0", "1221", "none", "7.5"].into_iter().all(|text| tokens(text).is_err()));
    }
}
