//! Agents and controllers of one process, with pipes between them; workers are played by the shell.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;
use thalweg_host::{HostFiles, Task, TaskStat};
use thalweg_lab_station::{
    HistorySetting, PublisherPhase, Qos, ReliabilitySetting, StationCommand, Timetable, TimetablePace, Wake,
    WorkerMessage,
};

use super::pipe::{Incoming, Outgoing};
use super::session::{HELLO, PROTOCOL, VERSION};
use super::*;
use crate::error::LabError;
use crate::fixtures::{LabFolder, check_contains};
use crate::process::{Launcher, Stop, Supervised};
use crate::scenario::{Load, SshMachine};
use crate::station::{Setup, StationNetwork};
use crate::trial::TrialOrder;

/// A running agent.
struct Host {
    stop: Stop,
    serving: JoinHandle<Result<(), LabError>>,
}

impl Host {
    /// The agent and the ends of its pipes; its workers are shells that run `script`.
    fn start(script: &str) -> (Host, Outgoing, Incoming) {
        let launcher = Launcher::new("/bin/sh", ["-c", script]);
        let (from_controller, to_agent) = std::io::pipe().expect("a pipe");
        let (from_agent, to_controller) = std::io::pipe().expect("a pipe");
        let stop = Stop::default();
        let serving = std::thread::spawn({
            let stop = stop.clone();
            move || serve(from_controller, to_controller, &launcher, &stop)
        });
        (Host { stop, serving }, Outgoing::new(to_agent), Incoming::new(from_agent))
    }

    /// The agent and a connection to it.
    fn connected(script: &str) -> (Host, Arc<Connection>) {
        let (host, to, from) = Host::start(script);
        (host, connect(to, from).unwrap_or_else(|error| panic!("{error}")))
    }

    /// Waits until it ends by itself.
    #[track_caller]
    fn end(self) -> Result<(), LabError> {
        wait_for("end of the agent", || self.serving.is_finished());
        self.serving.join().expect("no panic")
    }
}

fn connect(to: Outgoing, from: Incoming) -> Result<Arc<Connection>, LabError> {
    let machine = SshMachine { address: Some(Ipv4Addr::LOCALHOST.into()), ..SshMachine::new(NAME) };
    Connection::over(&machine, (to, from), None, &Stop::default()).map(Arc::new)
}

const NAME: &str = "user@lab2";

#[track_caller]
fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "no {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn order() -> TrialOrder {
    let second = Duration::from_secs(1);
    TrialOrder {
        setup: Setup { load: Some(Load::Struct16), ..Setup::within(StationNetwork::apart(0)) },
        qos: Qos {
            reliability: ReliabilitySetting::Reliable,
            history: HistorySetting::KeepAll(1),
            max_blocking: second,
        },
        timetable: Timetable { rate_hz: 1.0, publishers: 1, phase: PublisherPhase::Spread, first: 0, count: 1 },
        pace: TimetablePace { behind_max: second, wake: Wake::Sleep, drain: second, matching: second },
        payload_seed: 0,
        executor: None,
        closed_loop: None,
        publishers: Vec::new(),
        subscribers: Vec::new(),
        folder: PathBuf::new(),
        onward: None,
    }
}

fn start(connection: &Arc<Connection>) -> Supervised {
    Supervised::start_at(connection, "publisher 0", WorkerOrder::Thalweg(order())).expect("asked for")
}

fn next(worker: &mut Supervised) -> Result<WorkerMessage, LabError> {
    worker.hear(Duration::from_secs(20), &Stop::default())
}

#[track_caller]
fn expect_error<T>(outcome: Result<T, LabError>, parts: &[&str]) {
    check_contains(&outcome.err().expect("an error").to_string(), parts);
}

/// Tells its process number and the folder of its order, and hands the next line back.
const WORKER: &str = r#"read -r order
folder=$(echo "$order" | sed 's/.*"folder":"\([^"]*\)".*/\1/')
echo 1,2,3 > "$folder/publisher-000.csv"
echo "{\"progress\":[$$,\"$folder\"]}"
read -r line
echo "{\"done\":$line}""#;

/// Process number and folder of a worker that runs [`WORKER`].
fn process_and_folder(worker: &mut Supervised) -> (u32, PathBuf) {
    let Ok(WorkerMessage::Progress(told)) = next(worker) else { panic!("no progress") };
    told_by_worker(told.as_array().expect("a list"))
}

fn told_by_worker(told: &[serde_json::Value]) -> (u32, PathBuf) {
    let process = told[0].as_u64().and_then(|number| u32::try_from(number).ok()).expect("a process");
    (process, PathBuf::from(told[1].as_str().expect("a path")))
}

