//! The sockets of one path of a stream: RTP and RTCP on their ports, or both on one.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};

use thalweg_base::time::Instant;
use thalweg_transport::stream::{
    ReceiveCounts, StreamArrival, StreamOptions, StreamReceiver, StreamSocket, Waker, Wakeup,
};

use crate::rtp;

/// Where the RTCP of a stream goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ControlPort {
    /// To the port above that of RTP (RFC 3550 §11).
    #[default]
    Next,
    /// To the port of RTP (RFC 5761).
    Multiplexed,
    /// To this port.
    At(u16),
}

impl ControlPort {
    /// Where RTCP goes beside RTP at `media`.
    ///
    /// # Errors
    /// When RTP has the last port, above which there is none.
    pub fn beside(self, media: SocketAddr) -> io::Result<SocketAddr> {
        let port = match self {
            ControlPort::Multiplexed => media.port(),
            ControlPort::At(port) => port,
            ControlPort::Next => media.port().checked_add(1).ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidInput, "RTP at port 65535 leaves no port above it for RTCP")
            })?,
        };
        let mut address = media;
        address.set_port(port);
        Ok(address)
    }
}

/// RTP or RTCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Pictures and repaired pictures.
    Media,
    /// Reports and requests.
    Control,
}

impl Protocol {
    /// What a datagram on a port of both is (RFC 5761 §4): packet types 192 to 223 are RTCP's.
    pub fn of(datagram: &[u8]) -> Protocol {
        if rtp::is_rtcp(datagram) { Protocol::Control } else { Protocol::Media }
    }
}

/// Settings of a [`MediaSocket`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaOptions {
    /// Of the socket of RTP; RTCP has the same but for the size of its receive buffer.
    pub stream: StreamOptions,
    /// Where RTCP is heard. Default: at the next port.
    pub control: ControlPort,
}

/// The bound sockets of one path.
pub struct MediaSocket {
    media: StreamSocket,
    /// `None` where RTP and RTCP share a port.
    control: Option<StreamSocket>,
}

impl MediaSocket {
    /// Opens and binds both; port 0 lets the system choose, an even one and the next where RTCP has the next.
    ///
    /// # Errors
    /// What [`StreamSocket::bind`] says of either, and that no two neighbouring ports are free.
    pub fn bind(address: SocketAddr, options: &MediaOptions) -> io::Result<MediaSocket> {
        if address.port() != 0 || options.control != ControlPort::Next {
            return MediaSocket::bind_at(address, options);
        }
        let mut outcome = Err(io::Error::from(io::ErrorKind::AddrInUse));
        for _ in 0..PAIRS_TRIED_MAX {
            // The system names a free port; its pair may still be taken.
            let free = StreamSocket::bind(address, &options.stream)?.local_address();
            outcome = MediaSocket::bind_at(pair_of(free), options);
            if !outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse) {
                return outcome;
            }
        }
        outcome
    }

    fn bind_at(address: SocketAddr, options: &MediaOptions) -> io::Result<MediaSocket> {
        let media = StreamSocket::bind(address, &options.stream)?;
        let control = match options.control {
            ControlPort::Multiplexed => None,
            port => {
                let stream = StreamOptions { receive_buffer_bytes: CONTROL_BUFFER_BYTES, ..options.stream };
                Some(StreamSocket::bind(port.beside(media.local_address())?, &stream)?)
            }
        };
        Ok(MediaSocket { media, control })
    }

    /// Hears a multicast group on the interface with this index (0: the system's choice), from `sources` alone, or from everybody
    /// where there is none.
    ///
    /// # Errors
    /// As [`StreamSocket::join`]; each source takes a place of `net.ipv4.igmp_max_msf` (10 by default) or `net.ipv6.mld_max_msf` (64).
    pub fn join(&self, group: IpAddr, sources: &[IpAddr], interface: u32) -> io::Result<()> {
        // The kernel refuses a source that it has.
        let sources: BTreeSet<IpAddr> = sources.iter().copied().collect();
        let join = |socket: &StreamSocket| {
            if sources.is_empty() {
                return socket.join(group, interface);
            }
            let joined = sources.iter().try_for_each(|source| socket.join_source(group, *source, interface));
            joined.map_err(|error| refused_sources(group, sources.len(), &error))
        };
        join(&self.media)?;
        self.control.as_ref().map_or(Ok(()), join)
    }

    /// The socket that RTP is sent by.
    pub fn media(&self) -> &StreamSocket {
        &self.media
    }

    /// The socket that RTCP is sent by.
    pub fn control(&self) -> &StreamSocket {
        self.control.as_ref().unwrap_or(&self.media)
    }
}

