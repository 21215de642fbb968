//! Many observers of one resource, and the time in which a change reaches them.
//!
//! One socket plays all of them. To a server on the loopback network each observer is at an address of its own, as hosts
//! are; elsewhere they differ by their tokens only, and the server sees one client with as many registrations.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thalweg_base::time::Instant;
use thalweg_coap::message::{
    CoapMessage, Code, HEADER_LEN, MessageId, MessageType, MessageWriter, Observe, OptionNumber, RequestBuf, Token,
    empty_message,
};
use thalweg_host::{HostFiles, Task, TaskStatus};
use thalweg_transport::batch::{Arrived, BATCH_MAX, BatchOptions, BatchScratch, BatchSocket, Departure};
use thalweg_transport::clock;

use crate::error::LabError;
use crate::statistics::endless::option;

/// Who observes what, and how often it changes.
#[derive(Clone, Debug, PartialEq)]
pub struct ObserverLoadPlan {
    /// The server.
    pub target: SocketAddr,
    /// The resource: one that can be observed, and that gives back the text that it was PUT.
    pub resource: String,
    /// Observers; where they differ by their tokens at most 65,536, as many as a client has message IDs.
    pub observers: u32,
    /// Changes, one after the other.
    pub changes: u32,
    /// Time for a change, and for the answers to registrations.
    pub time_limit: Duration,
    /// The server's process on this host, for its memory.
    pub server_process: Option<u32>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObserverLoadResult {
    /// `thalweg.coap-observer-load/1`.
    pub schema: String,
    /// How the server tells the observers apart.
    pub told_apart_by: ObserverIdentity,
    /// Observers that were to be registered.
    pub observers: u64,
    /// Those that the server registered.
    pub registered: u64,
    /// Those that got another answer: the server has no place for more, or refuses them.
    pub refused: u64,
    /// Time that the registrations took.
    pub registration_s: f64,
    /// Memory of the server's process, where it was asked for.
    pub memory: Option<ObserverMemory>,
    /// The changes.
    pub changes: Vec<ChangeFigures>,
}

/// What differs from one observer to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObserverIdentity {
    /// The address, from 127.64.0.1 on.
    Address,
    /// The token.
    Token,
}

/// Resident memory of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObserverMemory {
    /// Before the first registration, in KiB.
    pub before_kib: u64,
    /// After the last one, before a change.
    pub after_kib: u64,
    /// The difference for each registered observer, in bytes.
    pub each_bytes: u64,
}

/// One change: times count from the PUT to the notification, for all registered observers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeFigures {
    /// Observers that were told.
    pub reached: u64,
    /// Those that were not within the time limit.
    pub missing: u64,
    /// Half of them were told within this time in microseconds; `never` where fewer were.
    #[serde(default, with = "option")]
    pub p50_us: Option<f64>,
    /// 99 % of them.
    #[serde(default, with = "option")]
    pub p99_us: Option<f64>,
    /// The last one; `never` where some are missing.
    #[serde(default, with = "option")]
    pub max_us: Option<f64>,
}

/// Registers the observers, changes the resource, and takes the registrations back.
///
/// # Errors
/// The server cannot be reached, has no such resource, or the user interrupted it.
pub fn run_observers(plan: &ObserverLoadPlan, is_stopped: &AtomicBool) -> Result<ObserverLoadResult, LabError> {
    let mut crowd = ObserverCrowd::open(plan)?;
    let resident = || {
        let status = TaskStatus::read(&HostFiles::here(), Task::Process(plan.server_process?))?;
        Some(status.resident_kib)
    };
    let (before, began) = (resident(), clock::now());
    if let Err(error) = crowd.register(is_stopped) {
        crowd.leave()?;
        return Err(error);
    }
    let registration_s = clock::now().since(began).as_secs_f64();
    let after = resident();
    let changes: Result<Vec<ChangeFigures>, LabError> =
        (0..plan.changes).map(|number| crowd.change(number, is_stopped)).collect();
    crowd.leave()?;
    let registered = crowd.seats.registered;
    let memory = before.zip(after).map(|(before_kib, after_kib)| ObserverMemory {
        before_kib,
        after_kib,
        each_bytes: after_kib.saturating_sub(before_kib) * 1024 / registered.max(1),
    });
    Ok(ObserverLoadResult {
        schema: "thalweg.coap-observer-load/1".to_owned(),
        told_apart_by: crowd.identity,
        observers: u64::from(plan.observers),
        registered,
        refused: crowd.seats.refused,
        registration_s,
        memory,
        changes: changes?,
    })
}