fn lives(process: u32) -> bool {
    TaskStat::read(&HostFiles::here(), Task::Process(process)).is_some_and(|stat| !stat.is_zombie())
}

#[test]
fn a_worker_is_started_heard_and_ended_and_its_files_come_over() {
    let (host, connection) = Host::connected(WORKER);
    assert_eq!(connection.facts().environment.version, VERSION);
    assert!(connection.facts().fingerprint.contains_key("kernel"));
    let mut worker = start(&connection);
    let (_, folder) = process_and_folder(&mut worker);
    assert!(
        folder.starts_with(std::env::temp_dir()) && folder.is_dir(),
        "the agent decides where: {}",
        folder.display()
    );
    worker.send(&StationCommand::Start { origin_ns: 5 }).expect("told");
    assert_eq!(next(&mut worker).expect("a result"), WorkerMessage::Done(json!({"start": {"origin_ns": 5}})));
    let here = LabFolder::new("agent");
    connection.collect(&here).expect("collected");
    assert_eq!(std::fs::read_to_string(here.join("publisher-000.csv")).expect("there"), "1,2,3\n");
    expect_error(connection.collect(&here), &["offers a file \"publisher-000.csv\" that is none of its own"]);
    worker.finish().expect("a peaceful end");
    assert!(connection.counters().expect("counted").iter().any(|(name, _)| name == "device.lo.rx_packets"));
    expect_error(connection.look(), &["no watch of this host was requested"]);
    connection.watch().expect("asked for");
    assert!(connection.look().expect("looked").lasted_s < 10.0);
    connection.clear().expect("cleared");
    assert!(std::fs::read_dir(&folder).expect("there").next().is_none(), "its files are gone");
    drop(connection);
    host.end().expect("a peaceful end");
    assert!(!folder.exists());
}

#[test]
fn what_goes_wrong_with_a_worker_is_told_with_its_machine() {
    let fails = |script: &str, parts: &[&str]| {
        let (_host, connection) = Host::connected(script);
        expect_error(next(&mut start(&connection)), parts);
    };
    fails("read order; echo out of memory >&2; kill -9 $$", &[NAME, "publisher 0", "signal: 9", "out of memory"]);
    fails("read order; echo '{\"failed\":\"no route\"}'", &["gave up: no route"]);
    let (_host, connection) = Host::connected("read order; echo '{\"failed\":\"no route\"}'");
    let said = next(&mut start(&connection));
    assert!(matches!(said, Err(LabError::Failed { reason, .. }) if reason == "no route"), "as of one here");
    fails("read order; echo garbage", &["garbage", "no message of this version"]);
}

#[test]
fn a_worker_that_is_dropped_is_killed() {
    let (_host, connection) = Host::connected(&format!("{WORKER}\nexec sleep 600"));
    let mut worker = start(&connection);
    let (process, _) = process_and_folder(&mut worker);
    drop(worker);
    wait_for("end of the worker", || !lives(process));
}

#[test]
fn an_agent_that_is_stopped_says_so_and_leaves_nothing() {
    let (host, connection) = Host::connected(&format!("{WORKER}\nexec sleep 600"));
    let mut worker = start(&connection);
    let (process, folder) = process_and_folder(&mut worker);
    host.stop.request();
    expect_error(host.end(), &["this agent ended: it was stopped"]);
    wait_for("loss", || worker.check_alive().is_err());
    expect_error(worker.check_alive(), &[NAME, "was lost: it closed the connection", "does not count", "resume"]);
    wait_for("end of worker and folder", || !lives(process) && !folder.exists());
}

#[test]
fn a_controller_that_says_nothing_understandable_is_left() {
    let (host, mut to, from) = Host::start("read order");
    to.write(b"{}".to_vec()).expect("said");
    expect_error(host.end(), &["this agent ended: a message is not understood"]);
    drop(from);
}

/// What a controller makes of an agent that says this.
fn against(said: &str) -> Result<Arc<Connection>, LabError> {
    connect(Outgoing::new(std::io::sink()), Incoming::new(std::io::Cursor::new(said.to_owned())))
}

#[test]
fn something_else_in_place_of_an_agent_is_told_as_what_it_is() {
    expect_error(against(&format!("{HELLO}99 {VERSION}\n")), &[NAME, "with protocol 99"]);
    expect_error(against("This account is not available.\n"), &[NAME, "This account is not available."]);
    expect_error(against(&format!("{HELLO}{PROTOCOL} {VERSION}\n")), &["was lost at once: it closed the connection"]);
    expect_error(against(&format!("{HELLO}{PROTOCOL} {VERSION}\n\"alive\"\n")), &["does not say that it is ready"]);
}
