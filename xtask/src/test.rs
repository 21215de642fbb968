//! `cargo xtask test`: sets up what the tests need and runs every suite.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use thalweg_host::Namespace;

use crate::report::{self, SuiteRow};
use crate::workspace::{cargo, in_ci, run as run_command, target};
use crate::{Outcome, browser, compliance, netns, peers};

/// As many failed tests of a suite are tried again, each alone. Those that measure time may fail beside the others on a busy machine;
/// more than these fail for another reason.
const TRIED_AGAIN_MAX: usize = 3;

/// Number of simulated worlds of a test run; a long run takes 20,000.
const SEEDS: &str = "200";

/// Makes tests with optimizations.
const OPTIMIZED: [&str; 2] = ["--profile", "optimized"];

/// The suites in the order they run: quick and most telling ones first.
const SUITES: [Suite; 18] = [
    ("workspace", workspace),
    ("doc", documentation),
    ("simulation", simulation),
    ("loom", models),
    ("browser", reports),
    ("cyclone", || peer_tests("cyclone::")),
    ("recording", recording),
    ("prometheus", prometheus),
    ("shells", shells),
    ("namespaces", || peer_tests("namespaces::")),
    ("video", video),
    ("probe", probe),
    ("stalls", stalls),
    ("ssh", ssh),
    ("capture", || peer_tests("capture::")),
    ("vendors", vendors),
    ("oscore", oscore),
    ("coap", coap),
];

