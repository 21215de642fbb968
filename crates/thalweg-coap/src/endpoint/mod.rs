//! The message layer of CoAP for client and server, without I/O (RFC 7252 §4).
//!
//! An [`Endpoint`] is driven like this; `now` is read once for a batch of datagrams:
//!
//! ```
//! use thalweg_coap::endpoint::{Config, Confirmability, Endpoint, EndpointEvent, CoapOutbox, Peer};
//! use thalweg_coap::message::{RequestBuf, Response, content_format};
//! use thalweg_base::time::Instant;
//!
//! let now = Instant::ZERO;
//! let (here, there) = (Peer::from(([127, 0, 0, 1], 40000)), Peer::from(([127, 0, 0, 1], 5683)));
//! let mut client = Endpoint::new(Config::default(), [1, 2]);
//! let mut server = Endpoint::new(Config::default(), [3, 4]);
//! let mut outbox = CoapOutbox::default();
//!
//! let id = client.request(now, there, RequestBuf::get("/hello"), Confirmability::Confirmable)?;
//! client.poll_transmit(&mut outbox);
//! outbox.iter().for_each(|datagram| server.handle_datagram(now, here, datagram.bytes));
//! while let Some(event) = server.poll_event() {
//!     if let EndpointEvent::Request { exchange, request, .. } = event {
//!         let response = Response::content("hello world", content_format::TEXT);
//!         server.respond(now, exchange, response).expect("it is not answered yet");
//!         server.recycle(request);
//!     }
//! }
//! server.poll_transmit(&mut outbox);
//! outbox.iter().for_each(|datagram| client.handle_datagram(now, there, datagram.bytes));
//! let Some(EndpointEvent::Response { request, response, .. }) = client.poll_event() else { panic!("no response") };
//! assert_eq!((request, &*response.payload), (id, &b"hello world"[..]));
//! # Ok::<(), thalweg_coap::endpoint::RequestError>(())
//! ```

mod admission;
mod answers;
mod asked;
mod bounded;
mod cache;
mod client;
mod config;
mod counters;
mod cutting;
mod delivery;
mod echo;
mod encode;
mod event;
mod exchange;
mod expiry;
mod ids;
mod in_flight;
mod observers;
mod outbox;
mod peer;
mod peers;
mod pending;
mod probing;
mod protected;
mod receive;
mod registrations;
pub mod reliable;
mod response;
mod secret;
mod seen;
mod server;
pub(crate) mod slab;
mod spare;
#[cfg(test)]
mod tests;
pub(crate) mod timers;
mod transfer;

use std::collections::VecDeque;
use std::sync::Arc;

use thalweg_base::rng::Rng;
use thalweg_base::time::Instant;

pub use config::{Config, EndpointLimits, ObserveConfig, Times};
pub use counters::Counters;
pub use event::{Confirmability, EndpointEvent, ExchangeGone, ExchangeId, RequestError, RequestId};
pub use outbox::{CoapOutbox, Transmit};
pub use peer::Peer;
pub(crate) use peer::PeerHost;

use client::Client;
use in_flight::InFlight;
use peers::Peers;
use secret::{EndpointSecret, TableState};
use server::Server;
use spare::Spare;
use timers::Timers;

use crate::oscore::Keyring;

/// Client and server on one port.
#[derive(Debug)]
pub struct Endpoint {
    config: Config,
    secret: EndpointSecret,
    table: TableState,
    rng: Rng,
    peers: Peers,
    timers: Timers<Due>,
    in_flight: InFlight,
    server: Server,
    client: Client,
    events: VecDeque<EndpointEvent>,
    outbox: CoapOutbox,
    spare: Spare,
    counters: Counters,
    /// The keys of clients that may send protected requests.
    keyring: Option<Arc<Keyring>>,
}

/// The purpose of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// A confirmable message is not acknowledged.
    Repeat(u64),
    /// A handler takes long.
    Acknowledge(u64),
    /// A response to a multicast request has waited.
    Leisure(u64),
    /// A notification is to be confirmed.
    Observer(u64),
    /// A request of this endpoint has no answer, or its observation no fresh one.
    Request(u64),
    /// Handlers may have forgotten requests.
    Sweep,
}

