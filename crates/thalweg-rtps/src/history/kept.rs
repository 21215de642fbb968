//! A history that outlives its writer: what DURABILITY_SERVICE keeps of it for late readers, and what its driver is told to store
//! (DDS 1.4 §2.2.3.4, §2.2.3.5).

use std::time::Duration;

use super::bounds::{Bounds, Load};
use super::change::{Change, Content, END_OF_SET, Held};
use super::writer_history::CHANGE_BYTES;
use super::{ChangeKind, WriterHistory};
use crate::payload::Payload;
use crate::qos::{DurabilityService, History};
use crate::time::{Instant, Timestamp};
use crate::types::{KeyHash, SequenceNumber};

/// Bytes of samples that wait to be stored before writes wait for the store. Chosen by Thalweg: a quarter of a second of the
/// fastest stream that it is built for, so that a commit of usual length delays nobody.
pub const RECORD_BYTES_MAX: usize = 16 << 20;

/// One change as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredChange {
    /// Its number.
    pub sequence: SequenceNumber,
    /// Its effect on its instance.
    pub kind: ChangeKind,
    /// The instance; all zero for keyless topics.
    pub instance: KeyHash,
    /// When the application says it happened.
    pub timestamp: Option<Timestamp>,
    /// Serialized sample, or key, with its encapsulation header.
    pub payload: Payload,
}

/// What a store is to change, additions first: what is removed made room for what is added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// New changes that the history holds, in order.
    pub added: Vec<StoredChange>,
    /// Stored changes that the history holds no longer.
    pub removed: Vec<SequenceNumber>,
    /// Every change up to this number is among those told by now, or gone.
    pub up_to: SequenceNumber,
}

/// Bounds of what stays when every reader has it, and what a store is still to be told.
#[derive(Debug)]
pub(super) struct Kept {
    /// The bounds of DURABILITY_SERVICE.
    bounds: Bounds,
    cleanup_delay: Duration,
    /// The latest time that the history was told.
    pub(super) now: Instant,
    journal: Option<Journal>,
}

/// How far a store is.
#[derive(Debug)]
struct Journal {
    /// Changes from here on were not told.
    next: SequenceNumber,
    /// Told changes that are gone; the store holds each of them.
    removed: Vec<SequenceNumber>,
    /// Bytes written since [`WriterHistory::take_records`], and those that it has told and that are not stored yet.
    untold_bytes: usize,
    told_bytes: usize,
    /// Everything up to here is stored.
    stored: SequenceNumber,
    /// Up to here the store has set numbers aside.
    reserved: SequenceNumber,
    /// The store cannot be written.
    is_failing: bool,
}

impl Kept {
    pub(super) fn cleanup_at(&self) -> Instant {
        self.now + self.cleanup_delay
    }

    pub(super) fn note_written(&mut self, bytes: usize) {
        if let Some(journal) = &mut self.journal {
            journal.untold_bytes = journal.untold_bytes.saturating_add(bytes);
        }
    }

    pub(super) fn note_removed(&mut self, sequence: SequenceNumber) {
        if let Some(journal) = &mut self.journal
            && sequence < journal.next
        {
            journal.removed.push(sequence);
        }
    }
}

impl WriterHistory {
    /// The first change gets this number; for a history that nothing is pushed to yet.
    pub(crate) fn begin_at(&mut self, first: SequenceNumber) {
        (self.last, self.acknowledged, self.unsent) = (first.previous(), first.previous(), first);
    }

    /// Keeps what `service` says when every reader has it. KEEP_LAST of the writer overwrites no sample that the service keeps, as far
    /// as the limits allow.
    pub(crate) fn outliving(mut self, service: &DurabilityService) -> WriterHistory {
        let bounds = Bounds::new(service.history, service.resource_limits, usize::MAX, usize::MAX);
        if let Some(depth) = self.bounds.depth {
            let unlimited = service.history == History::KeepAll;
            self.bounds.depth = Some(if unlimited { usize::MAX } else { depth.max(bounds.depth.unwrap_or(depth)) });
        }
        let cleanup_delay = service.cleanup_delay;
        self.kept = Some(Box::new(Kept { bounds, cleanup_delay, now: Instant::ZERO, journal: None }));
        self
    }

