//! Parts of a frame that a switch reads: its destination, and its user data.

use std::collections::HashMap;

use super::RelayedStream;
use super::bundle::IPV4;

type Mac = [u8; 6];

/// At which port which station was heard last.
#[derive(Debug, Default)]
pub(super) struct Stations(HashMap<Mac, usize>);

impl Stations {
    /// The ports, of so many, that a frame (from its Ethernet header on) goes to, its own perhaps among them: all for groups and unknown
    /// stations.
    pub(super) fn handle_frame(&mut self, from: usize, ports: usize, frame: &[u8]) -> std::ops::Range<usize> {
        let source = frame.get(6..).and_then(|rest| rest.first_chunk());
        let (Some(destination), Some(source)) = (frame.first_chunk(), source) else { return 0..0 };
        if self.0.len() < STATIONS_MAX || self.0.contains_key(source) {
            self.0.insert(*source, from);
        }
        match self.0.get(destination) {
            Some(port) if !is_group(destination) => *port..port + 1,
            _ => 0..ports,
        }
    }
}

/// Whether a frame (from its Ethernet header on) asks for the address of a station, or tells it. Who loses one waits for a second before the
/// first datagram leaves, which says nothing of what is measured.
pub(super) fn is_of_address_resolution(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&ARP)
}

fn is_group(mac: &Mac) -> bool {
    mac[0] & 1 == 1
}

/// Samples in a datagram that goes to a port of user data, which are the odd ones (RTPS 2.5 §9.6.2.3): those of DATA and of batches.
/// Fragments of a sample are none, and later fragments of a datagram are not looked into.
pub(super) fn user_data((port, payload): Datagram<'_>) -> u64 {
    if port % 2 == 1 { thalweg::capture::count_samples(payload) } else { 0 }
}

/// Destination port and payload.
pub(super) type Datagram<'a> = (u16, &'a [u8]);

/// The datagram that begins in a frame (from its Ethernet header on).
pub(super) fn datagram(frame: &[u8]) -> Option<Datagram<'_>> {
    let packet = frame.get(14..)?;
    let header_bytes = usize::from(packet.first()? & 0x0f) * 4;
    let fragment = u16::from_be_bytes(*packet.get(6..)?.first_chunk()?) & 0x1fff;
    let is_udp = frame.get(12..14)? == IPV4 && *packet.get(9)? == UDP && fragment == 0;
    let datagram = packet.get(header_bytes..)?;
    let port = u16::from_be_bytes(*datagram.get(2..)?.first_chunk()?);
    datagram.get(8..).filter(|_| is_udp).map(|payload| (port, payload))
}

/// Whether a datagram is a packet of the stream: repetitions and reports are none.
pub(super) fn is_of_stream((port, payload): Datagram<'_>, stream: RelayedStream) -> bool {
    port == stream.port && payload.get(1).is_some_and(|second| second & 0x7f == stream.payload_type)
}

/// Whether a datagram says that the sender of the stream leaves (RFC 3550 §6.6). Who loses it waits for a silence longer than most runs,
/// which says nothing of what is measured.
pub(super) fn is_farewell((port, payload): Datagram<'_>, stream: RelayedStream) -> bool {
    let mut rest = if stream.port.checked_add(1) == Some(port) { payload } else { &[] };
    while let Some([_, packet_type, words @ ..]) = rest.first_chunk::<4>() {
        if *packet_type == BYE {
            return true;
        }
        let bytes = 4 * (usize::from(u16::from_be_bytes(*words)) + 1);
        rest = rest.get(bytes..).unwrap_or_default();
    }
    false
}

/// The packet type of RTCP.
const BYE: u8 = 203;

