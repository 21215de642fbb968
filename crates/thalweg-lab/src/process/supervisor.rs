//! The parent's side: start, hear, and in every case end a worker.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Serialize;
use thalweg_host::kill_group;

use super::{Stop, WorkerMessage};
use crate::agent::{AgentKey, default_key_file};
use crate::error::LabError;
use crate::peers::PeerProgram;

/// How to start a worker.
#[derive(Clone, Debug)]
pub struct Launcher {
    program: PathBuf,
    arguments: Vec<OsString>,
    namespace: Option<String>,
    peer_folder: Option<PathBuf>,
    /// Another build of the peer that is measured.
    peer_program: Option<PathBuf>,
    key_file: Option<PathBuf>,
}

impl Launcher {
    /// Starts `program` with `arguments`.
    pub fn new(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Launcher {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Launcher {
            program: program.into(),
            arguments,
            namespace: None,
            peer_folder: None,
            peer_program: None,
            key_file: None,
        }
    }

    /// Starts the running executable again with one argument, the sub-command that calls [`run_worker`](crate::run_worker).
    ///
    /// # Errors
    /// The system does not tell where the executable lies.
    pub fn this_program(sub_command: &str) -> Result<Launcher, LabError> {
        match std::env::current_exe() {
            Ok(program) => Ok(Launcher::new(program, [sub_command])),
            Err(source) => Err(LabError::NotStarted { process: "second process".to_owned(), source }),
        }
    }
}

impl Launcher {
    /// The same, and peers' programs are looked for in `folder`, see [`PeerProgram::find`].
    pub fn with_peers_in(self, folder: Option<PathBuf>) -> Launcher {
        Launcher { peer_folder: folder, ..self }
    }

    /// The same, and agents are shown the key in `file`, else the one in [`default_key_file`].
    pub fn with_key_in(self, file: Option<PathBuf>) -> Launcher {
        Launcher { key_file: file, ..self }
    }

    /// The key that agents are shown.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn agent_key(&self) -> Result<AgentKey, LabError> {
        AgentKey::load(&self.key_file.clone().unwrap_or_else(default_key_file))
    }

    /// Where peers' programs are looked for first.
    pub(crate) fn peer_folder(&self) -> Option<&Path> {
        self.peer_folder.as_deref()
    }

    /// The program of `peer`.
    ///
    /// # Errors
    /// It is not there.
    pub fn program_of(&self, peer: PeerProgram) -> Result<PathBuf, LabError> {
        self.peer_program
            .clone()
            .or_else(|| peer.find(self.peer_folder.as_deref()))
            .ok_or_else(|| LabError::NoPeer { peer: peer.to_string(), why: "its program is not there".to_owned() })
    }

    /// How a process of `peer` is started that takes part in a run, in the same network.
    ///
    /// # Errors
    /// Its program is not there.
    pub(crate) fn station_of(&self, peer: PeerProgram) -> Result<Launcher, LabError> {
        Ok(Launcher { program: self.program_of(peer)?, arguments: vec!["station".into()], ..self.clone() })
    }

    /// The same with `program`, another build of Thalweg or of a peer, in the place of this one.
    pub(crate) fn of_other_build(&self, program: &Path) -> Launcher {
        Launcher { program: program.to_owned(), peer_program: Some(program.to_owned()), ..self.clone() }
    }

    /// The same program without arguments.
    pub(crate) fn program_alone(&self) -> Command {
        Command::new(&self.program)
    }

    /// The same program inside the network namespace `name`; needs root.
    pub fn within_namespace(&self, name: &str) -> Launcher {
        Launcher { namespace: Some(name.to_owned()), ..self.clone() }
    }

    fn command(&self) -> Command {
        let mut command = match &self.namespace {
            Some(name) => {
                let mut ip = Command::new("ip");
                ip.args(["netns", "exec", name]).arg(&self.program);
                ip
            }
            None => Command::new(&self.program),
        };
        command.args(&self.arguments);
        command
    }
}

