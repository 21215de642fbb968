//! A UDP socket with the options that every socket of Thalweg has.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};

use crate::filter::FilterInstruction;
use crate::interfaces::{self, Interface};
use crate::sys::address::Family;
use crate::sys::control::AsyncError;
use crate::sys::{multicast, options};
use crate::udp::UdpConfig;

/// A UDP socket.
#[derive(Debug)]
pub(crate) struct UdpSocket {
    socket: Socket,
    family: Family,
    /// Where it is bound; the port is 0 where the system chooses one for what it sends.
    local: SocketAddr,
    sharing: PortSharing,
    receive_buffer_bytes: usize,
    /// Set when the kernel has told that a datagram was larger than its path.
    path_news: AtomicBool,
    is_filtered: AtomicBool,
}

/// Treatment of a datagram that is larger than its path's MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oversize {
    /// This host and the routers on the way cut it into IP fragments (RFC 791 §2.3; by this host only over IPv6).
    Cut,
    /// It is refused here, so that its writer learns the path's MTU and cuts better itself.
    Refuse,
}

/// Whether a port has one socket or several (`SO_REUSEPORT`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortSharing {
    /// One socket.
    Exclusive,
    /// Several; all must ask for it. A unicast peer's datagrams always reach the same one, multicast reaches all.
    Shared,
}

/// Bytes to ask for in the buffers of a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffers {
    pub(crate) receive_bytes: usize,
    pub(crate) send_bytes: usize,
}

/// 239.255.0.1, the group of RTPS 2.5 §9.6.2.4.1.
pub const GROUP_V4: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);
/// ff02::ffff:239.255.0.1, the group of other implementations over IPv6.
pub const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0xffff, 0xefff, 1);

