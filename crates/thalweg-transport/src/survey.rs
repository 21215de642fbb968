//! Survey of a host's network by sockets of its own: whether multicast works, and announcements in other domains.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::time::{Duration, Instant};

use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};

use crate::entropy;
use crate::interfaces::Interface;
use crate::udp::{GROUP_V4, GROUP_V6};

/// The outcome of a datagram that was sent to the discovery group by one interface. Displays as a sentence without its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MulticastTrial {
    /// It came back to this host. Only another host can tell whether the network carries it further.
    CameBack,
    /// It did not come back within this time.
    Lost(Duration),
    /// The system refused.
    Refused {
        /// The attempted operation.
        attempted: &'static str,
        /// The system's error.
        cause: String,
    },
}

impl fmt::Display for MulticastTrial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MulticastTrial::CameBack => write!(f, "a multicast datagram came back"),
            MulticastTrial::Lost(patience) => {
                write!(
                    f,
                    "no multicast datagram came back within {} s: a firewall may drop them",
                    patience.as_secs_f64()
                )
            }
            MulticastTrial::Refused { attempted, cause } => {
                write!(f, "multicast does not work: cannot {attempted}: {cause}")
            }
        }
    }
}

/// Sends a datagram to the discovery group by `interface` and waits at most `patience` for it. It goes to a port that the system
/// chooses and carries an unpredictable number: no participant gets it, and no other datagram passes for it. An interface
/// without IPv4 address is tried over IPv6.
pub fn try_multicast(interface: &Interface, patience: Duration) -> MulticastTrial {
    let attempt = |attempted| move |error: io::Error| MulticastTrial::Refused { attempted, cause: error.to_string() };
    let run = || {
        let socket = open_trial(interface).map_err(attempt("open a socket in the discovery group"))?;
        let port = socket.local_addr().map_err(attempt("read the port of a socket"))?.port();
        let group = if interface.v4().is_some() {
            SocketAddr::V4(SocketAddrV4::new(GROUP_V4, port))
        } else {
            SocketAddr::V6(SocketAddrV6::new(GROUP_V6, port, 0, interface.index))
        };
        let number: [u8; 12] = entropy::bytes().map_err(attempt("get a random number"))?;
        socket.send_to(&number, group).map_err(attempt("send to the discovery group"))?;
        let deadline = Instant::now() + patience;
        loop {
            let rest = deadline.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return Ok(MulticastTrial::Lost(patience));
            }
            socket.set_read_timeout(Some(rest)).map_err(attempt("wait for a datagram"))?;
            let mut bytes = [0; 64];
            if socket.recv(&mut bytes).is_ok_and(|length| bytes[..length] == number) {
                return Ok(MulticastTrial::CameBack);
            }
        }
    };
    run().unwrap_or_else(|refused| refused)
}

/// A socket with a port of its own, in the discovery group on `interface` alone.
fn open_trial(interface: &Interface) -> io::Result<UdpSocket> {
    if let Some(IpAddr::V4(address)) = interface.v4() {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)).into())?;
        let index = InterfaceIndexOrAddress::Index(interface.index);
        socket.join_multicast_v4_n(&GROUP_V4, &index)?;
        socket.set_multicast_loop_v4(true)?;
        socket.set_multicast_ttl_v4(1)?;
        socket.set_multicast_if_v4(&address)?;
        return Ok(socket.into());
    }
    let socket = Socket::new(Domain::IPV6, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_only_v6(true)?;
    socket.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)).into())?;
    socket.join_multicast_v6(&GROUP_V6, interface.index)?;
    socket.set_multicast_loop_v6(true)?;
    socket.set_multicast_hops_v6(1)?;
    socket.set_multicast_if_v6(interface.index)?;
    Ok(socket.into())
}

/// Listens to the discovery group on several ports, over IPv4.
#[derive(Debug)]
pub struct GroupListener {
    /// Sockets with their ports.
    sockets: Vec<(u16, UdpSocket)>,
}

