//! Samples that cannot be delivered directly: something before them is missing, or their instance is not known yet.

use super::window::{Placed, Window};
use super::{Reader, Received};
use crate::history::CachedSample;
use crate::time::Instant;
use crate::types::SequenceNumber;

/// What became of a sample that could not be delivered directly.
pub(super) struct Holding {
    /// It completed something that the application can take now.
    pub delivered: bool,
    /// Something in front of it is missing.
    pub leaves_gap: bool,
}

impl Reader {
    /// Puts a sample that cannot be delivered directly where `place` keeps it, and delivers what it was missing for.
    pub(super) fn place(
        &mut self,
        now: Instant,
        index: usize,
        sample: Received,
        place: impl FnOnce(&mut Window, CachedSample) -> Placed,
    ) -> Holding {
        self.writers[index].take_back(sample.sequence);
        let fills_gap = sample.sequence == self.writers[index].window.next();
        let is_repeated = self.hold(now, index, sample, place);
        if fills_gap {
            let delivered = self.handover.drain(now, &mut self.writers[index]) > 0;
            self.note_repaired(now, index);
            return Holding { delivered, leaves_gap: false };
        }
        // A sample that waits only for room or for its instance leaves no gap, and those announced beyond it may be right behind it.
        Holding { delivered: false, leaves_gap: !is_repeated && self.writers[index].window.has_gaps() }
    }

    /// Takes note of a sample that is here and is not handed over, unlike one of which only a GAP tells.
    pub(super) fn pass_over(&mut self, now: Instant, index: usize, sequence: SequenceNumber) -> Holding {
        let writer = &mut self.writers[index];
        writer.heard(sequence);
        writer.take_back(sequence);
        let fills_gap = sequence == writer.window.next();
        let placed = writer.window.pass_over(sequence);
        match placed {
            Placed::Stored => {}
            Placed::Duplicate => self.counters.duplicates += 1,
            Placed::TooFar => self.counters.too_far += 1,
        }
        if !fills_gap {
            let leaves_gap = placed != Placed::Duplicate && self.writers[index].window.has_gaps();
            return Holding { delivered: false, leaves_gap };
        }
        let delivered = self.handover.drain(now, &mut self.writers[index]) > 0;
        self.note_repaired(now, index);
        Holding { delivered, leaves_gap: false }
    }

    /// Keeps a sample until those before it are delivered. True when it was here before.
    pub(super) fn hold(
        &mut self,
        now: Instant,
        index: usize,
        sample: Received,
        place: impl FnOnce(&mut Window, CachedSample) -> Placed,
    ) -> bool {
        let writer = &mut self.writers[index];
        let reliable = writer.matched.reliable;
        let expires = writer.expiry(now, &sample, self.handover.epoch);
        let cached = sample.into_cached(writer.matched.guid, now, expires);
        match place(&mut writer.window, cached) {
            Placed::Stored => return false,
            Placed::Duplicate => self.counters.duplicates += 1,
            Placed::TooFar => {
                self.counters.too_far += 1;
                if reliable {
                    let due = self.writers[index].question(now);
                    self.writers.note_due(due);
                }
                return false;
            }
        }
        true
    }
}
