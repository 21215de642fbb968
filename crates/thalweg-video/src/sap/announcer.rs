//! Repeating an announcement.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use thalweg_base::rng::Rng;
use thalweg_base::time::Instant;

use super::packet::{SAP_PORT, SapKind, SapPacket};

/// How an announcer repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SapConfig {
    /// Our address, as the source of announcements.
    pub source: IpAddr,
    /// The shortest time between announcements. Default 300 s (RFC 2974 §3.1); devices of studios use 30 s. At least 1 s.
    pub interval_min: Duration,
    /// Bits a second that all announcers of a group share. Default 4,000 (RFC 2974 §3.1); 0 counts as 1.
    pub bits_per_second: u32,
}

impl SapConfig {
    /// The defaults of RFC 2974.
    pub fn new(source: IpAddr) -> SapConfig {
        SapConfig { source, interval_min: Duration::from_secs(300), bits_per_second: 4000 }
    }
}

/// Announces one session until it is deleted.
#[derive(Clone, Debug)]
pub struct SapAnnouncer {
    config: SapConfig,
    description: String,
    hash: u16,
    rng: Rng,
    next: Instant,
}

impl SapAnnouncer {
    /// An announcer of a session description, the first time at once; `seed` spreads announcers that start together.
    pub fn new(now: Instant, config: SapConfig, description: String, seed: u64) -> SapAnnouncer {
        let hash = hash_of(&description);
        SapAnnouncer { config, description, hash, rng: Rng::new(seed), next: now }
    }

    /// Replaces the description, whose version must have grown, and announces it at once.
    pub fn change(&mut self, now: Instant, description: String) {
        self.hash = hash_of(&description);
        self.description = description;
        self.next = now;
    }

    /// Appends the announcement that is due to `out`; returns whether there is one. `announcements` is how many the group carries
    /// beside ours, as [`SapDirectory::len`](super::SapDirectory::len) counts them: the more there are, the rarer each is.
    pub fn poll_announcement(&mut self, now: Instant, announcements: usize, out: &mut Vec<u8>) -> bool {
        if now < self.next {
            return false;
        }
        let start = out.len();
        self.packet(SapKind::Announcement).write(out);
        let interval = self.interval(announcements, out.len() - start);
        // From two thirds to four thirds of it (RFC 2974 §3.1).
        let third = thalweg_base::time::nanos(interval) / 3;
        let offset = self.rng.below(2 * third);
        self.next = now + interval - Duration::from_nanos(third) + Duration::from_nanos(offset);
        true
    }

    /// Appends a deletion to `out` and announces no more.
    pub fn create_deletion(&mut self, out: &mut Vec<u8>) {
        self.packet(SapKind::Deletion).write(out);
        self.next = Instant::NEVER;
    }

    /// When the next announcement is due.
    pub fn poll_timeout(&self) -> Instant {
        self.next
    }

    fn packet(&self, kind: SapKind) -> SapPacket<'_> {
        SapPacket { kind, hash: self.hash, source: self.config.source, description: self.description.as_bytes() }
    }

    /// The time that the bandwidth of the group allows, ours counted among the announcements.
    fn interval(&self, announcements: usize, octets: usize) -> Duration {
        let bits = (announcements as u64 + 1).saturating_mul(octets as u64 * 8);
        let shared = Duration::from_secs(bits / u64::from(self.config.bits_per_second.max(1)));
        shared.max(self.config.interval_min).max(Duration::from_secs(1))
    }
}

/// FNV-1a, folded to 16 bits: the same text has the same hash after a restart, and a changed one nearly always another.
fn hash_of(description: &str) -> u16 {
    let hash =
        description.bytes().fold(0x811c_9dc5_u32, |hash, octet| (hash ^ u32::from(octet)).wrapping_mul(0x0100_0193));
    // Zero means that a packet has none.
    (((hash >> 16) ^ hash) as u16).max(1)
}

/// The group that a session to an address is announced in (RFC 2974 §3, RFC 2365): the one of its scope. Sessions to one host
/// are announced within the site.
pub fn announcement_group(destination: IpAddr) -> SocketAddr {
    let group = match destination {
        IpAddr::V4(address) => match address.octets() {
            [239, 192..=195, ..] => Ipv4Addr::new(239, 195, 255, 255).into(),
            [224..=238, ..] => Ipv4Addr::new(224, 2, 127, 254).into(),
            _ => Ipv4Addr::new(239, 255, 255, 255).into(),
        },
        IpAddr::V6(address) => {
            let scope = if address.is_multicast() { address.segments()[0] & 0xf } else { 5 };
            Ipv6Addr::new(0xff00 | scope, 0, 0, 0, 0, 0, 2, 0x7ffe).into()
        }
    };
    SocketAddr::new(group, SAP_PORT)
}
