//! The account of the samples that a reader received and of those that it did not hand over.

use super::shortfall::{Losses, Rejections};
use super::{Reader, ReaderCounters};
use crate::types::Guid;

/// What a reader received and what it did not hand over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReaderExplanation {
    /// The reader.
    pub guid: Guid,
    /// Its topic.
    pub topic: String,
    /// Matched writers.
    pub writers: usize,
    /// Samples handed to the cache.
    pub received: u64,
    /// Samples that wait to be taken.
    pub held: usize,
    /// Samples that KEEP_LAST replaced before they were taken.
    pub overwritten: u64,
    /// Samples whose LIFESPAN was over before they were taken.
    pub expired: u64,
    /// Samples that will never be taken, by reason.
    pub losses: Losses,
    /// Samples that found no room.
    pub rejections: Rejections,
    /// Claims that it did not believe at once.
    pub doubted: u64,
}

impl Reader {
    /// What this reader received and did not hand over. `topic` is left empty: the reader does not know it.
    pub fn explain(&self) -> ReaderExplanation {
        let ReaderCounters { received, expired, doubted, .. } = self.counters();
        ReaderExplanation {
            guid: self.guid,
            topic: String::new(),
            writers: self.writers.len(),
            received,
            held: self.handover.cache.len(),
            overwritten: self.handover.cache.overwritten(),
            expired,
            losses: self.losses(),
            rejections: self.rejections(),
            doubted,
        }
    }
}
