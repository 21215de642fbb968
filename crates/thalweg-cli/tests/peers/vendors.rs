//! Other vendors by the programs of `peers/`: bursts by every method to Fast DDS and RustDDS, and scenarios in which all take part.

mod first_samples;
mod large;
mod lookups;
mod profiles;
mod types;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ::thalweg::qos::Method;
use ::thalweg::{DataReader, DataWriter, Topic};
use serde_json::Value;

use crate::host::{Addresses, Host};
use crate::namespaces::agents::Lab;
use crate::program::{PATIENCE, Program};
use crate::{bursts, thalweg};

/// What travels both ways.
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(name = "ThalwegBurst", extensibility = "final")]
struct Burst {
    /// The run in the high 32 bits, the index in the low.
    number: u64,
    bytes: Vec<u8>,
}

/// Announces a run.
const ANNOUNCEMENT: u64 = 0xffff_ffff;

/// How many samples of which size.
const RUNS: [(u32, u32); 5] = [(2_000, 40), (2_000, 700), (2_000, 3_000), (200, 20_000), (1, 40)];

/// Our end of the conversation.
struct End {
    samples: DataWriter<Burst>,
    echoes: DataReader<Burst>,
}

impl End {
    /// Waits for the echo of this number; returns what it carries.
    fn echo(&self, number: u64, patience: Duration) -> Option<Vec<u8>> {
        let end = Instant::now() + patience;
        while Instant::now() < end {
            self.echoes.wait(Duration::from_millis(20));
            let echoes = self.echoes.take(usize::MAX);
            let mut echoes = echoes.iter().map(|echo| echo.data().expect("a whole echo"));
            if let Some(echo) = echoes.find(|echo| echo.number == number) {
                return Some(echo.bytes);
            }
        }
        None
    }

    fn announce(&self, run: u64, count: u32, size: u32) -> u64 {
        let number = run << 32 | ANNOUNCEMENT;
        let bytes = [count.to_le_bytes(), size.to_le_bytes()].concat();
        self.samples.write(&Burst { number, bytes }).expect("room in time");
        number
    }

    /// Asks until the subscriber answers.
    #[track_caller]
    fn meet(&self, who: &str) {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let number = self.announce(0, 0, 0);
            if self.echo(number, Duration::from_millis(100)).is_some() {
                return;
            }
        }
        panic!("{who} does not answer");
    }

    /// One run: the subscriber says whether all came, in order and each once.
    #[track_caller]
    fn run(&self, who: &str, run: u64, count: u32, size: u32) {
        let announced = self.announce(run, count, size);
        assert!(self.echo(announced, PATIENCE).is_some(), "{who} does not hear of a run");
        for index in 0..count {
            let mut bytes = vec![0; size as usize];
            bytes[0] = index as u8;
            bytes[size as usize - 1] = index as u8;
            let number = run << 32 | u64::from(index);
            self.samples.write(&Burst { number, bytes }).expect("room in time");
        }
        match self.echo(run << 32, PATIENCE) {
            Some(complaint) => {
                assert!(complaint.is_empty(), "{who}, {count} of {size} B: {}", String::from_utf8_lossy(&complaint));
            }
            None => panic!("{who}: not all {count} samples of {size} B arrived"),
        }
    }
}

#[track_caller]
fn program(variable: &str) -> PathBuf {
    PathBuf::from(std::env::var(variable).expect("no other vendor's program: run `cargo xtask test vendors`"))
}

#[track_caller]
fn check(name: &str, variable: &str) {
    let program = program(variable);
    let domain = thalweg::domain();
    let mut command = Command::new(program);
    command.args(["burst", "--role", "sub", "--domain", &domain.to_string()]);
    let subscriber = Program::start_with_input(name, &command);
    let participant = bursts::participant(domain);
    let mut run = 0;
    for method in bursts::methods() {
        let who = format!("{name} ({method})");
        let end = End {
            samples: bursts::writer(&participant, "thalweg_burst", method),
            echoes: bursts::reader(&participant, "thalweg_burst_echo"),
        };
        end.meet(&who);
        for (count, size) in RUNS {
            run += 1;
            end.run(&who, run, count, size);
        }
        assert_eq!(end.samples.counters().batches, 0, "{who} does not understand batches");
    }
    subscriber.finish().well();
}

