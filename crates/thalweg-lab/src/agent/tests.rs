//! Agents and controllers over loopback; workers are played by the shell.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;
use thalweg_lab_station::{
    HistorySetting, Order, PeerProfile, PeerSetup, PublisherPhase, Qos, ReliabilitySetting, StationCommand, Timetable,
    TimetablePace, WaitMode as PeerWait, Wake, WorkerMessage,
};

use super::frames::Frames;
use super::wire::{Greeting, MESSAGE_MAX, PROTOCOL, Refusal, VERSION};
use super::*;
use crate::error::LabError;
use crate::peers::PeerProgram;
use crate::process::{Launcher, Stop};
use crate::scenario::Load;
use crate::station::{Sending, StationNetwork, Wait};
use crate::trial::{Setup, TrialOrder};

/// An agent on a port of its own, with what it says; stopped when dropped.
struct Host {
    address: SocketAddr,
    key: AgentKey,
    stop: Stop,
    said: Arc<Mutex<Vec<String>>>,
    serving: Option<JoinHandle<()>>,
}

impl Host {
    /// Its workers are shells that run `script`.
    fn new(script: &str) -> Host {
        Host::launching(Launcher::new("/bin/sh", ["-c", script]))
    }

    fn launching(launcher: Launcher) -> Host {
        let key = AgentKey::random().expect("a key");
        let agent = Agent::open(SocketAddr::from(([127, 0, 0, 1], 0)), key.clone(), launcher).expect("opened");
        let (address, stop, said) = (agent.address().expect("bound"), Stop::default(), Arc::default());
        let serving = std::thread::spawn({
            let (stop, said) = (stop.clone(), Arc::clone(&said));
            move || {
                let note = |line: &str| {
                    let said: &Mutex<Vec<String>> = &said;
                    said.lock().expect("not poisoned").push(line.to_owned());
                };
                agent.serve(&stop, &note).expect("served");
            }
        });
        Host { address, key, stop, said, serving: Some(serving) }
    }

    fn connect(&self) -> Result<Arc<Connection>, LabError> {
        Connection::open(&self.address.to_string(), &self.key, &Stop::default()).map(Arc::new)
    }

    fn connected(&self) -> Arc<Connection> {
        self.connect().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Waits until the agent says this.
    #[track_caller]
    fn expect_said(&self, part: &str) {
        wait_for(part, || self.said.lock().expect("not poisoned").iter().any(|line| line.contains(part)));
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop.request();
        self.serving.take().map(JoinHandle::join);
    }
}

#[track_caller]
fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "no {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn order() -> TrialOrder {
    let (network, load, wait) = (StationNetwork::apart(0), Load::Struct16, Wait::Listener);
    let second = Duration::from_secs(1);
    TrialOrder {
        setup: Setup { network, load, sending: Sending::default(), flow_controller: None, wait, trace: None },
        qos: Qos {
            reliability: ReliabilitySetting::Reliable,
            history: HistorySetting::KeepAll(1),
            max_blocking: second,
        },
        timetable: Timetable { rate_hz: 1.0, publishers: 1, phase: PublisherPhase::Spread, first: 0, count: 1 },
        pace: TimetablePace { behind_max: second, wake: Wake::Sleep, drain: second, matching: second },
        publishers: Vec::new(),
        subscribers: Vec::new(),
        folder: PathBuf::from("/somewhere/else"),
        onward: None,
    }
}

fn start(connection: &Arc<Connection>) -> RemoteWorker {
    RemoteWorker::start(connection, 7, "publisher 0", WorkerOrder::Thalweg(order())).expect("asked for")
}

