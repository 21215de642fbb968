//! What a replay has to know of the entries of a file.

use crate::read::{Entry, InstanceEnd, ReadChannel};
use crate::timeline::RecordedTimes;

/// The topic of a channel on the wire, or its name where that is not known.
pub fn recorded_name(channel: &ReadChannel) -> &str {
    channel.writer.as_ref().map_or(channel.name.as_str(), |writer| writer.topic.as_str())
}

/// The writer of an entry.
pub fn writer_of(entry: &Entry) -> String {
    match entry {
        Entry::Message { channel, .. } => match &channel.writer {
            Ok(writer) => writer.key(channel.id),
            Err(_) => channel.name.clone(),
        },
        Entry::InstanceEnd { end, .. } => key_of_end(end),
        Entry::Summary(_) => String::new(),
    }
}

/// What an entry that is to be written says of its time, and its bytes.
pub fn stamps_of(entry: &Entry) -> Option<(RecordedTimes, usize)> {
    match entry {
        Entry::Message { channel, sequence, log_time_ns, publish_time_ns, data } => {
            // The numbers of others are often missing, or count something else.
            let is_numbered = channel.writer.as_ref().is_ok_and(|writer| !writer.writer.is_empty());
            let sequence = if is_numbered { *sequence } else { 0 };
            Some((RecordedTimes { sequence, log_time_ns: *log_time_ns, source_ns: *publish_time_ns }, data.len()))
        }
        Entry::InstanceEnd { log_time_ns, publish_time_ns, end } => {
            let bytes = end.key.len() + end.topic.len() + end.writer.len();
            let sequence = end.sequence as u32;
            Some((RecordedTimes { sequence, log_time_ns: *log_time_ns, source_ns: *publish_time_ns }, bytes))
        }
        Entry::Summary(_) => None,
    }
}

/// The key of the writer that ended an instance.
pub fn key_of_end(end: &InstanceEnd) -> String {
    format!("{} {}", end.topic, end.writer)
}
