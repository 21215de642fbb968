//! `thalweg lab run`: presets and scenarios.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use thalweg_lab::Length;
use thalweg_lab::paper1::{self, LinkKind, PEERS, Paper1Plan, UNLIMITED};
use thalweg_lab::paper2::{self, Paper2Plan};
use thalweg_lab::peers::PeerProgram;
use thalweg_lab::presets::{MachineSize, Preset, driving, paper4};
use thalweg_lab::process::{Launcher, Stop};
use thalweg_lab::scenario::Scenario;

use super::laboratory::{WORKER, from_lab, not_written};
use super::{paper5, peers, study, top};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_line, remark};
use thalweg_lab::nearest::nearest;

/// Options of `lab run`.
#[derive(Args, Debug)]
pub struct RunOptions {
    /// The preset paper1, paper2, paper4, paper5 or driving, or a scenario file; a scenario takes --out, --seed, --against, --peer-dir, --key and --live, all else stands
    /// in the file.
    #[arg(value_name = "PRESET|FILE")]
    pub what: String,

    /// Of paper1, make five runs of each cell, short searches, and transfers of 10 MB in the background: under four minutes without peers
    /// (default: twenty runs, 100 MB). Of paper2, make ten short runs of each cell, and fewer cells: about 13 minutes. Of paper4, make
    /// the cells that fit into a quarter of an hour (default: all that this machine carries). Of paper5, make fewer and shorter runs, within
    /// ten minutes (default: five runs of ten seconds, hours).
    #[arg(long)]
    pub quick: bool,

    /// Let these peers take part, with commas between, or none; those that are not set up are named and left out (default: cyclone,
    /// fastdds, rustdds, dust, hdds, zenoh, iceoryx2; of paper4 also raw; of paper5 libcoap, californium, aiocoap, coap-rs).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1)]
    pub peers: Vec<String>,

    /// Look for the peers' programs in DIRECTORY, as NAME-perf or NAME-perf/release/NAME-perf (default: target/peers beside this
    /// program or in the current directory; `cargo xtask peers` sets them up).
    #[arg(long, value_name = "DIRECTORY")]
    pub peer_dir: Option<PathBuf>,

    /// Show the agents that a scenario names as hosts the key in FILE (default: thalweg/lab.key in the folder of your settings, ~/.config).
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,

    /// Write into DIRECTORY, which is made if it is missing: report.html, results.json and profile.toml of a preset, the run directory of
    /// a scenario (default: the current directory, or one with the scenario's name in it).
    #[arg(long, value_name = "DIRECTORY")]
    pub out: Option<PathBuf>,

    /// Compare this program with PROGRAM, another build of it or of a peer (NAME-perf), in each cell of a scenario or of paper4 that
    /// measures it: both take turns, PROGRAM is the baseline, and cells of other middleware are left out (default: one build).
    #[arg(long, value_name = "PROGRAM")]
    pub against: Option<PathBuf>,

    /// Show the runs of a scenario as `thalweg lab top` does while they are being made (default: one line of progress).
    #[arg(long)]
    pub live: bool,

    /// Make N runs of each cell (default: 20, with --quick 5; of paper2 12, with --quick 10; of paper5 5, with --quick 3).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(3..=1_000))]
    pub runs: Option<u64>,

    /// Make only these tables of the paper, of 2, 3 and 4, with commas between (default: 2,3,4).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1, value_parser = clap::value_parser!(u8).range(2..=4))]
    pub tables: Vec<u8>,

    /// Of paper2, measure these numbers of publishers and as many subscribers, each 1 to 200, with commas between (default: 1,3,10,25,50,75
    /// as far as this machine carries them, with --quick up to 25).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub counts: Vec<u32>,

    /// Make only these cells of Table 4: tokens a period, or `unlimited`, with commas between (default: unlimited,75,30,20,10,5,1).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1, value_parser = tokens)]
    pub tokens: Vec<Tokens>,

    /// Run Table 4 over this link (default: tbf).
    #[arg(long, value_enum, value_name = "LINK", default_value = "tbf", hide_default_value = true)]
    pub link: LinkName,

