//! The width of a path, by datagrams that may not be cut and a port that nobody uses.
//!
//! The peer refuses such a datagram (ICMP port unreachable), which proves that it arrived whole; no program has to run there.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use thalweg_transport::interfaces;
use thalweg_transport::tuning::{path_mtu, probe_path};

use super::PathMtu;
use super::live::UNUSED_PORT;

/// What came of one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The peer refused it after this time: it arrived.
    Arrived(Duration),
    /// This host or a router says that it is too large.
    TooLarge,
    /// Nothing was heard.
    Silence,
}

/// The interface by which packets to `peer` leave this host.
///
/// # Errors
/// There is no route.
pub fn device_towards(peer: IpAddr) -> io::Result<Option<String>> {
    let any: IpAddr = if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    // Connecting sends nothing, and chooses the route.
    socket.connect(SocketAddr::new(peer, UNUSED_PORT))?;
    let own = socket.local_addr()?.ip();
    let listed = interfaces::list()?;
    let is_near = |listed: &&interfaces::ListedInterface| listed.interface.ips().any(|ip| ip == own);
    Ok(listed.iter().find(is_near).map(|listed| listed.interface.name.clone()))
}

/// Tries sizes from the largest down.
pub(super) fn measure_path(peer: IpAddr, at_most: u32) -> io::Result<PathMtu> {
    let mut believed = None;
    let mut next = Some(at_most.max(MTU_MIN_BYTES));
    for number in 0..TRIES_MAX {
        let Some(size) = next else { break };
        let (mut fate, mut known) = try_size(peer, size)?;
        if number == 0 && fate == Fate::Silence {
            // A peer that has just refused many datagrams, as those of another measurement, may refuse this size in a second only.
            std::thread::sleep(REFUSALS_APART.saturating_sub(PATIENCE));
            (fate, known) = try_size(peer, size)?;
        }
        believed = Some(known);
        match fate {
            Fate::Arrived(round_trip) => {
                return Ok(PathMtu { bytes: size, is_confirmed: true, round_trip: Some(round_trip) });
            }
            // A router or this host may have told the width; otherwise the next usual size.
            Fate::TooLarge if known < size && known >= MTU_MIN_BYTES => next = Some(known),
            Fate::TooLarge | Fate::Silence => next = USUAL_MTUS.into_iter().find(|usual| *usual < size),
        }
    }
    let bytes = believed.unwrap_or(MTU_MIN_BYTES).min(at_most);
    Ok(PathMtu { bytes, is_confirmed: false, round_trip: None })
}

/// Sends one packet of this size, and returns what came of it and the path MTU that this host believes in.
fn try_size(peer: IpAddr, bytes: u32) -> io::Result<(Fate, u32)> {
    let (any, headers): (IpAddr, u32) = match peer {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), 28),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), 48),
    };
    let payload = usize::try_from(bytes.saturating_sub(headers)).unwrap_or(0).min(65_507);
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    probe_path(&socket)?;
    socket.connect(SocketAddr::new(peer, UNUSED_PORT))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let started = Instant::now();
    let heard = socket.send(&vec![0; payload]).and_then(|_| socket.recv(&mut [0; 1]));
    let fate = match heard {
        // Somebody does use the port, and answered.
        Ok(_) => Fate::Arrived(started.elapsed()),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Fate::Arrived(started.elapsed()),
        Err(error) if error.raw_os_error() == Some(EMSGSIZE) => Fate::TooLarge,
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Fate::Silence,
        // The other end of a veth pair is narrower, or a queue is full: dropped here without a word on the size.
        Err(error) if error.raw_os_error() == Some(ENOBUFS) => Fate::Silence,
        Err(error) => return Err(error),
    };
    Ok((fate, path_mtu(&socket)?))
}

/// Sizes of links that are met, from the largest down: loopback, jumbo frames, two of the paper's, Ethernet, tunnels, the least of
/// IPv6 and of IPv4.
const USUAL_MTUS: [u32; 9] = [9180, 9000, 8160, 4000, 1500, 1400, 1280, 576, 0];
const MTU_MIN_BYTES: u32 = 576;
/// As many as there are sizes; hosts refuse about one datagram a second after the first six (`icmp_ratelimit`).
const TRIES_MAX: usize = 8;
const PATIENCE: Duration = Duration::from_millis(700);
/// A little more than the second after which a host that has refused too often refuses again (`icmp_ratelimit`).
const REFUSALS_APART: Duration = Duration::from_millis(1100);
const EMSGSIZE: i32 = 90;
const ENOBUFS: i32 = 105;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_confirms_a_jumbo_packet_and_its_round_trip() {
        let path = measure_path(Ipv4Addr::LOCALHOST.into(), 9000).expect("a route");
        assert!(path.is_confirmed && path.bytes == 9000 && path.round_trip.is_some(), "{path:?}");
    }

    #[test]
    fn the_sixth_version_of_ip_confirms_as_well() {
        // A system may do without it.
        if UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
            let path = measure_path(Ipv6Addr::LOCALHOST.into(), 9000).expect("a route");
            assert!(path.is_confirmed && path.bytes == 9000, "{path:?}");
        }
    }

    #[test]
    fn a_peer_of_this_host_is_reached_by_loopback() {
        assert_eq!(device_towards(Ipv4Addr::LOCALHOST.into()).expect("a route").as_deref(), Some("lo"));
    }

    #[test]
    fn a_port_that_is_used_and_silent_confirms_nothing() {
        // Bound, so that the kernel refuses nothing; the port is the discard service's in this namespace alone.
        let Ok(_silent) = UdpSocket::bind(("127.0.0.77", UNUSED_PORT)) else { return };
        let path = measure_path("127.0.0.77".parse().expect("an address"), 1280).expect("a route");
        assert!(!path.is_confirmed && path.round_trip.is_none(), "{path:?}");
    }
}
