//! Options of multicast that `socket2` offers for one family or not at all.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};

use super::address::{Family, RawAddress};

/// Hears what `source` sends to `group` on the interface with this index (RFC 3678 §5.1.2); 0 leaves the interface to the system.
pub(crate) fn join_source(socket: BorrowedFd<'_>, group: IpAddr, source: IpAddr, interface: u32) -> io::Result<()> {
    let level = if Family::of(&group) == Family::V4 { libc::IPPROTO_IP } else { libc::IPPROTO_IPV6 };
    let request =
        libc::group_source_req { gsr_interface: interface, gsr_group: storage(group), gsr_source: storage(source) };
    set(socket, level, libc::MCAST_JOIN_SOURCE_GROUP, &request)
}

/// Sends multicast through the interface with this index; IPv4 from `source`, where it is not the system that chooses.
pub(crate) fn set_exit(
    socket: BorrowedFd<'_>,
    family: Family,
    interface: u32,
    source: Option<Ipv4Addr>,
) -> io::Result<()> {
    // An index that does not fit names no interface; the kernel says so.
    let index = libc::c_int::try_from(interface).unwrap_or(libc::c_int::MAX);
    match family {
        Family::V4 => {
            let any = libc::in_addr { s_addr: libc::INADDR_ANY };
            let source = source.map_or(any, |source| libc::in_addr { s_addr: u32::from(source).to_be() });
            let request = libc::ip_mreqn { imr_multiaddr: any, imr_address: source, imr_ifindex: index };
            set(socket, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, &request)
        }
        Family::V6 => set(socket, libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_IF, &index),
    }
}

fn storage(address: IpAddr) -> libc::sockaddr_storage {
    let raw = RawAddress::new(SocketAddr::new(address, 0));
    // SAFETY: sockaddr_storage is plain data (integers) for which all zeroes is a valid value.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    // SAFETY: both are plain bytes that do not overlap, and the storage is larger than any address (RFC 3493 §3.10).
    unsafe { std::ptr::copy_nonoverlapping(raw.as_ptr().cast::<u8>(), (&raw mut storage).cast(), RawAddress::BYTES) };
    storage
}

/// Sets an option whose value is plain data.
fn set<Value: Copy>(socket: BorrowedFd<'_>, level: i32, option: i32, value: &Value) -> io::Result<()> {
    let len = size_of::<Value>() as libc::socklen_t;
    // SAFETY: `value` is live and of `len` bytes for the whole call, which only reads it; the descriptor is borrowed, hence open.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
