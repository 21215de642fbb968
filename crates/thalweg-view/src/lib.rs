//! A view of a domain by the Foxglove WebSocket protocol: Foxglove and Lichtblick list its topics, whatever their types, and show what is
//! written to them, as it is on the wire.
//!
//! [`View`] joins both sides. `topics` looks at the domain, `server` has the sockets on one thread, and the [`Switchboard`] between them
//! is the protocol: channels, clients and what waits for each of them, without I/O.
#![forbid(unsafe_code)]

mod client;
pub mod decoders;
mod definitions;
pub mod protocol;
mod queue;
mod server;
mod socket;
pub mod switchboard;
mod topics;
mod view;
mod visitors;

pub use switchboard::{Switchboard, ViewSummary};
pub use view::{View, ViewNews, ViewOptions};
pub use visitors::Visitors;

#[cfg(test)]
mod tests;
