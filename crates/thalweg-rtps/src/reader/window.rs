//! Samples that arrived ahead of a missing one: a ring that starts at the number expected next.

use std::collections::VecDeque;

use super::skips::{Range, Skips};
use crate::history::CachedSample;
use crate::types::{KeyHash, SequenceNumber};
use crate::wire::SequenceSet;

/// Numbers a reliable reader keeps track of beyond the first missing one. A writer that jumps further is asked to repeat
/// what lies behind; bounds what a lying peer can make us hold.
pub(super) const NUMBERS_MAX: i64 = 65_536;

/// Payload bytes held ahead of a missing sample, for each remote writer.
pub(super) const HELD_BYTES_MAX: usize = 64 << 20;

/// Best-effort samples that are skipped are remembered if there are so many of them.
const REMEMBERED_MIN: i64 = 16;
/// The same of each built-in writer.
const BUILTIN_NUMBERS_MAX: i64 = 8_192;
const BUILTIN_HELD_BYTES_MAX: usize = 1 << 20;

#[derive(Debug)]
pub(super) enum Slot {
    Missing,
    /// It will never come.
    Irrelevant,
    /// It has come and is not handed over.
    Unwanted,
    Held(CachedSample),
    /// Its instance is not known yet; the hint of the wire does if its key cannot be computed.
    AwaitsKey(CachedSample, Option<KeyHash>),
}

impl Slot {
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Slot::Missing)
    }
}

/// What became of a sample.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Placed {
    /// Received or declared irrelevant before.
    Duplicate,
    /// Beyond what is kept; it will be asked for again.
    TooFar,
    /// Kept.
    Stored,
}

#[derive(Debug)]
pub(super) struct Window {
    pub(super) next: SequenceNumber,
    pub(super) slots: VecDeque<Slot>,
    /// How many of the slots are missing.
    pub(super) missing: usize,
    pub(super) held_bytes: usize,
    /// Numbers missing below this were counted as lost; nothing else remembers those beyond the slots.
    pub(super) lost_below: SequenceNumber,
    /// Numbers skipped below `next`.
    pub(super) skips: Skips,
    /// Numbers delivered although they do not lie below `next`, since the window came back.
    pub(super) done: Vec<Range>,
    /// Numbers and payload bytes that are kept.
    bounds: (i64, usize),
}

impl Window {
    pub(super) fn new(next: SequenceNumber) -> Window {
        Window {
            next,
            slots: VecDeque::new(),
            missing: 0,
            held_bytes: 0,
            lost_below: next,
            skips: Skips::default(),
            done: Vec::new(),
            bounds: (NUMBERS_MAX, HELD_BYTES_MAX),
        }
    }

    /// The window of a built-in writer: anybody can be a participant.
    pub(super) fn of_builtin(next: SequenceNumber) -> Window {
        Window { bounds: (BUILTIN_NUMBERS_MAX, BUILTIN_HELD_BYTES_MAX), ..Window::new(next) }
    }

    /// The first number that is neither delivered nor irrelevant.
    pub(super) fn next(&self) -> SequenceNumber {
        self.next
    }

    /// Highest number that is kept, or the one before `next`.
    pub(super) fn highest(&self) -> SequenceNumber {
        self.next + (self.slots.len() as i64 - 1)
    }

    /// Numbers kept, and the bytes that the samples among them are charged.
    pub(super) fn load(&self) -> (usize, usize) {
        (self.slots.len(), self.held_bytes)
    }

    /// True when nothing waits for a missing sample.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// `next` was delivered without detour; only for an empty window.
    pub(super) fn advance(&mut self) {
        debug_assert!(self.slots.is_empty());
        self.next = self.next.next();
        if !self.done.is_empty() {
            self.pass_done();
        }
    }

    /// As [`Window::mark_irrelevant`] up to below `end`, of which the last number has come and those from `start` on are not skipped.
    pub(super) fn pass(&mut self, start: SequenceNumber, end: SequenceNumber) {
        if !self.slots.is_empty() {
            return self.mark_irrelevant(self.highest().next(), end);
        }
        if start - self.next >= REMEMBERED_MIN {
            self.skips.record(self.next, start);
        }
        self.next = self.next.max(end);
        if !self.done.is_empty() {
            self.pass_done();
        }
    }

    pub(super) fn is_new(&self, sequence: SequenceNumber) -> bool {
        sequence >= self.next
            && self.slot(sequence).is_none_or(Slot::is_missing)
            && (self.done.is_empty() || !self.is_done(sequence))
    }

