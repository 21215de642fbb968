//! Thalweg as the laboratory measures it: everything the lab needs of the middleware lies here, so that experiments read as experiments.

mod flow;
mod middleware;
mod samples;
mod sending;

pub use flow::TokenBucket;
pub use middleware::{Setup, Thalweg, ThalwegArrival, ThalwegReader, ThalwegWriter};
pub(crate) use samples::{Array64k, Octets, PointCloud1m, Struct16, serialized_bytes};
pub use samples::{Carried, Numbered};
pub use sending::{Addressing, PackingLimits, PackingMethod, Sending};
pub use thalweg_lab_station::{Wait, Work, WriterEffort};

use serde::{Deserialize, Serialize};

/// Where a station looks for others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StationNetwork {
    /// Domain, 0 to 232.
    pub domain: u32,
    /// Only participants with the same tag meet.
    pub domain_tag: String,
    /// Further addresses to announce to, with or without a port.
    pub peers: Vec<String>,
    /// Interfaces to use; empty means all.
    pub interfaces: Vec<String>,
    /// Whether multicast is used; loopback and peers always are.
    pub multicast: Multicast,
    /// Bytes to ask for in the receive buffer; missing means the middleware's default.
    pub receive_buffer_bytes: Option<u64>,
}

/// Whether a station sends and receives multicast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Multicast {
    /// It does.
    #[default]
    Used,
    /// It does not.
    Avoided,
}

impl StationNetwork {
    /// This host's domain `domain`, apart from everybody else in it: the tag is made of this process and the time.
    pub fn apart(domain: u32) -> StationNetwork {
        let tag = format!("thalweg-lab-{}-{}", std::process::id(), crate::host::monotonic_nanos());
        StationNetwork { domain, domain_tag: tag, ..StationNetwork::default() }
    }
}
