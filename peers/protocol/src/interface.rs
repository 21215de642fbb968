//! The network interface of a process.

use std::ffi::CStr;
use std::net::Ipv4Addr;
use std::{io, ptr};

/// A network interface and the IPv4 address that is used of it: some middleware is told the one, some the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    pub address: Ipv4Addr,
}

impl Interface {
    /// The interface of this name with its first address. `any` means all of them, as the middleware chooses by itself; Fast DDS
    /// alone understands that.
    pub fn named(name: &str) -> Result<Interface, String> {
        if name == "any" {
            return Ok(Interface { name: name.to_owned(), address: Ipv4Addr::UNSPECIFIED });
        }
        let found = all()?.into_iter().find(|interface| interface.name == name);
        found.ok_or_else(|| format!("no interface {name} of this host has an IPv4 address: see `ip address`"))
    }

    /// The interface with this address; the address 0.0.0.0 is that of `any`.
    pub fn with_address(address: Ipv4Addr) -> Result<Interface, String> {
        if address.is_unspecified() {
            return Ok(Interface { name: "any".to_owned(), address });
        }
        let found = all()?.into_iter().find(|interface| interface.address == address);
        found.ok_or_else(|| format!("no interface of this host has the address {address}: see `ip address`"))
    }

    /// Whether it leads to this host alone.
    pub fn is_loopback(&self) -> bool {
        self.address.is_loopback()
    }
}

/// Every interface with each of its IPv4 addresses.
fn all() -> Result<Vec<Interface>, String> {
    let mut first = ptr::null_mut();
    // SAFETY: on success the call stores the head of a list, which is freed below.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(format!("the interfaces of this host are not told: {}", io::Error::last_os_error()));
    }
    let (mut out, mut next) = (Vec::new(), first);
    // SAFETY: the list's entries, their names and their addresses live until it is freed; an address of the family
    // AF_INET is a `sockaddr_in`.
    unsafe {
        while let Some(entry) = next.as_ref() {
            next = entry.ifa_next;
            let family = entry.ifa_addr.as_ref().map(|address| i32::from(address.sa_family));
            if family == Some(libc::AF_INET) {
                let address = entry.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned();
                let name = CStr::from_ptr(entry.ifa_name).to_string_lossy().into_owned();
                out.push(Interface { name, address: Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)) });
            }
        }
        libc::freeifaddrs(first);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::Interface;

    #[test]
    fn the_loopback_interface_is_found_by_name_and_by_address() {
        let expect = Interface { name: "lo".to_owned(), address: Ipv4Addr::LOCALHOST };
        assert_eq!(Interface::named("lo"), Ok(expect.clone()));
        assert_eq!(Interface::with_address(Ipv4Addr::LOCALHOST), Ok(expect.clone()));
        assert!(expect.is_loopback());
    }

    #[test]
    fn what_is_not_there_is_named() {
        let error = Interface::named("eth99").expect_err("not there");
        assert!(error.contains("no interface eth99"), "{error}");
        // Of the range for documentation (RFC 5737).
        let error = Interface::with_address(Ipv4Addr::new(192, 0, 2, 1)).expect_err("not there");
        assert!(error.contains("192.0.2.1"), "{error}");
    }
}