/// All observers, and the client that changes what they observe.
struct ObserverCrowd<'a> {
    plan: &'a ObserverLoadPlan,
    socket: BatchSocket,
    scratch: BatchScratch,
    identity: ObserverIdentity,
    next_id: u16,
    seats: ObserverSeats,
}

/// What the observers know.
struct ObserverSeats {
    /// By number, which is the token.
    all: Vec<ObserverSeat>,
    registered: u64,
    refused: u64,
    /// The state that they are to be told of, since when, and how many were.
    state: Vec<u8>,
    since: Instant,
    reached: u64,
    /// The answer to the change.
    answer: Option<Code>,
}

#[derive(Clone, Copy, Debug, Default)]
struct ObserverSeat {
    answer: Option<RegistrationAnswer>,
    /// After which time it was told of the present state.
    reached: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RegistrationAnswer {
    Registered,
    Refused(Code),
}

impl ObserverSeats {
    fn new(count: u32) -> ObserverSeats {
        ObserverSeats {
            all: vec![ObserverSeat::default(); count as usize],
            registered: 0,
            refused: 0,
            state: Vec::new(),
            since: Instant::ZERO,
            reached: 0,
            answer: None,
        }
    }

    fn handle_message(&mut self, now: Instant, message: &CoapMessage<'_>) {
        let Some(number) = message.token.to_u64().filter(|_| message.code.is_response()) else { return };
        if number == CHANGE_TOKEN {
            self.answer = Some(message.code);
            return;
        }
        let Some(seat) = usize::try_from(number).ok().and_then(|number| self.all.get_mut(number)) else { return };
        let is_notified = message.code.is_success() && message.options.value(OptionNumber::OBSERVE).is_some();
        if seat.answer.is_none() {
            seat.answer = Some(match is_notified {
                true => RegistrationAnswer::Registered,
                false => RegistrationAnswer::Refused(message.code),
            });
            self.registered += u64::from(is_notified);
            self.refused += u64::from(!is_notified);
        }
        if is_notified && seat.reached.is_none() && !self.state.is_empty() && message.payload == self.state {
            seat.reached = Some(now.since(self.since));
            self.reached += 1;
        }
    }

    fn begin_change(&mut self, now: Instant, state: Vec<u8>) {
        self.all.iter_mut().for_each(|seat| seat.reached = None);
        (self.state, self.since, self.reached, self.answer) = (state, now, 0, None);
    }

