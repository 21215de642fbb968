//! Where a reader was with writers that it lost: one whose lease ended for a while continues there when it comes back.

use std::collections::VecDeque;

use super::skips::Skips;
use super::writer_proxy::RequestCounts;
use super::{LossReason, Reader, ReaderOutcome};
use crate::time::Instant;
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
    /// What the writer writes until it is back is not for this reader, which looks for nothing but news then.
    pub forgoes_meanwhile: bool,
}

impl LeftOff {
    /// Everything before `next` was delivered, or is not missed.
    pub(super) fn at(next: SequenceNumber) -> LeftOff {
        LeftOff { next, told: next.previous(), skips: Skips::default(), forgoes_meanwhile: false }
    }
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

    /// What a writer that has left writes from now on is not for this reader.
    pub(super) fn forgo_meanwhile(&mut self, writer: Guid) {
        if let Some((_, left_off)) = self.places.iter_mut().find(|(departed, _)| *departed == writer) {
            left_off.forgoes_meanwhile = true;
        }
    }

    /// Where to go on with a writer that has come back.
    pub(super) fn recall(&mut self, writer: Guid) -> Option<LeftOff> {
        let place = self.places.iter().position(|(departed, _)| *departed == writer)?;
        self.places.remove(place).map(|(_, left_off)| left_off)
    }
}

impl Reader {
    /// Forgets a writer: its instances lose it. What waited for keys alone is handed over, as far as the wire tells them.
    pub fn unmatch_writer(&mut self, now: Instant, guid: Guid) -> ReaderOutcome {
        let mut writer = self.writers.remove(guid);
        let has_identified = writer.as_mut().is_some_and(|writer| self.identify_by_hints(now, writer));
        if let Some(coherence) = &mut self.handover.coherence {
            coherence.forget(guid);
            self.handover.shortfall.lose(LossReason::SetIncomplete, coherence.take_dropped());
        }
        let Some(writer) = writer else { return ReaderOutcome::default() };
        if let (Some(history), Some(left_off)) = (writer.matched.history, writer.place_to_resume()) {
            self.histories.remember(history, left_off);
        }
        self.departed.remember(guid, writer.requests.counts, writer.place_to_resume());
        if let Some(admission) = &mut self.handover.admission {
            admission.unmatch_writer(guid);
        }
        let has_news = self.handover.lose_writer(now, guid);
        ReaderOutcome { data_available: has_identified || has_news, ..ReaderOutcome::default() }
    }
}
