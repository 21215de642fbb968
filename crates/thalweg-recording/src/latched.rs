//! What a late reader would get from durable writers, for those that come later than a reader of ours: each further file of a recording,
//! each further client of a view.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use thalweg::Payload;
use thalweg::types::{Guid, KeyHash};

/// A sample that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The low 32 bits of its number.
    pub sequence: u32,
    /// Its reception, in nanoseconds since 1970.
    pub log_time_ns: u64,
    /// Its writer's time stamp, in nanoseconds since 1970.
    pub publish_time_ns: u64,
    /// The serialized sample.
    pub payload: Payload,
}

impl Kept {
    /// Whether it has outlived its writer's LIFESPAN at this time, in nanoseconds; never where that is infinite.
    pub fn is_over(&self, lifespan_ns: Option<u64>, now_ns: u64) -> bool {
        lifespan_ns.is_some_and(|lifespan_ns| self.log_time_ns.saturating_add(lifespan_ns) <= now_ns)
    }
}

/// The last samples of each instance of durable writers, in 64 MiB at most. `W` tells writers apart.
#[derive(Debug)]
pub struct Latched<W = Guid> {
    instances: HashMap<(W, KeyHash), VecDeque<Kept>>,
    bytes: usize,
}

impl<W> Default for Latched<W> {
    fn default() -> Latched<W> {
        Latched { instances: HashMap::new(), bytes: 0 }
    }
}

impl<W: Copy + Ord + Hash> Latched<W> {
    /// Keeps a sample in place of the oldest of its instance beyond `depth`, unless it is older than all of them: what came of a new writer
    /// may come in front of what the writer kept. Where the memory is full, it takes the place of further ones of its instance. Returns whether
    /// there was room: else it is not repeated.
    pub fn keep(&mut self, writer: W, instance: KeyHash, depth: usize, sample: Kept) -> bool {
        let samples = self.instances.entry((writer, instance)).or_default();
        // Numbers have 32 bits here.
        let is_before = |kept: &Kept| kept.sequence.wrapping_sub(sample.sequence).cast_signed() <= 0;
        let newer = samples.iter().rev().take_while(|kept| !is_before(kept)).count();
        if newer >= depth.max(1) {
            return true;
        }
        while samples.len() >= depth.max(1) {
            self.bytes -= samples.pop_front().map_or(0, |oldest| bytes_of(&oldest));
        }
        let bytes = bytes_of(&sample);
        // The newest one counts most, above all where it is not known how many its writer keeps.
        while newer == 0
            && self.bytes + bytes > BYTES_MAX
            && let Some(oldest) = samples.pop_front()
        {
            self.bytes -= bytes_of(&oldest);
        }
        let has_room = self.bytes + bytes <= BYTES_MAX;
        if has_room {
            self.bytes += bytes;
            samples.insert(samples.len() - newer, sample);
        } else if samples.is_empty() {
            self.instances.remove(&(writer, instance));
        }
        has_room
    }

    /// The instance has ended.
    pub fn end(&mut self, writer: W, instance: KeyHash) {
        let samples = self.instances.remove(&(writer, instance)).unwrap_or_default();
        self.bytes -= samples.iter().map(bytes_of).sum::<usize>();
    }

    /// The writer has gone, and what it kept for late readers with it.
    pub fn forget(&mut self, writer: W) {
        let bytes = &mut self.bytes;
        self.instances.retain(|(owner, _), samples| {
            let is_of_another = *owner != writer;
            if !is_of_another {
                *bytes -= samples.iter().map(bytes_of).sum::<usize>();
            }
            is_of_another
        });
    }

    /// All that is kept, each writer's in the order of its numbers.
    pub fn samples(&self) -> Vec<(W, Kept)> {
        self.samples_of(|_| true)
    }

    /// What is kept of these writers, in the same order.
    pub fn samples_of(&self, is_meant: impl Fn(W) -> bool) -> Vec<(W, Kept)> {
        let all = self.instances.iter().filter(|((writer, _), _)| is_meant(*writer));
        let mut kept: Vec<(W, Kept)> =
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_samples_are_kept_in_whatever_order_they_come() {
        let kept = |depth, order: &[u32]| {
            let mut latched = Latched::default();
            for sequence in order.iter().copied() {
                let sample = Kept { sequence, log_time_ns: 0, publish_time_ns: 0, payload: Payload::from(vec![0; 4]) };
                assert!(latched.keep(Guid::UNKNOWN, KeyHash::default(), depth, sample));
            }
            let numbers: Vec<u32> = latched.instances.values().flatten().map(|kept| kept.sequence).collect();
            let bytes: usize = latched.instances.values().flatten().map(bytes_of).sum();
            assert_eq!(latched.bytes, bytes);
            numbers
        };
        assert_eq!(kept(1, &[101, 100]), [101]);
        assert_eq!(kept(3, &[101, 98, 99, 100, 102]), [100, 101, 102]);
        assert_eq!(kept(2, &[1, u32::MAX, 0]), [0, 1], "numbers have 32 bits");
    }

    #[test]
    fn what_is_too_large_for_the_memory_keeps_its_newest_samples() {
        let mut latched = Latched::default();
        for sequence in 1..=5 {
            let payload = Payload::from(vec![0; 20 << 20]);
            let sample = Kept { sequence, log_time_ns: 0, publish_time_ns: 0, payload };
            assert!(latched.keep(Guid::UNKNOWN, KeyHash::default(), 10, sample), "{sequence}");
        }
        let numbers: Vec<u32> = latched.samples().iter().map(|(_, kept)| kept.sequence).collect();
        assert_eq!(numbers, [3, 4, 5]);
    }
}
