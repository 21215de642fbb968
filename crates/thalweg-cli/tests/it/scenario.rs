//! `lab run FILE`: run directories, and what happens when something goes wrong on the way.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{PATIENCE, Running, Said, command, run, signal};
use crate::workers::{children, expect_gone};

/// An empty folder.
fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("scenario-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("made");
    path
}

/// A scenario of short runs that any machine can make, whatever else runs on it, with more lines at its end.
fn scenario(folder: &Path, seconds: u32, matrix: &str, more: &str) -> PathBuf {
    let text = format!(
        "schema = \"thalweg.scenario/1\"\nname = \"test\"\n[matrix]\nrate_hz = 50\n{matrix}\n\
         [schedule]\nseconds = {seconds}\nruns = 2\nwarm_up_s = 0.2\nin_time_ms = 5000\nbehind_max_ms = 10000\n\
         [system]\nothers_max_pct = 100\n{more}\n"
    );
    let path = folder.join("scenario.toml");
    fs::write(&path, text).expect("written");
    path
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// What a command prints as one JSON object.
#[track_caller]
fn said_json(words: &[&str]) -> Value {
    serde_json::from_str(&run(words).expect_code(0).stdout).expect("one JSON object")
}

fn lab_run(file: &Path, out: &Path) -> Said {
    run(&["lab", "run", text(file), "--out", text(out)])
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("there")).expect("JSON")
}

/// Folders of runs that are whole.
fn whole_runs(out: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(out.join("runs")).expect("runs");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("entry").path()).collect();
    paths.retain(|path| path.extension().is_none());
    paths.sort();
    paths
}

