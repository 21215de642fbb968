//! `thalweg sim`: the middleware in a simulated network, in virtual time.

use std::time::Duration;

use clap::Args;

use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_line, remark};

/// Runs the middleware in a simulated network with loss, delay, reordering and partitions, and checks that its promises hold.
#[derive(Args, Debug)]
#[command(after_help = crate::after_help!("thalweg sim --seeds 20", "thalweg sim --seed 7 --trace"))]
pub struct SimulateOptions {
    /// Run N worlds, seeds 0 to N − 1, and name each seed that breaks a promise (default: 20).
    #[arg(long, value_name = "N", conflicts_with = "seed", value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: Option<u64>,

    /// Run the one world that grows from S.
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,

    /// Print every event of the world; needs --seed (default: only the verdict).
    #[arg(long, requires = "seed")]
    pub trace: bool,
}

/// Runs the worlds and prints what broke.
///
/// # Errors
/// A promise was broken, or the user interrupted before all worlds were run.
pub fn run(options: &SimulateOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    if let (Some(seed), true) = (options.seed, options.trace) {
        return print_line(thalweg_sim::trace(seed).trim_end());
    }
    let seeds = match options.seed {
        Some(seed) => seed..seed.saturating_add(1),
        None => 0..options.seeds.unwrap_or(DEFAULT_SEEDS),
    };
    let (mut worlds, mut broken, mut samples, mut simulated) = (0, 0, 0, Duration::ZERO);
    for seed in seeds {
        if interrupt.came() {
            remark(format_args!("{worlds} worlds were run, {broken} broke a promise"));
            return Err(Failure::Interrupted);
        }
        let report = thalweg_sim::run_seeds(seed..seed.saturating_add(1), |_, _| {});
        worlds += report.seeds;
        samples += report.taken;
        simulated += report.simulated;
        for breach in &report.breaches {
            broken += 1;
            print_line(format_args!("{breach}\n  again: thalweg sim --seed {} --trace", breach.seed))?;
        }
    }
    if broken > 0 {
        return Err(Failure::Failed(format!("{broken} of {worlds} worlds broke a promise")));
    }
    let seconds = simulated.as_secs_f64();
    print_line(format_args!(
        "{worlds} worlds, {seconds:.0} simulated seconds, {samples} samples taken: every promise holds"
    ))
}

const DEFAULT_SEEDS: u64 = 20;