    /// True when `sequence` is not beyond what is kept track of.
    pub(super) fn reaches(&self, sequence: SequenceNumber) -> bool {
        sequence - self.next < self.bounds.0
    }

    /// True when nothing from `first` to `last` is missing.
    pub(super) fn has_all(&self, first: SequenceNumber, last: SequenceNumber) -> bool {
        let from = (first - self.next).max(0);
        let to = (last - self.next).saturating_add(1);
        let slots = self.slots.len() as i64;
        to <= from || to <= slots && self.slots.range(from as usize..to as usize).all(|slot| !slot.is_missing())
    }

    fn slot(&self, sequence: SequenceNumber) -> Option<&Slot> {
        usize::try_from(sequence - self.next).ok().and_then(|index| self.slots.get(index))
    }

    pub(super) fn place(&mut self, sample: CachedSample) -> Placed {
        self.occupy(sample.sequence, sample.payload.len(), Slot::Held(sample))
    }

    /// `sequence` has come and is not handed over.
    pub(super) fn pass_over(&mut self, sequence: SequenceNumber) -> Placed {
        if self.slots.is_empty() && sequence == self.next {
            self.advance();
            return Placed::Stored;
        }
        self.occupy(sequence, 0, Slot::Unwanted)
    }

    /// As [`Window::place`] for a sample that [`Window::identify`] is to complete; nothing behind it is delivered before.
    pub(super) fn place_awaiting_key(&mut self, sample: CachedSample, hint: Option<KeyHash>) -> Placed {
        self.occupy(sample.sequence, sample.payload.len(), Slot::AwaitsKey(sample, hint))
    }

    fn occupy(&mut self, sequence: SequenceNumber, bytes: usize, slot: Slot) -> Placed {
        let distance = sequence - self.next;
        if distance < 0 || !self.done.is_empty() && self.is_done(sequence) {
            return Placed::Duplicate;
        }
        if distance >= self.bounds.0 || self.held_bytes + bytes > self.bounds.1 && distance > 0 {
            return Placed::TooFar;
        }
        let index = distance as usize;
        self.extend_to(index + 1);
        if !self.slots[index].is_missing() {
            return Placed::Duplicate;
        }
        self.held_bytes += bytes;
        self.missing -= 1;
        self.slots[index] = slot;
        Placed::Stored
    }

    fn extend_to(&mut self, len: usize) {
        while self.slots.len() < len {
            self.slots.push_back(Slot::Missing);
            self.missing += 1;
        }
    }

    /// The first samples to be identified, so far as nothing in front of them is missing; looks at `max` numbers.
    pub(super) fn awaiting_keys(&self, max: usize) -> impl Iterator<Item = &CachedSample> {
        let in_order = self.slots.iter().take(max).take_while(|slot| !slot.is_missing());
        in_order.filter_map(|slot| if let Slot::AwaitsKey(sample, _) = slot { Some(sample) } else { None })
    }

    /// Gives a sample its instance: what was computed, else the hint. False when there is neither: the number is used up.
    pub(super) fn identify(&mut self, sequence: SequenceNumber, computed: Option<KeyHash>) -> bool {
        let index = usize::try_from(sequence - self.next).ok();
        let Some(slot) = index.and_then(|index| self.slots.get_mut(index)) else { return true };
        let (mut sample, hint) = match std::mem::replace(slot, Slot::Unwanted) {
            Slot::AwaitsKey(sample, hint) => (sample, hint),
            other => {
                *slot = other;
                return true;
            }
        };
        let Some(instance) = computed.or(hint) else {
            self.held_bytes -= sample.payload.len();
            return false;
        };
        sample.instance = instance;
        *slot = Slot::Held(sample);
        true
    }

    /// Declares `start..end` irrelevant; samples that did arrive stay. Numbers beyond the window are left to a later GAP.
    pub(super) fn mark_irrelevant(&mut self, start: SequenceNumber, end: SequenceNumber) {
        if end <= self.next || end <= start {
            return;
        }
        if start <= self.next && self.slots.is_empty() {
            self.skip_to(end);
            return;
        }
        let from = (start - self.next).max(0);
        let to = (end - self.next).min(self.bounds.0);
        if start <= self.next && end - self.next > self.slots.len() as i64 {
            // The range reaches beyond everything kept: keep what is held, let the end be `next` once it is delivered.
            self.mark_slots(0, self.slots.len());
            self.skip_after_slots(end);
            return;
        }
        if from < to {
            self.extend_to(to as usize);
            self.mark_slots(from as usize, to as usize);
        }
    }