/// Waits until a run is being made and its processes are there.
#[track_caller]
fn wait_for_workers(lab: &Running, count: usize) -> Vec<u32> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = children(lab.id());
        if found.len() >= count {
            return found;
        }
        assert!(Instant::now() < deadline, "{found:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_scenario_becomes_a_directory_that_is_complete_and_verifies() {
    let folder = folder("whole");
    let matrix = "payload_bytes = 100\nendpoints = [\"2-3\"]\ndestination = [\"unicast\", \"multicast\"]";
    let file = scenario(&folder, 1, matrix, "[expect]\nlost = \"== 0\"\nnot_sent = \"== 0\"\nin_time_pct = \"== 100\"");
    let out = folder.join("out");
    let said = lab_run(&file, &out).expect_code(0);
    for part in ["2–3 100 B 50 Hz unicast", "2–3 100 B 50 Hz multicast", "holds: lost == 0", "report.html"] {
        assert!(said.stdout.contains(part), "{part} in\n{}", said.stdout);
    }
    let manifest = json(&out.join("manifest.json"));
    assert_eq!((&manifest["state"], &manifest["runs_done"]), (&"complete".into(), &4.into()));
    let runs = whole_runs(&out);
    assert_eq!(runs.len(), 4);
    for run in &runs {
        let result = json(&run.join("result.json"));
        let totals = &result["totals"];
        assert_eq!((&totals["due"], &totals["lost"], &totals["not_sent"]), (&300.into(), &0.into(), &0.into()));
        assert_eq!((&totals["duplicates"], &totals["reordered"]), (&0.into(), &0.into()));
        assert_eq!(totals["response"]["count"], 300);
        assert!(
            totals["response"]["p50_us"].as_f64() > totals["service"]["p50_us"].as_f64(),
            "response includes the lag"
        );
        assert!(totals["response"]["p99_us"].is_null(), "300 samples carry no 99th percentile");
        assert_eq!(result["fairness"]["last_minus_first"]["count"], 100);
        assert_eq!(
            (&result["pairs"].as_array().map(Vec::len), &result["processes"].as_array().map(Vec::len)),
            (&Some(6), &Some(5))
        );
        assert!(result["processes"][0]["cpu_ns"].as_u64() > Some(0));
        assert!(result["layers"]["udp.InDatagrams"].as_u64() > Some(100));
        assert!(fs::read_to_string(run.join("histograms.csv")).expect("histograms").lines().count() > 12);
        assert_eq!(fs::read_to_string(run.join("publisher-001.csv")).expect("raw").lines().count(), 61);
    }
    let results = json(&out.join("results.json"));
    assert_eq!(results["cells"].as_array().map(Vec::len), Some(2));
    assert_eq!(fs::read_to_string(out.join("results.csv")).expect("CSV").lines().count(), 5);
    let html = fs::read_to_string(out.join("report.html")).expect("a report");
    for part in
        ["Verdicts", "Fates of the samples", "percentile", "Fairness", "Where samples were lost", "default-src 'none'"]
    {
        assert!(html.contains(part), "{part} in the report");
    }
    assert!(html.contains("6 of 6") && html.len() < 1_000_000 && html.matches("<svg").count() > 5);
    for outside in ["http://", "https://", "src=", "<link"] {
        assert!(!html.contains(outside), "{outside} in the report");
    }
    for path in html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(path.starts_with('#') || out.join(path).exists(), "{path} leads nowhere");
    }
    fs::remove_file(out.join("report.html")).expect("removed");
    run(&["lab", "report", text(&out)]).expect_code(0);
    let again = fs::read_to_string(out.join("report.html")).expect("a report");
    assert_eq!(again, html, "the raw data tell the same again");
    let (findings, page) = (folder.join("findings.md"), folder.join("page.md"));
    fs::write(&findings, "All is well.\n").expect("written");
    let results = out.join("results.json");
    let asked =
        ["lab", "page", text(&results), "--out", text(&page), "--findings", text(&findings), "--command", "do it"];
    run(&asked).expect_code(0);
    let shown = fs::read_to_string(&page).expect("a page");
    for part in
        ["# test\n", "Made by `do it`;", "## Findings\n\nAll is well.\n", "## Every cell\n", "| thalweg unicast | 2 |"]
    {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let compared = run(&["lab", "compare", text(&out), text(&out)]).expect_code(0);
    assert!(
        compared.stdout.contains("response p50")
            && compared.stdout.contains("(range ")
            && compared.stdout.contains("took no turns, so there is no verdict"),
        "{}",
        compared.stdout
    );
    let events = fs::read_to_string(out.join("events.jsonl")).expect("events");
    assert!(events.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()) && events.contains("complete"));

    run(&["lab", "verify", text(&out)]).expect_code(0);
    let listed = run(&["lab", "list", text(&folder)]).expect_code(0);
    let row = listed.stdout.lines().find(|line| line.contains("/out")).unwrap_or_default();
    assert!(row.contains("test") && row.contains("4 of 4  complete"), "{}", listed.stdout);
    let preset = listed.stdout.lines().find(|line| line.contains("paper5 ")).unwrap_or_default();
    assert_eq!(preset.matches(" min").count(), 2, "the time of both forms: {}", listed.stdout);
    let told = said_json(&["lab", "list", text(&folder), "--json"]);
    assert_eq!(
        (&told["directories"][0]["runs_done"], &told["directories"][0]["state"]),
        (&4.into(), &"complete".into())
    );
    let paper4 = told["presets"].as_array().expect("presets").iter().find(|preset| preset["name"] == "paper4");
    let usual = &paper4.expect("paper4")["usual"];
    assert!(
        usual["seconds"].as_u64() > Some(600) && !usual["left_out"].as_array().expect("a list").is_empty(),
        "{usual}"
    );
    let told = said_json(&["lab", "verify", text(&out), "--json"]);
    assert_eq!((&told["runs"], &told["faults"]), (&4.into(), &Value::Array(Vec::new())));
    let told = said_json(&["lab", "compare", text(&out), text(&out), "--json"]);
    assert_eq!(told["figures"].as_array().expect("figures")[0].as_array().expect("a figure").len(), 3, "{told}");
    let told = said_json(&["lab", "top", text(&out), "--once", "--json"]);
    assert_eq!((&told["state"], &told["runs_done"], &told["current"]), (&"complete".into(), &4.into(), &Value::Null));
    assert!(told["cells"][0]["p50_us"].as_f64() > Some(0.0), "{told}");
    let again = lab_run(&file, &out).expect_code(1);
    assert!(again.stderr.contains("holds a run already"), "{}", again.stderr);
    let resumed = run(&["lab", "resume", text(&out)]).expect_code(1);
    let has_result = |stderr: &str| !stderr.contains("no result yet");
    assert!(resumed.stderr.contains("is complete") && has_result(&resumed.stderr), "{}", resumed.stderr);

    // One changed time in the raw data is seen, and so is a changed figure.
    let raw = runs[0].join("subscriber-000.csv");
    let before = fs::read_to_string(&raw).expect("raw");
    let mut lines: Vec<String> = before.lines().map(str::to_owned).collect();
    let last = lines.len() - 1;
    lines[last].push('0');
    fs::write(&raw, lines.join("\n")).expect("changed");
    let said = run(&["lab", "verify", text(&out)]).expect_code(1);
    assert!(said.stderr.contains("does not agree with its raw data"), "{}", said.stderr);
    fs::write(&raw, before).expect("restored");
    let results = out.join("results.json");
    let changed = fs::read_to_string(&results).expect("results").replacen("\"late\": 0", "\"late\": 1", 1);
    fs::write(&results, changed).expect("changed");
    let said = run(&["lab", "verify", text(&out)]).expect_code(1);
    assert!(said.stderr.contains("results.json does not agree with the runs"), "{}", said.stderr);

    // A comparison with something else is refused, and told with what differs when it is forced.
    let other = folder.join("other");
    let file = scenario(&folder, 1, "payload_bytes = 100\nendpoints = [\"2-3\"]", "");
    let told = said_json(&["lab", "run", text(&file), "--out", text(&other), "--json"]);
    assert_eq!(
        (&told["cells"][0]["runs"][0]["totals"]["lost"], &told["failures"]),
        (&0.into(), &Value::Array(Vec::new()))
    );
    let said = run(&["lab", "compare", text(&out), text(&other)]).expect_code(1);
    assert!(
        said.stderr.contains("different conditions (scenario:") && said.stderr.contains("--force"),
        "{}",
        said.stderr
    );
    let said = run(&["lab", "compare", text(&out), text(&other), "--force"]).expect_code(0);
    assert!(said.stdout.contains("DIFFERENT scenario") && said.stdout.contains("is in A only"), "{}", said.stdout);
    assert!(said.stdout.contains("UNPAIRED 2–3 100 B 50 Hz auto thalweg is in B only"), "{}", said.stdout);
}