impl GroupListener {
    /// Opens a socket for each port that is free for it and joins the group on `interfaces`, where the system lets it. Each is bound
    /// to the group's address, so that it takes no unicast datagram away from a participant.
    pub fn open(ports: impl IntoIterator<Item = u16>, interfaces: &[Interface]) -> GroupListener {
        let open = |port| open_listening(port, interfaces).ok().map(|socket| (port, socket));
        GroupListener { sockets: ports.into_iter().filter_map(open).collect() }
    }

    /// The ports that it listens to.
    pub fn ports(&self) -> impl Iterator<Item = u16> {
        self.sockets.iter().map(|(port, _)| *port)
    }

    /// Hands arrived datagrams to `handle`, with their port and source. Does not wait.
    pub fn receive(&self, mut handle: impl FnMut(u16, SocketAddr, &[u8])) {
        let mut buffer = vec![0; DATAGRAM_MAX];
        for (port, socket) in &self.sockets {
            for _ in 0..RECEIVED_AT_ONCE {
                let Ok((length, source)) = socket.recv_from(&mut buffer) else { break };
                handle(*port, source, &buffer[..length]);
            }
        }
    }
}

fn open_listening(port: u16, interfaces: &[Interface]) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    // Both, as the participants that share the port have them.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.bind(&SocketAddr::from((GROUP_V4, port)).into())?;
    let joined = |interface: &&Interface| {
        socket.join_multicast_v4_n(&GROUP_V4, &InterfaceIndexOrAddress::Index(interface.index)).is_ok()
    };
    let usable = interfaces.iter().filter(|interface| interface.multicast && interface.v4().is_some());
    match usable.filter(joined).count() {
        0 => Err(io::Error::from(io::ErrorKind::AddrNotAvailable)),
        _ => Ok(socket.into()),
    }
}

/// Datagrams that one socket hands over before the next one has its turn.
const RECEIVED_AT_ONCE: usize = 64;
/// An announcement of a participant is far smaller.
const DATAGRAM_MAX: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interfaces::{InterfaceSelection, enumerate};

    fn loopback() -> Interface {
        let all = enumerate(&InterfaceSelection::default()).unwrap();
        all.into_iter().find(|interface| interface.loopback).expect("a loopback interface")
    }

    #[test]
    fn a_datagram_to_the_group_comes_back_on_loopback() {
        let outcome = try_multicast(&loopback(), Duration::from_secs(5));
        assert_eq!(outcome, MulticastTrial::CameBack);
        assert_eq!(outcome.to_string(), "a multicast datagram came back");
    }

    #[test]
    fn an_interface_that_is_not_there_is_a_refusal_with_its_cause() {
        let gone = Interface { index: 0x7fff_0000, ..loopback() };
        let outcome = try_multicast(&gone, Duration::from_millis(50));
        assert!(matches!(&outcome, MulticastTrial::Refused { cause, .. } if !cause.is_empty()), "{outcome:?}");
        assert!(outcome.to_string().starts_with("multicast does not work: cannot open a socket"), "{outcome}");
    }

    #[test]
    fn a_listener_hears_the_group_and_takes_no_unicast_datagram_away() {
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let participant = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
        participant.set_reuse_address(true).unwrap();
        participant.set_reuse_port(true).unwrap();
        participant.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)).into()).unwrap();
        let participant = UdpSocket::from(participant);
        participant.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let port = participant.local_addr().unwrap().port();
        let listener = GroupListener::open([port], &[loopback()]);
        assert_eq!(listener.ports().collect::<Vec<_>>(), [port]);
        for _ in 0..16 {
            sender.send_to(b"unicast", ("127.0.0.1", port)).unwrap();
            let mut buffer = [0; 16];
            assert_eq!(participant.recv(&mut buffer).ok(), Some(7), "it went to the participant");
        }
        sender.send_to(b"group", (GROUP_V4, port)).unwrap();
        let (mut heard, start) = (Vec::new(), Instant::now());
        while heard.is_empty() && start.elapsed() < Duration::from_secs(5) {
            listener.receive(|at, _, bytes| heard.push((at, bytes.to_vec())));
        }
        assert_eq!(heard, [(port, b"group".to_vec())]);
    }
}