    /// Changes the byte budget. What is held beyond it, and every reader has, makes room for the next change.
    pub(crate) fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bounds.bytes_max = bytes_max;
    }

    /// Everything that is pushed from now on is told to a store, which has set numbers aside up to `reserved`. What is held is stored.
    pub(crate) fn begin_journal(&mut self, reserved: SequenceNumber) {
        let (next, stored) = (self.last.next(), self.last);
        if let Some(kept) = &mut self.kept {
            let (removed, untold_bytes, told_bytes, is_failing) = (Vec::new(), 0, 0, false);
            kept.journal = Some(Journal { next, removed, untold_bytes, told_bytes, stored, reserved, is_failing });
        }
    }

    fn journal(&mut self) -> Option<&mut Journal> {
        self.kept.as_mut()?.journal.as_mut()
    }

    /// Takes in what a store holds of an earlier life of the writer, in order, whose last number was at most `last`.
    pub(crate) fn restore(&mut self, changes: Vec<StoredChange>, last: SequenceNumber) {
        if let Some(journal) = self.journal() {
            (journal.next, journal.stored) = (last.next(), last);
        }
        for StoredChange { sequence, kind, instance, timestamp, payload } in changes {
            if sequence <= self.last || sequence > last {
                continue;
            }
            let change = Change { sequence, kind, instance, timestamp, payload, fragment_bytes: None };
            self.last = sequence.previous();
            let bytes = change.payload.len();
            let (slot, _) = self.account(instance, kind, bytes);
            let next_of_instance = SequenceNumber::ZERO;
            self.ring.push(sequence, Content::One(Held { change, instance: slot, next_of_instance, is_live: true }));
            self.chain(slot, sequence, kind == ChangeKind::Write);
        }
        self.begin_at(last.max(self.last).next());
        if let Some(journal) = self.journal() {
            journal.untold_bytes = 0;
        }
        self.shorten(SequenceNumber::ZERO);
        self.sweep();
    }

    /// Tells the time, by which the samples of ended instances go. Returns whether anything was freed.
    pub(crate) fn clean_up(&mut self, now: Instant) -> bool {
        let Some(kept) = &mut self.kept else { return false };
        kept.now = kept.now.max(now);
        let before = self.held.changes;
        self.drop_departed();
        let has_freed = self.held.changes < before;
        if has_freed {
            self.sweep();
        }
        has_freed
    }

    /// When [`WriterHistory::clean_up`] has something to do.
    #[inline]
    pub(crate) fn cleanup_due(&self) -> Instant {
        let Some(kept) = &self.kept else { return Instant::NEVER };
        let first = self.departures.front().filter(|first| first.sequence <= self.acknowledged && first.due > kept.now);
        first.map_or(Instant::NEVER, |first| first.due)
    }

    /// Lets acknowledged samples go, the oldest first, until one more change of `instance` fits. All of them stay where it would not
    /// fit without them either.
    pub(crate) fn make_room(&mut self, instance: &KeyHash, bytes: usize) {
        if self.room_for(instance, bytes) || !self.may_make_room(instance, bytes) {
            return;
        }
        while !self.room_for(instance, bytes) {
            let own = self.instances.as_ref().and_then(|instances| instances.oldest_of(instance));
            let is_own = own.is_some_and(|(_, held)| !self.bounds.admit(held, held, bytes));
            let oldest = own.filter(|_| is_own).map_or_else(|| self.first(), |(oldest, _)| oldest);
            if oldest > self.acknowledged {
                return;
            }
            self.remove(oldest);
            self.sweep();
        }
    }

    /// Whether one more change of `instance` fits once enough acknowledged samples have gone.
    fn may_make_room(&self, instance: &KeyHash, bytes: usize) -> bool {
        let instances = self.instances.as_ref();
        if instances.is_some_and(|instances| !instances.may_admit(instance, self.acknowledged)) {
            return false;
        }
        let slot_of = |key: &KeyHash| instances.and_then(|instances| instances.find(key));
        let (slot, slot_of_ends) = (slot_of(instance), slot_of(&END_OF_SET));
        let own = instances.zip(slot).map(|(instances, slot)| instances.load_of(slot).1);
        let (mut all, mut own) = (self.counted(), own.unwrap_or_default());
        // Its own limit: what helps is its oldest change, wherever that lies.
        let mut gone = SequenceNumber::ZERO;
        if let Some((oldest, held)) = instances.and_then(|instances| instances.oldest_of(instance))
            && slot != slot_of_ends
            && !self.bounds.admit(held, held, bytes)
        {
            let Some(sample) = self.get(oldest).filter(|_| oldest <= self.acknowledged) else { return false };
            let (is_value, freed) = (sample.is_value(), sample.len().saturating_add(CHANGE_BYTES));
            all.remove(is_value, freed);
            own.remove(is_value, freed);
            gone = oldest;
        }
        let mut from = SequenceNumber::ZERO;
        while !self.bounds.admit(all, own, bytes.saturating_add(CHANGE_BYTES)) {
            let next = self.ring.sample_from(from, false).filter(|sample| sample.sequence <= self.acknowledged);
            let Some(sample) = next else { return false };
            from = sample.sequence.next();
            let its_slot = self.ring.instance_of(sample.sequence);
            let counts_nothing = !sample.is_value() && its_slot.is_some() && its_slot == slot_of_ends;
            if counts_nothing || sample.sequence == gone {
                continue;
            }
            let (is_value, freed) = (sample.is_value(), sample.len().saturating_add(CHANGE_BYTES));
            all.remove(is_value, freed);
            if slot.is_some() && its_slot == slot {
                own.remove(is_value, freed);
            }
        }
        true
    }

    /// Of the changes behind `since` that every reader has now, and of those before them, what DURABILITY_SERVICE does not keep goes.
    pub(super) fn shorten(&mut self, since: SequenceNumber) {
        let Some(bounds) = self.kept.as_ref().map(|kept| kept.bounds) else { return };
        let mut from = since.next();
        while let Some(sequence) = self.ring.sample_from(from, false).map(|sample| sample.sequence)
            && sequence <= self.acknowledged
        {
            from = sequence.next();
            let Some(slot) = self.ring.instance_of(sequence) else { continue };
            while let Some((oldest, held)) = self.instances.as_ref().map(|instances| instances.load_of(slot))
                && held.changes > 0
                && oldest <= self.acknowledged
                && exceeds(&bounds, held)
            {
                self.remove(oldest);
            }
        }
        let is_over = |history: &WriterHistory| {
            let instances = history.instances.as_ref().map_or(0, |instances| instances.held());
            history.counted().changes > bounds.samples_max || instances > bounds.instances_max
        };
        while is_over(self) && self.first() <= self.acknowledged {
            let oldest = self.first();
            self.remove(oldest);
            self.ring.sweep();
        }
    }

    /// Whether the store has room for one more change of so many bytes, and a number.
    pub(crate) fn has_record_room(&self, bytes: usize) -> bool {
        let Some(journal) = self.kept.as_ref().and_then(|kept| kept.journal.as_ref()) else { return true };
        let waiting = journal.untold_bytes + journal.told_bytes;
        !journal.is_failing
            && self.last < journal.reserved
            && (waiting == 0 || waiting.saturating_add(bytes) <= RECORD_BYTES_MAX)
    }

    /// Whether [`WriterHistory::take_records`] has anything to tell.
    pub(crate) fn has_records(&self) -> bool {
        let journal = self.kept.as_ref().and_then(|kept| kept.journal.as_ref());
        journal.is_some_and(|journal| journal.next <= self.last || !journal.removed.is_empty())
    }

    /// The store cannot be written: nothing has room until it tells that something is stored.
    pub(crate) fn note_store_failed(&mut self) {
        if let Some(journal) = self.journal() {
            journal.is_failing = true;
        }
    }

    /// Nobody knows what the store holds: the next records are all that is held, and what the store has beside them is to go.
    pub(crate) fn retell_records(&mut self) {
        if let Some(journal) = self.journal() {
            (journal.next, journal.stored) = (SequenceNumber::FIRST, SequenceNumber::ZERO);
            journal.removed.clear();
        }
    }

    /// What the store is to be told next; `None` when there is nothing new. The caller tells by [`WriterHistory::note_stored`] when it is
    /// stored, before it asks again.
    pub(crate) fn take_records(&mut self) -> Option<Records> {
        let last = self.last;
        let journal = self.kept.as_mut()?.journal.as_mut()?;
        if journal.next > last && journal.removed.is_empty() {
            return None;
        }
        let mut from = std::mem::replace(&mut journal.next, last.next());
        journal.told_bytes += std::mem::take(&mut journal.untold_bytes);
        let mut records = Records { removed: std::mem::take(&mut journal.removed), up_to: last, ..Records::default() };
        while let Some(sample) = self.ring.sample_from(from, false) {
            let (sequence, kind, timestamp) = (sample.sequence, sample.kind, sample.timestamp);
            let payload = match sample.encapsulation {
                None => sample.payload.slice(sample.range.clone()),
                Some(header) => Payload::from([&header, &sample.payload[sample.range.clone()]].concat()),
            };
            from = sequence.next();
            let slot = self.ring.instance_of(sequence);
            let key = |slot| self.instances.as_ref().map(|instances| instances.key_of(slot));
            let instance = slot.and_then(key).unwrap_or_default();
            records.added.push(StoredChange { sequence, kind, instance, timestamp, payload });
        }
        Some(records)
    }

    /// The store holds what was told up to `stored`, and has set numbers aside up to `reserved`.
    pub(crate) fn note_stored(&mut self, stored: SequenceNumber, reserved: SequenceNumber) {
        if let Some(journal) = self.journal() {
            (journal.told_bytes, journal.is_failing) = (0, false);
            journal.stored = journal.stored.max(stored);
            journal.reserved = journal.reserved.max(reserved);
        }
    }

    /// Whether every change up to `number` is stored, where a store keeps them.
    pub(crate) fn is_stored_up_to(&self, number: SequenceNumber) -> bool {
        let journal = self.kept.as_ref().and_then(|kept| kept.journal.as_ref());
        journal.is_none_or(|journal| journal.stored >= number)
    }
}

/// Whether an instance holds more than `bounds` keep of one.
fn exceeds(bounds: &Bounds, own: Load) -> bool {
    let depth = bounds.depth.unwrap_or(usize::MAX).min(bounds.samples_per_instance_max);
    own.values > depth || own.changes > depth.saturating_mul(2).saturating_add(1)
}
