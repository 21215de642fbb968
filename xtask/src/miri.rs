//! Tests of code that handles memory by itself, in an interpreter that watches every access.

use std::process::Command;

use crate::test::stream;
use crate::workspace::{cargo, output, target};
use crate::{Outcome, report};

/// The crates with the tests that need no socket and end within minutes: the interpreter is some hundred times slower.
const TESTS: [(&str, &[&str]); 4] = [
    ("thalweg-cdr", &[""]),
    ("thalweg-base", &["payload::"]),
    ("thalweg-rtps", &["writer::tests::a_frame_is_complete"]),
    ("thalweg-transport", &["sys::address::", "sys::control::", "clock::", "entropy::", "ports::"]),
];

/// Runs the tests under miri, which comes with a nightly toolchain only.
pub fn run() -> Outcome {
    let missing = "miri is not there: install it by `rustup toolchain install nightly --component miri,rust-src`";
    output(Command::new("cargo").args(["+nightly", "miri", "--version"]))
        .map_err(|error| format!("{missing} ({error})"))?;
    let mut failed = Vec::new();
    let tests = TESTS.iter().flat_map(|(package, filters)| filters.iter().map(move |filter| (*package, *filter)));
    for (package, filter) in tests {
        println!("\n=== {package} {filter} ===");
        let mut command = cargo(&["+nightly", "miri", "test", "--package", package, "--lib", "--", filter]);
        command.env("CARGO_TARGET_DIR", target().join("miri")).env("MIRIFLAGS", "-Zmiri-disable-isolation");
        let (succeeded, text) = stream(&mut command)?;
        // A filter that fits nothing any more is no success.
        if !succeeded || report::closing_lines(&text).passed == 0 {
            failed.push(format!("{package} {filter}"));
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("miri found faults in, or no test of, {}", failed.join(", "))) }
}
