//! Cyclone DDS in Python, started with the options of `peers/cyclone-py/peer.py`.

use std::path::Path;
use std::process::Command;

use crate::host::Host;
use crate::program::Program;

/// What `CYCLONEDDS_URI` tells a program that is not `peer.py`: the loopback interface alone, with discovery by multicast.
pub const LOOPBACK: &str = "<CycloneDDS><Domain><General><Interfaces>\
    <NetworkInterface name=\"lo\" multicast=\"true\"/></Interfaces></General></Domain></CycloneDDS>";

/// Starts the peer with these words of its command line, on `host` or beside the test.
#[track_caller]
pub fn start(host: Option<&Host>, domain: u32, words: &str) -> Program {
    let python = std::env::var("THALWEG_PEER_PYTHON").expect("no other vendor's program: run `cargo xtask test`");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/cyclone-py/peer.py");
    let mut command = host.map_or_else(|| Command::new(&python), |host| host.command(&python));
    command.arg("-u").arg(script).args(words.split_whitespace()).args(["--domain", &domain.to_string()]);
    Program::start("Cyclone", &command)
}
