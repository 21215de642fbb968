//! Whom a message came from or goes to.

use std::fmt;
use std::net::SocketAddr;

/// The other end of an exchange: an address and a port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Peer {
    /// The source address of its datagrams.
    pub address: SocketAddr,
    /// Which of the sessions at this address it is, where there are sessions; 0 without one. A new session is a new peer:
    /// nothing that the one before it asked, observes or was answered concerns it.
    pub session: u32,
}

impl Peer {
    /// Whether this is a group of hosts.
    pub fn is_multicast(&self) -> bool {
        self.address.ip().is_multicast()
    }
}

impl<A: Into<SocketAddr>> From<A> for Peer {
    fn from(address: A) -> Peer {
        Peer { address: address.into(), session: 0 }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(formatter)
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
