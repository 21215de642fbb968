//! The controller's connection to an agent.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use thalweg_lab_station::not_written;

use super::folder::is_raw;
use super::key::AgentKey;
use super::message::{Event, HostFacts, Request};
use super::probes::ClockProbes;
use super::session::{ALIVE_PERIOD, SILENCE_MAX};
use super::wire::{Incoming, Outgoing, PROTOCOL, Refusal, Stranger, VERSION, greet};
use crate::error::LabError;
use crate::host::{Layers, SecondConditions};
use crate::peers::PeerProgram;
use crate::process::Stop;

/// A connection to an agent, which works for no other controller meanwhile; the agent ends all processes when it is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    /// As the user named it.
    name: String,
    agent: SocketAddr,
    /// This end of the connection.
    own: SocketAddr,
    clock_key: AgentKey,
    facts: HostFacts,
    outgoing: Arc<Mutex<Outgoing>>,
    heard: Arc<Heard>,
    /// One question at a time.
    asking: Mutex<()>,
}

/// Unread messages of the agent.
#[derive(Debug, Default)]
struct Heard {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    workers: BTreeMap<u32, VecDeque<Event>>,
    answers: VecDeque<Event>,
    /// Why nothing more comes.
    lost: Option<String>,
}

impl Connection {
    /// Comes to the agent at `name`, an address or a host's name with a port. One that is just losing its last controller is asked again
    /// for a second.
    ///
    /// # Errors
    /// No agent answers there, it has another key or version, or works for another controller.
    pub(crate) fn open(name: &str, key: &AgentKey, stop: &Stop) -> Result<Connection, LabError> {
        let deadline = Instant::now() + BUSY_PATIENCE;
        loop {
            match Connection::attempt(name, key)? {
                Attempt::Connected(connection) => return Ok(*connection),
                Attempt::Busy(controller) if Instant::now() >= deadline => {
                    return Err(LabError::Here(format!(
                        "the agent {name} works for another controller, {controller}: wait for its end, or end it"
                    )));
                }
                Attempt::Busy(_) if stop.is_requested() => return Err(LabError::Interrupted),
                Attempt::Busy(_) => std::thread::sleep(BUSY_PAUSE),
            }
        }
    }

    fn attempt(name: &str, key: &AgentKey) -> Result<Attempt, LabError> {
        let (stream, agent) = connect(name)?;
        let own = stream.local_addr().map_err(LabError::here)?;
        let connected = greet(stream, key).map_err(|stranger| not_together(name, &stranger))?;
        let mut incoming = connected.incoming;
        let lost = |reason: String| LabError::Here(format!("the agent {name} was lost at once: {reason}"));
        let facts = match incoming.hear::<Event>(FIRST_PATIENCE).map_err(lost)? {
            Some(Event::Ready(facts)) => *facts,
            Some(Event::Busy { controller }) => return Ok(Attempt::Busy(controller)),
            Some(Event::Refused(reason)) => {
                return Err(LabError::Here(format!("the agent {name} cannot work: {reason}")));
            }
            Some(_) | None => return Err(lost("it does not say that it is ready".to_owned())),
        };
        let outgoing = Arc::new(Mutex::new(connected.outgoing));
        let heard = Arc::new(Heard::default());
        std::thread::spawn({
            let (outgoing, heard) = (Arc::clone(&outgoing), Arc::clone(&heard));
            move || listen(incoming, &outgoing, &heard)
        });
        let (name, clock_key) = (name.to_owned(), connected.clock_key);
        let connection = Connection { name, agent, own, clock_key, facts, outgoing, heard, asking: Mutex::default() };
        Ok(Attempt::Connected(Box::new(connection)))
    }

    /// As the user named it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The agent's description of its host.
    pub(crate) fn facts(&self) -> &HostFacts {
        &self.facts
    }

    /// Address of the agent, and the local address of the connection.
    pub(crate) fn ends(&self) -> (SocketAddr, SocketAddr) {
        (self.agent, self.own)
    }

