//! Progress of the processes of a run, in small files that are written anew once a second, for `lab top`.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::records::not_written;

/// Counts of an endpoint over the measured samples.
#[derive(Debug)]
pub(crate) struct Tally {
    origin_ns: AtomicU64,
    written: AtomicU64,
    not_sent: AtomicU64,
    /// Arrivals by bucket of their response latency.
    arrived: Vec<AtomicU64>,
}

/// Counts of endpoints so far over the measured samples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoFar {
    /// Samples that publishers wrote.
    pub written: u64,
    /// Samples that were due and never written.
    pub not_sent: u64,
    /// Samples that arrived: the longest response latency of a bucket in nanoseconds, 3 % above its shortest, and how many it holds;
    /// shortest first.
    pub arrived: Vec<(u64, u64)>,
}

impl Tally {
    pub(crate) fn new() -> Tally {
        let arrived = (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
        Tally { origin_ns: AtomicU64::new(0), written: AtomicU64::new(0), not_sent: AtomicU64::new(0), arrived }
    }

    /// The time zero of the schedule is known.
    pub(crate) fn begin(&self, origin_ns: u64) {
        self.origin_ns.store(origin_ns, Ordering::Relaxed);
    }

    /// The time zero of the schedule; 0 until it is known.
    pub(crate) fn origin_ns(&self) -> u64 {
        self.origin_ns.load(Ordering::Relaxed)
    }

    pub(crate) fn add_written(&self) {
        self.written.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_not_sent(&self) {
        self.not_sent.fetch_add(1, Ordering::Relaxed);
    }

    /// A sample that was due at `due_ns` after the origin arrived at `now_ns`.
    pub(crate) fn add_arrival(&self, due_ns: u64, now_ns: u64) {
        let latency_ns = now_ns.saturating_sub(self.origin_ns() + due_ns);
        self.arrived[bucket(latency_ns)].fetch_add(1, Ordering::Relaxed);
    }
}

impl SoFar {
    pub(crate) fn of<'a>(tallies: impl Iterator<Item = &'a Tally> + Clone) -> SoFar {
        let sum = |of: &dyn Fn(&Tally) -> &AtomicU64| tallies.clone().map(|one| of(one).load(Ordering::Relaxed)).sum();
        let bucket = |index: usize| (edge_ns(index), sum(&|tally| &tally.arrived[index]));
        SoFar {
            written: sum(&|tally| &tally.written),
            not_sent: sum(&|tally| &tally.not_sent),
            arrived: (0..BUCKETS).map(bucket).filter(|(_, count): &(u64, u64)| *count > 0).collect(),
        }
    }

    /// Writes it for the process `name`, atomically for its readers.
    pub(crate) fn write(&self, folder: &Path, name: &str) -> Result<(), Fault> {
        let (path, new) = (folder.join(format!("{PREFIX}{name}")), folder.join(format!("new-{PREFIX}{name}")));
        let text = serde_json::to_string(self).map_err(Fault::here)?;
        fs::write(&new, text).and_then(|()| fs::rename(&new, &path)).map_err(|error| not_written(&path, &error))
    }

    /// Removes what [`write`](SoFar::write) wrote; the records hold everything from now on.
    pub(crate) fn remove(folder: &Path, name: &str) {
        // A process that ended within its first second wrote nothing.
        let _ = fs::remove_file(folder.join(format!("{PREFIX}{name}")));
    }

    /// Sum over all processes that write into this folder; zero without any.
    pub fn read(folder: &Path) -> SoFar {
        let names = fs::read_dir(folder).into_iter().flatten().flatten();
        let own = names.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)));
        let mut out = SoFar::default();
        // A file may go with its run between the listing and the look at it.
        for one in own.filter_map(|entry| serde_json::from_str(&fs::read_to_string(entry.path()).ok()?).ok()) {
            out.add(&one);
        }
        out
    }

    fn add(&mut self, other: &SoFar) {
        self.written += other.written;
        self.not_sent += other.not_sent;
        for (edge_ns, count) in &other.arrived {
            match self.arrived.binary_search_by_key(edge_ns, |(edge_ns, _)| *edge_ns) {
                Ok(place) => self.arrived[place].1 += count,
                Err(place) => self.arrived.insert(place, (*edge_ns, *count)),
            }
        }
    }
}

/// The bucket of a latency: 32 in each octave.
fn bucket(latency_ns: u64) -> usize {
    let latency_ns = latency_ns.clamp(STEPS, LONGEST_NS);
    let octave = latency_ns.ilog2() - STEPS.ilog2();
    (u64::from(octave) * STEPS + (latency_ns >> octave) - STEPS) as usize
}

/// The longest latency of a bucket.
fn edge_ns(bucket: usize) -> u64 {
    let (octave, step) = (bucket as u64 / STEPS, bucket as u64 % STEPS);
    ((STEPS + step + 1) << octave) - 1
}

/// Buckets of an octave.
const STEPS: u64 = 32;
/// 18 minutes; what takes longer counts as long.
const LONGEST_NS: u64 = (1 << 40) - 1;
const BUCKETS: usize = 35 * STEPS as usize;
const PREFIX: &str = "so-far-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_three_per_cent_wide_and_holds_its_edge() {
        for latency_ns in [0, 1, 31, 32, 33, 63, 64, 1_000, 1_023, 1_024, 999_999, 1 << 30, LONGEST_NS, u64::MAX] {
            let edge = edge_ns(bucket(latency_ns));
            assert_eq!(bucket(edge), bucket(latency_ns), "{latency_ns}");
            let clamped = latency_ns.clamp(STEPS, LONGEST_NS);
            assert!(edge >= clamped && edge - clamped <= clamped / STEPS, "{latency_ns}: {edge}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn the_processes_of_a_folder_are_added_up() {
        let folder = std::env::temp_dir().join(format!("thalweg-so-far-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("made");
        let (writer, reader) = (Tally::new(), Tally::new());
        [&writer, &reader].into_iter().for_each(|tally| tally.begin(1_000_000));
        (0..3).for_each(|_| writer.add_written());
        writer.add_not_sent();
        reader.add_arrival(500, 1_001_500);
        reader.add_arrival(500, 1_001_500);
        reader.add_arrival(0, 3_000_000);
        SoFar::of([&writer].into_iter()).write(&folder, "publisher-000").expect("written");
        SoFar::of([&reader].into_iter()).write(&folder, "subscriber-000").expect("written");
        SoFar::of([&reader].into_iter()).write(&folder, "subscriber-001").expect("written");
        let all = SoFar::read(&folder);
        assert_eq!((all.written, all.not_sent), (3, 1));
        assert_eq!(all.arrived, [(edge_ns(bucket(1_000)), 4), (edge_ns(bucket(2_000_000)), 2)]);
        ["publisher-000", "subscriber-000", "subscriber-001"].iter().for_each(|name| SoFar::remove(&folder, name));
        assert_eq!(SoFar::read(&folder), SoFar::default());
        fs::remove_dir(&folder).expect("nothing is left in it");
    }
}
