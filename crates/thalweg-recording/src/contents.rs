//! What is in a file, for people.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use crate::error::RecordingError;
use crate::read::{Entry, ReadChannel, RecordingReader};
use crate::summary::RecordingSummary;

/// Reads a whole file: its channels with their counts, and how it ends.
///
/// # Errors
/// When it cannot be read.
pub fn read_contents(path: &Path) -> Result<Contents, RecordingError> {
    let file = File::open(path).map_err(|error| RecordingError::of_file(path, error))?;
    let mut reader = RecordingReader::new(file);
    let mut contents = Contents::default();
    while let Some(entry) = reader.read_entry().map_err(|error| RecordingError::of_file(path, error))? {
        match entry {
            Entry::Message { channel, log_time_ns, .. } => {
                let counted = contents.channels.entry(channel.id).or_default();
                counted.messages += 1;
                contents.first_ns = Some(contents.first_ns.map_or(log_time_ns, |first| first.min(log_time_ns)));
                contents.last_ns = contents.last_ns.max(log_time_ns);
            }
            Entry::InstanceEnd { .. } => contents.instance_ends += 1,
            Entry::Summary(summary) => contents.summary = Some(summary),
        }
    }
    for channel in reader.channels() {
        contents.channels.entry(channel.id).or_default().channel = Some(Arc::clone(channel));
    }
    contents.cut_off = reader.cut_off().map(str::to_owned);
    Ok(contents)
}

/// What a file has.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// By the channels' numbers.
    pub channels: BTreeMap<u16, ChannelContents>,
    /// Ends of instances.
    pub instance_ends: u64,
    /// The first and last reception, in nanoseconds since 1970.
    pub first_ns: Option<u64>,
    /// See `first_ns`.
    pub last_ns: u64,
    /// The counts that the recorder left at the end.
    pub summary: Option<RecordingSummary>,
    /// Why the file ends before its end.
    pub cut_off: Option<String>,
}

/// What a channel has.
#[derive(Clone, Debug, Default)]
pub struct ChannelContents {
    /// The channel.
    pub channel: Option<Arc<ReadChannel>>,
    /// Its messages.
    pub messages: u64,
}
