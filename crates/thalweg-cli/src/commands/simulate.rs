//! `thalweg sim`: the middleware in a simulated network, in virtual time.

use std::ops::{ControlFlow, RangeInclusive};

use clap::Args;
use serde_json::json;

use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_line, remark};

/// Runs the middleware in a simulated network with loss, delay, reordering and partitions, and checks that its promises hold.
#[derive(Args, Debug)]
#[command(after_help = crate::after_help!("thalweg sim --from 40000000 --seeds 20", "thalweg sim --seed 7 --trace"))]
pub struct SimulateOptions {
    /// Run N worlds, one for each of N seeds, and name each seed that breaks a promise (default: 20).
    #[arg(long, value_name = "N", conflicts_with = "seed", value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: Option<u64>,

    /// The first of these seeds, 0 to 2^64 − 1; from 10000000 on, worlds have every kind of trouble,
    /// from 1000000000000 on topics with policies, from 2000000000000 on coherent sets, changing policies
    /// and histories that outlive their process (default: 0).
    #[arg(long, value_name = "S", conflicts_with = "seed")]
    pub from: Option<u64>,

    /// Run so many worlds at a time (default: as many as there are processors).
    #[arg(long, value_name = "JOBS", conflicts_with = "seed", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,

    /// Run the one world that grows from S, and show its end when it breaks a promise.
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,

    /// Print every event of the world; needs --seed (default: only the verdict).
    #[arg(long, requires = "seed")]
    pub trace: bool,

    /// Print one JSON object when all worlds were run, instead of text (default: text).
    #[arg(long, conflicts_with = "trace")]
    pub json: bool,
}

/// Runs the worlds and prints what broke.
///
/// # Errors
/// A promise was broken, or the user interrupted before all worlds were run.
pub fn run(options: &SimulateOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    if let (Some(seed), true) = (options.seed, options.trace) {
        return print_line(thalweg_sim::trace(seed).trim_end());
    }
    let seeds = seeds(options)?;
    let jobs = options.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let mut printed = Ok(());
    let report = thalweg_sim::run_seeds(seeds, jobs, |world| {
        for breach in world.breaches.iter().filter(|_| !options.json) {
            let tail = if options.seed.is_some() { breach.tail.as_str() } else { "" };
            let shown = format!("{tail}seed {} breaks {}: {}", breach.seed, breach.law, breach.how);
            let again = format!("  again: thalweg sim --seed {} --trace", breach.seed);
            printed = print_line(format_args!("{shown}\n{again}"));
        }
        if printed.is_err() || interrupt.came() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    printed?;
    let (worlds, broken) = (report.seeds, report.breaches.len());
    if interrupt.came() {
        remark(format_args!("{worlds} worlds were run, {broken} broke a law"));
        return Err(Failure::Interrupted);
    }
    let (seconds, samples) = (report.simulated.as_secs_f64(), report.taken);
    if options.json {
        print_line(to_json(&report))?;
    }
    if broken > 0 {
        if options.seed.is_none() && !options.json {
            print_line("")?;
            for breach in &report.breaches {
                print_line(format_args!("seed {}: {}", breach.seed, breach.law))?;
            }
        }
        return Err(Failure::Failed(format!("{broken} of {worlds} worlds broke a law")));
    }
    if options.json {
        return Ok(());
    }
    print_line(format_args!(
        "{worlds} worlds, {seconds:.0} simulated seconds, {samples} samples taken: every law holds"
    ))
}

fn to_json(report: &thalweg_sim::Report) -> String {
    let breaches = report
        .breaches
        .iter()
        .map(|breach| json!({ "seed": breach.seed, "law": breach.law.to_string(), "how": breach.how.to_string() }));
    let told = json!({
        "worlds": report.seeds,
        "simulated_s": report.simulated.as_secs_f64(),
        "samples_taken": report.taken,
        "breaches": breaches.collect::<Vec<_>>(),
    });
    format!("{told:#}")
}

fn seeds(options: &SimulateOptions) -> Result<RangeInclusive<u64>, Failure> {
    if let Some(seed) = options.seed {
        return Ok(seed..=seed);
    }
    let (first, count) = (options.from.unwrap_or(0), options.seeds.unwrap_or(DEFAULT_SEEDS));
    match first.checked_add(count - 1) {
        Some(last) => Ok(first..=last),
        None => Err(Failure::Usage(format!("{count} seeds from {first} on reach beyond {}", u64::MAX))),
    }
}

const DEFAULT_SEEDS: u64 = 20;

#[cfg(test)]
mod tests {
    use clap::Command;
    use thalweg_sim::{CHANGING_SEEDS_FROM, POLICY_SEEDS_FROM, WIDE_SEEDS_FROM};

    use super::*;

    #[test]
    fn the_help_names_where_each_kind_of_worlds_begins() {
        let command = SimulateOptions::augment_args(Command::new("sim"));
        let from = command.get_arguments().find(|argument| argument.get_id().as_str() == "from").expect("--from");
        let help = from.get_help().expect("a help").to_string();
        for first in [WIDE_SEEDS_FROM, POLICY_SEEDS_FROM, CHANGING_SEEDS_FROM] {
            assert!(help.contains(&format!("from {first} on")), "{first} in {help}");
        }
    }
}
