//! One socket of a server's loop, and what is sent through it.

use std::io::{self, Write};
use std::net::SocketAddr;

use mio::net::TcpStream;
use thalweg_base::time::Instant;

use super::conduit::Conduit;
use crate::endpoint::reliable::{ConnectionId, ReliableEndpoint};
use crate::identity::Transport;
use crate::interaction::counts::LoopCounts;

/// One socket.
pub(super) struct Link {
    pub(super) socket: TcpStream,
    pub(super) conduit: Conduit,
    pub(super) transport: Transport,
    pub(super) address: SocketAddr,
    pub(super) opened_at: Instant,
    /// `None` before the handshakes of TLS and WebSocket are complete.
    pub(super) connection: Option<ConnectionId>,
    /// Bytes for the socket that layers have made, and how many of them it took.
    pub(super) layered: Vec<u8>,
    pub(super) taken: usize,
    pub(super) is_readable: bool,
    /// It is among those to be read.
    pub(super) is_listed: bool,
    pub(super) is_writable: bool,
    /// The other end sends nothing more: the end is read like bytes, and not told again.
    pub(super) is_ending: bool,
}

impl Link {
    /// Bytes that its layers have made and the other end has not taken.
    pub(super) fn unsent_bytes(&self) -> usize {
        self.layered.len() - self.taken
    }

    /// Whether its layers have made more than the other end takes: answers to pings, too, are nothing that may pile up.
    pub(super) fn is_full(&self) -> bool {
        self.unsent_bytes() >= LAYERED_MAX
    }
}

/// Has a link read with the next turn.
pub(super) fn list(readable: &mut Vec<u64>, id: u64, link: &mut Link) {
    if !std::mem::replace(&mut link.is_listed, true) {
        readable.push(id);
    }
}

/// Sends messages as they are.
pub(super) fn send_direct(
    endpoint: &mut ReliableEndpoint,
    now: Instant,
    link: &mut Link,
    counts: &mut LoopCounts,
) -> io::Result<()> {
    let Some(connection) = link.connection else { return Ok(()) };
    while link.is_writable {
        let bytes = endpoint.outgoing(connection);
        if bytes.is_empty() {
            break;
        }
        counts.send_calls += 1;
        let len = bytes.len();
        match link.socket.write(bytes) {
            Ok(count) => {
                link.is_writable = count == len;
                endpoint.handle_sent(now, connection, count);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => link.is_writable = false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Sends messages through the layers; not more of them than fit into what waits already, which counts as what waits in the
/// endpoint.
pub(super) fn send_layered(
    endpoint: &mut ReliableEndpoint,
    now: Instant,
    link: &mut Link,
    counts: &mut LoopCounts,
) -> io::Result<()> {
    let mut taken = 0;
    loop {
        if let Some(connection) = link.connection {
            wrap(endpoint, connection, link)?;
        }
        link.conduit.take(&mut link.layered)?;
        if link.unsent_bytes() == 0 || !link.is_writable {
            break;
        }
        counts.send_calls += 1;
        match link.socket.write(&link.layered[link.taken..]) {
            Ok(count) => (link.taken, taken) = (link.taken + count, taken + count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => link.is_writable = false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if link.unsent_bytes() == 0 {
            link.layered.clear();
            link.taken = 0;
        }
    }
    if let Some(connection) = link.connection {
        endpoint.handle_layered(now, connection, link.unsent_bytes(), taken);
    }
    Ok(())
}

/// Gives messages to the layers while they may hold more.
fn wrap(endpoint: &mut ReliableEndpoint, connection: ConnectionId, link: &mut Link) -> io::Result<()> {
    while !link.is_full() {
        let message = endpoint.outgoing(connection);
        if message.is_empty() {
            break;
        }
        let count = message.len().min(link.conduit.part_max());
        link.conduit.wrap(&message[..count])?;
        link.conduit.take(&mut link.layered)?;
        endpoint.handle_wrapped(connection, count);
    }
    Ok(())
}

/// Bytes behind TLS or WebSocket that wait for a socket.
const LAYERED_MAX: usize = 64 << 10;