const ARP: [u8; 2] = [0x08, 0x06];
const UDP: u8 = 17;
/// Each host has one; further ones would be foreign.
const STATIONS_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    const RTPS_HEADER_BYTES: usize = 20;

    /// An RTPS message with one DATA, of an empty sample with this number.
    fn message_with_sample(number: u32) -> Vec<u8> {
        let mut message = [&b"RTPS\x02\x05"[..], &[0; 14]].concat();
        message.extend_from_slice(&[0x15, 5, 24, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 1, 3, 0, 0, 0, 0]);
        message.extend_from_slice(&number.to_le_bytes());
        message.extend_from_slice(&[0, 1, 0, 0]);
        message
    }

    fn frame(destination: u8, source: u8) -> Vec<u8> {
        [[destination; 6], [source; 6]].concat()
    }

    /// A datagram to a port, or a fragment of one.
    fn packet(port: u16, fragment: u16, payload: &[u8]) -> Vec<u8> {
        let mut out = frame(2, 4);
        out.extend_from_slice(&[8, 0, 0x45, 0, 0, 0, 0, 0]);
        out.extend_from_slice(&fragment.to_be_bytes());
        out.extend_from_slice(&[64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 9]);
        out.extend_from_slice(&port.to_be_bytes());
        out.extend_from_slice(&[0, 0, 0, 0]);
        out.extend_from_slice(payload);
        out
    }

    #[test]
    fn known_stations_get_their_frames_alone_and_groups_reach_all() {
        let mut stations = Stations::default();
        assert_eq!(stations.handle_frame(0, 3, &frame(4, 2)), 0..3, "nobody knows the station yet");
        assert_eq!(stations.handle_frame(2, 3, &frame(2, 4)), 0..1);
        assert_eq!(stations.handle_frame(0, 3, &frame(4, 2)), 2..3);
        assert_eq!(stations.handle_frame(0, 3, &frame(0xff, 2)), 0..3);
        stations.handle_frame(1, 3, &frame(2, 4));
        assert_eq!(stations.handle_frame(0, 3, &frame(4, 2)), 1..2, "it has moved");
        assert_eq!(stations.handle_frame(0, 3, &[1, 2, 3]), 0..0, "no frame at all");
    }

    #[test]
    fn address_resolution_is_known_by_its_type() {
        let of_type = |octets: [u8; 2]| [frame(0xff, 2), octets.to_vec(), vec![0; 28]].concat();
        assert!(is_of_address_resolution(&of_type([8, 6])));
        assert!(!is_of_address_resolution(&of_type([8, 0])) && !is_of_address_resolution(&frame(4, 2)));
    }

    #[test]
    fn user_data_is_what_samples_to_an_odd_port_are() {
        let sample = |number: u32| message_with_sample(number)[RTPS_HEADER_BYTES..].to_vec();
        let three = [message_with_sample(7), sample(8), sample(9)].concat();
        // An acknowledgement, and a timestamp.
        let other = [&three[..RTPS_HEADER_BYTES], &[6, 0, 0, 1, 7, 9, 1, 0, 0]].concat();
        let count = |frame: &[u8]| datagram(frame).map_or(0, user_data);
        assert_eq!(count(&packet(7_411, 0, &three)), 3);
        assert_eq!(count(&packet(7_411, 0, &other)), 0);
        assert_eq!(count(&packet(7_410, 0, &three)), 0);
        assert_eq!(count(&packet(7_411, 0, &three[1..])), 0);
        assert_eq!(count(&packet(7_411, 185, &three)), 0, "a later fragment");
        let whole = packet(7_411, 0, &three);
        for length in 0..whole.len() {
            assert!(count(&whole[..length]) <= 3);
        }
    }

    #[test]
    fn a_farewell_is_found_behind_reports_at_the_port_of_control() {
        let stream = RelayedStream { port: 5_004, payload_type: 96 };
        let report = [&[0x80, 201, 0, 1][..], &[0; 4]].concat();
        let farewell = [&[0x81, 203, 0, 1][..], &[0; 4]].concat();
        let last = [&report[..], &farewell].concat();
        assert!(is_farewell((5_005, &last), stream) && is_farewell((5_005, &farewell), stream));
        assert!(!is_farewell((5_005, &report), stream), "a report");
        assert!(!is_farewell((5_004, &last), stream), "the port of packets");
        assert!(!is_farewell((0, &last), RelayedStream { port: u16::MAX, ..stream }), "no port follows");
        let shortest = (0..=last.len()).find(|length| is_farewell((5_005, &last[..*length]), stream));
        assert_eq!(shortest, Some(last.len() - 4), "its header is enough");
    }

    #[test]
    fn packets_of_a_stream_are_those_of_its_port_and_payload_type() {
        let stream = RelayedStream { port: 5_004, payload_type: 96 };
        let rtp = |second: u8| [&[0x80, second][..], &[0; 18]].concat();
        // The marker stands beside the payload type; 97 is a repetition, 200 a report.
        for (second, expect) in [(96, true), (0x80 | 96, true), (97, false), (200, false)] {
            assert_eq!(is_of_stream((5_004, &rtp(second)), stream), expect, "{second}");
        }
        assert!(!is_of_stream((5_005, &rtp(96)), stream), "the port of reports");
        assert!(!is_of_stream((5_004, &rtp(96)[..1]), stream), "no packet at all");
        assert_eq!(datagram(&packet(5_004, 185, &rtp(96))), None, "a later fragment");
        assert_eq!(datagram(&[frame(0xff, 2), vec![8, 6]].concat()), None, "address resolution");
    }
}
