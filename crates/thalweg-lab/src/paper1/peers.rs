//! Other vendors' programs: where they are, and how they are talked to.
//!
//! A peer program is `<name>-perf burst --role pub|sub`: `sub` sends one echo back after the last sample of each run until its standard
//! input ends; `pub` says `{"ready":true,…}` once it has met `sub`, then answers each line `{"n":…,"size":…,"runs":…}` with
//! `{"runs_ms":[…]}` or `{"error":"…"}`.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::error::LabError;
use crate::process::Stop;

/// The peers that take part: all that speak a protocol.
pub const PEERS: [&str; 7] = ["cyclone", "fastdds", "rustdds", "dust", "hdds", "zenoh", "iceoryx2"];

/// The profiles that a peer program may know.
pub const PROFILES: [&str; 3] = ["default", "tuned", "batch"];

/// Start of a peer's two processes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PeerOrder {
    pub(super) program: PathBuf,
    pub(super) profile: String,
    pub(super) domain: u32,
    /// Logical CPUs of writer and reader.
    pub(super) cpus: Option<(usize, usize)>,
    pub(super) max_size: u64,
}

/// A peer's two processes; dropping it ends both.
#[derive(Debug)]
pub(super) struct PeerPair {
    name: String,
    publisher: Peer,
    // Dropped after the publisher, so that nothing it still sends goes nowhere.
    subscriber: Peer,
    /// Version that the program says it measures; empty until it is ready.
    pub(super) version: String,
}

impl PeerPair {
    /// Starts both processes and does not wait until they have met.
    pub(super) fn start(order: &PeerOrder) -> Result<PeerPair, LabError> {
        // The report names the machine; a path would only name a user's directories.
        let file = order.program.file_name().unwrap_or(order.program.as_os_str());
        let name = format!("program {}", file.display());
        let subscriber = Peer::start(order, "sub", order.cpus.map(|(_, reader)| reader), &name)?;
        let publisher = Peer::start(order, "pub", order.cpus.map(|(writer, _)| writer), &name)?;
        Ok(PeerPair { name, publisher, subscriber, version: String::new() })
    }

    /// Waits until both have met.
    pub(super) fn wait_until_ready(&mut self, stop: &Stop) -> Result<(), LabError> {
        let said = self.hear(READY_PATIENCE, stop)?;
        if said["ready"] != Value::Bool(true) {
            return Err(self.failed(format!("it said {said} where it should have been ready")));
        }
        self.version = said["version"].as_str().unwrap_or_default().to_owned();
        Ok(())
    }

    /// So many runs of `n` samples of `size` bytes; their times in milliseconds.
    pub(super) fn burst(&mut self, n: u64, size: u64, runs: u64, stop: &Stop) -> Result<Vec<f64>, LabError> {
        let request = serde_json::json!({"n": n, "size": size, "runs": runs});
        if !self.publisher.say(&request.to_string()) {
            return Err(self.death());
        }
        let said = self.hear(ANSWER_PATIENCE, stop)?;
        if let Some(reason) = said["error"].as_str() {
            return Err(self.failed(reason.to_owned()));
        }
        let values =
            said["runs_ms"].as_array().map(|values| values.iter().filter_map(Value::as_f64).collect::<Vec<_>>());
        match values {
            Some(values) if values.len() as u64 == runs && values.iter().all(|ms| *ms > 0.0) => Ok(values),
            _ => Err(self.failed(format!("it answered {said} where {runs} times were expected"))),
        }
    }

