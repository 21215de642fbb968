//! The process of a CoAP server: started on a processor of its own, heard, and in every case ended.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use thalweg_coap::scheduler::controller::ControlLaw;
use thalweg_host::{kill_group, monotonic_nanos, spawn_on};

use super::cell::Contender;
use super::observed::ServerLine;
use super::peer::Deduplication;
use crate::error::LabError;
use crate::process::{LastWords, Launcher, Stop};

/// A server that runs; dropping it ends the process and waits until it is gone.
pub(super) struct Server {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<(u64, String)>,
    last_words: LastWords,
    /// Ends when its standard error does.
    listening: Option<JoinHandle<()>>,
    address: SocketAddr,
    lines: Vec<(u64, ServerLine)>,
}

impl Server {
    /// Starts a server on a free port and waits until it serves. Ours says what it does every `statistics`.
    ///
    /// # Errors
    /// It cannot be started, ends, or does not serve in time; or `stop` was requested.
    pub(super) fn start(
        contender: Contender,
        launcher: &Launcher,
        statistics: Option<Duration>,
        cpu: Option<usize>,
        stop: &Stop,
    ) -> Result<Server, LabError> {
        let name = format!("CoAP server ({contender})");
        let address = free_address().map_err(LabError::here)?;
        let mut command = command_of(contender, launcher, statistics, address)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A Ctrl-C at the terminal goes to the whole foreground group; the laboratory alone decides when a server ends.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child =
            spawn_on(&mut command, cpu).map_err(|source| LabError::NotStarted { process: name.clone(), source })?;
        let last_words = LastWords::default();
        let (heard, output) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || forward(stdout, |line| heard.send((monotonic_nanos(), line)).is_ok()));
        }
        let listening = child.stderr.take().map(|stderr| {
            let words = last_words.clone();
            std::thread::spawn(move || words.keep(stderr))
        });
        let input = child.stdin.take();
        let mut server = Server { name, child, input, output, last_words, listening, address, lines: Vec::new() };
        server.wait_until_ready(stop)?;
        Ok(server)
    }

    /// Its address.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The system's number of the process.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Takes its output.
    ///
    /// # Errors
    /// It ended.
    pub(super) fn listen(&mut self) -> Result<(), LabError> {
        while let Ok((at, line)) = self.output.try_recv() {
            self.keep(at, &line);
        }
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(self.death()),
        }
    }

    /// Ends it in peace, or by force where it does not end, and returns what it said, with the times of the host's monotonic clock.
    pub(super) fn finish(mut self) -> Vec<(u64, ServerLine)> {
        drop(self.input.take());
        let deadline = Instant::now() + EXIT_PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        while let Ok((at, line)) = self.output.recv_timeout(Duration::from_millis(20)) {
            self.keep(at, &line);
        }
        std::mem::take(&mut self.lines)
    }

    fn wait_until_ready(&mut self, stop: &Stop) -> Result<(), LabError> {
        let deadline = Instant::now() + START_PATIENCE;
        loop {
            if stop.is_requested() {
                return Err(LabError::Interrupted);
            }
            match self.output.recv_timeout(Duration::from_millis(20)) {
                Ok((_, line)) if line.starts_with("serving coap://") => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => return Err(self.death()),
                Err(RecvTimeoutError::Timeout) if Instant::now() > deadline => {
                    let last_words = self.last_words.text();
                    return Err(LabError::Silent { process: self.name.clone(), patience: START_PATIENCE, last_words });
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Keeps a line of statistics; what else a server prints is its own affair.
    fn keep(&mut self, at: u64, line: &str) {
        self.lines.extend(serde_json::from_str(line).ok().map(|line: ServerLine| (at, line)));
    }

    fn death(&mut self) -> LabError {
        let deadline = Instant::now() + EXIT_PATIENCE;
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break status.to_string(),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
                _ => break "it closed its output".to_owned(),
            }
        };
        while self.listening.as_ref().is_some_and(|thread| !thread.is_finished()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        LabError::Died { process: self.name.clone(), status, last_words: self.last_words.text() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.input.take());
        // What a server started is in its group.
        kill_group(self.child.id());
        // The wait cannot fail for a child of ours; if it does there is nothing left to end.
        let _ = self.child.wait();
    }
}

fn command_of(
    contender: Contender,
    launcher: &Launcher,
    statistics: Option<Duration>,
    address: SocketAddr,
) -> Result<Command, LabError> {
    let mut command = program_of(contender, launcher)?;
    match contender {
        Contender::Thalweg(law) => {
            command.args(["coap", "serve", "--end-with-input", "--law", &law.to_string()]);
            if matches!(law, ControlLaw::VtaPrinted | ControlLaw::VtaAuthors) {
                command.args(["--period", PAPER_PERIOD]);
            }
            if let Some(period) = statistics {
                command.args(["--json", "--statistics", &period.as_secs_f64().to_string()]);
            }
        }
        Contender::Peer(_, Deduplication::Off) => {
            command.arg("--no-deduplication");
        }
        Contender::Peer(_, Deduplication::Shipped) => {}
    }
    command.args(["--bind", &address.to_string()]);
    Ok(command)
}

fn program_of(contender: Contender, launcher: &Launcher) -> Result<Command, LabError> {
    match contender {
        Contender::Thalweg(_) => Ok(launcher.program_alone()),
        Contender::Peer(peer, _) => {
            let not_there = || LabError::NoPeer { peer: peer.to_string(), why: "its program is not there".to_owned() };
            peer.find(launcher.peer_folder()).map(Command::new).ok_or_else(not_there)
        }
    }
}

/// A loopback address with a free port.
fn free_address() -> std::io::Result<SocketAddr> {
    UdpSocket::bind("127.0.0.1:0")?.local_addr()
}

fn forward(stdout: impl Read, mut take: impl FnMut(String) -> bool) {
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        if !take(line) {
            return;
        }
    }
}

/// A virtual machine or an interpreter starts within a second on an idle processor.
const START_PATIENCE: Duration = Duration::from_secs(30);
const EXIT_PATIENCE: Duration = Duration::from_secs(2);
/// How often the paper's laws decide; ours do so at the server's default.
const PAPER_PERIOD: &str = "1s";