/// The destination of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Unicast,
    Multicast,
}

impl Endpoint {
    /// An endpoint without peers. `secret` has to come from the system's entropy: tokens, Echo values and message
    /// IDs follow from it, and peers must not guess them.
    pub fn new(config: Config, secret: [u64; 2]) -> Endpoint {
        let secret = EndpointSecret::new(secret);
        let table = TableState::new(&secret);
        Endpoint {
            secret,
            table,
            rng: Rng::new(secret.hash("pauses and leisure")),
            peers: Peers::new(config.limits.peers_max, table),
            timers: Timers::new(),
            in_flight: InFlight::new(table),
            server: Server::new(&config, table),
            client: Client::new(&config),
            events: VecDeque::new(),
            outbox: CoapOutbox::default(),
            spare: Spare::default(),
            counters: Counters::default(),
            keyring: None,
            config,
        }
    }

    /// Handles a datagram that was sent to this host.
    pub fn handle_datagram(&mut self, now: Instant, peer: Peer, bytes: &[u8]) {
        self.receive(now, peer, bytes, Reach::Unicast);
    }

    /// Handles a datagram that was sent to a group: a non-confirmable request, answered after a random time
    /// (RFC 7252 §8).
    pub fn handle_multicast(&mut self, now: Instant, peer: Peer, bytes: &[u8]) {
        self.receive(now, peer, bytes, Reach::Multicast);
    }

    /// Handles the beginning of a datagram that was sent to this host and was too long to be received whole; a request is
    /// answered with 4.13 Request Entity Too Large.
    pub fn handle_oversized(&mut self, peer: Peer, beginning: &[u8]) {
        self.refuse_oversized(peer, beginning, Reach::Unicast);
    }

    /// Nobody listens at a peer's port, as its host told: requests to it that wait for an answer fail.
    pub fn handle_unreachable(&mut self, now: Instant, peer: Peer) {
        self.fail_unreachable(now, peer);
    }

    /// Carries out the due timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(due) = self.timers.fire(now) {
            match due {
                Due::Repeat(id) => self.handle_silence(now, id),
                Due::Acknowledge(id) => self.acknowledge_slow(id),
                Due::Leisure(id) => {
                    if let Some((peer, bytes)) = self.server.delayed.remove(id) {
                        self.outbox.push(peer, |out| out.extend_from_slice(&bytes));
                        self.spare.put_bytes(bytes);
                    }
                }
                Due::Observer(id) => self.handle_observer_timeout(now, id),
                Due::Request(id) => self.handle_request_timeout(now, id),
                Due::Sweep => self.sweep(now),
            }
        }
    }

    /// The next event.
    #[inline]
    pub fn poll_event(&mut self) -> Option<EndpointEvent> {
        self.events.pop_front()
    }

    /// Replaces the content of `outbox` by the datagrams that are ready; false when there is none.
    pub fn poll_transmit(&mut self, outbox: &mut CoapOutbox) -> bool {
        outbox.clear();
        std::mem::swap(outbox, &mut self.outbox);
        !outbox.is_empty()
    }

    /// When [`Endpoint::handle_timeout`] wants to be called; it does no harm to call it before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// What was counted since the beginning, without what there is at present: costs nothing.
    pub(crate) fn counted(&self) -> &Counters {
        &self.counters
    }

    /// The counters so far.
    pub fn counters(&self) -> Counters {
        Counters {
            peers: self.peers.len(),
            exchanges: self.server.exchanges.len(),
            observers: self.server.observers.len(),
            requests: self.client.len(),
            request_bytes: self.server.request_bytes,
            answer_bytes: self.server.answers_once.cost() + self.server.answers.cost(),
            transfer_bytes: self.server.uploads.bytes() + self.server.bodies.bytes() + self.client.body_bytes(),
            ..self.counters.clone()
        }
    }
}