    /// Of paper5, make only these figures, of 5, 6, 7, 9, 10, 11, capacity, overload, flood and ramp, with commas between (default: all).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1)]
    pub figures: Vec<String>,

    /// Of paper5, compare these laws for handler pools, of inline, fixed:N, vta, vta-printed, vta-authors and queue-delay, with commas
    /// between (default: those of each figure of the paper, and the adaptive ones).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1)]
    pub laws: Vec<String>,

    /// Shuffle the turns by S, to repeat the order of an earlier run (default: the time of day, or the scenario's seed).
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,

    /// Multiply the paper's numbers of samples and bytes by F, above 0 up to 1; for tests of the preset, not for figures (default: 1).
    #[arg(long, value_name = "F", default_value_t = 1.0, hide_default_value = true, value_parser = scale)]
    pub scale: f64,
}

/// Tokens a period of one cell of Table 4; `None` is without limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens(Option<u32>);

/// Run Table 4 over this link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LinkName {
    /// 1 Gbit/s between two network namespaces; needs root and tc.
    Tbf,
    /// Loopback without a limit: shows the effect of flow controllers, not of a link.
    Loopback,
}

/// Runs a preset or a scenario, prints its tables and writes its files.
///
/// # Errors
/// It is neither, it has no result, its files cannot be written, one of Thalweg's own methods failed, or an expectation does not hold.
pub fn run(options: &RunOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    if PRESETS.contains(&options.what.as_str()) && options.live {
        return Err(Failure::Usage("--live is for scenarios; a preset shows its progress itself".to_owned()));
    }
    if PRESETS.contains(&options.what.as_str()) && options.key.is_some() {
        return Err(Failure::Usage("--key is for scenarios, which can have agents; a preset has none".to_owned()));
    }
    if PRESETS.contains(&options.what.as_str())
        && !AGAINST.contains(&options.what.as_str())
        && options.against.is_some()
    {
        return Err(Failure::Usage("--against is for scenarios, paper4 and driving".to_owned()));
    }
    match options.what.as_str() {
        "paper1" => return run_paper1(options, interrupt),
        "paper2" => return run_paper2(options, interrupt),
        "paper4" => {
            let machine = MachineSize::here();
            return run_computed(options, interrupt, |length, peers| paper4(length, &machine, peers));
        }
        "driving" => return run_computed(options, interrupt, driving),
        "paper5" => return paper5::run(options, interrupt),
        _ => {}
    }
    let path = Path::new(&options.what);
    if path.extension().is_none() && !path.exists() {
        let guess = nearest(&options.what, PRESETS).map(|name| format!("did you mean {name:?}? ")).unwrap_or_default();
        let presets = PRESETS.join(", ");
        return Err(Failure::Usage(format!("{} is no file and no preset: {guess}Presets: {presets}", options.what)));
    }
    if let Some(option) = options.given(|_| true) {
        return Err(Failure::Usage(format!("{option} is for presets; the scenario {} sets this itself", options.what)));
    }
    if options.live {
        return top::run_live(path, options, interrupt);
    }
    study::run(path, options, interrupt)
}

/// Runs the scenario that `preset` makes of a length and the peers; those that are not set up are named and left out.
fn run_computed(
    options: &RunOptions,
    interrupt: &Interrupt,
    preset: impl Fn(Length, &[PeerProgram]) -> Preset,
) -> Result<(), Failure> {
    options.refuse_foreign(&options.what, &["--quick", "--peers"])?;
    let wanted = match options.peers.as_slice() {
        [] => PeerProgram::ALL.to_vec(),
        [none] if none == "none" => Vec::new(),
        names => names.iter().map(|name| peers::parse(name)).collect::<Result<_, _>>()?,
    };
    let (there, missing): (Vec<PeerProgram>, Vec<PeerProgram>) =
        wanted.into_iter().partition(|peer| peer.find(options.peer_dir.as_deref()).is_some());
    for peer in missing {
        remark(format_args!("MISSING: the peer {peer}: `thalweg lab peers install {peer}` builds it"));
    }
    let length = if options.quick { Length::Quick } else { Length::Full };
    let preset = preset(length, &there);
    for line in &preset.left_out {
        remark(format_args!("Left out: {line}"));
    }
    let scenario = Scenario::parse(&options.what, &preset.text).map_err(Failure::from_cause)?;
    study::run_scenario(study::against((scenario, preset.text), options)?, options, interrupt)
}

