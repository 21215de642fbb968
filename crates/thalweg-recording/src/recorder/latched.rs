//! What a late reader would get from durable writers: repeated at the beginning of each further file, so that each stands alone.

use std::collections::{HashMap, VecDeque};

use thalweg::Payload;
use thalweg::types::{Guid, KeyHash};

/// A sample that is kept.
#[derive(Clone)]
pub struct Kept {
    pub sequence: u32,
    pub publish_time_ns: u64,
    pub payload: Payload,
}

/// The last samples of each instance of durable writers, as many as the writer keeps.
#[derive(Default)]
pub struct Latched {
    instances: HashMap<(Guid, KeyHash), VecDeque<Kept>>,
    bytes: usize,
}

impl Latched {
    /// Keeps a sample in place of the oldest of its instance beyond `depth`. Where there is no room, it is not repeated.
    pub fn keep(&mut self, writer: Guid, instance: KeyHash, depth: usize, sample: Kept) {
        let samples = self.instances.entry((writer, instance)).or_default();
        while samples.len() >= depth.max(1) {
            self.bytes -= samples.pop_front().map_or(0, |oldest| bytes_of(&oldest));
        }
        let bytes = bytes_of(&sample);
        if self.bytes + bytes <= BYTES_MAX {
            self.bytes += bytes;
            samples.push_back(sample);
        } else if samples.is_empty() {
            self.instances.remove(&(writer, instance));
        }
    }

    /// The instance has ended.
    pub fn end(&mut self, writer: Guid, instance: KeyHash) {
        let samples = self.instances.remove(&(writer, instance)).unwrap_or_default();
        self.bytes -= samples.iter().map(bytes_of).sum::<usize>();
    }

    /// All that is kept, each writer's in the order of its numbers.
    pub fn samples(&self) -> Vec<(Guid, Kept)> {
        let all = self.instances.iter();
        let mut kept: Vec<(Guid, Kept)> =
            all.flat_map(|((writer, _), samples)| samples.iter().map(|sample| (*writer, sample.clone()))).collect();
        kept.sort_by_key(|(writer, sample)| (*writer, sample.sequence));
        kept
    }
}

fn bytes_of(sample: &Kept) -> usize {
    sample.payload.pinned_bytes() + OVERHEAD_BYTES
}

/// Memory for all of them, chosen by us: a dozen large maps.
const BYTES_MAX: usize = 64 << 20;
/// Memory of a sample beside its payload, so that empty ones are bounded, too.
const OVERHEAD_BYTES: usize = 128;
