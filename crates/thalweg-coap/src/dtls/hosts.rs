//! How many handshakes each host has.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::endpoint::PeerHost;

/// A count for each host that has some.
#[derive(Debug, Default)]
pub struct HostCounts(HashMap<PeerHost, usize>);

impl HostCounts {
    /// The count of a host.
    pub fn of(&self, host: PeerHost) -> usize {
        self.0.get(&host).copied().unwrap_or_default()
    }

    /// One more.
    pub fn add(&mut self, host: PeerHost) {
        *self.0.entry(host).or_default() += 1;
    }

    /// One less.
    pub fn release(&mut self, host: PeerHost) {
        let Entry::Occupied(mut count) = self.0.entry(host) else { return };
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}