    fn hear(&mut self, patience: Duration, stop: &Stop) -> Result<Value, LabError> {
        let deadline = Instant::now() + patience;
        loop {
            if stop.is_requested() {
                return Err(LabError::Interrupted);
            }
            match self.publisher.lines.recv_timeout(LOOK_PERIOD) {
                // A line that is no JSON is a remark of a library.
                Ok(line) => match serde_json::from_str::<Value>(&line) {
                    Ok(said) if said.is_object() => return Ok(said),
                    _ => {}
                },
                Err(RecvTimeoutError::Disconnected) => return Err(self.death()),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= deadline => {
                    let last_words = self.last_words();
                    return Err(LabError::Silent { process: self.name.clone(), patience, last_words });
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn failed(&self, reason: String) -> LabError {
        LabError::Failed { process: self.name.clone(), reason }
    }

    fn death(&mut self) -> LabError {
        let status = match self.publisher.wait(EXIT_PATIENCE) {
            Some(status) => status.to_string(),
            None => "it closed its output".to_owned(),
        };
        LabError::Died { process: self.name.clone(), status, last_words: self.last_words() }
    }

    fn last_words(&self) -> String {
        let of = |peer: &Peer| peer.words().join(" / ");
        let (publisher, subscriber) = (of(&self.publisher), of(&self.subscriber));
        if publisher.is_empty() { subscriber } else { publisher }
    }
}

/// One process of a peer.
#[derive(Debug)]
struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    words: Arc<Mutex<VecDeque<String>>>,
    /// Keeps the words until standard error is closed.
    listening: Option<JoinHandle<()>>,
}

impl Peer {
    fn start(order: &PeerOrder, role: &str, cpu: Option<usize>, name: &str) -> Result<Peer, LabError> {
        let mut command = Command::new(&order.program);
        command.args(["burst", "--role", role, "--profile", &order.profile, "--domain", &order.domain.to_string()]);
        command.args(["--max-size", &order.max_size.to_string()]);
        if let Some(cpu) = cpu {
            command.args(["--cpu", &cpu.to_string()]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(|source| LabError::NotStarted { process: name.to_owned(), source })?;
        let (heard, lines) = sync_channel(LINES_MAX);
        let words: Arc<Mutex<VecDeque<String>>> = Arc::default();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || each_line(stdout, |line| heard.send(line).is_ok()));
        }
        let listening = child.stderr.take().map(|stderr| {
            let words = Arc::clone(&words);
            std::thread::spawn(move || each_line(stderr, |line| keep(&words, line)))
        });
        let input = child.stdin.take();
        Ok(Peer { child, input, lines, words, listening })
    }

    fn say(&mut self, line: &str) -> bool {
        self.input.as_mut().is_some_and(|input| writeln!(input, "{line}").and_then(|()| input.flush()).is_ok())
    }

    fn words(&self) -> Vec<String> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Waits for its end and its last words.
    fn wait(&mut self, patience: Duration) -> Option<std::process::ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            let is_heard = self.listening.as_ref().is_none_or(JoinHandle::is_finished) || Instant::now() >= deadline;
            match self.child.try_wait() {
                Ok(Some(status)) if is_heard => return Some(status),
                Ok(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
                _ => return None,
            }
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.input.take());
        if self.wait(EXIT_PATIENCE).is_none() {
            // Neither call can fail for a child that was not waited for; if one does there is nothing left to end.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn each_line(stream: impl Read, mut take: impl FnMut(String) -> bool) {
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if !take(line) {
            return;
        }
    }
}

fn keep(words: &Mutex<VecDeque<String>>, line: String) -> bool {
    let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
    if words.len() == WORDS_MAX {
        words.pop_front();
    }
    words.push_back(line);
    true
}

/// Lines that may wait; a program that says more waits itself.
const LINES_MAX: usize = 256;
/// Lines of standard error kept of each process.
const WORDS_MAX: usize = 6;
const LOOK_PERIOD: Duration = Duration::from_millis(50);
const READY_PATIENCE: Duration = Duration::from_secs(30);
/// Time limit of a series of runs: 10,000 samples of a middleware that sends them one by one, some ten times.
const ANSWER_PATIENCE: Duration = Duration::from_secs(90);
const EXIT_PATIENCE: Duration = Duration::from_secs(2);
