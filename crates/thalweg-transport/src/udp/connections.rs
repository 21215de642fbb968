//! Sockets that are connected to one destination on this host each: the kernel then looks the route up once, not with each
//! datagram, which saves a tenth of what sending a small one costs.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::socket::UdpSocket;

/// Connections of one participant. Only to loopback: their source port is not the one that peers know, and between hosts a
/// firewall may let answers in only to a port that it has seen data leave from.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    entries: Vec<Entry>,
    /// Counts the sends.
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    to: SocketAddr,
    /// `None` where it could not be opened, so that it is not tried with each datagram.
    socket: Option<Arc<UdpSocket>>,
    used: u64,
}

/// Connections of one participant at most: more readers on one host than this are sent to by `sendmmsg`, to which it matters
/// less.
const CONNECTIONS_MAX: usize = 8;
/// Sends after which a connection that none of them used makes room for another.
const IDLE_SENDS: u64 = 1_000;

impl Connections {
    /// The socket connected to `to`, which `open` makes when there is none yet; `None` when it has to go without.
    pub(super) fn get(
        &self,
        to: SocketAddr,
        open: impl FnOnce(SocketAddr) -> Option<UdpSocket>,
    ) -> Option<Arc<UdpSocket>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.clock += 1;
        let now = known.clock;
        if let Some(entry) = known.entries.iter_mut().find(|entry| entry.to == to) {
            entry.used = now;
            return entry.socket.clone();
        }
        if known.entries.len() >= CONNECTIONS_MAX {
            known.entries.retain(|entry| now - entry.used < IDLE_SENDS);
        }
        if known.entries.len() >= CONNECTIONS_MAX {
            return None;
        }
        let socket = open(to).map(Arc::new);
        known.entries.push(Entry { to, socket: socket.clone(), used: now });
        socket
    }

    /// Closes all: the addresses that they were opened with may be gone.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn connections_are_few_and_those_in_use_stay() {
        let (connections, opened) = (Connections::default(), Cell::new(0));
        let to = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let get = |port| {
            connections.get(to(port), |to| {
                opened.set(opened.get() + 1);
                UdpSocket::connected(to, 1 << 16).ok()
            })
        };
        let first = get(1000).unwrap();
        assert!(Arc::ptr_eq(&first, &get(1000).unwrap()));
        (1001..1008).for_each(|port| assert!(get(port).is_some()));
        assert!(get(1008).is_none() && opened.get() == 8);
        (0..IDLE_SENDS).for_each(|_| drop(get(1000)));
        assert!(get(1008).is_some(), "those that nobody used have made room");
        assert!(Arc::ptr_eq(&first, &get(1000).unwrap()));
        connections.clear();
        assert!(!Arc::ptr_eq(&first, &get(1000).unwrap()));
    }
}
