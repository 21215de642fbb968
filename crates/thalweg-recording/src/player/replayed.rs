//! The writers of a replay.

use std::collections::BTreeMap;

use thalweg::{DataWriter, Raw};

use crate::qos::RecordedQos;

/// The writers that stand for recorded ones, by the keys of those. A recorded writer that has changed its QoS, such as its partition, is
/// replayed by one for each: what it writes and what it ends goes to that of its latest sample.
#[derive(Default)]
pub struct ReplayedWriters {
    by_key: BTreeMap<String, ReplayedWriter>,
    /// How many writers all of them have.
    count: usize,
}

/// What stands for a recorded writer.
#[derive(Default)]
struct ReplayedWriter {
    by_qos: Vec<(RecordedQos, DataWriter<Raw>)>,
    /// The one of the latest sample.
    current: usize,
}

impl ReplayedWriters {
    /// Whether there is a writer with this QoS.
    pub fn has(&self, key: &str, qos: &RecordedQos) -> bool {
        self.by_key.get(key).is_some_and(|replayed| replayed.place_of(qos).is_some())
    }

    /// Adds a writer with this QoS.
    pub fn add(&mut self, key: String, qos: RecordedQos, writer: DataWriter<Raw>) {
        self.by_key.entry(key).or_default().by_qos.push((qos, writer));
        self.count += 1;
    }

    /// How many writers there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The keys of the recorded writers.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &String> {
        self.by_key.keys()
    }

    /// All writers, in the order of the recorded ones.
    pub fn iter(&self) -> impl Iterator<Item = &DataWriter<Raw>> {
        self.by_key.values().flat_map(|replayed| replayed.by_qos.iter().map(|(_, writer)| writer))
    }

    /// A sample comes that was written with this QoS.
    pub fn turn_to(&mut self, key: &str, qos: &RecordedQos) {
        let Some(replayed) = self.by_key.get_mut(key) else { return };
        if let Some(place) = replayed.place_of(qos) {
            replayed.current = place;
        }
    }

    /// The writer of the latest sample; `None` where the recorded one is not replayed.
    pub fn current(&self, key: &str) -> Option<&DataWriter<Raw>> {
        let replayed = self.by_key.get(key)?;
        replayed.by_qos.get(replayed.current).map(|(_, writer)| writer)
    }
}

impl ReplayedWriter {
    fn place_of(&self, qos: &RecordedQos) -> Option<usize> {
        self.by_qos.iter().position(|(of, _)| of == qos)
    }
}
