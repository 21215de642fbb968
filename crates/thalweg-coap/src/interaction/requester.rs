//! A client of one server, whatever the transport.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::client::{Client, ClientError};
use super::streams::StreamClient;
use crate::credentials::Credentials;
use crate::endpoint::{Config, Confirmability, EndpointEvent, RequestId};
use crate::identity::Transport;
use crate::message::{RequestBuf, Response};
use crate::oscore::Context;

/// A client that asks one server over any transport.
pub struct Requester {
    server: SocketAddr,
    path: Path,
}

enum Path {
    Datagrams(Box<Client>),
    Stream(Box<StreamClient>),
}

impl Requester {
    /// A client of the server at `server`, which it calls `host`. Where the transport has connections, one is made in at
    /// most `time`.
    ///
    /// # Errors
    /// As [`Client::open`], [`Client::open_secure`] and [`StreamClient::connect`].
    pub fn open(
        transport: Transport,
        server: SocketAddr,
        host: &str,
        credentials: &Credentials,
        time: Duration,
    ) -> Result<Requester, ClientError> {
        let config = Config::default();
        let path = match transport {
            Transport::Udp => Path::Datagrams(Box::new(Client::open(server, config)?)),
            Transport::Dtls => Path::Datagrams(Box::new(Client::open_secure(server, host, config, credentials)?)),
            Transport::Tcp | Transport::Tls | Transport::WebSocket | Transport::SecureWebSocket => {
                Path::Stream(Box::new(StreamClient::connect(server, host, transport, credentials, time)?))
            }
        };
        Ok(Requester { server, path })
    }

    /// Protects all further requests by OSCORE; false where the transport cannot carry such requests here.
    #[must_use]
    pub fn protect(&mut self, context: Arc<Context>) -> bool {
        match &mut self.path {
            Path::Datagrams(client) => {
                client.protect(context);
                true
            }
            Path::Stream(_) => false,
        }
    }

    /// Begins a request; its outcome comes from [`Requester::next`]. Over connections all requests are delivered, whatever
    /// `delivery` says.
    ///
    /// # Errors
    /// When it cannot be sent now.
    pub fn send(&mut self, request: RequestBuf, delivery: Confirmability) -> Result<RequestId, ClientError> {
        match &mut self.path {
            Path::Datagrams(client) => client.send(self.server, request, delivery),
            Path::Stream(client) => client.send(request),
        }
    }

    /// Asks whether the server is there; the answer is [`EndpointEvent::Pong`].
    ///
    /// # Errors
    /// As [`Requester::send`].
    pub fn ping(&mut self) -> Result<RequestId, ClientError> {
        match &mut self.path {
            Path::Datagrams(client) => client.ping(self.server),
            Path::Stream(client) => client.ping(),
        }
    }

    /// Ends a registration or a request.
    pub fn cancel(&mut self, request: RequestId) {
        match &mut self.path {
            Path::Datagrams(client) => client.cancel(request),
            Path::Stream(client) => client.cancel(request),
        }
    }

    /// The next thing that happens, `None` when nothing does within `time`.
    ///
    /// # Errors
    /// When the transport fails.
    pub fn next(&mut self, time: Duration) -> Result<Option<EndpointEvent>, ClientError> {
        match &mut self.path {
            Path::Datagrams(client) => client.next(time),
            Path::Stream(client) => client.next(time),
        }
    }

    /// Asks and waits for the answer, at most `time`.
    ///
    /// # Errors
    /// When none came, or the transport failed.
    pub fn exchange(
        &mut self,
        request: RequestBuf,
        delivery: Confirmability,
        time: Duration,
    ) -> Result<Response, ClientError> {
        match &mut self.path {
            Path::Datagrams(client) => client.exchange(self.server, request, delivery, time),
            Path::Stream(client) => client.exchange(request, time),
        }
    }
}
