//! The samples of one publisher on their way to the readers of one subscriber: in the order in which they were written, and in sets that
//! appear as wholes (DDS 1.4 §2.2.3.6, RTPS 2.5 §8.7.6).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use crate::history::{CachedSample, RejectReason};
use crate::qos::Presentation;
use crate::reader::{GroupArrival, GroupMark};
use crate::types::{EntityId, Guid, KeyHash, SequenceNumber};

/// A writer of the publisher, and a reader of the subscriber that it is matched with.
pub(super) type Pair = (Guid, EntityId);

/// A sample that waits: its number within the publisher first.
type Place = (SequenceNumber, EntityId, Guid);

/// What becomes of samples.
#[derive(Debug)]
pub(super) enum Released {
    /// The reader hands it over now.
    Sample(EntityId, CachedSample),
    /// The reader has lost so many with a set that is not whole.
    Lost(EntityId, u64),
    /// The reader has no room for a sample of this instance, together with the others of its set.
    Rejected(EntityId, RejectReason, KeyHash),
}

/// What the caches say of samples that appear together.
#[derive(Debug)]
pub(super) enum Room {
    /// They are handed over; where one alone finds no room, its reader rejects it.
    Here,
    /// They wait for what applications take.
    Awaited,
    /// They never have room in these readers.
    Nowhere(BTreeMap<EntityId, RejectReason>),
}

/// Whose turn it is.
#[derive(Debug)]
pub(super) enum Next {
    /// One sample outside of sets, or all of a set.
    Turn(Vec<Released>),
    /// Samples for which there is no room yet.
    AwaitsRoom,
    /// Nobody's, before more has come.
    Nobody,
}

/// How far a pair has got, by the last that came of it: what was forged once does not count for long.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// All samples of the writer with numbers of the publisher up to this one have come.
    up_to: SequenceNumber,
    /// The writer contributes nothing more to sets up to this one.
    finished: SequenceNumber,
    /// What the reader's filter refuses leaves gaps in sets.
    is_filtered: bool,
}

#[derive(Debug)]
struct Waiting {
    sample: CachedSample,
    /// Zero for none.
    set: SequenceNumber,
}

#[derive(Debug, Default)]
struct OpenSet {
    parts: BTreeMap<Pair, Part>,
    /// Samples of it that wait.
    samples: BTreeSet<Place>,
    /// The highest number of a sample or an end of it.
    last: SequenceNumber,
    is_broken: bool,
    /// Some part of it was written before its reader came, which is owed nothing of it.
    is_late: bool,
    /// Everything of it was there when another pair came: it does not wait for that one, but for what it has begun to get.
    is_whole: bool,
}

/// The samples of one pair in a set.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// The writer's number behind the last one.
    next: SequenceNumber,
    has_ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wholeness {
    Open,
    Whole,
    Broken,
    Late,
}

/// See the module.
#[derive(Debug)]
pub(super) struct PublisherOrder {
    presentation: Presentation,
    pairs: BTreeMap<Pair, Progress>,
    waiting: BTreeMap<Place, Waiting>,
    sets: BTreeMap<SequenceNumber, OpenSet>,
    /// The last number that was handed over or dropped: the next one is in order.
    accounted: SequenceNumber,
    /// The writer of that number, which may owe it to other readers still.
    accounted_of: Option<Guid>,
    bytes: usize,
    bytes_max: usize,
    /// Sets from which on those that are over are looked for behind one that is not.
    sweep_at: usize,
    /// Whether its writers have to wait, since what came of them waits for room.
    pub(super) is_held: bool,
    /// A pair has come since its writers were last told whether they have to wait.
    pub(super) has_new_pair: bool,
    /// The readers that had no room for what is next, with how much of it is theirs; empty where that has to be asked anew.
    pub(super) awaited: BTreeMap<EntityId, usize>,
}

/// Sets of which nothing but ends is known, for want of the end of another part; twice as many for a while. More come only of a writer
/// that lies.
const SETS_MAX: usize = 4_096;

impl PublisherOrder {
    /// `bytes_max` bounds the samples that wait: beyond it a set is dropped, and order is given up.
    pub(super) fn new(presentation: Presentation, bytes_max: usize) -> PublisherOrder {
        PublisherOrder {
            presentation,
            pairs: BTreeMap::new(),
            waiting: BTreeMap::new(),
            sets: BTreeMap::new(),
            accounted: SequenceNumber::ZERO,
            accounted_of: None,
            bytes: 0,
            bytes_max,
            sweep_at: 2 * SETS_MAX,
            is_held: false,
            has_new_pair: false,
            awaited: BTreeMap::new(),
        }
    }

