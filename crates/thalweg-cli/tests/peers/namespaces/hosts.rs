//! Scenarios on several hosts: what the links do to samples, and what the results say about it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;
use thalweg_lab::paper2::{self, Paper2Plan, RunPlan};
use thalweg_lab::process::{Launcher, Stop};

use crate::program::{PATIENCE, Program, Said};

/// A run of a scenario in a folder of its own.
struct Lab {
    folder: PathBuf,
}

impl Lab {
    /// A scenario of one run a cell that any machine can make, whatever else runs on it; `more` begins with the rest of the matrix.
    fn new(name: &str, hosts: &str, more: &str) -> Lab {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("hosts-{name}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("made");
        let text = format!(
            "schema = \"thalweg.scenario/1\"\nname = \"test\"\nhosts = {hosts}\n\
             [schedule]\nseconds = 2\nruns = 1\nwarm_up_s = 0\nin_time_ms = 5000\nbehind_max_ms = 10000\n\
             [system]\nothers_max_pct = 100\nattempts = 1\n[matrix]\n{more}\n"
        );
        fs::write(folder.join("scenario.toml"), text).expect("written");
        Lab { folder }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
        command.args(["lab", "run"]).arg(self.folder.join("scenario.toml")).arg("--out").arg(self.out());
        command
    }

    #[track_caller]
    fn start(&self) -> Program {
        Program::start("lab", &self.command())
    }

    #[track_caller]
    fn run(&self) -> Said {
        self.start().finish().well()
    }

    fn out(&self) -> PathBuf {
        self.folder.join("out")
    }

    /// The result of each run, by cell.
    fn results(&self) -> Vec<Value> {
        let entries = fs::read_dir(self.out().join("runs")).expect("runs");
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("entry").path().join("result.json")).collect();
        paths.sort();
        paths.iter().map(|path| json(path)).collect()
    }

    fn report(&self) -> String {
        fs::read_to_string(self.out().join("report.html")).expect("a report")
    }
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("there")).expect("JSON")
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// Namespaces that a process made and that are still there.
fn namespaces(maker: u32) -> Vec<String> {
    let listed = Command::new("ip").args(["netns", "list"]).output().expect("iproute2");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let names = listed.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| name.starts_with(&format!("thalweg-{maker}-"))).map(str::to_owned).collect()
}

