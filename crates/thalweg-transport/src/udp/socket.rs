//! One bound UDP socket with the options every socket of Thalweg has.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};

use super::UdpConfig;
use crate::filter::FilterInstruction;
use crate::interfaces::Interface;
use crate::sys::address::Family;
use crate::sys::control::AsyncError;
use crate::sys::options;

/// A UDP socket bound to every address of its family.
#[derive(Debug)]
pub(crate) struct UdpSocket {
    socket: Socket,
    family: Family,
    port: u16,
    sharing: Sharing,
    receive_buffer_bytes: usize,
    /// Set when the kernel has told that a datagram was larger than its path.
    path_news: AtomicBool,
}

/// Treatment of a datagram that is larger than its path's MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Oversize {
    /// This host and the routers on the way cut it into IP fragments (RFC 791 §2.3; by this host only over IPv6).
    Cut,
    /// It is refused here, so that its writer learns the path's MTU and cuts better itself.
    Refuse,
}

/// Whether other processes bind the same port: multicast ports are shared by all participants of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    Exclusive,
    Shared,
}

/// 239.255.0.1, the group of RTPS 2.5 §9.6.2.4.1.
pub const GROUP_V4: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);
/// ff02::ffff:239.255.0.1, the group of other implementations over IPv6.
pub const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0xffff, 0xefff, 1);

impl UdpSocket {
    /// Opens and binds; port 0 lets the system choose.
    pub(crate) fn open(
        config: &UdpConfig,
        family: Family,
        port: u16,
        sharing: Sharing,
        oversize: Oversize,
    ) -> io::Result<UdpSocket> {
        let domain = if family == Family::V4 { Domain::IPV4 } else { Domain::IPV6 };
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        if family == Family::V6 {
            socket.set_only_v6(true)?;
        }
        if sharing == Sharing::Shared {
            // Both options, since peers use one or the other and the kernel asks that all sharers agree on one.
            socket.set_reuse_address(true)?;
            socket.set_reuse_port(true)?;
        }
        set_observability(&socket, family)?;
        set_multicast(&socket, family, config)?;
        set_oversize(&socket, family, oversize)?;
        // Without it the kernel hands every datagram out alone; older than Linux 5.0.
        let _ = options::set(socket.as_fd(), libc::SOL_UDP, libc::UDP_GRO, 1);
        let receive_buffer_bytes = grow_receive_buffer(&socket, config.receive_buffer_bytes)?;
        grow_send_buffer(&socket, config.send_buffer_bytes)?;
        let any: IpAddr =
            if family == Family::V4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        socket.bind(&SocketAddr::new(any, port).into())?;
        let bound = socket.local_addr()?.as_socket().map_or(port, |address| address.port());
        let path_news = AtomicBool::new(false);
        Ok(UdpSocket { socket, family, port: bound, sharing, receive_buffer_bytes, path_news })
    }

    /// Opens a socket that sends to `destination` only and receives nothing.
    pub(crate) fn connected(destination: SocketAddr, send_buffer_bytes: usize) -> io::Result<UdpSocket> {
        let family = Family::of(&destination.ip());
        let domain = if family == Family::V4 { Domain::IPV4 } else { Domain::IPV6 };
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        set_oversize(&socket, family, Oversize::Refuse)?;
        grow_send_buffer(&socket, send_buffer_bytes)?;
        socket.connect(&destination.into())?;
        let path_news = AtomicBool::new(false);
        let sharing = Sharing::Exclusive;
        Ok(UdpSocket { socket, family, port: 0, sharing, receive_buffer_bytes: 0, path_news })
    }

    /// Lets the kernel look at each datagram first.
    pub(crate) fn set_filter(&self, program: &[FilterInstruction]) -> io::Result<()> {
        let program: Vec<_> = program.iter().map(|instruction| instruction.encode()).collect();
        self.socket.attach_filter(&program)
    }

    pub(crate) fn family(&self) -> Family {
        self.family
    }

