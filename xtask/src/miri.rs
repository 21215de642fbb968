//! Tests of code that handles memory by itself, in an interpreter that watches every access.

use std::process::Command;

use crate::Outcome;
use crate::workspace::{cargo, output, run as run_command, target};

/// The crates with the tests that need no socket and end within minutes: the interpreter is some hundred times slower.
const TESTS: [(&str, &[&str]); 3] = [
    ("thalweg-cdr", &[]),
    ("thalweg-rtps", &["payload::", "writer::tests::a_frame_is_complete"]),
    ("thalweg-transport", &["sys::address::", "sys::control::", "clock::", "entropy::", "ports::"]),
];

/// Runs the tests under miri, which comes with a nightly toolchain only.
pub fn run() -> Outcome {
    let missing = "miri is not there: install it by `rustup toolchain install nightly --component miri,rust-src`";
    output(Command::new("cargo").args(["+nightly", "miri", "--version"]))
        .map_err(|error| format!("{missing} ({error})"))?;
    let mut failed = Vec::new();
    for (package, filters) in TESTS {
        println!("\n=== {package} ===");
        let mut command = cargo(&["+nightly", "miri", "test", "--package", package, "--lib", "--"]);
        command
            .args(filters)
            .env("CARGO_TARGET_DIR", target().join("miri"))
            .env("MIRIFLAGS", "-Zmiri-disable-isolation");
        if run_command(&mut command).is_err() {
            failed.push(package);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("miri found faults in {}", failed.join(", "))) }
}