/// Waits until a process has made so many namespaces and not removed them.
#[track_caller]
fn wait_for_namespaces(process: u32, expect: usize) {
    let deadline = Instant::now() + PATIENCE;
    while namespaces(process).len() != expect {
        assert!(Instant::now() < deadline, "{:?}", namespaces(process));
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_a_relay_drops_of_a_best_effort_stream_is_what_is_lost() {
    let more = "payload_bytes = 100\nrate_hz = 500\n[qos]\nreliability = \"best-effort\"\n[link]\nloss_pct = 1";
    let lab = Lab::new("loss", "\"netns:2\"", more);
    lab.run();
    let result = &lab.results()[0];
    let (layers, totals) = (&result["layers"], &result["totals"]);
    let dropped = count(&layers["relay.host0-host1.dropped_data"]);
    assert!(dropped > 0, "{layers}");
    assert_eq!((count(&totals["due"]), count(&totals["lost"])), (1_000, dropped), "{layers}");
    assert_eq!(result["hosts"].as_array().map(Vec::len), Some(2));
    let run = &json(&lab.out().join("results.json"))["cells"][0]["runs"][0];
    assert!(count(&run["wire"]["sent"]) > 100_000, "{run}");
    let report = lab.report();
    for part in ["relay.host0-host1.dropped", "“link”"] {
        assert!(report.contains(part), "the report does not name {part}, where samples were lost");
    }
}

#[test]
fn a_reliable_stream_arrives_whatever_the_relay_does() {
    let more = "payload_bytes = 100\nrate_hz = 250\ndestination = [\"unicast\", \"multicast\"]\nendpoints = \"1-3\"\n\
                [link]\nloss_pct = 2\nduplicate_pct = 2\nreorder_pct = 2\ndelay_us = 300\njitter_us = 100\n\
                loss_bursts = { enter_pct = 0.2, leave_pct = 30 }\nrate_mbit = 100\n\
                [expect]\nlost = \"== 0\"\nin_time_pct = \"== 100\"";
    let lab = Lab::new("reliable", "\"netns:4\"", more);
    lab.run();
    for result in lab.results() {
        let (layers, totals) = (&result["layers"], &result["totals"]);
        let sum = |name: &str| {
            let all = layers.as_object().expect("counters").iter();
            all.filter(|(key, _)| key.ends_with(name)).map(|(_, value)| count(value)).sum::<u64>()
        };
        assert_eq!((count(&totals["due"]), count(&totals["in_time"])), (1_500, 1_500));
        for name in ["dropped", "duplicated", "reordered"] {
            assert!(sum(&format!(".{name}")) > 0, "nothing was {name}: {layers}");
        }
        let fastest = totals["service"]["min_us"].as_f64().expect("told");
        assert!(fastest >= 300.0, "a sample came after {fastest} µs over a link with a delay of 300 µs");
    }
}

/// The share of a best-effort stream that a link loses of which every packet has the same chance.
fn lost_share(run: &Value) -> f64 {
    count(&run["totals"]["lost"]) as f64 / count(&run["totals"]["due"]) as f64
}

#[test]
fn a_link_takes_large_best_effort_samples_first_and_not_small_ones() {
    let more =
        "type = [\"Struct16\", \"Array64k\"]\nrate_hz = 50\n[qos]\nreliability = \"best-effort\"\n[link]\nloss_pct = 3";
    let lab = Lab::new("small-and-large", "\"netns:2\"", more);
    lab.run();
    let results = lab.results();
    let (small, large) = (lost_share(&results[0]), lost_share(&results[1]));
    // A sample of some 45 packets is lost with any of them: 75 % where 3 % of the small ones are.
    assert!(small < 0.2 && large > 0.4, "{small} of the small ones and {large} of the large ones were lost");
}

#[test]
fn a_small_sample_lost_at_the_end_is_sent_again_though_nothing_follows_it() {
    let more = "type = [\"Struct16\", \"Array64k\"]\nrate_hz = 5\nendpoints = \"1-3\"\ndestination = \"unicast\"\n\
                [link]\nloss_pct = 30\n[expect]\nlost = \"== 0\"";
    let lab = Lab::new("tail", "\"netns:4\"", more);
    lab.run();
    let results = lab.results();
    let repaired = |run: &Value| count(&run["publishers"][0]["report"]["effort"]["repaired"]);
    assert!(results.iter().all(|run| repaired(run) > 0), "{results:?}");
    // Of three copies of the last small sample and of those before, some were lost; the latest arrivals tell of a repair.
    let layers = &results[0]["layers"];
    let dropped: u64 = (1..4).map(|host| count(&layers[format!("relay.host0-host{host}.dropped_data")])).sum();
    let delayed = results[0]["totals"]["response"]["max_us"].as_f64();
    assert!(dropped > 0 && delayed > Some(1_000.0), "{dropped} dropped, at most {delayed:?} µs");
}

#[test]
fn a_small_receive_buffer_is_named_where_it_lost_something() {
    let more = "type = \"Array64k\"\nrate_hz = 50\n[qos]\nreliability = \"best-effort\"\n\
                [process]\nreceive_buffer_bytes = 2304";
    let lab = Lab::new("buffer", "\"netns:2\"", more);
    lab.run();
    let result = &lab.results()[0];
    assert!(count(&result["totals"]["lost"]) > 0, "{}", result["totals"]);
    assert!(count(&result["hosts"][1]["udp.RcvbufErrors"]) > 0, "{}", result["hosts"]);
    assert!(result["hosts"][0]["udp.RcvbufErrors"].is_null(), "{}", result["hosts"]);
    let report = lab.report();
    let losses = &json(&lab.out().join("results.json"))["cells"][0]["runs"][0]["losses"];
    assert!(losses.to_string().contains("socket.subscriber 0 on host 1"), "{losses}");
    for part in ["“socket in”", "udp.RcvbufErrors"] {
        assert!(report.contains(part), "the report does not name {part}");
    }
}

#[test]
fn a_history_that_is_too_small_is_named_where_it_lost_something() {
    let more = "payload_bytes = 100\nrate_hz = 20000\n[qos]\nreliability = \"best-effort\"\nhistory = { keep_all = 1 }\n\
                [process]\nwait = \"block\"";
    let lab = Lab::new("history", "\"netns:2\"", more);
    lab.run();
    let result = &lab.results()[0];
    let rejected = count(&result["subscribers"][0]["rejected"]);
    let lost = count(&result["totals"]["lost"]);
    assert!(lost > 0 && rejected <= lost && rejected > lost * 9 / 10, "{lost} lost, {rejected} of them at the reader");
    assert!(lab.report().contains("“reader rejected”"), "the report does not name the reader");
}

/// A neighbour that wants a whole CPU; ended with the test.
struct Spinner(Child);

impl Drop for Spinner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_publisher_beside_a_busy_neighbour_marks_the_run() {
    let more = "payload_bytes = 100\nrate_hz = 100\n[process]\naffinity = { publishers = 0, subscribers = 0 }";
    let lab = Lab::new("starved", "\"netns:2\"", more);
    let scenario = lab.folder.join("scenario.toml");
    let strict = fs::read_to_string(&scenario).expect("there").replacen("max_pct = 100", "max_pct = 5", 1);
    fs::write(&scenario, strict).expect("written");
    let spin = ["-c", "0", "sh", "-c", "while :; do :; done"];
    let _spinner = Spinner(Command::new("taskset").args(spin).spawn().expect("taskset (util-linux)"));
    let said = lab.run();
    let conditions = &lab.results()[0]["conditions"];
    let seconds = conditions["seconds"].as_array().expect("told");
    let busy = seconds.iter().filter(|second| second["foreign_cpu"].as_f64() > Some(0.1)).count();
    assert_eq!((busy, &conditions["contaminated"]), (seconds.len(), &true.into()), "{conditions}");
    assert!(said.lines.iter().any(|line| line.contains("MARKED: in 1 runs")), "{:?}", said.lines);
    assert!(lab.report().contains("not quiet"), "the report does not say so");
}

#[test]
fn a_cell_that_cannot_be_measured_is_named_and_the_others_are_measured() {
    // Sixteen and sixteen have more to tell each other than such links carry in that time.
    let more = "payload_bytes = 10\nrate_hz = 2\nendpoints = [\"1-1\", \"16-16\"]\n\
                [link]\nrate_mbit = 0.1\nswitch = \"relay\"\nqueue_ms = 10000";
    let lab = Lab::new("failed-cell", "\"netns:2\"", more);
    let path = lab.folder.join("scenario.toml");
    let text = fs::read_to_string(&path).expect("there").replacen("runs = 1", "runs = 2\nmatch_s = 10", 1);
    fs::write(&path, text).expect("written");
    let said = lab.start().finish();
    assert_eq!(said.status.code(), Some(1), "{:?}", said.lines);
    let told = said.lines.iter().find(|line| line.contains("FAILED: 16–16"));
    let told = told.unwrap_or_else(|| panic!("the cell is not named: {:?}", said.lines));
    assert!(told.contains("of 16 publishers within 10s"), "{told}");
    let results = json(&lab.out().join("results.json"));
    assert_eq!(results["cells"].as_array().map(Vec::len), Some(1), "the failed cell has a result");
    assert_eq!(results["cells"][0]["runs"].as_array().map(Vec::len), Some(2));
    assert_eq!(results["failures"][0]["round"], 0, "{}", results["failures"]);
    assert_eq!(json(&lab.out().join("manifest.json"))["state"], "complete");
    assert!(lab.report().contains("within 10s"), "the report does not say why");
}

/// Puts a program for Zenoh into `folder` that writes down its order and the addresses of its host, and gives up after its partner has too.
fn note_taking_peer(folder: &Path) {
    let script = format!(
        "#!/bin/sh\nread -r order\ncd '{}'\necho \"$order\" > order-$$.new\nip -o -4 address show dev eth0 >> order-$$.new\n\
         mv order-$$.new order-$$.txt\nwhile [ \"$(ls order-*.txt | wc -l)\" -lt 2 ]; do sleep 0.02; done\n\
         echo '{{\"failed\":\"enough\"}}'; exit 1\n",
        folder.display()
    );
    let path = folder.join("zenoh-perf");
    fs::write(&path, script).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
}

#[test]
fn a_peers_process_lives_on_its_host_and_knows_its_address_and_those_of_publishers() {
    let more = "middleware = \"zenoh\"\npayload_bytes = 100\nrate_hz = 10";
    let lab = Lab::new("told", "{ on = \"netns:3\", publishers = [2], subscribers = [1] }", more);
    note_taking_peer(&lab.folder);
    let mut command = lab.command();
    command.arg("--peer-dir").arg(&lab.folder);
    let said = Program::start("lab", &command).finish();
    assert!(said.lines.join("\n").contains("gave up: enough"), "{:?}", said.lines);
    let entries = fs::read_dir(&lab.folder).expect("a folder").map(|entry| entry.expect("entry").path());
    let notes = entries.filter(|path| path.extension().is_some_and(|ending| ending == "txt"));
    let mut told: Vec<(bool, Value, Value, bool)> = notes
        .map(|path| {
            let text = fs::read_to_string(path).expect("there");
            let (order, interface) = text.split_once('\n').expect("two lines");
            let order: Value = serde_json::from_str(order).expect("JSON");
            let setup = &order["setup"];
            let address = setup["address"].as_str().expect("an address");
            let is_publisher = order["subscribers"].as_array().is_some_and(Vec::is_empty);
            let is_at_home = interface.contains(&format!(" {address}/24 "));
            (is_publisher, setup["address"].clone(), setup["publishers"].clone(), is_at_home)
        })
        .collect();
    told.sort_by_key(|one| one.0);
    let publishers = serde_json::json!(["10.89.0.3"]);
    let expect = [(false, "10.89.0.2".into(), publishers.clone(), true), (true, "10.89.0.3".into(), publishers, true)];
    assert_eq!(told, expect);
}

const ONE_SECOND: RunPlan = RunPlan { count: 1, attempts: 1, warm_up_s: 0.2, seconds: 1, closed_seconds: 1 };

#[test]
fn the_second_papers_crossover_is_predicted_and_measured_around_the_prediction() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("hosts-crossover");
    let _ = fs::remove_dir_all(&out);
    fs::create_dir_all(&out).expect("made");
    let plan = Paper2Plan { runs: ONE_SECOND, ..Paper2Plan::quick(1, 2).with_parts(&["crossover".to_owned()]) };
    let launcher = Launcher::new(env!("CARGO_BIN_EXE_thalweg"), ["worker"]);
    let result = paper2::run(&plan, &out, &launcher, &Stop::default()).expect("measured");
    let [calibration, crossover] = &result.parts[..] else { panic!("{} parts", result.parts.len()) };
    assert_eq!((calibration.name.as_str(), crossover.name.as_str()), ("calibration", "crossover"));
    let readers = |part: &thalweg_lab::PartResult| {
        let cells = part.study.cells.iter().map(|cell| (cell.cell.publishers, cell.cell.subscribers));
        cells.collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(readers(calibration), [(1, 2), (1, 12)].into());
    assert!(readers(crossover).len() >= 2, "{:?}", readers(crossover));
    let text = paper2::to_text(&result);
    assert!(
        text.contains("By processor time") && text.contains("Thalweg's own model, which counts link time"),
        "{text}"
    );
    assert!(text.contains("not judged: fewer than 8 runs"), "{text}");
}

#[test]
fn the_second_papers_preset_measures_each_way_and_goes_on_where_it_was() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("hosts-paper2");
    let _ = fs::remove_dir_all(&out);
    fs::create_dir_all(&out).expect("made");
    let (counts, none) = (vec![1], Vec::new());
    let plan = Paper2Plan {
        counts,
        closed: none.clone(),
        overloaded: none.clone(),
        varied: none,
        runs: ONE_SECOND,
        ..Paper2Plan::quick(1, 2)
    };
    let launcher = Launcher::new(env!("CARGO_BIN_EXE_thalweg"), ["worker"]);
    let result = paper2::run(&plan, &out, &launcher, &Stop::default()).expect("measured");
    assert_eq!((result.parts.len(), result.parts[0].study.cells.len()), (1, 3));
    assert!(result.parts[0].study.cells.iter().all(|cell| cell.runs[0].totals.lost == 0));
    assert!(!result.checks.is_empty() && !result.omitted.is_empty());
    let again = paper2::run(&plan, &out, &launcher, &Stop::default()).expect("there already");
    assert_eq!(again.parts[0].study, result.parts[0].study, "nothing is measured twice");
    assert_eq!(paper2::page(&again).to_html(), paper2::page(&result).to_html());
    let file = out.join("results.json");
    fs::write(&file, serde_json::to_string(&result).expect("text")).expect("written");
    let read = paper2::load(&file).expect("results");
    assert_eq!(paper2::page(&read).to_html(), paper2::page(&result).to_html(), "the page can be drawn again");
}

#[test]
fn the_second_papers_procedure_is_followed_by_open_schedules_at_its_rates() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("hosts-perftest");
    let _ = fs::remove_dir_all(&out);
    fs::create_dir_all(&out).expect("made");
    let none = Vec::new();
    let plan = Paper2Plan {
        counts: none.clone(),
        closed: vec![2],
        overloaded: none.clone(),
        varied: none,
        runs: ONE_SECOND,
        ..Paper2Plan::quick(1, 2)
    };
    let launcher = Launcher::new(env!("CARGO_BIN_EXE_thalweg"), ["worker"]);
    let result = paper2::run(&plan, &out, &launcher, &Stop::default()).expect("measured");
    let [perftest, same_rate] = &result.parts[..] else { panic!("{} parts", result.parts.len()) };
    assert_eq!((perftest.name.as_str(), same_rate.name.as_str()), ("perftest", "same-rate"));
    for cell in &perftest.study.cells {
        let (run, closed) = (&cell.runs[0], cell.runs[0].closed_loop.as_ref().expect("a closed loop"));
        assert_eq!(run.totals.lost, 0, "{}", cell.name);
        assert!(closed.round_trip.count > 0 && closed.received_per_s() > 100.0, "{}: {closed:?}", cell.name);
    }
    for (closed, open) in perftest.study.cells.iter().zip(&same_rate.study.cells) {
        assert_eq!(closed.cell.destination, open.cell.destination);
        let offered = 4.0 * open.cell.rate_hz;
        let reached = closed.runs[0].received_per_s.expect("told");
        assert!((offered / reached - 1.0).abs() < 0.01, "{offered} offered, {reached} reached");
    }
    let again = paper2::run(&plan, &out, &launcher, &Stop::default()).expect("there already");
    assert_eq!(paper2::page(&again).to_html(), paper2::page(&result).to_html(), "nothing is measured twice");
}

