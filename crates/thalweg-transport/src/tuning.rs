//! Socket options by which the effect of a system's settings shows: memory that is charged, pacing, path MTU.

use std::io;
use std::os::fd::AsFd;

use crate::sys::address::Family;
use crate::sys::options;

pub use crate::batch::cut_sends;

/// Memory of a socket (`SO_MEMINFO`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketMemory {
    /// Bytes that what waits to be received is charged: payload, headers and the kernel's own structures.
    pub charged_bytes: u32,
    /// Bytes that may be charged: twice what `SO_RCVBUF` was asked for.
    pub limit_bytes: u32,
    /// Bytes that are charged for what was sent and has not left the interface's queue.
    pub unsent_bytes: u32,
    /// Datagrams that the full buffer has refused.
    pub refused: u32,
}

/// The memory of a socket now.
///
/// # Errors
/// Linux before 4.12 does not tell.
pub fn socket_memory(socket: &impl AsFd) -> io::Result<SocketMemory> {
    // linux/sock_diag.h: rmem_alloc, rcvbuf, wmem_alloc, sndbuf, fwd_alloc, wmem_queued, optmem, backlog, drops.
    let words: [u32; 9] = options::words(socket.as_fd(), libc::SOL_SOCKET, SO_MEMINFO)?;
    Ok(SocketMemory { charged_bytes: words[0], limit_bytes: words[1], unsent_bytes: words[2], refused: words[8] })
}

/// Bytes of receive buffer of a socket, as they are asked for: half of what may be charged.
///
/// # Errors
/// The system's error.
pub fn receive_buffer(socket: &impl AsFd) -> io::Result<usize> {
    let bytes = options::get(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF)?;
    Ok(usize::try_from(bytes).unwrap_or(0) / 2)
}

/// Asks for a receive buffer; the system grants at most `net.core.rmem_max` and says nothing about it.
///
/// # Errors
/// The system's error.
pub fn set_receive_buffer(socket: &impl AsFd, bytes: usize) -> io::Result<()> {
    let value = i32::try_from(bytes).unwrap_or(i32::MAX);
    options::set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, value)
}

/// Asks for a receive buffer beyond `net.core.rmem_max`.
///
/// # Errors
/// The right is missing (`CAP_NET_ADMIN`).
pub fn force_receive_buffer(socket: &impl AsFd, bytes: usize) -> io::Result<()> {
    let value = i32::try_from(bytes).unwrap_or(i32::MAX);
    options::set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, value)
}

/// Asks that the interface's queueing discipline sends no faster than this; only `fq` does, and success says nothing.
///
/// # Errors
/// The system's error.
pub fn set_pacing_rate(socket: &impl AsFd, bytes_per_second: u32) -> io::Result<()> {
    options::set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, bytes_per_second.cast_signed())
}

/// Lets the kernel hand neighbouring datagrams of one sender out as one message (GRO).
///
/// # Errors
/// Linux before 5.0 cannot.
pub fn join_receives(socket: &impl AsFd) -> io::Result<()> {
    options::set(socket.as_fd(), libc::SOL_UDP, libc::UDP_GRO, 1)
}

/// Forbids that datagrams are cut on their way, whatever path MTU is known so far, and asks for the errors of the network.
///
/// # Errors
/// The system's error.
pub fn probe_path(socket: &std::net::UdpSocket) -> io::Result<()> {
    let settings = match family(socket)? {
        Family::V4 => [
            (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE),
            (libc::IPPROTO_IP, libc::IP_RECVERR, 1),
        ],
        Family::V6 => [
            (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE),
            (libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1),
        ],
    };
    settings.into_iter().try_for_each(|(level, option, value)| options::set(socket.as_fd(), level, option, value))
}

/// The kernel's belief about the path of a connected socket: the largest IP packet in bytes.
///
/// # Errors
/// The socket is not connected.
pub fn path_mtu(socket: &std::net::UdpSocket) -> io::Result<u32> {
    let (level, option) = match family(socket)? {
        Family::V4 => (libc::IPPROTO_IP, libc::IP_MTU),
        Family::V6 => (libc::IPPROTO_IPV6, libc::IPV6_MTU),
    };
    Ok(u32::try_from(options::get(socket.as_fd(), level, option)?).unwrap_or(0))
}

fn family(socket: &std::net::UdpSocket) -> io::Result<Family> {
    Ok(Family::of(&socket.local_addr()?.ip()))
}

/// From asm-generic/socket.h; libc has it for few targets.
const SO_MEMINFO: libc::c_int = 55;

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn a_waiting_datagram_is_charged_more_than_it_holds() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(socket_memory(&receiver).unwrap().charged_bytes, 0);
        sender.send_to(&[0; 1000], receiver.local_addr().unwrap()).unwrap();
        let memory = socket_memory(&receiver).unwrap();
        assert!(memory.charged_bytes > 1000 && memory.charged_bytes < memory.limit_bytes, "{memory:?}");
        receiver.recv(&mut [0; 1000]).unwrap();
        assert_eq!(memory.refused, 0);
    }

    #[test]
    fn the_path_of_loopback_is_as_wide_as_loopback() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(path_mtu(&sender).is_err(), "not connected");
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        probe_path(&sender).unwrap();
        assert!(path_mtu(&sender).unwrap() >= 1500);
    }
}
