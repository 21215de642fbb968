//! Addresses as RTPS writes them, and what datagrams to them may hold.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Destination of a datagram: transport kind, port and address (RTPS 2.5 §9.3.2.4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Locator {
    /// 1 = UDPv4, 2 = UDPv6; others belong to vendors.
    pub kind: i32,
    /// UDP port.
    pub port: u32,
    /// IPv6 address, or twelve zero bytes and an IPv4 address.
    pub address: [u8; 16],
}

impl Locator {
    /// Kind of a UDP over IPv4 locator.
    pub const UDP_V4: i32 = 1;
    /// Kind of a UDP over IPv6 locator.
    pub const UDP_V6: i32 = 2;

    /// The UDP address, or `None` for other kinds and impossible ports.
    pub fn socket_address(&self) -> Option<SocketAddr> {
        let port = u16::try_from(self.port).ok().filter(|port| *port != 0)?;
        let address = match self.kind {
            Locator::UDP_V4 => {
                let [.., a, b, c, d] = self.address;
                IpAddr::V4(Ipv4Addr::new(a, b, c, d))
            }
            Locator::UDP_V6 => IpAddr::V6(Ipv6Addr::from(self.address)),
            _ => return None,
        };
        Some(SocketAddr::new(address, port))
    }

    /// True for multicast addresses of either family.
    pub fn is_multicast(&self) -> bool {
        self.socket_address().is_some_and(|address| address.ip().is_multicast())
    }
}

impl From<SocketAddr> for Locator {
    fn from(address: SocketAddr) -> Locator {
        let (kind, bytes) = match address.ip() {
            IpAddr::V4(ip) => {
                let mut bytes = [0; 16];
                bytes[12..].copy_from_slice(&ip.octets());
                (Locator::UDP_V4, bytes)
            }
            IpAddr::V6(ip) => (Locator::UDP_V6, ip.octets()),
        };
        Locator { kind, port: u32::from(address.port()), address: bytes }
    }
}

impl fmt::Display for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.socket_address() {
            Some(address) => write!(f, "udp/{address}"),
            None => write!(f, "locator kind {} port {}", self.kind, self.port),
        }
    }
}

impl fmt::Debug for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Payload of a UDP datagram within one host: just below the 65,507 bytes that UDP allows.
pub const ON_HOST_DATAGRAM_BYTES: usize = 65_000;
/// Payload of a UDP datagram in one Ethernet frame: 1500 less the headers of IPv4 and UDP.
pub const ETHERNET_V4_DATAGRAM_BYTES: usize = 1472;
/// The same over IPv6.
pub const ETHERNET_V6_DATAGRAM_BYTES: usize = 1452;
