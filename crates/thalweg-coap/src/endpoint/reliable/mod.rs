//! CoAP over reliable transports (RFC 8323) for client and server, without I/O: TCP, TLS and WebSocket.
//!
//! A [`ReliableEndpoint`] holds all connections of one thread. Its driver opens a connection when the transport has one,
//! gives it bytes, takes bytes from it, and answers its events as those of an [`Endpoint`](super::Endpoint).

mod ask;
mod connection;
mod frame;
mod observe;
mod receive;
mod room;
mod serve;
mod signal;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use thalweg_base::time::Instant;

pub use frame::{FrameWriter, Framing, ReliableMessage, message_len};
pub use signal::Capabilities;

use ask::Asking;
use connection::{Connection, ConnectionShare, ConnectionStage, ConnectionTimes, Outbound};
use serve::Serving;

use super::secret::{EndpointSecret, TableState};
use super::slab::Slab;
use super::timers::Timers;
use super::{EndpointEvent, ExchangeId, Peer, RequestError, RequestId};
use crate::identity::Caller;
use crate::message::{Code, OptionNumber, Options, RequestBuf, Token};

/// A connection. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(u64);

impl ConnectionId {
    /// A number whose lower half no two connections have at the same time, and which is small.
    pub(crate) fn place(self) -> u64 {
        self.0
    }
}

/// Bounds of what other ends can make this one hold, and for how long, chosen by its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReliableLimits {
    /// The longest message that is taken. Default 66,560 bytes: 64 blocks of 1024, and options.
    pub message_bytes_max: usize,
    /// Bytes of messages that are not whole, of all connections; above it ends the one that has most. Default 64 MiB.
    pub inbound_bytes_max: usize,
    /// Bytes that wait for one other end, above which nothing more is read from it and it is not notified. Default 64 KiB.
    pub outbound_bytes_max: usize,
    /// Bytes that wait for all other ends. Above it ends the one, of those that leave more than `outbound_bytes_max`, that has
    /// taken nothing for the longest time. Default 128 MiB.
    pub outbound_bytes_all_max: usize,
    /// Messages of one connection in a turn of the driver, so that one with many does not make the others wait. Default 32: a
    /// turn of 4,096 connections takes 0.2 s.
    pub messages_per_turn_max: usize,
    /// Requests of one connection that handlers work on; further ones are not read. Default 256.
    pub exchanges_per_connection_max: usize,
    /// Registrations for notifications of all connections. A further one takes the place of one of the host that has most, if its own
    /// has fewer, or gets a plain answer; so does one of more than 1 KiB. Default 16,384.
    pub observers_max: usize,
    /// The same of one connection. Default 1,024.
    pub observers_per_connection_max: usize,
    /// Bytes of one body, in both directions. Default 2 MiB.
    pub body_bytes_max: usize,
    /// Bytes of all bodies that are received or fetched block by block. Default 32 MiB.
    pub transfer_bytes_max: usize,
    /// The longest time to the first message of a connection. Default 10 s.
    pub greeting_max: Duration,
    /// The longest time from the first to the last byte of a message, and for which an end may take nothing of what waits for
    /// it. Default 30 s.
    pub message_time_max: Duration,
    /// The longest silence; half of it, and the other end is asked whether it is there. Default 10 min.
    pub idle_max: Duration,
}

impl Default for ReliableLimits {
    fn default() -> ReliableLimits {
        ReliableLimits {
            message_bytes_max: 66_560,
            inbound_bytes_max: 64 << 20,
            outbound_bytes_max: 64 << 10,
            outbound_bytes_all_max: 128 << 20,
            messages_per_turn_max: 32,
            exchanges_per_connection_max: 256,
            observers_max: 16_384,
            observers_per_connection_max: 1024,
            body_bytes_max: 2 << 20,
            transfer_bytes_max: 32 << 20,
            greeting_max: Duration::from_secs(10),
            message_time_max: Duration::from_secs(30),
            idle_max: Duration::from_secs(600),
        }
    }
}