/// Receives RTP and RTCP of one path or of several; belongs to one thread.
pub struct MediaReceiver {
    receiver: StreamReceiver,
    /// What the socket at each place is for.
    places: Vec<Place>,
    /// Calls of [`MediaReceiver::receive_untold`].
    untold: u64,
}

#[derive(Clone, Copy)]
struct Place {
    path: usize,
    /// `None` where a datagram tells itself what it is.
    protocol: Option<Protocol>,
}

/// One message of one path.
#[derive(Clone, Copy, Debug)]
pub struct MediaArrival<'a> {
    /// The place of the path among those that the receiver was made for.
    pub path: usize,
    /// What all its datagrams are; `None` on a port of both, where [`Protocol::of`] tells of each.
    pub protocol: Option<Protocol>,
    /// The datagrams, with source and time of arrival.
    pub message: StreamArrival<'a>,
}

impl<'a> MediaArrival<'a> {
    /// Each datagram with its protocol, in the order of arrival.
    pub fn datagrams(&self) -> impl Iterator<Item = (Protocol, &'a [u8])> + use<'a> {
        let protocol = self.protocol;
        self.message.datagrams().map(move |bytes| (protocol.unwrap_or_else(|| Protocol::of(bytes)), bytes))
    }
}

impl MediaReceiver {
    /// Receives from the sockets of these paths.
    ///
    /// # Errors
    /// When the process may open no more descriptors.
    pub fn new(paths: &[MediaSocket]) -> io::Result<MediaReceiver> {
        let (mut sockets, mut places) = (Vec::new(), Vec::new());
        for (path, socket) in paths.iter().enumerate() {
            sockets.push(&socket.media);
            places.push(Place { path, protocol: socket.control.as_ref().map(|_| Protocol::Media) });
            if let Some(control) = &socket.control {
                sockets.push(control);
                places.push(Place { path, protocol: Some(Protocol::Control) });
            }
        }
        Ok(MediaReceiver { receiver: StreamReceiver::new(&sockets)?, places, untold: 0 })
    }

    /// Ends a wait from other threads.
    pub fn waker(&self) -> Waker {
        self.receiver.waker()
    }

    /// What was received so far, of all paths.
    pub fn counts(&self) -> ReceiveCounts {
        self.receiver.counts()
    }

    /// Waits as [`StreamReceiver::wait_until`].
    ///
    /// # Errors
    /// Only when epoll or the timer fails, which no retry will mend.
    pub fn wait_until(&mut self, deadline: Instant) -> io::Result<Wakeup> {
        self.receiver.wait_until(deadline)
    }

