//! Coherent sets of a writer: which of its samples belong together (DDS 1.4 §2.2.2.4.1.10, RTPS 2.5 §8.7.5).

use std::collections::VecDeque;

use super::Writer;
use crate::history::{Change, ChangeKind, WriterHistory};
use crate::payload::Payload;
use crate::time::{Instant, Timestamp};
use crate::types::{KeyHash, SequenceNumber};

/// The sets that the history still holds, oldest first.
#[derive(Debug, Default)]
pub(super) struct CoherentSets {
    sets: VecDeque<CoherentSet>,
    /// How many calls of `begin` have no `end` yet.
    depth: u32,
}

/// A set, which has at least one sample.
#[derive(Clone, Copy, Debug)]
struct CoherentSet {
    first: SequenceNumber,
    /// The number that says that it is complete; above all others while it is open.
    end: SequenceNumber,
}

const OPEN: SequenceNumber = SequenceNumber(i64::MAX);

/// The instance of the ends of sets. They follow the rules of the history like samples, of which each is the newest of its instance.
const ENDS: KeyHash = KeyHash([0xc5; 16]);

impl CoherentSets {
    /// Whether a sample that is written now belongs to a set.
    pub(super) fn is_open(&self) -> bool {
        self.depth > 0
    }

    /// What a sample says of sets: the number of the first sample of its own, [`SequenceNumber::UNKNOWN`] at the end of one; `None` for
    /// others.
    pub(super) fn of(&self, sequence: SequenceNumber) -> Option<SequenceNumber> {
        let after = self.sets.partition_point(|set| set.first <= sequence);
        let set = self.sets.get(after.checked_sub(1)?)?;
        match sequence.cmp(&set.end) {
            std::cmp::Ordering::Less => Some(set.first),
            std::cmp::Ordering::Equal => Some(SequenceNumber::UNKNOWN),
            std::cmp::Ordering::Greater => None,
        }
    }

    fn has_open(&self) -> bool {
        self.sets.back().is_some_and(|set| set.end == OPEN)
    }

    /// A sample was written.
    pub(super) fn note_written(&mut self, sequence: SequenceNumber) {
        if self.is_open() && !self.has_open() {
            self.sets.push_back(CoherentSet { first: sequence, end: OPEN });
        }
    }

    /// Forgets sets of which nothing is held any more.
    fn forget(&mut self, history: &WriterHistory) {
        let first = history.first();
        while self.sets.front().is_some_and(|set| set.end < first) {
            self.sets.pop_front();
        }
    }
}

impl Writer {
    /// Samples written from now on belong together, until as many calls of [`Writer::end_coherent_changes`] have followed as there were
    /// of this.
    pub fn begin_coherent_changes(&mut self) {
        self.coherent.depth = self.coherent.depth.saturating_add(1);
    }

    /// Ends what [`Writer::begin_coherent_changes`] began; returns false when nothing had begun. Readers learn of it by a number of its
    /// own, which leaves with the next [`Writer::start_sending`]; its time stamp is `timestamp`.
    pub fn end_coherent_changes(&mut self, now: Instant, timestamp: Timestamp) -> bool {
        if self.coherent.depth == 0 {
            return false;
        }
        self.coherent.depth -= 1;
        if self.coherent.depth > 0 || !self.coherent.has_open() {
            return true;
        }
        let pushed = self.history.push(Change {
            sequence: SequenceNumber::UNKNOWN,
            kind: ChangeKind::Write,
            instance: ENDS,
            timestamp: Some(timestamp),
            payload: Payload::empty(),
            fragment_bytes: None,
        });
        if let Some(set) = self.coherent.sets.back_mut() {
            set.end = pushed.sequence;
        }
        self.coherent.forget(&self.history);
        self.note_pushed(now, pushed, 0);
        self.flush();
        true
    }
}
