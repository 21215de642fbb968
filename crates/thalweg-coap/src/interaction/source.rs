//! Where the requests of a loop come from, as the protocol adapter sees it.

use thalweg_base::time::Instant;

use crate::dtls::Sessions;
use crate::endpoint::reliable::ReliableEndpoint;
use crate::endpoint::{Endpoint, EndpointEvent, ExchangeId, Peer};
use crate::identity::{Caller, Transport};
use crate::message::{OptionNumber, RequestBuf, Response};

/// Gives requests and takes their answers.
pub(super) trait RequestSource {
    /// The next event.
    fn poll_event(&mut self) -> Option<EndpointEvent>;

    /// Answers a request; a client that has given up meanwhile gets nothing.
    fn answer(&mut self, now: Instant, exchange: ExchangeId, response: Response);

    /// Leaves a request without an answer, and puts a notification off.
    fn abandon(&mut self, now: Instant, exchange: ExchangeId);

    /// Takes the buffers of a request back.
    fn recycle(&mut self, request: RequestBuf);

    /// The resource at `path` changed.
    fn notify(&mut self, now: Instant, path: &str);

    /// Who asks.
    fn caller(&self, exchange: ExchangeId, peer: Peer) -> Caller;

    /// Whether a request was sent to a group of hosts.
    fn is_for_group(&self, _exchange: ExchangeId) -> bool {
        false
    }

    /// Whether the client did not ask now: its registration does, since the resource changed.
    fn is_notification(&self, exchange: ExchangeId) -> bool;

    /// Whether a request may wait for its handler, or is better refused at once.
    fn may_wait(&self, _exchange: ExchangeId) -> bool {
        true
    }

    /// The critical option of a request that only a proxy may go on with.
    fn unread_option(&self, exchange: ExchangeId) -> Option<OptionNumber>;
}

/// Requests over UDP.
impl RequestSource for Endpoint {
    #[inline]
    fn poll_event(&mut self) -> Option<EndpointEvent> {
        Endpoint::poll_event(self)
    }

    #[inline]
    fn answer(&mut self, now: Instant, exchange: ExchangeId, response: Response) {
        let _ = self.respond(now, exchange, response);
    }

    fn abandon(&mut self, now: Instant, exchange: ExchangeId) {
        Endpoint::abandon(self, now, exchange);
    }

    #[inline]
    fn recycle(&mut self, request: RequestBuf) {
        Endpoint::recycle(self, request);
    }

    fn notify(&mut self, now: Instant, path: &str) {
        Endpoint::notify(self, now, path);
    }

    #[inline]
    fn caller(&self, exchange: ExchangeId, peer: Peer) -> Caller {
        let oscore = self.oscore_context(exchange);
        let has_proved_address = self.has_proved_address(exchange);
        Caller { address: peer.address, transport: Transport::Udp, session: None, oscore, has_proved_address }
    }

    fn is_for_group(&self, exchange: ExchangeId) -> bool {
        Endpoint::is_for_group(self, exchange)
    }

    fn is_notification(&self, exchange: ExchangeId) -> bool {
        Endpoint::is_notification(self, exchange)
    }

    fn may_wait(&self, exchange: ExchangeId) -> bool {
        Endpoint::may_wait(self, exchange)
    }

    #[inline]
    fn unread_option(&self, exchange: ExchangeId) -> Option<OptionNumber> {
        Endpoint::unread_option(self, exchange)
    }
}

/// Requests over reliable transports.
impl RequestSource for ReliableEndpoint {
    fn poll_event(&mut self) -> Option<EndpointEvent> {
        ReliableEndpoint::poll_event(self)
    }

    fn answer(&mut self, now: Instant, exchange: ExchangeId, response: Response) {
        let _ = self.respond(now, exchange, response);
    }

    fn abandon(&mut self, now: Instant, exchange: ExchangeId) {
        ReliableEndpoint::abandon(self, now, exchange);
    }

    fn recycle(&mut self, request: RequestBuf) {
        ReliableEndpoint::recycle(self, request);
    }

    fn notify(&mut self, now: Instant, path: &str) {
        ReliableEndpoint::notify(self, now, path);
    }

    fn caller(&self, exchange: ExchangeId, peer: Peer) -> Caller {
        // The answer to one whose connection is gone reaches nobody.
        let gone = || Caller::anonymous(peer.address, Transport::Tcp);
        ReliableEndpoint::caller(self, exchange).cloned().unwrap_or_else(gone)
    }

    fn is_notification(&self, exchange: ExchangeId) -> bool {
        ReliableEndpoint::is_notification(self, exchange)
    }

    fn unread_option(&self, exchange: ExchangeId) -> Option<OptionNumber> {
        ReliableEndpoint::unread_option(self, exchange)
    }
}

/// Requests over DTLS.
pub(super) struct SecureSource<'a> {
    pub(super) endpoint: &'a mut Endpoint,
    pub(super) sessions: &'a Sessions,
}

impl RequestSource for SecureSource<'_> {
    fn poll_event(&mut self) -> Option<EndpointEvent> {
        self.endpoint.poll_event()
    }

    fn answer(&mut self, now: Instant, exchange: ExchangeId, response: Response) {
        let _ = self.endpoint.respond(now, exchange, response);
    }

    fn abandon(&mut self, now: Instant, exchange: ExchangeId) {
        self.endpoint.abandon(now, exchange);
    }

    fn recycle(&mut self, request: RequestBuf) {
        self.endpoint.recycle(request);
    }

    fn notify(&mut self, now: Instant, path: &str) {
        self.endpoint.notify(now, path);
    }

    fn caller(&self, exchange: ExchangeId, peer: Peer) -> Caller {
        let (session, oscore) = (self.sessions.identity(peer), self.endpoint.oscore_context(exchange));
        Caller { address: peer.address, transport: Transport::Dtls, session, oscore, has_proved_address: true }
    }

    fn is_notification(&self, exchange: ExchangeId) -> bool {
        self.endpoint.is_notification(exchange)
    }

    fn may_wait(&self, exchange: ExchangeId) -> bool {
        self.endpoint.may_wait(exchange)
    }

    fn unread_option(&self, exchange: ExchangeId) -> Option<OptionNumber> {
        self.endpoint.unread_option(exchange)
    }
}
