//! Repairs for all readers of a process at once: they share its socket, and what that lost.

use super::lowest;
use super::reader_proxy::{Owed, ReaderProxy};
use super::reader_set::ReaderSet;
use super::repairs::SentAgain;
use crate::time::Instant;
use crate::types::SequenceNumber;

/// What is sent again to one reader and reaches the others of its process.
#[derive(Debug)]
pub(super) struct Shared {
    /// From which sample on.
    pub from: SequenceNumber,
    /// What was.
    pub sent: Vec<SentAgain>,
    /// Kernel memory that it fills.
    pub spent: u64,
}

impl Shared {
    pub(super) fn from(from: SequenceNumber) -> Shared {
        Shared { from, sent: Vec::new(), spent: 0 }
    }
}

/// Readers of a process among which repairs are shared: each repair costs a note for every one of them.
pub(super) const SHARING_MAX: usize = 64;

impl ReaderSet {
    /// From which sample on repairs for the reader at `place` are of use to another one of its process, and harm none; `None` where
    /// none are, or there are more than [`SHARING_MAX`].
    pub(super) fn shared_from(&self, place: usize) -> Option<SequenceNumber> {
        let reader = self.at(place);
        let (mut from, mut lacking) = (reader.start, None);
        for (number, other) in self.beside(place).map(|other| self.at(other)).enumerate() {
            if number + 1 >= SHARING_MAX || !other.takes_repairs_of(reader) {
                return None;
            }
            from = from.max(other.start);
            lacking = lowest(lacking, Some(other.acknowledged.sample.next()));
        }
        lacking.map(|lacking| from.max(lacking))
    }

    /// What was sent again to the reader at `place` has reached the others of its process as well.
    pub(super) fn share_repairs(&mut self, now: Instant, place: usize, shared: &Shared) {
        if shared.sent.is_empty() {
            return;
        }
        let others: Vec<usize> = self.beside(place).collect();
        for other in others {
            self.at_mut(other).take_shared(now, shared);
        }
    }

    /// The readers of its process are asked how far they are.
    pub(super) fn note_asked_beside(&mut self, now: Instant, place: usize) {
        let others: Vec<usize> = self.beside(place).collect();
        for other in others {
            self.at_mut(other).note_asked(now);
        }
    }

    fn beside(&self, place: usize) -> impl Iterator<Item = usize> {
        self.places_of(self.at(place).matched.guid.prefix).filter(move |other| *other != place)
    }
}

impl ReaderProxy {
    /// Whether what is sent to `other` of its process, for whoever lacks it, is right for this one, too.
    fn takes_repairs_of(&self, other: &ReaderProxy) -> bool {
        let is_reached = other.matched.unicast.first().is_some_and(|to| self.matched.unicast.first() == Some(to));
        let is_alike = self.matched.batches == other.matched.batches && self.repair_bytes == other.repair_bytes;
        is_reached && is_alike && self.is_awaited() && self.proven && self.owed != Owed::Greeting
    }

    fn take_shared(&mut self, now: Instant, shared: &Shared) {
        let suppression = self.suppression();
        for sent in &shared.sent {
            self.repairs.share(now, *sent, suppression);
        }
        self.repairs.unasked += shared.spent;
        if let Some(path) = self.congestion.as_deref_mut() {
            path.charge_repair(now, shared.spent);
        }
    }

    /// It is asked behind what was sent again.
    pub(super) fn note_asked(&mut self, now: Instant) {
        self.owed = Owed::Nothing;
        self.repairs.unasked = 0;
        self.asking.asks(now);
    }
}
