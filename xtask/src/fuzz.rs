//! Short runs of the fuzz targets, several at a time.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use serde_json::Value;

use crate::Outcome;
use crate::workspace::{output, root, target};

/// Default time of one target.
const SECONDS: u32 = 15;

/// Flags that let the fuzzer see the code that an input reaches and its comparisons; the code under test has no `unsafe`, so no sanitizer watches
/// it, and the workspace's own toolchain will do.
const INSTRUMENTATION: [&str; 8] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-sanitizer-coverage-stack-depth",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
];

/// A built target.
struct Target {
    name: String,
    program: PathBuf,
}

/// Runs each target of `fuzz/` for the given seconds, as many at a time as there are CPUs.
pub fn run(arguments: &[String]) -> Outcome {
    let seconds = match arguments.first() {
        None => SECONDS,
        Some(text) => text.parse().map_err(|_| format!("{text} is not a number of seconds"))?,
    };
    let folder = target().join("fuzz");
    let targets = build(&folder)?;
    let count = targets.len();
    let next = Mutex::new(targets.into_iter());
    let failed = Mutex::new(Vec::new());
    let work = || {
        // The queue is free again before the target runs.
        let take = || next.lock().ok()?.next();
        while let Some(target) = take() {
            println!("fuzzing {} for {seconds} s", target.name);
            if let Err(reason) = fuzz(&target, &folder, seconds) {
                eprintln!("{reason}");
                failed.lock().unwrap_or_else(|broken| broken.into_inner()).push(target.name);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().unwrap_or_else(|broken| broken.into_inner());
    println!("fuzz: {} passed, {} failed", count - failed.len(), failed.len());
    if failed.is_empty() { Ok(()) } else { Err(format!("fuzzing found a failure in {}", failed.join(", "))) }
}

/// Builds all targets at once.
fn build(folder: &Path) -> Outcome<Vec<Target>> {
    let version = output(Command::new("rustc").current_dir(root()).arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("rustc -vV does not name the host")?;
    let mut command = Command::new("cargo");
    command.current_dir(root().join("fuzz")).args(["build", "--locked", "--message-format=json-render-diagnostics"]);
    // With a target named, build scripts and macros stay without the instrumentation.
    command.args(["--target", host, "--target-dir"]).arg(folder);
    command.env("CARGO_ENCODED_RUSTFLAGS", INSTRUMENTATION.join("\u{1f}")).env_remove("RUSTFLAGS");
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let built = command.output().map_err(|error| format!("cargo build: {error}"))?;
    if !built.status.success() {
        return Err("the fuzz targets do not build".to_owned());
    }
    let messages = String::from_utf8_lossy(&built.stdout);
    let targets: Vec<Target> = messages.lines().filter_map(target_in).collect();
    if targets.is_empty() { Err("cargo built no fuzz target".to_owned()) } else { Ok(targets) }
}

/// The target of a message of cargo.
fn target_in(message: &str) -> Option<Target> {
    let message: Value = serde_json::from_str(message).ok()?;
    let program = message["executable"].as_str()?.into();
    Some(Target { name: message["target"]["name"].as_str()?.to_owned(), program })
}

/// Runs a target; an error has its output and the path of the failing input.
fn fuzz(target: &Target, folder: &Path, seconds: u32) -> Outcome {
    let made = |kind: &str| {
        let path = folder.join(kind).join(&target.name);
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok::<PathBuf, String>(path)
    };
    let (corpus, failures) = (made("corpus")?, made("failures")?);
    let mut command = Command::new(&target.program);
    command.arg(corpus);
    let seeds = root().join("fuzz/corpus").join(&target.name);
    if seeds.is_dir() {
        command.arg(seeds);
    }
    command.arg(format!("-max_total_time={seconds}")).arg(format!("-artifact_prefix={}/", failures.display()));
    command.args(["-rss_limit_mb=2048", "-verbosity=0"]).stdin(Stdio::null());
    let run = command.output().map_err(|error| format!("{}: {error}", target.program.display()))?;
    if run.status.success() {
        return Ok(());
    }
    Err(format!("{}: {}\n{}", target.name, run.status, String::from_utf8_lossy(&run.stderr)))
}

#[cfg(test)]
mod tests {
    use super::target_in;

    #[test]
    fn programs_are_found_among_cargos_messages() {
        let program = r#"{"reason":"compiler-artifact","target":{"name":"message"},"executable":"/t/message"}"#;
        let found = target_in(program).expect("a program");
        assert_eq!((found.name.as_str(), found.program.to_str()), ("message", Some("/t/message")));
        let library = r#"{"reason":"compiler-artifact","target":{"name":"serde"},"executable":null}"#;
        assert!([library, r#"{"reason":"build-finished"}"#, "noise"].into_iter().all(|line| target_in(line).is_none()));
    }
}
