//! Control messages (`cmsg`) built and parsed as bytes, without pointers: a lie in a length cannot lead outside the buffer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use super::address::Family;

/// Aligned room for the control messages of one datagram.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(crate) struct ControlBuffer<const BYTES: usize>(pub(crate) [u8; BYTES]);

/// The content of a received datagram's control messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Control {
    /// Interface the datagram came in on; 0 when unknown.
    pub(crate) interface: u32,
    /// Destination address of the datagram.
    pub(crate) destination: Option<IpAddr>,
    /// Size of each datagram in a GRO buffer.
    pub(crate) segment_bytes: Option<usize>,
    /// Datagrams this socket's full receive buffer has refused since it was opened (wraps at 2³²).
    pub(crate) kernel_drops: Option<u32>,
    /// Wall-clock time since 1970 at which the kernel took the datagram from the device, where the socket asks for that.
    pub(crate) kernel_time: Option<Duration>,
    /// An asynchronous error taken from the error queue.
    pub(crate) error: Option<AsyncError>,
}

/// One entry of a socket's error queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AsyncError {
    /// `errno` of the failed datagram.
    pub(crate) errno: i32,
    /// For `EMSGSIZE`: the path MTU that the network told.
    pub(crate) info: u32,
    /// Where the failed datagram was to go.
    pub(crate) destination: Option<SocketAddr>,
}

const WORD: usize = size_of::<usize>();
/// `sizeof(struct cmsghdr)`: length, level, type.
const HEADER: usize = WORD + 8;

const fn align(bytes: usize) -> usize {
    bytes.next_multiple_of(WORD)
}

/// Room that a control message with `data` bytes takes (`CMSG_SPACE`).
pub(crate) const fn space(data: usize) -> usize {
    align(HEADER) + align(data)
}

/// Room for everything a sender attaches: packet info of IPv6, the GSO segment size, traffic class and queue.
pub(crate) const SEND_BYTES: usize = space(20) + space(2) + 2 * space(4);

/// Which interface a datagram leaves through, and from which address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exit {
    pub(crate) interface: u32,
    pub(crate) source: IpAddr,
}

/// Treatment of a datagram by the network and by the queues of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marking {
    /// Address family of the datagram.
    pub(crate) family: Family,
    /// Differentiated Services code point.
    pub(crate) code_point: u8,
    /// Rank in this host's queues (`SO_PRIORITY`), 0 to 6; `None` leaves it to the kernel.
    pub(crate) queue: Option<u32>,
}

/// Control messages of one outgoing message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendControl {
    buffer: ControlBuffer<SEND_BYTES>,
    len: usize,
    exit: Option<Exit>,
    segment: Option<u16>,
    marking: Option<Marking>,
}

impl SendControl {
    /// Sends through `exit` instead of where the routing table leads, lets the kernel cut the bytes into datagrams of
    /// `segment` bytes each, and marks them.
    pub(crate) fn new(exit: Option<Exit>, segment: Option<u16>, marking: Option<Marking>) -> SendControl {
        let mut control = SendControl { buffer: ControlBuffer([0; SEND_BYTES]), len: 0, exit, segment, marking };
        if let Some(Exit { interface, source }) = exit {
            control.push_packet_info(interface, source);
        }
        if let Some(bytes) = segment {
            control.push(libc::SOL_UDP, libc::UDP_SEGMENT, &bytes.to_ne_bytes());
        }
        if let Some(marking) = marking {
            control.push_marking(marking);
        }
        control
    }

    pub(crate) fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// The same without a rank in this host's queues.
    pub(crate) fn without_rank(&self) -> SendControl {
        let marking = self.marking.map(|marking| Marking { queue: None, ..marking });
        SendControl::new(self.exit, self.segment, marking)
    }

    pub(crate) fn marking(&self) -> Option<Marking> {
        self.marking
    }

