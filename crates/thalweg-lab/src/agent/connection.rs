//! The controller's connection to an agent.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use thalweg_lab_station::{lock, not_written};

use super::error::AgentError;
use super::folder::is_raw;
use super::message::{Event, HostFacts, Request, WorkerOrder};
use super::pipe::{CLOSED, Incoming, Outgoing};
use super::probes::{ClockProbes, ClockSecret, socket_to};
use super::session::{ALIVE_PERIOD, SILENCE_MAX};
use super::ssh::{Ssh, SshCommand, await_agent};
use crate::error::LabError;
use crate::host::{Layers, SecondConditions};
use crate::peers::PeerProgram;
use crate::process::{MESSAGES_MAX, Stop, WorkerNews};
use crate::scenario::SshMachine;

/// A connection to an agent; dropping it ends the agent with all its processes.
#[derive(Debug)]
pub(crate) struct Connection {
    /// As the user named it.
    name: String,
    /// Address of the machine on the measured link.
    agent: IpAddr,
    /// Address of this machine on that link.
    own: IpAddr,
    facts: HostFacts,
    outgoing: Arc<Mutex<Outgoing>>,
    heard: Arc<Heard>,
    /// Held by whoever asks: one question at a time.
    answers: Mutex<Receiver<Answer>>,
    ssh: Mutex<Option<Ssh>>,
}

type Answer = Result<serde_json::Value, String>;

/// The agent as its listener knows it.
#[derive(Debug, Default)]
struct Heard {
    /// Who listens to each worker, and the number of the last one.
    workers: Mutex<(BTreeMap<u32, SyncSender<WorkerNews>>, u32)>,
    /// Why nothing more comes.
    lost: OnceLock<String>,
}

impl Connection {
    /// Starts the agent of `machine` by `ssh` and hears what it says of its machine.
    ///
    /// # Errors
    /// The machine is not reached, has no agent of this version, or its address on the measured link is not known.
    pub(crate) fn open(ssh: &SshCommand, machine: &SshMachine, stop: &Stop) -> Result<Connection, LabError> {
        let (ssh, outgoing, incoming) = Ssh::start(ssh, machine)?;
        Connection::over(machine, (outgoing, incoming), Some(ssh), stop)
    }

    /// The same where the agent was started already.
    pub(super) fn over(
        machine: &SshMachine,
        (outgoing, incoming): (Outgoing, Incoming),
        mut ssh: Option<Ssh>,
        stop: &Stop,
    ) -> Result<Connection, LabError> {
        let name = machine.destination.clone();
        await_agent(&name, &incoming, ssh.as_mut(), stop)?;
        let first = incoming.hear(FIRST_PATIENCE);
        let Ok(Some(Event::Ready { facts, address })) = first else {
            let reason = first.err().unwrap_or_else(|| "it does not say that it is ready".to_owned());
            let reason = format!("{reason}{}", end_of(ssh.as_mut()));
            return Err(AgentError::LostAtOnce { machine: name, reason }.into());
        };
        let Some(agent) = machine.address.or(address) else {
            return Err(AgentError::NoAddress { machine: name }.into());
        };
        let own = local_address(agent).map_err(|source| AgentError::NoWay {
            machine: name.clone(),
            address: agent,
            source,
        })?;
        let (outgoing, heard) = (Arc::new(Mutex::new(outgoing)), Arc::new(Heard::default()));
        let (answered, answers) = sync_channel(1);
        std::thread::spawn({
            let (outgoing, heard) = (Arc::clone(&outgoing), Arc::clone(&heard));
            move || heard.lose(heard.listen(&incoming, &outgoing, &answered))
        });
        let (ssh, answers) = (Mutex::new(ssh), Mutex::new(answers));
        Ok(Connection { name, agent, own, facts: *facts, outgoing, heard, answers, ssh })
    }

    /// As the user named it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The agent's description of its host.
    pub(crate) fn facts(&self) -> &HostFacts {
        &self.facts
    }

    /// Addresses on the measured link: the agent's, and the one of this machine from which a way leads there.
    pub(crate) fn ends(&self) -> (IpAddr, IpAddr) {
        (self.agent, self.own)
    }

