//! `lab run paper5`, small, with a peer that a script plays.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;
use thalweg_host::HostFiles;

use crate::program::{PATIENCE, Running, command, run};
use crate::workers::children;

/// An empty directory.
fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("paper5-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("made");
    path
}

/// The preset, so small that its figures mean nothing.
fn words(folder: &Path) -> Vec<&str> {
    let folder = folder.to_str().expect("text");
    let mut words = vec!["lab", "run", "paper5", "--quick", "--scale", "0.02", "--seed", "7", "--runs", "3"];
    words.extend(["--out", folder, "--peer-dir", folder]);
    words
}

/// Makes a program of these lines of the shell.
fn script(path: &Path, lines: &str) {
    fs::write(path, format!("#!/bin/sh\n{lines}\n")).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("made executable");
}

/// A server that says its version and dies as soon as it is to serve.
fn dying_peer(folder: &Path, name: &str) {
    let lines = "if [ \"$1\" = --version ]; then echo fake 1.2.3; exit 0; fi\necho out of luck >&2\nexit 3";
    script(&folder.join(format!("coap-{name}")), lines);
}

#[test]
fn a_small_run_has_figures_a_report_and_tells_what_failed_and_what_is_missing() {
    let folder = directory("whole");
    dying_peer(&folder, "aiocoap");
    let more = ["--figures", "9,ramp", "--laws", "fixed:3,vta", "--peers", "aiocoap,libcoap"];
    let arguments = [&words(&folder)[..], &more].concat();
    let said = run(&arguments).expect_code(1);
    assert!(said.stderr.contains("cells have no result because they failed"), "{}", said.stderr);
    for part in ["Figures 9 and 10", "A blocking load", "fixed:3", "2 clients × 10.0/s", "out of luck"] {
        assert!(said.stdout.contains(part), "{part} in\n{}", said.stdout);
    }
    let missing = ["MISSING: the CoAP server with libcoap", "lab peers install libcoap"];
    assert!(missing.iter().all(|part| said.stderr.contains(part)), "{}", said.stderr);

    let text = fs::read_to_string(folder.join("results.json")).expect("results");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&result["schema"], &result["plan"]["seed"]), (&"thalweg.paper5/3".into(), &7.into()));
    let cells = result["cells"].as_array().expect("cells");
    let of = |figure: &str, contender: &str| {
        let is_own = |cell: &&Value| cell["cell"]["figure"] == figure && cell["cell"]["contender"] == contender;
        cells.iter().filter(is_own).collect::<Vec<_>>()
    };
    for cell in of("clients", "thalweg vta") {
        let runs = cell["runs"].as_array().expect("runs");
        assert_eq!(runs.len(), 3);
        // A run of a second in which others had the processor may be over before the first answer.
        assert!(runs.iter().any(|run| run["load"]["counts"]["served"].as_u64() > Some(0)), "{cell}");
        assert!(runs.iter().all(|run| run["server"]["threads_max"].as_u64() > Some(1)), "{cell}");
    }
    assert!(!of("clients", "aiocoap").is_empty());
    let failures = result["failures"].as_array().expect("failures");
    assert_eq!(failures.len(), of("clients", "aiocoap").len(), "each cell once: {failures:?}");
    assert!(failures.iter().all(|one| one["reason"].as_str().is_some_and(|why| why.contains("out of luck"))));
    let ramp = of("ramp", "thalweg fixed:3");
    let lines = ramp[0]["runs"][0]["lines"].as_array().expect("lines");
    let last = lines.last().expect("the server says what it does");
    assert_eq!((&last["pools"][0]["law"], &last["pools"][0]["threads"]), (&"fixed:3".into(), &3.into()));
    assert!(last["pools"][0]["completed"].as_u64() > Some(0), "{last}");
    let report = fs::read_to_string(folder.join("report.html")).expect("a report");
    assert!(report.contains("Differences from the equations") && report.contains("Cells that failed"));
    let page = folder.join("page.md");
    let results = folder.join("results.json");
    let words = ["lab", "page", results.to_str().expect("text"), "--out", page.to_str().expect("text")];
    run(&words).expect_code(0);
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.contains("Made by `thalweg lab run paper5 --quick --seed 7") && page.contains("page-1.svg"), "{page}");

    check_directory(&folder, &arguments);
}

