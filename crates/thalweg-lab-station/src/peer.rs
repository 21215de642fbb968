//! Settings of the programs that measure other middleware.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::middleware::Wait;

/// The setup of a peer's process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerSetup {
    /// Apart from others: a DDS domain, or the middleware's equivalent, 0 to 232.
    pub domain: u32,
    /// The address of the network interface to use: 127.0.0.1 where all processes live on one host.
    pub address: Ipv4Addr,
    /// The address of each publisher's host, by the publisher's number: for middleware that connects instead of discovering.
    pub publishers: Vec<Ipv4Addr>,
    /// The set of settings.
    pub profile: PeerProfile,
    /// The way in which subscribers wait for data, if the middleware has it; else the middleware's own.
    pub wait: Wait,
    /// Bytes of a serialized sample without its encapsulation header: number, length and octets together make so many.
    pub sample_bytes: u64,
    /// Writers of each topic.
    pub topic_writers: u32,
    /// Readers of each topic.
    pub topic_readers: u32,
}

impl PeerSetup {
    /// Bytes of a serialized sample beside its octets: number and length.
    pub const FRAME_BYTES: u64 = 12;

    /// Octets of a sample of an open schedule: what its number and its length leave of its serialized size, at least the eight of the
    /// time.
    pub fn octets(&self) -> usize {
        self.sample_bytes.saturating_sub(Self::FRAME_BYTES).max(size_of::<u64>() as u64) as usize
    }

    /// The most octets that any sample of the measurement has, for what must be reserved beforehand: what the ends say about the
    /// measurement has to fit as well.
    pub fn octets_max(&self) -> usize {
        const WORD_BYTES: usize = 512;
        self.octets().max(WORD_BYTES * (1 + self.topic_readers as usize))
    }
}

/// A set of settings of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PeerProfile {
    /// As shipped.
    Default,
    /// The best settings known for these measurements.
    Tuned,
    /// Tuned, and with the batching that the middleware offers.
    Batch,
}

impl PeerProfile {
    /// All of them.
    pub const ALL: [PeerProfile; 3] = [PeerProfile::Default, PeerProfile::Tuned, PeerProfile::Batch];

    /// The name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            PeerProfile::Default => "default",
            PeerProfile::Tuned => "tuned",
            PeerProfile::Batch => "batch",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_as_long_as_thalwegs_and_has_room_for_its_time() {
        let setup = |sample_bytes| PeerSetup {
            domain: 20,
            address: Ipv4Addr::LOCALHOST,
            publishers: Vec::new(),
            profile: PeerProfile::Tuned,
            wait: Wait::Listener,
            sample_bytes,
            topic_writers: 1,
            topic_readers: 7,
        };
        assert_eq!([32, 65_552, 24, 0].map(|bytes| setup(bytes).octets()), [20, 65_540, 12, 8]);
        assert_eq!([32, 65_552].map(|bytes| setup(bytes).octets_max()), [4_096, 65_540]);
    }
}