    fn push_marking(&mut self, Marking { family, code_point, queue }: Marking) {
        let octet = i32::from(code_point) << 2;
        match family {
            Family::V4 => self.push(libc::IPPROTO_IP, libc::IP_TOS, &octet.to_ne_bytes()),
            Family::V6 => self.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &octet.to_ne_bytes()),
        }
        // After the octet, from which the kernel derives a rank of its own.
        if let Some(queue) = queue {
            self.push(libc::SOL_SOCKET, libc::SO_PRIORITY, &queue.to_ne_bytes());
        }
    }

    fn push_packet_info(&mut self, interface: u32, source: IpAddr) {
        match source {
            IpAddr::V4(source) => {
                let mut data = [0; 12];
                data[..4].copy_from_slice(&interface.to_ne_bytes());
                data[4..8].copy_from_slice(&source.octets());
                self.push(libc::IPPROTO_IP, libc::IP_PKTINFO, &data);
            }
            IpAddr::V6(source) => {
                let mut data = [0; 20];
                data[..16].copy_from_slice(&source.octets());
                data[16..].copy_from_slice(&interface.to_ne_bytes());
                self.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &data);
            }
        }
    }

    fn push(&mut self, level: i32, kind: i32, data: &[u8]) {
        let end = self.len + space(data.len());
        let Some(cell) = self.buffer.0.get_mut(self.len..end) else { return };
        cell.fill(0);
        cell[..WORD].copy_from_slice(&(align(HEADER) + data.len()).to_ne_bytes());
        cell[WORD..WORD + 4].copy_from_slice(&level.to_ne_bytes());
        cell[WORD + 4..HEADER].copy_from_slice(&kind.to_ne_bytes());
        cell[align(HEADER)..align(HEADER) + data.len()].copy_from_slice(data);
        self.len = end;
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer.0[..self.len]
    }
}

/// Reads the control messages in `bytes`; malformed and unknown ones are skipped.
pub(crate) fn parse(mut bytes: &[u8]) -> Control {
    let mut control = Control::default();
    while let Some((level, kind, data, rest)) = split_first(bytes) {
        read_one(&mut control, level, kind, data);
        bytes = rest;
    }
    control
}

