//! Short runs of the fuzz targets, and the dependency check: both are cargo tools that are built on first use.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::Outcome;
use crate::workspace::{cargo, has, output, root, run as run_command, target};

/// How long one target runs unless the command line says otherwise.
const SECONDS: u32 = 15;

/// Runs each target of `fuzz/` for the given seconds.
pub fn run(arguments: &[String]) -> Outcome {
    let seconds = match arguments.first() {
        None => SECONDS,
        Some(text) => text.parse().map_err(|_| format!("{text} is not a number of seconds"))?,
    };
    if !has_nightly() {
        return Err("fuzzing needs a nightly Rust toolchain: rustup toolchain install nightly".to_owned());
    }
    let tool = tool("cargo-fuzz")?;
    let build = target().join("fuzz");
    let fuzz = |verb: &[&str]| {
        let mut command = Command::new(&tool);
        command.current_dir(root()).env("RUSTUP_TOOLCHAIN", "nightly").env_remove("CARGO");
        command.arg("fuzz").args(verb);
        command
    };
    let targets = output(&mut fuzz(&["list"]))?;
    let mut failed = Vec::new();
    let mut passed = 0;
    for name in targets.lines().map(str::trim).filter(|name| !name.is_empty()) {
        let corpus = build.join("corpus").join(name);
        std::fs::create_dir_all(&corpus).map_err(|error| format!("{}: {error}", corpus.display()))?;
        let mut command = fuzz(&["run", "--target-dir"]);
        command.arg(&build).arg(name).arg(&corpus);
        let seeds = root().join("fuzz/corpus").join(name);
        if seeds.is_dir() {
            command.arg(seeds);
        }
        command.args(["--", &format!("-max_total_time={seconds}"), "-rss_limit_mb=2048", "-verbosity=0"]);
        println!("fuzzing {name} for {seconds} s");
        // A run that finds nothing has nothing to say.
        let output = command.stdin(Stdio::null()).output().map_err(|error| format!("cargo-fuzz: {error}"))?;
        if output.status.success() {
            passed += 1;
        } else {
            eprintln!("{}", String::from_utf8_lossy(&output.stderr));
            failed.push(name);
        }
    }
    println!("fuzz: {passed} passed, {} failed", failed.len());
    if failed.is_empty() { Ok(()) } else { Err(format!("fuzzing found a failure in {}", failed.join(", "))) }
}

/// Checks licences, sources and duplicates. Advisories come from a git host, so they are a step for people.
pub fn licences() -> Outcome {
    let tool = tool("cargo-deny")?;
    let mut command = Command::new(tool);
    command.current_dir(root()).args(["--all-features", "check", "bans", "licenses", "sources"]);
    run_command(&mut command)
}

fn has_nightly() -> bool {
    output(Command::new("rustc").env("RUSTUP_TOOLCHAIN", "nightly").arg("--version")).is_ok()
}

/// The tool from the path, or built into `target/tools`.
fn tool(name: &str) -> Outcome<PathBuf> {
    if has(name) {
        return Ok(PathBuf::from(name));
    }
    let folder = target().join("tools");
    let program = folder.join("bin").join(name);
    if !program.exists() {
        println!("building {name}");
        let mut command = cargo(&["install", "--locked", "--debug", "--quiet", name, "--root"]);
        command.arg(&folder).env("CARGO_TARGET_DIR", target().join("tools/build"));
        run_command(&mut command)?;
    }
    Ok(program)
}
