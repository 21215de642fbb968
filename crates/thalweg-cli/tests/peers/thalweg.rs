//! The `thalweg` program and what it prints.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::host::Host;
use crate::program::{Program, Said};

/// Starts `thalweg` with these words of its command line, on `host` or beside the test.
#[track_caller]
pub fn start(host: Option<&Host>, domain: u32, words: &str) -> Program {
    let program = env!("CARGO_BIN_EXE_thalweg");
    let mut command = host.map_or_else(|| Command::new(program), |host| host.command(program));
    command.args(words.split_whitespace()).args(["--domain", &domain.to_string()]);
    // A machine that is busy with other tests gets more time than a user would want to give.
    for option in ["--match-timeout", "--acknowledge-timeout"] {
        if words.starts_with("pub ") && !words.contains(option) {
            command.args([option, "80"]);
        }
    }
    Program::start("Thalweg", &command)
}

/// Starts `thalweg` with these words and no others.
#[track_caller]
pub fn start_alone(words: &str) -> Program {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
    command.args(words.split_whitespace());
    Program::start("Thalweg", &command)
}

/// As [`start`] beside the test, with a configuration file of this content at `path`.
#[track_caller]
pub fn start_configured((path, content): (&std::path::Path, &str), domain: u32, words: &str) -> Program {
    std::fs::write(path, content).expect("the test's folder is writable");
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
    command.env("THALWEG_CONFIG", path).args(words.split_whitespace()).args(["--domain", &domain.to_string()]);
    Program::start("Thalweg", &command)
}

/// A domain that no other test of this run uses.
pub fn domain() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    1 + NEXT.fetch_add(1, Ordering::Relaxed) % 230
}

/// The samples that `sub --json` printed: value and instance state.
pub fn samples(said: &Said) -> Vec<(Value, String)> {
    let sample = |object: Value| {
        let state = object["instance_state"].as_str().unwrap_or_default().to_owned();
        (object["value"].clone(), state)
    };
    said.objects().filter(|object| object.get("value").is_some()).map(sample).collect()
}

/// Tells the files apart that are being written.
static NEXT_PART: AtomicU32 = AtomicU32::new(0);

/// A file with `length` octets that count up from `first`: the value `@FILE` of `pub --type bytes`.
pub fn octets_file(first: u8, length: usize) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("octets-{first}-{length}"));
    // Another test may be reading a file of the same name: it is never seen half written.
    let part = path.with_extension(format!("{}", NEXT_PART.fetch_add(1, Ordering::Relaxed)));
    std::fs::write(&part, octets(first, length)).expect("the test's folder is writable");
    std::fs::rename(&part, &path).expect("the test's folder is writable");
    path
}

/// Octets that count up from `first` and start again after 255.
pub fn octets(first: u8, length: usize) -> Vec<u8> {
    (0..length).map(|index| first.wrapping_add((index % 256) as u8)).collect()
}
