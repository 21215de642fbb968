//! Building the programs, and what is there.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde::Serialize;

use super::{FOLDER, PeerProgram};
use crate::error::LabError;

/// How far a peer is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Readiness {
    /// Its program runs: where it lies and what it says of itself.
    Ready {
        /// The program.
        program: PathBuf,
        /// Its answer to `--version`.
        version: String,
    },
    /// Its program is there and does not run.
    Broken {
        /// The program.
        program: PathBuf,
        /// Why.
        reason: String,
    },
    /// There is no program.
    Missing,
}

/// How far `peer` is, its program looked for as in [`PeerProgram::find`].
pub fn readiness(peer: PeerProgram, folder: Option<&Path>) -> Readiness {
    match readiness_of(peer.find(folder)) {
        Readiness::Ready { program, .. } if !knows_scenarios(&program) => {
            Readiness::Broken { program, reason: TOO_OLD.to_owned() }
        }
        state => state,
    }
}

/// How far a program is that was looked for: it is ready when it tells its version.
pub(crate) fn readiness_of(program: Option<PathBuf>) -> Readiness {
    let Some(program) = program else { return Readiness::Missing };
    match ask(&program, &["--version"]) {
        Ok(said) if said.status.success() => {
            Readiness::Ready { program, version: String::from_utf8_lossy(&said.stdout).trim().to_owned() }
        }
        Ok(said) => {
            let words = String::from_utf8_lossy(&said.stderr).trim().lines().last().unwrap_or_default().to_owned();
            Readiness::Broken { program, reason: format!("it does not run: {}: {words}", said.status) }
        }
        Err(error) => Readiness::Broken { program, reason: format!("it does not run: {error}") },
    }
}

fn knows_scenarios(program: &Path) -> bool {
    ask(program, &["station", "--help"]).is_ok_and(|said| said.status.success())
}

fn ask(program: &Path, arguments: &[&str]) -> io::Result<Output> {
    Command::new(program).args(arguments).stdin(Stdio::null()).output()
}

const TOO_OLD: &str = "it was built for an older laboratory, which knew no scenarios";

/// Builds the programs of these source folders' names ([`PeerProgram::source`], [`CoapPeer::name`](crate::paper5::CoapPeer::name)) from the checkout that this program or the current directory lies in, into `folder` or, without one,
/// below the checkout's build folder. The build's output goes to ours.
///
/// # Errors
/// There is no checkout, or a program cannot be built; the build has said why.
pub fn install(sources: &[&str], folder: Option<&Path>) -> Result<(), LabError> {
    let checkout = checkout().ok_or_else(|| {
        LabError::Here(
            "the sources of the peers' programs are not here: run this inside a checkout of Thalweg, and name the built programs with \
             --peer-dir where you measure"
                .to_owned(),
        )
    })?;
    let mut command = Command::new("cargo");
    command.args(["run", "--quiet", "--package", "xtask", "--", "peers"]).args(sources);
    command.current_dir(&checkout).stdin(Stdio::null());
    if let Some(folder) = folder {
        let folder = std::path::absolute(folder).map_err(LabError::here)?;
        command.env(FOLDER, folder);
    }
    let status = command.status().map_err(|source| LabError::NotStarted { process: "build".to_owned(), source })?;
    if status.success() {
        Ok(())
    } else {
        Err(LabError::Here(format!("not every peer is ready: the build ended with {status}")))
    }
}

/// The checkout around the current directory or around this program.
fn checkout() -> Option<PathBuf> {
    let places = [std::env::current_dir().ok(), std::env::current_exe().ok()];
    let is_checkout =
        |folder: &&Path| folder.join("peers/protocol").is_dir() && folder.join("xtask/Cargo.toml").is_file();
    places.iter().flatten().find_map(|place| place.ancestors().find(is_checkout).map(Path::to_path_buf))
}
