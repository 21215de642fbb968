//! Where a reader was with histories that go on under another writer: a PERSISTENT writer that comes back delivers nothing twice.

use std::collections::VecDeque;

use super::departed::LeftOff;
use super::{MatchedWriter, Reader};
use crate::types::{Guid, HistoryIdentity};

/// Histories remembered; the one that was left first is forgotten first, and delivered again if it comes back. As many as a participant
/// keeps; 48 KiB a reader.
pub(super) const HISTORIES_MAX: usize = 1_024;

/// Where a reader was with each history whose writer is gone.
#[derive(Debug, Default)]
pub(super) struct Histories {
    places: VecDeque<(HistoryIdentity, LeftOff)>,
}

impl Histories {
    /// A writer of this history is gone.
    pub(super) fn remember(&mut self, history: HistoryIdentity, left_off: LeftOff) {
        let left_off = match self.recall(history) {
            Some(before) if before.next > left_off.next => before,
            _ => left_off,
        };
        if self.places.len() >= HISTORIES_MAX {
            self.places.pop_front();
        }
        self.places.push_back((history, left_off));
    }

    fn recall(&mut self, history: HistoryIdentity) -> Option<LeftOff> {
        let place = self.places.iter().position(|(known, _)| *known == history)?;
        self.places.remove(place).map(|(_, left_off)| left_off)
    }
}

impl Reader {
    /// The matched writers whose history `next` goes on with. Their process is gone, but its lease has not ended, and what it sent last
    /// may still be on the way: it would be delivered beside what `next` repeats.
    pub(crate) fn superseded_by(&self, next: &MatchedWriter) -> Vec<Guid> {
        let Some(history) = next.history else { return Vec::new() };
        let others = self.writers.iter().map(|writer| &writer.matched).filter(|other| other.guid != next.guid);
        others.filter(|other| other.history == Some(history)).map(|other| other.guid).collect()
    }

    /// Where to go on with `next`, a new writer of a history: one that was killed is still matched until its lease ends. Its instances
    /// are those of the new one as well.
    pub(super) fn recall_history(&mut self, history: HistoryIdentity, next: Guid) -> Option<LeftOff> {
        let of_history = self.writers.iter().filter(|writer| writer.matched.history == Some(history));
        for former in of_history.clone().map(|writer| writer.matched.guid) {
            self.handover.cache.hand_on(former, next);
        }
        let matched = of_history.filter_map(|writer| writer.place_to_resume());
        let gone = self.histories.recall(history);
        matched.chain(gone).max_by_key(|left_off| left_off.next)
    }
}