    /// Hands one batch of messages of each socket that the last wait told of to `handle`; returns whether more may be queued.
    ///
    /// A socket that only fails has nothing to hand over; the other ones have.
    pub fn receive(&mut self, mut handle: impl FnMut(MediaArrival<'_>)) -> bool {
        for place in 0..self.places.len() {
            if self.receiver.is_ready(place) {
                self.receive_from(place, &mut handle);
            }
        }
        self.is_more()
    }

    /// Asks the sockets of RTCP although nobody told that something is queued: one system call a path.
    pub fn receive_control(&mut self, mut handle: impl FnMut(MediaArrival<'_>)) {
        for place in 0..self.places.len() {
            if self.places[place].protocol != Some(Protocol::Media) {
                self.receive_from(place, &mut handle);
            }
        }
    }

    /// Asks all sockets although nobody told that something is queued, until each is empty or has given `batches_max` times eight
    /// messages: one system call a socket at least. Those of RTCP alone, of which the kernel keeps the times of arrival, are asked at one
    /// call in sixteen. Returns whether more may be queued.
    pub fn receive_untold(&mut self, batches_max: usize, mut handle: impl FnMut(MediaArrival<'_>)) -> bool {
        self.untold += 1;
        let asks_control = self.untold.is_multiple_of(CONTROL_TURN);
        for place in 0..self.places.len() {
            if self.places[place].protocol == Some(Protocol::Control) && !asks_control {
                continue;
            }
            for _ in 0..batches_max {
                self.receive_from(place, &mut handle);
                if !self.receiver.is_ready(place) {
                    break;
                }
            }
        }
        self.is_more()
    }

    /// The paths of which more packets may be queued than were received.
    pub fn unread_paths(&self) -> impl Iterator<Item = usize> {
        let places = self.places.iter().enumerate();
        let unread = places.filter(|(place, Place { protocol, .. })| {
            *protocol != Some(Protocol::Control) && self.receiver.is_ready(*place)
        });
        unread.map(|(_, place)| place.path)
    }

    fn is_more(&self) -> bool {
        (0..self.places.len()).any(|place| self.receiver.is_ready(place))
    }

    fn receive_from(&mut self, place: usize, handle: &mut impl FnMut(MediaArrival<'_>)) {
        if self.receiver.receive(place).is_err() {
            return;
        }
        let Place { path, protocol } = self.places[place];
        while let Some(message) = self.receiver.next_arrival() {
            handle(MediaArrival { path, protocol, message });
        }
    }
}

/// The same address with the even port of the pair that its port belongs to; an address of a link stays in its zone.
fn pair_of(mut address: SocketAddr) -> SocketAddr {
    address.set_port(address.port() & !1);
    address
}

/// The index of the interface that the group at `bind` is joined on: the one that was told, or else that of its zone.
pub(super) fn interface_of(bind: SocketAddr, told: u32) -> u32 {
    match bind {
        SocketAddr::V6(bind) if told == 0 => bind.scope_id(),
        _ => told,
    }
}

/// Why a group is not heard from its sources.
fn refused_sources(group: IpAddr, count: usize, error: &io::Error) -> io::Error {
    let setting = if group.is_ipv4() { "net.ipv4.igmp_max_msf" } else { "net.ipv6.mld_max_msf" };
    let text =
        format!("{group} cannot be heard from its {count} sources: {error}; {setting} is the most that are taken");
    io::Error::new(error.kind(), text)
}

/// RTCP has a turn in so many.
const CONTROL_TURN: u64 = 16;
/// Times that another pair of ports is tried: each fails only when somebody holds a pair's second port alone.
const PAIRS_TRIED_MAX: usize = 64;
/// Bytes of receive buffer of RTCP: 100 reports and requests of 1,500 bytes as the kernel charges them.
const CONTROL_BUFFER_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use thalweg_transport::clock;
    use thalweg_transport::stream::{PortSharing, StreamScratch};

    use super::*;

    /// The index of the loopback interface in every network namespace.
    const LOOPBACK: u32 = 1;

    fn bind(control: ControlPort) -> MediaSocket {
        let stream = StreamOptions { receive_buffer_bytes: 1 << 20, ..StreamOptions::default() };
        MediaSocket::bind("127.0.0.1:0".parse().unwrap(), &MediaOptions { stream, control }).unwrap()
    }

    fn send(from: &StreamSocket, to: SocketAddr, datagrams: &[&[u8]]) {
        let mut scratch = StreamScratch::default();
        let mut burst = from.burst(&mut scratch, to);
        datagrams.iter().for_each(|datagram| burst.push([*datagram]));
        assert_eq!(burst.send(Duration::from_millis(5)).datagrams, datagrams.len());
    }

    /// Everything that is queued: path, protocol and first octet of each datagram.
    fn receive(receiver: &mut MediaReceiver) -> Vec<(usize, Protocol, u8)> {
        let mut all = Vec::new();
        receiver.wait_until(clock::now() + Duration::from_millis(500)).unwrap();
        while receiver.receive(|arrival| {
            all.extend(arrival.datagrams().map(|(protocol, bytes)| (arrival.path, protocol, bytes[0])));
        }) {}
        all
    }

    #[test]
    fn rtcp_has_the_port_above_an_even_one() {
        let (here, there) = (bind(ControlPort::Next), bind(ControlPort::Next));
        let (media, control) = (there.media().local_address(), there.control().local_address());
        assert_eq!((media.port() % 2, control.port()), (0, media.port() + 1));
        let mut receiver = MediaReceiver::new(&[there]).unwrap();
        send(here.media(), media, &[&[1, 200]]);
        send(here.control(), control, &[&[2, 96]]);
        let mut all = receive(&mut receiver);
        all.extend(if all.len() < 2 { receive(&mut receiver) } else { Vec::new() });
        assert_eq!(all, [(0, Protocol::Media, 1), (0, Protocol::Control, 2)], "the port decides and not the octets");
    }

    #[test]
    fn on_one_port_packet_types_tell_rtcp_from_rtp() {
        let (here, there) = (bind(ControlPort::Multiplexed), bind(ControlPort::Multiplexed));
        assert_eq!(there.media().local_address(), there.control().local_address());
        let to = there.media().local_address();
        let mut receiver = MediaReceiver::new(&[there]).unwrap();
        // With the marker bit payload type 96 reads 224, which is beyond RTCP's.
        send(here.media(), to, &[&[129, 96], &[130, 224], &[131, 200], &[132, 207], &[133, 191], &[6]]);
        let (media, control) = (Protocol::Media, Protocol::Control);
        let expect =
            [(0, media, 129), (0, media, 130), (0, control, 131), (0, control, 132), (0, media, 133), (0, media, 6)];
        assert_eq!(receive(&mut receiver), expect);
        send(here.media(), to, &[&[128, 201]]);
        let mut heard = 0;
        receiver.receive_control(|arrival| heard += arrival.datagrams().count());
        assert_eq!(heard, 1, "without being told of it");
        send(here.media(), to, &[&[128, 96], &[129, 200]]);
        let mut heard = Vec::new();
        let is_more =
            receiver.receive_untold(8, |arrival| heard.extend(arrival.datagrams().map(|(protocol, _)| protocol)));
        assert_eq!((heard, is_more), (vec![media, control], false));
    }

    #[test]
    fn rtcp_on_a_port_of_its_own_has_a_turn_among_untold_calls() {
        let (here, there) = (bind(ControlPort::Next), bind(ControlPort::Next));
        let to = there.control().local_address();
        let mut receiver = MediaReceiver::new(&[there]).unwrap();
        send(here.control(), to, &[&[129, 200]]);
        let mut turns = Vec::new();
        for call in 1..=2 * CONTROL_TURN {
            receiver.receive_untold(8, |arrival| turns.extend(arrival.protocol.map(|protocol| (call, protocol))));
        }
        assert_eq!(turns, [(CONTROL_TURN, Protocol::Control)]);
    }

    #[test]
    fn paths_are_told_apart() {
        let here = bind(ControlPort::Multiplexed);
        let paths = [bind(ControlPort::Multiplexed), bind(ControlPort::Multiplexed)];
        let to = paths.each_ref().map(|path| path.media().local_address());
        let mut receiver = MediaReceiver::new(&paths).unwrap();
        send(here.media(), to[1], &[&[9, 96]]);
        assert_eq!(receive(&mut receiver), [(1, Protocol::Media, 9)]);
    }

    #[test]
    fn a_group_is_heard_from_its_sources_alone() {
        let stream = StreamOptions { sharing: PortSharing::Shared, ..StreamOptions::default() };
        let here = |from: [u8; 4]| {
            let stream = StreamOptions { multicast_interface: Some(LOOPBACK), ..stream };
            let options = MediaOptions { stream, control: ControlPort::Multiplexed };
            MediaSocket::bind(SocketAddr::new(from.into(), 0), &options).unwrap()
        };
        let [first, second, third] = [1, 2, 3].map(|host| here([127, 0, 0, host]));
        let options = MediaOptions { stream, control: ControlPort::Multiplexed };
        let free = here([127, 0, 0, 1]).media().local_address().port();
        let group = SocketAddr::new([239, 77, 3, 1].into(), free);
        // Two paths of one group and port, as RFC 7104 has them, each with its sources.
        let paths = [(); 2].map(|()| MediaSocket::bind(group, &options).unwrap());
        let [one, two, three] = [1, 2, 3].map(|host| IpAddr::from([127, 0, 0, host]));
        paths[0].join(group.ip(), &[two, one, two], LOOPBACK).unwrap();
        paths[1].join(group.ip(), &[three], LOOPBACK).unwrap();
        let mut receiver = MediaReceiver::new(&paths).unwrap();
        for (from, octet) in [(&first, 1), (&second, 2), (&third, 3)] {
            send(from.media(), group, &[&[octet, 96]]);
        }
        let mut all = receive(&mut receiver);
        all.sort_by_key(|(path, _, octet)| (*path, *octet));
        let media = Protocol::Media;
        assert_eq!(all, [(0, media, 1), (0, media, 2), (1, media, 3)]);
    }

    #[test]
    fn more_sources_than_the_kernel_takes_are_refused_with_its_setting() {
        let most = std::fs::read_to_string("/proc/sys/net/ipv4/igmp_max_msf").unwrap();
        let most: u32 = most.trim().parse().unwrap();
        if most > 1000 {
            return; // A host whose owner has raised it takes too long.
        }
        let options = MediaOptions { control: ControlPort::Multiplexed, ..MediaOptions::default() };
        let socket = MediaSocket::bind("0.0.0.0:0".parse().unwrap(), &options).unwrap();
        let sources: Vec<IpAddr> = (1..=most + 1).map(|host| Ipv4Addr::from(0x7f01_0000 + host).into()).collect();
        let group = IpAddr::from([239, 77, 3, 2]);
        socket.join(group, &sources[1..], LOOPBACK).unwrap();
        let socket = MediaSocket::bind("0.0.0.0:0".parse().unwrap(), &options).unwrap();
        let refused = socket.join(group, &sources, LOOPBACK).unwrap_err().to_string();
        assert!(refused.contains(&format!("its {} sources", most + 1)), "{refused}");
        assert!(refused.contains("net.ipv4.igmp_max_msf"), "{refused}");
    }

    #[test]
    fn addresses_of_a_link_stay_in_their_zone() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(pair_of(address("[fe80::1%3]:5005")), address("[fe80::1%3]:5004"));
        assert_eq!(pair_of(address("192.0.2.1:5004")), address("192.0.2.1:5004"));
        let group = address("[ff02::1234%3]:5004");
        assert_eq!([interface_of(group, 0), interface_of(group, 7)], [3, 7]);
        assert_eq!([0, 7].map(|told| interface_of(address("239.1.2.3:5004"), told)), [0, 7]);
        assert_eq!(ControlPort::Next.beside(group).unwrap(), address("[ff02::1234%3]:5005"));
    }

    #[test]
    fn the_last_port_has_none_above() {
        let last: SocketAddr = "127.0.0.1:65535".parse().unwrap();
        assert!(ControlPort::Next.beside(last).unwrap_err().to_string().contains("65535"));
        assert_eq!(ControlPort::Multiplexed.beside(last).unwrap(), last);
        assert_eq!(ControlPort::At(7).beside(last).unwrap().port(), 7);
    }
}