/// Numbers about connections: the first ones since the beginning, the last ones at present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReliableCounts {
    /// Connections that were opened.
    pub opened: u64,
    /// Connections that this end aborted: what came was no CoAP, or too long.
    pub aborted: u64,
    /// Connections that were too slow or silent for too long.
    pub timed_out: u64,
    /// Messages received and sent.
    pub received: u64,
    /// Messages sent.
    pub sent: u64,
    /// Connections.
    pub connections: usize,
    /// Registrations for notifications.
    pub observers: usize,
    /// Bytes of messages that are not whole.
    pub inbound_bytes: usize,
    /// Bytes that wait for the other ends, also in layers of the transport.
    pub outbound_bytes: usize,
}

/// Client and server on all connections of a thread.
pub struct ReliableEndpoint {
    limits: ReliableLimits,
    forwarding: bool,
    proxying: bool,
    table: TableState,
    connections: Slab<Connection>,
    serving: Serving,
    asking: Asking,
    timers: Timers<u64>,
    writer: FrameWriter,
    events: VecDeque<EndpointEvent>,
    dirty: Vec<ConnectionId>,
    /// Connections that have brought as many messages as they may in this turn.
    waiting: Vec<ConnectionId>,
    turn: u64,
    /// The time that it was given last.
    now: Instant,
    serial: u32,
    counts: ReliableCounts,
}

impl ReliableEndpoint {
    /// An endpoint without connections. `secret` has to come from the system's entropy.
    pub fn new(limits: ReliableLimits, secret: [u64; 2]) -> ReliableEndpoint {
        let table = TableState::new(&EndpointSecret::new(secret));
        ReliableEndpoint {
            limits,
            forwarding: false,
            proxying: false,
            table,
            connections: Slab::new(),
            serving: Serving::new(limits.transfer_bytes_max),
            asking: Asking::new(secret[1]),
            timers: Timers::new(),
            writer: FrameWriter::default(),
            events: VecDeque::new(),
            dirty: Vec::new(),
            waiting: Vec::new(),
            turn: 1,
            now: Instant::ZERO,
            serial: 0,
            counts: ReliableCounts::default(),
        }
    }

    /// The transport has a connection with `caller`; this end's capabilities wait to be sent.
    pub fn open(&mut self, now: Instant, caller: Caller, framing: Framing) -> ConnectionId {
        self.now = now;
        self.serial = self.serial.wrapping_add(1).max(1);
        let peer = Peer { session: self.serial, ..Peer::from(caller.address) };
        let times = ConnectionTimes {
            opened: now,
            heard: now,
            partial_since: None,
            sent: now,
            pinged: None,
            notify_again: None,
        };
        let connection = Connection {
            caller,
            peer,
            framing,
            capabilities: None,
            inbound: Vec::new(),
            outbound: Outbound::default(),
            exchanges: 0,
            share: ConnectionShare::NEW,
            observations: HashMap::new(),
            stale: VecDeque::new(),
            requests: HashMap::new(),
            stage: ConnectionStage::Open,
            times,
            timer: None,
            is_dirty: false,
        };
        let id = ConnectionId(self.connections.insert(connection));
        self.counts.opened += 1;
        let options = signal::write_capabilities(self.limits.message_bytes_max);
        self.signal(id, signal::CSM, Token::EMPTY, &options, "");
        self.plan(id);
        id
    }

    /// The transport has lost a connection, or its driver closes it: what was under way ends.
    pub fn handle_end(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.remove(id.0) else { return };
        if let Some((timer, _)) = connection.timer {
            self.timers.cancel(timer);
        }
        self.counts.inbound_bytes -= connection.inbound_bytes();
        self.counts.outbound_bytes -= connection.unsent_bytes();
        let host = connection.peer.host();
        for (token, observation) in &connection.observations {
            self.forget_place(host, (id, *token), &observation.path);
        }
        let mut requests: Vec<RequestId> = connection.requests.into_values().collect();
        requests.sort_unstable_by_key(|request| request.0);
        requests.dedup();
        for request in requests {
            self.asking.requests.remove(request.0);
            let (peer, error) = (connection.peer, RequestError::Disconnected);
            self.events.push_back(EndpointEvent::Failed { request, peer, error });
        }
    }

