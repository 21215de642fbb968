//! UDP sockets for streams of datagrams at a steady rate, such as pictures: bursts of equal datagrams of several pieces leave as one
//! message without a copy, and arrive joined, with the time at which the kernel took them.
//!
//! It sends and receives by the same ways as participants and servers with many peers (`outgo`, `intake`). What differs: one thread
//! sends while another receives, a datagram larger than its path is refused unless asked for otherwise (a lost fragment would cost
//! all of it), and the kernel joins arriving datagrams (GRO).

mod receive;
mod send;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use socket2::Socket;
use thalweg_base::traffic_class::TrafficClass;

use crate::counters::SendCounters;
use crate::socket::{self, Buffers, UdpSocket};
use crate::sys::address::Family;
use crate::sys::options;

pub use crate::counters::{ReceiveCounts, SendCounts};
pub use crate::intake::{Waker, Wakeup};
pub use crate::outgo::Sent;
pub use crate::socket::{Oversize, PortSharing};
pub use receive::{StreamArrival, StreamReceiver};
pub use send::{StreamBurst, StreamScratch};

/// Settings of a [`StreamSocket`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// Bytes of receive buffer to ask for. Default 32 MiB: 400 ms of a 1.25 Gbit/s picture in datagrams that the kernel joined, and
    /// half of that where it charges twice their length.
    pub receive_buffer_bytes: usize,
    /// Bytes of send buffer to ask for. Default 1 MiB.
    pub send_buffer_bytes: usize,
    /// Whether other sockets may bind the same port: several receivers of one multicast group on a host need it.
    /// Default: no.
    pub sharing: PortSharing,
    /// The class of what is sent, by Differentiated Services. Default: best effort.
    pub traffic_class: TrafficClass,
    /// Routers that a datagram may pass, plus one, to one address as well as to a group. Default `None`: the system's 64 to one
    /// address, and 1, which stays on the link, to a group.
    pub hops: Option<u8>,
    /// Index of the interface that multicast leaves by. Default `None`: where the routing table leads.
    pub multicast_interface: Option<u32>,
    /// Whether the network's answers to what is sent are heard. Default: no.
    pub icmp: IcmpNews,
    /// What becomes of a datagram that is larger than its path. Default: it is refused.
    pub oversize: Oversize,
    /// Whether the kernel handles several datagrams as one message. Default: on both ways.
    pub joining: KernelJoining,
}

/// On which ways the kernel handles several datagrams as one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelJoining {
    /// Out (GSO) and in (GRO), as far as it can.
    Both,
    /// Out alone.
    Sent,
    /// In alone.
    Received,
    /// Each datagram is a message of its own, for comparison.
    Neither,
}

/// Whether a socket hears by ICMP what became of what it sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpNews {
    /// Refusals are counted and never stop a stream; news of narrow paths are noted ([`StreamSocket::take_path_news`]).
    Heard,
    /// They are not asked for: a socket that answers anybody could be made to read them by forged addresses.
    Ignored,
}

impl Default for StreamOptions {
    fn default() -> StreamOptions {
        StreamOptions {
            receive_buffer_bytes: 32 << 20,
            send_buffer_bytes: 1 << 20,
            sharing: PortSharing::Exclusive,
            traffic_class: TrafficClass::DEFAULT,
            hops: None,
            multicast_interface: None,
            icmp: IcmpNews::Ignored,
            oversize: Oversize::Refuse,
            joining: KernelJoining::Both,
        }
    }
}

/// A bound UDP socket of a stream; any thread sends by it, a [`StreamReceiver`] receives.
pub struct StreamSocket {
    socket: Arc<UdpSocket>,
    /// Whether the kernel may be given messages to cut; false once it could not.
    cuts: AtomicBool,
    counters: SendCounters,
}

impl StreamSocket {
    /// Opens and binds a socket; port 0 lets the system choose. A socket bound to a multicast group hears only that group, and only
    /// once it has joined.
    ///
    /// # Errors
    /// What the system says when the address is not of this host or is taken, the family is missing, an option is refused, or the
    /// process may open no more descriptors.
    pub fn bind(address: SocketAddr, options: &StreamOptions) -> io::Result<StreamSocket> {
        let buffers = Buffers { receive_bytes: options.receive_buffer_bytes, send_bytes: options.send_buffer_bytes };
        let socket =
            UdpSocket::bind(address, options.sharing, buffers, |socket, family| prepare(socket, family, options))?;
        let cuts = AtomicBool::new(matches!(options.joining, KernelJoining::Both | KernelJoining::Sent));
        Ok(StreamSocket { socket: Arc::new(socket), cuts, counters: SendCounters::default() })
    }

