//! Samples that arrived ahead of a missing one: which numbers have come, and what has come under them.

use std::collections::VecDeque;

use super::number_ring::NumberRing;
use super::skips::{Range, Skips};
use crate::history::CachedSample;
use crate::types::{KeyHash, SequenceNumber};
use crate::wire::SequenceSet;

/// Numbers a reliable reader keeps track of beyond the first missing one. A writer that jumps further is asked to repeat
/// what lies behind; bounds what a lying peer can make us hold.
pub(super) const NUMBERS_MAX: i64 = 65_536;

/// Payload bytes held ahead of a missing sample, for each remote writer.
pub(super) const HELD_BYTES_MAX: usize = 64 << 20;

/// Samples that one is put between at once, of those that are held: repairs come at the front, and what the network has overtaken at
/// the end. Others are asked for again.
const MOVED_MAX: usize = 2_048;

/// Places whose memory a window keeps that holds nothing.
const PLACES_KEPT: usize = 8_192;

/// Best-effort samples that are skipped are remembered if there are so many of them.
const REMEMBERED_MIN: i64 = 16;
/// The same of each built-in writer.
const BUILTIN_NUMBERS_MAX: i64 = 8_192;
const BUILTIN_HELD_BYTES_MAX: usize = 1 << 20;

/// What came under a number.
#[derive(Debug)]
pub(super) enum Arrived {
    /// It is not handed over.
    Unwanted,
    Held(CachedSample),
    /// Its instance is not known yet; the hint of the wire does if its key cannot be computed.
    AwaitsKey(CachedSample, Option<KeyHash>),
}