#[test]
fn a_closed_loop_counts_every_second_and_times_one_sample_in_so_many() {
    let folder = folder("closed-loop");
    let more = "[expect]\nlost = \"== 0\"\nround_trip_p50_us = \"> 0\"\nreceived_per_s = \"> 500\"";
    let file = scenario(&folder, 2, "payload_bytes = 100\nendpoints = \"2-3\"", more);
    let written = fs::read_to_string(&file).expect("there").replacen("rate_hz = 50", "latency_count = 50", 1);
    fs::write(&file, written).expect("written");
    let out = folder.join("out");
    let said = lab_run(&file, &out).expect_code(0);
    for part in ["2–3 100 B closed-loop/50", "Mbit/s", "holds: lost == 0", "holds: round_trip_p50_us > 0"] {
        assert!(said.stdout.contains(part), "{part} in\n{}", said.stdout);
    }
    for run in whole_runs(&out) {
        let result = json(&run.join("result.json"));
        let (totals, closed) = (&result["totals"], &result["closed_loop"]);
        let written: u64 =
            (0..2).map(|index| result["publishers"][index]["report"]["written"].as_u64().expect("told")).sum();
        assert_eq!((totals["due"].as_u64(), &totals["lost"]), (Some(3 * written), &0.into()), "{totals}");
        let seconds: Vec<u64> = serde_json::from_value(closed["received_by_second"].clone()).expect("numbers");
        assert!(seconds.len() == 2 && seconds.iter().all(|received| *received > 0), "{seconds:?}");
        let trips = fs::read_to_string(run.join("round-trips.csv")).expect("there");
        let rows: Vec<Vec<u64>> = trips
            .lines()
            .skip(1)
            .map(|row| row.split(',').map(|word| word.parse().expect("a number")).collect())
            .collect();
        assert_eq!(closed["round_trip"]["count"], rows.len());
        assert!(rows.len() > 3, "{trips}");
        for row in &rows {
            assert_eq!((row[0] % 50, row[1]), (0, row[0] / 50 % 3), "subscribers answer in turns: {row:?}");
        }
        for two in rows.windows(2) {
            assert!(two[0][3] <= two[1][2], "the publisher waits for each answer: {two:?}");
        }
    }
    run(&["lab", "verify", text(&out)]).expect_code(0);
    let counts = whole_runs(&out)[0].join("arrivals-001.csv");
    let damaged = fs::read_to_string(&counts).expect("there").replacen("\n0,1,", "\n0,1,1", 1);
    fs::write(&counts, damaged).expect("written");
    run(&["lab", "verify", text(&out)]).expect_code(1);
    let report = fs::read_to_string(out.join("report.html")).expect("there");
    assert!(report.contains("As fast as possible") && !report.contains("Fates of the samples"));
}

