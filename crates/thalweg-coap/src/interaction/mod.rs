//! The paper's interaction layer: datagrams in, handlers, datagrams out.
//!
//! ```text
//! network receiver ── endpoint ── protocol adapter ──┬─ inline: answered in the same batch
//!        │                                           └─ handler pool of the class ── send handler ─┐
//!        └─────────────────────────── one system call for ready answers ◄──────────────────────────┘
//! ```
//!
//! - [`server`] puts it together; [`client`] asks.
//! - [`handler`] says what answers requests and where it runs, [`routes`] which handler a path leads to.
//! - [`guard`] says what requests have to prove, [`rate_limit`] bounds the requests of one host.

mod adapter;
mod backlog;
pub mod client;
pub mod counts;
mod gate;
pub mod guard;
pub mod handler;
mod handler_pool;
mod held_events;
mod line;
mod pause;
pub mod rate_limit;
mod receiver;
mod renewal;
pub mod requester;
pub mod routes;
mod send_handler;
pub mod server;
mod sockets;
mod source;
pub mod streams;
mod terms;
#[cfg(test)]
mod tests;
mod turns;

/// The secret of an endpoint's tokens and message IDs.
fn secret() -> std::io::Result<[u64; 2]> {
    Ok([thalweg_transport::entropy::seed()?, thalweg_transport::entropy::seed()?])
}
