//! Both ends with sockets, threads and the clock.

mod channel;
mod client;
mod datagrams;
mod links;
mod meter;
mod received;
mod round_trips;
mod sent;
mod server;
mod tcp;
mod workers;

pub use client::{ClientOptions, measure};
pub use server::{ProbeServer, ProbeServerOptions, Repeat};

#[cfg(test)]
mod tests;