    pub(super) fn add_pair(&mut self, pair: Pair, is_filtered: bool) {
        if self.pairs.contains_key(&pair) {
            return;
        }
        let whole: Vec<SequenceNumber> =
            self.sets.keys().copied().filter(|set| self.wholeness(*set) == Wholeness::Whole).collect();
        for set in whole {
            self.sets.entry(set).and_modify(|open| open.is_whole = true);
        }
        self.pairs.insert(pair, Progress { is_filtered, ..Progress::default() });
        self.has_new_pair = true;
        self.awaited.clear();
    }

    /// The writer of a pair is gone: nobody waits for it, and the sets that it has not ended will never be whole.
    pub(super) fn remove_pair(&mut self, pair: Pair) {
        let Some(progress) = self.pairs.remove(&pair) else { return };
        let mut torn = Vec::new();
        for (set, open) in &mut self.sets {
            let part = open.parts.remove(&pair);
            if progress.finished < *set && part.is_none_or(|part| !part.has_ended) {
                open.is_broken |= !open.is_whole;
                torn.extend(open.is_whole.then_some(*set));
            }
        }
        torn.into_iter().for_each(|set| self.drop_part(pair, set));
    }

    /// What a pair that came later has got of a set that is whole without it is dropped.
    fn drop_part(&mut self, pair: Pair, set: SequenceNumber) {
        let Some(open) = self.sets.get_mut(&set) else { return };
        open.parts.remove(&pair);
        let of_pair = |place: &Place| (place.2, place.1) == pair;
        let places: Vec<Place> = open.samples.iter().copied().filter(of_pair).collect();
        places.into_iter().for_each(|place| _ = self.take_waiting(place));
    }

    /// A reader is gone, and what waited for it.
    pub(super) fn remove_reader(&mut self, reader: EntityId) {
        self.pairs.retain(|pair, _| pair.1 != reader);
        self.awaited.clear();
        self.sets.values_mut().for_each(|open| open.parts.retain(|pair, _| pair.1 != reader));
        let places: Vec<Place> = self.waiting.keys().copied().filter(|place| place.1 == reader).collect();
        places.into_iter().for_each(|place| _ = self.take_waiting(place));
    }

    /// Bytes of what waits.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn has_pair(&self, pair: Pair) -> bool {
        self.pairs.contains_key(&pair)
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = Pair> {
        self.pairs.keys().copied()
    }

    pub(super) fn has_pairs(&self) -> bool {
        !self.pairs.is_empty()
    }

