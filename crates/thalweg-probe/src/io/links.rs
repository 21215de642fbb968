//! The sockets of the streams at one end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use thalweg_transport::clock;
use thalweg_transport::stream::{self, Oversize, StreamOptions, StreamReceiver, StreamScratch, StreamSocket};

use super::received::{ReceiveProgress, StreamReceived};
use super::sent::StreamSent;
use super::tcp::TcpLink;
use super::workers::Workers;
use super::{datagrams, tcp};
use crate::account::DatagramHeader;
use crate::error::ProbeError;
use crate::order::{Fragments, Joining, ProbeOrder};

/// The socket of a stream of datagrams, and where the other end's is.
#[derive(Clone)]
pub(super) struct DatagramLink {
    pub(super) socket: Arc<StreamSocket>,
    pub(super) peer: SocketAddr,
    pub(super) token: u32,
}

/// The sockets of one measurement at one end.
pub(super) enum Links {
    Datagrams(Vec<DatagramLink>),
    Tcp(Vec<Arc<TcpLink>>),
}

impl Links {
    /// Bytes of receive buffer asked for and granted, the smallest of all sockets.
    pub(super) fn buffers(&self, order: &ProbeOrder) -> (u64, u64) {
        match self {
            Links::Datagrams(links) => {
                let granted = links.iter().map(|link| link.socket.receive_buffer_bytes() as u64).min();
                (datagram_buffer_asked(order) as u64, granted.unwrap_or(0))
            }
            Links::Tcp(links) => {
                let granted = links.iter().map(|link| link.receive_buffer_bytes()).min();
                (order.receive_buffer_bytes.map_or(0, u64::from), granted.unwrap_or(0))
            }
        }
    }

    /// TCP segments that were sent again so far.
    pub(super) fn retransmitted_segments(&self) -> Option<u64> {
        match self {
            Links::Datagrams(_) => None,
            Links::Tcp(links) => links.iter().map(|link| link.retransmitted_segments()).sum(),
        }
    }

    /// The ports of datagrams at this end.
    pub(super) fn ports(&self) -> Vec<u16> {
        match self {
            Links::Datagrams(links) => links.iter().map(|link| link.socket.local_address().port()).collect(),
            Links::Tcp(_) => Vec::new(),
        }
    }

    /// Starts a thread that sends for each.
    pub(super) fn send(&self, order: &ProbeOrder) -> Workers<StreamSent> {
        let start = clock::now();
        match self {
            Links::Datagrams(links) => datagrams::send(order, links, start),
            Links::Tcp(links) => tcp::send(order, links, start),
        }
    }

    /// Starts a thread that receives for each.
    pub(super) fn receive(
        &self,
        order: &ProbeOrder,
        progress: &Arc<ReceiveProgress>,
    ) -> Result<Workers<StreamReceived>, ProbeError> {
        match self {
            Links::Datagrams(links) => datagrams::receive(order, links, progress),
            Links::Tcp(links) => Ok(tcp::receive(links, progress)),
        }
    }
}

/// Opens a socket for each stream on the address `here`, its port the first of as many, or 0 for those that the system chooses.
pub(super) fn open_datagram_sockets(
    order: &ProbeOrder,
    here: SocketAddr,
    first_port: u16,
) -> Result<Vec<Arc<StreamSocket>>, ProbeError> {
    let options = StreamOptions {
        receive_buffer_bytes: datagram_buffer_asked(order),
        oversize: match order.fragments {
            Fragments::Refused => Oversize::Refuse,
            Fragments::Allowed => Oversize::Cut,
        },
        joining: match order.joining {
            Joining::Both => stream::KernelJoining::Both,
            Joining::Sent => stream::KernelJoining::Sent,
            Joining::Received => stream::KernelJoining::Received,
            Joining::Neither => stream::KernelJoining::Neither,
        },
        ..StreamOptions::default()
    };
    let open = |number: u32| {
        let mut address = here;
        address.set_port(port_of(first_port, number));
        StreamSocket::bind(address, &options).map(Arc::new)
    };
    let sockets = (0..order.streams).map(open).collect::<Result<_, _>>();
    sockets.map_err(ProbeError::system("opening a UDP socket"))
}

