//! A socket, and so a source port, for each client.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::LabError;

/// Opens sockets that are connected to one server, each on a port of its own.
pub(super) struct Sockets {
    target: SocketAddr,
    opened: u32,
}

impl Sockets {
    /// Makes sure that the process may open `count` sockets.
    ///
    /// # Errors
    /// When the limit of open files is lower and cannot be raised.
    pub(super) fn new(target: SocketAddr, count: u64) -> Result<Sockets, LabError> {
        allow_files(count + OTHER_FILES)?;
        Ok(Sockets { target, opened: 0 })
    }

    /// Opens the next one.
    ///
    /// # Errors
    /// When the system has no port left, or cannot reach the server.
    pub(super) fn open(&mut self) -> Result<UdpSocket, LabError> {
        let source = source(self.target.ip(), self.opened);
        let open = || -> io::Result<UdpSocket> {
            let socket = UdpSocket::bind((source, 0))?;
            socket.set_nonblocking(true)?;
            socket.connect(self.target)?;
            Ok(socket)
        };
        let socket = open().map_err(|error| {
            LabError::Here(format!(
                "socket number {} to {} cannot be opened from {source}: {error}; use fewer clients or widen net.ipv4.ip_local_port_range",
                self.opened + 1,
                self.target
            ))
        })?;
        self.opened += 1;
        Ok(socket)
    }
}

/// The first address of a flood: another one for each flood of this process, and hardly ever that of another process.
pub(super) fn flood_network() -> Ipv4Addr {
    static FLOODS: AtomicU32 = AtomicU32::new(0);
    let flood = FLOODS.fetch_add(1, Ordering::Relaxed);
    let number = std::process::id().wrapping_mul(FLOODS_OF_A_PROCESS).wrapping_add(flood);
    Ipv4Addr::from(FLOOD_NETWORKS.to_bits() + (number % FLOOD_NETWORKS_COUNT) * 256)
}

/// A socket connected to `target` on one of two ports of a flood's network that this number alone has, the first if it is free.
/// Its answers are not read: it holds as few as possible.
///
/// # Errors
/// When other programs have both of the ports that the number may use.
pub(super) fn open_port(target: SocketAddr, network: Ipv4Addr, number: u32) -> Result<UdpSocket, LabError> {
    let address = Ipv4Addr::from(network.to_bits() + number / FLOOD_PORTS_PER_ADDRESS);
    let port = FIRST_FLOOD_PORT + number % FLOOD_PORTS_PER_ADDRESS;
    let open = |port: u32| -> io::Result<UdpSocket> {
        let socket = UdpSocket::bind((address, port as u16))?;
        set_socket_recv_buffer_size(&socket, 1)?;
        socket.set_nonblocking(true)?;
        socket.connect(target)?;
        Ok(socket)
    };
    // A program that has a port on all addresses, as those of DDS do, has it on the flood's too.
    let opened = match open(port) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => open(port + FLOOD_PORTS_PER_ADDRESS),
        opened => opened,
    };
    opened.map_err(|error| LabError::Here(format!("port {port} of {address} cannot be used for the flood: {error}")))
}

/// The address that the socket with this number is bound to: a host has some 28,000 ports to give for each, and the
/// loopback network has many addresses.
fn source(target: IpAddr, number: u32) -> IpAddr {
    match target {
        IpAddr::V4(target) if target.is_loopback() => {
            IpAddr::V4(Ipv4Addr::from(Ipv4Addr::LOCALHOST.to_bits() + number / PORTS_PER_ADDRESS))
        }
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED),
    }
}

fn allow_files(count: u64) -> Result<(), LabError> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= count) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(count), maximum: maximum.map(|maximum| maximum.max(count)) };
    setrlimit(Resource::Nofile, raised).map_err(|error| {
        LabError::Here(format!(
            "{count} files have to be open at once and the limit cannot be raised from {}: {error}; use fewer clients or ports, or raise it by `ulimit -n` as root",
            current.unwrap_or_default()
        ))
    })
}

/// Standard streams, a responder and what the process had open before.
const OTHER_FILES: u64 = 200;
const PORTS_PER_ADDRESS: u32 = 20_000;
/// Addresses of the loopback network that nothing else is likely to use, from here on 256 for each flood, and ports below those
/// of RTPS (7400 and above) and those that the system gives away.
const FLOOD_NETWORKS: Ipv4Addr = Ipv4Addr::new(127, 64, 0, 1);
const FLOOD_NETWORKS_COUNT: u32 = 64 * 256;
const FLOODS_OF_A_PROCESS: u32 = 16;
pub(super) const FIRST_FLOOD_PORT: u32 = 1_100;
/// Ports that numbers use first; as many follow in their place where another program has one.
pub(super) const FLOOD_PORTS_PER_ADDRESS: u32 = 4_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crowds_on_the_loopback_network_have_several_addresses() {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(source(loopback, 19_999), loopback);
        assert_eq!(source(loopback, 99_999), IpAddr::from([127, 0, 0, 5]));
        assert_eq!(source(IpAddr::from([10, 0, 0, 1]), 99_999), IpAddr::from([0, 0, 0, 0]));
    }

    #[test]
    fn a_crowd_beyond_the_limit_is_refused_with_a_remedy() {
        let refusal = Sockets::new(([127, 0, 0, 1], 5683).into(), 1 << 40).err().unwrap().to_string();
        assert!(refusal.contains("ulimit -n"), "{refusal}");
    }
}
