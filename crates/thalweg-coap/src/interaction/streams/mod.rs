//! CoAP over TCP, TLS and WebSocket: the layers between a socket and a [`ReliableEndpoint`], a server's loop for all
//! connections, and a client.
//!
//! [`ReliableEndpoint`]: crate::endpoint::reliable::ReliableEndpoint

mod client;
mod conduit;
mod link;
mod server_loop;
#[cfg(test)]
mod tests;
mod tls;
mod unfinished;
mod web;

use std::net::SocketAddr;

pub use client::StreamClient;
pub(super) use server_loop::{LISTENERS_MAX, Listener, StreamLoop, WAKER};
pub(super) use tls::TlsServer;

use crate::credentials::Credentials;
use crate::endpoint::reliable::ReliableLimits;
use crate::identity::Transport;

/// Addresses for requests over reliable transports.
#[derive(Clone, Debug)]
pub struct StreamsConfig {
    /// Where to listen, and how; port 0 lets the system choose.
    pub listeners: Vec<(Transport, SocketAddr)>,
    /// A certificate, for listeners with TLS.
    pub credentials: Credentials,
    /// Bounds of the protocol.
    pub limits: ReliableLimits,
    /// Connections of all listeners; further ones are closed at once. Default 16,384.
    pub connections_max: usize,
    /// Connections of one host. Default 4,096: a quarter, so that no single host takes them all.
    pub connections_per_host_max: usize,
}

impl StreamsConfig {
    /// No listeners, and the default bounds.
    pub fn new(credentials: Credentials) -> StreamsConfig {
        StreamsConfig {
            listeners: Vec::new(),
            credentials,
            limits: ReliableLimits::default(),
            connections_max: 16_384,
            connections_per_host_max: 4096,
        }
    }
}

/// Reads where to listen, and how: `coap+tcp://ADDRESS:PORT`, or another transport with connections.
///
/// # Errors
/// What should be written.
pub fn parse_listener(text: &str) -> Result<(Transport, SocketAddr), String> {
    let found = text.split_once("://").and_then(|(scheme, address)| {
        let transport = Transport::ALL.into_iter().find(|one| one.is_reliable() && one.scheme() == scheme)?;
        Some((transport, address.trim_end_matches('/').parse().ok()?))
    });
    found.ok_or_else(|| "write coap+tcp://ADDRESS:PORT, or coaps+tcp, coap+ws or coaps+ws before the colon".to_owned())
}