fn run_paper1(options: &RunOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    options.refuse_foreign("paper1", &["--quick", "--peers", "--runs", "--tables", "--tokens", "--link", "--scale"])?;
    let plan = options.plan()?;
    let out = options.out.as_deref().unwrap_or(Path::new("."));
    std::fs::create_dir_all(out).map_err(|error| not_written(out, &error))?;
    let launcher = Launcher::this_program(WORKER).map_err(from_lab)?;
    let loud = |text: &str| remark(format_args!("MISSING: {text}"));
    let result = paper1::run(&plan, &launcher, &Stop::watching(interrupt.flag()), &loud).map_err(from_lab)?;
    let json = serde_json::to_string_pretty(&result).map_err(Failure::from_cause)?;
    let profile = result.profile.to_toml().map_err(from_lab)?;
    let files = [("report.html", paper1::page(&result).to_html()), ("results.json", json), ("profile.toml", profile)];
    for (name, text) in files {
        write(&out.join(name), &text)?;
    }
    print_line(paper1::to_text(&result).trim_end())?;
    print_line(format_args!("\nReport: {}", out.join("report.html").display()))?;
    let profile = out.join("profile.toml");
    print_line(format_args!("Profile: thalweg perf throughput --size 256 --profile {}", profile.display()))?;
    match result.contenders.iter().find(|contender| contender.is_ours && !contender.failures.is_empty()) {
        Some(failed) => Err(Failure::Failed(format!("{} failed: {}", failed.name, failed.failures.join("; ")))),
        None => Ok(()),
    }
}

fn run_paper2(options: &RunOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    options.refuse_foreign("paper2", &["--quick", "--counts", "--runs"])?;
    let out = options.out.as_deref().unwrap_or(Path::new("paper2"));
    std::fs::create_dir_all(out).map_err(|error| not_written(out, &error))?;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let seed = options.seed.unwrap_or(1);
    let mut plan = if options.quick { Paper2Plan::quick(seed, cpus) } else { Paper2Plan::full(seed, cpus) };
    if !options.counts.is_empty() {
        plan = plan.with_counts(&options.counts);
    }
    if let Some(runs) = options.runs {
        plan = plan.with_runs(runs as u32);
    }
    for omitted in &plan.omitted {
        remark(format_args!("LEFT OUT: {omitted}"));
    }
    let launcher = Launcher::this_program(WORKER).map_err(from_lab)?;
    let result = paper2::run(&plan, out, &launcher, &Stop::watching(interrupt.flag())).map_err(from_lab)?;
    let json = serde_json::to_string_pretty(&result).map_err(Failure::from_cause)?;
    for (name, text) in [("report.html", paper2::page(&result).to_html()), ("results.json", json)] {
        write(&out.join(name), &text)?;
    }
    print_line(paper2::to_text(&result).trim_end())?;
    print_line(format_args!("\nReport: {}", out.join("report.html").display()))?;
    match result.parts.iter().map(|part| part.study.failures.len()).sum() {
        0 => Ok(()),
        failed => Err(Failure::Failed(format!("{failed} cells have no result because they failed"))),
    }
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| not_written(path, &error))
}

impl RunOptions {
    /// Refuses options that `preset` has not.
    pub(super) fn refuse_foreign(&self, preset: &str, own: &[&str]) -> Result<(), Failure> {
        let Some(option) = self.given(|option| !own.contains(&option)) else { return Ok(()) };
        let owner = match option {
            "--figures" | "--laws" => "paper5",
            "--counts" => "paper2",
            _ => "paper1",
        };
        Err(Failure::Usage(format!(
            "{option} is for the preset {owner}; {preset} takes {}, --peer-dir, --out and --seed",
            own.join(", ")
        )))
    }

