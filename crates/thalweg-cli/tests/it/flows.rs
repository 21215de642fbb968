//! `lab run FILE` with several kinds of traffic in each run, and the preset that is made of them.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::run;

/// An empty folder.
fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("flows-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("made");
    path
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// Two sensors, a chain of two processes behind them, and a transfer that its flow controller stretches over half a second.
const SCENARIO: &str = r#"schema = "thalweg.scenario/1"
name = "chain"
[[flow]]
name = "sensor"
payload_bytes = 5000
rate_hz = 20
publishers = 2
topics = "per-publisher"
phase = "together"
[[flow]]
name = "plan"
after = "sensor"
work_ms = 3
payload_bytes = 100
expect = { duplicates = "== 0" }
[[flow]]
name = "act"
after = "plan"
payload_bytes = 10
in_time_ms = 3000
[[flow]]
name = "backup"
payload_bytes = 1000000
rate_hz = 1
transport_priority = 8
flow_controller = { bytes = 20000, period_ms = 10 }
[schedule]
seconds = 2
runs = 2
warm_up_s = 0.5
in_time_ms = 5000
behind_max_ms = 10000
[expect]
lost = "== 0"
not_sent = "== 0"
[system]
others_max_pct = 100
"#;

/// The rows of a file of records, without its header.
fn rows(path: &Path) -> Vec<Vec<u64>> {
    let text = fs::read_to_string(path).expect("there");
    text.lines().skip(1).map(|line| line.split(',').map(|word| word.parse().expect("a number")).collect()).collect()
}

#[test]
fn the_flows_of_a_run_are_reported_apart_and_a_chain_is_followed_from_its_first_due_time() {
    let folder = folder("chain");
    let (file, out) = (folder.join("chain.toml"), folder.join("out"));
    fs::write(&file, SCENARIO).expect("written");
    let said = run(&["lab", "run", text(&file), "--out", text(&out)]).expect_code(0);
    for part in [
        "sensor: 2–2",
        "plan: 1–2 100 B 20 Hz",
        "act: 1–1",
        "backup: 1–1",
        "holds: lost == 0 in act",
        "holds: duplicates == 0 in plan",
    ] {
        assert!(said.stdout.contains(part), "{part} in\n{}", said.stdout);
    }
    assert!(!said.stdout.contains("DOES NOT HOLD"), "{}", said.stdout);
    assert_eq!(said.stdout.matches("duplicates == 0").count(), 1, "{}", said.stdout);
    run(&["lab", "verify", text(&out)]).expect_code(0);
    let results: Value =
        serde_json::from_str(&fs::read_to_string(out.join("results.json")).expect("results")).expect("JSON");
    let cells = results["cells"].as_array().expect("cells");
    let p50 = |cell: usize, run: usize| cells[cell]["runs"][run]["totals"]["response"]["p50_us"].as_f64();
    let backups = cells[3]["runs"].as_array().expect("runs");
    for (run, backup) in backups.iter().enumerate() {
        assert!(p50(1, run) > p50(0, run) && p50(2, run) > p50(1, run), "each stage adds its time: {results}");
        assert!(p50(1, run) >= Some(3_000.0), "the work of planning is CPU time");
        let backup = &backup["totals"]["response"]["min_us"];
        assert!(backup.as_f64() > Some(400_000.0), "50 periods of 10 ms: {backup}");
    }
    // 2.5 s of 20 Hz: number k of a stage follows number k of all before it, and is published once.
    let run_folder = out.join("runs/round-000-cell-000-attempt-1");
    let taken = rows(&run_folder.join("flow-sensor/subscriber-001.csv"));
    assert_eq!(taken.len(), 2 * 50);
    let mut complete: HashMap<u64, u64> = HashMap::new();
    taken.iter().for_each(|row| {
        let at = complete.entry(row[1]).or_default();
        *at = (*at).max(row[3]);
    });
    let planned = rows(&run_folder.join("flow-plan/publisher-000.csv"));
    assert_eq!(planned.iter().map(|row| row[0]).collect::<Vec<_>>(), (0..50).collect::<Vec<_>>());
    for row in &planned {
        assert!(row[1] >= complete[&row[0]] + 3_000_000, "sample {} was planned before all had come", row[0]);
    }
    let html = fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(html.contains("act: 1–1 10 B 20 Hz auto thalweg"));
    let damaged = run_folder.join("flow-act/publisher-000.csv");
    let lines = fs::read_to_string(&damaged).expect("there");
    fs::write(&damaged, lines.trim_end().rsplit_once('\n').expect("lines").0).expect("written");
    let said = run(&["lab", "verify", text(&out)]).expect_code(1);
    assert!(said.stderr.contains("round 0 of cell 0: its result does not agree"), "{}", said.stderr);
}

#[test]
fn the_driving_preset_is_a_scenario_that_can_be_changed() {
    let folder = folder("driving");
    let out = folder.join("out");
    // An empty folder in which the directory cannot be made ends the preset after it has told what it will do.
    fs::write(&out, "in the way").expect("written");
    let words = ["lab", "run", "driving", "--quick", "--peers", "none", "--out", text(&out)];
    let said = run(&words).expect_code(1);
    assert!(said.stderr.contains("driving: 6 cells, 3 runs each") && said.stderr.contains("cannot be written"));
}
