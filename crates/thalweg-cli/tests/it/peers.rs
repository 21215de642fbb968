//! Other vendors' programs in scenarios, played by scripts that go wrong in every way; and the commands around them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use thalweg_host::HostFiles;

use crate::program::{Said, run};

/// An empty folder.
fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("peers-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("made");
    path
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// Puts a program for the peer `name` into `folder`: it reads its order, then does what `script` says.
fn peer(folder: &Path, name: &str, script: &str) {
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && {{ echo \"{name}-perf (a script)\"; exit 0; }}\n\
         [ \"$*\" = 'station --help' ] && exit 0\nread -r order\n{script}\n"
    );
    let path = folder.join(format!("{name}-perf"));
    fs::write(&path, script).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
}

/// Runs a scenario of a second, 1–1, with these middleware and the programs in `folder`.
fn lab_run(folder: &Path, middleware: &str) -> Said {
    let scenario = format!(
        "schema = \"thalweg.scenario/1\"\nname = \"test\"\n[matrix]\nmiddleware = [{middleware}]\npayload_bytes = 100\nrate_hz = 50\n\
         [schedule]\nseconds = 1\nruns = 2\nwarm_up_s = 0.2\nmatch_s = 3\ndesign = \"sequential\"\n[system]\nattempts = 1\n"
    );
    let file = folder.join("scenario.toml");
    fs::write(&file, scenario).expect("written");
    let out = folder.join("out");
    run(&["lab", "run", text(&file), "--out", text(&out), "--peer-dir", text(folder)])
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("there")).expect("JSON")
}

/// Waits until no process has `word` among its arguments.
#[track_caller]
fn expect_nobody(word: &str) {
    let is_there = || {
        let files = HostFiles::here();
        files.processes().into_iter().any(|id| files.arguments(id).iter().any(|argument| argument.contains(word)))
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    while is_there() {
        assert!(Instant::now() < deadline, "{word} is left behind");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_peer_that_fails_is_told_with_its_reason_and_the_others_are_measured() {
    let folder = folder("failing");
    peer(&folder, "cyclone", "echo 'out of handles' >&2; exit 3");
    // What a program started is ended with it; the odd number recognizes it.
    peer(&folder, "fastdds", "sleep 7654.321 & echo 'Hello, world'; wait");
    peer(&folder, "zenoh", r#"echo '{"failed":"subscriber 0 found 0 of 1 publishers within 500ms"}'; exit 1"#);
    peer(&folder, "dust", "exec sleep 7654.321");
    peer(&folder, "hdds", r#"echo '{"progress":"drained"}'; exec sleep 7654.321"#);
    let said =
        lab_run(&folder, "\"cyclone\", \"thalweg\", \"fastdds\", \"zenoh\", \"dust-tuned\", \"hdds\"").expect_code(1);
    for (name, reason) in [
        ("cyclone", "(cyclone) ended (exit status: 3)"),
        ("cyclone", "out of handles"),
        ("fastdds", "it answered \"Hello, world\", which is no message of this version"),
        // Both ends say the same; either may be heard first.
        ("zenoh", "0 (zenoh) gave up: subscriber 0 found 0 of 1 publishers"),
        ("dust-tuned", "nothing was heard of the subscriber 0 (dust-tuned)"),
        ("hdds", "said something unexpected"),
    ] {
        let line = said
            .stdout
            .lines()
            .find(|line| line.contains(&format!("FAILED: 1–1 100 B 50 Hz {name} failed in round 1")));
        assert!(line.is_some_and(|line| line.contains(reason)), "{name}: {reason} in\n{}{}", said.stdout, said.stderr);
    }
    assert!(said.stderr.contains("5 of 6 cells have no result"), "{}", said.stderr);
    expect_nobody("7654.321");
    let out = folder.join("out");
    let manifest = json(&out.join("manifest.json"));
    assert_eq!((&manifest["state"], &manifest["runs_done"]), (&"complete".into(), &2.into()));
    assert_eq!(manifest["runs_planned"], 2);
    assert!(manifest["fingerprint"]["parts"]["program of cyclone"].is_string(), "{manifest}");
    assert_eq!(fs::read_dir(out.join("runs")).expect("runs").count(), 2, "both of Thalweg, nothing of the others");
    let results = json(&out.join("results.json"));
    let counts = ["cells", "failures"].map(|key| results[key].as_array().map(Vec::len));
    assert_eq!(counts, [Some(1), Some(5)]);
    let html = fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(html.contains("No result: 1–1 100 B 50 Hz cyclone failed"), "the report says so");
    assert!(
        html.contains("round-001-cell-001-attempt-1") && !html.contains("cell-000"),
        "the second cell has the runs"
    );
    run(&["lab", "verify", text(&out)]).expect_code(0);
}

#[test]
fn without_any_result_there_is_none() {
    let folder = folder("none");
    peer(&folder, "cyclone", "exit 3");
    let said = lab_run(&folder, "\"cyclone\"").expect_code(1);
    assert!(said.stderr.contains("no cell has a result: 1–1 100 B 50 Hz cyclone failed"), "{}", said.stderr);
    assert_eq!(json(&folder.join("out/manifest.json"))["state"], "failed");
}

#[test]
fn a_peer_that_is_not_set_up_is_told_before_the_run() {
    let folder = folder("missing");
    let said = lab_run(&folder, "\"thalweg\", \"rustdds\"").expect_code(1);
    assert!(said.stderr.contains("rustdds is not set up: run `thalweg lab peers install rustdds`"), "{}", said.stderr);
    assert!(!folder.join("out").exists(), "nothing was begun");
}

#[test]
fn the_list_says_of_each_peer_how_far_it_is() {
    let folder = folder("list");
    peer(&folder, "cyclone", "");
    fs::write(folder.join("zenoh-perf"), "#!/nonexistent/shell\n").expect("written");
    fs::set_permissions(folder.join("zenoh-perf"), fs::Permissions::from_mode(0o755)).expect("made executable");
    let before_scenarios = "#!/bin/sh\n[ \"$1\" = --version ] && { echo old; exit 0; }\nexit 2\n";
    fs::write(folder.join("hdds-perf"), before_scenarios).expect("written");
    fs::set_permissions(folder.join("hdds-perf"), fs::Permissions::from_mode(0o755)).expect("made executable");
    let said = run(&["lab", "peers", "list", "--peer-dir", text(&folder)]).expect_code(0);
    let line = |name: &str| said.stdout.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(line("cyclone").contains("ready     cyclone-perf (a script)"), "{}", said.stdout);
    assert!(line("zenoh").contains("BROKEN") && line("zenoh").contains("does not run"), "{}", said.stdout);
    assert!(line("hdds").contains("BROKEN") && line("hdds").contains("built for an older"), "{}", said.stdout);
    assert!(line("iceoryx2").contains("missing   `thalweg lab peers install iceoryx2`"), "{}", said.stdout);
    let told = run(&["lab", "peers", "list", "--peer-dir", text(&folder), "--json"]).expect_code(0).stdout;
    let told: Value = serde_json::from_str(&told).expect("JSON");
    let peer = |name: &str| told["peers"].as_array().and_then(|peers| peers.iter().find(|peer| peer["name"] == name));
    assert_eq!(peer("cyclone").expect("listed")["version"], "cyclone-perf (a script)");
    assert_eq!(peer("zenoh").expect("listed")["state"], "broken");
    assert_eq!(peer("coap-rs").expect("listed")["state"], "missing");
    let said = run(&["lab", "peers", "install", "cyclon"]).expect_code(2);
    assert!(said.stderr.contains("did you mean \"cyclone\""), "{}", said.stderr);
}

#[test]
fn paper4_names_who_is_missing_and_refuses_options_of_others() {
    let said = run(&["lab", "run", "paper4", "--tables", "2"]).expect_code(2);
    assert!(said.stderr.contains("Options of `thalweg lab run paper4`: --quick"), "{}", said.stderr);
    let said = run(&["lab", "run", "paper4", "--peers", "zeno"]).expect_code(2);
    assert!(said.stderr.contains("'zenoh'"), "{}", said.stderr);
}