/// Bytes of receive buffer that are asked for, each UDP socket.
fn datagram_buffer_asked(order: &ProbeOrder) -> usize {
    order.receive_buffer_bytes.map_or(StreamOptions::default().receive_buffer_bytes, |bytes| bytes as usize)
}

/// The port of stream `number` where they follow one another; 0 stays 0.
pub(super) fn port_of(first_port: u16, number: u32) -> u16 {
    if first_port == 0 { 0 } else { first_port.saturating_add(number as u16) }
}

/// Puts sockets, the other end's ports and tokens together.
pub(super) fn link_datagrams(
    sockets: Vec<Arc<StreamSocket>>,
    peer: SocketAddr,
    ports: &[u16],
    token: u32,
) -> Vec<DatagramLink> {
    let link = |(number, (socket, port)): (usize, (Arc<StreamSocket>, &u16))| {
        let mut peer = peer;
        peer.set_port(*port);
        DatagramLink { socket, peer, token: token_of(token, number) }
    };
    sockets.into_iter().zip(ports).enumerate().map(link).collect()
}

/// Sends a datagram from each socket to the other end: packet filters and address translation on the way then let the other end's in.
pub(super) fn knock(links: &[DatagramLink]) {
    let mut scratch = StreamScratch::default();
    for link in links {
        let head = DatagramHeader { number: 0, token: link.token, sent_us: 0 }.to_wire();
        let mut burst = link.socket.burst(&mut scratch, link.peer);
        burst.push([&head[..]]);
        // Where it does not leave, nothing else will, and the stream tells so.
        burst.send(KNOCK_PATIENCE);
    }
}

/// Takes the address that a knock comes from for the other end's, which address translation may have changed; only the port, so that
/// nobody lets this host send to somebody else. A knock that got lost leaves the port that was named.
pub(super) fn hear_knocks(links: &mut [DatagramLink]) -> Result<(), ProbeError> {
    for link in links {
        let mut receiver = StreamReceiver::new(&[&link.socket]).map_err(ProbeError::system("preparing to receive"))?;
        receiver.wait_until(clock::now() + KNOCK_PATIENCE).map_err(ProbeError::system("waiting for a knock"))?;
        receiver.receive(0).map_err(ProbeError::system("receiving"))?;
        while let Some(arrival) = receiver.next_arrival() {
            let is_ours = |datagram| DatagramHeader::from_wire(datagram).is_some_and(|head| head.token == link.token);
            if arrival.source.ip() == link.peer.ip() && arrival.datagrams().any(is_ours) {
                link.peer.set_port(arrival.source.port());
            }
        }
    }
    Ok(())
}

/// What stands in the datagrams of a stream: those of another stream of the same measurement are as foreign as any.
fn token_of(token: u32, stream: usize) -> u32 {
    token.wrapping_add(stream as u32)
}

/// Refuses datagrams that do not fit the path to `peer`, unless they may be cut.
pub(super) fn check_path(order: &ProbeOrder, peer: SocketAddr) -> Result<(), ProbeError> {
    if order.fragments == Fragments::Allowed {
        return Ok(());
    }
    let mtu_bytes = stream::path_mtu(peer, None).map_err(ProbeError::system("asking for the path's MTU"))?;
    let payload_max = stream::payload_max(mtu_bytes, peer.ip());
    if order.size_bytes as usize > payload_max {
        return Err(ProbeError::TooLarge { size_bytes: order.size_bytes, mtu_bytes, payload_max });
    }
    Ok(())
}

/// How long a knock is waited for; it was sent before the client's last word, and mostly is there.
const KNOCK_PATIENCE: Duration = Duration::from_millis(50);
