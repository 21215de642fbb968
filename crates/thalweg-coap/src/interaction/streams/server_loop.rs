//! A server's loop for all connections over reliable transports: one thread, however many there are.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use thalweg_base::time::Instant;
use thalweg_transport::clock;

use super::StreamsConfig;
use super::conduit::{Conduit, Heard};
use super::link::{Link, list, send_direct, send_layered};
use super::tls::TlsServer;
use super::web::WebLayer;
use crate::credentials::Credentials;
use crate::endpoint::reliable::{ReliableCounts, ReliableEndpoint};
use crate::endpoint::slab::{Slab, index_of};
use crate::endpoint::{Peer, PeerHost};
use crate::identity::{Caller, Transport};
use crate::interaction::adapter::Adapter;
use crate::interaction::counts::LoopCounts;
use crate::interaction::receiver::Shared;
use crate::interaction::renewal::RenewalReader;

/// An address that is listened at.
pub(in crate::interaction) struct Listener {
    pub(in crate::interaction) socket: TcpListener,
    pub(in crate::interaction) transport: Transport,
    pub(in crate::interaction) tls: Option<TlsServer>,
}

/// The loop with its connections.
pub(in crate::interaction) struct StreamLoop {
    poll: Poll,
    listeners: Vec<Listener>,
    endpoint: ReliableEndpoint,
    adapter: Adapter,
    limits: StreamsConfig,
    renewal: RenewalReader,
    links: Slab<Link>,
    /// The link of each connection, at the connection's place.
    link_of: Vec<u64>,
    hosts: HashMap<PeerHost, usize>,
    /// Links whose sockets may have more to read.
    readable: Vec<u64>,
    counts: LoopCounts,
    told: Arc<Mutex<ReliableCounts>>,
    /// When listeners are asked again, after the system had no descriptor for a connection.
    accept_at: Option<Instant>,
    /// When handshakes that take long are looked for again.
    look_at: Instant,
}

/// What becomes of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Stays,
    Ends,
}

impl StreamLoop {
    /// A loop for these listeners.
    ///
    /// # Errors
    /// When the system gives no descriptor.
    pub(in crate::interaction) fn new(
        poll: Poll,
        mut listeners: Vec<Listener>,
        endpoint: ReliableEndpoint,
        adapter: Adapter,
        (limits, renewal): (StreamsConfig, RenewalReader),
        told: Arc<Mutex<ReliableCounts>>,
    ) -> io::Result<StreamLoop> {
        for (place, listener) in listeners.iter_mut().enumerate() {
            poll.registry().register(&mut listener.socket, Token(place), Interest::READABLE)?;
        }
        Ok(StreamLoop {
            poll,
            listeners,
            endpoint,
            adapter,
            limits,
            renewal,
            links: Slab::new(),
            link_of: Vec::new(),
            hosts: HashMap::new(),
            readable: Vec::new(),
            counts: LoopCounts::default(),
            told,
            accept_at: None,
            look_at: Instant::ZERO,
        })
    }