#[test]
fn another_build_takes_turns_with_this_one_and_is_its_baseline() {
    let folder = folder("against");
    let file = scenario(&folder, 1, "payload_bytes = 100\nmiddleware = [\"thalweg\", \"zenoh\"]", "");
    // A build that tells how often it was started.
    let (other, starts) = (folder.join("before"), folder.join("starts"));
    let script =
        format!("#!/bin/sh\necho \"$1\" >> {}\nexec {} \"$@\"\n", text(&starts), env!("CARGO_BIN_EXE_thalweg"));
    fs::write(&other, script).expect("written");
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).expect("a program");
    let out = folder.join("out");
    let said = run(&["lab", "run", text(&file), "--out", text(&out), "--against", text(&other)]).expect_code(0);
    assert!(said.stderr.contains("LEFT OUT: the cells of zenoh"), "{}", said.stderr);
    assert_eq!(
        fs::read_to_string(&starts).expect("started"),
        "worker\n".repeat(4),
        "two processes in each of two runs"
    );
    let results = json(&out.join("results.json"));
    let names: Vec<&str> = (0..2).filter_map(|cell| results["cells"][cell]["name"].as_str()).collect();
    assert_eq!(names, ["1–1 100 B 50 Hz auto thalweg (other build)", "1–1 100 B 50 Hz auto thalweg"]);
    let differences = results["differences"].as_array().expect("differences");
    assert!(!differences.is_empty());
    for difference in differences {
        assert_eq!((difference["baseline"].as_str(), difference["subject"].as_str()), (Some(names[0]), Some(names[1])));
        assert_eq!(difference["reason"], "fewer than 8 rounds");
    }
    run(&["lab", "verify", text(&out)]).expect_code(0);
    let manifest = fs::read_to_string(out.join("manifest.json")).expect("a manifest");
    assert!(manifest.contains("program of the other build"), "{manifest}");
    let said = run(&["lab", "run", text(&file), "--against", text(&folder.join("none"))]).expect_code(2);
    assert!(said.stderr.contains("--against") && said.stderr.contains("No such file"), "{}", said.stderr);
}

