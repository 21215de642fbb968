//! Network interfaces of this network namespace, and news about them.

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// One address of one interface.
pub(crate) struct InterfaceAddress {
    /// The interface's name; with an IPv4 address, its label where it has one, such as `eth0:1`.
    pub(crate) name: String,
    pub(crate) index: u32,
    pub(crate) flags: u32,
    /// Address and netmask.
    pub(crate) address: Option<(IpAddr, Option<IpAddr>)>,
}

/// The list that `getifaddrs` allocates; freed on drop.
struct List(*mut libc::ifaddrs);

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: the pointer came from getifaddrs and is freed once, here.
        unsafe { libc::freeifaddrs(self.0) };
    }
}

/// Every interface, once for each of its addresses and once for its link layer.
pub(crate) fn addresses() -> io::Result<Vec<InterfaceAddress>> {
    let mut head = std::ptr::null_mut();
    // SAFETY: `head` is a live place for the pointer that the call returns.
    let result = unsafe { libc::getifaddrs(&raw mut head) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let list = List(head);
    let mut found = Vec::new();
    let mut next = list.0;
    // SAFETY: `next` is null or a node of the list, which stays allocated until `list` is dropped.
    while let Some(node) = unsafe { next.as_ref() } {
        next = node.ifa_next;
        // SAFETY: ifa_name is a NUL-terminated string that belongs to the list.
        let name = unsafe { CStr::from_ptr(node.ifa_name) };
        // SAFETY: `name` is NUL-terminated and live.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        found.push(InterfaceAddress {
            name: name.to_string_lossy().into_owned(),
            index,
            flags: node.ifa_flags,
            address: read_address(node.ifa_addr).map(|address| (address, read_address(node.ifa_netmask))),
        });
    }
    Ok(found)
}

/// MTU of an interface of this network namespace, which `/sys` need not show.
pub(crate) fn mtu(name: &str) -> Option<u32> {
    // SAFETY: ifreq is plain data (bytes and integers) for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero: the name ends within the field.
    let (_, field) = request.ifr_name.split_last_mut()?;
    for (place, byte) in field.get_mut(..name.len())?.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers are involved.
    let descriptor = unsafe { libc::socket(libc::AF_INET, kind, 0) };
    // A host without IPv4 answers the same question on the other family's sockets.
    // SAFETY: no pointers are involved.
    let descriptor = if descriptor < 0 { unsafe { libc::socket(libc::AF_INET6, kind, 0) } } else { descriptor };
    if descriptor < 0 {
        return None;
    }
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    // SAFETY: `request` is a live ifreq with a NUL-terminated name, which the call fills.
    let result = unsafe { libc::ioctl(descriptor.as_raw_fd(), libc::SIOCGIFMTU, &raw mut request) };
    if result != 0 {
        return None;
    }
    // SAFETY: a successful SIOCGIFMTU has filled this member of the union.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    u32::try_from(mtu).ok()
}

fn read_address(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: the kernel's list gives null or a live address that starts with its family.
    let family = unsafe { address.as_ref() }?.sa_family;
    match i32::from(family) {
        libc::AF_INET => {
            // SAFETY: an AF_INET address is a sockaddr_in; read_unaligned asks for no alignment.
            let v4 = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: an AF_INET6 address is a sockaddr_in6; read_unaligned asks for no alignment.
            let v6 = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

/// A netlink socket that becomes readable when a link or an address changes.
pub(crate) struct Watcher(OwnedFd);

impl Watcher {
    pub(crate) fn new() -> io::Result<Watcher> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no pointers are involved.
        let descriptor = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        // SAFETY: sockaddr_nl is plain data for which all zeroes is a valid value.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        address.nl_groups = (libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR) as u32;
        let len = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        // SAFETY: `address` is a live sockaddr_nl of `len` bytes.
        let result = unsafe { libc::bind(descriptor.as_raw_fd(), (&raw const address).cast(), len) };
        if result == 0 { Ok(Watcher(descriptor)) } else { Err(io::Error::last_os_error()) }
    }

    /// Throws the queued news away; the caller enumerates anew, which also covers news that overflowed.
    pub(crate) fn drain(&self) {
        let mut buffer = [0u8; 4096];
        loop {
            // SAFETY: `buffer` is live and of the stated length.
            let read =
                unsafe { libc::recv(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT) };
            let overflowed = || io::Error::last_os_error().raw_os_error() == Some(libc::ENOBUFS);
            if read <= 0 && !overflowed() {
                return;
            }
        }
    }
}

impl AsFd for Watcher {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
