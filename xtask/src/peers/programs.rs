//! The programs that measure other middleware, and none; `peers/README.md` describes their common interface.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::coap::{self, SERVERS};
use super::{check, cyclone_python, fastdds, libclang, tshark};
use crate::Outcome;
use crate::workspace::{output, root, run as run_command};

/// A program below `peers/`, in a workspace of its own.
pub struct PeerBuild {
    /// Its name on the command line; the folder is `<name>-perf`.
    pub name: &'static str,
    /// Sets up the build's requirements and names them in environment variables.
    environment: fn() -> Outcome<Vec<(&'static str, OsString)>>,
}

/// Eclipse Cyclone DDS, which the comparison measures as well.
pub const CYCLONE: PeerBuild = PeerBuild { name: "cyclone", environment: bindings };

/// eProsima Fast DDS, to which the tests send bursts and which the comparison measures as well.
pub const FASTDDS: PeerBuild = PeerBuild { name: "fastdds", environment: fastdds::environment };

/// RustDDS, to which the tests send bursts.
pub const RUSTDDS: PeerBuild = PeerBuild { name: "rustdds", environment: || Ok(Vec::new()) };

/// Dust DDS, which runs the cases of shapes.
pub const DUST: PeerBuild = PeerBuild { name: "dust", environment: || Ok(Vec::new()) };

/// Eclipse Zenoh, which the comparison measures as well.
pub const ZENOH: PeerBuild = PeerBuild { name: "zenoh", environment: || Ok(Vec::new()) };

/// Plain UDP sockets, the floor of the comparison.
pub const RAW: PeerBuild = PeerBuild { name: "raw", environment: || Ok(Vec::new()) };

const PROGRAMS: [PeerBuild; 8] = [
    RAW,
    CYCLONE,
    ZENOH,
    FASTDDS,
    RUSTDDS,
    DUST,
    PeerBuild { name: "hdds", environment: || Ok(Vec::new()) },
    PeerBuild { name: "iceoryx", environment: || Ok(Vec::new()) },
];

impl PeerBuild {
    /// Builds the program if it is not up to date, and returns where it is.
    pub fn build(&self) -> Outcome<PathBuf> {
        let program = format!("{}-perf", self.name);
        let built = super::folder().join(&program);
        let mut command = Command::new("cargo");
        command.args(["build", "--release", "--locked", "--quiet"]).current_dir(root().join("peers").join(&program));
        command.env("CARGO_TARGET_DIR", &built).envs((self.environment)()?);
        // Where dependencies are built: most are those of all programs.
        command.env("CARGO_BUILD_BUILD_DIR", super::folder().join("build"));
        run_command(&mut command)?;
        Ok(built.join("release").join(program))
    }
}

/// Environment for generating Rust bindings of C headers.
fn bindings() -> Outcome<Vec<(&'static str, OsString)>> {
    // The wheel brings the parser without its headers; those of the C compiler serve as well.
    let headers = output(Command::new("cc").arg("-print-file-name=include"))?;
    let arguments = format!("-isystem {}", headers.trim());
    Ok(vec![("LIBCLANG_PATH", libclang()?.into()), ("BINDGEN_EXTRA_CLANG_ARGS", arguments.into())])
}

/// Builds the named programs, or all, and says of each whether it is ready; `--check` also runs those that are.
/// Fails if one is not to be had, after all others are built.
pub fn run(arguments: &[String]) -> Outcome {
    let checked = arguments.iter().any(|argument| argument == "--check");
    let names: Vec<&String> = arguments.iter().filter(|argument| *argument != "--check").collect();
    let known = || PROGRAMS.iter().map(|program| program.name).chain(SERVERS.iter().map(|server| server.name));
    if let Some(unknown) = names.iter().find(|name| !known().any(|known| known == name.as_str())) {
        return Err(format!("no peer is called {unknown}; there are {}", known().collect::<Vec<_>>().join(", ")));
    }
    let mut missing = Vec::new();
    if names.is_empty() {
        report("Python with Cyclone DDS", cyclone_python(), &mut missing);
        report("tshark", tshark(), &mut missing);
    }
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| *wanted == name);
    for program in PROGRAMS.iter().filter(|program| is_wanted(program.name)) {
        examine(program.name, program.build(), checked.then_some(check::check), &mut missing);
    }
    for server in SERVERS.iter().filter(|server| is_wanted(server.name)) {
        examine(server.name, server.build(), checked.then_some(coap::check), &mut missing);
    }
    if missing.is_empty() { Ok(()) } else { Err(format!("not to be had: {}", missing.join(", "))) }
}

/// Says whether a built program is ready, of which version it is and, with a check, that it works.
fn examine(
    name: &'static str,
    built: Outcome<PathBuf>,
    check: Option<fn(&Path) -> Outcome<String>>,
    missing: &mut Vec<&'static str>,
) {
    let Some(path) = report(name, built, missing) else { return };
    let version = output(Command::new(&path).arg("--version"));
    for said in [Some(version), check.map(|check| check(&path))].into_iter().flatten() {
        match said {
            Ok(text) => println!("    {}", text.trim()),
            Err(reason) => unavailable(name, &reason, missing),
        }
    }
}

fn report(name: &'static str, path: Outcome<PathBuf>, missing: &mut Vec<&'static str>) -> Option<PathBuf> {
    match path {
        Ok(path) => {
            println!("{name}: ready, {}", path.display());
            Some(path)
        }
        Err(reason) => {
            unavailable(name, &reason, missing);
            None
        }
    }
}

fn unavailable(name: &'static str, reason: &str, missing: &mut Vec<&'static str>) {
    println!("*** {name}: UNAVAILABLE: {reason} ***");
    if !missing.contains(&name) {
        missing.push(name);
    }
}