#[test]
fn an_expectation_that_does_not_hold_decides_the_exit_code() {
    let folder = folder("expect");
    let file = scenario(
        &folder,
        1,
        "type = \"Struct16\"",
        "[expect]\nlost = \"> 0\"\np99_us = \"< 1e9\"\n[process]\nmodel = \"single\"",
    );
    let out = folder.join("out");
    let said = run(&["lab", "run", text(&file), "--out", text(&out), "--live"]).expect_code(1);
    assert!(said.stdout.contains("DOES NOT HOLD: lost > 0"), "{}", said.stdout);
    assert!(
        said.stdout.contains("NOT JUDGED: p99_us < 1000000000") && said.stdout.contains("too few samples"),
        "{}",
        said.stdout
    );
    let expect = "of 2 expectations of the scenario 1 do not hold and 1 are not judged";
    assert!(said.stderr.contains(expect), "{}", said.stderr);
    let page = fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(page.contains("1 of 2 expectations do not hold, 1 are not judged"));
    run(&["lab", "verify", text(&out)]).expect_code(0);
}

#[test]
fn runs_go_on_to_the_last_while_nothing_is_known_well() {
    let folder = folder("precision");
    let file = scenario(&folder, 1, "payload_bytes = 100", "[process]\nmodel = \"per-role\"");
    let runs = "runs = { min = 1, max = 3 }\nsettle = \"mser\"\nprecision = { p50 = 0.001 }";
    fs::write(&file, fs::read_to_string(&file).expect("there").replacen("runs = 2", runs, 1)).expect("written");
    let out = folder.join("out");
    lab_run(&file, &out).expect_code(0);
    assert_eq!(whole_runs(&out).len(), 3);
    let manifest = json(&out.join("manifest.json"));
    assert_eq!((&manifest["runs_planned"], &manifest["runs_done"]), (&3.into(), &3.into()));
    for run in whole_runs(&out) {
        let result = json(&run.join("result.json"));
        let dropped = (result["unsettled_s"].as_f64().expect("told") * 50.0).round() as u64;
        assert_eq!(result["totals"]["due"].as_u64(), Some(50 - dropped));
        assert!(dropped <= 15, "{dropped}");
    }
    run(&["lab", "verify", text(&out)]).expect_code(0);
}

/// How long after the first of the four samples of a number the last one was handled, in the first run of a cell.
fn spans_ns(out: &Path, cell: usize) -> Vec<u64> {
    let runs = whole_runs(out);
    let run = runs.iter().find(|run| text(run).contains(&format!("-cell-00{cell}-"))).expect("a run");
    let rows = fs::read_to_string(run.join("subscriber-000.csv")).expect("rows");
    let mut received: std::collections::BTreeMap<u64, Vec<u64>> = std::collections::BTreeMap::new();
    for row in rows.lines().skip(1) {
        let row: Vec<u64> = row.split(',').map(|field| field.parse().expect("a number")).collect();
        received.entry(row[1]).or_default().push(row[3]);
    }
    let span = |times: &Vec<u64>| Some(times.iter().max()? - times.iter().min()?);
    received.values().filter(|times| times.len() == 4).filter_map(span).collect()
}

#[test]
fn samples_that_are_due_at_once_wait_for_the_threads_of_an_executor() {
    let folder = folder("executors");
    let matrix = "type = \"Struct16\"\nendpoints = \"4-1\"\ntopics = \"per-publisher\"\nexecutor_threads = [1, 4]\nwork_ms = 4\n";
    let file = scenario(&folder, 1, matrix, "");
    let told = fs::read_to_string(&file).expect("read").replacen("rate_hz = 50", "rate_hz = 10", 1);
    fs::write(&file, told.replacen("runs = 2", "runs = 2\nphase = \"together\"", 1)).expect("written");
    let out = folder.join("out");
    lab_run(&file, &out).expect_code(0);
    let results = json(&out.join("results.json"));
    let name = |place: usize| results["cells"][place]["name"].as_str().expect("a name");
    assert!(name(0).contains("executor/1 work 4 ms") && name(1).contains("executor/4 work 4 ms"), "{results}");
    // One thread begins the last of four samples at least three callbacks after the first; four threads do so once at least.
    let (one, four) = (spans_ns(&out, 0), spans_ns(&out, 1));
    assert!(!one.is_empty() && one.iter().all(|span| *span >= 12_000_000), "{one:?} ns with one thread");
    assert!(four.iter().any(|span| *span < 12_000_000), "{four:?} ns with four threads");
    run(&["lab", "verify", text(&out)]).expect_code(0);
}