    fn mark_slots(&mut self, from: usize, to: usize) {
        for slot in self.slots.range_mut(from..to) {
            if slot.is_missing() {
                *slot = Slot::Irrelevant;
                self.missing -= 1;
            }
        }
    }

    fn skip_after_slots(&mut self, end: SequenceNumber) {
        let to = (end - self.next).min(self.bounds.0) as usize;
        let from = self.slots.len();
        self.extend_to(to);
        self.mark_slots(from, to);
        self.drop_irrelevant();
        if self.slots.is_empty() {
            self.skip_to(end);
        }
    }

    fn skip_to(&mut self, end: SequenceNumber) {
        self.skips.record(self.next, end);
        self.next = self.next.max(end);
        if !self.done.is_empty() {
            self.pass_done();
        }
    }

    fn drop_irrelevant(&mut self) {
        let mut skipped_from = self.next;
        while let Some(slot @ (Slot::Irrelevant | Slot::Unwanted)) = self.slots.front() {
            let has_come = matches!(slot, Slot::Unwanted);
            if has_come {
                self.skips.record(skipped_from, self.next);
                skipped_from = self.next.next();
            }
            self.slots.pop_front();
            self.next = self.next.next();
        }
        self.skips.record(skipped_from, self.next);
        if self.done.first().is_some_and(|range| range.0 <= self.next) {
            self.pass_done();
            self.drop_irrelevant();
        }
    }

    /// How many of the numbers below `first` never arrived; they are treated as irrelevant from now on.
    pub(super) fn lose_below(&mut self, first: SequenceNumber) -> u64 {
        if first <= self.next {
            return 0;
        }
        let start = self.next.max(self.lost_below);
        let lost = if first > start { self.missing_between(start, first) } else { 0 };
        self.lost_below = self.lost_below.max(first);
        self.mark_irrelevant(self.next, first);
        lost
    }

    /// How many of the numbers from `start`, which is not below `next`, to below `end` have not arrived.
    fn missing_between(&self, start: SequenceNumber, end: SequenceNumber) -> u64 {
        let slots = self.slots.len() as i64;
        let (from, to) = ((start - self.next).min(slots), (end - self.next).min(slots));
        let missing = self.slots.range(from as usize..to as usize).filter(|slot| slot.is_missing()).count() as u64;
        missing + ((end - start) - (to - from)) as u64
    }

    /// The sample that can be delivered next, without removing it.
    pub(super) fn ready(&mut self) -> Option<&CachedSample> {
        self.drop_irrelevant();
        match self.slots.front() {
            Some(Slot::Held(sample)) => Some(sample),
            _ => None,
        }
    }

    /// True when the next sample is here but for its key.
    pub(super) fn awaits_key(&self) -> bool {
        matches!(self.slots.front(), Some(Slot::AwaitsKey(..)))
    }

    /// True when the next sample is here, or will never come.
    pub(super) fn moves_on(&self) -> bool {
        matches!(self.slots.front(), Some(Slot::Held(_) | Slot::Irrelevant | Slot::Unwanted))
    }

    /// True when the next sample is here and waits for room only.
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.slots.front(), Some(Slot::Held(_)))
    }

    /// Removes the sample that [`Window::ready`] showed.
    pub(super) fn take_ready(&mut self) -> Option<CachedSample> {
        match self.slots.pop_front() {
            Some(Slot::Held(sample)) => {
                self.held_bytes -= sample.payload.len();
                self.next = self.next.next();
                if !self.done.is_empty() {
                    self.pass_done();
                }
                Some(sample)
            }
            Some(other) => {
                self.slots.push_front(other);
                None
            }
            None => None,
        }
    }

    /// The missing numbers up to `last`, as ACKNACK asks for them; `is_partial` exempts samples of which fragments arrived.
    pub(super) fn missing(&self, last: SequenceNumber, is_partial: impl Fn(SequenceNumber) -> bool) -> SequenceSet {
        let mut set = SequenceSet::at(self.next);
        let count = (last - self.next).saturating_add(1).clamp(0, 256);
        for offset in 0..count {
            let sequence = self.next + offset;
            let is_missing = matches!(self.slot(sequence), None | Some(Slot::Missing)) && !is_partial(sequence);
            if is_missing && (self.done.is_empty() || !self.is_done(sequence)) {
                set.insert(sequence);
            }
        }
        set
    }

    /// True when something is missing in front of what is kept.
    pub(super) fn has_gaps(&self) -> bool {
        self.missing > 0
    }

    /// True when a number up to `last` is missing.
    pub(super) fn misses_any(&self, last: SequenceNumber) -> bool {
        last > self.highest() || self.missing > 0
    }
}