#[test]
fn hosts_are_gone_after_ctrl_c_after_two_at_once_and_after_a_kill() {
    let lab = Lab::new("gone", "\"netns:3\"", "payload_bytes = 100\nrate_hz = 100");
    let interrupted = lab.start();
    let maker = interrupted.id();
    wait_for_namespaces(maker, 4);
    let said = interrupted.interrupt();
    assert_eq!(said.status.code(), Some(130), "{:?}", said.lines);
    wait_for_namespaces(maker, 0);

    let hurried = Lab::new("hurried", "\"netns:3\"", "payload_bytes = 100\nrate_hz = 100").start();
    let maker = hurried.id();
    wait_for_namespaces(maker, 4);
    assert_eq!(hurried.interrupt_twice().status.code(), Some(130));
    wait_for_namespaces(maker, 0);

    let killed = Lab::new("killed", "\"netns:3\"", "payload_bytes = 100\nrate_hz = 100").start();
    let maker = killed.id();
    // While they are being made.
    wait_for_namespaces(maker, 2);
    killed.kill();
    wait_for_namespaces(maker, 0);

    // Whatever a killed run left in spite of that goes with the next run.
    let name = format!("thalweg-{maker}-left");
    assert!(Command::new("ip").args(["netns", "add", &name]).status().is_ok_and(|status| status.success()));
    Lab::new("next", "\"netns:2\"", "payload_bytes = 100\nrate_hz = 100").run();
    wait_for_namespaces(maker, 0);
}

