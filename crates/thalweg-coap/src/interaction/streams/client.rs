//! A CoAP client over TCP, TLS or WebSocket that waits for its answers.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_transport::clock;

use super::conduit::{Conduit, Heard};
use super::tls::TlsLayer;
use super::web::WebLayer;
use crate::credentials::Credentials;
use crate::endpoint::reliable::{ConnectionId, ReliableEndpoint, ReliableLimits};
use crate::endpoint::{EndpointEvent, RequestId};
use crate::identity::{Caller, Transport};
use crate::interaction::client::ClientError;
use crate::interaction::held_events::HeldEvents;
use crate::message::{RequestBuf, Response};

/// A client with a connection to one server, driven by the thread that asks.
pub struct StreamClient {
    socket: TcpStream,
    conduit: Conduit,
    endpoint: ReliableEndpoint,
    connection: ConnectionId,
    outgoing: Vec<u8>,
    is_ended: bool,
    /// What came for other requests during [`StreamClient::exchange`].
    held: HeldEvents,
}

impl StreamClient {
    /// Connects to the server that the client calls `host`, in at most `time`.
    ///
    /// # Errors
    /// When it cannot be reached, does not speak the protocols of `transport`, or is not believed. A server of `coaps+tcp` at
    /// another port than 5684 has to agree on the protocol `coap` (ALPN, RFC 8323 §8.2).
    ///
    /// # Panics
    /// When `transport` is not reliable.
    pub fn connect(
        server: SocketAddr,
        host: &str,
        transport: Transport,
        credentials: &Credentials,
        time: Duration,
    ) -> Result<StreamClient, ClientError> {
        assert!(transport.is_reliable(), "{transport} has a client of its own");
        let deadline = clock::now() + time;
        let limits = ReliableLimits::default();
        let connect = || {
            let tls = || TlsLayer::connect(credentials, host, transport, server.port());
            let tls = transport.is_secure().then(tls).transpose()?;
            let authority = if host.contains(':') {
                format!("[{host}]:{}", server.port())
            } else {
                format!("{host}:{}", server.port())
            };
            let is_web = matches!(transport, Transport::WebSocket | Transport::SecureWebSocket);
            let web = is_web.then(|| WebLayer::connect(&authority, limits.message_bytes_max)).transpose()?;
            let socket = TcpStream::connect_timeout(&server, time)?;
            socket.set_nodelay(true)?;
            Ok((socket, Conduit::new(tls, web)))
        };
        let (socket, conduit) = connect().map_err(ClientError::System)?;
        let secret = crate::interaction::secret().map_err(ClientError::System)?;
        let mut endpoint = ReliableEndpoint::new(limits, secret);
        let framing = conduit.framing();
        let connection = endpoint.open(clock::now(), Caller::anonymous(server, transport), framing);
        let (outgoing, is_ended, held) = (Vec::new(), false, HeldEvents::default());
        let mut client = StreamClient { socket, conduit, endpoint, connection, outgoing, is_ended, held };
        if let Err(error) = client.shake_hands(deadline) {
            // An end that is not believed, or of another protocol, hears nothing of CoAP.
            client.is_ended = true;
            client.conduit.close();
            let _ = client.flush_layers();
            return Err(ClientError::System(error));
        }
        Ok(client)
    }

