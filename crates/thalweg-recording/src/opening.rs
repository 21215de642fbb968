//! Where a replay begins within a recording, and what late readers would get of its durable writers there.

use std::collections::BTreeMap;
use std::time::Duration;

use thalweg::types::KeyHash;
use thalweg::{KeyOf, PayloadKind};

use crate::latched::{Kept, Latched};
use crate::life::WriterLife;

/// The start of a replay, with what comes before it and is written all the same.
pub struct Opening {
    /// From the beginning of the recording.
    start: Duration,
    writers: BTreeMap<String, DurableWriter>,
    kept: Latched<usize>,
    /// The first time of the recording, and the latest one from before the start.
    passed_ns: Option<(u64, u64)>,
    has_begun: bool,
}

/// A writer that keeps samples for late readers.
struct DurableWriter {
    number: usize,
    /// Samples of an instance.
    depth: usize,
    /// LIFESPAN in nanoseconds; `None` where it is infinite.
    lifespan_ns: Option<u64>,
    /// How instances are told apart; `None` where there is one.
    key_of: Option<KeyOf>,
    life: WriterLife,
}

impl Opening {
    /// A start so long after the beginning of the recording.
    pub fn new(start: Duration) -> Opening {
        Opening { start, writers: BTreeMap::new(), kept: Latched::default(), passed_ns: None, has_begun: false }
    }

    /// Makes a writer known that keeps so many samples of an instance for late readers, until their lifespan is over.
    pub fn add_writer(&mut self, key: &str, depth: usize, lifespan_ns: Option<u64>, key_of: Option<KeyOf>) {
        let (number, life) = (self.writers.len(), WriterLife::default());
        self.writers.insert(key.to_owned(), DurableWriter { number, depth, lifespan_ns, key_of, life });
    }

    /// Whether a writer keeps samples for late readers.
    pub fn has_writer(&self, key: &str) -> bool {
        self.writers.contains_key(key)
    }

    /// The recording is replayed once more.
    pub fn restart(&mut self) {
        (self.kept, self.passed_ns, self.has_begun) = (Latched::default(), None, false);
        self.writers.values_mut().for_each(|writer| writer.life = WriterLife::default());
    }

    /// The recording begins at this time, unless it has begun already.
    pub fn set_out(&mut self, time_ns: u64) {
        self.passed_ns.get_or_insert((time_ns, time_ns));
    }