#[test]
fn large_types_reach_every_subscriber_of_their_pair() {
    let folder = folder("large");
    let matrix = "type = [\"PointCloud1m\", \"Array64k\"]\nendpoints = \"2-2\"\ntopics = \"per-pair\"";
    let text_of = scenario(
        &folder,
        1,
        matrix,
        "[qos]\nhistory = { keep_last = 20 }\n[process]\nmodel = \"per-role\"\n[expect]\nlost = \"== 0\"",
    );
    // A tenth of the rate: every machine can move that much.
    let slow = fs::read_to_string(&text_of).expect("there").replacen("rate_hz = 50", "rate_hz = 5", 1);
    fs::write(&text_of, slow).expect("written");
    let out = folder.join("out");
    lab_run(&text_of, &out).expect_code(0);
    for run in whole_runs(&out) {
        let result = json(&run.join("result.json"));
        assert_eq!((&result["totals"]["due"], &result["totals"]["in_time"]), (&10.into(), &10.into()));
        assert_eq!(result["processes"].as_array().map(Vec::len), Some(2));
    }
}

#[test]
fn ctrl_c_leaves_a_directory_that_can_be_resumed() {
    let folder = folder("interrupt");
    let file = scenario(&folder, 2, "payload_bytes = 100", "");
    let out = folder.join("out");
    let lab = Running::start(command(&["lab", "run", text(&file), "--out", text(&out)]));
    let deadline = Instant::now() + PATIENCE;
    while !out.join("runs").exists() || whole_runs(&out).is_empty() {
        assert!(Instant::now() < deadline, "no run became whole");
        std::thread::sleep(Duration::from_millis(20));
    }
    let workers = wait_for_workers(&lab, 2);
    let busy = run(&["lab", "resume", text(&out)]).expect_code(1);
    assert!(busy.stderr.contains("is in use"), "{}", busy.stderr);
    let watched = run(&["lab", "top", text(&out), "--once"]).expect_code(0);
    for part in ["test  running", "1 of 2 runs", "now 1–1 100 B 50 Hz auto thalweg in round 2", "not sent"] {
        assert!(watched.stdout.contains(part), "{part} in\n{}", watched.stdout);
    }
    lab.signal("INT");
    let said = lab.finish().expect_code(130);
    assert!(said.stderr.contains("lab resume"), "{}", said.stderr);
    expect_gone(&workers);
    assert_eq!(json(&out.join("manifest.json"))["state"], "interrupted");
    let told = said_json(&["lab", "top", text(&out), "--once", "--json"]);
    assert_eq!((&told["state"], &told["runs_planned"]), (&"interrupted".into(), &2.into()));
    let watched = run(&["lab", "top", text(&out)]).expect_code(0);
    assert_eq!(watched.stdout, "test: interrupted, 1 of 2 runs\n", "a pipe gets one line, and then it is over");
    let compared = run(&["lab", "compare", text(&out), text(&out)]).expect_code(1);
    assert!(compared.stderr.contains("is no result: it is interrupted"), "{}", compared.stderr);
    assert!(!out.join("results.json").exists());
    let reported = run(&["lab", "report", text(&out)]).expect_code(1);
    assert!(reported.stderr.contains("it is interrupted; `thalweg lab resume"), "{}", reported.stderr);
    let verified = run(&["lab", "verify", text(&out)]).expect_code(1);
    assert!(verified.stderr.contains("is no result") && verified.stderr.contains("1 of 2 runs"), "{}", verified.stderr);
    let first = fs::read_to_string(whole_runs(&out)[0].join("result.json")).expect("a run");

    run(&["lab", "resume", text(&out)]).expect_code(0);
    assert_eq!(whole_runs(&out).len(), 2);
    assert_eq!(
        fs::read_to_string(whole_runs(&out)[0].join("result.json")).expect("a run"),
        first,
        "it is kept as it was"
    );
    run(&["lab", "verify", text(&out)]).expect_code(0);
}

