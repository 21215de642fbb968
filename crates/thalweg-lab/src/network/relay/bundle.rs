//! What a host's kernel hands over at once: a frame, or packets of one size that it has not cut (segmentation offload), which meet their
//! fates one by one and go on together as far as they meet the same.

use std::ops::Range;
use std::rc::Rc;

use thalweg_transport::frames::FramePort;

/// A frame behind the kernel's notes about it (`struct virtio_net_hdr`).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bundle {
    bytes: Vec<u8>,
    joined: Option<Joined>,
}

/// Packets that share their headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Joined {
    transport: Transport,
    /// Where the header of the transport and where the payload begin, from the Ethernet header on.
    transport_at: usize,
    payload_at: usize,
    /// Payload of each packet but the last.
    segment_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Udp,
    Tcp,
}

/// Successive packets of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    bundle: Rc<Bundle>,
    packets: Range<usize>,
}

impl Bundle {
    /// What came from an interface; `None` where not even the notes are whole.
    pub(super) fn new(bytes: &[u8]) -> Option<Bundle> {
        let (notes, ethernet) = bytes.split_at_checked(FramePort::PREFIX_BYTES)?;
        Some(Bundle { bytes: bytes.to_vec(), joined: Joined::find(notes, ethernet) })
    }

    /// The frame from its Ethernet header on.
    pub(super) fn ethernet(&self) -> &[u8] {
        &self.bytes[FramePort::PREFIX_BYTES..]
    }

    /// Packets in it.
    pub(super) fn packets(&self) -> usize {
        self.joined.map_or(1, |joined| self.payload(joined).len().div_ceil(joined.segment_bytes).max(1))
    }

    fn payload(&self, joined: Joined) -> &[u8] {
        &self.ethernet()[joined.payload_at..]
    }
}

impl Joined {
    fn find(notes: &[u8], ethernet: &[u8]) -> Option<Joined> {
        let transport = match notes.get(1)? & !MARKED {
            OF_UDP => Transport::Udp,
            OF_TCP => Transport::Tcp,
            _ => return None,
        };
        let segment_bytes = usize::from(u16::from_ne_bytes(*notes.get(SEGMENT_BYTES_AT..)?.first_chunk()?));
        // The kernel cuts nothing whose checksum is finished.
        let is_of_ipv4 = ethernet.get(12..14)? == IPV4;
        if segment_bytes == 0 || !is_of_ipv4 || notes.first()? & NEEDS_CHECKSUM == 0 {
            return None;
        }
        let transport_at = IP_AT + usize::from(ethernet.get(IP_AT)? & 0x0f) * 4;
        let (header_bytes, least) = match transport {
            Transport::Udp => (UDP_HEADER_BYTES, UDP_HEADER_BYTES),
            Transport::Tcp => (usize::from(ethernet.get(transport_at + TCP_OFFSET_AT)? >> 4) * 4, TCP_HEADER_BYTES),
        };
        let payload_at = transport_at + header_bytes;
        let is_whole = transport_at >= IP_AT + IP_HEADER_BYTES && header_bytes >= least;
        let fits = payload_at < ethernet.len() && ethernet.len() - IP_AT <= usize::from(u16::MAX);
        (is_whole && fits).then_some(Joined { transport, transport_at, payload_at, segment_bytes })
    }
}

impl Piece {
    /// One packet of a bundle.
    pub(super) fn packet(bundle: &Rc<Bundle>, number: usize) -> Piece {
        Piece { bundle: Rc::clone(bundle), packets: number..number + 1 }
    }

    /// How many packets it is.
    pub(super) fn packets(&self) -> u64 {
        self.packets.len() as u64
    }

    /// Bytes of its frame.
    pub(super) fn frame_bytes(&self) -> usize {
        match self.bundle.joined {
            Some(joined) => joined.payload_at + self.payload(joined).len(),
            None => self.bundle.ethernet().len(),
        }
    }