/// A worker under supervision; dropping it ends the process and waits until it is gone.
#[derive(Debug)]
pub struct Supervised {
    name: String,
    child: Child,
    orders: Option<ChildStdin>,
    messages: Receiver<Result<WorkerMessage, String>>,
    /// A message that a look took out of the queue.
    waiting: Option<Result<WorkerMessage, String>>,
    /// Whether the result was handed on: from then on the process may end.
    is_done: bool,
    last_words: LastWords,
    /// Ends when the worker's standard error does.
    listening: Option<JoinHandle<()>>,
}

impl Supervised {
    /// Starts a worker, called `name` in messages to the user, and hands it `order`.
    ///
    /// # Errors
    /// The process cannot be started or does not accept its order.
    pub fn start(launcher: &Launcher, name: &str, order: &impl Serialize) -> Result<Supervised, LabError> {
        let not_started = |source| LabError::NotStarted { process: name.to_owned(), source };
        let mut command = launcher.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A Ctrl-C at the terminal goes to the whole foreground group; the parent alone decides when its workers end.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(not_started)?;
        let last_words = LastWords::default();
        let (heard, messages) = sync_channel(MESSAGES_MAX);
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || forward_messages(stdout, &heard));
        }
        let listening = child.stderr.take().map(|stderr| {
            let words = last_words.clone();
            std::thread::spawn(move || words.keep(stderr))
        });
        let orders = child.stdin.take();
        let mut supervised = Supervised {
            name: name.to_owned(),
            child,
            orders,
            messages,
            waiting: None,
            is_done: false,
            last_words,
            listening,
        };
        supervised.send(order)?;
        Ok(supervised)
    }

    /// Hands the worker one more line of JSON.
    ///
    /// # Errors
    /// The worker is gone.
    pub fn send(&mut self, order: &impl Serialize) -> Result<(), LabError> {
        let mut line = serde_json::to_vec(order).map_err(LabError::here)?;
        line.push(b'\n');
        match self.orders.as_mut().map(|orders| orders.write_all(&line)) {
            Some(Ok(())) => Ok(()),
            _ => Err(self.death()),
        }
    }

    /// Waits for the next [`WorkerMessage::Progress`] or [`WorkerMessage::Done`], at most `patience`.
    ///
    /// # Errors
    /// The worker failed, died, wrote nonsense, stayed silent, or `stop` was requested meanwhile.
    pub fn hear(&mut self, patience: Duration, stop: &Stop) -> Result<WorkerMessage, LabError> {
        let deadline = Instant::now() + patience;
        loop {
            if stop.is_requested() {
                return Err(LabError::Interrupted);
            }
            let heard = match self.waiting.take() {
                Some(message) => Ok(message),
                None => self.messages.recv_timeout(LOOK_PERIOD),
            };
            match heard {
                Ok(Ok(WorkerMessage::Failed(reason))) => {
                    return Err(LabError::Failed { process: self.name.clone(), reason });
                }
                Ok(Ok(message)) => return Ok(message),
                Ok(Err(nonsense)) => return Err(self.misunderstood(&nonsense)),
                Err(RecvTimeoutError::Disconnected) => return Err(self.death()),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= deadline => {
                    let last_words = self.last_words.text();
                    return Err(LabError::Silent { process: self.name.clone(), patience, last_words });
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// The next message where one is there already.
    ///
    /// # Errors
    /// The worker failed, died or wrote nonsense.
    pub fn try_hear(&mut self) -> Result<Option<WorkerMessage>, LabError> {
        self.check_alive()?;
        match self.waiting.take() {
            Some(Err(nonsense)) => Err(self.misunderstood(&nonsense)),
            Some(Ok(message)) => {
                self.is_done = matches!(message, WorkerMessage::Done(_));
                Ok(Some(message))
            }
            None => Ok(None),
        }
    }

    /// The system's number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the worker has neither failed nor died; a result it has already delivered stays to be heard.
    ///
    /// # Errors
    /// How it ended, or the reason it gave.
    pub fn check_alive(&mut self) -> Result<(), LabError> {
        if self.waiting.is_none() && !self.is_done {
            self.waiting = match self.messages.try_recv() {
                Ok(message) => Some(message),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => return Err(self.death()),
            };
        }
        match &self.waiting {
            Some(Ok(WorkerMessage::Failed(reason))) => {
                Err(LabError::Failed { process: self.name.clone(), reason: reason.clone() })
            }
            _ => Ok(()),
        }
    }

    /// What the worker wrote on its standard error, its latest lines.
    pub fn remarks(&self) -> Vec<String> {
        self.last_words.lock().iter().cloned().collect()
    }

    /// Ends the worker in peace: closes its input and waits until it exits.
    ///
    /// # Errors
    /// It exits with an error, or has to be killed because it does not exit.
    pub fn finish(mut self) -> Result<(), LabError> {
        drop(self.orders.take());
        match self.wait(EXIT_PATIENCE) {
            Some(status) if status.success() => Ok(()),
            Some(_) => Err(self.death()),
            None => {
                let last_words = self.last_words.text();
                Err(LabError::Silent { process: self.name.clone(), patience: EXIT_PATIENCE, last_words })
            }
        }
    }

    fn misunderstood(&self, nonsense: &str) -> LabError {
        let reason = format!("it answered {nonsense:?}, which is no message of this version");
        LabError::Failed { process: self.name.clone(), reason }
    }

    /// The error for a worker that is gone or about to be.
    fn death(&mut self) -> LabError {
        let deadline = Instant::now() + WORDS_PATIENCE;
        while self.listening.as_ref().is_some_and(|thread| !thread.is_finished()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        let status =
            self.wait(EXIT_PATIENCE).map_or_else(|| "it closed its output".to_owned(), |status| status.to_string());
        // A reason may still be queued behind a broken pipe.
        while let Ok(message) = self.messages.try_recv() {
            if let Ok(WorkerMessage::Failed(reason)) = message {
                return LabError::Failed { process: self.name.clone(), reason };
            }
        }
        LabError::Died { process: self.name.clone(), status, last_words: self.last_words.text() }
    }

    fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
                _ => return None,
            }
        }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        drop(self.orders.take());
        // What a worker started is in its group, also when the worker itself is gone.
        kill_group(self.child.id());
        // The wait cannot fail for a child of ours; if it does there is nothing left to end.
        let _ = self.child.wait();
    }
}

/// The latest lines of a worker's standard error.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastWords(Arc<Mutex<VecDeque<String>>>);

impl LastWords {
    /// Reads to the end.
    pub(crate) fn keep(&self, stderr: impl Read) {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            let mut lines = self.lock();
            if lines.len() == WORDS_MAX {
                lines.pop_front();
            }
            lines.push_back(line);
        }
    }

    /// All of them in one line.
    pub(crate) fn text(&self) -> String {
        self.lock().iter().map(String::as_str).collect::<Vec<_>>().join(" / ")
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn forward_messages(stdout: impl Read, heard: &SyncSender<Result<WorkerMessage, String>>) {
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        let message = serde_json::from_str(&line).map_err(|_| line.chars().take(200).collect());
        if heard.send(message).is_err() {
            return;
        }
    }
}

/// A worker that says more than this before anybody listens waits; experiments send some hundred messages.
const MESSAGES_MAX: usize = 1024;
/// Lines of standard error kept of each worker: a panic message and its surroundings.
const WORDS_MAX: usize = 12;
/// How long the last words of a dead worker may take to be read; a process it started may keep the pipe open for ever.
const WORDS_PATIENCE: Duration = Duration::from_millis(500);
/// How often a wait looks at the request to stop.
const LOOK_PERIOD: Duration = Duration::from_millis(50);
/// How long a worker may take to exit after its input ended.
const EXIT_PATIENCE: Duration = Duration::from_secs(5);
