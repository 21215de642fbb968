//! `thalweg lab run paper5`.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use thalweg_lab::LabError;
use thalweg_lab::paper5::{self, CoapPeer, Paper5Plan, Paper5Result};
use thalweg_lab::process::{Launcher, Stop};

use super::laboratory::{WORKER, from_lab, not_written};
use super::preset::{RunOptions, write};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_line, remark};

/// Runs the preset, prints its tables and writes its files; peers that are not set up are named and left out.
///
/// # Errors
/// An option is not possible, nothing could be measured, Thalweg itself failed in a run, or the files cannot be written.
pub fn run(options: &RunOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let plan = plan(options)?;
    let out = options.out.as_deref().unwrap_or(Path::new("paper5"));
    std::fs::create_dir_all(out).map_err(|error| not_written(out, &error))?;
    let minutes = plan.expected().as_secs().div_ceil(60);
    remark(format_args!("CoAP servers under load; this takes about {minutes} min."));
    let launcher = Launcher::this_program(WORKER).map_err(from_lab)?;
    let loud = |text: &str| remark(format_args!("MISSING: {text}"));
    let stop = Stop::watching(interrupt.flag());
    let result = paper5::run(&plan, out, &launcher, &stop, &loud).map_err(|error| {
        if matches!(error, LabError::Interrupted) {
            let seed = plan.seed;
            remark(format_args!("The runs so far are kept: the same command with --seed {seed} goes on."));
        }
        from_lab(error)
    })?;
    let json = serde_json::to_string_pretty(&result).map_err(Failure::from_cause)?;
    for (name, text) in [("report.html", paper5::page(&result).to_html()), ("results.json", json)] {
        write(&out.join(name), &text)?;
    }
    print_line(paper5::to_text(&result).trim_end())?;
    print_line(format_args!("\nReport: {}", out.join("report.html").display()))?;
    check(&result)
}

/// A failure of our own server is one of the command.
fn check(result: &Paper5Result) -> Result<(), Failure> {
    let failed = |cell: &&paper5::ServerCellRuns| cell.cell.contender.is_ours() && !cell.failures.is_empty();
    match result.cells.iter().find(failed) {
        Some(cell) => Err(Failure::Failed(format!("{} failed: {}", cell.cell, cell.failures.join("; ")))),
        None => Ok(()),
    }
}

fn plan(options: &RunOptions) -> Result<Paper5Plan, Failure> {
    options.refuse_foreign("paper5", &["--quick", "--figures", "--laws", "--peers", "--runs", "--scale"])?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs());
    let seed = options.seed.unwrap_or(now);
    let mut plan = if options.quick { Paper5Plan::quick(seed) } else { Paper5Plan::full(seed) };
    plan.scale = options.scale;
    plan.peer_folder.clone_from(&options.peer_dir);
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
