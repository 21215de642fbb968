//! A CoAP client that waits for its answers.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_transport::batch::{BatchOptions, BatchScratch, BatchSocket, Departure, Waker};
use thalweg_transport::clock;

use super::held_events::HeldEvents;
use crate::credentials::Credentials;
use crate::dtls::{ClientSession, ClockOrigin, DtlsError, SessionState};
use crate::endpoint::{
    CoapOutbox, Config, Confirmability, Counters, Endpoint, EndpointEvent, Peer, RequestError, RequestId,
};
use crate::message::{RequestBuf, Response};
use crate::oscore::Context;

/// A client with a socket of its own, driven by the thread that asks.
pub struct Client {
    socket: BatchSocket,
    endpoint: Endpoint,
    outbox: CoapOutbox,
    scratch: BatchScratch,
    protection: Option<Arc<Context>>,
    security: Option<Box<Security>>,
    /// What came for other requests during [`Client::exchange`].
    held: HeldEvents,
}

/// The DTLS session below the requests of a client.
struct Security {
    server: SocketAddr,
    session: ClientSession,
}

/// Why a client got no answer.
#[derive(Debug)]
pub enum ClientError {
    /// The socket failed.
    System(io::Error),
    /// The protocol could not bring an answer.
    Request(RequestError),
    /// The caller's time was over.
    TimedOut(Duration),
    /// There is no DTLS session.
    Session(DtlsError),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::System(error) => write!(f, "the client's socket failed: {error}"),
            ClientError::Request(error) => error.fmt(f),
            ClientError::Session(error) => write!(f, "{error}; have both ends the same credentials?"),
            ClientError::TimedOut(time) => {
                write!(f, "no answer within {time:?}; is the server running and reachable, or does it need longer?")
            }
        }
    }
}

impl std::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ClientError::System(error) => Some(error),
            ClientError::Request(error) => Some(error),
            ClientError::Session(error) => Some(error),
            ClientError::TimedOut(_) => None,
        }
    }
}

impl Client {
    /// A client that reaches servers with addresses of the family of `server`.
    ///
    /// # Errors
    /// When the system gives no socket.
    pub fn open(server: SocketAddr, config: Config) -> Result<Client, ClientError> {
        let any: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let opened = || {
            let options =
                BatchOptions { datagram_bytes: DATAGRAM_BYTES, hears_refusals: true, ..BatchOptions::default() };
            Ok((BatchSocket::bind((any, 0).into(), &options)?, Endpoint::new(config, super::secret()?)))
        };
        let (socket, endpoint) = opened().map_err(ClientError::System)?;
        let (outbox, scratch) = (CoapOutbox::default(), BatchScratch::default());
        let (protection, security, held) = (None, None, HeldEvents::default());
        Ok(Client { socket, endpoint, outbox, scratch, protection, security, held })
    }

    /// A client of one server, which it calls `host`, over DTLS (`coaps`). The handshake goes on while it waits for answers.
    ///
    /// # Errors
    /// When the system gives no socket, or the credentials are not one pre-shared key, or a certificate and those to believe.
    pub fn open_secure(
        server: SocketAddr,
        host: &str,
        config: Config,
        credentials: &Credentials,
    ) -> Result<Client, ClientError> {
        // Nothing has to be kept small for a server that was chosen by its credentials.
        let mut client = Client::open(server, config)?;
        let now = clock::now();
        let session = ClientSession::connect(credentials, host, ClockOrigin::at(now), now);
        client.security = Some(Box::new(Security { server, session: session.map_err(ClientError::Session)? }));
        Ok(client)
    }

    /// Protects all further requests with the keys of `context` (OSCORE, RFC 8613) and believes its peer only.
    pub fn protect(&mut self, context: Arc<Context>) {
        self.protection = Some(context);
    }

    /// Begins a request; its outcome comes from [`Client::next`].
    ///
    /// # Errors
    /// When the protocol does not allow it now.
    pub fn send(
        &mut self,
        server: SocketAddr,
        request: RequestBuf,
        delivery: Confirmability,
    ) -> Result<RequestId, ClientError> {
        let (now, peer) = (clock::now(), Peer::from(server));
        let sent = match &self.protection {
            Some(context) => self.endpoint.request_protected(now, peer, request, delivery, context),
            None => self.endpoint.request(now, peer, request, delivery),
        };
        sent.map_err(ClientError::Request)
    }