#[test]
fn fast_dds_gets_bursts_by_every_method() {
    check("Fast DDS", "THALWEG_FASTDDS");
}

#[test]
fn rustdds_gets_bursts_by_every_method() {
    check("RustDDS", "THALWEG_RUSTDDS");
}

/// `perf burst` and the peers' programs are ends of the same measurement, each of the other's.
#[track_caller]
fn check_perf(name: &str, variable: &str) {
    let domain = thalweg::domain().to_string();
    let mut of_vendor = Command::new(program(variable));
    of_vendor.arg("burst");
    let mut ours = Command::new(env!("CARGO_BIN_EXE_thalweg"));
    ours.args(["perf", "burst", "--interface", "lo"]);
    for (mut publisher, mut subscriber) in [(clone(&ours), clone(&of_vendor)), (of_vendor, ours)] {
        subscriber.args(["--role", "sub", "--domain", &domain]);
        publisher.args(["--role", "pub", "--domain", &domain]);
        let subscriber = Program::start_with_input(&format!("echoes of bursts beside {name}"), &subscriber);
        let mut publisher = Program::start_with_input(&format!("bursts beside {name}"), &publisher);
        let ready = publisher.expect_text("ready");
        assert!(ready.contains(r#""work":"decoded""#), "{ready}");
        for request in [
            r#"{"n":1000,"size":256,"runs":2}"#,
            r#"{"n":3,"size":100000}"#,
            r#"{"n":500,"size":100,"wrap_bytes":2000}"#,
        ] {
            publisher.tell(request);
            let answer = publisher.expect("an answer", |line| line.starts_with('{'));
            assert!(answer.contains("runs_ms"), "{name}, {request}: {answer}");
        }
        publisher.finish().well();
        subscriber.finish().well();
    }
}

fn clone(command: &Command) -> Command {
    let mut out = Command::new(command.get_program());
    out.args(command.get_args());
    out
}

#[test]
fn fast_dds_is_either_end_of_our_bursts() {
    check_perf("Fast DDS", "THALWEG_FASTDDS");
}

#[test]
fn rustdds_is_either_end_of_our_bursts() {
    check_perf("RustDDS", "THALWEG_RUSTDDS");
}

/// Within one host Fast DDS sends to every address that a reader announces and that it can reach.
#[test]
fn fast_dds_sends_a_sample_to_a_reader_on_its_host_once() {
    for join in [false, true] {
        let (host, neighbour) = (Host::new("one"), Host::new("other"));
        if join {
            host.join(&neighbour, 0, 1500, Addresses::Both);
        }
        let program = std::env::current_exe().expect("this program");
        let mut command = host.command(&program.display().to_string());
        command.args(["--exact", "vendors::each_sample_comes_once", "--ignored", "--nocapture"]);
        let said = command.output().expect("started");
        assert!(said.status.success(), "joined {join}: {}", String::from_utf8_lossy(&said.stdout));
    }
}

/// What [`fast_dds_sends_a_sample_to_a_reader_on_its_host_once`] does on its host.
#[test]
#[ignore = "needs a host of its own, which another test makes"]
fn each_sample_comes_once() {
    let domain = thalweg::domain();
    let mut command = Command::new(program("THALWEG_FASTDDS"));
    command.args(["burst", "--role", "pub", "--interface", "any", "--domain", &domain.to_string()]);
    let participant = ::thalweg::DomainParticipant::builder(domain).create().expect("sockets");
    let reader = bursts::reader::<Burst>(&participant, "thalweg_burst");
    // It asks every 100 ms whether somebody is there who could echo.
    let _echoes = bursts::writer::<Burst>(&participant, "thalweg_burst_echo", Method::Immediate);
    let publisher = Program::start_with_input("Fast DDS", &command);
    let end = Instant::now() + PATIENCE / 3;
    while reader.counters().received < 30 && Instant::now() < end {
        reader.wait(Duration::from_millis(50));
        reader.take(usize::MAX);
    }
    let counters = reader.counters();
    assert!(counters.received >= 30, "{counters:?}");
    assert_eq!(counters.duplicates, 0, "{counters:?}");
    publisher.kill();
}

/// A folder with the programs of all vendors, as `--peer-dir` wants it.
#[track_caller]
fn programs(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("vendors-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("made");
    let built = [("cyclone", "THALWEG_CYCLONE"), ("fastdds", "THALWEG_FASTDDS"), ("rustdds", "THALWEG_RUSTDDS")];
    for (name, variable) in built {
        std::os::unix::fs::symlink(program(variable), folder.join(format!("{name}-perf"))).expect("linked");
    }
    folder
}

/// Runs a scenario, verifies what it left, and returns its folder and the results of its cells, of which each has one whole run.
#[track_caller]
fn run(name: &str, scenario: &str) -> (PathBuf, Vec<Value>) {
    let folder = programs(name);
    let (file, out) = (folder.join("scenario.toml"), folder.join("out"));
    fs::write(&file, scenario).expect("written");
    let lab = |words: &[&Path]| {
        let said = Command::new(env!("CARGO_BIN_EXE_thalweg")).arg("lab").args(words).output().expect("started");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(said.status.success(), "{}{}", text(&said.stdout), text(&said.stderr));
    };
    let [run, to, peers, verify] = ["run", "--out", "--peer-dir", "verify"].map(Path::new);
    lab(&[run, &file, to, &out, peers, &folder]);
    lab(&[verify, &out]);
    let mut results = json(&out.join("results.json"));
    let cells: Vec<Value> = results["cells"].as_array_mut().map(std::mem::take).expect("cells");
    for cell in cells.iter().filter(|cell| cell["runs"][0]["totals"].is_object()) {
        let totals = &cell["runs"][0]["totals"];
        assert_eq!(totals["response"]["count"], totals["due"], "{}", cell["name"]);
    }
    (out, cells)
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("there")).expect("JSON")
}

/// Every shape of a scenario with the real programs: whole raw files, nothing lost where nothing may be, results that verify.
#[test]
fn other_vendors_take_part_in_scenarios() {
    let (_, cells) = run("scenario", &format!("{HEAD}{SHAPES}{SCHEDULE}"));
    assert_eq!(cells.len(), 3 * 2 + 2 + 2);
}

/// Every kind of work, on one host and over a link, with the real programs: each has the figures that its kind has.
#[test]
fn other_vendors_take_part_in_benchmarks() {
    let (out, cells) = run("benchmark", BENCHMARK);
    assert_eq!(cells.len(), 3 * 4 + 3);
    for cell in &cells {
        let (deed, run) = (&cell["cell"]["deed"], &cell["runs"][0]);
        let figure = match deed.as_object().and_then(|deed| deed.keys().next()).map(String::as_str) {
            Some("burst") => "time_ms",
            Some("stream") => "per_s",
            _ => "round_trip_us",
        };
        assert!(run[figure].as_f64() > Some(0.0) && run["missing"].is_null(), "{}: {run}", cell["name"]);
    }
    let results = json(&out.join("results.json"));
    let versions = results["versions"].as_array().expect("versions");
    assert!(versions.iter().any(|one| one[0] == "fastdds tuned" && one[1].as_str() > Some("3")), "{versions:?}");
    let ratio = &results["ratios"][0];
    assert!(ratio["estimate"].as_f64() > Some(0.0) && ratio["holds"].is_null(), "one run judges nothing: {ratio}");
}

const BENCHMARK: &str = r#"
schema = "thalweg.benchmark/1"
name = "vendors"
runs = 1
link = { rate_mbit = 1000.0 }

[[contender]]
name = "auto"
[[contender]]
name = "cyclone batch"
peer = "cyclone"
profile = "batch"
[[contender]]
name = "fastdds tuned"
peer = "fastdds"
profile = "tuned"

[[work]]
name = "bursts"
place = "cores"
task = { bursts = { of = [[200, 256], [1, 300000]], each = 2 } }
expect = [{ of = "auto", by = ["cyclone batch", "fastdds tuned"], ratio = "<= 1" }]
[[work]]
name = "stream"
place = "one-core"
task = { stream = { bytes = [1024], readers = 2, seconds = 0.3 } }
[[work]]
name = "round trips"
task = { round-trips = { bytes = [64], wait = "block", seconds = 0.3 } }
[[work]]
name = "bursts over a link"
place = "link"
task = { bursts = { of = [[200, 256]], each = 2 } }
"#;

/// That the host which only reads got a run's samples over its link, and not over loopback. Where the machine stood still
/// before the first sample, the counters begin after some of them, and the run is marked.
#[track_caller]
fn check_link(result: &Value) {
    let reader = &result["hosts"][1];
    let payload = result["totals"]["due"].as_u64().expect("a number") * PAYLOAD_BYTES;
    let least = if result["conditions"]["counted_late"] == true { payload / 2 } else { payload };
    assert!(reader["device.eth0.rx_bytes"].as_u64() > Some(least), "{} B: {reader}", payload);
    assert!(reader["device.lo.rx_bytes"].as_u64().unwrap_or(0) < payload / 10, "{} B: {reader}", payload);
}

#[test]
fn other_vendors_meet_across_the_link_between_two_hosts() {
    let matrix =
        "[[matrix]]\nmiddleware = [\"cyclone\", \"cyclone-tuned\", \"fastdds\", \"fastdds-tuned\", \"rustdds\"]\n";
    let scenario =
        format!("{HEAD}hosts = \"netns:2\"\n{matrix}rate_hz = 20\npayload_bytes = {PAYLOAD_BYTES}\n{SCHEDULE}");
    let (out, cells) = run("hosts", &scenario);
    assert_eq!(cells.len(), 5);
    for index in 0..cells.len() {
        check_link(&json(&out.join(format!("runs/round-000-cell-{index:03}-attempt-1/result.json"))));
    }
}

#[test]
fn other_vendors_meet_across_the_link_between_two_agents() {
    let lab = Lab::new("vendors", &programs("agents"));
    let matrix = format!("middleware = [\"cyclone\", \"fastdds\"]\nrate_hz = 20\npayload_bytes = {PAYLOAD_BYTES}");
    lab.start(1, &matrix).finish().well();
    for index in 0..2 {
        let result = lab.json(&format!("runs/round-000-cell-{index:03}-attempt-1/result.json"));
        assert_eq!((&result["totals"]["in_time"], &result["totals"]["lost"]), (&20.into(), &0.into()), "{result}");
        check_link(&result);
    }
    let parts = &lab.json("manifest.json")["fingerprint"]["parts"];
    assert!(parts["program of fastdds of right"].is_string(), "{parts}");
}

/// Octets of a sample where bytes on a link are counted.
const PAYLOAD_BYTES: u64 = 20_000;

const HEAD: &str = "schema = \"thalweg.scenario/1\"\nname = \"vendors\"\n";

const SHAPES: &str = r#"
[[matrix]]
middleware = ["fastdds", "fastdds-tuned", "rustdds"]
type = ["Struct16", "Array64k"]
rate_hz = 20
endpoints = "1-2"
[[matrix]]
middleware = ["fastdds", "rustdds"]
payload_bytes = 100
rate_hz = 20
endpoints = "2-1"
topics = "per-publisher"
[[matrix]]
middleware = ["fastdds", "rustdds"]
payload_bytes = 100
rate_hz = 20
endpoints = "2-2"
"#;

/// Nothing may be lost; any machine can keep this.
const SCHEDULE: &str = r#"
[qos]
history = { keep_last = 20 }
[schedule]
seconds = 1
runs = 1
warm_up_s = 0.2
behind_max_ms = 10000
[expect]
lost = "== 0"
not_sent = "== 0"
[system]
attempts = 1
"#;
