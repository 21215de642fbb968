//! `thalweg lab peers`: the programs that measure other middleware.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;
use thalweg_lab::nearest::nearest;
use thalweg_lab::paper5::CoapPeer;
use thalweg_lab::peers::{self, PeerProgram, Readiness};

use super::laboratory::from_lab;
use crate::outcome::{Failure, print_either, remark};

/// Options of `lab peers`.
#[derive(Args, Debug)]
pub struct PeersOptions {
    /// The subcommand.
    #[command(subcommand)]
    pub action: PeersAction,
}

/// Subcommands of `lab peers`.
#[derive(Debug, Subcommand)]
pub enum PeersAction {
    /// Lists the peers with the state of their programs.
    #[command(after_help = crate::after_help!("thalweg lab peers list"))]
    List(PeersListOptions),
    /// Builds peers' programs from the sources in `peers/` of a checkout and from the registries; all of them take a quarter of an hour
    /// and more.
    #[command(after_help = crate::after_help!("thalweg lab peers install cyclone fastdds"))]
    Install(InstallOptions),
}

/// Options of `lab peers list`.
#[derive(Args, Debug)]
pub struct PeersListOptions {
    /// Look for the programs in DIRECTORY (default: the environment's THALWEG_PEERS, else target/peers beside this program or in the
    /// current directory).
    #[arg(long, value_name = "DIRECTORY")]
    pub peer_dir: Option<PathBuf>,

    /// Print one JSON object instead of a table (default: a table).
    #[arg(long)]
    pub json: bool,
}

/// Options of `lab peers install`.
#[derive(Args, Debug)]
pub struct InstallOptions {
    /// Build these alone (default: all).
    #[arg(value_name = "PEER")]
    pub peers: Vec<String>,

    /// Build into DIRECTORY (default: the environment's THALWEG_PEERS, else target/peers of the checkout).
    #[arg(long, value_name = "DIRECTORY")]
    pub peer_dir: Option<PathBuf>,
}

/// Carries out the action.
///
/// # Errors
/// A peer is unknown or cannot be built, or the sources are not here.
pub fn run(options: &PeersOptions) -> Result<(), Failure> {
    match &options.action {
        PeersAction::List(options) => list(options),
        PeersAction::Install(options) => {
            let named = options.peers.iter().map(|name| source_of(name)).collect::<Result<Vec<_>, _>>()?;
            let all = || {
                PeerProgram::ALL.map(PeerProgram::source).into_iter().chain(CoapPeer::ALL.map(CoapPeer::name)).collect()
            };
            let named: Vec<&str> = if named.is_empty() { all() } else { named };
            remark("Building the peers that are not up to date; each takes between seconds and several minutes.");
            peers::install(&named, options.peer_dir.as_deref()).map_err(from_lab)
        }
    }
}

/// A peer with the state of its program.
#[derive(Serialize)]
struct ListedPeer {
    name: &'static str,
    measures: &'static str,
    #[serde(flatten)]
    state: Readiness,
}

fn list(options: &PeersListOptions) -> Result<(), Failure> {
    let folder = options.peer_dir.as_deref();
    let others = PeerProgram::ALL.into_iter().map(|peer| ListedPeer {
        name: peer.name(),
        measures: peer.description(),
        state: peers::readiness(peer, folder),
    });
    let coap = CoapPeer::ALL.into_iter().map(|peer| ListedPeer {
        name: peer.name(),
        measures: peer.description(),
        state: peer.readiness(folder),
    });
    let all: Vec<ListedPeer> = others.chain(coap).collect();
    let text: Vec<String> = all.iter().map(ListedPeer::to_text).collect();
    print_either(options.json, &json!({ "peers": all }), text.join("\n"))
}

impl ListedPeer {
    fn to_text(&self) -> String {
        let ListedPeer { name, measures, state } = self;
        let state = match state {
            Readiness::Ready { program, version } => format!("ready     {version}, {}", program.display()),
            Readiness::Broken { program, reason } => {
                format!("BROKEN    {}: {reason}; `thalweg lab peers install {name}` builds it anew", program.display())
            }
            Readiness::Missing => format!("missing   `thalweg lab peers install {name}` builds it"),
        };
        format!("{name:<11} {measures:<48} {state}")
    }
}

/// The source folder of a peer, or the nearest name.
fn source_of(name: &str) -> Result<&'static str, Failure> {
    if let Some(peer) = CoapPeer::named(name) {
        return Ok(peer.name());
    }
    PeerProgram::parse(name).map(PeerProgram::source).ok_or_else(|| {
        let known = PeerProgram::ALL.map(PeerProgram::name).into_iter().chain(CoapPeer::ALL.map(CoapPeer::name));
        let names: Vec<&str> = known.collect();
        let guess = nearest(name, names.iter().copied()).map(|name| format!("did you mean {name:?}? "));
        let guess = guess.unwrap_or_default();
        Failure::Usage(format!("no peer is called {name:?}: {guess}Known: {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_peer_is_told_with_the_nearest_one() {
        let Err(Failure::Usage(text)) = source_of("libcoop") else { panic!("allowed") };
        assert!(text.contains("did you mean \"libcoap\"") && text.contains("raw"), "{text}");
        assert_eq!((source_of("iceoryx2").ok(), source_of("coap-rs").ok()), (Some("iceoryx"), Some("coap-rs")));
    }
}
