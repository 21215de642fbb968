//! Where a reader was with writers that it lost: one whose lease ended for a while continues there when it comes back.

use std::collections::VecDeque;

use super::skips::Skips;
use super::writer_proxy::RequestCounts;
use crate::types::{Guid, SequenceNumber};

/// Writers remembered; the one that left first is forgotten first. Chosen for the writers of a large host on one topic; 16 KiB a
/// reader, and half a KiB more for each that had skipped much.
pub(super) const WRITERS_MAX: usize = 256;

/// Where a reader was with a writer.
#[derive(Debug)]
pub(super) struct LeftOff {
    /// The number expected next.
    pub next: SequenceNumber,
    /// The last number that a HEARTBEAT had named.
    pub told: SequenceNumber,
    /// Numbers skipped beyond that, where samples were delivered behind them: skipped samples may come back, and delivered ones are not delivered twice.
    pub skips: Skips,
}

/// Records of writers that are no longer matched.
#[derive(Debug, Default)]
pub(super) struct Departed {
    /// The highest counts of all of them: one that comes back may not have forgotten this reader.
    counts: RequestCounts,
    /// Where the reader was with each, in the order in which they left.
    places: VecDeque<(Guid, LeftOff)>,
}

impl Departed {
    pub(super) fn begin_counts_at(&mut self, first: u32) {
        self.counts = RequestCounts { acknack: first.wrapping_sub(1), nack_frag: first.wrapping_sub(1) };
    }

    pub(super) fn counts(&self) -> RequestCounts {
        self.counts
    }

    /// A writer has left. `left_off` is where this reader was with it, if that is known.
    pub(super) fn remember(&mut self, writer: Guid, counts: RequestCounts, left_off: Option<LeftOff>) {
        self.counts = self.counts.max(counts);
        let Some(left_off) = left_off else { return };
        if self.places.len() >= WRITERS_MAX {
            self.places.pop_front();
        }
        self.places.push_back((writer, left_off));
    }

    /// Where to go on with a writer that has come back.
    pub(super) fn recall(&mut self, writer: Guid) -> Option<LeftOff> {
        let place = self.places.iter().position(|(departed, _)| *departed == writer)?;
        self.places.remove(place).map(|(_, left_off)| left_off)
    }
}
