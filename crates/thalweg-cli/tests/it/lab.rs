//! `lab quick`: its report, and what happens when something goes wrong on the way.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{PATIENCE, Running, command, signal};
use crate::workers::{children, expect_gone};

/// An empty directory for the report.
fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("lab-{name}"));
    let _ = fs::remove_dir_all(&path);
    path
}

fn start(out: &Path) -> Running {
    let out = out.to_str().expect("text");
    Running::start(command(&["lab", "quick", "--out", out, "--runs", "5", "--phase", "0.4"]))
}

/// Waits until the experiment's processes run.
#[track_caller]
fn workers(lab: &Running) -> Vec<u32> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = children(lab.id());
        if found.len() == 2 {
            return found;
        }
        assert!(Instant::now() < deadline, "{found:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn quick_measures_three_kinds_of_data_and_writes_an_offline_report() {
    let out = directory("report");
    let said = start(&out).finish().expect_code(0);
    for part in [
        "High-frequency data",
        "Large data",
        "Background data",
        "3,000 × 256 B",
        "10,000 × 1 KiB",
        "1 × 5 MiB",
        "std dev",
    ] {
        assert!(said.stdout.contains(part), "{part} in\n{}", said.stdout);
    }
    assert!(said.stderr.contains("100 Hz"), "progress: {}", said.stderr);
    let html = fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(html.len() < 1_000_000 && html.contains("default-src 'none'"));
    for outside in ["http://", "https://", "src=", "<link"] {
        assert!(!html.contains(outside), "{outside} in the report");
    }
    let json: Value =
        serde_json::from_str(&fs::read_to_string(out.join("results.json")).expect("figures")).expect("JSON");
    assert_eq!(json["schema"], "thalweg.benchmark-results/1");
    let run = |cell: usize| &json["cells"][cell]["runs"][0];
    let bursts = |cell: usize| run(cell)["detail"]["times_ms"].as_array().expect("times");
    assert!((0..7).all(|cell| bursts(cell).len() == 5 && bursts(cell).iter().all(|ms| ms.as_f64() > Some(0.0))));
    for topic in [run(7), run(8)] {
        assert_eq!(topic["lost"], 0);
        let points = topic["detail"]["topic"]["points"].as_array().expect("the topic without and with transfers");
        assert!(!points.is_empty() && topic["sent"] == points.len());
    }
}

#[test]
fn what_was_interrupted_goes_on_and_a_changed_time_is_found() {
    let out = directory("resumed");
    let lab = start(&out);
    workers(&lab);
    lab.signal("INT");
    lab.finish().expect_code(130);
    let words = |verb| command(&["lab", verb, out.to_str().expect("text")]);
    let said = Running::start(words("verify")).finish().expect_code(1);
    assert!(said.stderr.contains("`thalweg lab resume"), "{}", said.stderr);
    let said = Running::start(words("resume")).finish().expect_code(0);
    assert!(
        said.stdout.contains("Not judged: arrived, share of sent; burst or transfer, ms"),
        "one round: {}",
        said.stdout
    );
    Running::start(words("verify")).finish().expect_code(0);
    let file = out.join("runs/round-000-cell-000-attempt-1/result.json");
    let mut run: Value = serde_json::from_str(&fs::read_to_string(&file).expect("a run")).expect("JSON");
    let burst = &mut run["outcomes"]["each"][0]["bursts_ms"][0];
    *burst = (2.0 * burst.as_f64().expect("a time")).into();
    fs::write(&file, run.to_string()).expect("written");
    let said = Running::start(words("verify")).finish().expect_code(1);
    assert!(said.stderr.contains("results.json does not agree with the runs"), "{}", said.stderr);
}

#[test]
fn a_process_that_dies_leaves_a_clear_message_and_no_result() {
    let out = directory("death");
    let lab = start(&out);
    let workers = workers(&lab);
    signal(workers[0], "KILL");
    let said = lab.finish().expect_code(1);
    assert!(said.stderr.contains("ended (signal: 9"), "{}", said.stderr);
    assert!(said.stdout.is_empty() && !out.join("report.html").exists());
    expect_gone(&workers);
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    let out = directory("interrupt");
    let lab = start(&out);
    let workers = workers(&lab);
    lab.signal("INT");
    lab.finish().expect_code(130);
    assert!(!out.join("report.html").exists());
    expect_gone(&workers);
}

#[test]
fn killed_it_takes_its_processes_along() {
    let lab = start(&directory("killed"));
    let workers = workers(&lab);
    lab.signal("KILL");
    expect_gone(&workers);
}

#[test]
fn a_directory_that_cannot_be_written_is_told_before_anything_is_measured() {
    let started = Instant::now();
    let said = Running::start(command(&["lab", "quick", "--out", "/proc/nowhere"])).finish().expect_code(1);
    assert!(said.stderr.contains("/proc/nowhere") && said.stderr.contains("--out"), "{}", said.stderr);
    assert!(started.elapsed() < Duration::from_secs(5));
}