/// Splits the first control message off: level, type, data and the rest.
fn split_first(bytes: &[u8]) -> Option<(i32, i32, &[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<WORD>()?;
    let (level, rest) = rest.split_first_chunk::<4>()?;
    let (kind, _) = rest.split_first_chunk::<4>()?;
    let len = usize::from_ne_bytes(*len);
    let data = bytes.get(align(HEADER)..len)?;
    let rest = len.checked_next_multiple_of(WORD).and_then(|next| bytes.get(next..)).unwrap_or_default();
    Some((i32::from_ne_bytes(*level), i32::from_ne_bytes(*kind), data, rest))
}

fn read_one(control: &mut Control, level: i32, kind: i32, data: &[u8]) {
    match (level, kind) {
        (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
            // in_pktinfo: interface, local address, destination address of the header.
            let (Some(interface), Some(address)) = (word(data, 0), data.get(8..12)) else { return };
            control.interface = interface;
            control.destination = <[u8; 4]>::try_from(address).ok().map(|octets| Ipv4Addr::from(octets).into());
        }
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
            let (Some(address), Some(interface)) = (data.get(..16), word(data, 16)) else { return };
            control.interface = interface;
            control.destination = <[u8; 16]>::try_from(address).ok().map(|octets| Ipv6Addr::from(octets).into());
        }
        (libc::SOL_UDP, libc::UDP_GRO) => {
            // An int since Linux 5.0; a u16 in some stable branches before.
            let size = word(data, 0).or_else(|| {
                let short = data.first_chunk::<2>()?;
                Some(u32::from(u16::from_ne_bytes(*short)))
            });
            control.segment_bytes = size.map(|size| size as usize).filter(|size| *size > 0);
        }
        (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => control.kernel_drops = word(data, 0),
        (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS) => control.kernel_time = time(data),
        (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
            // sock_extended_err: errno, origin, type, code, pad, info, data.
            let (Some(errno), Some(info)) = (word(data, 0), word(data, 8)) else { return };
            control.error = Some(AsyncError { errno: errno as i32, info, destination: None });
        }
        _ => {}
    }
}

/// A `timespec`: two machine words, of which the second is below a second.
fn time(data: &[u8]) -> Option<Duration> {
    let (seconds, rest) = data.split_first_chunk::<WORD>()?;
    let nanos = rest.first_chunk::<WORD>()?;
    let seconds = u64::try_from(isize::from_ne_bytes(*seconds)).ok()?;
    let nanos = u32::try_from(isize::from_ne_bytes(*nanos)).ok().filter(|nanos| *nanos < 1_000_000_000)?;
    Some(Duration::new(seconds, nanos))
}

fn word(data: &[u8], at: usize) -> Option<u32> {
    let bytes = data.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(<[u8; 4]>::try_from(bytes).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_base::rng::Rng;

    #[test]
    fn what_a_sender_builds_a_receiver_reads() {
        let source = "192.0.2.1".parse().unwrap();
        let v4 = SendControl::new(Some(Exit { interface: 7, source }), Some(1400), None);
        assert_eq!(parse(v4.bytes()).interface, 7);
        let source = "2001:db8::1".parse().unwrap();
        let marking = Marking { family: Family::V6, code_point: 46, queue: Some(6) };
        let v6 = SendControl::new(Some(Exit { interface: 9, source }), Some(1400), Some(marking));
        assert_eq!(v6.bytes().len(), SEND_BYTES);
        assert_eq!(parse(v6.bytes()).interface, 9);
        assert_eq!(parse(v6.bytes()).destination, Some(source));
    }

    #[test]
    fn layout_agrees_with_the_c_library() {
        assert_eq!(HEADER, size_of::<libc::cmsghdr>());
        let control = SendControl::new(None, Some(1), None);
        assert_eq!(control.bytes().len(), space(2));
        assert_eq!(usize::from_ne_bytes(*control.bytes().first_chunk().unwrap()), align(HEADER) + 2);
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_always_end() {
        let mut rng = Rng::new(1);
        let kinds = [
            (libc::IPPROTO_IP, libc::IP_PKTINFO),
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO),
            (libc::SOL_UDP, libc::UDP_GRO),
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL),
            (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS),
            (libc::IPPROTO_IP, libc::IP_RECVERR),
        ];
        let rounds = if cfg!(miri) { 100 } else { 20_000 };
        for _ in 0..rounds {
            let mut bytes = [0u8; 128];
            bytes.iter_mut().for_each(|byte| *byte = rng.next_u64() as u8);
            // Make the header plausible, so that the data readers are reached with every length.
            let (level, kind) = kinds[rng.below(kinds.len() as u64) as usize];
            let len = if rng.chance(0.1) { rng.next_u64() as usize } else { rng.below(64) as usize };
            bytes[..WORD].copy_from_slice(&len.to_ne_bytes());
            bytes[WORD..WORD + 4].copy_from_slice(&level.to_ne_bytes());
            bytes[WORD + 4..HEADER].copy_from_slice(&kind.to_ne_bytes());
            let cut = rng.below(129) as usize;
            parse(&bytes[..cut]);
        }
    }

    #[test]
    fn a_time_is_read_and_an_impossible_one_is_none() {
        let time = |seconds: isize, nanos: isize| super::time(&[seconds.to_ne_bytes(), nanos.to_ne_bytes()].concat());
        assert_eq!(time(5, 999_999_999), Some(Duration::new(5, 999_999_999)));
        assert_eq!([time(5, 1_000_000_000), time(5, -1), time(-1, 0)], [None; 3]);
    }

    #[test]
    fn a_message_of_length_zero_ends_the_list() {
        assert_eq!(parse(&[0; 64]), Control::default());
    }
}
