//! How many packets leave together.

use std::ops::Range;

use super::SenderError;
use crate::rfc4175::PacketPlan;

/// Datagrams of a batch at most: what Linux cuts out of one message (`UDP_MAX_SEGMENTS`, before 6.9).
pub const BATCH_PACKETS_MAX: usize = 64;
/// Octets of a batch at most: the largest UDP payload over IPv4, which one message is before it is cut.
pub const BATCH_OCTETS_MAX: usize = 65_507;
/// Messages that leave together in a local network of standard Ethernet frames, for half of the waits: 128 KiB are a tenth of what a
/// millisecond of a 10-gigabit link carries, and fit a receive buffer of Linux's default limit as network interfaces charge them.
const LAN_MESSAGES: usize = 2;
/// The same where frames are larger: their network is set up by hand, and its receive buffers with it.
const LAN_MESSAGES_OF_JUMBO_FRAMES: usize = 4;
/// UDP payload of a standard Ethernet frame at most, over IPv4.
const STANDARD_PAYLOAD_OCTETS: u16 = 1472;

/// How many packets leave together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Batching {
    /// As many as a "wide" sender of ST 2110-21 may: 16, or more at more than 345,600 packets a second.
    #[default]
    Wide,
    /// As many as two messages hold (65,507 octets each), or four where packets need an MTU above 1500: the fewest system
    /// calls and wake-ups, for networks whose switches and receivers have buffers for it.
    Lan,
    /// This many, from 1 to [`BATCH_PACKETS_MAX`].
    Packets(u8),
}

/// The batches of a field: each holds packets of one size, of which the last may be smaller.
#[derive(Debug)]
pub(super) struct Batches {
    /// The first packet of each.
    firsts: Vec<u32>,
    field_packets: u32,
    /// So many leave at once, when the first of them is due.
    together: usize,
}

impl Batches {
    pub(super) fn cut(plan: &PacketPlan, batching: Batching) -> Result<Batches, SenderError> {
        let count_max = match batching {
            Batching::Wide => {
                let packets_per_second = plan.frame_packets() as f64 * plan.format().rate().hertz();
                // C_max of ST 2110-21.
                ((packets_per_second / 21_600.0) as usize).clamp(16, BATCH_PACKETS_MAX)
            }
            Batching::Lan => BATCH_PACKETS_MAX,
            Batching::Packets(count) if (1..=BATCH_PACKETS_MAX).contains(&usize::from(count)) => usize::from(count),
            Batching::Packets(count) => return Err(SenderError::Batch(count)),
        };
        let together = match batching {
            Batching::Lan if plan.datagram_octets_max() > STANDARD_PAYLOAD_OCTETS => LAN_MESSAGES_OF_JUMBO_FRAMES,
            Batching::Lan => LAN_MESSAGES,
            Batching::Wide | Batching::Packets(_) => 1,
        };
        let number = |packet| u32::try_from(packet).expect("a field has at most PACKETS_MAX packets");
        let mut firsts = vec![0];
        let (mut first, mut octets, mut previous) = (0, 0, None);
        for packet in 0..plan.field_packets() {
            let size = usize::from(plan.packet(packet).0.datagram_octets);
            let size_of_first = usize::from(plan.packet(first).0.datagram_octets);
            let is_after_a_smaller = previous.is_some_and(|previous| previous < size_of_first);
            let is_full = packet - first == count_max || octets + size > BATCH_OCTETS_MAX;
            if packet > first && (is_full || is_after_a_smaller || size > size_of_first) {
                firsts.push(number(packet));
                (first, octets) = (packet, 0);
            }
            octets += size;
            previous = Some(size);
        }
        Ok(Batches { firsts, field_packets: number(plan.field_packets()), together })
    }

    /// The packets of a batch.
    pub(super) fn packets(&self, batch: usize) -> Range<u32> {
        self.firsts[batch]..self.firsts.get(batch + 1).copied().unwrap_or(self.field_packets)
    }

    /// The packet of which a batch leaves when it is due: the first of those that leave at once.
    pub(super) fn leaves_with(&self, batch: usize) -> u32 {
        self.firsts[batch - batch % self.together]
    }

    /// Packets of the longest batch.
    pub(super) fn longest(&self) -> u32 {
        let lengths = (0..self.firsts.len()).map(|batch| self.packets(batch)).map(|Range { start, end }| end - start);
        lengths.max().unwrap_or(1)
    }
}