#[track_caller]
fn next(worker: &mut RemoteWorker) -> Result<WorkerMessage, LabError> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        match worker.try_hear() {
            Ok(Some(message)) => return Ok(message),
            Ok(None) => assert!(Instant::now() < deadline, "nothing was heard"),
            Err(error) => return Err(error),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[track_caller]
fn expect_error<T>(outcome: Result<T, LabError>, parts: &[&str]) {
    let error = outcome.err().expect("an error").to_string();
    for part in parts {
        assert!(error.contains(part), "{part:?} not in {error}");
    }
}

/// Tells its process number and the folder of its order, and hands the next line back.
const WORKER: &str = r#"read -r order
folder=$(echo "$order" | sed 's/.*"folder":"\([^"]*\)".*/\1/')
echo 1,2,3 > "$folder/publisher-000.csv"
echo "{\"progress\":[$$,\"$folder\"]}"
read -r line
echo "{\"done\":$line}""#;

/// Process number and folder of a worker that runs [`WORKER`].
fn process_and_folder(worker: &mut RemoteWorker) -> (u64, PathBuf) {
    let Ok(WorkerMessage::Progress(told)) = next(worker) else { panic!("no progress") };
    (told[0].as_u64().expect("a number"), PathBuf::from(told[1].as_str().expect("a path")))
}

fn lives(process: u64) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_worker_is_started_heard_and_ended_and_its_files_come_over() {
    let host = Host::new(WORKER);
    let connection = host.connected();
    assert_eq!(connection.facts().environment.version, VERSION);
    assert!(connection.facts().fingerprint.contains_key("kernel"));
    let mut worker = start(&connection);
    let (_, folder) = process_and_folder(&mut worker);
    assert!(folder != Path::new("/somewhere/else") && folder.is_dir(), "the agent decides where: {}", folder.display());
    worker.send(&StationCommand::Start { origin_ns: 5 }).expect("told");
    assert_eq!(next(&mut worker).expect("a result"), WorkerMessage::Done(json!({"start": {"origin_ns": 5}})));
    let here = std::env::temp_dir().join(format!("thalweg-agent-test-{}", std::process::id()));
    std::fs::create_dir_all(&here).expect("made");
    connection.collect(&here).expect("collected");
    assert_eq!(std::fs::read_to_string(here.join("publisher-000.csv")).expect("there"), "1,2,3\n");
    expect_error(connection.collect(&here), &["offers a file \"publisher-000.csv\" that is none of its own"]);
    std::fs::remove_dir_all(&here).expect("removed");
    worker.finish().expect("a peaceful end");
    assert!(connection.counters().expect("counted").iter().any(|(name, _)| name == "device.lo.rx_packets"));
    expect_error(connection.look(), &["no watch of this host was requested"]);
    connection.watch().expect("asked for");
    assert!(connection.look().expect("looked").lasted_s < 10.0);
    connection.clear().expect("cleared");
    assert!(std::fs::read_dir(&folder).expect("there").next().is_none(), "its files are gone");
    drop(connection);
    host.expect_said("is gone: it said goodbye");
    assert!(!folder.exists());
}

#[test]
fn what_goes_wrong_with_a_worker_is_told_with_its_agent() {
    let host = Host::new("read order; echo out of memory >&2; kill -9 $$");
    let connection = host.connected();
    let name = host.address.to_string();
    expect_error(next(&mut start(&connection)), &[&name, "publisher 0", "signal: 9", "out of memory"]);
    let host = Host::new("read order; echo '{\"failed\":\"no route\"}'");
    expect_error(next(&mut start(&host.connected())), &["gave up: no route"]);
    let host = Host::new("read order; echo garbage");
    expect_error(next(&mut start(&host.connected())), &["garbage", "no message of this version"]);
}

#[test]
fn the_program_of_a_peer_is_looked_for_and_started_on_the_agents_host() {
    let folder = std::env::temp_dir().join(format!("thalweg-agent-peers-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("made");
    // It complains about its argument, which tells it from the agent's own program.
    std::os::unix::fs::symlink("/bin/cat", folder.join("zenoh-perf")).expect("linked");
    let host = Host::launching(Launcher::new("/bin/true", ["worker"]).with_peers_in(Some(folder.clone())));
    let connection = host.connected();
    assert_eq!(connection.program_of(PeerProgram::Zenoh).expect("there").len(), 16);
    let missing = connection.program_of(PeerProgram::Cyclone);
    let name = host.address.to_string();
    expect_error(missing, &["cyclone is not set up", &name, "`thalweg lab peers install cyclone`", "--peer-dir"]);
    let TrialOrder { qos, timetable, pace, publishers, subscribers, folder: elsewhere, .. } = order();
    let setup = PeerSetup {
        domain: 20,
        address: Ipv4Addr::LOCALHOST,
        publishers: vec![Ipv4Addr::LOCALHOST],
        profile: PeerProfile::Default,
        wait: PeerWait::Block,
        sample_bytes: 100,
        topic_writers: 1,
        topic_readers: 1,
    };
    let order = Order { setup, qos, timetable, pace, publishers, subscribers, folder: elsewhere, onward: None };
    let order = WorkerOrder::Peer(PeerProgram::Zenoh, order);
    let mut worker = RemoteWorker::start(&connection, 7, "publisher 0", order).expect("asked for");
    expect_error(next(&mut worker), &[&name, "publisher 0", "station"]);
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_lost_controller_takes_its_workers_along() {
    let host = Host::new(&format!("{WORKER}\nexec sleep 600"));
    let connection = host.connected();
    let mut worker = start(&connection);
    let (process, folder) = process_and_folder(&mut worker);
    assert!(lives(process) && folder.exists());
    // Without a goodbye, as when its process is killed.
    connection.cut();
    wait_for("end of the worker", || !lives(process));
    wait_for("end of the folder", || !folder.exists());
    host.expect_said("1 workers were ended");
    expect_error(worker.check_alive(), &["was lost", "resume"]);
    assert!(host.connect().is_ok(), "the next one is welcome");
}

#[test]
fn a_worker_that_is_dropped_is_killed() {
    let host = Host::new(&format!("{WORKER}\nexec sleep 600"));
    let connection = host.connected();
    let mut worker = start(&connection);
    let (process, _) = process_and_folder(&mut worker);
    drop(worker);
    wait_for("end of the worker", || !lives(process));
}

#[test]
fn an_agent_that_is_stopped_says_so_and_leaves_nothing() {
    let host = Host::new(&format!("{WORKER}\nexec sleep 600"));
    let connection = host.connected();
    let mut worker = start(&connection);
    let (process, folder) = process_and_folder(&mut worker);
    host.stop.request();
    wait_for("loss", || worker.check_alive().is_err());
    expect_error(worker.check_alive(), &["was lost: it was stopped", "does not count"]);
    wait_for("end of worker and folder", || !lives(process) && !folder.exists());
}

#[test]
fn one_controller_at_a_time() {
    let host = Host::new("read order");
    let first = host.connected();
    expect_error(host.connect(), &["works for another controller, 127.0.0.1:", "wait for its end"]);
    host.expect_said("was sent away");
    first.check_alive().expect("undisturbed");
    first.counters().expect("undisturbed");
    drop(first);
    host.connected();
}

#[test]
fn another_key_is_refused_on_both_sides() {
    let host = Host::new("read order");
    let other = AgentKey::random().expect("a key");
    let outcome = Connection::open(&host.address.to_string(), &other, &Stop::default());
    expect_error(outcome, &["has another key: copy one key file to all hosts"]);
    host.expect_said("it does not have this agent's key");
}

/// Says something before both sides know each other, and hears the answer.
fn greet_by_hand(address: SocketAddr, greeting: &Greeting) -> Option<Greeting> {
    let mut stream = TcpStream::connect(address).expect("connected");
    say_by_hand(&mut stream, greeting);
    hear_by_hand(&mut stream)
}

fn say_by_hand(stream: &mut TcpStream, greeting: &Greeting) {
    let text = serde_json::to_vec(greeting).expect("text");
    stream.write_all(&Frames::pack(&text, 1024).expect("packed")).expect("sent");
}

fn hear_by_hand(stream: &mut TcpStream) -> Option<Greeting> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut text = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[test]
fn another_version_is_refused_on_both_sides() {
    let host = Host::new("read order");
    for (protocol, version) in [(PROTOCOL + 1, VERSION), (PROTOCOL, "9.9.9")] {
        let hello = Greeting::Hello { protocol, version: version.to_owned(), nonce: [0; 32] };
        let answer = greet_by_hand(host.address, &hello);
        let own = Refusal::Version { protocol: PROTOCOL, version: VERSION.to_owned() };
        assert!(matches!(answer, Some(Greeting::Refused(refusal)) if refusal == own));
        host.expect_said(&format!("it is Thalweg {version}"));
    }
    let outcome = against(|stream| {
        hear_by_hand(stream);
        say_by_hand(stream, &Greeting::Refused(Refusal::Version { protocol: 8, version: "7.0.0".to_owned() }));
    });
    expect_error(outcome, &["it is Thalweg 7.0.0 with protocol 8", "install one version"]);
}

/// What a controller says of something that is no agent and does this with its first connection.
fn against(play: impl FnOnce(&mut TcpStream) + Send + 'static) -> Result<Connection, LabError> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("bound");
    let playing = std::thread::spawn(move || play(&mut listener.accept().expect("accepted").0));
    let outcome = Connection::open(&address.to_string(), &AgentKey::random().expect("a key"), &Stop::default());
    playing.join().expect("played");
    outcome
}

#[test]
fn something_else_in_place_of_an_agent_is_told_as_what_it_is() {
    let web = |stream: &mut TcpStream| stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("sent");
    expect_error(against(web), &["the program at this address is no agent of the lab"]);
    expect_error(against(|_| {}), &["before it accepted this controller"]);
    // An agent without the key cannot pass for one, whatever it lets in.
    let impostor = |stream: &mut TcpStream| {
        hear_by_hand(stream);
        say_by_hand(stream, &Greeting::Challenge { nonce: [1; 32] });
        hear_by_hand(stream);
        say_by_hand(stream, &Greeting::Welcome { tag: [2; 32] });
    };
    expect_error(against(impostor), &["has another key"]);
    // Nor can one that hands the controller's own proof back.
    let mirror = |stream: &mut TcpStream| {
        let Some(Greeting::Hello { nonce, .. }) = hear_by_hand(stream) else { return };
        say_by_hand(stream, &Greeting::Challenge { nonce });
        let Some(Greeting::Proof { tag }) = hear_by_hand(stream) else { return };
        say_by_hand(stream, &Greeting::Welcome { tag });
    };
    expect_error(against(mirror), &["has another key"]);
}

#[test]
fn nobody_there_is_told_with_what_to_start() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("bound").local_addr().expect("bound");
    let open = |name: &str| Connection::open(name, &AgentKey::random().expect("a key"), &Stop::default());
    expect_error(
        open(&closed.to_string()),
        &["cannot be reached: no agent listens there; start `thalweg lab agent --bind"],
    );
    expect_error(open("lab2"), &["cannot be found", "name it by an address and a port"]);
}

#[test]
fn strangers_are_sent_away_and_disturb_nobody() {
    let host = Host::new("read order");
    let connection = host.connected();
    for bytes in [&[255; 4][..], &[0; 4], b"\0\0\0\x02{}", b"GET / HTTP/1.1\r\n\r\n"] {
        let mut stream = TcpStream::connect(host.address).expect("connected");
        stream.write_all(bytes).expect("sent");
        assert!(matches!(stream.read(&mut [0; 9]), Ok(0) | Err(_)), "an answer to {bytes:?}");
    }
    host.expect_said("it is no controller of the lab");
    connection.counters().expect("undisturbed");
}

/// Stands between a controller and an agent: hands each frame of the controller on after `alter` had it.
fn between(agent: SocketAddr, mut alter: impl FnMut(usize, Vec<u8>) -> Vec<Vec<u8>> + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        let (mut controller, _) = listener.accept().expect("accepted");
        let mut agent = TcpStream::connect(agent).expect("connected");
        let (mut from_agent, mut to_controller) =
            (agent.try_clone().expect("cloned"), controller.try_clone().expect("cloned"));
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from_agent, &mut to_controller);
            let _ = to_controller.shutdown(std::net::Shutdown::Both);
        });
        let (mut frames, mut count, mut buffer) = (Frames::new(MESSAGE_MAX), 0, [0; 4096]);
        while let Ok(read @ 1..) = controller.read(&mut buffer) {
            frames.add(&buffer[..read]);
            while let Ok(Some(frame)) = frames.take() {
                for frame in alter(count, frame) {
                    let _ = agent.write_all(&Frames::pack(&frame, MESSAGE_MAX).expect("packed"));
                }
                count += 1;
            }
        }
        let _ = agent.shutdown(std::net::Shutdown::Both);
    });
    address
}

