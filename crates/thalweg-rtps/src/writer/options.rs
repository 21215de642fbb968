//! The settings of a writer beside its QoS.

use crate::types::SequenceNumber;

/// What a writer needs to know of its environment beyond its QoS.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// Bytes of payload the history may hold, however many samples RESOURCE_LIMITS allow. Default 64 MiB.
    pub history_bytes_max: usize,
    /// Number of the first sample, at least 1. Default 1.
    pub first: SequenceNumber,
    /// Tells apart histories of one topic, type and partition that outlive their writers. Default empty; at most 256 bytes.
    pub history_name: String,
    /// Whether samples that only late readers would get go, the oldest first, where a write finds no room otherwise; a late reader that
    /// was not sent them yet misses them. Default false: a TRANSIENT_LOCAL writer keeps them and refuses the write. TRANSIENT and
    /// PERSISTENT writers let them go in any case.
    pub evicts_history: bool,
}

impl Default for WriterOptions {
    fn default() -> WriterOptions {
        WriterOptions {
            history_bytes_max: 64 << 20,
            first: SequenceNumber::FIRST,
            history_name: String::new(),
            evicts_history: false,
        }
    }
}