    /// The first option of presets that was given and for which `is_meant` holds.
    fn given(&self, is_meant: impl Fn(&str) -> bool) -> Option<&'static str> {
        let given = [
            ("--quick", self.quick),
            ("--peers", !self.peers.is_empty()),
            ("--runs", self.runs.is_some()),
            ("--tables", !self.tables.is_empty()),
            ("--counts", !self.counts.is_empty()),
            ("--figures", !self.figures.is_empty()),
            ("--laws", !self.laws.is_empty()),
            ("--tokens", !self.tokens.is_empty()),
            ("--link", self.link != LinkName::Tbf),
            ("--scale", self.scale != 1.0),
        ];
        given.into_iter().find(|(name, is_given)| *is_given && is_meant(name)).map(|(name, _)| name)
    }

    fn plan(&self) -> Result<Paper1Plan, Failure> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs());
        let seed = self.seed.unwrap_or(now);
        let mut plan = if self.quick { Paper1Plan::quick(seed) } else { Paper1Plan::full(seed) };
        plan.runs = self.runs.unwrap_or(plan.runs);
        plan.scale = self.scale;
        plan.peer_folder = self.peer_dir.clone();
        plan.link = match self.link {
            LinkName::Tbf => LinkKind::Tbf,
            LinkName::Loopback => LinkKind::Loopback,
        };
        if !self.tables.is_empty() {
            plan.tables = self.tables.clone();
        }
        if !self.tokens.is_empty() {
            plan.tokens = self.tokens.iter().map(|tokens| tokens.0).collect();
        }
        if !self.peers.is_empty() {
            plan.peers = peers_of_paper1(&self.peers)?;
        }
        Ok(plan)
    }
}

fn peers_of_paper1(names: &[String]) -> Result<Vec<String>, Failure> {
    if names == ["none"] {
        return Ok(Vec::new());
    }
    if let Some(unknown) = names.iter().find(|name| !PEERS.contains(&name.as_str())) {
        let guess = nearest(unknown, PEERS).map(|name| format!("did you mean {name:?}? ")).unwrap_or_default();
        let known = PEERS.join(", ");
        return Err(Failure::Usage(format!("--peers {unknown}: {guess}Known: {known}; or none alone")));
    }
    Ok(names.to_vec())
}

fn tokens(text: &str) -> Result<Tokens, String> {
    match text.parse() {
        _ if text == UNLIMITED => Ok(Tokens(None)),
        Ok(tokens @ 1..=TOKENS_MAX) => Ok(Tokens(Some(tokens))),
        _ => Err(format!("not a number of tokens; give 1 to {TOKENS_MAX} or {UNLIMITED:?}")),
    }
}

fn scale(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(scale) if scale > 0.0 && scale <= 1.0 => Ok(scale),
        _ => Err("not a factor above 0 and at most 1; give one such as 0.01".to_owned()),
    }
}

/// 8 Gbit/s, far beyond the link.
const TOKENS_MAX: u32 = 1_220;

/// Presets that compare two builds: they are scenarios.
const AGAINST: [&str; 2] = ["paper4", "driving"];
/// The presets of `lab run`.
pub const PRESETS: [&str; 5] = ["paper1", "paper2", "paper4", "paper5", "driving"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_known_or_none() {
        let check = |list: &[&str]| peers_of_paper1(&list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(check(&["none"]).expect("allowed"), Vec::<String>::new());
        assert_eq!(check(&["zenoh", "dust"]).expect("allowed"), ["zenoh", "dust"]);
        let Err(Failure::Usage(text)) = check(&["zeno"]) else { panic!("allowed") };
        assert!(text.contains("did you mean \"zenoh\""), "{text}");
        assert!(check(&["none", "dust"]).is_err());
    }

    #[test]
    fn tokens_are_numbers_or_unlimited() {
        assert_eq!(tokens("unlimited"), Ok(Tokens(None)));
        assert_eq!(tokens("75"), Ok(Tokens(Some(75))));
        assert!(["0", "1221", "none", "7.5"].into_iter().all(|text| tokens(text).is_err()));
    }

    #[test]
    fn scales_are_possible_ones() {
        assert_eq!(scale("0.5"), Ok(0.5));
        assert!(scale("0").is_err() && scale("2").is_err() && scale("NaN").is_err());
    }
}
