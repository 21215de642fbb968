//! `lab run paper1`, small, with a peer that a script plays.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::{Said, run};

/// An empty directory.
fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("paper1-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("made");
    path
}

/// Puts a peer program into `folder` that behaves as `pub_end` says once it has met the other end.
fn peer(folder: &Path, name: &str, pub_end: &str) {
    let script =
        format!("#!/bin/sh\nprofile=\"$5\"\nif [ \"$3\" = sub ]; then cat > /dev/null; exit 0; fi\n{pub_end}\n");
    let path = folder.join(format!("{name}-perf"));
    fs::write(&path, script).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
}

/// Answers each request with as many times as it asks for; profile `batch` is unknown to it.
const GOOD: &str = r#"[ "$profile" = batch ] && { echo "no such profile" >&2; exit 2; }
echo "a remark that is no JSON"
echo '{"ready":true,"peer":"fake","version":"1.2.3","profile":"'$profile'"}'
while read -r line; do
  runs=${line##*runs\":}; runs=${runs%%[,\}]*}
  list=7.5; while [ "$runs" -gt 1 ]; do list="$list,7.5"; runs=$((runs - 1)); done
  echo "{\"runs_ms\":[$list]}"
done"#;

/// Says that it cannot.
const BAD: &str = r#"echo '{"ready":true,"peer":"fake","version":"0","profile":"x"}'
while read -r line; do echo '{"error":"out of history"}'; done"#;

fn lab(folder: &Path, more: &[&str]) -> Said {
    let folder = folder.to_str().expect("text");
    let words =
        ["lab", "run", "paper1", "--quick", "--scale", "0.01", "--seed", "7", "--out", folder, "--peer-dir", folder];
    run(&[&words[..], more].concat())
}

#[test]
fn a_small_run_has_every_table_a_report_a_profile_and_tells_what_is_missing() {
    let folder = directory("whole");
    peer(&folder, "zenoh", GOOD);
    peer(&folder, "dust", BAD);
    let more = ["--parts", "search,tables", "--peers", "zenoh,dust,cyclone", "--runs", "2"];
    let said = lab(&folder, &more).expect_code(0);
    for part in [
        "Table 2",
        "Table 3",
        "30 × 256 B",
        "100 × 1 KiB",
        "batching",
        "wrapped by the application",
        "zenoh tuned",
        "stream of 256 B",
        "Time × usage makes 88.8",
    ] {
        assert!(said.stdout.contains(part), "{part} in\n{}", said.stdout);
    }
    let missing =
        said.stderr.contains("MISSING: the peer cyclone") && said.stderr.contains("lab peers install cyclone");
    assert!(missing && said.stderr.contains("left"), "the remaining time is shown: {}", said.stderr);

    let result: Value =
        serde_json::from_str(&fs::read_to_string(folder.join("results.json")).expect("results")).expect("JSON");
    assert_eq!(result["schema"], "thalweg.paper1/2");
    let tables = &result["parts"][1][1];
    assert_eq!(tables["plan"]["seed"], 7);
    let of = |name: &str| {
        let cells = tables["cells"].as_array().expect("cells").iter();
        cells
            .filter(|cell| cell["cell"]["contender"] == name && cell["cell"]["deed"]["burst"].is_object())
            .collect::<Vec<_>>()
    };
    for method in ["immediate", "batching", "auto"] {
        let own = of(method);
        assert_eq!(own.len(), 12, "{method} in every cell of both tables");
        assert!(own.iter().all(|cell| cell["runs"].as_array().is_some_and(|runs| runs.len() == 2)));
    }
    let tuned = of("zenoh tuned");
    assert!(tuned.len() == 12 && tuned.iter().all(|cell| cell["runs"][1]["time_ms"] == 7.5));
    let versions = tables["versions"].to_string();
    assert!(versions.contains("1.2.3"), "{versions}");
    let failures = tables["failures"].to_string();
    assert!(of("zenoh batch").is_empty() && failures.contains("no such profile"), "{failures}");
    let dust = of("dust default")[0]["runs"][0]["missing"].to_string();
    assert!(dust.contains("out of history"), "who fails at one kind has no figure of it: {dust}");
    assert!(!result["left_out"].to_string().contains("cyclone"), "what is not set up stands in the first lines");

    let html = fs::read_to_string(folder.join("report.html")).expect("a report");
    for part in ["Search: batching", "As Figure 7", "As Figure 8", "As Figure 9", "seed 7"] {
        assert!(html.contains(part), "{part} in the report");
    }
    assert!(!html.contains("http://") && !html.contains("https://"), "the report is complete in itself");

    let again = lab(&folder, &more).expect_code(0);
    assert!(
        again.stdout.contains("Table 3") && !again.stderr.contains("left"),
        "nothing is measured twice: {}",
        again.stderr
    );
    run(&["lab", "verify", folder.join("tables").to_str().expect("text")]).expect_code(0);

    let profile = folder.join("profile.toml");
    let said = run(&["perf", "throughput", "--count", "200", "--json", "--profile", profile.to_str().expect("text")])
        .expect_code(0);
    assert!(said.stdout.contains("batch ("), "{}", said.stdout);

    let page = folder.join("page/paper.md");
    let (results, out) = (folder.join("results.json"), page.to_str().expect("text"));
    run(&["lab", "page", results.to_str().expect("text"), "--out", out]).expect_code(0);
    let text = fs::read_to_string(&page).expect("a page");
    assert!(text.contains("## Table 3") && text.contains("](paper-1.svg)"), "{text}");
    assert!(fs::read_to_string(folder.join("page/paper-1.svg")).expect("a figure").starts_with("<svg xmlns="));
}

#[test]
fn a_link_that_cannot_be_made_is_told() {
    let folder = directory("link");
    // An empty PATH has neither ip nor tc, root or not.
    let mut command =
        crate::program::command(&["lab", "run", "paper1", "--quick", "--scale", "0.01", "--peers", "none"]);
    command.args(["--parts", "background", "--out", folder.to_str().expect("text")]).env("PATH", "");
    let said = crate::program::Running::start(command).finish();
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(said.stderr.contains("ip") || said.stderr.contains("root"), "{}", said.stderr);
}