    fn shake_hands(&mut self, deadline: Instant) -> io::Result<()> {
        loop {
            self.conduit.begin()?;
            self.flush_layers()?;
            if !self.conduit.is_handshaking() {
                return Ok(());
            }
            if !self.read(deadline)? && clock::now() >= deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// Begins a request; its outcome comes from [`StreamClient::next`].
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn send(&mut self, request: RequestBuf) -> Result<RequestId, ClientError> {
        self.endpoint.request(self.connection, request).map_err(ClientError::Request)
    }

    /// Asks whether the server is there; the answer is [`EndpointEvent::Pong`].
    ///
    /// # Errors
    /// As [`StreamClient::send`].
    pub fn ping(&mut self) -> Result<RequestId, ClientError> {
        self.endpoint.ping(self.connection).map_err(ClientError::Request)
    }

    /// Ends a registration or a request.
    pub fn cancel(&mut self, request: RequestId) {
        self.held.forget(request);
        self.endpoint.cancel(request);
        // A connection that is gone has ended it.
        let _ = self.transmit();
    }

    /// The next thing that happens, `None` when nothing does within `time`. What came during [`StreamClient::exchange`] for other
    /// requests is first.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn next(&mut self, time: Duration) -> Result<Option<EndpointEvent>, ClientError> {
        match self.held.pop() {
            Some(event) => Ok(Some(event)),
            None => self.next_until(clock::now() + time),
        }
    }

    fn next_until(&mut self, deadline: Instant) -> Result<Option<EndpointEvent>, ClientError> {
        loop {
            if let Some(event) = self.endpoint.poll_event() {
                return Ok(Some(event));
            }
            if self.endpoint.has_waiting() {
                self.endpoint.begin_turn(clock::now());
                continue;
            }
            self.transmit().map_err(ClientError::System)?;
            let now = clock::now();
            if self.is_ended || now >= deadline {
                return Ok(None);
            }
            if self.endpoint.poll_timeout().is_some_and(|due| due <= now) {
                self.endpoint.handle_timeout(now);
                continue;
            }
            let due = self.endpoint.poll_timeout().map_or(deadline, |due| due.min(deadline));
            if let Err(error) = self.read(due) {
                self.is_ended = true;
                self.endpoint.handle_end(self.connection);
                if error.kind() != io::ErrorKind::UnexpectedEof {
                    return Err(ClientError::System(error));
                }
            }
        }
    }

    /// Asks and waits for the answer, at most `time`. What comes meanwhile for other requests waits for [`StreamClient::next`], the
    /// latest 256 events with 8 MiB of bodies.
    ///
    /// # Errors
    /// When none came, or the connection failed.
    pub fn exchange(&mut self, request: RequestBuf, time: Duration) -> Result<Response, ClientError> {
        let deadline = clock::now() + time;
        let asked = self.send(request)?;
        loop {
            match self.next_until(deadline)? {
                Some(EndpointEvent::Response { request, response, .. }) if request == asked => return Ok(response),
                Some(EndpointEvent::Failed { request, error, .. }) if request == asked => {
                    return Err(ClientError::Request(error));
                }
                Some(other) => self.held.push(other),
                None if self.is_ended || clock::now() >= deadline => break,
                None => {}
            }
        }
        self.cancel(asked);
        Err(ClientError::TimedOut(time))
    }

    /// Sends all that waits.
    fn transmit(&mut self) -> io::Result<()> {
        loop {
            let message = self.endpoint.outgoing(self.connection);
            if message.is_empty() {
                return self.flush_layers();
            }
            let count = message.len();
            self.conduit.wrap(message)?;
            self.endpoint.handle_sent(clock::now(), self.connection, count);
        }
    }

    fn flush_layers(&mut self) -> io::Result<()> {
        self.conduit.take(&mut self.outgoing)?;
        self.socket.write_all(&self.outgoing)?;
        self.outgoing.clear();
        Ok(())
    }

    /// Waits for bytes until `deadline`; false when none came.
    fn read(&mut self, deadline: Instant) -> io::Result<bool> {
        let time = deadline.since(clock::now()).max(Duration::from_micros(1));
        self.socket.set_read_timeout(Some(time))?;
        let mut buffer = [0; 16 << 10];
        let count = match self.socket.read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => count,
            Err(error) => {
                use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
                let is_nothing = matches!(error.kind(), WouldBlock | TimedOut | Interrupted);
                return if is_nothing { Ok(false) } else { Err(error) };
            }
        };
        let handled = self.conduit.handle(&buffer[..count]);
        self.endpoint.begin_turn(clock::now());
        while let Some(heard) = self.conduit.next()? {
            if let Heard::Bytes(bytes) = heard {
                self.endpoint.handle_bytes(clock::now(), self.connection, &bytes);
            }
        }
        self.endpoint.handle_partial(clock::now(), self.connection, self.conduit.waiting_bytes());
        handled.map(|()| true)
    }
}

/// The server learns that the connection is over.
impl Drop for StreamClient {
    fn drop(&mut self) {
        if !self.is_ended {
            self.endpoint.release(self.connection);
            // Whether it can still be said makes no difference.
            let _ = self.transmit();
            self.conduit.close();
            let _ = self.flush_layers();
        }
    }
}
