//! Agents: other hosts take part in a scenario.
//!
//! An agent starts, hears and ends workers on its host for one controller at a time. They communicate over TCP, apart from the measured traffic.
//! Both prove that they have the same key, and every message carries a number and a proof of its own; messages are not secret.

mod clock;
mod connection;
mod folder;
mod key;
mod machines;
mod message;
mod probes;
mod remote;
mod server;
mod session;
mod wire;

pub mod frames;
pub mod seal;

pub use clock::{ClockFit, Probe};
pub(crate) use connection::Connection;
pub use key::{AgentKey, default_key_file};
pub(crate) use machines::{Machines, Place};
pub(crate) use message::{HostFacts, WorkerOrder};
pub(crate) use probes::ClockProbes;
pub(crate) use remote::RemoteWorker;
pub use server::{Agent, Tell};

/// Whether these bytes are something that a controller or an agent could say, once they were shown to come from it.
pub fn understands(content: &[u8]) -> bool {
    serde_json::from_slice::<wire::Greeting>(content).is_ok()
        || serde_json::from_slice::<message::Request>(content).is_ok()
        || serde_json::from_slice::<message::Event>(content).is_ok()
}

#[cfg(test)]
mod tests;
