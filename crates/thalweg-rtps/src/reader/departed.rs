//! Where a reader was with writers that it lost: one whose lease ended for a while continues there when it comes back.

use std::collections::VecDeque;

use super::writer_proxy::RequestCounts;
use crate::types::{Guid, SequenceNumber};

/// Writers remembered; the one that left first is forgotten first. Chosen for the writers of a large host on one topic; 8 KiB a
/// reader.
pub(super) const WRITERS_MAX: usize = 256;

/// What is remembered of writers that are no longer matched.
#[derive(Debug, Default)]
pub(super) struct Departed {
    /// The highest counts of all of them: one that comes back may not have forgotten this reader.
    counts: RequestCounts,
    /// The number expected next of each, in the order in which they left.
    places: VecDeque<(Guid, SequenceNumber)>,
}

impl Departed {
    pub(super) fn begin_counts_at(&mut self, first: u32) {
        self.counts = RequestCounts { acknack: first.wrapping_sub(1), nack_frag: first.wrapping_sub(1) };
    }

    pub(super) fn counts(&self) -> RequestCounts {
        self.counts
    }

    /// A writer has left. `next` is the number expected of it, if it is known where this reader was.
    pub(super) fn remember(&mut self, writer: Guid, counts: RequestCounts, next: Option<SequenceNumber>) {
        self.counts = self.counts.max(counts);
        let Some(next) = next else { return };
        if self.places.len() >= WRITERS_MAX {
            self.places.pop_front();
        }
        self.places.push_back((writer, next));
    }

    /// The number expected next of a writer that has come back.
    pub(super) fn recall(&mut self, writer: Guid) -> Option<SequenceNumber> {
        let place = self.places.iter().position(|(departed, _)| *departed == writer)?;
        self.places.remove(place).map(|(_, next)| next)
    }
}
