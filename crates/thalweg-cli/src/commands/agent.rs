//! `thalweg lab agent`: this host takes part in scenarios that run elsewhere.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use thalweg_lab::agent::{Agent, AgentKey, default_key_file};
use thalweg_lab::process::{Launcher, Stop};

use super::laboratory::{WORKER, from_lab};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_line, remark};

/// Options of `lab agent`.
#[derive(Args, Debug)]
pub struct AgentOptions {
    /// Listen at IP:PORT, TCP and UDP; ports from 7400 on are those of DDS itself (default: 0.0.0.0:7300).
    #[arg(long, value_name = "IP:PORT", default_value = "0.0.0.0:7300", hide_default_value = true)]
    pub bind: SocketAddr,

    /// Work for controllers that have the key in FILE, which only its owner may be able to read (default: thalweg/lab.key in the folder of
    /// your settings, ~/.config).
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,

    /// Look for the programs of other middleware in DIRECTORY (default: the folder that THALWEG_PEERS names, else target/peers beside this
    /// program or in the current directory).
    #[arg(long, value_name = "DIRECTORY")]
    pub peer_dir: Option<PathBuf>,

    /// Write a new key into the new file FILE and end; copy it to all hosts by a way that you trust (default: make none).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["key", "bind", "peer_dir"])]
    pub make_key: Option<PathBuf>,
}

/// Works for controllers until Ctrl-C, or makes a key.
///
/// # Errors
/// The key cannot be made or read, or the address cannot be used.
pub fn run(options: &AgentOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    if let Some(path) = &options.make_key {
        AgentKey::make(path).map_err(from_lab)?;
        return print_line(format_args!("A new key is in {}; copy it to all hosts of the lab.", path.display()));
    }
    let file = options.key.clone().unwrap_or_else(default_key_file);
    let key = AgentKey::load(&file).map_err(from_lab)?;
    let launcher = Launcher::this_program(WORKER).map_err(from_lab)?.with_peers_in(options.peer_dir.clone());
    let agent = Agent::open(options.bind, key, launcher).map_err(from_lab)?;
    print_line(format_args!("listening at {}", agent.address().map_err(from_lab)?))?;
    agent.serve(&Stop::watching(interrupt.flag()), &|line| remark(line)).map_err(from_lab)
}