/// A name and what runs under it.
type Suite = (&'static str, fn() -> Outcome<Tally>);

/// The report of a suite that could run.
struct Tally {
    passed: usize,
    failed: usize,
    ignored: usize,
    reason: String,
}

impl Tally {
    /// One failure.
    fn failure(reason: &str) -> Tally {
        Tally { passed: 0, failed: 1, ignored: 0, reason: reason.to_owned() }
    }

    /// What the output of test binaries tells. One that did not come to its closing line has failed with what it had not run yet, which is
    /// nobody's name.
    fn read(succeeded: bool, text: &str) -> Tally {
        let closed = report::closing_lines(text);
        let failed_lines = text.lines().filter(|line| line.ends_with(" ... FAILED"));
        let names: Vec<&str> = failed_lines.filter_map(|line| line.split_whitespace().nth(1)).collect();
        let unfinished = report::unfinished_binaries(text);
        let failed = closed.failed.max(names.len()) + unfinished;
        let failed = if failed == 0 { usize::from(!succeeded) } else { failed };
        Tally { passed: closed.passed, failed, ignored: closed.ignored, reason: names.join(" ") }
    }

    /// Itself, or a failure where nothing ran: a filter that fits no test any more.
    fn failing_if_empty(self) -> Tally {
        if self.passed + self.failed > 0 {
            return self;
        }
        Tally::failure(format!("no test ran {}", self.reason).trim_end())
    }

    fn into_row(self, suite: &'static str) -> SuiteRow {
        let Tally { passed, failed, ignored, reason } = self;
        SuiteRow { suite, passed, failed, ignored, reason, seconds: 0.0 }
    }

    /// The names of the failed tests, if they are few and all are known.
    fn worth_another_try(&self) -> Option<Vec<String>> {
        let names: Vec<String> = self.reason.split_whitespace().map(str::to_owned).collect();
        (!names.is_empty() && names.len() == self.failed && self.failed <= TRIED_AGAIN_MAX).then_some(names)
    }

    /// Counts what passed when it ran again alone as passed, and names it.
    fn count_again(&mut self, again: &Tally) {
        if again.failed == 0 && again.passed == self.failed {
            self.passed += std::mem::take(&mut self.failed);
            self.reason.insert_str(0, "passed only alone: ");
        }
    }
}

/// Runs the named suites, or all; an error if one failed, and in CI also if one could not run.
pub fn run(names: &[String]) -> Outcome {
    if let Some(unknown) = names.iter().find(|name| !SUITES.iter().any(|(suite, _)| suite == name)) {
        let known: Vec<&str> = SUITES.iter().map(|(suite, _)| *suite).collect();
        return Err(format!("no suite is called {unknown}; there are {}", known.join(", ")));
    }
    Namespace::remove_abandoned();
    let wanted = |suite: &str| names.is_empty() || names.iter().any(|name| name == suite);
    let mut rows = Vec::new();
    for (suite, start) in SUITES.into_iter().filter(|(suite, _)| wanted(suite)) {
        println!("\n=== {suite} ===");
        let begun = Instant::now();
        let mut row = match start() {
            Ok(tally) => tally.failing_if_empty().into_row(suite),
            Err(reason) => SuiteRow::skipped(suite, reason),
        };
        row.seconds = begun.elapsed().as_secs_f64();
        rows.push(row);
    }
    Namespace::remove_abandoned();
    if report::print(&rows) { Ok(()) } else { Err("tests failed".to_owned()) }
}

fn workspace() -> Outcome<Tally> {
    // Most of the time is that of the program's own tests, which wait for programs more than they compute.
    let at_once = 2 * std::thread::available_parallelism().map_or(1, usize::from);
    cargo_test(&["--workspace", "--lib", "--bins", "--tests", "--examples"], &[], |command| {
        command.env("RUST_TEST_THREADS", at_once.to_string());
    })
}

fn documentation() -> Outcome<Tally> {
    let mut command = cargo(&["test", "--workspace", "--doc"]);
    tally(&mut command)
}

fn simulation() -> Outcome<Tally> {
    if build_program().is_err() {
        return Ok(Tally::failure("does not build"));
    }
    let mut command = cargo(&["run", "--quiet", "--package", "thalweg-cli", "--", "sim", "--seeds", SEEDS]);
    let (succeeded, _) = stream(&mut command)?;
    let reason = if succeeded { String::new() } else { "a seed failed; it is named above".to_owned() };
    Ok(Tally { passed: usize::from(succeeded), failed: usize::from(!succeeded), ignored: 0, reason })
}

/// Models of what threads share, in every order of their steps; built apart, since a flag changes what everything is built from.
fn models() -> Outcome<Tally> {
    let mut command = cargo(&["test"]);
    command.args(OPTIMIZED).args(["--package", "thalweg", "--package", "thalweg-transport", "--lib"]);
    command
        .env("RUSTFLAGS", "--cfg loom")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("CARGO_TARGET_DIR", target().join("loom"));
    tally(command.args(["--", "models::"]))
}

/// Tests of the built program against other vendors' programs, in hosts of their own, before a packet dissector.
fn peer_tests(filter: &str) -> Outcome<Tally> {
    netns::available()?;
    let tshark = peers::tshark()?;
    peers::packet_filter()?;
    let python = peers::cyclone_python()?;
    let sshd = peers::sshd()?;
    cargo_test(&["--package", "thalweg-cli", "--test", "peers"], &[filter, "--test-threads=4"], |command| {
        let programs = [("TSHARK", &tshark), ("PEER_PYTHON", &python), ("SSHD", &sshd)];
        command.envs(programs.map(|(name, program)| (format!("THALWEG_{name}"), program)));
    })
}

/// Recordings between Thalweg and Python's mcap, and views with Foxglove's decoders, of topics of Thalweg and Cyclone DDS.
fn recording() -> Outcome<Tally> {
    let (python, mcap) = (peers::cyclone_python()?, peers::mcap_python()?);
    let ready = ReadyPeers::prepare(&[peers::FOXGLOVE]);
    let mut arguments = vec!["recording::", "--test-threads=2"];
    arguments.extend((!ready.names.is_empty()).then_some("view::"));
    let tally = cargo_test(&["--package", "thalweg-cli", "--test", "peers"], &arguments, |command| {
        command.env("THALWEG_PEER_PYTHON", &python).env("THALWEG_MCAP_PYTHON", &mcap);
        command.envs(ready.environment.iter().cloned());
    })?;
    Ok(ready.count_missing(tally))
}

/// Counts of commands that Prometheus scrapes.
fn prometheus() -> Outcome<Tally> {
    let program = peers::prometheus()?;
    cargo_test(&["--package", "thalweg-cli", "--test", "peers"], &["prometheus::"], |command| {
        command.env("THALWEG_PROMETHEUS", &program);
    })
}

/// Completions of topics by the shells that not every host has.
fn shells() -> Outcome<Tally> {
    peers::shells()?;
    cargo_test(&["--package", "thalweg-cli", "--test", "peers"], &["shells::"], |_| ())
}

/// High definition between hosts of our own, and pictures and sound to and from programs of others. Optimized, since it is 130,000
/// packets a second, and one stream at a time. A program that is not to be had leaves out its own tests.
fn video() -> Outcome<Tally> {
    netns::available()?;
    let ready = ReadyPeers::prepare(&peers::VIDEO_PEERS);
    let left_out: Vec<String> = ready.missing.iter().map(|(name, _)| format!("--skip={name}::")).collect();
    let arguments: Vec<&str> =
        left_out.iter().map(String::as_str).chain(["--include-ignored", "--test-threads=1"]).collect();
    let tests = ["--package", "thalweg-video", "--test", "namespaces", "--test", "topics", "--test", "peers"];
    let mut tally = cargo_test(&[&OPTIMIZED[..], &tests].concat(), &arguments, |command| {
        command.envs(ready.environment.iter().cloned());
    })?;
    // The program itself with picture and sound, and its measurement of a small picture: little enough for a build without optimizations.
    let words: Vec<&str> = ["sound::", "paper3::"].into_iter().chain(arguments).collect();
    let program = cargo_test(&["--package", "thalweg-cli", "--test", "peers"], &words, |_| ())?;
    (tally.passed, tally.failed) = (tally.passed + program.passed, tally.failed + program.failed);
    tally.ignored += program.ignored;
    Ok(ready.count_missing(tally))
}

/// Probes of plain UDP and TCP between two hosts, and beside iperf3, and the advisor with rights. Where iperf3 is not to be had, its tests
/// alone are left out.
fn probe() -> Outcome<Tally> {
    netns::available()?;
    peers::packet_filter()?;
    let (mut arguments, mut missing) = (vec!["probe::", "advisor::", "--test-threads=1"], String::new());
    if let Err(reason) = peers::iperf3() {
        println!("*** iperf3 is UNAVAILABLE: {reason}: nothing is compared with it ***");
        arguments.push("--skip=probe::iperf3::");
        missing = format!("iperf3 is missing: {reason} ");
    }
    let mut tally = cargo_test(&["--package", "thalweg-cli", "--test", "peers"], &arguments, |_| ())?;
    tally.failed += usize::from(in_ci() && !missing.is_empty());
    tally.reason.insert_str(0, &missing);
    Ok(tally)
}

/// The receive buffers that the advisor computes, over planted stalls of a receiver: half a minute of a quiet machine.
fn stalls() -> Outcome<Tally> {
    netns::available()?;
    let tests = [&OPTIMIZED[..], &["--package", "thalweg-advisor", "--test", "it"]].concat();
    cargo_test(&tests, &["stalls::", "--include-ignored", "--test-threads=1"], |_| ())
}

/// Runs on another machine, which is this one, by OpenSSH; root is not needed where its server is installed.
fn ssh() -> Outcome<Tally> {
    let sshd = peers::sshd()?;
    cargo_test(&["--package", "thalweg-cli", "--test", "peers"], &["ssh::", "--test-threads=4"], |command| {
        command.env("THALWEG_SSHD", &sshd);
    })
}

/// The vendors' programs of `peers/`: bursts to them, scenarios, and the cases of `thalweg shapes`.
fn vendors() -> Outcome<Tally> {
    netns::available()?;
    peers::packet_filter()?;
    let (fastdds, rustdds) = peers::vendors()?;
    let (cyclone, sshd) = (peers::CYCLONE.build()?, peers::sshd()?);
    let tests = ["--package", "thalweg-cli", "--test", "peers"];
    let mut tally = cargo_test(&tests, &["vendors::", "--test-threads=4"], |command| {
        let programs = [("CYCLONE", &cyclone), ("FASTDDS", &fastdds), ("RUSTDDS", &rustdds), ("SSHD", &sshd)];
        command.envs(programs.map(|(name, program)| (format!("THALWEG_{name}"), program)));
    })?;
    match compliance::check_vendors() {
        Ok(cases) => tally.passed += cases,
        Err(reason) => {
            println!("{reason}");
            tally.failed += 1;
            tally.reason.push_str(" the cases of shapes with other vendors");
        }
    }
    Ok(tally)
}

/// Protected requests between Thalweg and aiocoap, and before a packet dissector.
fn oscore() -> Outcome<Tally> {
    let (python, tshark) = (peers::aiocoap_with_oscore()?, peers::tshark()?);
    cargo_test(&["--package", "thalweg-cli", "--test", "peers"], &["oscore::", "--test-threads=4"], |command| {
        command.env("THALWEG_AIOCOAP_PYTHON", &python).env("THALWEG_TSHARK", &tshark);
    })
}

/// CoAP with the clients and servers of other middleware. One that is not to be had leaves out its own tests.
fn coap() -> Outcome<Tally> {
    netns::available()?;
    let tshark = peers::tshark()?;
    peers::packet_filter()?;
    let ready = ReadyPeers::prepare(&peers::COAP_PEERS);
    let mut filters = vec!["coap::wire::".to_owned()];
    filters.extend(ready.names.iter().map(|name| format!("coap::{name}::")));
    let arguments: Vec<&str> = filters.iter().map(String::as_str).chain(["--test-threads=4"]).collect();
    let tally = cargo_test(&["--package", "thalweg-cli", "--test", "peers"], &arguments, |command| {
        command.env("THALWEG_TSHARK", &tshark).envs(ready.environment.iter().cloned());
    })?;
    Ok(ready.count_missing(tally))
}

/// The peers of a suite that are to be had.
#[derive(Default)]
struct ReadyPeers {
    names: Vec<&'static str>,
    environment: Vec<(&'static str, OsString)>,
    missing: Vec<(&'static str, String)>,
}

impl ReadyPeers {
    /// Sets them up; says which are not to be had.
    fn prepare(all: &[peers::TestPeer]) -> ReadyPeers {
        let mut ready = ReadyPeers::default();
        for peer in all {
            match (peer.prepare)() {
                Ok(variables) => {
                    ready.names.push(peer.name);
                    ready.environment.extend(variables);
                }
                Err(reason) => {
                    println!("*** {} is UNAVAILABLE: {reason}: its tests do not run ***", peer.name);
                    ready.missing.push((peer.name, reason));
                }
            }
        }
        ready
    }

    /// A suite's report with the missing ones, each of which is a failure in CI.
    fn count_missing(&self, mut tally: Tally) -> Tally {
        let missing = self.missing.iter().map(|(name, reason)| format!("{name} is missing: {reason}"));
        let failed = Some(std::mem::take(&mut tally.reason)).filter(|reason| !reason.is_empty());
        tally.reason = missing.chain(failed).collect::<Vec<_>>().join("; ");
        tally.failed += usize::from(in_ci()) * self.missing.len();
        tally
    }
}

/// The report of a short run in a real browser.
fn reports() -> Outcome<Tally> {
    if build_program().is_err() {
        return Ok(Tally::failure("does not build"));
    }
    let (passed, failed) = browser::check(&target().join("debug/thalweg"))?;
    Ok(Tally { passed, failed: failed.len(), ignored: 0, reason: failed.join(" ") })
}

/// Builds with the registries in reach, then runs the tests where they reach nobody.
fn cargo_test(selection: &[&str], arguments: &[&str], prepare: impl Fn(&mut Command)) -> Outcome<Tally> {
    let mut command = cargo(&["test", "--no-run"]);
    command.args(selection);
    if run_command(&mut command).is_err() {
        return Ok(Tally::failure("does not build"));
    }
    let tests = |arguments: &[&str]| {
        let mut command = cargo(&["test", "--offline", "--no-fail-fast"]);
        command.args(selection).arg("--").args(arguments);
        prepare(&mut command);
        match netns::available() {
            Ok(()) => tally(&mut netns::isolated(&command)),
            Err(reason) => {
                println!("*** {reason}: these tests share this machine's interfaces ***");
                tally(&mut command)
            }
        }
    };
    let mut suite = tests(arguments)?;
    if let Some(failed) = suite.worth_another_try() {
        println!("*** again, each alone: {} ***", suite.reason);
        let options = arguments.iter().filter(|word| word.starts_with("--") && !word.starts_with("--test-threads"));
        let alone: Vec<&str> = options.copied().chain(["--exact", "--test-threads=1"]).collect();
        let names = failed.iter().map(String::as_str);
        suite.count_again(&tests(&names.chain(alone).collect::<Vec<_>>())?);
    }
    Ok(suite)
}

fn build_program() -> Outcome {
    run_command(&mut cargo(&["build", "--package", "thalweg-cli"]))
}

fn tally(command: &mut Command) -> Outcome<Tally> {
    let (succeeded, text) = stream(command)?;
    Ok(Tally::read(succeeded, &text))
}

/// Runs the command, shows its output as it comes, and returns it with whether the command succeeded.
pub fn stream(command: &mut Command) -> Outcome<(bool, String)> {
    let program = command.get_program().to_string_lossy().into_owned();
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = started.map_err(|error| format!("{program}: {error}"))?;
    let mut text = String::new();
    if let Some(pipe) = child.stdout.take() {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            println!("{line}");
            text.push_str(&line);
            text.push('\n');
        }
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    Ok((status.success(), text))
}

#[cfg(test)]
mod tests {
    use super::Tally;

    fn failed(names: &str) -> Tally {
        let failed = names.split_whitespace().count();
        Tally { passed: 5, failed, ignored: 0, reason: names.to_owned() }
    }

    #[test]
    fn a_binary_that_ends_within_its_tests_has_failed_for_good() {
        let whole =
            "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\n";
        assert_eq!(Tally::read(false, whole).worth_another_try(), Some(vec!["b".to_owned()]));
        let aborted = Tally::read(false, &format!("{whole}\nrunning 9 tests\ntest c ... ok\n"));
        assert_eq!((aborted.failed, aborted.worth_another_try()), (2, None));
        let after_failure = Tally::read(false, "running 3 tests\ntest d ... FAILED\n");
        assert_eq!((after_failure.failed, after_failure.worth_another_try()), (2, None));
        assert_eq!(Tally::read(false, "").failed, 1, "it did not even begin");
    }

    #[test]
    fn a_suite_of_which_nothing_ran_has_failed() {
        let empty = "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out\n";
        let row = Tally::read(true, empty).failing_if_empty().into_row("suite");
        assert_eq!((row.failed, row.reason.as_str()), (1, "no test ran"));
        assert_eq!(failed("").failing_if_empty().failed, 0);
    }

    #[test]
    fn few_failed_tests_are_tried_again_and_many_are_not() {
        assert_eq!(failed("a::b c::d").worth_another_try(), Some(vec!["a::b".to_owned(), "c::d".to_owned()]));
        assert_eq!(failed("").worth_another_try(), None);
        assert_eq!(failed("a b c d").worth_another_try(), None);
        let unnamed = Tally { failed: 2, ..failed("a::b") };
        assert_eq!(unnamed.worth_another_try(), None);
    }

    #[test]
    fn what_passes_only_alone_counts_as_passed_and_is_named() {
        let mut suite = failed("a b");
        suite.count_again(&Tally { passed: 2, failed: 0, ignored: 0, reason: String::new() });
        assert_eq!((suite.passed, suite.failed), (7, 0));
        assert_eq!(suite.reason, "passed only alone: a b");
    }

    #[test]
    fn what_fails_twice_or_does_not_run_again_stays_failed() {
        for again in [Tally { passed: 1, ..failed("b") }, Tally { passed: 1, failed: 0, ..failed("") }] {
            let mut suite = failed("a b");
            suite.count_again(&again);
            assert_eq!((suite.passed, suite.failed), (5, 2));
        }
    }
}