#[test]
fn the_samples_of_a_run_that_goes_on_can_be_watched() {
    let folder = folder("watch");
    let file = scenario(&folder, 600, "payload_bytes = 100\nsubscribers = 2", "");
    let out = folder.join("out");
    let lab = Running::start(command(&["lab", "run", text(&file), "--out", text(&out)]));
    wait_for_workers(&lab, 3);
    let deadline = Instant::now() + PATIENCE;
    let watched = loop {
        let watched = run(&["lab", "top", text(&out), "--once"]).expect_code(0).stdout;
        if let Some((_, samples)) = watched.split_once("so far: ") {
            break samples.to_owned();
        }
        assert!(Instant::now() < deadline, "no word of the samples in\n{watched}");
    };
    for part in [" in time, ", " late, ", " lost or on the way, ", " not sent\nresponse latency: p50 "] {
        assert!(watched.contains(part), "{part} in\n{watched}");
    }
    lab.signal("INT");
    lab.finish().expect_code(130);
}

#[test]
fn a_crashed_worker_fails_the_runs_and_leaves_no_result() {
    let folder = folder("crash");
    let file = scenario(&folder, 5, "payload_bytes = 100", "");
    let out = folder.join("out");
    let lab = Running::start(command(&["lab", "run", text(&file), "--out", text(&out)]));
    let workers = wait_for_workers(&lab, 2);
    signal(workers[0], "KILL");
    let said = lab.finish().expect_code(1);
    assert!(said.stderr.contains("signal: 9") && said.stderr.contains("subscriber 0"), "{}", said.stderr);
    expect_gone(&workers);
    let manifest = json(&out.join("manifest.json"));
    assert_eq!(manifest["state"], "failed");
    assert!(manifest["reason"].as_str().is_some_and(|reason| reason.contains("signal: 9")), "{manifest}");
    assert!(fs::read_dir(out.join("runs")).expect("runs").next().is_none(), "half a run stays");
    assert!(!out.join("results.json").exists());
}

#[test]
fn killed_it_says_that_it_ended_without_a_word_and_resumes() {
    let folder = folder("killed");
    let file = scenario(&folder, 2, "payload_bytes = 100", "");
    let out = folder.join("out");
    let lab = Running::start(command(&["lab", "run", text(&file), "--out", text(&out)]));
    let workers = wait_for_workers(&lab, 2);
    lab.signal("KILL");
    expect_gone(&workers);
    drop(lab);
    let listed = run(&["lab", "list", text(&folder)]).expect_code(0);
    assert!(listed.stdout.contains("ended without a word"), "{}", listed.stdout);
    let verified = run(&["lab", "verify", text(&out)]).expect_code(1);
    assert!(verified.stderr.contains("ended without a word"), "{}", verified.stderr);
    run(&["lab", "resume", text(&out)]).expect_code(0);
    run(&["lab", "verify", text(&out)]).expect_code(0);
    assert!(whole_runs(&out).len() == 2 && fs::read_dir(out.join("runs")).expect("runs").count() == 2, "no remains");
}