impl UdpSocket {
    /// Opens a socket, lets `prepare` add the options of its owner, and binds it; port 0 lets the system choose.
    pub(crate) fn bind(
        address: SocketAddr,
        sharing: PortSharing,
        buffers: Buffers,
        prepare: impl FnOnce(&Socket, Family) -> io::Result<()>,
    ) -> io::Result<UdpSocket> {
        let family = Family::of(&address.ip());
        let socket = new_socket(family)?;
        if sharing == PortSharing::Shared {
            socket.set_reuse_port(true)?;
        }
        options::set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)?;
        if address.ip().is_unspecified() {
            ask_for_destination(&socket, family)?;
        }
        hear_joined_groups_only(&socket, family)?;
        prepare(&socket, family)?;
        // The system may grant less; the buffer then only overflows earlier.
        let receive_buffer_bytes = grow_receive_buffer(&socket, buffers.receive_bytes)?;
        grow_send_buffer(&socket, buffers.send_bytes)?;
        socket.bind(&address.into())?;
        let local = socket.local_addr()?.as_socket().unwrap_or(address);
        let (path_news, is_filtered) = (AtomicBool::default(), AtomicBool::default());
        Ok(UdpSocket { socket, family, local, sharing, receive_buffer_bytes, path_news, is_filtered })
    }

    /// Opens a socket of a participant for every address of a family.
    pub(crate) fn open(
        config: &UdpConfig,
        family: Family,
        port: u16,
        sharing: PortSharing,
        oversize: Oversize,
    ) -> io::Result<UdpSocket> {
        let buffers = Buffers { receive_bytes: config.receive_buffer_bytes, send_bytes: config.send_buffer_bytes };
        UdpSocket::bind(SocketAddr::new(family.any(), port), sharing, buffers, |socket, family| {
            if family == Family::V6 {
                socket.set_only_v6(true)?;
            }
            if sharing == PortSharing::Shared {
                // This option as well, since peers use one or the other and the kernel asks that all sharers agree on one.
                socket.set_reuse_address(true)?;
            }
            ask_for_errors(socket, family)?;
            set_multicast(socket, family, config)?;
            set_oversize(socket, family, oversize)?;
            // Without it the kernel hands every datagram out alone; older than Linux 5.0.
            let _ = options::set(socket.as_fd(), libc::SOL_UDP, libc::UDP_GRO, 1);
            Ok(())
        })
    }

    /// Opens a socket that sends to `destination` only and receives nothing.
    pub(crate) fn connected(destination: SocketAddr, send_buffer_bytes: usize) -> io::Result<UdpSocket> {
        let family = Family::of(&destination.ip());
        let socket = new_socket(family)?;
        set_oversize(&socket, family, Oversize::Refuse)?;
        grow_send_buffer(&socket, send_buffer_bytes)?;
        socket.connect(&destination.into())?;
        let (local, sharing, receive_buffer_bytes) = (SocketAddr::new(family.any(), 0), PortSharing::Exclusive, 0);
        let (path_news, is_filtered) = (AtomicBool::default(), AtomicBool::default());
        Ok(UdpSocket { socket, family, local, sharing, receive_buffer_bytes, path_news, is_filtered })
    }

    /// Lets the kernel drop what `program` says before it is queued, in place of an earlier program; an empty one lets
    /// everything in again.
    pub(crate) fn set_filter(&self, program: &[FilterInstruction]) -> io::Result<()> {
        let result = if program.is_empty() {
            match self.socket.detach_filter() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                result => result,
            }
        } else {
            let program: Vec<_> = program.iter().copied().map(FilterInstruction::encode).collect();
            self.socket.attach_filter(&program)
        };
        if result.is_ok() {
            self.is_filtered.store(!program.is_empty(), Ordering::Relaxed);
        }
        result
    }

    /// Whether the kernel drops some of what comes in by a filter.
    pub(crate) fn is_filtered(&self) -> bool {
        self.is_filtered.load(Ordering::Relaxed)
    }

    pub(crate) fn family(&self) -> Family {
        self.family
    }

    /// True for the multicast sockets.
    pub(crate) fn is_shared(&self) -> bool {
        self.sharing == PortSharing::Shared
    }

    pub(crate) fn local_address(&self) -> SocketAddr {
        self.local
    }

    pub(crate) fn port(&self) -> u16 {
        self.local.port()
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
    pub(crate) fn join_discovery(&self, interface: &Interface) -> io::Result<()> {
        let group = if self.family == Family::V4 { IpAddr::V4(GROUP_V4) } else { IpAddr::V6(GROUP_V6) };
        match self.join(group, interface.index) {
            Err(error) if error.raw_os_error() == Some(libc::EADDRINUSE) => Ok(()),
            other => other,
        }
    }

    /// Leaves the discovery group on the interface with this index, which may be gone: a socket keeps its memberships there, and the
    /// kernel counts them (`igmp_max_memberships`, 20 by default).
    pub(crate) fn leave_discovery(&self, interface: u32) {
        _ = match self.family {
            Family::V4 => self.socket.leave_multicast_v4_n(&GROUP_V4, &InterfaceIndexOrAddress::Index(interface)),
            Family::V6 => self.socket.leave_multicast_v6(&GROUP_V6, interface),
        };
    }

    /// Takes part in the multicast group `group` on the interface with this index.
    pub(crate) fn join(&self, group: IpAddr, interface: u32) -> io::Result<()> {
        match group {
            IpAddr::V4(group) => self.socket.join_multicast_v4_n(&group, &InterfaceIndexOrAddress::Index(interface)),
            IpAddr::V6(group) => self.socket.join_multicast_v6(&group, interface),
        }
    }

    /// Hears what `source` alone sends to the multicast group `group` on the interface with this index (RFC 4607).
    pub(crate) fn join_source(&self, group: IpAddr, source: IpAddr, interface: u32) -> io::Result<()> {
        multicast::join_source(self.socket.as_fd(), group, source, interface)
    }

    /// Bounds what may wait in the receive buffer; the kernel counts its own bookkeeping as well and doubles the value.
    pub(crate) fn set_receive_buffer(&self, bytes: usize) -> io::Result<usize> {
        grow_receive_buffer(&self.socket, bytes)
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn new_socket(family: Family) -> io::Result<Socket> {
    let domain = if family == Family::V4 { Domain::IPV4 } else { Domain::IPV6 };
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Asks the kernel to tell where datagrams were sent to and by which interface they came.
fn ask_for_destination(socket: &Socket, family: Family) -> io::Result<()> {
    match family {
        Family::V4 => options::set(socket.as_fd(), libc::IPPROTO_IP, libc::IP_PKTINFO, 1),
        Family::V6 => options::set(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1),
    }
}

/// Asks the kernel to tell what became of earlier datagrams. Not of a server's: anybody could make it read error queues by
/// forging the addresses it answers to.
pub(crate) fn ask_for_errors(socket: &Socket, family: Family) -> io::Result<()> {
    match family {
        Family::V4 => options::set(socket.as_fd(), libc::IPPROTO_IP, libc::IP_RECVERR, 1),
        Family::V6 => options::set(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1),
    }
}

/// By default Linux gives a socket for every address the datagrams of all groups that anybody on the host joined.
fn hear_joined_groups_only(socket: &Socket, family: Family) -> io::Result<()> {
    match family {
        Family::V4 => options::set(socket.as_fd(), libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, 0),
        Family::V6 => {
            // Since Linux 4.20; without it foreign groups arrive too, and are refused further up.
            let _ = options::set(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_ALL, 0);
            Ok(())
        }
    }
}

/// Sends multicast through the interface with this index, from its own address: where only loopback is up, the system finds no
/// other one, and what comes from no address is dropped.
pub(crate) fn set_exit(socket: &Socket, family: Family, interface: u32) -> io::Result<()> {
    let listed = if family == Family::V4 { interfaces::list()? } else { Vec::new() };
    let exit = listed.iter().map(|listed| &listed.interface).find(|listed| listed.index == interface);
    let source = exit.and_then(Interface::v4).and_then(|address| match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    });
    multicast::set_exit(socket.as_fd(), family, interface, source)
}

/// The MTU of the route to `destination`, with what routers on the way have told this host by ICMP (RFC 1191, RFC 8201).
/// A group's route starts at the interface with the index `exit`, where one is given.
pub(crate) fn route_mtu(destination: SocketAddr, exit: Option<u32>) -> io::Result<u32> {
    let family = Family::of(&destination.ip());
    let (domain, level, option) = match family {
        Family::V4 => (Domain::IPV4, libc::IPPROTO_IP, libc::IP_MTU),
        Family::V6 => (Domain::IPV6, libc::IPPROTO_IPV6, libc::IPV6_MTU),
    };
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    // The mode decides whether the kernel answers with the path or with the interface.
    set_oversize(&socket, family, Oversize::Refuse)?;
    exit.map_or(Ok(()), |exit| set_exit(&socket, family, exit))?;
    socket.connect(&destination.into())?;
    let mtu = options::get(socket.as_fd(), level, option)?;
    u32::try_from(mtu).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}

pub(crate) fn set_oversize(socket: &Socket, family: Family, oversize: Oversize) -> io::Result<()> {
    let (level, option, value) = match (family, oversize) {
        (Family::V4, Oversize::Refuse) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
        (Family::V4, Oversize::Cut) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DONT),
        (Family::V6, Oversize::Refuse) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
        // The kernel's default for IPv6: cut by the path's MTU, which only this host may do.
        (Family::V6, Oversize::Cut) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IP_PMTUDISC_WANT),
    };
    options::set(socket.as_fd(), level, option, value)
}