    /// Serves until the server is over.
    ///
    /// # Errors
    /// When the wait fails.
    pub(in crate::interaction) fn run(mut self, shared: &Shared) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_MAX);
        let mut buffer = vec![0; READ_BYTES].into_boxed_slice();
        while !shared.is_over.load(Ordering::Relaxed) {
            let now = clock::now();
            self.turn(now, &mut buffer);
            *shared.counts.lock().unwrap_or_else(PoisonError::into_inner) = self.counts;
            *self.told.lock().unwrap_or_else(PoisonError::into_inner) = self.endpoint.counts();
            let home = &shared.homes[shared.home];
            // A connection that ended while answers were sent leaves events.
            let is_idle = self.readable.is_empty() && !self.endpoint.has_events() && !self.endpoint.has_waiting();
            let may_sleep = is_idle && home.may_sleep();
            let is_over = shared.is_over.load(Ordering::SeqCst);
            let time = if may_sleep && !is_over { self.sleep_time() } else { Some(Duration::ZERO) };
            match self.poll.poll(&mut events, time) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            if may_sleep {
                home.has_slept();
            }
            let now = clock::now();
            for event in &events {
                self.handle_event(now, event);
            }
        }
        Ok(())
    }

    fn sleep_time(&self) -> Option<Duration> {
        let handshakes = (self.links.len() > self.endpoint.counts().connections).then(|| clock::now() + LOOK_PERIOD);
        let deadlines = self.endpoint.poll_timeout().into_iter().chain(self.accept_at).chain(handshakes);
        deadlines.min().map(|at| at.since(clock::now()))
    }

    fn handle_event(&mut self, now: Instant, event: &Event) {
        let Token(token) = event.token();
        if token < self.listeners.len() {
            return self.accept(now, token);
        }
        let Some(place) = token.checked_sub(FIRST_LINK).and_then(|place| u32::try_from(place).ok()) else { return };
        let Some((id, _)) = self.links.at(place) else { return };
        let Some(link) = self.links.get_mut(id) else { return };
        link.is_writable |= event.is_writable();
        link.is_ending |= event.is_read_closed() || event.is_error();
        if (event.is_readable() || event.is_read_closed() || event.is_error()) && !link.is_readable {
            link.is_readable = true;
            list(&mut self.readable, id, link);
        }
        if event.is_writable() {
            self.flush(now, id);
        }
    }

    /// Takes what has arrived, and sends what is ready.
    fn turn(&mut self, now: Instant, buffer: &mut [u8]) {
        if self.accept_at.is_some_and(|at| at <= now) {
            self.accept_at = None;
            (0..self.listeners.len()).for_each(|place| self.accept(now, place));
        }
        if let Some(credentials) = self.renewal.poll() {
            self.set_credentials(credentials);
        }
        self.adapter.begin_batch();
        self.endpoint.begin_turn(now);
        for id in std::mem::take(&mut self.readable) {
            self.read(now, id, buffer);
        }
        self.adapter.handle_inbox(now, &mut self.endpoint, &mut self.counts);
        if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
        }
        self.end_slow_handshakes(now);
        self.adapter.handle_events(now, &mut self.endpoint, &mut self.counts);
        // Answers make room for further requests, which are handled with the next turn.
        while let Some(connection) = self.endpoint.poll_dirty() {
            let Some(id) = self.link_of.get(index_of(connection.place()) as usize).copied() else { continue };
            self.flush(now, id);
            if self.links.get(id).is_some_and(|link| !link.conduit.is_direct()) && self.pass_on(now, id) == Fate::Ends {
                self.end(id);
            }
            // What was left unread for want of room may be read now.
            if let Some(link) = self.links.get_mut(id)
                && link.is_readable
                && self.endpoint.wants_input(connection)
            {
                list(&mut self.readable, id, link);
            }
        }
    }

    /// Uses other credentials for new connections. Where others are believed, those with TLS end and prove themselves anew.
    fn set_credentials(&mut self, credentials: Credentials) {
        for listener in self.listeners.iter_mut().filter(|listener| listener.tls.is_some()) {
            match TlsServer::new(&credentials, listener.transport) {
                Ok(tls) => listener.tls = Some(tls),
                Err(error) => tracing::warn!(%error, "the new credentials of TLS cannot be used; the old ones hold"),
            }
        }
        if self.limits.credentials.trust != credentials.trust {
            let secure: Vec<u64> =
                self.links.iter().filter(|(_, link)| link.transport.is_secure()).map(|(id, _)| id).collect();
            secure.into_iter().for_each(|id| self.end(id));
        }
        self.limits.credentials = credentials;
    }

    fn accept(&mut self, now: Instant, place: usize) {
        loop {
            match self.listeners[place].socket.accept() {
                Ok((socket, address)) => self.admit(now, place, socket, address),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    // Without descriptors the listener stays ready, and only time helps.
                    tracing::warn!(%error, "a connection cannot be accepted");
                    self.accept_at = Some(now + ACCEPT_PAUSE);
                    return;
                }
            }
        }
    }

    fn admit(&mut self, now: Instant, place: usize, socket: TcpStream, address: SocketAddr) {
        let host = Peer::from(address).host();
        let of_host = self.hosts.get(&host).copied().unwrap_or(0);
        if self.links.len() >= self.limits.connections_max || of_host >= self.limits.connections_per_host_max {
            self.counts.limited += 1;
            return; // Dropping the socket closes it.
        }
        let listener = &self.listeners[place];
        let Ok(tls) = listener.tls.as_ref().map(TlsServer::accept).transpose() else { return };
        let is_web = matches!(listener.transport, Transport::WebSocket | Transport::SecureWebSocket);
        let web = is_web.then(|| WebLayer::accept(self.limits.limits.message_bytes_max));
        let transport = listener.transport;
        if socket.set_nodelay(true).is_err() {
            return; // It is gone already.
        }
        let id = self.links.insert(Link {
            socket,
            conduit: Conduit::new(tls, web),
            transport,
            address,
            opened_at: now,
            connection: None,
            layered: Vec::new(),
            taken: 0,
            is_readable: true,
            is_writable: true,
            is_ending: false,
            is_listed: false,
        });
        *self.hosts.entry(host).or_default() += 1;
        let token = Token(FIRST_LINK + index_of(id) as usize);
        let Some(link) = self.links.get_mut(id) else { return };
        let interest = Interest::READABLE | Interest::WRITABLE;
        if self.poll.registry().register(&mut link.socket, token, interest).is_err() {
            return self.end(id);
        }
        list(&mut self.readable, id, link);
        self.open_if_ready(now, id);
        self.flush(now, id);
    }

    /// Opens the connection of a link whose handshakes are complete.
    fn open_if_ready(&mut self, now: Instant, id: u64) {
        let Some(link) = self.links.get_mut(id) else { return };
        if link.connection.is_some() || link.conduit.is_handshaking() {
            return;
        }
        let session = link.conduit.identity().map(Arc::new);
        let caller = Caller { session, ..Caller::anonymous(link.address, link.transport) };
        let connection = self.endpoint.open(now, caller, link.conduit.framing());
        link.connection = Some(connection);
        let place = index_of(connection.place()) as usize;
        if self.link_of.len() <= place {
            self.link_of.resize(place + 1, u64::MAX);
        }
        self.link_of[place] = id;
    }

    /// Reads from a socket while there is something and the connection wants it, once a turn.
    fn read(&mut self, now: Instant, id: u64, buffer: &mut [u8]) {
        if let Some(link) = self.links.get_mut(id) {
            link.is_listed = false;
        }
        // What layers have opened comes first.
        if self.links.get(id).is_some_and(|link| !link.conduit.is_direct()) && self.pass_on(now, id) == Fate::Ends {
            return self.end(id);
        }
        let Some(link) = self.links.get_mut(id) else { return };
        if link.connection.is_some_and(|connection| !self.endpoint.wants_input(connection)) {
            return; // It is told when there is room.
        }
        if link.is_full() {
            return; // It is listed again when the other end has taken something.
        }
        self.counts.receive_calls += 1;
        // Fragments and controls of WebSocket are small, and all that are read are looked at.
        let bytes_max = if link.conduit.is_direct() { buffer.len() } else { LAYERED_READ_BYTES };
        let buffer = &mut buffer[..bytes_max];
        let fate = match link.socket.read(buffer) {
            Ok(0) => self.handle_input_end(now, id),
            Ok(count) => {
                if count == buffer.len() || link.is_ending {
                    list(&mut self.readable, id, link);
                } else {
                    // Edge-triggered: a read that did not fill the buffer has emptied the socket, or the next one is told.
                    link.is_readable = false;
                }
                self.handle_bytes(now, id, &buffer[..count])
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                link.is_readable = false;
                Fate::Stays
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                list(&mut self.readable, id, link);
                Fate::Stays
            }
            Err(_) => Fate::Ends,
        };
        if fate == Fate::Ends {
            self.end(id);
        }
    }

    /// The other end sends nothing more. Over TCP alone it may still wait for answers; layers say so before in their own words, and
    /// then for both directions.
    fn handle_input_end(&mut self, now: Instant, id: u64) -> Fate {
        let Some(link) = self.links.get_mut(id) else { return Fate::Stays };
        link.is_readable = false;
        match link.connection.filter(|_| link.conduit.is_direct()) {
            Some(connection) => {
                self.endpoint.handle_input_end(now, connection);
                Fate::Stays
            }
            None => Fate::Ends,
        }
    }

    fn handle_bytes(&mut self, now: Instant, id: u64, bytes: &[u8]) -> Fate {
        let Some(link) = self.links.get_mut(id) else { return Fate::Stays };
        if let Some(connection) = link.connection.filter(|_| link.conduit.is_direct()) {
            let before = self.endpoint.counts().received;
            self.endpoint.handle_bytes(now, connection, bytes);
            self.counts.received += self.endpoint.counts().received - before;
            return Fate::Stays;
        }
        let handled = link.conduit.handle(bytes);
        self.open_if_ready(now, id);
        let fate = self.pass_on(now, id);
        self.flush(now, id);
        if handled.is_ok() { fate } else { Fate::Ends }
    }

    /// Passes on what layers have opened, while the connection wants it, and tells what they still hold.
    fn pass_on(&mut self, now: Instant, id: u64) -> Fate {
        let Some(link) = self.links.get_mut(id) else { return Fate::Stays };
        let Some(connection) = link.connection else { return Fate::Stays };
        while self.endpoint.wants_input(connection) {
            let Ok(heard) = link.conduit.next() else { return Fate::Ends };
            let before = self.endpoint.counts().received;
            match heard {
                None => break,
                Some(Heard::Control) => self.endpoint.handle_control(connection),
                Some(Heard::Bytes(bytes)) => self.endpoint.handle_bytes(now, connection, &bytes),
            }
            self.counts.received += self.endpoint.counts().received - before;
        }
        self.endpoint.handle_partial(now, connection, link.conduit.waiting_bytes());
        Fate::Stays
    }

    /// Sends what is ready as far as the socket takes it; a connection that is over ends then.
    fn flush(&mut self, now: Instant, id: u64) {
        let Some(link) = self.links.get_mut(id) else { return };
        let sent = match link.conduit.is_direct() {
            true => send_direct(&mut self.endpoint, now, link, &mut self.counts),
            false => send_layered(&mut self.endpoint, now, link, &mut self.counts),
        };
        if link.is_readable && !link.is_full() && !link.conduit.is_direct() {
            list(&mut self.readable, id, link);
        }
        let is_sent = link.unsent_bytes() == 0;
        let is_over = link.connection.is_some_and(|connection| {
            self.endpoint.is_over(connection) && self.endpoint.outgoing(connection).is_empty() && is_sent
        });
        let is_lost = link.connection.is_some_and(|connection| self.endpoint.is_lost(connection));
        if sent.is_err() || is_over || is_lost {
            self.end(id);
        }
    }

    /// Ends links whose handshakes take too long.
    fn end_slow_handshakes(&mut self, now: Instant) {
        if self.links.len() == self.endpoint.counts().connections || now < self.look_at {
            return;
        }
        self.look_at = now + LOOK_PERIOD;
        let time_max = self.limits.limits.greeting_max;
        let is_slow = |link: &Link| link.connection.is_none() && now.since(link.opened_at) >= time_max;
        let slow: Vec<u64> = self.links.iter().filter(|(_, link)| is_slow(link)).map(|(id, _)| id).collect();
        slow.into_iter().for_each(|id| self.end(id));
    }

    fn end(&mut self, id: u64) {
        let Some(mut link) = self.links.remove(id) else { return };
        if let Some(connection) = link.connection {
            self.endpoint.handle_end(connection);
        }
        let host = Peer::from(link.address).host();
        if let Some(count) = self.hosts.get_mut(&host) {
            *count -= 1;
            if *count == 0 {
                self.hosts.remove(&host);
            }
        }
        link.conduit.close();
        if link.conduit.take(&mut link.layered).is_ok() {
            // Whether the other end still hears it makes no difference.
            let _ = link.socket.write(&link.layered[link.taken..]);
        }
        let _ = self.poll.registry().deregister(&mut link.socket);
    }
}

/// The token of the first link; those below it are listeners and the waker.
const FIRST_LINK: usize = 64;
/// Listeners of a loop: a transport has one or two addresses.
pub(in crate::interaction) const LISTENERS_MAX: usize = 32;
/// The token of what ends the sleep of the loop.
pub(in crate::interaction) const WAKER: Token = Token(LISTENERS_MAX);
/// Events of one wait.
const EVENTS_MAX: usize = 1024;
/// Bytes of one read: a turn takes no more from a connection, so that others get theirs.
const READ_BYTES: usize = 64 << 10;
/// The same behind TLS or WebSocket.
const LAYERED_READ_BYTES: usize = 16 << 10;
/// Between looks at handshakes that take long.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// Time without new connections after the system had no descriptor for one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
