//! Packets of another source that go on where the stream ends: they may be its sender's, which had to take another number (RFC 3550 §8.2).
//!
//! The farewell to its number may be read after the packets behind it. They wait for it here, and nothing else makes them the stream's:
//! numbers and times are seen by everybody.

use std::ops::Range;

use thalweg_base::time::Instant;

use crate::receiver::NetworkPath;

/// Sources that wait at most.
const SOURCES_MAX: usize = 4;

/// Packets that wait, in the order of their arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitingPackets {
    /// All datagrams, one behind the other.
    octets: Vec<u8>,
    packets: Vec<WaitingPacket>,
    /// Each source, and how many packets of it wait.
    sources: Vec<(u32, usize)>,
}

#[derive(Clone, Debug)]
struct WaitingPacket {
    ssrc: u32,
    sequence: u16,
    arrived: Instant,
    path: NetworkPath,
    /// Its place among all octets.
    place: Range<usize>,
}

impl WaitingPackets {
    /// Whether packets of this source wait.
    pub(crate) fn is_waiting(&self, ssrc: u32) -> bool {
        self.sources.iter().any(|(waiting, _)| *waiting == ssrc)
    }

    /// Keeps a packet of the source `ssrc`, unless it and the others would take more than `octets_max` octets of memory.
    pub(crate) fn push(
        &mut self,
        (ssrc, sequence): (u32, u16),
        (arrived, path): (Instant, NetworkPath),
        datagram: &[u8],
        octets_max: usize,
    ) {
        let notes = (self.packets.len() + 1) * size_of::<WaitingPacket>();
        if self.octets.len() + datagram.len() + notes > octets_max {
            return;
        }
        self.count(ssrc);
        let start = self.octets.len();
        self.octets.extend_from_slice(datagram);
        self.packets.push(WaitingPacket { ssrc, sequence, arrived, path, place: start..self.octets.len() });
    }

    /// Counts a packet of a source. Where there is no room, a new one takes the place of the one with the fewest: forged ones keep nobody
    /// out.
    fn count(&mut self, ssrc: u32) {
        let known = self.sources.iter().position(|(waiting, _)| *waiting == ssrc);
        if let Some(place) = known {
            self.sources[place].1 += 1;
            return;
        }
        if self.sources.len() == SOURCES_MAX
            && let Some(place) = (0..SOURCES_MAX).min_by_key(|place| self.sources[*place].1)
        {
            self.sources.remove(place);
        }
        self.sources.push((ssrc, 1));
    }

    /// The sender has sent this number under its own source. If that is not before the first one that waits, the sender goes on, and those
    /// that wait are somebody else's. What another path brings later does not tell it.
    pub(crate) fn handle_own(&mut self, sequence: u16) {
        let is_overtaken = |first: &WaitingPacket| sequence.wrapping_sub(first.sequence) <= u16::MAX / 2;
        if self.packets.first().is_some_and(is_overtaken) {
            self.clear();
        }
    }

    /// Nothing that waits is of the stream.
    pub(crate) fn clear(&mut self) {
        self.octets.clear();
        self.packets.clear();
        self.sources.clear();
    }

    /// When, where and as what each packet came of the source with the most: single ones of another may be forged.
    pub(crate) fn of_likeliest(&self) -> impl Iterator<Item = (Instant, NetworkPath, &[u8])> {
        let likeliest = self.sources.iter().max_by_key(|(_, packets)| *packets).map(|(ssrc, _)| *ssrc);
        let packets = self.packets.iter().filter(move |packet| Some(packet.ssrc) == likeliest);
        packets.map(move |packet| (packet.arrived, packet.path, &self.octets[packet.place.clone()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of these sources and numbers, each with its number as its octets.
    fn waiting(packets: &[(u32, u16)]) -> WaitingPackets {
        let mut waiting = WaitingPackets::default();
        for packet in packets {
            waiting.push(*packet, (Instant::ZERO, NetworkPath::First), &packet.1.to_be_bytes(), 1 << 16);
        }
        waiting
    }

    /// The numbers that would be taken.
    fn numbers(waiting: &WaitingPackets) -> Vec<u16> {
        waiting.of_likeliest().map(|(.., octets)| u16::from_be_bytes([octets[0], octets[1]])).collect()
    }

    #[test]
    fn the_source_with_the_most_packets_is_taken() {
        assert!(numbers(&waiting(&[])).is_empty());
        assert_eq!(numbers(&waiting(&[(7, 5), (8, 3), (8, 4), (7, 9), (8, 5)])), [3, 4, 5]);
    }

    #[test]
    fn single_packets_of_many_sources_keep_nobody_out() {
        let packets = [(1, 5), (2, 5), (3, 5), (4, 5), (9, 1), (9, 2), (5, 5), (6, 5), (9, 3)];
        assert_eq!(numbers(&waiting(&packets)), [1, 2, 3]);
    }

    #[test]
    fn a_sender_that_goes_on_under_its_own_number_ends_the_waiting() {
        // Numbers turn; what came before the first one that waits was only late.
        for (own, left) in [(65_533, 2), (65_534, 0), (3, 0)] {
            let mut waiting = waiting(&[(7, 65_534), (7, 65_535)]);
            waiting.handle_own(own);
            assert_eq!(numbers(&waiting).len(), left, "{own}");
            assert_eq!(waiting.is_waiting(7), left > 0);
        }
    }

    #[test]
    fn memory_is_bounded() {
        let octets_max = 10 * (100 + size_of::<WaitingPacket>());
        let mut long = WaitingPackets::default();
        for sequence in 0..50 {
            long.push((7, sequence), (Instant::ZERO, NetworkPath::First), &[0; 100], octets_max);
        }
        assert_eq!(numbers(&long).len(), 10);
        let many: Vec<(u32, u16)> = (0..50).map(|source| (source, 1)).collect();
        assert_eq!(waiting(&many).sources.len(), SOURCES_MAX);
    }
}
