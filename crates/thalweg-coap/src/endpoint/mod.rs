//! The message layer of CoAP for client and server, without I/O.
//!
//! An `Endpoint` is driven like this, all times being the driver's `now`, read once for a batch of datagrams:
//!
//! - `handle_datagram(now, peer, bytes)`, `handle_multicast(now, peer, bytes)`: a datagram arrived.
//! - `handle_timeout(now)`: the instant that `poll_timeout()` gave has come.
//! - `poll_event() -> Option<Event>`: what happened; a server answers each `Event::Request` by
//!   `respond(now, exchange, response)`, at once or later, and may `recycle(request)`.
//! - `notify(now, path)`: a resource changed; its observers' requests come as `Event::Request` again.
//! - `request(now, peer, request, delivery) -> Result<RequestId, RequestError>`, `ping(now, peer)`,
//!   `cancel(now, request)`: the client's side.
//! - `poll_transmit(&mut outbox) -> bool`: fills the outbox with all datagrams that are ready.

mod config;
mod event;
mod outbox;
mod peer;

pub use config::{Config, Limits, ObserveConfig, Times};
pub use event::{Delivery, Event, ExchangeGone, ExchangeId, RequestError, RequestId};
pub use outbox::{Outbox, Transmit};
pub use peer::Peer;
