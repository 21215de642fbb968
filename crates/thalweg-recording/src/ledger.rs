//! The counts of a recording while it runs.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard};

use thalweg::types::{Guid, SequenceNumber};

use crate::summary::{ChannelSummary, FURTHER, RecordingSummary};

/// Counts by writer, of the readers and of the thread that writes.
#[derive(Debug, Default)]
pub struct Ledger {
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    writers: HashMap<Guid, ChannelSummary>,
    /// Samples of writers beyond the bound.
    beyond: u64,
    lost: BTreeMap<String, BTreeMap<String, u64>>,
    overwritten: BTreeMap<String, u64>,
}

/// What became of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingFate {
    /// It waits for the disk.
    Arrived,
    /// It found no room in memory.
    NoRoom,
    /// It is in a file.
    Recorded,
    /// It could not be written to a file.
    Unwritten,
}

impl Ledger {
    /// Counts a sample.
    pub fn note(&self, writer: Guid, topic: &str, sequence: SequenceNumber, fate: RecordingFate) {
        let mut counts = self.lock();
        if !counts.writers.contains_key(&writer) && counts.writers.len() >= WRITERS_MAX {
            counts.beyond += u64::from(fate == RecordingFate::NoRoom || fate == RecordingFate::Unwritten);
            return;
        }
        let channel = counts.writers.entry(writer).or_insert_with(|| ChannelSummary {
            topic: topic.to_owned(),
            first: sequence.0,
            last: sequence.0,
            ..ChannelSummary::default()
        });
        channel.first = channel.first.min(sequence.0);
        channel.last = channel.last.max(sequence.0);
        match fate {
            RecordingFate::Arrived => channel.arrived += 1,
            RecordingFate::NoRoom => channel.dropped_memory += 1,
            RecordingFate::Recorded => channel.recorded += 1,
            RecordingFate::Unwritten => channel.dropped_disk += 1,
        }
    }

    /// Counts samples of a writer that were noted as recorded as lost to the disk.
    pub fn take_back(&self, writer: Guid, count: u64) {
        if let Some(channel) = self.lock().writers.get_mut(&writer) {
            channel.recorded = channel.recorded.saturating_sub(count);
            channel.dropped_disk += count;
        }
    }

    /// Tells what a topic's readers have lost so far.
    pub fn set_losses(&self, topic: &str, lost: BTreeMap<String, u64>, overwritten: u64) {
        let mut counts = self.lock();
        if !lost.is_empty() {
            counts.lost.insert(topic.to_owned(), lost);
        }
        if overwritten > 0 {
            counts.overwritten.insert(topic.to_owned(), overwritten);
        }
    }

    /// The counts as they are now.
    pub fn summary(&self) -> RecordingSummary {
        let counts = self.lock();
        let of = |(guid, channel): (&Guid, &ChannelSummary)| (format!("{} {guid}", channel.topic), channel.clone());
        let mut channels: BTreeMap<String, ChannelSummary> = counts.writers.iter().map(of).collect();
        if counts.beyond > 0 {
            let rest = ChannelSummary { dropped_memory: counts.beyond, last: -1, ..ChannelSummary::default() };
            channels.insert(FURTHER.to_owned(), rest);
        }
        RecordingSummary { channels, lost: counts.lost.clone(), overwritten: counts.overwritten.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Writers that are recorded and counted by themselves, chosen by us: half the channels that a file may have, and a day of `ros2 topic pub --once` every three seconds.
pub const WRITERS_MAX: usize = 1 << 15;