    /// Takes the packets that follow it in their bundle, or gives them back when they do not.
    pub(super) fn join(&mut self, next: Piece) -> Result<(), Piece> {
        if !Rc::ptr_eq(&self.bundle, &next.bundle) || self.packets.end != next.packets.start {
            return Err(next);
        }
        self.packets.end = next.packets.end;
        Ok(())
    }

    /// Destination port and payload of a datagram that begins in it.
    pub(super) fn datagram(&self) -> Option<(u16, &[u8])> {
        let ethernet = self.bundle.ethernet();
        let Some(joined) = self.bundle.joined else { return super::frames::datagram(ethernet) };
        let port = u16::from_be_bytes(*ethernet.get(joined.transport_at + 2..)?.first_chunk()?);
        (joined.transport == Transport::Udp).then(|| (port, self.payload(joined)))
    }

    /// Its notes and headers, for which `memory` has room, and its payload.
    pub(super) fn parts<'a>(&'a self, memory: &'a mut Vec<u8>) -> (&'a [u8], &'a [u8]) {
        let Some(joined) = self.bundle.joined.filter(|_| self.packets() < self.bundle.packets() as u64) else {
            return (&self.bundle.bytes, &[]);
        };
        let payload = self.payload(joined);
        memory.clear();
        memory.extend_from_slice(&self.bundle.bytes[..FramePort::PREFIX_BYTES + joined.payload_at]);
        let (notes, ethernet) = memory.split_at_mut(FramePort::PREFIX_BYTES);
        // No more than is there, or the kernel refuses the frame.
        notes[HEADER_BYTES_AT..HEADER_BYTES_AT + 2].copy_from_slice(&(joined.payload_at as u16).to_ne_bytes());
        if self.packets() == 1 {
            notes[1] = NOT_JOINED;
            notes[SEGMENT_BYTES_AT..SEGMENT_BYTES_AT + 2].fill(0);
        }
        let is_last = self.packets.end == self.bundle.packets();
        joined.rewrite(ethernet, payload.len(), self.packets.start, is_last);
        (memory, payload)
    }

    fn payload(&self, joined: Joined) -> &[u8] {
        let payload = self.bundle.payload(joined);
        let end = (self.packets.end * joined.segment_bytes).min(payload.len());
        &payload[self.packets.start * joined.segment_bytes..end]
    }
}

impl Joined {
    /// Makes headers those of packets from number `first` on with so much payload in all.
    fn rewrite(&self, ethernet: &mut [u8], payload_bytes: usize, first: usize, is_last: bool) {
        let (ip, transport) = ethernet[IP_AT..].split_at_mut(self.transport_at - IP_AT);
        let transport_bytes = (transport.len() + payload_bytes) as u16;
        put(ip, IP_LENGTH_AT, ip.len() as u16 + transport_bytes);
        // One number for each packet, as the kernel counts.
        put(ip, IP_IDENTIFICATION_AT, get(ip, IP_IDENTIFICATION_AT).wrapping_add(first as u16));
        put(ip, IP_CHECKSUM_AT, 0);
        put(ip, IP_CHECKSUM_AT, !sum(words(ip)));
        let checksum_at = match self.transport {
            Transport::Udp => {
                put(transport, UDP_LENGTH_AT, transport_bytes);
                UDP_CHECKSUM_AT
            }
            Transport::Tcp => {
                let number = u32::from_be_bytes([transport[4], transport[5], transport[6], transport[7]]);
                let number = number.wrapping_add((first * self.segment_bytes) as u32);
                transport[4..8].copy_from_slice(&number.to_be_bytes());
                if !is_last {
                    transport[TCP_FLAGS_AT] &= !(TCP_FIN | TCP_PUSH);
                }
                if first > 0 {
                    transport[TCP_FLAGS_AT] &= !TCP_WINDOW_REDUCED;
                }
                TCP_CHECKSUM_AT
            }
        };
        // Unfinished: that of the pseudo header alone.
        let pseudo = words(&ip[IP_ADDRESSES]).chain([ip[IP_PROTOCOL_AT].into(), transport_bytes.into()]);
        put(transport, checksum_at, sum(pseudo));
    }
}

fn get(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    bytes.chunks_exact(2).map(|pair| u32::from(get(pair, 0)))
}