/// The directory is one like those of scenarios.
fn check_directory(folder: &Path, arguments: &[&str]) {
    let out = folder.to_str().expect("text");
    let verified = run(&["lab", "verify", out]).expect_code(0);
    assert!(verified.stdout.contains("agree with their raw data"), "{}", verified.stdout);
    let again = run(arguments).expect_code(1);
    assert!(again.stderr.contains("holds a run already") && again.stderr.contains("lab resume"), "{}", again.stderr);
    let top = run(&["lab", "top", out, "--once"]).expect_code(0);
    assert!(top.stdout.contains("paper5  complete") && top.stdout.contains("served/s"), "{}", top.stdout);
    let compared = run(&["lab", "compare", out, out]).expect_code(0);
    assert!(compared.stdout.contains("served a second"), "{}", compared.stdout);
    let report = fs::read_to_string(folder.join("report.html")).expect("a report");
    fs::remove_file(folder.join("report.html")).expect("removed");
    run(&["lab", "report", out]).expect_code(0);
    assert_eq!(fs::read_to_string(folder.join("report.html")).expect("a report"), report);
    let first = fs::read_dir(folder.join("runs")).expect("runs").next().expect("a run").expect("an entry").path();
    let file = first.join("result.json");
    let mut damaged: Value = serde_json::from_str(&fs::read_to_string(&file).expect("there")).expect("JSON");
    damaged["run"]["load"]["counts"]["lost"] = 1_000_000.into();
    fs::write(&file, damaged.to_string()).expect("written");
    let verified = run(&["lab", "verify", out]).expect_code(1);
    assert!(verified.stderr.contains("are not those served, rejected, wrong and lost"), "{}", verified.stderr);
}

#[test]
fn an_interrupted_run_leaves_no_process_and_says_how_it_goes_on() {
    let folder = directory("interrupted");
    let mut arguments = words(&folder);
    // Half a minute a run, were it not interrupted.
    arguments[5] = "1";
    let mut running =
        Running::start(command(&[&arguments[..], &["--figures", "6", "--laws", "vta", "--peers", "none"]].concat()));
    let children = wait_for_children(running.id());
    running.signal("INT");
    let mut stderr = String::new();
    std::io::Read::read_to_string(&mut running.stderr(), &mut stderr).expect("text");
    running.finish().expect_code(130);
    assert!(stderr.contains("lab resume"), "{stderr}");
    for child in children {
        assert!(!HostFiles::here().has_process(child), "process {child} is left");
    }
    let manifest: Value =
        serde_json::from_str(&fs::read_to_string(folder.join("manifest.json")).expect("a manifest")).expect("JSON");
    assert_eq!((&manifest["state"], &manifest["runs_done"]), (&"interrupted".into(), &0.into()));
    let text = fs::read_to_string(folder.join("scenario.toml")).expect("the plan");
    assert!(text.contains("schema = \"thalweg.coap-servers/2\"") && text.contains("laws = [\"vta\"]"), "{text}");
    // Runs of another plan do not belong to it.
    fs::write(folder.join("scenario.toml"), text.replace("scale = 1.0", "scale = 0.02")).expect("written");
    let other = run(&["lab", "resume", folder.to_str().expect("text")]).expect_code(1);
    assert!(other.stderr.contains("other conditions: scenario was"), "{}", other.stderr);
}

