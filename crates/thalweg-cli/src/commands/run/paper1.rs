//! `thalweg lab run paper1`.

use clap::{Args, ValueEnum};
use thalweg_lab::Length;
use thalweg_lab::paper1::{self, LinkKind, PEERS, Paper1Plan, UNLIMITED};
use thalweg_lab::process::{Launcher, Stop};

use super::extent::Extent;
use super::options::{PeerFolder, PresetOptions, chosen, peer_names, scale, write};
use crate::commands::laboratory::{WORKER, from_lab};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_place, remark};

/// Options of `lab run paper1`.
#[derive(Args, Debug)]
pub struct Paper1Options {
    /// Make five runs of each cell, short searches, and transfers of 10 MB in the background: under four minutes without peers
    /// (default: twenty runs, 100 MB).
    #[arg(long)]
    pub quick: bool,

    /// Let these peers take part, with commas between, or none; those that are not set up are named and left out (default: all but
    /// none).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1, value_parser = peer_names(PEERS))]
    pub peers: Vec<String>,

    /// Make N runs of each cell, 3 to 1000 (default: 20, with --quick 5).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(3..=1_000))]
    pub runs: Option<u64>,

    /// Make only these tables of the paper, of 2, 3 and 4, with commas between (default: 2,3,4).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1, value_parser = clap::value_parser!(u8).range(2..=4))]
    pub tables: Vec<u8>,

    /// Make only these cells of Table 4: tokens a period, 1 to 1220, or `unlimited`, with commas between (default:
    /// unlimited,75,30,20,10,5,1).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1, value_parser = tokens)]
    pub tokens: Vec<Tokens>,

    /// Run Table 4 over this link (default: tbf).
    #[arg(long, value_enum, value_name = "LINK", default_value = "tbf", hide_default_value = true)]
    pub link: LinkName,

    /// Multiply the paper's numbers of samples and bytes by F, above 0 up to 1; for tests of the preset, not for figures (default: 1).
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

/// Links of Table 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LinkName {
    /// 1 Gbit/s between two network namespaces; needs root and tc.
    Tbf,
    /// Loopback without a limit: shows the effect of flow controllers, not of a link.
    Loopback,
}

/// Runs the preset, prints its tables and writes its files; peers that are not set up are named and left out.
///
/// # Errors
/// Nothing could be measured, one of Thalweg's own methods failed, or the files cannot be written.
pub fn run(options: &Paper1Options, interrupt: &Interrupt) -> Result<(), Failure> {
    let plan = options.plan()?;
    let out = options.preset.folder("paper1")?;
    Extent::new(paper1::expected(&plan).0, Vec::new()).announce("paper1");
    let launcher = Launcher::this_program(WORKER).map_err(from_lab)?;
    let loud = |text: &str| remark(format_args!("MISSING: {text}"));
    let result = paper1::run(&plan, &launcher, &Stop::watching(interrupt.flag()), &loud).map_err(from_lab)?;
    let profile = out.join("profile.toml");
    write(&profile, &result.profile.to_toml().map_err(from_lab)?)?;
    options.preset.conclude(&out, &result, (paper1::page(&result).to_html(), paper1::to_text(&result)))?;
    let use_of_profile = format!("Profile: thalweg perf throughput --size 256 --profile {}", profile.display());
    print_place(options.preset.json, use_of_profile)?;
    match result.contenders.iter().find(|contender| contender.is_ours && !contender.failures.is_empty()) {
        Some(failed) => Err(Failure::Failed(format!("{} failed: {}", failed.name, failed.failures.join("; ")))),
        None => Ok(()),
    }
}

/// What the preset makes here with its defaults.
pub fn extent(length: Length) -> Result<Extent, Failure> {
    let plan = match length {
        Length::Quick => Paper1Plan::quick(1),
        Length::Full => Paper1Plan::full(1),
    };
    let (expected, missing) = paper1::expected(&plan);
    Ok(Extent::new(expected, Vec::new())
        .without_peers(missing.iter().map(|one| one.what.trim_start_matches("the peer "))))
}

impl Paper1Options {
    fn plan(&self) -> Result<Paper1Plan, Failure> {
        let seed = self.preset.seed();
        let mut plan = if self.quick { Paper1Plan::quick(seed) } else { Paper1Plan::full(seed) };
        plan.runs = self.runs.unwrap_or(plan.runs);
        plan.scale = self.scale;
        plan.peers = chosen(&self.peers, &PEERS)?;
        plan.peer_folder.clone_from(&self.folder.peer_dir);
        plan.link = match self.link {
            LinkName::Tbf => LinkKind::Tbf,
            LinkName::Loopback => LinkKind::Loopback,
        };
        if !self.tables.is_empty() {
            plan.tables.clone_from(&self.tables);
        }
        if !self.tokens.is_empty() {
            plan.tokens = self.tokens.iter().map(|tokens| tokens.0).collect();
        }
        Ok(plan)
    }
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
