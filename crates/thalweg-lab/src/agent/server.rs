//! The agent of a host: lets one controller in at a time and answers questions to its clock.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::folder;
use super::key::AgentKey;
use super::message::Event;
use super::probes::answer_one;
use super::session::Session;
use super::wire::{Connected, Stranger, admit};
use crate::error::LabError;
use crate::process::{Launcher, Stop};

/// The agent of this host.
#[derive(Debug)]
pub struct Agent {
    listener: TcpListener,
    /// On the same port number.
    clock: UdpSocket,
    key: AgentKey,
    launcher: Launcher,
    place: Mutex<Option<Occupant>>,
    visitors: AtomicUsize,
}

/// The controller that the agent works for.
#[derive(Debug)]
struct Occupant {
    controller: SocketAddr,
    clock_key: AgentKey,
}

/// The agent's log, a line at a time.
pub type Tell<'a> = &'a (dyn Fn(&str) + Sync);

impl Agent {
    /// Binds TCP and UDP of `bind`, and removes what agents of this host left behind when they were killed. `launcher` starts workers.
    ///
    /// # Errors
    /// The address cannot be used.
    pub fn open(bind: SocketAddr, key: AgentKey, launcher: Launcher) -> Result<Agent, LabError> {
        folder::remove_abandoned();
        let (listener, clock) = sockets(bind)?;
        let prepare = || {
            listener.set_nonblocking(true)?;
            clock.set_read_timeout(Some(LOOK_PERIOD))
        };
        prepare().map_err(|error| not_bound(bind, &error))?;
        Ok(Agent { listener, clock, key, launcher, place: Mutex::default(), visitors: AtomicUsize::new(0) })
    }

    /// Its address.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn address(&self) -> Result<SocketAddr, LabError> {
        self.listener.local_addr().map_err(LabError::here)
    }

    /// Works for controllers until `stop` is requested.
    ///
    /// # Errors
    /// The system refuses to receive.
    pub fn serve(&self, stop: &Stop, tell: Tell<'_>) -> Result<(), LabError> {
        std::thread::scope(|scope| {
            let clock = scope.spawn(|| {
                while !stop.is_requested() {
                    answer_one(&self.clock, || self.place().as_ref().map(|one| one.clock_key.clone()))?;
                }
                Ok::<(), std::io::Error>(())
            });
            while !stop.is_requested() && !clock.is_finished() {
                match self.listener.accept() {
                    Ok((stream, from)) if self.visitors.fetch_add(1, Ordering::SeqCst) < VISITORS_MAX => {
                        scope.spawn(move || {
                            self.visit(stream, from, stop, tell);
                            self.visitors.fetch_sub(1, Ordering::SeqCst);
                        });
                    }
                    // Connections beyond the limit are closed without a message.
                    Ok(_) => {
                        self.visitors.fetch_sub(1, Ordering::SeqCst);
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(ACCEPT_PERIOD),
                    // The client left before it was accepted, or no descriptor was free.
                    Err(_) => std::thread::sleep(LOOK_PERIOD),
                }
            }
            let outcome = clock.join().unwrap_or_else(|_| Err(std::io::Error::other("its thread failed")));
            outcome.map_err(|error| LabError::Here(format!("the clock cannot be asked: {error}")))
        })
    }

    /// One connection from its first byte to its last.
    fn visit(&self, stream: TcpStream, from: SocketAddr, stop: &Stop, tell: Tell<'_>) {
        let connected = match admit(stream, &self.key) {
            Ok(connected) => connected,
            Err(stranger) => return tell(&format!("{from} was refused: {}", refusal(&stranger))),
        };
        let clock_key = connected.clock_key.clone();
        let Err(occupant) = self.take_place(from, clock_key) else {
            tell(&format!("{from} is the controller"));
            let said = self.work(connected, stop);
            *self.place() = None;
            return tell(&format!("{from} is gone: {said}"));
        };
        let mut outgoing = connected.outgoing;
        // A controller that goes away before it hears this has its answer already.
        let _ = outgoing.say(&Event::Busy { controller: occupant.to_string() });
        tell(&format!("{from} was sent away: {occupant} is the controller"));
    }

    /// Works for the controller that is there; returns why that ended.
    fn work(&self, connected: Connected, stop: &Stop) -> String {
        match Session::open(connected, &self.launcher) {
            Ok(mut session) => {
                let reason = session.run(stop);
                let workers = session.workers();
                drop(session);
                if workers == 0 { reason } else { format!("{reason}; {workers} workers were ended") }
            }
            Err(reason) => reason,
        }
    }

    /// Takes the place, or returns its holder.
    fn take_place(&self, controller: SocketAddr, clock_key: AgentKey) -> Result<(), SocketAddr> {
        let mut place = self.place();
        match &*place {
            Some(occupant) => Err(occupant.controller),
            None => {
                *place = Some(Occupant { controller, clock_key });
                Ok(())
            }
        }
    }

    fn place(&self) -> MutexGuard<'_, Option<Occupant>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// TCP and UDP on the same port; where any port will do, one that both have free.
fn sockets(bind: SocketAddr) -> Result<(TcpListener, UdpSocket), LabError> {
    let attempts = if bind.port() == 0 { PORT_ATTEMPTS } else { 1 };
    let mut last = None;
    for _ in 0..attempts {
        let listener = TcpListener::bind(bind).map_err(|error| not_bound(bind, &error))?;
        let same = listener.local_addr().map_err(|error| not_bound(bind, &error))?;
        match UdpSocket::bind(same) {
            Ok(clock) => return Ok((listener, clock)),
            Err(error) => last = Some(not_bound(same, &error)),
        }
    }
    Err(last.unwrap_or_else(|| LabError::Here(format!("{bind} cannot be used"))))
}

fn not_bound(bind: SocketAddr, error: &std::io::Error) -> LabError {
    let advice = match error.kind() {
        ErrorKind::AddrInUse => {
            "; another agent or program has this port, TCP or UDP: choose another one with --bind (DDS uses 7400 and above)"
        }
        ErrorKind::AddrNotAvailable => "; no interface of this host has this address: see `ip address`",
        _ => "",
    };
    LabError::Here(format!("the agent cannot listen at {bind}: {error}{advice}"))
}

fn refusal(stranger: &Stranger) -> String {
    match stranger {
        Stranger::WrongKey => "it does not have this agent's key".to_owned(),
        Stranger::Version(version) => format!("it is Thalweg {version} or speaks another protocol"),
        Stranger::NoSuchProgram | Stranger::Refused(_) => "it is no controller of the lab".to_owned(),
        Stranger::Lost(reason) => format!("it never identified itself ({reason})"),
    }
}

/// Connections at a time, known or not.
const VISITORS_MAX: usize = 8;
const PORT_ATTEMPTS: u32 = 16;
const ACCEPT_PERIOD: Duration = Duration::from_millis(50);
const LOOK_PERIOD: Duration = Duration::from_millis(200);
