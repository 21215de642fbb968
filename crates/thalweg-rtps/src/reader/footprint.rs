//! What a reader keeps in memory.

use super::Reader;

/// What a reader keeps, in numbers that stay within bounds however its writers behave. To be watched by operators and tests;
/// counting costs a look at each matched writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderFootprint {
    /// Samples and notices that wait to be taken; HISTORY and RESOURCE_LIMITS bound them.
    pub samples: usize,
    /// Bytes that the cache is charged for them, at most 1 GiB.
    pub bytes: usize,
    /// Instances that the cache knows, at most 1,048,576 by default.
    pub instances: usize,
    /// Matched writers.
    pub writers: usize,
    /// Numbers beyond a missing sample, arrived or not, at most 65,536 for each writer.
    pub ahead: usize,
    /// Bytes that the samples among them are charged, at most 64 MiB for each writer.
    pub ahead_bytes: usize,
    /// Bytes that samples are charged which came too early for TIME_BASED_FILTER and wait for their time, at most 1 GiB.
    pub waiting_bytes: usize,
    /// Large samples of which fragments are missing, at most 32 for each writer.
    pub unfinished: usize,
}

impl Reader {
    /// What this reader keeps in memory.
    pub fn footprint(&self) -> ReaderFootprint {
        let mut footprint = ReaderFootprint {
            samples: self.handover.cache.len(),
            bytes: self.handover.cache.bytes(),
            instances: self.handover.cache.instances(),
            writers: self.writers.len(),
            waiting_bytes: self.handover.admission.as_ref().map_or(0, |admission| admission.waiting_bytes()),
            ..ReaderFootprint::default()
        };
        for writer in self.writers.iter() {
            let (ahead, bytes) = writer.window.load();
            footprint.ahead += ahead;
            footprint.ahead_bytes += bytes;
            footprint.unfinished += writer.reassembly.len();
        }
        footprint
    }
}