/// The sum of the Internet checksum (RFC 1071), not inverted.
fn sum(words: impl Iterator<Item = u32>) -> u16 {
    let total: u32 = words.sum();
    let folded = (total & 0xffff) + (total >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

/// `VIRTIO_NET_HDR_GSO_*` of linux/virtio_net.h, and `VIRTIO_NET_HDR_F_NEEDS_CSUM`.
const NOT_JOINED: u8 = 0;
const OF_TCP: u8 = 1;
const OF_UDP: u8 = 5;
const MARKED: u8 = 0x80;
const NEEDS_CHECKSUM: u8 = 1;
const HEADER_BYTES_AT: usize = 2;
const SEGMENT_BYTES_AT: usize = 4;
pub(super) const IPV4: [u8; 2] = [0x08, 0x00];
const IP_AT: usize = 14;
const IP_HEADER_BYTES: usize = 20;
const IP_LENGTH_AT: usize = 2;
const IP_IDENTIFICATION_AT: usize = 4;
const IP_PROTOCOL_AT: usize = 9;
const IP_CHECKSUM_AT: usize = 10;
const IP_ADDRESSES: Range<usize> = 12..20;
const UDP_HEADER_BYTES: usize = 8;
const UDP_LENGTH_AT: usize = 4;
const UDP_CHECKSUM_AT: usize = 6;
const TCP_HEADER_BYTES: usize = 20;
const TCP_OFFSET_AT: usize = 12;
const TCP_FLAGS_AT: usize = 13;
const TCP_CHECKSUM_AT: usize = 16;
const TCP_FIN: u8 = 0x01;
const TCP_PUSH: u8 = 0x08;
const TCP_WINDOW_REDUCED: u8 = 0x80;

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u16 = 10;

    /// What the kernel hands over for 27 octets from 10.0.0.1 to 10.0.0.2 that it would cut into packets with ten of them.
    fn bundle(kind: u8, protocol: u8, transport: &[u8]) -> Vec<u8> {
        let mut out = vec![NEEDS_CHECKSUM, kind];
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&SEGMENT.to_ne_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&[2; 12]);
        out.extend_from_slice(&IPV4);
        out.extend_from_slice(&[0x45, 0, 0, 0, 0xff, 0xff, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        out.extend_from_slice(transport);
        out.extend(0..27);
        out
    }

    fn datagrams() -> Vec<u8> {
        bundle(OF_UDP, 17, &[0x13, 0x8c, 0x13, 0x8d, 0, 35, 0, 0])
    }

    fn segments() -> Vec<u8> {
        let flags = TCP_FIN | TCP_PUSH | TCP_WINDOW_REDUCED | 0x10;
        let head = [[0x13, 0x8c, 0x13, 0x8d], [0xff, 0xff, 0xff, 0xfa], [0, 0, 0, 9], [0x50, flags, 0, 1], [0; 4]];
        bundle(OF_TCP, 6, &head.concat())
    }

    fn pieces(bytes: &[u8]) -> Vec<Piece> {
        let bundle = Rc::new(Bundle::new(bytes).expect("whole notes"));
        (0..bundle.packets()).map(|number| Piece::packet(&bundle, number)).collect()
    }

    /// The notes and the frame that a piece leaves as.
    fn left(piece: &Piece) -> (Vec<u8>, Vec<u8>) {
        let mut memory = Vec::new();
        let (head, payload) = piece.parts(&mut memory);
        let mut notes = head.to_vec();
        let frame = [&notes.split_off(FramePort::PREFIX_BYTES)[..], payload].concat();
        (notes, frame)
    }

    /// The checksum that the receiver expects of an unfinished one: that of addresses, protocol and length.
    fn pseudo(frame: &[u8]) -> u16 {
        let transport_bytes = (frame.len() - 34) as u32;
        sum(words(&frame[26..34]).chain([u32::from(frame[23]), transport_bytes]))
    }

    #[test]
    fn datagrams_that_were_not_cut_leave_as_the_kernel_would_have_cut_them() {
        let pieces = pieces(&datagrams());
        assert_eq!(pieces.len(), 3);
        for (number, (piece, octets)) in pieces.iter().zip([0..10, 10..20, 20..27]).enumerate() {
            let payload: Vec<u8> = octets.collect();
            assert_eq!(piece.datagram(), Some((5_005, &payload[..])));
            let (notes, frame) = left(piece);
            assert_eq!((notes[0], notes[1], get(&notes, 4)), (NEEDS_CHECKSUM, NOT_JOINED, 0));
            assert_eq!((frame.len(), &frame[42..]), (piece.frame_bytes(), &payload[..]));
            assert_eq!(usize::from(get(&frame, 16)), frame.len() - 14, "length of IP");
            assert_eq!(get(&frame, 18), 0xffff_u16.wrapping_add(number as u16), "identification");
            assert_eq!(sum(words(&frame[14..34])), 0xffff, "checksum of IP");
            assert_eq!(usize::from(get(&frame, 38)), 8 + payload.len(), "length of UDP");
            assert_eq!(get(&frame, 40), pseudo(&frame));
        }
    }

    #[test]
    fn packets_with_the_same_fate_stay_together() {
        let [first, second, third] = pieces(&datagrams()).try_into().expect("three");
        let mut ends = first.clone();
        assert_eq!(ends.join(third.clone()), Err(third.clone()), "one between them is missing");
        let mut last = second.clone();
        last.join(third).expect("they follow each other");
        let (notes, frame) = left(&last);
        assert_eq!((notes[1], notes[4..6].to_vec(), last.packets()), (OF_UDP, SEGMENT.to_ne_bytes().to_vec(), 2));
        assert_eq!((get(&frame, 18), get(&frame, 38), &frame[42..]), (0, 25, &(10..27).collect::<Vec<u8>>()[..]));
        let mut all = first;
        all.join(last).expect("they follow each other");
        assert_eq!(
            left(&all),
            {
                let whole = datagrams();
                (whole[..10].to_vec(), whole[10..].to_vec())
            },
            "as it came"
        );
        let other = Piece::packet(&Rc::new(Bundle::new(&datagrams()).expect("whole notes")), 3);
        assert!(all.join(other).is_err(), "of another bundle");
    }

    #[test]
    fn segments_of_a_connection_have_their_numbers_and_flags() {
        let pieces = pieces(&segments());
        let heads: Vec<(u32, u8)> = (pieces.iter().map(|piece| left(piece).1))
            .map(|frame| {
                assert_eq!(get(&frame, 50), pseudo(&frame));
                (u32::from_be_bytes([frame[38], frame[39], frame[40], frame[41]]), frame[47])
            })
            .collect();
        let at_the_end = TCP_FIN | TCP_PUSH;
        assert_eq!(heads, [(0xffff_fffa, 0x10 | TCP_WINDOW_REDUCED), (4, 0x10), (14, 0x10 | at_the_end)]);
        assert!(pieces.iter().all(|piece| piece.datagram().is_none()));
    }

    #[test]
    fn what_cannot_be_cut_is_one_packet() {
        let whole = datagrams();
        let changed = |at: usize, value: u8| {
            let mut bytes = whole.clone();
            bytes[at] = value;
            bytes
        };
        let mut short = segments();
        short[10 + 34 + TCP_OFFSET_AT] = 0x20;
        let long = [whole.clone(), vec![0; 1 << 16]].concat();
        let others = [changed(0, 0), changed(1, NOT_JOINED), changed(1, 4), changed(4, 0), changed(23, 0x86)];
        for bytes in others.into_iter().chain([short, long]) {
            let pieces = pieces(&bytes);
            assert_eq!(pieces.len(), 1);
            assert_eq!(left(&pieces[0]).1, bytes[10..]);
        }
        assert_eq!(Bundle::new(&whole[..9]), None);
        for bytes in [&whole, &segments()] {
            for length in 10..bytes.len() {
                for piece in pieces(&bytes[..length]) {
                    assert!(piece.frame_bytes() <= length && left(&piece).1.len() == piece.frame_bytes());
                    piece.datagram();
                }
            }
        }
    }
}
