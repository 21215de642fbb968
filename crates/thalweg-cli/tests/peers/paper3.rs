//! `lab run paper3`, small, between hosts of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::program::Program;

/// An empty directory.
fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("paper3-{name}"));
    let _ = fs::remove_dir_all(&path);
    path
}

fn lab(words: &str, out: &Path) -> Program {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
    command.arg("lab").args(words.split_whitespace()).arg(out);
    Program::start("thalweg lab", &command)
}

/// The results of these parts, so small that their figures mean nothing, and a verified directory.
#[track_caller]
fn small(parts: &str) -> Value {
    let out = directory(parts);
    let words = format!("run paper3 --quick --scale 0.3 --seed 5 --peers none --parts {parts} --out");
    lab(&words, &out).finish().well();
    let text = fs::read_to_string(out.join("results.json")).expect("results");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(result["schema"], "thalweg.paper3/2");
    assert_eq!(result["failures"], Value::Array(Vec::new()), "{}", result["failures"]);
    assert!(fs::read_to_string(out.join("report.html")).expect("a report").contains("Equation (1) is TCP"));
    lab("verify", &out).finish().well();
    result
}

fn runs(result: &Value) -> Vec<&Value> {
    let cells = result["cells"].as_array().expect("cells");
    cells.iter().flat_map(|cell| cell["runs"].as_array().expect("runs")).collect()
}

#[test]
fn a_part_of_probes_has_a_report_and_agrees_with_its_raw_data() {
    let result = small("rtt");
    let runs = runs(&result);
    assert_eq!(runs.len(), 10, "two sizes, five settings");
    assert!(runs.iter().all(|run| run["trips"]["mean_us"].as_f64() > Some(0.0)), "{runs:?}");
}

#[test]
fn a_picture_is_shown_on_a_shaped_link_with_classes() {
    let result = small("coexistence");
    let cells = result["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 7);
    for cell in cells.iter().filter(|cell| cell["cell"]["traffic"]["shared"]["picture"].is_object()) {
        let run = &cell["runs"][0];
        assert!(run["picture"]["frames_shown"].as_u64() > Some(0), "{cell}");
        // A question that TCP crowds out of its queue is waited for longer than the run lasts.
        let may_wait = cell["cell"]["traffic"]["shared"]["tcp"] == true;
        assert!(may_wait || run["trips"]["p50_us"].as_f64() > Some(0.0), "{cell}");
    }
}

#[test]
fn a_picture_travels_by_rtp_and_as_topics() {
    let result = small("topics");
    for run in runs(&result) {
        assert!(run["picture"]["frames_shown"].as_u64() > Some(0), "{run}");
        assert!(run["receiver_load"].is_null() || run["receiver_load"]["mean"].as_f64() >= Some(0.0), "{run}");
    }
    let cells = result["cells"].as_array().expect("cells");
    let is_topic = |cell: &&Value| cell["cell"]["label"].as_str().is_some_and(|label| label.contains("topic"));
    let (topics, by_rtp): (Vec<&Value>, Vec<&Value>) = cells.iter().partition(is_topic);
    assert_eq!((topics.len(), by_rtp.len()), (4, 3));
    for cell in topics {
        assert!(cell["runs"][0]["picture"]["latency_p99_us"].as_f64() > Some(0.0), "{cell}");
        assert!(cell["runs"][0]["relayed"].is_null(), "its packets are no RTP: {cell}");
    }
    // The receiver's counts, which `lab verify` has checked, are set beside those of the relay, where one in a hundred gets lost.
    let relayed: Vec<&Value> =
        by_rtp.iter().map(|cell| &cell["runs"][0]["relayed"]).filter(|one| one.is_object()).collect();
    assert_eq!(relayed.len(), 2, "without repair and with it: {by_rtp:?}");
    for relayed in relayed {
        let count = |name: &str| relayed[name].as_u64().unwrap_or_else(|| panic!("no {name}: {relayed}"));
        let (gaps, dropped, seen) = (count("gaps"), count("dropped"), count("seen"));
        assert!(dropped > 0 && gaps <= dropped && count("sent") >= seen, "{relayed}");
        assert!(count("received") + dropped <= seen, "{relayed}");
        if count("elsewhere") == 0 {
            let missing_max = if relayed["is_repaired"] == true { dropped } else { gaps };
            assert_eq!(count("received") + dropped, seen, "{relayed}");
            assert!((gaps..=missing_max).contains(&count("missing")), "{relayed}");
        }
    }
}