    /// The address and port it is bound to.
    pub fn local_address(&self) -> SocketAddr {
        self.socket.local_address()
    }

    /// Bytes of receive buffer that the kernel granted, without its own doubling. Less than asked for means that
    /// `net.core.rmem_max` is in the way and the process may not pass it (`CAP_NET_ADMIN`).
    pub fn receive_buffer_bytes(&self) -> usize {
        self.socket.receive_buffer_bytes()
    }

    /// Hears what anybody sends to the multicast group `group` on the interface with this index; 0 leaves that to the system.
    ///
    /// # Errors
    /// When the family is not the socket's, the address is no group, or the system refuses.
    pub fn join(&self, group: IpAddr, interface: u32) -> io::Result<()> {
        self.socket.join(group, interface)
    }

    /// As [`StreamSocket::join`] for what `source` alone sends (RFC 4607).
    ///
    /// # Errors
    /// As there, and when group and source are of two families.
    pub fn join_source(&self, group: IpAddr, source: IpAddr, interface: u32) -> io::Result<()> {
        self.socket.join_source(group, source, interface)
    }

    /// Whether the network told since the last call that a datagram was larger than its path; [`path_mtu`] then tells the
    /// new bound.
    pub fn take_path_news(&self) -> bool {
        self.socket.take_path_news()
    }

    /// Whether the kernel still cuts messages into datagrams for this socket (GSO): it is taken to where the options ask for it, until
    /// it has refused one whose datagrams it took singly.
    pub fn cuts(&self) -> bool {
        self.cuts.load(Ordering::Relaxed)
    }

    /// What was sent since the socket was opened.
    pub fn counts(&self) -> SendCounts {
        self.counters.read()
    }
}

/// The MTU in bytes of the path to `destination` as far as this host knows it: of the route, or what routers have told by ICMP since.
/// A group is reached through the interface with the index `multicast_interface` (default: the system's choice).
///
/// # Errors
/// When no route leads there.
pub fn path_mtu(destination: SocketAddr, multicast_interface: Option<u32>) -> io::Result<u32> {
    socket::route_mtu(destination, multicast_interface)
}

/// The longest datagram payload in bytes that one packet of `mtu` bytes carries to `destination`.
pub fn payload_max(mtu: u32, destination: IpAddr) -> usize {
    // UDP (8) over IPv4 (20) or IPv6 (40), without options.
    (mtu as usize).saturating_sub(if destination.is_ipv4() { 28 } else { 48 })
}

fn prepare(socket: &Socket, family: Family, settings: &StreamOptions) -> io::Result<()> {
    if settings.sharing == PortSharing::Shared {
        // Programs that share a group's port use one of the two options, and the kernel asks that all agree on one.
        socket.set_reuse_address(true)?;
    }
    if settings.icmp == IcmpNews::Heard {
        socket::ask_for_errors(socket, family)?;
    }
    socket::set_oversize(socket, family, settings.oversize)?;
    // The kernel lacks them before Linux 5.0, and a stream then arrives by the datagram and is timed on arrival here.
    if matches!(settings.joining, KernelJoining::Both | KernelJoining::Received) {
        let _ = options::set(socket.as_fd(), libc::SOL_UDP, libc::UDP_GRO, 1);
    }
    let _ = options::set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1);
    let octet = u32::from(settings.traffic_class.code_point()) << 2;
    let hops = settings.hops.map(u32::from);
    match family {
        Family::V4 => {
            socket.set_tos_v4(octet)?;
            socket.set_multicast_loop_v4(true)?;
            hops.map_or(Ok(()), |hops| socket.set_ttl_v4(hops).and_then(|()| socket.set_multicast_ttl_v4(hops)))?;
        }
        Family::V6 => {
            socket.set_tclass_v6(octet)?;
            socket.set_multicast_loop_v6(true)?;
            hops.map_or(Ok(()), |hops| {
                socket.set_unicast_hops_v6(hops).and_then(|()| socket.set_multicast_hops_v6(hops))
            })?;
        }
    }
    settings.multicast_interface.map_or(Ok(()), |interface| socket::set_exit(socket, family, interface))
}

#[cfg(test)]
mod tests;