#[test]
fn runs_that_are_missing_are_made_by_resuming() {
    let folder = directory("resumed");
    let arguments = [&words(&folder)[..], &["--figures", "capacity", "--peers", "none"]].concat();
    run(&arguments).expect_code(0);
    // As if it had been interrupted before these runs.
    let runs = folder.join("runs");
    let mut all: Vec<PathBuf> = fs::read_dir(&runs).expect("runs").map(|one| one.expect("an entry").path()).collect();
    all.sort();
    assert_eq!(all.len(), 9, "three cells, three rounds");
    all.iter().skip(7).for_each(|path| fs::remove_dir_all(path).expect("removed"));
    let file = folder.join("manifest.json");
    let text = fs::read_to_string(&file).expect("a manifest").replace("\"complete\"", "\"interrupted\"");
    fs::write(&file, text).expect("written");
    let out = folder.to_str().expect("text");
    let said = run(&["lab", "verify", out]).expect_code(1);
    assert!(said.stderr.contains("`thalweg lab resume"), "{}", said.stderr);
    run(&["lab", "resume", out]).expect_code(0);
    assert_eq!(fs::read_dir(&runs).expect("runs").count(), 9);
    run(&["lab", "verify", out]).expect_code(0);
}

#[test]
fn clients_on_another_machine_load_the_servers_of_this_one() {
    let folder = directory("elsewhere");
    let (ssh, asked) = (folder.join("ssh"), folder.join("asked"));
    let programs = Path::new(env!("CARGO_BIN_EXE_thalweg")).parent().expect("a folder");
    // It skips all options, notes the destination and its number, and becomes the agent on this machine.
    let lines = format!(
        "while [ \"$1\" != -- ]; do shift; done\necho \"$2 $$\" >> '{}'\nexport PATH=\"{}:$PATH\"\n\
         export SSH_CONNECTION='127.0.0.1 40000 127.0.0.1 22'\nexec sh -c \"exec $3\"",
        asked.display(),
        programs.display()
    );
    script(&ssh, &lines);
    let ssh = ssh.to_str().expect("text");
    let more = ["--figures", "capacity,flood", "--peers", "none", "--clients-on", "user@lab2", "--ssh", ssh];
    let running = Running::start(command(&[&words(&folder)[..], &more].concat()));
    let start = Instant::now();
    let agent = || {
        let text = fs::read_to_string(&asked).ok()?;
        text.trim_end().strip_prefix("user@lab2 ")?.parse::<u32>().ok()
    };
    while agent().is_none_or(|agent| children(agent).is_empty()) {
        assert!(start.elapsed() < PATIENCE, "the agent makes no load");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let said = running.finish().expect_code(0);
    assert!(said.stderr.contains("LEFT OUT: the flood"), "{}", said.stderr);
    let text = fs::read_to_string(folder.join("results.json")).expect("results");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(result["plan"]["clients_on"], "user@lab2");
    let runs =
        result["cells"].as_array().expect("cells").iter().flat_map(|cell| cell["runs"].as_array().expect("runs"));
    let runs: Vec<&Value> = runs.collect();
    assert_eq!(runs.len(), 9, "three cells of capacity, no flood");
    for run in runs {
        assert!(run["load"]["counts"]["served"].as_u64() > Some(0), "{run}");
        assert!(run["load"]["server"]["cpu_s"].as_f64().is_some(), "the server is on this machine: {run}");
    }
    let said = run(&[&words(&folder)[..], &["--clients-on=user@-oProxyCommand"]].concat()).expect_code(1);
    assert!(said.stderr.contains("what ssh takes as a destination"), "{}", said.stderr);
}

/// The server and the generator, once both run.
fn wait_for_children(process: u32) -> Vec<u32> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let children = children(process);
        if children.len() >= 2 {
            return children;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("no server and generator within {PATIENCE:?}");
}

#[test]
fn unknown_words_are_told_with_the_nearest_known_ones() {
    let folder = directory("unknown");
    let check = |option: &str, word: &str, expect: &str| {
        let said = run(&[&words(&folder)[..], &[option, word]].concat()).expect_code(2);
        assert!(said.stderr.contains(expect), "{option} {word}: {}", said.stderr);
    };
    check("--figures", "rampe", "'ramp'");
    check("--peers", "libcoop", "'libcoap'");
    check("--laws", "vta-print", "did you mean \"vta-printed\"");
    check("--tables", "2", "Options of `thalweg lab run paper5`: --quick, --full");
    let said = run(&["lab", "run", "paper1", "--figures", "5"]).expect_code(2);
    assert!(said.stderr.contains("Options of `thalweg lab run paper1`: --quick, --parts"), "{}", said.stderr);
}