#[test]
fn what_hosts_need_is_told_before_anything_is_made() {
    let lab = Lab::new("needs", "\"netns:2\"", "payload_bytes = 100\nrate_hz = 100");
    let mut without_ip = lab.command();
    without_ip.env("PATH", "/nonexistent");
    let output = without_ip.output().expect("started");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("hosts need the program ip, which is not installed (Debian: iproute2)"), "{said}");
    let mut without_rights = Command::new("setpriv");
    let command = lab.command();
    without_rights.args(["--reuid", "65534", "--"]).arg(command.get_program()).args(command.get_args());
    let output = without_rights.output().expect("setpriv");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("hosts need root") && !output.status.success(), "{said}");
    assert!(!lab.out().exists());
}

/// Bursts over a link that loses frames: each is whole in the end, and the results say what the link lost.
#[test]
fn a_benchmark_over_a_link_that_loses_frames_loses_them_and_no_sample() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("benchmark-loss");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("made");
    let text = |loss: &str| {
        format!(
            "schema = \"thalweg.benchmark/1\"\nname = \"loss\"\nruns = 1\n[link]\n{loss}\n[[work]]\nname = \"bursts\"\nplace = \"link\"\n\
             task = {{ bursts = {{ of = [[300, 256], [1, 300000]], each = 2 }} }}\n"
        )
    };
    let lost = |name: &str, loss: &str| {
        let (file, out) = (folder.join(format!("{name}.toml")), folder.join(name));
        std::fs::write(&file, text(loss)).expect("written");
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_thalweg"));
        let said = command.args(["lab", "run"]).arg(&file).arg("--out").arg(&out).output().expect("started");
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        let results = std::fs::read_to_string(out.join("results.json")).expect("results");
        let results: serde_json::Value = serde_json::from_str(&results).expect("JSON");
        for cell in results["cells"].as_array().expect("cells") {
            assert_eq!(cell["runs"][0]["lost"], 0, "{cell}");
        }
        let is_told = String::from_utf8_lossy(&said.stdout).contains("The link lost");
        (results["cells"][0]["runs"][0]["detail"]["frames_lost"].as_u64().expect("a number"), is_told)
    };
    let (dropped, is_told) = lost("lossy", "loss_pct = 10.0");
    assert!(dropped > 5 && is_told, "{dropped} frames");
    assert_eq!(lost("whole", "rate_mbit = 1000.0"), (0, false));
}