    fn figures(&self) -> ChangeFigures {
        let mut times: Vec<Duration> = self.all.iter().filter_map(|seat| seat.reached).collect();
        times.sort_unstable();
        let due = self.registered as usize;
        let at = |share: f64| {
            let rank = ((share * due as f64).ceil() as usize).max(1);
            let told = times.get(rank - 1).map_or(f64::INFINITY, |time| time.as_secs_f64() * 1e6);
            (due > 0).then_some(told)
        };
        ChangeFigures {
            reached: self.reached,
            missing: self.registered.saturating_sub(self.reached),
            p50_us: at(0.5),
            p99_us: at(0.99),
            max_us: at(1.0),
        }
    }
}

impl<'a> ObserverCrowd<'a> {
    fn open(plan: &'a ObserverLoadPlan) -> Result<ObserverCrowd<'a>, LabError> {
        let is_here = plan.target.is_ipv4() && plan.target.ip().is_loopback();
        let identity = if is_here { ObserverIdentity::Address } else { ObserverIdentity::Token };
        let observers_max = if is_here { ADDRESSES_MAX } else { u32::from(u16::MAX) + 1 };
        if plan.observers > observers_max {
            return Err(LabError::Here(format!("at most {observers_max} observers can register with {}", plan.target)));
        }
        if let Some(fault) = RequestBuf::get(&plan.resource).fault() {
            return Err(LabError::Here(format!("{} cannot be observed: {fault}", plan.resource)));
        }
        let any: IpAddr =
            if plan.target.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let options = BatchOptions { receive_buffer_bytes: RECEIVE_BUFFER_BYTES, ..BatchOptions::default() };
        let socket = BatchSocket::bind(SocketAddr::from((any, 0)), &options)
            .map_err(|error| LabError::Here(format!("no socket can be had for the observers: {error}")))?;
        Ok(ObserverCrowd {
            plan,
            socket,
            scratch: BatchScratch::default(),
            identity,
            next_id: clock::now().as_nanos() as u16,
            seats: ObserverSeats::new(plan.observers),
        })
    }

    /// The address that an observer sends from.
    fn source(&self, number: u32) -> Option<IpAddr> {
        let first = FIRST_ADDRESS.to_bits();
        (self.identity == ObserverIdentity::Address).then(|| Ipv4Addr::from_bits(first + number).into())
    }

    fn datagram(&mut self, request: &RequestBuf, token: u64) -> Vec<u8> {
        self.next_id = self.next_id.wrapping_add(1);
        let (id, token, view) = (MessageId(self.next_id), Token::from_u64(token), request.view());
        let mut bytes = Vec::new();
        let mut writer = MessageWriter::new(&mut bytes, MessageType::NonConfirmable, view.code, id, &token);
        writer.options(view.options);
        writer.payload(view.payload);
        bytes
    }

    /// Sends a request of each of these observers.
    fn send(&mut self, numbers: &[u32], request: &RequestBuf) {
        let datagrams: Vec<(Option<IpAddr>, Vec<u8>)> =
            numbers.iter().map(|number| (self.source(*number), self.datagram(request, u64::from(*number)))).collect();
        let to = self.plan.target;
        let departures = datagrams.iter().map(|(from, bytes)| Departure { to, from: *from, bytes });
        self.socket.send(&mut self.scratch, departures);
    }

    /// Takes what has arrived, or arrives until `deadline`, and acknowledges it.
    fn take(&mut self, deadline: Instant) -> Result<(), LabError> {
        self.exchange(deadline).map_err(|error| LabError::Here(format!("the observers' socket failed: {error}")))
    }

    fn exchange(&mut self, deadline: Instant) -> io::Result<()> {
        if !self.socket.is_ready() {
            self.socket.wait(Some(deadline))?;
        }
        self.socket.receive()?;
        let now = clock::now();
        let mut acknowledgements: Vec<(Option<IpAddr>, [u8; HEADER_LEN])> = Vec::new();
        while let Some(Arrived { bytes, destination, .. }) = self.socket.next_arrival() {
            let Ok(message) = CoapMessage::parse(bytes) else { continue };
            if message.message_type == MessageType::Confirmable {
                acknowledgements.push((destination, empty_message(MessageType::Acknowledgement, message.id)));
            }
            self.seats.handle_message(now, &message);
        }
        let to = self.plan.target;
        let departures = acknowledgements.iter().map(|(from, bytes)| Departure { to, from: *from, bytes });
        self.socket.send(&mut self.scratch, departures);
        Ok(())
    }

    /// Registers all, a batch at a time; those without an answer again.
    fn register(&mut self, is_stopped: &AtomicBool) -> Result<(), LabError> {
        let request = RequestBuf::get(&self.plan.resource).with_observe(Observe::Register);
        let end = clock::now() + self.plan.time_limit;
        loop {
            let seats = self.seats.all.iter().zip(0_u32..);
            let waiting: Vec<u32> = seats.filter(|(seat, _)| seat.answer.is_none()).map(|(_, number)| number).collect();
            if waiting.is_empty() {
                break;
            }
            for batch in waiting.chunks(BATCH_MAX) {
                if is_stopped.load(Ordering::Relaxed) {
                    return Err(LabError::Interrupted);
                }
                let answered = self.answered() + batch.len() as u64;
                self.send(batch, &request);
                let patience = clock::now() + ANSWER_PATIENCE;
                while self.answered() < answered && clock::now() < patience {
                    self.take(patience)?;
                }
            }
            if clock::now() > end && self.answered() < u64::from(self.plan.observers) {
                let (answered, of) = (self.answered(), self.plan.observers);
                return Err(
                    self.failed(format!("answered {answered} of {of} registrations; give it a longer --time-limit"))
                );
            }
        }
        let refusal = self.seats.all.iter().find_map(|seat| match seat.answer {
            Some(RegistrationAnswer::Refused(code)) => Some(code),
            _ => None,
        });
        match refusal {
            Some(code) if self.seats.registered == 0 => {
                Err(self
                    .failed(format!("answered {code:?} and registered nobody; name a resource that can be observed")))
            }
            _ => Ok(()),
        }
    }

    fn answered(&self) -> u64 {
        self.seats.registered + self.seats.refused
    }

    fn failed(&self, what: String) -> LabError {
        LabError::Here(format!("{} {what}", self.plan.target))
    }

    /// Changes the resource and waits until all know the new state.
    fn change(&mut self, number: u32, is_stopped: &AtomicBool) -> Result<ChangeFigures, LabError> {
        // The notifications before have come, and those that the server repeats.
        let rest = clock::now() + PAUSE;
        while clock::now() < rest {
            self.take(rest)?;
        }
        let now = clock::now();
        let state = format!("change {number} of {}", now.as_nanos());
        let request = RequestBuf::put(&self.plan.resource, state.clone());
        self.seats.begin_change(now, state.into_bytes());
        let end = now + self.plan.time_limit;
        let mut asks_at = now;
        while self.seats.reached < self.seats.registered || self.seats.answer.is_none() {
            let now = clock::now();
            if now >= end {
                break;
            }
            if is_stopped.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            if self.seats.answer.is_some_and(|code| !code.is_success()) {
                break;
            }
            if self.seats.answer.is_none() && now >= asks_at {
                asks_at = now + PAUSE;
                let bytes = self.datagram(&request, CHANGE_TOKEN);
                let departure = Departure { to: self.plan.target, from: None, bytes: &bytes };
                self.socket.send(&mut self.scratch, [departure]);
            }
            self.take(end.min(now + LOOK_PERIOD))?;
        }
        match self.seats.answer {
            Some(code) if code.is_success() => Ok(self.seats.figures()),
            Some(code) => {
                Err(self.failed(format!("answered {code:?} to a PUT; name a resource that can be changed by one")))
            }
            None => Err(self.failed("did not answer a PUT".to_owned())),
        }
    }

    /// Takes the registrations back, as far as the network lets it.
    fn leave(&mut self) -> Result<(), LabError> {
        let request = RequestBuf::get(&self.plan.resource).with_observe(Observe::Deregister);
        let all: Vec<u32> = (0..self.plan.observers).collect();
        for batch in all.chunks(BATCH_MAX) {
            self.send(batch, &request);
            // Their answers come in the time in which the next ones leave.
            self.take(clock::now() + LEAVE_PERIOD)?;
        }
        Ok(())
    }
}

/// The token of what changes the resource; those of observers are their numbers.
const CHANGE_TOKEN: u64 = u64::MAX;
/// The first of the observers' addresses.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 64, 0, 1);
/// Addresses of the loopback network from there on.
const ADDRESSES_MAX: u32 = (1 << 24) - (64 << 16) - 2;
/// Room for the notifications of one change to 20,000 observers.
const RECEIVE_BUFFER_BYTES: usize = 8 << 20;
/// After this a batch of registrations goes on without the answers that lack.
const ANSWER_PATIENCE: Duration = Duration::from_millis(50);
/// Before a change, and between copies of a PUT without an answer.
const PAUSE: Duration = Duration::from_secs(1);
const LOOK_PERIOD: Duration = Duration::from_millis(50);
const LEAVE_PERIOD: Duration = Duration::from_micros(200);

#[cfg(test)]
mod tests;
