//! The parent's side: start, hear, and in every case end a worker.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use thalweg_host::monotonic_nanos;

use super::child::ChildProcess;
use super::{Stop, WorkerMessage};
use crate::agent::{Connection, SshCommand, WorkerOrder};
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
    ssh: SshCommand,
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
            ssh: SshCommand::default(),
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

    /// The same, and peers' programs are looked for in `folder`, see [`PeerProgram::find`].
    pub fn with_peers_in(self, folder: Option<PathBuf>) -> Launcher {
        Launcher { peer_folder: folder, ..self }
    }

    /// The same, and other machines are reached by `ssh`; by the program of this name without options where it is `None`.
    pub fn with_ssh(self, ssh: Option<SshCommand>) -> Launcher {
        Launcher { ssh: ssh.unwrap_or_default(), ..self }
    }

    /// The program that is started.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// The program that reaches other machines.
    pub(crate) fn ssh(&self) -> &SshCommand {
        &self.ssh
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

    /// Another program with these words, in the same network.
    pub(crate) fn of_program(&self, program: &Path, words: Vec<String>) -> Launcher {
        let arguments = words.into_iter().map(Into::into).collect();
        Launcher { program: program.to_owned(), arguments, ..self.clone() }
    }

    /// The same program with these words, in the same network.
    pub(crate) fn with_words(&self, words: impl IntoIterator<Item = impl Into<OsString>>) -> Launcher {
        Launcher { arguments: words.into_iter().map(Into::into).collect(), ..self.clone() }
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

    /// The command that starts it.
    pub(crate) fn command(&self) -> Command {
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

/// What is heard of a worker.
#[derive(Clone, Debug)]
pub(crate) enum WorkerNews {
    Message(WorkerMessage),
    /// A line that is no message.
    Other(HeardLine),
    /// Its agent tells how it ended: in peace, or why not.
    Ended(Result<(), String>),
}

/// A line of a process that is no message of a worker.
#[derive(Clone, Debug)]
pub(crate) struct HeardLine {
    /// When it came, on the host's monotonic clock.
    pub(crate) at_ns: u64,
    pub(crate) text: String,
}

/// A worker under supervision; dropping it ends the process and waits until it is gone.
#[derive(Debug)]
pub struct Supervised {
    name: String,
    process: Process,
    messages: Receiver<WorkerNews>,
    /// A message that a look took out of the queue.
    waiting: Option<WorkerNews>,
    /// Whether the result was handed on: from then on the process may end.
    is_done: bool,
}

/// A worker's process; dropping it ends it.
#[derive(Debug)]
enum Process {
    /// A child of this one, with its input, which is closed before it is ended.
    Own(Option<ChildStdin>, ChildProcess),
    /// The worker of this number on an agent's host.
    There(Arc<Connection>, u32),
}

impl Supervised {
    /// Starts a worker, called `name` in messages to the user, and hands it `order`.
    ///
    /// # Errors
    /// The process cannot be started or does not accept its order.
    pub fn start(launcher: &Launcher, name: &str, order: &impl Serialize) -> Result<Supervised, LabError> {
        let mut supervised = Supervised::start_without_order(launcher, name)?;
        supervised.send(order)?;
        Ok(supervised)
    }

    /// Starts a process that was told everything by its arguments.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start_without_order(launcher: &Launcher, name: &str) -> Result<Supervised, LabError> {
        Supervised::spawn(launcher.command(), &[], name)
    }

    /// Starts a process by this command, on these logical CPUs or without any on those of this thread.
    ///
    /// # Errors
    /// The process cannot be started.
    pub(crate) fn spawn(mut command: Command, cpus: &[usize], name: &str) -> Result<Supervised, LabError> {
        let not_started = |source| LabError::NotStarted { process: name.to_owned(), source };
        let (child, orders, stdout) = ChildProcess::spawn(&mut command, cpus).map_err(not_started)?;
        let (heard, messages) = sync_channel(MESSAGES_MAX);
        std::thread::spawn(move || forward_messages(stdout, &heard));
        let process = Process::Own(Some(orders), child);
        Ok(Supervised { name: name.to_owned(), process, messages, waiting: None, is_done: false })
    }

    /// Has a worker started by an agent, to be used as one of this host.
    ///
    /// # Errors
    /// The agent is lost.
    pub(crate) fn start_at(agent: &Arc<Connection>, name: &str, order: WorkerOrder) -> Result<Supervised, LabError> {
        let (number, messages) = agent.start(name, order)?;
        let process = Process::There(Arc::clone(agent), number);
        let name = format!("{name} on {}", agent.name());
        Ok(Supervised { name, process, messages, waiting: None, is_done: false })
    }

    /// What it is called in messages to the user.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Hands the worker one more line of JSON.
    ///
    /// # Errors
    /// The worker is gone.
    pub fn send(&mut self, order: &impl Serialize) -> Result<(), LabError> {
        match &mut self.process {
            Process::Own(orders, _) => {
                let mut line = serde_json::to_vec(order).map_err(LabError::here)?;
                line.push(b'\n');
                match orders.as_mut().map(|orders| orders.write_all(&line)) {
                    Some(Ok(())) => Ok(()),
                    _ => Err(self.death()),
                }
            }
            Process::There(agent, number) => agent.tell(*number, serde_json::to_value(order).map_err(LabError::here)?),
        }
    }

    /// Waits for the next [`WorkerMessage::Progress`] or [`WorkerMessage::Done`], at most `patience`.
    ///
    /// # Errors
    /// The worker failed, died, wrote nonsense, stayed silent, or `stop` was requested meanwhile.
    pub fn hear(&mut self, patience: Duration, stop: &Stop) -> Result<WorkerMessage, LabError> {
        match self.hear_message(patience, patience, stop)? {
            WorkerNews::Message(WorkerMessage::Failed(reason)) => {
                Err(LabError::Failed { process: self.name.clone(), reason })
            }
            WorkerNews::Message(message) => Ok(message),
            WorkerNews::Other(line) => Err(self.misunderstood(&line.text)),
            WorkerNews::Ended(outcome) => Err(self.ended(outcome)),
        }
    }

    /// Waits for the next line, at most `left` of `patience`.
    fn hear_message(&mut self, left: Duration, patience: Duration, stop: &Stop) -> Result<WorkerNews, LabError> {
        let deadline = Instant::now() + left;
        loop {
            if stop.is_requested() {
                return Err(LabError::Interrupted);
            }
            let heard = match self.waiting.take() {
                Some(message) => Ok(message),
                None => self.messages.recv_timeout(LOOK_PERIOD),
            };
            match heard {
                Ok(heard) => return Ok(heard),
                Err(RecvTimeoutError::Disconnected) => return Err(self.death()),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= deadline => {
                    return Err(self.silent(patience));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Waits for the next word of a process that answers questions, at most `patience`: the content of a
    /// [`WorkerMessage::Progress`], or an object alone, which is what other programs say. What is none is the remark of a library.
    ///
    /// # Errors
    /// As [`Supervised::hear`], or the word is another one.
    pub fn hear_word<T: DeserializeOwned>(&mut self, patience: Duration, stop: &Stop) -> Result<T, LabError> {
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let word = match self.hear_message(left, patience, stop)? {
                WorkerNews::Message(WorkerMessage::Progress(word) | WorkerMessage::Done(word)) => word,
                WorkerNews::Message(WorkerMessage::Failed(reason)) => {
                    return Err(LabError::Failed { process: self.name.clone(), reason });
                }
                WorkerNews::Other(line) => match serde_json::from_str::<serde_json::Value>(&line.text) {
                    Ok(word) if word.is_object() => word,
                    _ => continue,
                },
                WorkerNews::Ended(outcome) => return Err(self.ended(outcome)),
            };
            return serde_json::from_value(word.clone()).map_err(|_| self.misunderstood(&word.to_string()));
        }
    }

    /// The next line of a process that speaks in its own way.
    ///
    /// # Errors
    /// As [`Supervised::hear`].
    pub(crate) fn hear_line(&mut self, patience: Duration, stop: &Stop) -> Result<HeardLine, LabError> {
        loop {
            if let WorkerNews::Other(line) = self.hear_message(patience, patience, stop)? {
                return Ok(line);
            }
        }
    }

    /// The same where one is there already.
    pub(crate) fn try_line(&mut self) -> Option<HeardLine> {
        loop {
            let heard = self.waiting.take().or_else(|| self.messages.try_recv().ok())?;
            if let WorkerNews::Other(line) = heard {
                return Some(line);
            }
        }
    }

    /// Closes its input and waits for a while until it exits; what it said can still be heard.
    pub(crate) fn close(&mut self) {
        if let Process::Own(orders, child) = &mut self.process {
            drop(orders.take());
            child.wait(EXIT_PATIENCE);
        }
    }

    /// The next message where one is there already.
    ///
    /// # Errors
    /// The worker failed, died or wrote nonsense.
    pub fn try_hear(&mut self) -> Result<Option<WorkerMessage>, LabError> {
        self.check_alive()?;
        match self.waiting.take() {
            Some(WorkerNews::Other(line)) => Err(self.misunderstood(&line.text)),
            Some(WorkerNews::Ended(outcome)) => Err(self.ended(outcome)),
            Some(WorkerNews::Message(message)) => {
                self.is_done = matches!(message, WorkerMessage::Done(_));
                Ok(Some(message))
            }
            None => Ok(None),
        }
    }

    /// The system's number of the process, where it is one of this machine's.
    pub fn id(&self) -> Option<u32> {
        match &self.process {
            Process::Own(_, child) => Some(child.id()),
            Process::There(..) => None,
        }
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
            Some(WorkerNews::Message(WorkerMessage::Failed(reason))) => {
                Err(LabError::Failed { process: self.name.clone(), reason: reason.clone() })
            }
            Some(WorkerNews::Ended(outcome)) => Err(self.ended(outcome.clone())),
            _ => Ok(()),
        }
    }

    /// What the worker wrote on its standard error, its latest lines; an agent keeps those of its own.
    pub fn remarks(&self) -> Vec<String> {
        match &self.process {
            Process::Own(_, child) => child.remarks(),
            Process::There(..) => Vec::new(),
        }
    }

    /// Ends the worker in peace: closes its input and waits until it exits.
    ///
    /// # Errors
    /// It exits with an error, or has to be killed because it does not exit.
    pub fn finish(mut self) -> Result<(), LabError> {
        match &mut self.process {
            Process::Own(orders, child) => {
                drop(orders.take());
                match child.wait(EXIT_PATIENCE) {
                    Some(status) if status.success() => Ok(()),
                    Some(_) => Err(self.death()),
                    None => Err(self.silent(EXIT_PATIENCE)),
                }
            }
            Process::There(agent, number) => {
                agent.finish(*number)?;
                loop {
                    match self.hear_message(FINISH_PATIENCE, FINISH_PATIENCE, &Stop::default())? {
                        WorkerNews::Ended(Ok(())) => return Ok(()),
                        WorkerNews::Ended(outcome) => return Err(self.ended(outcome)),
                        WorkerNews::Message(_) | WorkerNews::Other(_) => {}
                    }
                }
            }
        }
    }

    fn silent(&self, patience: Duration) -> LabError {
        LabError::Silent { process: self.name.clone(), patience, last_words: self.remarks().join(" / ") }
    }

    /// The error for a worker whose agent told its end.
    fn ended(&self, outcome: Result<(), String>) -> LabError {
        let reason = outcome.err().unwrap_or_else(|| "its agent ended it".to_owned());
        LabError::Ended { process: self.name.clone(), reason }
    }

    fn misunderstood(&self, nonsense: &str) -> LabError {
        let nonsense: String = nonsense.chars().take(200).collect();
        let reason = format!("it answered {nonsense:?}, which is no message of this version");
        LabError::Failed { process: self.name.clone(), reason }
    }

    /// The error for a worker that is gone or about to be.
    fn death(&mut self) -> LabError {
        let child = match &mut self.process {
            Process::Own(_, child) => child,
            // Nothing more is heard of a worker whose agent is lost.
            Process::There(agent, _) => return agent.check_alive().err().unwrap_or_else(|| self.ended(Ok(()))),
        };
        child.await_words(WORDS_PATIENCE);
        let status =
            child.wait(EXIT_PATIENCE).map_or_else(|| "it closed its output".to_owned(), |status| status.to_string());
        let last_words = child.last_words();
        // A reason may still be queued behind a broken pipe.
        while let Ok(message) = self.messages.try_recv() {
            if let WorkerNews::Message(WorkerMessage::Failed(reason)) = message {
                return LabError::Failed { process: self.name.clone(), reason };
            }
        }
        LabError::Died { process: self.name.clone(), status, last_words }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Process::There(agent, number) = self {
            agent.kill(*number);
        }
    }
}

fn forward_messages(stdout: impl Read, heard: &SyncSender<WorkerNews>) {
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        let message = match serde_json::from_str(&line) {
            Ok(message) => WorkerNews::Message(message),
            Err(_) => WorkerNews::Other(HeardLine { at_ns: monotonic_nanos(), text: line }),
        };
        if heard.send(message).is_err() {
            return;
        }
    }
}

/// A worker that says more than this before anybody listens waits; experiments send some hundred messages.
pub(crate) const MESSAGES_MAX: usize = 1024;
/// How long the last words of a dead worker may take to be read; a process it started may keep the pipe open for ever.
const WORDS_PATIENCE: Duration = Duration::from_millis(500);
/// How often a wait looks at the request to stop.
const LOOK_PERIOD: Duration = Duration::from_millis(50);
/// How long a worker may take to exit after its input ended.
const EXIT_PATIENCE: Duration = Duration::from_secs(5);
/// Longer than an agent waits for that.
const FINISH_PATIENCE: Duration = Duration::from_secs(20);