    /// The time of the start; `None` where all of the recording is replayed, or none of it is known.
    pub fn start_ns(&self) -> Option<u64> {
        let (begin_ns, _) = self.passed_ns.filter(|_| !self.start.is_zero())?;
        Some(begin_ns.saturating_add(u64::try_from(self.start.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Whether a time comes before the start.
    pub fn is_before(&self, time_ns: u64) -> bool {
        self.start_ns().is_some_and(|start_ns| time_ns < start_ns)
    }

    /// Whether the start is behind us.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// An entry of this time comes before the start.
    pub fn pass(&mut self, time_ns: u64) {
        if let Some((_, latest_ns)) = &mut self.passed_ns {
            *latest_ns = time_ns.max(*latest_ns);
        }
    }

    /// Takes a sample from before the start, at its time in `log_time_ns`: in place of the oldest of its instance beyond what the writer
    /// keeps, and of all that it kept before it began anew. Those of volatile writers are left out.
    ///
    /// # Errors
    /// Why a sample that is to be kept cannot be.
    pub fn keep(&mut self, writer: &str, sample: Kept) -> Result<(), &'static str> {
        let Some(DurableWriter { number, depth, key_of, life, .. }) = self.writers.get_mut(writer) else {
            return Ok(());
        };
        // Zero stands for a number that is not known.
        if sample.sequence > 0 && life.take(sample.sequence, sample.publish_time_ns) {
            self.kept.forget(*number);
        }
        let instance = match key_of {
            None => Some(KeyHash::default()),
            Some(key_of) => key_of(&sample.payload[..], PayloadKind::Data),
        };
        let instance = instance.ok_or("a sample from before the start has no key of its type")?;
        let has_room = self.kept.keep(*number, instance, *depth, sample);
        if has_room { Ok(()) } else { Err("what durable writers had kept at the start has more than 64 MiB") }
    }

    /// An instance ended before the start.
    pub fn end(&mut self, writer: &str, key: &[u8]) {
        let Some(DurableWriter { number, key_of: Some(key_of), .. }) = self.writers.get(writer) else { return };
        if let Some(instance) = key_of(key, PayloadKind::Key) {
            self.kept.end(*number, instance);
        }
    }

    /// The start has come: what was kept and whose lifespan is not over, in the order of its times, with the keys of the writers.
    pub fn begin(&mut self) -> Vec<(String, Kept)> {
        self.has_begun = true;
        let mut kept = std::mem::take(&mut self.kept).samples();
        kept.sort_by_key(|(_, sample)| sample.log_time_ns);
        let start_ns = self.start_ns().unwrap_or(0);
        let writers: BTreeMap<usize, (&String, Option<u64>)> =
            self.writers.iter().map(|(key, writer)| (writer.number, (key, writer.lifespan_ns))).collect();
        let of_writer = |(number, sample): (usize, Kept)| {
            let (key, lifespan_ns) = writers.get(&number)?;
            (!sample.is_over(*lifespan_ns, start_ns)).then(|| (String::clone(key), sample))
        };
        kept.into_iter().filter_map(of_writer).collect()
    }

    /// That the recording ends before the start, once all of it was read.
    pub fn early_end(&self) -> Option<String> {
        let (begin_ns, latest_ns) = self.passed_ns.filter(|_| !self.has_begun && !self.start.is_zero())?;
        let lasted_s = Duration::from_nanos(latest_ns.saturating_sub(begin_ns)).as_secs_f64();
        let start_s = self.start.as_secs_f64();
        Some(format!("the recording ends {lasted_s:.3} s after its beginning, and the start is at {start_s} s"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use thalweg::Payload;

    use super::*;

    /// An opening ten seconds after a beginning at 100 s, with a writer of each kind.
    fn opening() -> Opening {
        let mut opening = Opening::new(Duration::from_secs(10));
        opening.set_out(100 * SECOND);
        opening.set_out(101 * SECOND);
        // The key is the first octet, of samples and of keys.
        let key_of: KeyOf =
            Arc::new(|bytes: &[u8], _| bytes.first().map(|first| KeyHash([*first; 16])).filter(|_| bytes.len() < 3));
        opening.add_writer("keyed", 2, None, Some(key_of));
        opening.add_writer("map", 1, None, None);
        opening.add_writer("brief", 9, Some(5 * SECOND), None);
        opening
    }

    fn sample(second: u64, sequence: u32, bytes: &[u8]) -> Kept {
        let log_time_ns = second * SECOND;
        Kept { sequence, log_time_ns, publish_time_ns: 0, payload: Payload::from(bytes.to_vec()) }
    }

    /// Writers and payloads of what is written at the start.
    fn begun(opening: &mut Opening) -> Vec<(String, Vec<u8>)> {
        opening.begin().into_iter().map(|(writer, kept)| (writer, kept.payload.to_vec())).collect()
    }

    #[test]
    fn the_start_counts_from_the_first_time_of_the_recording() {
        let opening = opening();
        assert_eq!(opening.start_ns(), Some(110 * SECOND));
        assert!(opening.is_before(110 * SECOND - 1) && !opening.is_before(110 * SECOND));
        let mut whole = Opening::new(Duration::ZERO);
        whole.set_out(100 * SECOND);
        assert!(whole.start_ns().is_none() && !whole.is_before(0) && whole.early_end().is_none());
    }

    #[test]
    fn the_last_samples_of_each_instance_of_durable_writers_are_kept_in_the_order_of_their_times() {
        let mut opening = opening();
        for (writer, kept) in [
            ("keyed", sample(101, 1, &[7, 1])),
            ("map", sample(102, 1, &[1])),
            ("volatile", sample(103, 1, &[9])),
            ("keyed", sample(104, 2, &[8, 1])),
            ("keyed", sample(105, 3, &[7, 2])),
            ("map", sample(106, 2, &[2])),
            ("keyed", sample(107, 4, &[7, 3])),
        ] {
            assert_eq!(opening.keep(writer, kept), Ok(()), "{writer}");
        }
        let kept = [("keyed", vec![8, 1]), ("keyed", vec![7, 2]), ("map", vec![2]), ("keyed", vec![7, 3])];
        assert_eq!(begun(&mut opening), kept.map(|(writer, bytes)| (writer.to_owned(), bytes)));
        assert!(opening.has_begun() && opening.has_writer("map") && !opening.has_writer("volatile"));
        opening.restart();
        assert!(!opening.has_begun() && begun(&mut opening).is_empty(), "the next turn keeps its own");
    }

    #[test]
    fn an_instance_that_ended_before_the_start_is_not_written() {
        let mut opening = opening();
        for (sequence, key) in [(1, 7), (2, 8)] {
            assert_eq!(opening.keep("keyed", sample(101, sequence, &[key])), Ok(()));
        }
        opening.end("keyed", &[7]);
        opening.end("volatile", &[8]);
        opening.end("map", &[8]);
        assert_eq!(begun(&mut opening), [("keyed".to_owned(), vec![8])]);
    }

    #[test]
    fn samples_whose_lifespan_is_over_at_the_start_are_not_written() {
        let mut opening = opening();
        for (second, byte) in [(101, 1), (104, 2), (105, 3), (108, 4)] {
            assert_eq!(opening.keep("brief", sample(second, u32::from(byte), &[byte])), Ok(()));
        }
        assert_eq!(opening.keep("map", sample(101, 1, &[7])), Ok(()), "its lifespan is infinite");
        let kept = [("map", vec![7]), ("brief", vec![4])];
        assert_eq!(begun(&mut opening), kept.map(|(writer, bytes)| (writer.to_owned(), bytes)));
    }

    #[test]
    fn what_a_writer_kept_before_it_began_anew_is_not_written() {
        let mut opening = opening();
        let stamped = |second: u64, sequence: u32, byte: u8| Kept {
            publish_time_ns: second * SECOND,
            ..sample(second, sequence, &[byte])
        };
        for (writer, kept) in [
            ("keyed", stamped(101, 7, 1)),
            ("keyed", stamped(102, 8, 2)),
            ("map", stamped(103, 9, 3)),
            ("keyed", stamped(104, 1, 2)),
            ("map", stamped(105, 1, 4)),
        ] {
            assert_eq!(opening.keep(writer, kept), Ok(()), "{writer}");
        }
        let kept = [("keyed", vec![2]), ("map", vec![4])];
        assert_eq!(begun(&mut opening), kept.map(|(writer, bytes)| (writer.to_owned(), bytes)));
    }

    #[test]
    fn what_cannot_be_kept_is_told() {
        let mut opening = opening();
        assert!(opening.keep("keyed", sample(101, 1, &[7, 1, 1])).is_err_and(|reason| reason.contains("no key")));
        let large = vec![0; 65 << 20];
        assert!(opening.keep("map", sample(101, 1, &large)).is_err_and(|reason| reason.contains("64 MiB")));
        assert_eq!(opening.keep("volatile", sample(101, 1, &large)), Ok(()));
    }

    #[test]
    fn a_recording_that_ends_before_the_start_says_how_long_it_is() {
        let mut opening = opening();
        [103, 104, 102].into_iter().for_each(|second| opening.pass(second * SECOND));
        let told = "the recording ends 4.000 s after its beginning, and the start is at 10 s";
        assert_eq!(opening.early_end().as_deref(), Some(told));
        opening.begin();
        assert_eq!(opening.early_end(), None);
    }

    const SECOND: u64 = 1_000_000_000;
}