    /// The same with the keys of `context` for this request alone.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub fn send_protected(
        &mut self,
        server: SocketAddr,
        request: RequestBuf,
        delivery: Confirmability,
        context: &Arc<Context>,
    ) -> Result<RequestId, ClientError> {
        let sent = self.endpoint.request_protected(clock::now(), Peer::from(server), request, delivery, context);
        sent.map_err(ClientError::Request)
    }

    /// Asks whether the server is there (RFC 7252 §4.3); the answer is [`EndpointEvent::Pong`].
    ///
    /// # Errors
    /// As [`Client::send`].
    pub fn ping(&mut self, server: SocketAddr) -> Result<RequestId, ClientError> {
        self.endpoint.ping(clock::now(), Peer::from(server)).map_err(ClientError::Request)
    }

    /// Ends a registration or a request.
    pub fn cancel(&mut self, request: RequestId) {
        self.held.forget(request);
        self.endpoint.cancel(clock::now(), request);
        self.transmit();
    }

    /// Counters of the protocol.
    pub fn counters(&self) -> Counters {
        self.endpoint.counters()
    }

    /// Lets other threads end a [`Client::next`].
    pub fn waker(&self) -> Waker {
        self.socket.waker()
    }

    /// The next thing that happens, `None` when nothing does within `time` or a [`Client::waker`] was used. What came during
    /// [`Client::exchange`] for other requests is first.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn next(&mut self, time: Duration) -> Result<Option<EndpointEvent>, ClientError> {
        match self.held.pop() {
            Some(event) => Ok(Some(event)),
            None => self.next_until(clock::now() + time),
        }
    }

    fn next_until(&mut self, deadline: Instant) -> Result<Option<EndpointEvent>, ClientError> {
        loop {
            self.socket.receive().map_err(ClientError::System)?;
            let now = clock::now();
            while let Some(address) = self.socket.next_refusal() {
                self.endpoint.handle_unreachable(now, Peer::from(address));
            }
            while let Some(arrived) = self.socket.next_arrival() {
                match &mut self.security {
                    None => self.endpoint.handle_datagram(now, Peer::from(arrived.source), arrived.bytes),
                    Some(security) if security.server == arrived.source => {
                        security.session.handle_datagram(now, arrived.bytes);
                    }
                    Some(_) => {}
                }
            }
            self.handle_session(now)?;
            if self.endpoint.poll_timeout().is_some_and(|due| due <= now) {
                self.endpoint.handle_timeout(now);
            }
            self.transmit();
            if let Some(event) = self.endpoint.poll_event() {
                return Ok(Some(event));
            }
            if now >= deadline {
                return Ok(None);
            }
            if !self.socket.is_ready() {
                let session = self.security.as_ref().and_then(|security| security.session.poll_timeout());
                let due = self.endpoint.poll_timeout().into_iter().chain(session).fold(deadline, Instant::min);
                let woken = self.socket.wait(Some(due)).map_err(ClientError::System)?;
                if woken.woken {
                    return Ok(None);
                }
            }
        }
    }

    /// Asks and waits for the answer, at most `time`. What comes meanwhile for other requests waits for [`Client::next`], the latest
    /// 256 events with 8 MiB of bodies.
    ///
    /// # Errors
    /// When none came, or the socket failed.
    pub fn exchange(
        &mut self,
        server: SocketAddr,
        request: RequestBuf,
        delivery: Confirmability,
        time: Duration,
    ) -> Result<Response, ClientError> {
        let deadline = clock::now() + time;
        let asked = self.send(server, request, delivery)?;
        loop {
            match self.next_until(deadline)? {
                Some(EndpointEvent::Response { request, response, .. }) if request == asked => return Ok(response),
                Some(EndpointEvent::Failed { request, error, .. }) if request == asked => {
                    return Err(ClientError::Request(error));
                }
                Some(other) => self.held.push(other),
                None if clock::now() >= deadline => break,
                None => {}
            }
        }
        self.cancel(asked);
        Err(ClientError::TimedOut(time))
    }

    /// Hands what the session opened to the endpoint.
    fn handle_session(&mut self, now: Instant) -> Result<(), ClientError> {
        let Some(security) = &mut self.security else { return Ok(()) };
        let session = &mut security.session;
        session.handle_timeout(now);
        for plain in session.take_plain() {
            self.endpoint.handle_datagram(now, Peer::from(security.server), &plain);
        }
        match session.state() {
            SessionState::Failed(error) => Err(ClientError::Session(error.clone())),
            SessionState::Closed => Err(ClientError::Session(DtlsError::closed())),
            SessionState::Handshake | SessionState::Established => Ok(()),
        }
    }

    fn transmit(&mut self) {
        self.endpoint.poll_transmit(&mut self.outbox);
        if let Some(security) = &mut self.security {
            let now = clock::now();
            self.outbox.iter().for_each(|transmit| security.session.send(now, transmit.bytes));
            let sealed = security.session.take_outgoing();
            let departures =
                sealed.iter().map(|bytes| Departure { to: security.server, from: None, bytes: bytes.as_slice() });
            self.socket.send(&mut self.scratch, departures);
            return self.outbox.clear();
        }
        let departures = self.outbox.iter().map(|transmit| Departure {
            to: transmit.peer.address,
            from: None,
            bytes: transmit.bytes,
        });
        self.socket.send(&mut self.scratch, departures);
        self.outbox.clear();
    }
}

/// The server learns at once that the session is over.
impl Drop for Client {
    fn drop(&mut self) {
        if let Some(security) = &mut self.security {
            security.session.close();
            self.transmit();
        }
    }
}

/// The largest UDP datagram: a server may send more than it has to be ready for.
const DATAGRAM_BYTES: usize = 65_535;
