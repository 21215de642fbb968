//! Settings of the programs that measure other middleware.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

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
    pub wait: WaitMode,
    /// Bytes of a serialized sample without its encapsulation header: number, length and octets together make so many.
    pub sample_bytes: u64,
    /// Writers of each topic.
    pub topic_writers: u32,
    /// Readers of each topic.
    pub topic_readers: u32,
}

/// A set of settings of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PeerProfile {
    /// As shipped.
    Default,
    /// The best settings known for these measurements.
    Tuned,
}

/// How a peer's subscriber learns that data are there: the ways that every middleware has, which polling is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitMode {
    /// A callback in the thread that receives.
    Listener,
    /// A thread that sleeps until data are there.
    Block,
}
