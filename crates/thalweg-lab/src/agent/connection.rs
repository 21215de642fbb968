//! The controller's connection to an agent.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use thalweg_lab_station::not_written;

use super::folder::is_raw;
use super::message::{Event, HostFacts, Request, WorkerOrder};
use super::pipe::{Incoming, Outgoing};
use super::probes::{ClockProbes, ClockSecret};
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
    /// One question at a time.
    asking: Mutex<()>,
    ssh: Mutex<Option<Ssh>>,
}

/// Unread messages of the agent.
#[derive(Debug, Default)]
struct Heard {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Who listens to each worker.
    workers: BTreeMap<u32, SyncSender<WorkerNews>>,
    /// The number of the next worker.
    next: u32,
    answers: VecDeque<Result<serde_json::Value, String>>,
    /// Why nothing more comes.
    lost: Option<String>,
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
            let end = end_of(ssh.as_mut());
            return Err(LabError::Here(format!("the agent on {name} was lost at once: {reason}{end}")));
        };
        let agent = machine.address.or(address).ok_or_else(|| {
            LabError::Here(format!(
                "the address of {name} is unknown, since SSH_CONNECTION does not tell it there: name its address on the measured link by \
                 {{ ssh = {name:?}, address = \"…\" }}"
            ))
        })?;
        let own = local_address(agent).map_err(|error| {
            LabError::Here(format!(
                "no way leads to {agent}, the address of {name}: {error}; name another one by address = \"…\""
            ))
        })?;
        let (outgoing, heard) = (Arc::new(Mutex::new(outgoing)), Arc::new(Heard::default()));
        std::thread::spawn({
            let (outgoing, heard) = (Arc::clone(&outgoing), Arc::clone(&heard));
            move || listen(&incoming, &outgoing, &heard)
        });
        let (ssh, asking) = (Mutex::new(ssh), Mutex::default());
        Ok(Connection { name, agent, own, facts: *facts, outgoing, heard, asking, ssh })
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
        self.ask::<Option<String>>(&Request::Find { peer })?.ok_or_else(|| {
            LabError::Here(format!(
                "{peer} is not set up on {}: run `thalweg lab peers install {peer}` there, or name the folder of its program there by \
                 peer_dir = \"…\"",
                self.name
            ))
        })
    }

    /// A way to ask the agent's clock, until [`close_clock`](Connection::close_clock).
    pub(crate) fn open_clock(&self) -> Result<ClockProbes, LabError> {
        let secret = ClockSecret::random().map_err(LabError::here)?;
        let port: u16 = self.ask(&Request::OpenClock { at: self.agent, secret: secret.clone() })?;
        ClockProbes::open((self.agent, port).into(), secret).map_err(LabError::here)
    }

    /// Ends the agent's answers about its clock.
    pub(crate) fn close_clock(&self) {
        // An agent that is lost answers no more.
        let _ = self.say(&Request::CloseClock);
    }

    /// Whether the agent is connected.
    pub(crate) fn check_alive(&self) -> Result<(), LabError> {
        match &self.heard.lock().lost {
            Some(reason) => Err(self.lost(reason)),
            None => Ok(()),
        }
    }

    /// Kills processes that an earlier run left on the host, and removes their files.
    pub(crate) fn clear(&self) -> Result<(), LabError> {
        self.ask::<()>(&Request::Clear)?;
        self.heard.lock().workers.clear();
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

    /// Copies the files of the agent's workers into `folder`.
    pub(crate) fn collect(&self, folder: &Path) -> Result<(), LabError> {
        for file in self.ask::<Vec<String>>(&Request::Files)? {
            let path = folder.join(&file);
            // The agent's name of a file decides its place here.
            if !is_raw(&file) || path.exists() {
                return Err(LabError::Here(format!(
                    "the agent on {} offers a file {file:?} that is none of its own",
                    self.name
                )));
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
        let worker = self.heard.lock().add_worker(heard);
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
        self.heard.lock().workers.remove(&worker);
        let _ = self.say(&Request::Kill { worker });
    }

    /// Sends a request without an answer, or one that a worker's message answers.
    fn say(&self, request: &Request) -> Result<(), LabError> {
        self.check_alive()?;
        let said = self.outgoing.lock().unwrap_or_else(PoisonError::into_inner).say(request);
        said.map_err(|reason| match &self.heard.lock().lost {
            Some(first) => self.lost(first),
            None => self.lost(&reason),
        })
    }

    /// The answer to a question.
    fn ask<T: DeserializeOwned>(&self, request: &Request) -> Result<T, LabError> {
        let _one = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        self.say(request)?;
        let deadline = Instant::now() + ANSWER_PATIENCE;
        let mut state = self.heard.lock();
        loop {
            if let Some(answer) = state.answers.pop_front() {
                let answer = answer.map_err(|reason| format!("cannot do it: {reason}"));
                let answer = answer.and_then(|answer| {
                    serde_json::from_value(answer).map_err(|_| "said something unexpected".to_owned())
                });
                return answer.map_err(|reason| LabError::Here(format!("the agent on {} {reason}", self.name)));
            }
            if let Some(reason) = &state.lost {
                return Err(self.lost(reason));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.lost(&format!("it did not answer for {} s", ANSWER_PATIENCE.as_secs())));
            }
            state = self.heard.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lost(&self, reason: &str) -> LabError {
        let end = end_of(self.ssh.lock().unwrap_or_else(PoisonError::into_inner).as_mut());
        LabError::Here(format!(
            "the agent on {} was lost: {reason}{end}; its run does not count. See that ssh reaches that machine, and resume",
            self.name
        ))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The end of its input is the end of an agent.
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner).close();
        if let Some(ssh) = self.ssh.get_mut().unwrap_or_else(PoisonError::into_inner) {
            ssh.finish();
        }
    }
}

impl Heard {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, event: Event) {
        let mut state = self.lock();
        let is_in_order = match event {
            Event::Said { worker, message } => state.tell(worker, WorkerNews::Message(message)),
            Event::Ended { worker, outcome } => state.tell(worker, WorkerNews::Ended(outcome)),
            Event::Answer(answer) => {
                state.answers.push_back(answer);
                state.answers.len() <= ANSWERS_MAX
            }
            Event::Alive => true,
            Event::Ready { .. } => false,
        };
        if !is_in_order {
            state.lose("it sends unrequested messages".to_owned());
        }
        self.changed.notify_all();
    }
}

impl State {
    fn add_worker(&mut self, heard: SyncSender<WorkerNews>) -> u32 {
        self.next += 1;
        self.workers.insert(self.next, heard);
        self.next
    }

    /// Hands news on; returns whether there was room. Of a worker that nobody listens to any more there may be late news.
    fn tell(&self, worker: u32, news: WorkerNews) -> bool {
        let told = self.workers.get(&worker).map(|heard| heard.try_send(news));
        !matches!(told, Some(Err(TrySendError::Full(_))))
    }

    /// Notes why nothing more comes, which ends what is heard of all workers.
    fn lose(&mut self, reason: String) {
        self.lost.get_or_insert(reason);
        self.workers.clear();
    }
}

/// Reads messages of the agent until the connection ends, and sends signs of life.
fn listen(incoming: &Incoming, outgoing: &Mutex<Outgoing>, heard: &Heard) {
    let (mut last, mut said) = (Instant::now(), Instant::now());
    let reason = loop {
        if heard.lock().lost.is_some() {
            return;
        }
        match incoming.hear::<Event>(ALIVE_PERIOD) {
            Ok(Some(event)) => {
                last = Instant::now();
                heard.add(event);
            }
            Ok(None) if last.elapsed() > SILENCE_MAX => {
                break format!("it was silent for {} s", SILENCE_MAX.as_secs());
            }
            Ok(None) => {}
            Err(reason) => break reason,
        }
        if said.elapsed() >= ALIVE_PERIOD {
            said = Instant::now();
            if let Err(reason) = outgoing.lock().unwrap_or_else(PoisonError::into_inner).say(&Request::Alive) {
                break reason;
            }
        }
    };
    heard.lock().lose(reason);
    heard.changed.notify_all();
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
    let socket = super::probes::socket_to(SocketAddr::from((other, DISCARD)))?;
    Ok(socket.local_addr()?.ip())
}

/// An agent computes the checksum of its program first.
const FIRST_PATIENCE: Duration = Duration::from_secs(20);
const ANSWER_PATIENCE: Duration = Duration::from_secs(30);
/// Any port will do.
const DISCARD: u16 = 9;
/// One question is open at a time; further answers were never requested.
const ANSWERS_MAX: usize = 2;
