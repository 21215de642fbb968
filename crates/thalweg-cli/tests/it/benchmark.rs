//! `lab run FILE` with benchmarks.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::{Said, run};

/// A folder with this benchmark in it.
fn folder(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("benchmark-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("made");
    fs::write(path.join("small.toml"), text).expect("written");
    path
}

fn lab(folder: &Path, more: &[&str]) -> Said {
    let [file, out] = ["small.toml", "out"].map(|name| folder.join(name));
    let [file, out] = [&file, &out].map(|path| path.to_str().expect("text"));
    run(&[&["lab", "run", file, "--out", out][..], more].concat())
}

fn results(folder: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join("out/results.json")).expect("results")).expect("JSON")
}

const SMALL: &str = r#"
schema = "thalweg.benchmark/1"
name = "small"
runs = 8

[[contender]]
name = "one by one"
sending = { method = "immediate" }
[[contender]]
name = "batch"
sending = { method = "batch", max_bytes = 60000, max_flush_delay_us = 1000 }

[[work]]
name = "bursts"
task = { bursts = { of = [[400, 64]], each = 2 } }
expect = [{ of = "batch", by = ["one by one"], ratio = "<= 100" }]
"#;

#[test]
fn expected_ratios_decide_and_the_directory_is_as_any_other() {
    let here = folder("ratios", SMALL);
    let said = lab(&here, &[]).expect_code(0);
    assert!(said.stderr.contains("small: this takes"), "{}", said.stderr);
    let result = results(&here);
    assert_eq!(
        (&result["cells"][1]["name"], &result["ratios"][0]["best"]),
        (&"bursts, batch, 400 × 64 B".into(), &"one by one".into())
    );
    // A busy machine leaves the verdict open, and never makes it the other one.
    let holds = &result["ratios"][0]["holds"];
    assert!(
        result["ratios"][0]["interval"]["high"].as_f64() < Some(100.0) && (holds == true || holds.is_null()),
        "{holds}"
    );
    let out = here.join("out");
    run(&["lab", "verify", out.to_str().expect("text")]).expect_code(0);
    // As an earlier version may have left them, which judged otherwise.
    std::fs::write(out.join("results.json"), "{}").expect("written");
    for (verb, code) in [("verify", 1), ("report", 0), ("verify", 0)] {
        run(&["lab", verb, out.to_str().expect("text")]).expect_code(code);
    }
    let html = fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(html.contains("Expected ratios") && html.contains("bursts"));
    assert!(lab(&here, &[]).expect_code(1).stderr.contains("out"), "a complete directory is not written again");

    let never = folder("never", &SMALL.replace("<= 100", ">= 100"));
    let said = lab(&never, &[]);
    let is_open = results(&never)["ratios"][0]["holds"].is_null();
    assert!(
        is_open || said.code == Some(1) && said.stderr.contains("1 of 1 expected ratios do not hold"),
        "{}",
        said.stderr
    );
}

#[test]
fn another_build_takes_turns_with_each_contender() {
    let here = folder("against", &SMALL.replace("runs = 8", "runs = 2"));
    let before = here.join("thalweg-before");
    fs::copy(env!("CARGO_BIN_EXE_thalweg"), &before).expect("copied");
    lab(&here, &["--against", before.to_str().expect("text")]).expect_code(0);
    let result = results(&here);
    let names: Vec<&str> = result["cells"]
        .as_array()
        .expect("cells")
        .iter()
        .filter_map(|cell| cell["cell"]["contender"].as_str())
        .collect();
    assert_eq!(names, ["one by one, other build", "one by one", "batch, other build", "batch"]);
    let baseline = &result["differences"].as_array().expect("differences").last().expect("one")["baseline"];
    assert_eq!(baseline, "bursts, batch, other build, 400 × 64 B");
    let said = lab(&folder("no-build", SMALL), &["--against", "/nowhere/thalweg"]).expect_code(2);
    assert!(said.stderr.contains("/nowhere/thalweg"), "{}", said.stderr);
}

#[test]
fn what_is_wrong_or_missing_is_told_before_anything_is_measured() {
    let wrong = folder("wrong", &SMALL.replace("each = 2", "each = 2, eech = 3"));
    let said = lab(&wrong, &[]).expect_code(2);
    assert!(said.stderr.contains("small.toml:15:") && said.stderr.contains("eech"), "{}", said.stderr);
    let with_peer =
        format!("{SMALL}\n[[contender]]\nname = \"cyclone\"\npeer = \"cyclone\"\n").replace("runs = 8", "runs = 1");
    let here = folder("peerless", &with_peer);
    let nowhere = here.to_str().expect("text").to_owned();
    let said = lab(&here, &["--peer-dir", &nowhere]).expect_code(0);
    assert!(said.stderr.contains("MISSING: the peer cyclone"), "{}", said.stderr);
    assert_eq!(results(&here)["cells"].as_array().map(Vec::len), Some(2));
    assert!(results(&here)["plan"]["notes"].to_string().contains("cyclone"));
}