/// Sends multicast to members on this host as well.
fn set_multicast(socket: &Socket, family: Family, config: &UdpConfig) -> io::Result<()> {
    match family {
        Family::V4 => {
            socket.set_multicast_loop_v4(true)?;
            socket.set_multicast_ttl_v4(config.multicast_hops)
        }
        Family::V6 => {
            socket.set_multicast_loop_v6(true)?;
            socket.set_multicast_hops_v6(config.multicast_hops)
        }
    }
}

/// Asks as a privileged process first, which no limit stops, then within `net.core.rmem_max`; returns what was granted.
fn grow_receive_buffer(socket: &Socket, bytes: usize) -> io::Result<usize> {
    let value = i32::try_from(bytes).unwrap_or(i32::MAX);
    if options::set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, value).is_err() {
        socket.set_recv_buffer_size(bytes)?;
    }
    // Linux doubles the value for its bookkeeping and reports it doubled (socket(7)).
    Ok(socket.recv_buffer_size()? / 2)
}

/// As [`grow_receive_buffer`] for the send buffer.
fn grow_send_buffer(socket: &Socket, bytes: usize) -> io::Result<()> {
    let value = i32::try_from(bytes).unwrap_or(i32::MAX);
    match options::set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, value) {
        Ok(()) => Ok(()),
        Err(_) => socket.set_send_buffer_size(bytes),
    }
}
