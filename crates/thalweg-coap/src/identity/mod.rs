//! Who asks, as handlers and access rules see it, and the rules.

mod access;
mod subject;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

pub use access::{AccessRule, AccessRules, AccessTarget, Methods, RuleError, Who};
pub(crate) use access::{BAD_ESCAPE, depth_of, is_root, unescaped};
pub(crate) use subject::read as read_subject;

use crate::oscore::Context;

/// The client of a request: where it is, how it came, and what it has proved.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Its address. Over plain UDP it may be forged.
    pub address: SocketAddr,
    /// The transport of the request.
    pub transport: Transport,
    /// What it proved when its DTLS or TLS session began; `None` where there is no session, and for a TLS client without a
    /// certificate.
    pub session: Option<Arc<SessionIdentity>>,
    /// The OSCORE context with which the request itself is protected (RFC 8613).
    pub oscore: Option<Arc<Context>>,
    /// Whether it is at its address: it has a connection or a session, is on this host, or sent back what only this address was
    /// told (RFC 9175 §2.3).
    pub has_proved_address: bool,
}

impl Caller {
    /// A client that has proved nothing but what its transport does: that it is at its address, unless that is UDP.
    pub fn anonymous(address: SocketAddr, transport: Transport) -> Caller {
        Caller { address, transport, session: None, oscore: None, has_proved_address: transport != Transport::Udp }
    }

    /// Whether it has proved who it is.
    pub fn is_known(&self) -> bool {
        self.session.is_some() || self.oscore.is_some()
    }
}

/// How messages travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transport {
    /// `coap`: UDP (RFC 7252).
    Udp,
    /// `coaps`: DTLS over UDP (RFC 7252 §9).
    Dtls,
    /// `coap+tcp`: TCP (RFC 8323).
    Tcp,
    /// `coaps+tcp`: TLS over TCP (RFC 8323).
    Tls,
    /// `coap+ws`: WebSocket (RFC 8323).
    WebSocket,
    /// `coaps+ws`: WebSocket over TLS (RFC 8323).
    SecureWebSocket,
}

impl Transport {
    /// All of them.
    pub const ALL: [Transport; 6] = [
        Transport::Udp,
        Transport::Dtls,
        Transport::Tcp,
        Transport::Tls,
        Transport::WebSocket,
        Transport::SecureWebSocket,
    ];

    /// The scheme of its URIs.
    pub const fn scheme(self) -> &'static str {
        match self {
            Transport::Udp => "coap",
            Transport::Dtls => "coaps",
            Transport::Tcp => "coap+tcp",
            Transport::Tls => "coaps+tcp",
            Transport::WebSocket => "coap+ws",
            Transport::SecureWebSocket => "coaps+ws",
        }
    }

    /// The port of URIs without one (RFC 7252 §12.6, RFC 8323 §8).
    pub const fn default_port(self) -> u16 {
        match self {
            Transport::Udp | Transport::Tcp => 5683,
            Transport::Dtls | Transport::Tls => 5684,
            Transport::WebSocket => 80,
            Transport::SecureWebSocket => 443,
        }
    }

    /// Whether nobody on the way can read or change messages.
    pub const fn is_secure(self) -> bool {
        matches!(self, Transport::Dtls | Transport::Tls | Transport::SecureWebSocket)
    }

    /// Whether messages need no acknowledgements of CoAP's own.
    pub const fn is_reliable(self) -> bool {
        !matches!(self, Transport::Udp | Transport::Dtls)
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.scheme())
    }
}

/// What a client proved at the beginning of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionIdentity {
    /// It has the key of this identity.
    PresharedKey(Vec<u8>),
    /// It has the key of a certificate that a trusted one signed.
    Certificate {
        /// The subject, such as `CN=device-1,O=Works` (RFC 4514).
        subject: String,
    },
}

impl fmt::Display for SessionIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionIdentity::PresharedKey(identity) => {
                write!(formatter, "psk:{}", String::from_utf8_lossy(identity).escape_debug())
            }
            SessionIdentity::Certificate { subject } => write!(formatter, "subject:{}", subject.escape_debug()),
        }
    }
}
