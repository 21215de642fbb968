//! Whom a message came from or goes to.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

/// The other end of an exchange: an address and a port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Peer {
    /// The source address of its datagrams.
    pub address: SocketAddr,
    /// Which of the sessions at this address it is, where there are sessions; 0 without one. A new session is a new peer:
    /// nothing that the one before it asked, observes or was answered concerns it.
    pub session: u32,
    /// The address of this host that it talks to, where the socket is bound to all of them: what goes back comes from there, and message
    /// IDs and tokens belong to the two together (RFC 7252 §4.4, §5.3.2).
    pub local: Option<IpAddr>,
}

impl Peer {
    /// The same talking to this address of this host.
    #[must_use]
    pub fn at(self, local: Option<IpAddr>) -> Peer {
        Peer { local, ..self }
    }

    /// Where it is, whatever session it has.
    pub(crate) fn place(self) -> Peer {
        Peer { session: 0, ..self }
    }

    /// Whether this is a group of hosts.
    pub fn is_multicast(&self) -> bool {
        self.address.ip().is_multicast()
    }
}

/// Who stands behind a peer: an IPv4 address, or the 64 bits of an IPv6 network, in which one host may take any address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PeerHost {
    is_v4: bool,
    bits: u64,
}

impl Hash for PeerHost {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.bits ^ u64::from(self.is_v4) << 63);
    }
}

impl Peer {
    /// Who stands behind it.
    pub(crate) fn host(&self) -> PeerHost {
        match self.address.ip().to_canonical() {
            IpAddr::V4(ip) => PeerHost { is_v4: true, bits: u64::from(ip.to_bits()) },
            IpAddr::V6(ip) => PeerHost { is_v4: false, bits: (ip.to_bits() >> 64) as u64 },
        }
    }
}

impl<A: Into<SocketAddr>> From<A> for Peer {
    fn from(address: A) -> Peer {
        Peer { address: address.into(), session: 0, local: None }
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
