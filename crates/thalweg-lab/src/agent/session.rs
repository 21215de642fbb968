//! The session of an agent with one controller: starts workers, relays their messages, ends them.

use std::time::{Duration, Instant};

use super::folder::Folder;
use super::message::{Event, HostFacts, Request, WorkerOrder};
use super::wire::{Connected, Incoming, Outgoing};
use crate::error::LabError;
use crate::host::{Environment, HostFiles, Layers, SecondWatch};
use crate::process::{Launcher, Stop, Supervised};
use crate::study::{checksum, host_parts};

/// An agent at work for a controller; dropping it ends all workers and removes their files.
pub(super) struct Session<'a> {
    incoming: Incoming,
    outgoing: Outgoing,
    launcher: &'a Launcher,
    // Dropped before the folder that they write into.
    workers: Vec<(u32, Supervised)>,
    folder: Folder,
    watch: Option<SecondWatch>,
    heard: Instant,
    said: Instant,
}

impl<'a> Session<'a> {
    /// Tells the controller that it is welcome, and about this host.
    pub(super) fn open(connected: Connected, launcher: &'a Launcher) -> Result<Session<'a>, String> {
        let Connected { incoming, mut outgoing, .. } = connected;
        let folder = match Folder::new() {
            Ok(folder) => folder,
            Err(reason) => {
                outgoing.say(&Event::Refused(reason.clone()))?;
                return Err(reason);
            }
        };
        let environment = Environment::read();
        let fingerprint = host_parts(&environment);
        outgoing.say(&Event::Ready(Box::new(HostFacts { environment, fingerprint })))?;
        let now = Instant::now();
        Ok(Session { incoming, outgoing, launcher, workers: Vec::new(), folder, watch: None, heard: now, said: now })
    }

    /// Workers that live.
    pub(super) fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Works until the connection ends; returns why it did.
    pub(super) fn run(&mut self, stop: &Stop) -> String {
        loop {
            match self.turn(stop) {
                Ok(true) => {}
                Ok(false) => return "it said goodbye".to_owned(),
                Err(reason) => {
                    self.outgoing.close();
                    return reason;
                }
            }
        }
    }

    /// One look at the controller and at each worker; `false` when the controller is through.
    fn turn(&mut self, stop: &Stop) -> Result<bool, String> {
        if stop.is_requested() {
            self.say(&Event::Goodbye)?;
            return Err("this agent was stopped".to_owned());
        }
        if let Some(request) = self.incoming.hear::<Request>(TURN)? {
            self.heard = Instant::now();
            if matches!(request, Request::Goodbye) {
                return Ok(false);
            }
            self.obey(request)?;
        } else if self.heard.elapsed() > SILENCE_MAX {
            return Err(format!("it was silent for {} s", SILENCE_MAX.as_secs()));
        }
        self.relay()?;
        if self.said.elapsed() > ALIVE_PERIOD {
            self.say(&Event::Alive)?;
        }
        Ok(true)
    }

    fn obey(&mut self, request: Request) -> Result<(), String> {
        match request {
            Request::Start { worker, name, order } => self.start(worker, &name, *order),
            Request::Find { peer } => {
                let program = self.launcher.program_of(peer).ok();
                self.say(&Event::Found(program.map(|program| checksum(&program))))
            }
            Request::Tell { worker, command } => match self.find(worker).map(|process| process.send(&command)) {
                Some(Err(error)) => self.give_up(worker, &error),
                // A message to a failed worker has crossed the news of its failure.
                Some(Ok(())) | None => Ok(()),
            },
            Request::Finish { worker } => match self.take(worker).map(Supervised::finish) {
                Some(Ok(())) => self.say(&Event::Finished { worker }),
                Some(Err(error)) => self.say(&Event::Failed { worker, reason: error.to_string() }),
                None => Ok(()),
            },
            Request::Kill { worker } => {
                drop(self.take(worker));
                Ok(())
            }
            Request::Clear => {
                self.workers.clear();
                self.watch = None;
                let event = self.folder.clear().map_or_else(Event::Refused, |()| Event::Cleared);
                self.say(&event)
            }
            Request::Count => self.say(&Event::Counted(Layers::read(&HostFiles::here()))),
            Request::Watch => {
                self.watch = Some(SecondWatch::start(
                    HostFiles::here(),
                    self.workers.iter().map(|(_, worker)| worker.id()).collect(),
                ));
                Ok(())
            }
            Request::Look => {
                let event = match &mut self.watch {
                    Some(watch) => Event::Looked(watch.look()),
                    None => Event::Refused("no watch of this host was requested".to_owned()),
                };
                self.say(&event)
            }
            Request::Files => {
                let event = self.folder.files().map_or_else(Event::Refused, Event::Files);
                self.say(&event)
            }
            Request::Read { file, offset } => {
                let event = self.folder.read(&file, offset).map_or_else(Event::Refused, Event::Part);
                self.say(&event)
            }
            Request::Alive | Request::Goodbye => Ok(()),
        }
    }

    fn start(&mut self, worker: u32, name: &str, order: WorkerOrder) -> Result<(), String> {
        if self.workers.len() == WORKERS_MAX || self.find(worker).is_some() {
            let reason = format!("an agent starts {WORKERS_MAX} workers at most, each number once");
            return self.say(&Event::Failed { worker, reason });
        }
        match order.into_folder(self.folder.path().to_path_buf()).start(self.launcher, name) {
            Ok(process) => {
                self.workers.push((worker, process));
                Ok(())
            }
            Err(error) => self.say(&Event::Failed { worker, reason: error.to_string() }),
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
        drop(self.take(worker));
        self.say(&Event::Failed { worker, reason: error.to_string() })
    }

    fn say(&mut self, event: &Event) -> Result<(), String> {
        self.said = Instant::now();
        self.outgoing.say(event)
    }

    fn find(&mut self, worker: u32) -> Option<&mut Supervised> {
        self.workers.iter_mut().find(|(known, _)| *known == worker).map(|(_, process)| process)
    }

    fn take(&mut self, worker: u32) -> Option<Supervised> {
        let place = self.workers.iter().position(|(known, _)| *known == worker)?;
        Some(self.workers.remove(place).1)
    }
}

/// As many as a scenario can have endpoints on a host, with room.
const WORKERS_MAX: usize = 256;
/// How long a look at the connection waits before the workers are looked at.
const TURN: Duration = Duration::from_millis(20);
/// Each side says that it lives when it said nothing else for so long.
pub(super) const ALIVE_PERIOD: Duration = Duration::from_secs(1);
/// A side that said nothing for so long is gone.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(20);