    /// The checksum of the program of `peer` on the agent's host.
    ///
    /// # Errors
    /// It is not there, or the agent is lost.
    pub(crate) fn program_of(&self, peer: PeerProgram) -> Result<String, LabError> {
        let found: Option<String> = self.ask(&Request::Find { peer })?;
        let missing = || AgentError::NoPeer { machine: self.name.clone(), peer: peer.to_string() };
        Ok(found.ok_or_else(missing)?)
    }

    /// A way to ask the agent's clock, until the next one is opened.
    pub(crate) fn open_clock(&self) -> Result<ClockProbes, LabError> {
        let secret = ClockSecret::random().map_err(LabError::here)?;
        let port: u16 = self.ask(&Request::OpenClock { at: self.agent, secret: secret.clone() })?;
        ClockProbes::open((self.agent, port).into(), secret).map_err(LabError::here)
    }

    /// Whether the agent is connected.
    pub(crate) fn check_alive(&self) -> Result<(), LabError> {
        if self.heard.lost.get().is_some() { Err(self.loss(CLOSED)) } else { Ok(()) }
    }

    /// Kills processes that an earlier run left on the host, and removes their files.
    pub(crate) fn clear(&self) -> Result<(), LabError> {
        self.ask::<()>(&Request::Clear)?;
        lock(&self.heard.workers).0.clear();
        Ok(())
    }

    /// The counters of the layers below, there and now.
    pub(crate) fn counters(&self) -> Result<Layers, LabError> {
        self.ask(&Request::Count)
    }

    /// Begins to watch how quiet the host is.
    pub(crate) fn watch(&self) -> Result<(), LabError> {
        self.say(&Request::Watch)
    }

    /// Other load on the host since the last query.
    pub(crate) fn look(&self) -> Result<SecondConditions, LabError> {
        self.ask(&Request::Look)
    }

    /// Copies the files of the agent's workers into `folder`, in which their folders are.
    pub(crate) fn collect(&self, folder: &Path) -> Result<(), LabError> {
        for file in self.ask::<Vec<String>>(&Request::Files)? {
            let path = folder.join(&file);
            // The agent's name of a file decides its place here.
            if !is_raw(&file) || path.exists() {
                return Err(AgentError::ForeignFile { machine: self.name.clone(), file }.into());
            }
            let written = |error: std::io::Error| LabError::from(not_written(&path, &error));
            let mut out = File::create(&path).map_err(written)?;
            let mut offset = 0;
            loop {
                let part: String = self.ask(&Request::Read { file: file.clone(), offset })?;
                if part.is_empty() {
                    break;
                }
                offset += part.len() as u64;
                out.write_all(part.as_bytes()).map_err(written)?;
            }
            out.sync_all().map_err(written)?;
        }
        Ok(())
    }

    /// Has a worker started with this order; also its number, and what is heard of it until it ends or the agent is lost.
    ///
    /// # Errors
    /// The agent is lost.
    pub(crate) fn start(&self, name: &str, order: WorkerOrder) -> Result<(u32, Receiver<WorkerNews>), LabError> {
        let (heard, news) = sync_channel(MESSAGES_MAX);
        let worker = {
            let (workers, last) = &mut *lock(&self.heard.workers);
            *last += 1;
            workers.insert(*last, heard);
            *last
        };
        self.say(&Request::Start { worker, name: name.to_owned(), order: Box::new(order) })?;
        Ok((worker, news))
    }

    /// Hands a worker one more line.
    ///
    /// # Errors
    /// The agent is lost.
    pub(crate) fn tell(&self, worker: u32, line: serde_json::Value) -> Result<(), LabError> {
        self.say(&Request::Tell { worker, line })
    }

    /// Has a worker ended in peace, which its last news tells.
    ///
    /// # Errors
    /// The agent is lost.
    pub(crate) fn finish(&self, worker: u32) -> Result<(), LabError> {
        self.say(&Request::Finish { worker })
    }

    /// Has a worker killed; an agent that is lost has done it already.
    pub(crate) fn kill(&self, worker: u32) {
        lock(&self.heard.workers).0.remove(&worker);
        let _ = self.say(&Request::Kill { worker });
    }

    /// Sends a request without an answer, or one that a worker's message answers.
    fn say(&self, request: &Request) -> Result<(), LabError> {
        self.check_alive()?;
        let said = lock(&self.outgoing).say(request);
        said.map_err(|reason| self.loss(&reason))
    }

