//! Packet sockets: whole Ethernet frames of one interface.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, Socket, Type};

use super::options;

/// A packet socket that hears every frame that comes in at the interface with this index in this network namespace, each behind the
/// kernel's notes about it.
pub(crate) fn open(index: u32, receive_buffer_bytes: i32) -> io::Result<Socket> {
    let socket = Socket::new(Domain::PACKET, Type::RAW.nonblocking(), Some(Protocol::from(0)))?;
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: sockaddr_ll is a socket address of plain integers, for which all zeros are valid, and no larger than the storage.
    let address: &mut libc::sockaddr_ll = unsafe { storage.view_as() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = i32::try_from(index).map_err(io::Error::other)?;
    // SAFETY: the storage was filled as a sockaddr_ll above and the length is that of one.
    let address = unsafe { SockAddr::new(storage, size_of::<libc::sockaddr_ll>() as libc::socklen_t) };
    for (level, option, value) in [
        (libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1),
        (libc::SOL_PACKET, PACKET_VNET_HDR, 1),
        (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, receive_buffer_bytes),
    ] {
        options::set(socket.as_fd(), level, option, value)?;
    }
    socket.bind(&address)?;
    Ok(socket)
}

/// Frames that found the receive buffer full since the last call.
pub(crate) fn take_drops(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut counts: [u32; 2] = [0; 2];
    let mut len = size_of_val(&counts) as libc::socklen_t;
    let place = (&raw mut counts).cast();
    let (level, option) = (libc::SOL_PACKET, PACKET_STATISTICS);
    // SAFETY: `counts` is live and has `len` bytes, as many as a tpacket_stats; the descriptor is borrowed, hence open.
    let result = unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, place, &raw mut len) };
    if result == 0 { Ok(counts[1]) } else { Err(io::Error::last_os_error()) }
}

/// From linux/if_packet.h, as libc has them for few targets.
const PACKET_STATISTICS: libc::c_int = 6;
const PACKET_VNET_HDR: libc::c_int = 15;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