    /// The checksum of the program of `peer` on the agent's host.
    ///
    /// # Errors
    /// It is not there, or the agent is lost.
    pub(crate) fn program_of(&self, peer: PeerProgram) -> Result<String, LabError> {
        match self.ask(&Request::Find { peer })? {
            Event::Found(Some(checksum)) => Ok(checksum),
            Event::Found(None) => Err(LabError::Here(format!(
                "{peer} is not set up on the host of the agent {}: run `thalweg lab peers install {peer}` there, or name the folder of its \
                 program to that agent with --peer-dir",
                self.name
            ))),
            other => Err(self.unexpected(&other)),
        }
    }

    /// A way to ask the agent's clock.
    pub(crate) fn clock(&self) -> Result<ClockProbes, LabError> {
        ClockProbes::open(self.agent, self.clock_key.clone()).map_err(LabError::here)
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
        match self.ask(&Request::Clear)? {
            Event::Cleared => {
                self.heard.lock().workers.clear();
                Ok(())
            }
            other => Err(self.unexpected(&other)),
        }
    }

    /// The counters of the layers below, there and now.
    pub(crate) fn counters(&self) -> Result<Layers, LabError> {
        match self.ask(&Request::Count)? {
            Event::Counted(layers) => Ok(layers),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Begins to watch how quiet the host is.
    pub(crate) fn watch(&self) -> Result<(), LabError> {
        self.say(&Request::Watch)
    }

    /// Other load on the host since the last query.
    pub(crate) fn look(&self) -> Result<SecondConditions, LabError> {
        match self.ask(&Request::Look)? {
            Event::Looked(second) => Ok(second),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Copies the files of the agent's workers into `folder`.
    pub(crate) fn collect(&self, folder: &Path) -> Result<(), LabError> {
        let files = match self.ask(&Request::Files)? {
            Event::Files(files) => files,
            other => return Err(self.unexpected(&other)),
        };
        for file in files {
            let path = folder.join(&file);
            // The agent's name of a file decides its place here.
            if !is_raw(&file) || path.exists() {
                return Err(LabError::Here(format!(
                    "the agent {} offers a file {file:?} that is none of its own",
                    self.name
                )));
            }
            let written = |error: std::io::Error| LabError::from(not_written(&path, &error));
            let mut out = File::create(&path).map_err(written)?;
            let mut offset = 0;
            loop {
                let part = match self.ask(&Request::Read { file: file.clone(), offset })? {
                    Event::Part(part) => part,
                    other => return Err(self.unexpected(&other)),
                };
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

    /// Sends a request without an answer, or one that a worker's message answers.
    pub(super) fn say(&self, request: &Request) -> Result<(), LabError> {
        self.check_alive()?;
        let said = self.outgoing.lock().unwrap_or_else(PoisonError::into_inner).say(request);
        said.map_err(|reason| match &self.heard.lock().lost {
            Some(first) => self.lost(first),
            None => self.lost(&reason),
        })
    }

    /// The agent's next news of a worker, if any.
    pub(super) fn told_of(&self, worker: u32) -> Result<Option<Event>, LabError> {
        let mut state = self.heard.lock();
        if let Some(event) = state.workers.get_mut(&worker).and_then(VecDeque::pop_front) {
            return Ok(Some(event));
        }
        state.lost.as_ref().map_or(Ok(None), |reason| Err(self.lost(reason)))
    }

    /// Ends the connection without a word, as a process that is killed does.
    #[cfg(test)]
    pub(super) fn cut(&self) {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner).close();
    }

    fn ask(&self, request: &Request) -> Result<Event, LabError> {
        let _one = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        self.say(request)?;
        let deadline = Instant::now() + ANSWER_PATIENCE;
        let mut state = self.heard.lock();
        loop {
            if let Some(answer) = state.answers.pop_front() {
                return Ok(answer);
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

    fn unexpected(&self, event: &Event) -> LabError {
        match event {
            Event::Refused(reason) => LabError::Here(format!("the agent {} cannot do it: {reason}", self.name)),
            _ => LabError::Here(format!("the agent {} said something unexpected", self.name)),
        }
    }

    fn lost(&self, reason: &str) -> LabError {
        LabError::Here(format!(
            "the agent {} was lost: {reason}; its run does not count. Check the agent's output on its host, start it again and resume",
            self.name
        ))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut outgoing = self.outgoing.lock().unwrap_or_else(PoisonError::into_inner);
        // An agent that does not hear this sees the end of the connection.
        let _ = outgoing.say(&Request::Goodbye);
        outgoing.close();
    }
}

impl Heard {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, event: Event) {
        let mut state = self.lock();
        match event {
            Event::Said { worker, .. } | Event::Failed { worker, .. } | Event::Finished { worker } => {
                state.workers.entry(worker).or_default().push_back(event);
            }
            Event::Goodbye => state.lost = Some("it was stopped".to_owned()),
            Event::Alive => {}
            answer => state.answers.push_back(answer),
        }
        if state.answers.len() > ANSWERS_MAX || state.workers.values().any(|events| events.len() > EVENTS_MAX) {
            state.lost = Some("it sends unrequested messages".to_owned());
        }
        self.changed.notify_all();
    }
}

/// The outcome of an attempt to connect.
enum Attempt {
    Connected(Box<Connection>),
    Busy(String),
}

/// Reads messages of the agent until the connection ends, and sends signs of life.
fn listen(mut incoming: Incoming, outgoing: &Mutex<Outgoing>, heard: &Heard) {
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
    heard.lock().lost.get_or_insert(reason);
    heard.changed.notify_all();
}

fn connect(name: &str) -> Result<(TcpStream, SocketAddr), LabError> {
    let addresses = name.to_socket_addrs().map_err(|error| {
        LabError::Here(format!("the agent {name} cannot be found: {error}; name it by an address and a port"))
    })?;
    let mut last = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT_PATIENCE) {
            Ok(stream) => return Ok((stream, address)),
            Err(error) => last = Some(error),
        }
    }
    let advice = match last.as_ref().map(std::io::Error::kind) {
        Some(ErrorKind::ConnectionRefused) => format!(
            "no agent listens there; start `thalweg lab agent --bind {name}` on that host, with the key of this one"
        ),
        Some(ErrorKind::TimedOut | ErrorKind::WouldBlock) => format!(
            "no answer within {} s; look at the address and at the firewalls between (TCP and UDP of this port)",
            CONNECT_PATIENCE.as_secs()
        ),
        _ => format!(
            "{}; look at the address and at the routes to it",
            last.map_or_else(|| "the name has no address".to_owned(), |error| error.to_string())
        ),
    };
    Err(LabError::Here(format!("the agent {name} cannot be reached: {advice}")))
}

fn not_together(name: &str, stranger: &Stranger) -> LabError {
    let reason = match stranger {
        Stranger::Refused(Refusal::Key) | Stranger::WrongKey => {
            "it has another key: copy one key file to all hosts, and name it with --key".to_owned()
        }
        Stranger::Refused(Refusal::Version { protocol, version }) => format!(
            "it is Thalweg {version} with protocol {protocol}, and this is {VERSION} with protocol {PROTOCOL}: install one version on all hosts"
        ),
        Stranger::Version(version) => format!("it is Thalweg {version}, and this is {VERSION}"),
        Stranger::NoSuchProgram => "the program at this address is no agent of the lab; check the port".to_owned(),
        Stranger::Lost(reason) => {
            format!("{reason} before it accepted this controller; check its output on its host")
        }
    };
    LabError::Here(format!("the agent {name} does not work for this controller: {reason}"))
}

const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// An agent computes the checksum of its program first.
const FIRST_PATIENCE: Duration = Duration::from_secs(20);
const ANSWER_PATIENCE: Duration = Duration::from_secs(30);
/// An agent needs a moment to end the processes of its last controller.
const BUSY_PATIENCE: Duration = Duration::from_secs(1);
const BUSY_PAUSE: Duration = Duration::from_millis(100);
/// One question is open at a time; further answers were never requested.
const ANSWERS_MAX: usize = 2;
/// A worker says some dozen things.
const EVENTS_MAX: usize = 1024;