#[test]
fn a_disturbed_run_is_repeated_and_then_marked() {
    let folder = folder("contaminated");
    let file =
        scenario(&folder, 1, "payload_bytes = 100", "psi_cpu_max_pct = 100\nattempts = 2\nbad_seconds_max_pct = 0");
    // A limit that no machine keeps: no time at all may be waited for a CPU.
    let strict = fs::read_to_string(&file).expect("there").replacen("psi_cpu_max_pct = 100", "psi_cpu_max_pct = 0", 1);
    fs::write(&file, strict).expect("written");
    let out = folder.join("out");
    let said = lab_run(&file, &out).expect_code(0);
    assert!(said.stdout.contains("MARKED: in 2 runs"), "{}", said.stdout);
    assert_eq!(whole_runs(&out).len(), 4, "two attempts at each of two runs");
    assert!(fs::read_to_string(out.join("events.jsonl")).expect("events").contains("run contaminated"));
    let cell = &json(&out.join("results.json"))["cells"][0];
    assert!(
        cell["runs"]
            .as_array()
            .is_some_and(|runs| runs.iter().all(|run| run["contaminated"] == true && run["attempts"] == 2))
    );
    run(&["lab", "verify", text(&out)]).expect_code(0);
}

#[test]
fn a_scenario_that_is_wrong_is_told_with_its_place_before_anything_is_made() {
    let folder = folder("wrong");
    let file = scenario(&folder, 1, "payload_bites = 100", "");
    let out = folder.join("out");
    let said = lab_run(&file, &out).expect_code(2);
    assert!(said.stderr.contains("scenario.toml:5:1: \"payload_bites\" is unknown"), "{}", said.stderr);
    assert!(said.stderr.contains("did you mean \"payload_bytes\"") && !out.exists(), "{}", said.stderr);
    let missing = lab_run(&folder.join("none.toml"), &out).expect_code(2);
    assert!(missing.stderr.contains("none.toml cannot be read"), "{}", missing.stderr);
    let not_one = run(&["lab", "verify", text(&folder)]).expect_code(1);
    assert!(not_one.stderr.contains("is no run directory"), "{}", not_one.stderr);
}

#[test]
fn a_directory_begun_by_another_program_or_scenario_is_not_resumed() {
    let folder = folder("other");
    let file = scenario(&folder, 2, "payload_bytes = 100", "");
    let out = folder.join("out");
    let lab = Running::start(command(&["lab", "run", text(&file), "--out", text(&out)]));
    wait_for_workers(&lab, 2);
    lab.signal("INT");
    lab.finish().expect_code(130);
    let own = out.join("scenario.toml");
    fs::set_permissions(&own, fs::Permissions::from_mode(0o644)).expect("writable");
    let changed = fs::read_to_string(&own).expect("there").replacen("rate_hz = 50", "rate_hz = 60", 1);
    fs::write(&own, changed).expect("changed");
    let said = run(&["lab", "resume", text(&out)]).expect_code(1);
    assert!(said.stderr.contains("begun under other conditions: scenario was"), "{}", said.stderr);
    let said = run(&["lab", "verify", text(&out)]).expect_code(1);
    assert!(said.stderr.contains("scenario.toml is not the one that was run"), "{}", said.stderr);
}

#[test]
fn layers_are_traced_at_both_ends() {
    let folder = folder("trace");
    let more = "[process]\nmodel = \"per-role\"\n[trace]\nlayers = true\nsample = 5";
    let file = scenario(&folder, 1, "payload_bytes = 100\nsubscribers = 2", more);
    let out = folder.join("out");
    lab_run(&file, &out).expect_code(0);
    let first = &whole_runs(&out)[0];
    let trace = json(&first.join("trace.json"));
    let events = trace["traceEvents"].as_array().expect("events");
    let durations = |name: &str| -> Vec<f64> {
        let own = events.iter().filter(|event| event["name"] == name);
        own.map(|event| event["dur"].as_f64().expect("a duration")).collect()
    };
    // 50 samples in a second, every fifth of them, to two subscribers.
    for (layer, readers) in
        [("serialize", 1), ("system call that sends", 1), ("kernel, wire, kernel", 2), ("put into the cache", 2)]
    {
        let found = durations(layer);
        assert!((9 * readers..=11 * readers).contains(&found.len()), "{} of {layer}", found.len());
        assert!(found.iter().all(|us| (0.0..5e6).contains(us)), "{layer}: {found:?}");
    }
    let html = fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(html.contains("Layer by layer") && html.contains("wake up and take"), "a waterfall");
}
