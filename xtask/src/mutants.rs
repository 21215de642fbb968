//! Mutants of the core: small changes that some test must notice. A sample of them, since all take hours.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::Outcome;
use crate::workspace::{output, root, target};

/// The tool that makes the mutants, and the version whose output is understood here.
const TOOL: &str = "cargo-mutants";
const VERSION: &str = "27.1.0";
/// Whose code is changed.
const MUTATED: [&str; 2] = ["thalweg-rtps", "thalweg-cdr"];
/// Whose tests must notice; in this order, so that the quick ones come first.
const TESTING: [&str; 3] = ["thalweg-cdr", "thalweg-rtps", "thalweg-sim"];
/// Mutants of a run unless the command line says otherwise: half an hour on two processors.
const SAMPLE: usize = 20;
/// Survivors that are known, each with the reason why no test can or need notice it.
const ACCEPTED: &str = "xtask/accepted-mutants.txt";

/// The request of the command line.
struct Wanted {
    sample: usize,
    /// Which of the samples: another seed tests other mutants.
    seed: u64,
}

/// Makes a sample of mutants and runs the tests on each; those that survive and are not accepted are an error.
pub fn run(arguments: &[String]) -> Outcome {
    let wanted = parse(arguments)?;
    let tool = find_tool()?;
    let path = root().join(ACCEPTED);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let accepted = accepted(&text)?;
    let all = list(&tool)?;
    let unknown: Vec<&str> =
        accepted.keys().filter(|known| !all.iter().any(|name| place_of(name) == **known)).copied().collect();
    if !unknown.is_empty() {
        return Err(format!("{ACCEPTED} names mutants that are none any more:\n{}", unknown.join("\n")));
    }
    let shards = all.len().div_ceil(wanted.sample.max(1)).max(1);
    let shard = usize::try_from(wanted.seed % shards as u64).unwrap_or(0);
    println!("mutants: every {shards}th of {}, from number {shard} on; {} are accepted", all.len(), accepted.len());
    let outcomes = test(&tool, shard, shards)?;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut survivors = Vec::new();
    for (name, summary) in &outcomes {
        *counts.entry(summary.as_str()).or_default() += 1;
        if summary == "MissedMutant" && !accepted.contains_key(place_of(name).as_str()) {
            survivors.push(name.as_str());
        }
    }
    println!("mutants: {counts:?}");
    if survivors.is_empty() {
        return Ok(());
    }
    let advice = format!("write the test that notices, or add the mutant to {ACCEPTED} with the reason why none can");
    Err(format!("{} mutants survive all tests:\n{}\n{advice}", survivors.len(), survivors.join("\n")))
}

fn parse(arguments: &[String]) -> Outcome<Wanted> {
    let mut wanted = Wanted { sample: SAMPLE, seed: 1 };
    let mut rest = arguments.iter();
    while let Some(option) = rest.next() {
        let value = rest.next().ok_or_else(|| format!("{option} needs a number"))?;
        let number: u64 = value.parse().map_err(|_| format!("{option} {value}: not a number"))?;
        match option.as_str() {
            "--sample" => wanted.sample = usize::try_from(number).unwrap_or(usize::MAX),
            "--seed" => wanted.seed = number,
            other => return Err(format!("{other} is none of --sample and --seed")),
        }
    }
    Ok(wanted)
}

/// The tool below `target/`, or the one that is installed.
fn find_tool() -> Outcome<PathBuf> {
    let folder = target().join("mutants-tool");
    let install = format!("cargo install {TOOL} --version {VERSION} --locked --root {}", folder.display());
    for program in [folder.join("bin").join(TOOL), PathBuf::from(TOOL)] {
        let Ok(said) = output(Command::new(&program).args(["mutants", "--version"])) else { continue };
        if said.trim() == format!("{TOOL} {VERSION}") {
            return Ok(program);
        }
        println!("{}: {}, while {VERSION} is needed", program.display(), said.trim());
    }
    Err(format!("no mutants without {TOOL} {VERSION}; install it:\n  {install}"))
}

