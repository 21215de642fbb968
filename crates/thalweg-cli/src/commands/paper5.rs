//! `thalweg lab run paper5`.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use thalweg_lab::directories;
use thalweg_lab::paper5::{self, CoapPeer, Paper5Plan};
use thalweg_lab::process::Stop;

use super::preset::RunOptions;
use super::study;
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, remark};

/// Runs the preset and prints its tables; peers that are not set up are named and left out.
///
/// # Errors
/// An option is not possible, nothing could be measured, a server failed, or the directory holds runs already.
pub fn run(options: &RunOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let plan = plan(options)?;
    let out = options.out.as_deref().unwrap_or(Path::new("paper5"));
    let minutes = plan.expected().as_secs().div_ceil(60);
    remark(format_args!("CoAP servers under load; this takes about {minutes} min."));
    let launcher = study::launcher(options.peer_dir.as_deref(), None)?;
    let loud = |text: &str| remark(format_args!("MISSING: {text}"));
    let stop = Stop::watching(interrupt.flag());
    study::conclude(out, directories::run_paper5(&plan, out, (&launcher, &stop), &loud))
}

fn plan(options: &RunOptions) -> Result<Paper5Plan, Failure> {
    options.refuse_foreign("paper5", &["--quick", "--figures", "--laws", "--peers", "--runs", "--scale"])?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs());
    let seed = options.seed.unwrap_or(now);
    let mut plan = if options.quick { Paper5Plan::quick(seed) } else { Paper5Plan::full(seed) };
    plan.scale = options.scale;
    if let Some(runs) = options.runs {
        plan.runs = u32::try_from(runs).map_err(Failure::from_cause)?;
    }
    match options.peers.as_slice() {
        [] => {}
        [none] if none == "none" => plan.peers.clear(),
        names => plan.peers = each(names, CoapPeer::parse)?,
    }
    if !options.figures.is_empty() {
        plan.figures = each(&options.figures, str::parse)?;
        plan.figures.sort_unstable();
        plan.figures.dedup();
    }
    plan.laws = each(&options.laws, paper5::law_named)?;
    Ok(plan)
}

fn each<T>(names: &[String], of: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, Failure> {
    names.iter().map(|name| of(name.trim()).map_err(Failure::Usage)).collect()
}