/// What an agent says when somebody on the way treats the controller's messages so; the first two frames are greetings.
#[track_caller]
fn check_between(alter: impl FnMut(usize, Vec<u8>) -> Vec<Vec<u8>> + Send + 'static, expect: &str) {
    let host = Host::new("read order");
    let address = between(host.address, alter);
    let connection = Connection::open(&address.to_string(), &host.key, &Stop::default()).expect("let in");
    // What the one on the way does is noticed with the next message at the latest.
    let outcome = (0..3).try_for_each(|_| connection.counters().map(drop));
    expect_error(outcome.and_then(|()| connection.clear()).and_then(|()| connection.clear()), &["was lost"]);
    host.expect_said(expect);
}

#[test]
fn repeated_altered_and_withheld_messages_end_the_connection() {
    let repeat = |count, frame: Vec<u8>| if count == 3 { vec![frame.clone(), frame] } else { vec![frame] };
    check_between(repeat, "message 1 came in place of message 2: an attacker on the path repeats messages");
    let alter = |count, mut frame: Vec<u8>| {
        if count == 3 {
            frame[9] ^= 1;
        }
        vec![frame]
    };
    check_between(alter, "altered or forged on the way");
    let withhold = |count, frame| if count == 3 { Vec::new() } else { vec![frame] };
    let host = Host::new("read order");
    let address = between(host.address, withhold);
    let connection = Connection::open(&address.to_string(), &host.key, &Stop::default()).expect("let in");
    connection.counters().expect("not withheld");
    connection.watch().expect("sent");
    expect_error(connection.counters(), &["was lost"]);
    host.expect_said("message 2 came in place of message 1");
}

#[test]
fn clocks_of_one_machine_agree_within_the_bound_and_strangers_get_no_answer() {
    let host = Host::new("read order");
    let connection = host.connected();
    let mut clock = connection.clock().expect("opened");
    (0..30).for_each(|_| clock.ask().expect("asked"));
    let fit = ClockFit::of(clock.answered()).expect("answered");
    assert!(u128::from(fit.ahead_ns.unsigned_abs()) <= fit.bound().as_nanos(), "{fit:?}");
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("bound");
    stranger.set_read_timeout(Some(Duration::from_millis(200))).expect("set");
    for question in [&[0; 40][..], b"", b"who are you?"] {
        stranger.send_to(question, host.address).expect("sent");
        assert!(stranger.recv(&mut [0; 99]).is_err(), "an answer to {question:?}");
    }
    drop(connection);
    host.expect_said("is gone");
    let before = clock.answered().len();
    clock.ask().expect("asked");
    assert_eq!(clock.answered().len(), before, "nobody's agent answers nobody");
}