    pub(super) fn holds_any(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether more waits than memory is meant for.
    pub(super) fn is_full(&self) -> bool {
        self.bytes > self.bytes_max
    }

    /// Everything of the pair's writer with numbers up to `number` has come.
    pub(super) fn note_up_to(&mut self, pair: Pair, number: SequenceNumber) {
        if let Some(progress) = self.pairs.get_mut(&pair) {
            progress.up_to = number;
        }
    }

    /// Takes the next sample of its writer for `reader`. One of a pair that is not matched is dropped.
    pub(super) fn handle(&mut self, reader: EntityId, arrival: GroupArrival) {
        let GroupArrival { sample, mark } = arrival;
        let pair = (sample.writer, reader);
        let Some(progress) = self.pairs.get_mut(&pair) else { return };
        let number = mark.place.number;
        progress.up_to = number;
        let ends = sample.coherent_set == SequenceNumber::UNKNOWN;
        let set = match mark.place.set {
            _ if !self.presentation.coherent => SequenceNumber::ZERO,
            SequenceNumber::UNKNOWN => progress.finished.next(),
            set => set,
        };
        progress.finished = match ends {
            _ if set == SequenceNumber::ZERO => number,
            true => set,
            false => set.previous(),
        };
        let is_filtered = progress.is_filtered;
        let is_taken = set == SequenceNumber::ZERO || self.note_part(pair, &sample, &mark, set, is_filtered);
        if !ends && is_taken {
            let place = (number, reader, sample.writer);
            // A number that was used before is a lie: one of the two.
            self.take_waiting(place);
            self.bytes += charge(&sample);
            if let Some(open) = self.sets.get_mut(&set) {
                open.samples.insert(place);
            }
            self.waiting.insert(place, Waiting { sample, set });
        }
    }

    /// Takes a sample or an end of a set into account. False for one that a set which is whole without its pair does not take.
    fn note_part(
        &mut self,
        pair: Pair,
        sample: &CachedSample,
        mark: &GroupMark,
        set: SequenceNumber,
        is_filtered: bool,
    ) -> bool {
        let open = self.sets.entry(set).or_default();
        let ends = sample.coherent_set == SequenceNumber::UNKNOWN;
        let first = if ends { sample.sequence } else { sample.coherent_set };
        let known = open.parts.get(&pair).copied();
        let is_new = known.is_none();
        let Part { next, has_ended } = known.unwrap_or(Part { next: first, has_ended: false });
        if open.is_whole && has_ended {
            return false;
        }
        // An end without samples is one of a part of which all samples are gone, unless it says that there were none.
        let is_gone = is_new && ends && !mark.is_empty_part && !is_filtered;
        let has_gap = next != sample.sequence && !(is_filtered && sample.sequence > next);
        if open.is_whole && (is_gone || has_gap) {
            self.drop_part(pair, set);
            return false;
        }
        open.last = open.last.max(mark.place.number);
        open.is_late |= is_new && has_gap;
        open.is_broken |= is_gone || has_gap;
        open.parts.insert(pair, Part { next: sample.sequence.next(), has_ended: has_ended || ends });
        true
    }

    fn wholeness(&self, set: SequenceNumber) -> Wholeness {
        let Some(open) = self.sets.get(&set) else { return Wholeness::Broken };
        match open {
            OpenSet { is_late: true, .. } => return Wholeness::Late,
            OpenSet { is_broken: true, .. } => return Wholeness::Broken,
            _ => {}
        }
        let mut wholeness = Wholeness::Whole;
        for (pair, progress) in &self.pairs {
            let is_finished = progress.finished >= set;
            match open.parts.get(pair) {
                Some(part) if part.has_ended || is_finished => {}
                None if open.is_whole || (is_finished && self.has_passed(open)) => {}
                // The pair was matched after its part.
                None if is_finished => return Wholeness::Late,
                _ => wholeness = Wholeness::Open,
            }
        }
        wholeness
    }

    /// Whether other parts of a set were handed over before a pair came that is owed its own.
    fn has_passed(&self, open: &OpenSet) -> bool {
        open.samples.first().is_some_and(|first| first.0 <= self.accounted)
    }

    /// The number up to which nothing more can come of any pair.
    fn floor(&self) -> SequenceNumber {
        self.pairs.values().map(|progress| progress.up_to).min().unwrap_or(SequenceNumber(i64::MAX))
    }

    /// Whether a sample outside of sets is next in order.
    fn is_next(&self, number: SequenceNumber) -> bool {
        let follows = number == self.accounted.next() && self.is_with_all_readers();
        !self.presentation.ordered || number <= self.accounted || follows || number <= self.floor()
    }

    /// Whether the last number that was handed over has come for every reader of its writer: several may read one topic.
    fn is_with_all_readers(&self) -> bool {
        let Some(writer) = self.accounted_of else { return true };
        let readers = self.pairs.range((writer, EntityId([0; 4]))..=(writer, EntityId([0xff; 4])));
        readers.into_iter().all(|(_, progress)| progress.up_to >= self.accounted)
    }

    /// Gives up sets and order until no more than `bytes` wait.
    pub(super) fn release_to(&mut self, bytes: usize, into: &mut Vec<Released>) {
        let usual = std::mem::replace(&mut self.bytes_max, bytes);
        while self.is_full()
            && let Next::Turn(turn) = self.next(|_| Room::Here)
        {
            into.extend(turn);
        }
        self.bytes_max = usual;
    }

    /// Hands over what is complete and next in order, if `room` has room for it. Memory comes before order, and before room.
    pub(super) fn next(&mut self, mut room: impl FnMut(&[(EntityId, &CachedSample)]) -> Room) -> Next {
        let next = loop {
            let Some((&place, first)) = self.waiting.first_key_value() else { break Next::Nobody };
            let (number, set, is_full) = (place.0, first.set, self.is_full());
            if set == SequenceNumber::ZERO {
                if !self.is_next(number) && !is_full {
                    break Next::Nobody;
                }
                if !is_full && matches!(room(&[(place.1, &first.sample)]), Room::Awaited) {
                    break Next::AwaitsRoom;
                }
                (self.accounted, self.accounted_of) = (number, Some(place.2));
                let waiting = self.take_waiting(place).into_iter();
                break Next::Turn(waiting.map(|waiting| Released::Sample(place.1, waiting.sample)).collect());
            }
            match self.wholeness(set) {
                Wholeness::Open if !is_full => break Next::Nobody,
                Wholeness::Whole => {
                    let refusals = match room(&self.samples_of(set, place)) {
                        Room::Awaited if !is_full => break Next::AwaitsRoom,
                        Room::Here | Room::Awaited => BTreeMap::new(),
                        Room::Nowhere(refusals) => refusals,
                    };
                    let last = self.sets.get(&set).map_or(number, |open| open.last);
                    let mut turn = Vec::new();
                    self.decide(set, place, |reader, sample| match refusals.get(&reader) {
                        _ if refusals.is_empty() => turn.push(Released::Sample(reader, sample)),
                        Some(reason) => turn.push(Released::Rejected(reader, *reason, sample.instance)),
                        None => turn.push(Released::Lost(reader, 1)),
                    });
                    (self.accounted, self.accounted_of) = (last, None);
                    break Next::Turn(turn);
                }
                // In its turn, as a sample that is handed over: others outside of the set may still come before it.
                _ if !self.is_next(number) && !is_full => break Next::Nobody,
                Wholeness::Late => self.drop_next(set, place),
                Wholeness::Open | Wholeness::Broken => {
                    self.drop_next(set, place);
                    break Next::Turn(vec![Released::Lost(place.1, 1)]);
                }
            }
        };
        self.forget_sets();
        next
    }

    /// The samples of a set, in their order, which begins with `first`.
    fn samples_of(&self, set: SequenceNumber, first: Place) -> Vec<(EntityId, &CachedSample)> {
        let others = self.sets.get(&set).into_iter().flat_map(|open| open.samples.range((Excluded(first), Unbounded)));
        let places = std::iter::once(&first).chain(others);
        places.filter_map(|place| Some((place.1, &self.waiting.get(place)?.sample))).collect()
    }

    /// Gives out the samples of a set, in their order, beginning with `first`. What still comes of it is dropped.
    fn decide(&mut self, set: SequenceNumber, first: Place, mut give: impl FnMut(EntityId, CachedSample)) {
        let mut places = self.sets.get_mut(&set).map(|open| std::mem::take(&mut open.samples)).unwrap_or_default();
        places.insert(first);
        for place in places {
            if let Some(waiting) = self.take_waiting(place) {
                give(place.1, waiting.sample);
            }
            (self.accounted, self.accounted_of) = (place.0, None);
        }
        if let Some(open) = self.sets.get_mut(&set) {
            open.is_broken = true;
        }
    }

    /// Drops the first sample that waits: its set will never be whole, and what still comes of that set is dropped as well.
    fn drop_next(&mut self, set: SequenceNumber, first: Place) {
        self.take_waiting(first);
        (self.accounted, self.accounted_of) = (self.accounted.max(first.0), None);
        if let Some(open) = self.sets.get_mut(&set) {
            open.is_broken = true;
        }
    }

    /// Forgets sets without samples to which nobody contributes any more.
    fn forget_sets(&mut self) {
        let finished = self.pairs.values().map(|progress| progress.finished).min();
        let is_over = |set: SequenceNumber| finished.is_none_or(|finished| finished >= set);
        while let Some(first) =
            self.sets.first_entry().filter(|set| set.get().samples.is_empty() && is_over(*set.key()))
        {
            first.remove();
        }
        if self.sets.len() >= self.sweep_at {
            let mut too_many = self.sets.len().saturating_sub(SETS_MAX);
            self.sets.retain(|set, open| {
                let goes = open.samples.is_empty() && (too_many > 0 || is_over(*set));
                too_many = too_many.saturating_sub(usize::from(goes));
                !goes
            });
            self.sweep_at = 2 * self.sets.len().max(SETS_MAX);
        }
    }

    fn take_waiting(&mut self, place: Place) -> Option<Waiting> {
        let waiting = self.waiting.remove(&place)?;
        self.bytes -= charge(&waiting.sample);
        if let Some(open) = self.sets.get_mut(&waiting.set) {
            open.samples.remove(&place);
        }
        Some(waiting)
    }

    /// The pairs of which it is not known whether they have a sample in front of the first one that waits.
    pub(super) fn holding_up(&self) -> Vec<Pair> {
        let Some((&(number, ..), first)) = self.waiting.first_key_value() else { return Vec::new() };
        let waits_for_ends = || matches!(self.wholeness(first.set), Wholeness::Open | Wholeness::Whole);
        if self.is_next(number) || first.set > SequenceNumber::ZERO && waits_for_ends() {
            return Vec::new();
        }
        self.pairs.iter().filter(|(_, progress)| progress.up_to < number).map(|(pair, _)| *pair).collect()
    }
}

fn charge(sample: &CachedSample) -> usize {
    size_of::<Waiting>() + 2 * size_of::<Place>() + sample.payload.len()
}

#[cfg(test)]
mod tests;
