//! `thalweg lab agent`: this machine takes part in scenarios that run elsewhere.

use std::path::PathBuf;

use clap::Args;
use thalweg_lab::agent;
use thalweg_lab::process::{Launcher, Stop};

use super::laboratory::{WORKER, from_lab};
use crate::interrupt::Interrupt;
use crate::outcome::Failure;

/// Options of `lab agent`.
#[derive(Args, Debug)]
pub struct AgentOptions {
    /// Hear the controller on standard input and answer on standard output, until the input ends; required (default: none).
    #[arg(long, required = true)]
    pub stdio: bool,

    /// Look for the programs of other middleware in DIRECTORY (default: the folder that THALWEG_PEERS names, else target/peers beside this
    /// program or in the current directory).
    #[arg(long, value_name = "DIRECTORY")]
    pub peer_dir: Option<PathBuf>,
}

/// Works for the controller at the other end of standard input and output.
///
/// # Errors
/// The controller is silent or says something that is no request, or a signal came.
pub fn run(options: &AgentOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let launcher = Launcher::this_program(WORKER).map_err(from_lab)?.with_peers_in(options.peer_dir.clone());
    let stop = Stop::watching(interrupt.flag());
    agent::serve(std::io::stdin(), std::io::stdout(), &launcher, &stop).map_err(from_lab)
}