    /// True for the multicast sockets.
    pub(crate) fn is_shared(&self) -> bool {
        self.sharing == Sharing::Shared
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Receive buffer that the kernel granted, without its own doubling.
    pub(crate) fn receive_buffer_bytes(&self) -> usize {
        self.receive_buffer_bytes
    }

    /// Takes an entry of the error queue into account.
    pub(crate) fn note_error(&self, error: &AsyncError) {
        if error.errno == libc::EMSGSIZE {
            self.path_news.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a datagram was found larger than its path since the last call.
    pub(crate) fn take_path_news(&self) -> bool {
        self.path_news.load(Ordering::Relaxed) && self.path_news.swap(false, Ordering::Relaxed)
    }

    /// Takes part in the discovery group on `interface`; joining twice is no error.
    pub(crate) fn join(&self, interface: &Interface) -> io::Result<()> {
        let joined = match self.family {
            Family::V4 => self.socket.join_multicast_v4_n(&GROUP_V4, &InterfaceIndexOrAddress::Index(interface.index)),
            Family::V6 => self.socket.join_multicast_v6(&GROUP_V6, interface.index),
        };
        match joined {
            Err(error) if error.raw_os_error() == Some(libc::EADDRINUSE) => Ok(()),
            other => other,
        }
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Asks for what tells where a datagram came from and which ones were lost.
fn set_observability(socket: &Socket, family: Family) -> io::Result<()> {
    let socket = socket.as_fd();
    options::set(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)?;
    match family {
        Family::V4 => {
            options::set(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?;
            options::set(socket, libc::IPPROTO_IP, libc::IP_RECVERR, 1)
        }
        Family::V6 => {
            options::set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
            options::set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)
        }
    }
}

/// The MTU of the route to `destination`, with what routers on the way have told this host by ICMP (RFC 1191, RFC 8201).
pub(super) fn route_mtu(destination: SocketAddr) -> io::Result<u32> {
    let family = Family::of(&destination.ip());
    let (domain, level, option) = match family {
        Family::V4 => (Domain::IPV4, libc::IPPROTO_IP, libc::IP_MTU),
        Family::V6 => (Domain::IPV6, libc::IPPROTO_IPV6, libc::IPV6_MTU),
    };
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    // The mode decides whether the kernel answers with the path or with the interface.
    set_oversize(&socket, family, Oversize::Refuse)?;
    socket.connect(&destination.into())?;
    let mtu = options::get(socket.as_fd(), level, option)?;
    u32::try_from(mtu).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}

fn set_oversize(socket: &Socket, family: Family, oversize: Oversize) -> io::Result<()> {
    let (level, option, value) = match (family, oversize) {
        (Family::V4, Oversize::Refuse) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
        (Family::V4, Oversize::Cut) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DONT),
        (Family::V6, Oversize::Refuse) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
        // The kernel's default for IPv6: cut by the path's MTU, which only this host may do.
        (Family::V6, Oversize::Cut) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IP_PMTUDISC_WANT),
    };
    options::set(socket.as_fd(), level, option, value)
}

/// Sends multicast to members on this host as well; receives only groups that this very socket joined.
fn set_multicast(socket: &Socket, family: Family, config: &UdpConfig) -> io::Result<()> {
    match family {
        Family::V4 => {
            socket.set_multicast_loop_v4(true)?;
            socket.set_multicast_ttl_v4(config.multicast_hops)?;
            options::set(socket.as_fd(), libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, 0)
        }
        Family::V6 => {
            socket.set_multicast_loop_v6(true)?;
            socket.set_multicast_hops_v6(config.multicast_hops)?;
            // Since Linux 4.20; without it foreign groups arrive too, and are refused further up.
            let _ = options::set(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_ALL, 0);
            Ok(())
        }
    }
}

/// Asks as a privileged process first, which no limit stops, then within `net.core.rmem_max`; returns what was granted.
pub(crate) fn grow_receive_buffer(socket: &Socket, bytes: usize) -> io::Result<usize> {
    let value = i32::try_from(bytes).unwrap_or(i32::MAX);
    if options::set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, value).is_err() {
        socket.set_recv_buffer_size(bytes)?;
    }
    // Linux doubles the value for its bookkeeping and reports it doubled (socket(7)).
    Ok(socket.recv_buffer_size()? / 2)
}

/// As [`grow_receive_buffer`] for the send buffer.
pub(crate) fn grow_send_buffer(socket: &Socket, bytes: usize) -> io::Result<()> {
    let value = i32::try_from(bytes).unwrap_or(i32::MAX);
    match options::set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, value) {
        Ok(()) => Ok(()),
        Err(_) => socket.set_send_buffer_size(bytes),
    }
}