    /// The answer to a question.
    fn ask<T: DeserializeOwned>(&self, request: &Request) -> Result<T, LabError> {
        let answers = lock(&self.answers);
        self.say(request)?;
        let answer = answers.recv_timeout(ANSWER_PATIENCE).map_err(|error| {
            if error == RecvTimeoutError::Timeout {
                // A later answer would be taken for that to the next question.
                self.heard.lose(format!("it did not answer for {} s", ANSWER_PATIENCE.as_secs()));
            }
            self.loss(CLOSED)
        })?;
        let answer = answer.map_err(|reason| format!("cannot do it: {reason}"));
        let understood =
            answer.and_then(|it| serde_json::from_value(it).map_err(|_| "said something unexpected".to_owned()));
        understood.map_err(|reason| AgentError::Refused { machine: self.name.clone(), reason }.into())
    }

    /// The error of a lost agent: why its listener lost it, or else `reason`.
    fn loss(&self, reason: &str) -> LabError {
        let reason = self.heard.lost.get().map_or(reason, String::as_str);
        let reason = format!("{reason}{}", end_of(lock(&self.ssh).as_mut()));
        AgentError::Lost { machine: self.name.clone(), reason }.into()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The end of its input is the end of an agent.
        lock(&self.outgoing).close();
        if let Some(ssh) = lock(&self.ssh).as_mut() {
            ssh.finish();
        }
    }
}

impl Heard {
    /// Hands on what the agent says until the connection ends, and sends signs of life; returns why it ended.
    fn listen(&self, incoming: &Incoming, outgoing: &Mutex<Outgoing>, answered: &SyncSender<Answer>) -> String {
        let (mut last, mut said) = (Instant::now(), Instant::now());
        while self.lost.get().is_none() {
            match incoming.hear(ALIVE_PERIOD) {
                Ok(Some(event)) => {
                    last = Instant::now();
                    if !self.hand_on(event, answered) {
                        return "it sends unrequested messages".to_owned();
                    }
                }
                Ok(None) if last.elapsed() > SILENCE_MAX => {
                    return format!("it was silent for {} s", SILENCE_MAX.as_secs());
                }
                Ok(None) => {}
                Err(reason) => return reason,
            }
            if said.elapsed() >= ALIVE_PERIOD {
                said = Instant::now();
                if let Err(reason) = lock(outgoing).say(&Request::Alive) {
                    return reason;
                }
            }
        }
        CLOSED.to_owned()
    }

    /// Returns whether the message is one that may come now.
    fn hand_on(&self, event: Event, answered: &SyncSender<Answer>) -> bool {
        match event {
            Event::Said { worker, message } => self.tell(worker, WorkerNews::Message(message)),
            Event::Ended { worker, outcome } => self.tell(worker, WorkerNews::Ended(outcome)),
            Event::Answer(answer) => answered.try_send(answer).is_ok(),
            Event::Alive => true,
            Event::Ready { .. } => false,
        }
    }

    /// Hands news on; returns whether there was room. Of a worker that nobody listens to any more there may be late news.
    fn tell(&self, worker: u32, news: WorkerNews) -> bool {
        let told = lock(&self.workers).0.get(&worker).map(|heard| heard.try_send(news));
        !matches!(told, Some(Err(TrySendError::Full(_))))
    }

    /// Notes why nothing more comes, which ends what is heard of all workers.
    fn lose(&self, reason: String) {
        let _ = self.lost.set(reason);
        lock(&self.workers).0.clear();
    }
}

/// How `ssh` ended, with its last words and the agent's; nothing while it runs.
fn end_of(ssh: Option<&mut Ssh>) -> String {
    ssh.and_then(Ssh::await_end).map_or_else(String::new, |(status, words)| match words.as_str() {
        "" => format!(" (ssh: {status})"),
        words => format!(" (ssh: {status}; last words: {words})"),
    })
}

/// The address from which this machine's way leads to `other`; no packet is sent.
fn local_address(other: IpAddr) -> std::io::Result<IpAddr> {
    Ok(socket_to(SocketAddr::from((other, DISCARD)))?.local_addr()?.ip())
}

/// An agent computes the checksum of its program first.
const FIRST_PATIENCE: Duration = Duration::from_secs(20);
const ANSWER_PATIENCE: Duration = Duration::from_secs(30);
/// Any port will do.
const DISCARD: u16 = 9;
