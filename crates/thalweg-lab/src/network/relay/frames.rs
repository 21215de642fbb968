//! Parts of a frame that a switch reads: its destination, and its user data.

use std::collections::HashMap;

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

/// Samples in a frame (from its Ethernet header on) that goes to a port of user data, which are the odd ones (RTPS 2.5 §9.6.2.3): those
/// of DATA and of batches. Fragments of a sample are none, and later fragments of a datagram are not looked into.
pub(super) fn user_data(frame: &[u8]) -> u64 {
    datagram_to_users(frame).map_or(0, thalweg::capture::count_samples)
}

/// The payload of the datagram to an odd port.
fn datagram_to_users(frame: &[u8]) -> Option<&[u8]> {
    let packet = frame.get(14..)?;
    let header_bytes = usize::from(packet.first()? & 0x0f) * 4;
    let fragment = u16::from_be_bytes(*packet.get(6..)?.first_chunk()?) & 0x1fff;
    let is_udp = frame.get(12..14)? == IPV4 && *packet.get(9)? == UDP && fragment == 0;
    let datagram = packet.get(header_bytes..)?;
    let port = u16::from_be_bytes(*datagram.get(2..)?.first_chunk()?);
    datagram.get(8..).filter(|_| is_udp && port % 2 == 1)
}

const IPV4: [u8; 2] = [0x08, 0x00];
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
        let packet = |port: u16, fragment: u16, payload: &[u8]| {
            let mut out = frame(2, 4);
            out.extend_from_slice(&[8, 0, 0x45, 0, 0, 0, 0, 0]);
            out.extend_from_slice(&fragment.to_be_bytes());
            out.extend_from_slice(&[64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 9]);
            out.extend_from_slice(&port.to_be_bytes());
            out.extend_from_slice(&[0, 0, 0, 0]);
            out.extend_from_slice(payload);
            out
        };
        let sample = |number: u32| message_with_sample(number)[RTPS_HEADER_BYTES..].to_vec();
        let three = [message_with_sample(7), sample(8), sample(9)].concat();
        // An acknowledgement, and a timestamp.
        let other = [&three[..RTPS_HEADER_BYTES], &[6, 0, 0, 1, 7, 9, 1, 0, 0]].concat();
        assert_eq!(user_data(&packet(7_411, 0, &three)), 3);
        assert_eq!(user_data(&packet(7_411, 0, &other)), 0);
        assert_eq!(user_data(&packet(7_410, 0, &three)), 0);
        assert_eq!(user_data(&packet(7_411, 0, &three[1..])), 0);
        assert_eq!(user_data(&packet(7_411, 185, &three)), 0, "a later fragment");
        let whole = packet(7_411, 0, &three);
        for length in 0..whole.len() {
            assert!(user_data(&whole[..length]) <= 3);
        }
    }
}
