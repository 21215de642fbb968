//! Agents: other machines take part in a scenario.
//!
//! The controller starts an agent on each machine by the user's `ssh` and talks with it over its standard input and output, one message
//! of JSON a line. An agent starts, hears and ends workers on its machine, and ends itself with its standard input.

mod clock;
mod connection;
mod error;
mod folder;
mod message;
mod pipe;
mod probes;
mod session;
mod ssh;

pub(crate) use clock::ClockFit;
pub(crate) use connection::Connection;
pub(crate) use error::AgentError;
pub(crate) use message::WorkerOrder;
pub(crate) use probes::{ClockProbes, socket_to};
pub use session::serve;
pub use ssh::SshCommand;

#[cfg(test)]
mod tests;
