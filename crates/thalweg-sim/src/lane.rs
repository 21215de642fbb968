//! One direction of a host's link: so many bits a second behind a queue of so many bytes that drops datagrams that do not fit.

use std::time::Duration;

use thalweg_rtps::time::Instant;

use crate::network::PACKET_BYTES;

/// The rate and the queue of one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Bits in each second, headers included; `u64::MAX` is no limit and takes no time.
    pub bits_per_second: u64,
    /// Bytes that may wait to be sent, headers included; the packet that finds no room is dropped.
    pub queue_bytes: usize,
}

/// The link of a host with the network, a lane for each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLink {
    /// From the host to the network; a multicast datagram passes once.
    pub outbound: Lane,
    /// From the network to the host.
    pub inbound: Lane,
}

/// Counts of datagrams that passed a lane or were dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneCounters {
    /// Datagrams that passed.
    pub datagrams: u64,
    /// Their bytes, with the headers of their packets.
    pub bytes: u64,
    /// Datagrams that found no room in the queue for all of their packets, except those to unused addresses.
    pub dropped: u64,
    /// The payload bytes of those.
    pub dropped_bytes: u64,
}

/// Bytes that Ethernet, IPv4 and UDP put before the payload of a packet.
const HEADER_BYTES: usize = 42;
const NANOS_PER_SECOND: u128 = 1_000_000_000;

impl Lane {
    /// A lane that delays and drops nothing.
    pub const UNLIMITED: Lane = Lane { bits_per_second: u64::MAX, queue_bytes: usize::MAX };

    /// True when everything passes at once.
    pub fn is_unlimited(&self) -> bool {
        *self == Lane::UNLIMITED
    }

    fn time_for(&self, bytes: usize) -> Duration {
        let nanos = bytes as u128 * 8 * NANOS_PER_SECOND / u128::from(self.bits_per_second.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn bytes_in(&self, time: Duration) -> u128 {
        time.as_nanos() * u128::from(self.bits_per_second) / 8 / NANOS_PER_SECOND
    }
}

impl HostLink {
    /// A link that delays and drops nothing.
    pub const UNLIMITED: HostLink = HostLink { outbound: Lane::UNLIMITED, inbound: Lane::UNLIMITED };

    /// A link that carries `bits_per_second` each way behind queues of `queue_bytes`.
    pub fn new(bits_per_second: u64, queue_bytes: usize) -> HostLink {
        let lane = Lane { bits_per_second, queue_bytes };
        HostLink { outbound: lane, inbound: lane }
    }
}

/// A lane at work.
#[derive(Debug)]
pub(crate) struct BusyLane {
    lane: Lane,
    /// When everything that was let in will have passed.
    free_at: Instant,
    counters: LaneCounters,
}

impl BusyLane {
    pub(crate) fn new(lane: Lane) -> BusyLane {
        BusyLane { lane, free_at: Instant::ZERO, counters: LaneCounters::default() }
    }

    pub(crate) fn is_unlimited(&self) -> bool {
        self.lane.is_unlimited()
    }

    pub(crate) fn counters(&self) -> LaneCounters {
        self.counters
    }

    /// Takes back a drop by [`BusyLane::admit`] of a datagram to an unused address: no receiver misses it.
    pub(crate) fn forgive(&mut self, bytes: usize, departs: Option<Instant>) {
        if departs.is_none() {
            self.counters.dropped -= 1;
            self.counters.dropped_bytes -= bytes as u64;
        }
    }

    /// Lets a datagram with `bytes` of payload in. Returns when its last packet has passed, or `None` when a packet found no
    /// room: the others travel in vain.
    pub(crate) fn admit(&mut self, now: Instant, bytes: usize) -> Option<Instant> {
        if self.lane.is_unlimited() {
            self.counters.datagrams += 1;
            self.counters.bytes += on_the_wire(bytes) as u64;
            return Some(now);
        }
        let mut complete = true;
        let mut left = bytes;
        loop {
            let packet = left.min(PACKET_BYTES) + HEADER_BYTES;
            let waiting = self.lane.bytes_in(self.free_at.since(now));
            let fits = waiting == 0 || waiting + packet as u128 <= self.lane.queue_bytes as u128;
            if fits {
                self.free_at = self.free_at.max(now) + self.lane.time_for(packet);
            }
            complete &= fits;
            left = left.saturating_sub(PACKET_BYTES);
            if left == 0 {
                break;
            }
        }
        if complete {
            self.counters.datagrams += 1;
            self.counters.bytes += on_the_wire(bytes) as u64;
        } else {
            self.counters.dropped += 1;
            self.counters.dropped_bytes += bytes as u64;
        }
        complete.then_some(self.free_at)
    }
}

fn on_the_wire(bytes: usize) -> usize {
    bytes + bytes.div_ceil(PACKET_BYTES).max(1) * HEADER_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lane that takes 1 ms for a packet of 1,000 bytes, headers included, and has room for three of them.
    fn lane() -> BusyLane {
        BusyLane::new(Lane { bits_per_second: 8_000_000, queue_bytes: 3_000 })
    }

    const PAYLOAD: usize = 1_000 - HEADER_BYTES;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    #[test]
    fn datagrams_pass_one_after_the_other() {
        let mut lane = lane();
        assert_eq!(lane.admit(at(0), PAYLOAD), Some(at(1_000)));
        assert_eq!(lane.admit(at(0), PAYLOAD), Some(at(2_000)));
        assert_eq!(lane.admit(at(5_000), PAYLOAD), Some(at(6_000)));
        assert_eq!(lane.counters(), LaneCounters { datagrams: 3, bytes: 3_000, ..LaneCounters::default() });
    }

    #[test]
    fn what_finds_no_room_is_dropped_and_counted() {
        let mut lane = lane();
        let passed = (0..5).filter(|_| lane.admit(at(0), PAYLOAD).is_some()).count();
        assert_eq!(passed, 3);
        assert_eq!((lane.counters().dropped, lane.counters().dropped_bytes), (2, 2 * PAYLOAD as u64));
        assert_eq!(lane.admit(at(1_000), PAYLOAD), Some(at(4_000)), "a place is free after a packet's time");
    }

    #[test]
    fn a_datagram_that_lost_a_packet_is_lost_and_its_others_take_their_time() {
        let mut lane = lane();
        assert_eq!(lane.admit(at(0), 4 * PACKET_BYTES), None);
        let two_packets = 2 * (PACKET_BYTES + HEADER_BYTES) as u64;
        assert!(lane.free_at >= at(0) && lane.free_at.as_nanos() <= two_packets * 1_000, "{:?}", lane.free_at);
        let mut unlimited = BusyLane::new(Lane::UNLIMITED);
        assert_eq!(unlimited.admit(at(7), 60_000), Some(at(7)));
    }

    #[test]
    fn a_lane_carries_its_rate() {
        let mut lane = BusyLane::new(Lane { bits_per_second: 100_000_000, queue_bytes: 100_000 });
        let mut now = at(0);
        while now < at(1_000_000) {
            lane.admit(now, PACKET_BYTES);
            now += Duration::from_micros(50);
        }
        let bits = lane.counters().bytes * 8;
        assert!((99_000_000..101_500_000).contains(&bits), "{bits} bits in a second");
        assert!(lane.counters().dropped > 0);
    }
}
