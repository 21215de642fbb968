//! Socket addresses in the kernel's layout, read and written as bytes.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// Address family of a socket or address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// UDP over IPv4.
    V4,
    /// UDP over IPv6.
    V6,
}

impl Family {
    /// The family of `address`.
    pub fn of(address: &IpAddr) -> Family {
        if address.is_ipv4() { Family::V4 } else { Family::V6 }
    }

    /// The address that stands for all of this family.
    pub(crate) fn any(self) -> IpAddr {
        match self {
            Family::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Family::V6 => Ipv6Addr::UNSPECIFIED.into(),
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Family::V4 { "IPv4" } else { "IPv6" })
    }
}

/// Room for a `sockaddr_in` or a `sockaddr_in6`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(8))]
pub(crate) struct RawAddress([u8; RawAddress::BYTES]);

impl RawAddress {
    /// Size of the larger one, `sockaddr_in6`.
    pub(crate) const BYTES: usize = size_of::<libc::sockaddr_in6>();
    pub(crate) const EMPTY: RawAddress = RawAddress([0; RawAddress::BYTES]);

    pub(crate) fn new(address: SocketAddr) -> RawAddress {
        let mut raw = RawAddress::EMPTY;
        raw.0[2..4].copy_from_slice(&address.port().to_be_bytes());
        match address {
            SocketAddr::V4(v4) => {
                raw.0[..2].copy_from_slice(&family_bytes(libc::AF_INET));
                raw.0[4..8].copy_from_slice(&v4.ip().octets());
            }
            SocketAddr::V6(v6) => {
                raw.0[..2].copy_from_slice(&family_bytes(libc::AF_INET6));
                raw.0[8..24].copy_from_slice(&v6.ip().octets());
                raw.0[24..28].copy_from_slice(&v6.scope_id().to_ne_bytes());
            }
        }
        raw
    }

    /// The address that the kernel stored, or `None` for another family.
    pub(crate) fn socket_address(&self) -> Option<SocketAddr> {
        let [family_0, family_1, port_0, port_1, a, b, c, d, ..] = self.0;
        let port = u16::from_be_bytes([port_0, port_1]);
        match i32::from(u16::from_ne_bytes([family_0, family_1])) {
            libc::AF_INET => Some(SocketAddr::new(Ipv4Addr::new(a, b, c, d).into(), port)),
            libc::AF_INET6 => {
                let address = Ipv6Addr::from(<[u8; 16]>::try_from(&self.0[8..24]).ok()?);
                let scope = u32::from_ne_bytes(<[u8; 4]>::try_from(&self.0[24..28]).ok()?);
                Some(SocketAddr::V6(SocketAddrV6::new(address, port, 0, scope)))
            }
            _ => None,
        }
    }

    pub(crate) fn family(&self) -> Family {
        if i32::from(u16::from_ne_bytes([self.0[0], self.0[1]])) == libc::AF_INET { Family::V4 } else { Family::V6 }
    }

    /// Bytes that the kernel expects for this address.
    pub(crate) fn len(&self) -> libc::socklen_t {
        let bytes = match self.family() {
            Family::V4 => size_of::<libc::sockaddr_in>(),
            Family::V6 => size_of::<libc::sockaddr_in6>(),
        };
        bytes as libc::socklen_t
    }

    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.0.as_ptr()
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }
}

/// `sa_family_t` in the machine's byte order.
fn family_bytes(family: libc::c_int) -> [u8; 2] {
    (family as libc::sa_family_t).to_ne_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_kernel_layout() {
        for text in ["127.0.0.1:7400", "239.255.0.1:65535", "[::1]:7410", "[ff02::ffff:239.255.0.1]:7400"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(RawAddress::new(address).socket_address(), Some(address));
        }
        let scoped = SocketAddr::V6(SocketAddrV6::new("fe80::1".parse().unwrap(), 7, 0, 3));
        assert_eq!(RawAddress::new(scoped).socket_address(), Some(scoped));
        assert_eq!(RawAddress::EMPTY.socket_address(), None);
    }
}
