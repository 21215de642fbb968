//! The counts of a recording.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Name of the metadata record with the counts, in JSON.
pub const SUMMARY: &str = "thalweg.summary";

/// The entry of the writers that are not counted one by one.
pub const FURTHER: &str = "further writers";

/// What was recorded and what was lost, since the recording began; at the end of each file as metadata `thalweg.summary`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingSummary {
    /// By topic on the wire and writer.
    pub channels: BTreeMap<String, ChannelSummary>,
    /// Samples that the readers counted as lost, by topic and reason.
    pub lost: BTreeMap<String, BTreeMap<String, u64>>,
    /// Samples that were overwritten in a reader before they were taken, by topic.
    pub overwritten: BTreeMap<String, u64>,
}

/// The counts of a writer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelSummary {
    /// Its topic on the wire.
    pub topic: String,
    /// The sequence number of its first sample that arrived.
    pub first: i64,
    /// The greatest sequence number that arrived.
    pub last: i64,
    /// Samples and ends of instances that arrived and found room in memory; those that are in no other count yet wait for the disk.
    pub arrived: u64,
    /// Those that were written to the files.
    pub recorded: u64,
    /// Samples that arrived and found no room in memory, since the disk did not follow.
    pub dropped_memory: u64,
    /// Samples that arrived after the files could not be written any more.
    pub dropped_disk: u64,
}

impl ChannelSummary {
    /// Numbers between the first and the last that never arrived: lost on the way, or never meant for this reader.
    pub fn missing(&self) -> u64 {
        let span = u64::try_from(self.last.saturating_sub(self.first).saturating_add(1)).unwrap_or(0);
        span.saturating_sub(self.arrived + self.dropped_memory)
    }
}

impl RecordingSummary {
    /// Samples in the files.
    pub fn recorded(&self) -> u64 {
        self.channels.values().map(|channel| channel.recorded).sum()
    }

    /// Samples that arrived and are not in the files.
    pub fn dropped(&self) -> u64 {
        self.channels.values().map(|channel| channel.dropped_memory + channel.dropped_disk).sum()
    }

    /// Numbers that never arrived.
    pub fn missing(&self) -> u64 {
        self.channels.values().map(ChannelSummary::missing).sum()
    }
}

/// `recorded 40 of 2 writers, dropped 3 (memory 3, disk 0), missing 1`.
impl fmt::Display for RecordingSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (memory, disk) = self
            .channels
            .values()
            .fold((0, 0), |(memory, disk), channel| (memory + channel.dropped_memory, disk + channel.dropped_disk));
        write!(
            f,
            "recorded {} of {} writers, dropped {} (memory {memory}, disk {disk}), missing {}",
            self.recorded(),
            self.channels.len(),
            self.dropped(),
            self.missing()
        )
    }
}