    /// Bytes for the transport: everything that waits, or one message where the transport keeps messages apart.
    pub fn outgoing(&self, id: ConnectionId) -> &[u8] {
        self.connections.get(id.0).map_or(&[], |connection| connection.outbound.next())
    }

    /// The transport took this many of the [`ReliableEndpoint::outgoing`] bytes.
    pub fn handle_sent(&mut self, now: Instant, id: ConnectionId, count: usize) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let (had, stage) = (connection.unsent_bytes(), connection.stage);
        connection.outbound.handle_sent(count);
        connection.times.sent = now;
        self.counts.outbound_bytes -= had - connection.unsent_bytes();
        let owed = connection.exchanges.saturating_mul(connection.share.answer_bytes);
        let was_full = had.saturating_add(owed) >= self.limits.outbound_bytes_max;
        if was_full
            && !stage.is_over()
            && self.connections.get(id.0).is_some_and(|connection| self.has_room(connection))
        {
            self.handle_room(now, id);
        }
    }

    /// A connection that has something to send or is over; each is told once until it has something new.
    pub fn poll_dirty(&mut self) -> Option<ConnectionId> {
        while let Some(id) = self.dirty.pop() {
            if let Some(connection) = self.connections.get_mut(id.0) {
                connection.is_dirty = false;
                return Some(id);
            }
        }
        None
    }

    /// Whether a connection may be closed once all is sent.
    pub fn is_over(&self, id: ConnectionId) -> bool {
        self.connections.get(id.0).is_none_or(|connection| connection.stage.is_over())
    }

    /// Whether a connection is to be closed at once, because its other end takes nothing.
    pub fn is_lost(&self, id: ConnectionId) -> bool {
        self.connections.get(id.0).is_none_or(|connection| connection.stage == ConnectionStage::Lost)
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<EndpointEvent> {
        self.events.pop_front()
    }

    /// Whether there is an event.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// When [`ReliableEndpoint::handle_timeout`] wants to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Ends connections that are too slow or silent for too long, asks silent ones whether they are there, and tries notifications
    /// again that were put off.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        while let Some(id) = self.timers.fire(now) {
            let Some(connection) = self.connections.get_mut(id) else { continue };
            connection.timer = None;
            let (id, times, limits) = (ConnectionId(id), connection.times, &self.limits);
            let is_slow = times.partial_since.is_some_and(|since| now.since(since) >= limits.message_time_max);
            let is_mute = connection.capabilities.is_none() && now.since(times.opened) >= limits.greeting_max;
            let is_stalled = connection.unsent_bytes() > 0 && now.since(times.sent) >= limits.message_time_max;
            let is_silent = now.since(times.heard) >= limits.idle_max;
            if is_stalled {
                self.counts.timed_out += 1;
                self.lose(id);
                continue;
            }
            if connection.stage.is_over() {
                self.plan(id);
                continue;
            }
            if is_slow || is_mute || is_silent {
                self.counts.timed_out += 1;
                self.finish_connection(id, "too slow");
                continue;
            }
            if now.since(times.heard) >= limits.idle_max / 2 && times.pinged.is_none_or(|at| at < times.heard) {
                connection.times.pinged = Some(now);
                self.signal(id, signal::PING, Token::EMPTY, &[], "");
            }
            self.ask_stale_observations(now, id);
            self.plan(id);
        }
    }

    /// Lets a connection end after what is under way.
    pub fn release(&mut self, id: ConnectionId) {
        self.signal(id, signal::RELEASE, Token::EMPTY, &[], "");
        self.begin_release(id);
    }

    /// The numbers so far.
    pub fn counts(&self) -> ReliableCounts {
        ReliableCounts { connections: self.connections.len(), observers: self.serving.observers, ..self.counts }
    }

    /// The client of an exchange.
    pub fn caller(&self, exchange: ExchangeId) -> Option<&Caller> {
        let exchange = self.serving.exchanges.get(exchange.0)?;
        self.connections.get(exchange.connection.0).map(|connection| &connection.caller)
    }

    /// Takes the buffers of a request back.
    pub fn recycle(&mut self, request: RequestBuf) {
        self.serving.spare.put_request(request);
    }

    /// Sets the timer of a connection to the first of its deadlines; it may fire early.
    fn plan(&mut self, id: ConnectionId) {
        let limits = self.limits;
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let times = &connection.times;
        if connection.stage.is_over() && connection.unsent_bytes() == 0 {
            return;
        }
        let silence =
            if times.pinged.is_some_and(|at| at >= times.heard) { limits.idle_max } else { limits.idle_max / 2 };
        let mut at = times.heard + silence;
        if connection.capabilities.is_none() {
            at = at.min(times.opened + limits.greeting_max);
        }
        if let Some(since) = times.partial_since {
            at = at.min(since + limits.message_time_max);
        }
        if let Some(again) = times.notify_again {
            at = at.min(again);
        }
        if connection.stage.is_over() {
            at = times.sent + limits.message_time_max;
        } else if connection.unsent_bytes() > 0 {
            at = at.min(times.sent + limits.message_time_max);
        }
        match connection.timer {
            Some((_, set)) if set <= at => return,
            Some((timer, _)) => self.timers.cancel(timer),
            None => {}
        }
        connection.timer = Some((self.timers.set(at, id.0), at));
    }

    fn signal(&mut self, id: ConnectionId, code: Code, token: Token, options: &[u8], diagnosis: &str) {
        let message = ReliableMessage { options: Options::new(options), ..signal::plain(code, token, diagnosis) };
        self.send(id, &message);
    }

    fn send(&mut self, id: ConnectionId, message: &ReliableMessage<'_>) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let framing = connection.framing;
        let bytes = connection.outbound.push(framing, |out| self.writer.message(out, framing, message));
        self.note_pushed(id, bytes);
        self.counts.sent += 1;
        self.mark_dirty(id);
    }

    fn mark_dirty(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        if !std::mem::replace(&mut connection.is_dirty, true) {
            self.dirty.push(id);
        }
    }

    /// Ends a connection because of what came, and says why.
    fn abort(&mut self, id: ConnectionId, why: &str, bad_option: Option<OptionNumber>) {
        self.counts.aborted += 1;
        let options = bad_option.map(signal::write_bad_csm_option).unwrap_or_default();
        self.signal(id, signal::ABORT, Token::EMPTY, &options, why);
        self.mark_over(id);
    }

    fn finish_connection(&mut self, id: ConnectionId, why: &str) {
        self.signal(id, signal::ABORT, Token::EMPTY, &[], why);
        self.mark_over(id);
    }

    fn mark_over(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id.0).filter(|one| one.stage != ConnectionStage::Lost) else {
            return;
        };
        connection.stage = ConnectionStage::Over;
        self.counts.inbound_bytes -= connection.drop_inbound();
        self.mark_dirty(id);
        self.plan(id);
    }

    fn begin_release(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        if connection.stage == ConnectionStage::Open {
            connection.stage = ConnectionStage::Releasing;
        }
        self.close_if_released(id);
    }

    /// A connection that is to end does so when nothing is under way.
    fn close_if_released(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let is_done = match connection.stage {
            ConnectionStage::Releasing => connection.requests.is_empty(),
            ConnectionStage::Ending => !connection.has_message(),
            ConnectionStage::Open | ConnectionStage::Over | ConnectionStage::Lost => false,
        };
        if is_done && connection.exchanges == 0 {
            self.mark_over(id);
        }
    }
}
