//! The session of an agent with its controller: starts workers, relays their messages, ends them.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::error::AgentError;
use super::folder::{self, Folder};
use super::message::{Event, HostFacts, Request, WorkerOrder};
use super::pipe::{CLOSED, Incoming, Outgoing};
use super::probes::ClockAnswers;
use crate::error::LabError;
use crate::host::{Environment, HostFiles, Layers, SecondWatch};
use crate::process::{Launcher, Stop, Supervised, WorkerMessage};
use crate::study::{checksum, host_parts};

/// Works for the controller at the other end of these streams until it closes them; `launcher` starts workers. Removes what agents of this
/// machine left behind when they were killed.
///
/// # Errors
/// The controller is silent or says something that is no request, no folder can be made, or `stop` was requested. All workers are gone then
/// too.
pub fn serve(
    from: impl Read + Send + 'static,
    to: impl Write + Send + 'static,
    launcher: &Launcher,
    stop: &Stop,
) -> Result<(), LabError> {
    folder::remove_abandoned();
    let mut outgoing = Outgoing::new(to);
    let greeting = format!("{HELLO}{PROTOCOL} {VERSION}").into_bytes();
    let session = outgoing.write(greeting).and_then(|()| Session::open(Incoming::new(from), outgoing, launcher));
    match session.and_then(|mut session| session.run(stop)) {
        Err(reason) if reason != CLOSED => Err(AgentError::Ended(reason).into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// An agent at work for a controller; dropping it ends all workers and removes their files.
struct Session<'a> {
    incoming: Incoming,
    outgoing: Outgoing,
    launcher: &'a Launcher,
    // Dropped before the folder that they write into.
    workers: BTreeMap<u32, Supervised>,
    folder: Folder,
    watch: Option<SecondWatch>,
    clock: Option<ClockAnswers>,
    heard: Instant,
    said: Instant,
}

impl<'a> Session<'a> {
    /// Tells the controller about this machine.
    fn open(incoming: Incoming, mut outgoing: Outgoing, launcher: &'a Launcher) -> Result<Session<'a>, String> {
        let folder = Folder::new()?;
        let environment = Environment::read();
        let fingerprint = host_parts(&environment);
        let facts = Box::new(HostFacts { environment, fingerprint });
        outgoing.say(&Event::Ready { facts, address: own_address(std::env::var("SSH_CONNECTION").ok()) })?;
        let (workers, now) = (BTreeMap::new(), Instant::now());
        Ok(Session { incoming, outgoing, launcher, workers, folder, watch: None, clock: None, heard: now, said: now })
    }

    /// Works until the streams end.
    fn run(&mut self, stop: &Stop) -> Result<(), String> {
        loop {
            self.turn(stop)?;
        }
    }

    /// One look at the controller and at each worker.
    fn turn(&mut self, stop: &Stop) -> Result<(), String> {
        if stop.is_requested() {
            return Err("it was stopped".to_owned());
        }
        if let Some(request) = self.incoming.hear::<Request>(TURN)? {
            self.heard = Instant::now();
            self.obey(request)?;
        } else if self.heard.elapsed() > SILENCE_MAX {
            return Err(format!("the controller was silent for {} s", SILENCE_MAX.as_secs()));
        }
        self.relay()?;
        if self.said.elapsed() > ALIVE_PERIOD {
            self.say(&Event::Alive)?;
        }
        Ok(())
    }

    fn obey(&mut self, request: Request) -> Result<(), String> {
        match request {
            Request::Start { worker, name, order } => self.start(worker, &name, *order),
            Request::Find { peer } => self.answer(Ok(self.launcher.program_of(peer).ok().map(|path| checksum(&path)))),
            Request::Tell { worker, line } => match self.workers.get_mut(&worker).map(|process| process.send(&line)) {
                Some(Err(error)) => self.give_up(worker, &error),
                // A message to a failed worker has crossed the news of its failure.
                Some(Ok(())) | None => Ok(()),
            },
            Request::Finish { worker } => match self.workers.remove(&worker).map(Supervised::finish) {
                Some(end) => self.say(&Event::Ended { worker, outcome: end.map_err(|error| error.to_string()) }),
                None => Ok(()),
            },
            Request::Kill { worker } => {
                drop(self.workers.remove(&worker));
                Ok(())
            }
            Request::Clear => {
                self.workers.clear();
                self.watch = None;
                self.answer(self.folder.clear())
            }
            Request::Count => self.answer(Ok(Layers::read(&HostFiles::here()))),
            Request::OpenClock { at, secret } => {
                let opened = ClockAnswers::open(at, secret);
                let opened = opened.map_err(|error| format!("its clock cannot be asked at {at}: {error}"));
                let port = opened.map(|(clock, port)| {
                    self.clock = Some(clock);
                    port
                });
                self.answer(port)
            }
            Request::Watch => {
                self.watch = Some(SecondWatch::start(HostFiles::here()));
                Ok(())
            }
            Request::Look => {
                let second = self.watch.as_mut().map(SecondWatch::look);
                self.answer(second.ok_or_else(|| "no watch of this host was requested".to_owned()))
            }
            Request::Files => self.answer(self.folder.files()),
            Request::Read { file, offset } => self.answer(self.folder.read(&file, offset)),
            Request::Alive => Ok(()),
        }
    }

    fn answer(&mut self, answer: Result<impl Serialize, String>) -> Result<(), String> {
        let answer = answer.and_then(|answer| serde_json::to_value(answer).map_err(|error| error.to_string()));
        self.say(&Event::Answer(answer))
    }

    fn start(&mut self, worker: u32, name: &str, order: WorkerOrder) -> Result<(), String> {
        if self.workers.len() == WORKERS_MAX || self.workers.contains_key(&worker) {
            let reason = format!("an agent starts {WORKERS_MAX} workers at most, each number once");
            return self.say(&Event::Ended { worker, outcome: Err(reason) });
        }
        match order.start(self.launcher, name, self.folder.path()) {
            Ok(process) => {
                self.workers.insert(worker, process);
                Ok(())
            }
            Err(error) => self.say(&Event::Ended { worker, outcome: Err(error.to_string()) }),
        }
    }

    /// Relays the workers' messages to the controller.
    fn relay(&mut self) -> Result<(), String> {
        let mut events: Vec<Event> = Vec::new();
        let mut failed: Vec<(u32, LabError)> = Vec::new();
        for (worker, process) in &mut self.workers {
            loop {
                match process.try_hear() {
                    Ok(Some(message)) => events.push(Event::Said { worker: *worker, message }),
                    Ok(None) => break,
                    Err(error) => {
                        failed.push((*worker, error));
                        break;
                    }
                }
            }
        }
        events.iter().try_for_each(|event| self.say(event))?;
        failed.iter().try_for_each(|(worker, error)| self.give_up(*worker, error))
    }

    /// Ends a worker that cannot go on, and tells why.
    fn give_up(&mut self, worker: u32, error: &LabError) -> Result<(), String> {
        drop(self.workers.remove(&worker));
        // Its own words, where it has some, are for the controller to put together.
        self.say(&match error {
            LabError::Failed { reason, .. } => Event::Said { worker, message: WorkerMessage::Failed(reason.clone()) },
            other => Event::Ended { worker, outcome: Err(other.to_string()) },
        })
    }

    fn say(&mut self, event: &Event) -> Result<(), String> {
        self.said = Instant::now();
        self.outgoing.say(event)
    }
}

/// The third word of `SSH_CONNECTION`: the address at which the user's `ssh` reached this machine.
fn own_address(connection: Option<String>) -> Option<IpAddr> {
    connection?.split_whitespace().nth(2)?.parse().ok()
}

/// Changes with each message.
pub(super) const PROTOCOL: u32 = 5;
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Begins the first line of an agent, before its protocol and version.
pub(super) const HELLO: &str = "thalweg-lab-agent ";
/// As many as a scenario can have endpoints on a host, with room.
const WORKERS_MAX: usize = 256;
/// How long a look at the connection waits before the workers are looked at.
const TURN: Duration = Duration::from_millis(20);
/// Each side says that it lives when it said nothing else for so long.
pub(super) const ALIVE_PERIOD: Duration = Duration::from_secs(1);
/// A side that said nothing for so long is gone.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(20);