impl Arrived {
    /// Payload bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Arrived::Unwanted => 0,
            Arrived::Held(sample) | Arrived::AwaitsKey(sample, _) => sample.payload.len(),
        }
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
    /// Numbers from `next` on that have come or will never come.
    pub(super) settled: NumberRing,
    /// What has come of them, in order.
    pub(super) arrived: VecDeque<(SequenceNumber, Arrived)>,
    pub(super) held_bytes: usize,
    /// Numbers missing below this were counted as lost; nothing else remembers those beyond the settled ones.
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
            settled: NumberRing::default(),
            arrived: VecDeque::new(),
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
        self.settled.last().unwrap_or(self.next.previous())
    }

    /// Numbers kept, and the bytes that the samples among them are charged.
    pub(super) fn load(&self) -> (usize, usize) {
        (self.len() as usize, self.held_bytes)
    }

    /// How many numbers lie from `next` up to the highest one that is kept.
    fn len(&self) -> i64 {
        self.settled.last().map_or(0, |last| last - self.next + 1)
    }

    /// True when nothing waits for a missing sample.
    pub(super) fn is_empty(&self) -> bool {
        self.settled.is_empty()
    }

    /// `next` was delivered without detour; only for an empty window.
    pub(super) fn advance(&mut self) {
        debug_assert!(self.is_empty());
        self.next = self.next.next();
        if !self.done.is_empty() {
            self.pass_done();
        }
    }

    /// As [`Window::mark_irrelevant`] up to below `end`, of which the last number has come and those from `start` on are not skipped.
    pub(super) fn pass(&mut self, start: SequenceNumber, end: SequenceNumber) {
        if !self.is_empty() {
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

    /// The numbers that it may hold from `start` on, which may lie before it.
    pub(super) fn numbers_from(&self, start: SequenceNumber) -> impl Iterator<Item = SequenceNumber> + use<> {
        let start = start.max(self.next);
        (0..self.bounds.0).map(move |offset| start + offset)
    }

    pub(super) fn is_new(&self, sequence: SequenceNumber) -> bool {
        sequence >= self.next && !self.settled.contains(sequence) && (self.done.is_empty() || !self.is_done(sequence))
    }

    /// True when `sequence` is not beyond what is kept track of.
    pub(super) fn reaches(&self, sequence: SequenceNumber) -> bool {
        sequence - self.next < self.bounds.0
    }

    /// True when nothing from `first` to `last` is missing.
    pub(super) fn has_all(&self, first: SequenceNumber, last: SequenceNumber) -> bool {
        self.settled.first_missing(first.max(self.next)) > last
    }

    pub(super) fn place(&mut self, sample: CachedSample) -> Placed {
        self.occupy(sample.sequence, Arrived::Held(sample))
    }

    /// `sequence` has come and is not handed over.
    pub(super) fn pass_over(&mut self, sequence: SequenceNumber) -> Placed {
        if self.is_empty() && sequence == self.next {
            self.advance();
            return Placed::Stored;
        }
        self.occupy(sequence, Arrived::Unwanted)
    }

    /// As [`Window::place`] for a sample that [`Window::identify`] is to complete; nothing behind it is delivered before.
    pub(super) fn place_awaiting_key(&mut self, sample: CachedSample, hint: Option<KeyHash>) -> Placed {
        self.occupy(sample.sequence, Arrived::AwaitsKey(sample, hint))
    }

    fn occupy(&mut self, sequence: SequenceNumber, arrived: Arrived) -> Placed {
        let (distance, bytes) = (sequence - self.next, arrived.bytes());
        if distance < 0 || !self.done.is_empty() && self.is_done(sequence) {
            return Placed::Duplicate;
        }
        if distance >= self.bounds.0 || self.held_bytes + bytes > self.bounds.1 && distance > 0 {
            return Placed::TooFar;
        }
        if self.settled.contains(sequence) {
            return Placed::Duplicate;
        }
        match self.arrived.back() {
            Some((last, _)) if *last > sequence => {
                let place = self.arrived.partition_point(|(number, _)| *number < sequence);
                if place.min(self.arrived.len() - place) > MOVED_MAX {
                    return Placed::TooFar;
                }
                self.arrived.insert(place, (sequence, arrived));
            }
            _ => self.arrived.push_back((sequence, arrived)),
        }
        self.settled.insert(sequence, sequence);
        self.held_bytes += bytes;
        Placed::Stored
    }

    /// Gives back the memory of many samples that were held.
    pub(super) fn tidy(&mut self) {
        if self.arrived.is_empty() && self.arrived.capacity() > PLACES_KEPT {
            self.arrived.shrink_to(PLACES_KEPT);
        }
    }

    /// The first samples to be identified, so far as nothing in front of them is missing; looks at `max` numbers.
    pub(super) fn awaiting_keys(&self, max: usize) -> impl Iterator<Item = &CachedSample> {
        let end = self.settled.first_missing(self.next).min(self.next + max as i64);
        let in_order = self.arrived.iter().take_while(move |(number, _)| *number < end);
        in_order.filter_map(|(_, arrived)| match arrived {
            Arrived::AwaitsKey(sample, _) => Some(sample),
            _ => None,
        })
    }

    /// Gives a sample its instance: what was computed, else the hint. False when there is neither: the number is used up.
    pub(super) fn identify(&mut self, sequence: SequenceNumber, computed: Option<KeyHash>) -> bool {
        let Ok(place) = self.arrived.binary_search_by_key(&sequence, |(number, _)| *number) else { return true };
        let arrived = &mut self.arrived[place].1;
        if !matches!(arrived, Arrived::AwaitsKey(..)) {
            return true;
        }
        let Arrived::AwaitsKey(mut sample, hint) = std::mem::replace(arrived, Arrived::Unwanted) else { return true };
        let Some(instance) = computed.or(hint) else {
            self.held_bytes -= sample.payload.len();
            return false;
        };
        sample.instance = instance;
        *arrived = Arrived::Held(sample);
        true
    }

    /// Declares `start..end` irrelevant; samples that did arrive stay. Numbers beyond the window are left to a later GAP.
    pub(super) fn mark_irrelevant(&mut self, start: SequenceNumber, end: SequenceNumber) {
        if end <= self.next || end <= start {
            return;
        }
        if start <= self.next && self.is_empty() {
            self.skip_to(end);
            return;
        }
        let last = end.min(self.next + self.bounds.0).previous();
        if start > self.next || end <= self.highest().next() {
            self.settled.insert(start.max(self.next), last);
            return;
        }
        // The range reaches beyond everything kept: keep what is held, let the end be `next` once it is delivered.
        self.settled.insert(self.next, last);
        self.drop_irrelevant();
        if self.is_empty() {
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
        let missing = self.settled.first_missing(self.next);
        if missing == self.next {
            return;
        }
        loop {
            let first = self.arrived.front().filter(|(number, _)| *number < missing);
            let Some((number, arrived)) = first.map(|(number, arrived)| (*number, arrived)) else {
                self.skips.record(self.next, missing);
                self.next = missing;
                break;
            };
            self.skips.record(self.next, number);
            self.next = number;
            if !matches!(arrived, Arrived::Unwanted) {
                break;
            }
            self.arrived.pop_front();
            self.next = number.next();
        }
        self.settled.remove_below(self.next);
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
        (end - start) as u64 - self.settled.count_between(start, end) as u64
    }

    /// What stands at `next`.
    fn front(&self) -> Option<&Arrived> {
        self.arrived.front().filter(|(number, _)| *number == self.next).map(|(_, arrived)| arrived)
    }

    /// The sample that can be delivered next, without removing it.
    pub(super) fn ready(&mut self) -> Option<&CachedSample> {
        self.drop_irrelevant();
        match self.front() {
            Some(Arrived::Held(sample)) => Some(sample),
            _ => None,
        }
    }

    /// True when the next sample is here but for its key.
    pub(super) fn awaits_key(&self) -> bool {
        matches!(self.front(), Some(Arrived::AwaitsKey(..)))
    }

    /// True when the next sample is here, or will never come.
    pub(super) fn moves_on(&self) -> bool {
        self.settled.contains(self.next) && !self.awaits_key()
    }

    /// True when the next sample is here and waits for room only.
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.front(), Some(Arrived::Held(_)))
    }

    /// Removes the sample that [`Window::ready`] showed.
    pub(super) fn take_ready(&mut self) -> Option<CachedSample> {
        let Some(Arrived::Held(_)) = self.front() else { return None };
        let Some((_, Arrived::Held(sample))) = self.arrived.pop_front() else { return None };
        self.tidy();
        self.held_bytes -= sample.payload.len();
        self.next = self.next.next();
        self.settled.remove_below(self.next);
        if !self.done.is_empty() {
            self.pass_done();
        }
        Some(sample)
    }

    /// The missing numbers up to `last`, as ACKNACK asks for them; `is_partial` exempts samples of which fragments arrived.
    pub(super) fn missing(&self, last: SequenceNumber, is_partial: impl Fn(SequenceNumber) -> bool) -> SequenceSet {
        let mut set = SequenceSet::at(self.next);
        let count = (last - self.next).saturating_add(1).clamp(0, 256);
        for offset in 0..count {
            let sequence = self.next + offset;
            let is_missing = !self.settled.contains(sequence) && !is_partial(sequence);
            if is_missing && (self.done.is_empty() || !self.is_done(sequence)) {
                set.insert(sequence);
            }
        }
        set
    }

    /// True when something is missing in front of what is kept.
    pub(super) fn has_gaps(&self) -> bool {
        self.len() > self.settled.count() as i64
    }

    /// True when a number up to `last` is missing.
    pub(super) fn misses_any(&self, last: SequenceNumber) -> bool {
        last > self.highest() || self.has_gaps()
    }
}
