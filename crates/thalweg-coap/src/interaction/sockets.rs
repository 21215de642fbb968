//! The sockets that a server listens on.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use mio::Poll;
use mio::net::TcpListener;
use thalweg_transport::batch::{BatchOptions, BatchSocket, PortSharing};
use thalweg_transport::interfaces::{self, InterfaceSelection};

use super::server::{GroupRequests, SecureConfig, ServerConfig, ServerError};
use super::streams::{LISTENERS_MAX, Listener, StreamsConfig, TlsServer, WAKER};
use crate::dtls::RECORD_MAX;
use crate::identity::Transport;

/// A socket for each loop.
pub(super) fn open(config: &ServerConfig) -> Result<Vec<BatchSocket>, ServerError> {
    let sharing = if config.loops > 1 { PortSharing::Shared } else { PortSharing::Exclusive };
    let options = BatchOptions { sharing, datagram_bytes: MESSAGE_BYTES_MAX, ..BatchOptions::default() };
    let mut address = config.address;
    let mut sockets = Vec::new();
    for number in 0..config.loops.max(1) {
        let failed = ServerError::new(format!("listen on {address}"), "is another server running there?");
        let socket = BatchSocket::bind(address, &options).map_err(failed)?;
        address = socket.local_address();
        // Each socket that joins gets a copy of a group's datagram, and one answer is enough.
        if number == 0 && config.groups == GroupRequests::Heard {
            join(&socket).map_err(ServerError::new("join the CoAP groups", "serve without them"))?;
        }
        sockets.push(socket);
    }
    Ok(sockets)
}

/// What a loop for connections begins with.
pub(super) struct Streams {
    pub poll: Poll,
    pub waker: mio::Waker,
    pub listeners: Vec<Listener>,
    pub addresses: Vec<(Transport, SocketAddr)>,
}

/// The listeners for connections.
pub(super) fn open_streams(config: &StreamsConfig) -> Result<Streams, ServerError> {
    let failed = || ServerError::new("wait for connections", "allow it more descriptors");
    let poll = Poll::new().map_err(failed())?;
    let waker = mio::Waker::new(poll.registry(), WAKER).map_err(failed())?;
    let (mut listeners, mut addresses) = (Vec::new(), Vec::new());
    for (transport, address) in config.listeners.iter().copied().take(LISTENERS_MAX) {
        let unusable = ServerError::new(format!("listen for {transport}"), "give it other credentials");
        let is_possible = transport.is_reliable();
        let tls = transport.is_secure().then(|| TlsServer::new(&config.credentials, transport));
        let tls = if is_possible { tls.transpose() } else { Err(io::Error::other("it has no connections")) };
        let tls = tls.map_err(unusable)?;
        let taken =
            ServerError::new(format!("listen on {address} for {transport}"), "is another server running there?");
        let bound = TcpListener::bind(address).and_then(|socket| Ok((socket.local_addr()?, socket)));
        let (address, socket) = bound.map_err(taken)?;
        addresses.push((transport, address));
        listeners.push(Listener { socket, transport, tls });
    }
    Ok(Streams { poll, waker, listeners, addresses })
}

/// The socket for DTLS.
pub(super) fn open_secure(config: &SecureConfig) -> Result<BatchSocket, ServerError> {
    let address = config.address;
    let failed = ServerError::new(format!("listen on {address} for DTLS"), "is another server running there?");
    let options = BatchOptions { datagram_bytes: RECORD_MAX, ..BatchOptions::default() };
    BatchSocket::bind(address, &options).map_err(failed)
}

/// Joins all CoAP nodes on each interface that has multicast.
fn join(socket: &BatchSocket) -> io::Result<()> {
    let is_v4 = socket.local_address().is_ipv4();
    for interface in interfaces::enumerate(&InterfaceSelection::default())?.iter().filter(|one| one.multicast) {
        let groups =
            if is_v4 { interface.v4().map(|_| &ALL_NODES_V4[..]) } else { interface.v6().map(|_| &ALL_NODES_V6[..]) };
        for group in groups.unwrap_or_default() {
            socket.join(*group, interface.index)?;
        }
    }
    Ok(())
}

/// Longer messages are answered 4.13: RFC 7252 §4.6 reckons with 1,152 bytes, larger bodies come in blocks. A record of DTLS has to
/// be whole to be opened, so that socket takes the longest one.
pub(super) const MESSAGE_BYTES_MAX: usize = 2048;
/// RFC 7252 §12.8: the variants of link-local and site-local scope for IPv6.
const ALL_NODES_V4: [IpAddr; 1] = [IpAddr::V4(Ipv4Addr::new(224, 0, 1, 187))];
const ALL_NODES_V6: [IpAddr; 2] = [
    IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfd)),
    IpAddr::V6(Ipv6Addr::new(0xff05, 0, 0, 0, 0, 0, 0, 0xfd)),
];