/// `file: change | reason`, a line each; empty lines and those that begin with # say nothing.
fn accepted(text: &str) -> Outcome<BTreeMap<&str, &str>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parsed = lines.map(|line| match line.split_once(" | ") {
        Some((mutant, reason)) if !reason.trim().is_empty() => Ok((mutant.trim(), reason.trim())),
        _ => Err(format!("{ACCEPTED}: no reason behind a ` | ` in: {line}")),
    });
    parsed.collect()
}

/// A mutant's name without line and column, which move with every change of the file.
fn place_of(name: &str) -> String {
    let Some((file, rest)) = name.split_once(':') else { return name.to_owned() };
    let change = rest.splitn(3, ':').nth(2).unwrap_or(rest);
    format!("{file}:{change}")
}

fn packages(command: &mut Command, option: &str, names: &[&str]) {
    for name in names {
        command.args([option, name]);
    }
}

/// The names of all mutants.
fn list(tool: &Path) -> Outcome<Vec<String>> {
    let mut command = Command::new(tool);
    command.current_dir(root()).args(["mutants", "--list", "--colors", "never"]);
    packages(&mut command, "--package", &MUTATED);
    Ok(output(&mut command)?.lines().map(str::to_owned).collect())
}

/// Tests every so many-th mutant, and tells what became of each.
fn test(tool: &Path, shard: usize, shards: usize) -> Outcome<Vec<(String, String)>> {
    let folder = target().join("mutants");
    let mut command = Command::new(tool);
    command.current_dir(root()).args(["mutants", "--colors", "never", "--no-shuffle"]);
    // The simulation comes last and takes long where other work slows it down.
    command.args(["--minimum-test-timeout", "300", "--sharding", "round-robin"]);
    command.args(["--shard", &format!("{shard}/{shards}")]).arg("--output").arg(&folder);
    packages(&mut command, "--package", &MUTATED);
    command.args(["--test-package", &TESTING.join(",")]);
    // It fails when a mutant survives, too; its findings are in its report.
    let status = command.status().map_err(|error| format!("{TOOL}: {error}"))?;
    // Mutants survive or take too long, or the tests fail without any; whatever else, it has not tested all.
    if !matches!(status.code(), Some(0 | 2 | 3 | 4)) {
        return Err(format!("{TOOL} did not come to its end: {status}"));
    }
    let path = folder.join("mutants.out").join("outcomes.json");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let report: Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let outcomes = report["outcomes"].as_array().ok_or_else(|| format!("{}: no outcomes", path.display()))?;
    let summary = |outcome: &Value| outcome["summary"].as_str().unwrap_or("?").to_owned();
    let baseline = outcomes.iter().find(|outcome| outcome["scenario"] == "Baseline").map(summary);
    if baseline.as_deref() != Some("Success") {
        return Err(format!("the tests fail without any mutant ({baseline:?}); see {}", folder.display()));
    }
    let tested = outcomes
        .iter()
        .filter_map(|outcome| Some((outcome["scenario"]["Mutant"]["name"].as_str()?.to_owned(), summary(outcome))));
    Ok(tested.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutant_is_known_again_where_its_line_has_moved() {
        let name = "crates/a/src/b.rs:26:9: replace Encode::encode -> Result<(), E> with Ok(())";
        assert_eq!(place_of(name), "crates/a/src/b.rs: replace Encode::encode -> Result<(), E> with Ok(())");
        let text = format!("# why\n\n{} | nobody can see it\n", place_of(name));
        assert_eq!(accepted(&text).unwrap()[place_of(name).as_str()], "nobody can see it");
        assert!(accepted("a: b |").is_err() && accepted("a: b").is_err());
    }

    #[test]
    fn the_command_line_decides_how_many_mutants_are_tested_and_which() {
        let of = |words: &[&str]| parse(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(of(&["--seed", "7", "--sample", "3"]).map(|wanted| (wanted.sample, wanted.seed)), Ok((3, 7)));
        assert_eq!(of(&[]).map(|wanted| wanted.sample), Ok(SAMPLE));
        assert!(of(&["--sample"]).is_err() && of(&["--sample", "x"]).is_err() && of(&["--all", "1"]).is_err());
    }
}
