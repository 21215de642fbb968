//! A view of a domain by the Foxglove WebSocket protocol: Foxglove and Lichtblick list its topics, whatever their types, and show what is
//! written to them, as it is on the wire.
#![forbid(unsafe_code)]

mod client;
pub mod decoders;
pub mod protocol;
mod queue;
pub mod switchboard;
mod visitors;

pub use switchboard::{Switchboard, ViewSummary};
pub use visitors::Visitors;

#[cfg(test)]
mod tests;
