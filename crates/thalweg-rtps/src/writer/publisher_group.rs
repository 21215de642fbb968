//! The writers of one publisher whose samples have one order, and coherent sets in common (DDS 1.4 §2.2.3.6, RTPS 2.5 §8.7.6).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::history::WriterHistory;
use crate::types::{EntityId, SequenceNumber};
use crate::wire::parameters::GroupPlace;

/// The numbers that the writers of a publisher share. Cheap to clone; the clones count together.
#[derive(Clone, Debug)]
pub struct PublisherGroup(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    publisher: EntityId,
    numbers: Mutex<Numbers>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    /// The last number that was used.
    last: SequenceNumber,
    /// The set that writers are just being told of, one after the other; zero for none.
    opening: SequenceNumber,
}

impl PublisherGroup {
    /// The group of a publisher that has written nothing yet.
    pub fn new(publisher: EntityId) -> PublisherGroup {
        PublisherGroup(Arc::new(Shared { publisher, numbers: Mutex::default() }))
    }

    /// The publisher.
    pub fn publisher(&self) -> EntityId {
        self.0.publisher
    }

    /// The last number that any of its writers has used; zero before the first.
    pub fn last(&self) -> SequenceNumber {
        self.numbers().last
    }

    /// Begins a set, whose number this is: whatever a writer writes from now on belongs to it. Its writers are to be told by
    /// [`Writer::begin_group_set`](super::Writer::begin_group_set), and then [`PublisherGroup::note_opened`] follows.
    pub fn open_set(&self) -> SequenceNumber {
        let mut numbers = self.numbers();
        numbers.opening = numbers.last.next();
        numbers.opening
    }

    /// All writers know the set that [`PublisherGroup::open_set`] has begun.
    pub fn note_opened(&self) {
        self.numbers().opening = SequenceNumber::ZERO;
    }

    /// The next number, and the set that its writer may not know yet.
    fn take(&self) -> Numbers {
        let mut numbers = self.numbers();
        numbers.last = numbers.last.next();
        *numbers
    }

    /// For a few steps in memory, within a writer's lock.
    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.0.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The places within their publisher of the samples that a writer holds.
#[derive(Debug)]
pub(super) struct GroupPlaces {
    group: PublisherGroup,
    runs: VecDeque<Run>,
    sets: VecDeque<GroupSet>,
    /// The set that is open; zero for none.
    open: SequenceNumber,
    /// Runs or sets from which on those without a held sample are looked for.
    sweep_at: usize,
}

/// Samples whose numbers ascend in step with those of the publisher.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: SequenceNumber,
    end: SequenceNumber,
    number: SequenceNumber,
}

/// The part of a writer in a set of its publisher.
#[derive(Clone, Copy, Debug)]
struct GroupSet {
    id: SequenceNumber,
    first: SequenceNumber,
    end: SequenceNumber,
}

/// Fewest runs or sets that are swept.
const SWEEP_MIN: usize = 1_024;

impl GroupPlaces {
    pub(super) fn new(group: PublisherGroup) -> GroupPlaces {
        let open = SequenceNumber::ZERO;
        GroupPlaces { group, runs: VecDeque::new(), sets: VecDeque::new(), open, sweep_at: SWEEP_MIN }
    }

    /// What is written from now on belongs to the set `id`; zero for none.
    pub(super) fn open_set(&mut self, id: SequenceNumber) {
        self.open = id;
    }

    /// Whether the set `id` was begun for this writer.
    pub(super) fn is_in(&self, id: SequenceNumber) -> bool {
        self.open == id
    }

    /// A sample was written; true when it begins the writer's part in a set that is just being opened.
    pub(super) fn note_written(&mut self, sequence: SequenceNumber, history: &WriterHistory) -> bool {
        let Numbers { last, opening } = self.group.take();
        let joins = opening > SequenceNumber::ZERO && self.open != opening;
        if joins {
            self.open = opening;
        }
        self.note_number(sequence, last, history);
        joins
    }

    /// The end of a set was written.
    pub(super) fn note_end(&mut self, sequence: SequenceNumber, history: &WriterHistory) {
        let number = self.group.take().last;
        self.note_number(sequence, number, history);
    }

    fn note_number(&mut self, sequence: SequenceNumber, number: SequenceNumber, history: &WriterHistory) {
        match self.runs.back_mut() {
            Some(run) if run.end == sequence && run.number + (run.end - run.first) == number => {
                run.end = sequence.next()
            }
            _ => self.runs.push_back(Run { first: sequence, end: sequence.next(), number }),
        }
        if self.open > SequenceNumber::ZERO {
            match self.sets.back_mut() {
                Some(set) if set.id == self.open => set.end = sequence.next(),
                _ => self.sets.push_back(GroupSet { id: self.open, first: sequence, end: sequence.next() }),
            }
        }
        self.forget(history);
    }

    /// Forgets what is said of samples that the history does not hold any more.
    fn forget(&mut self, history: &WriterHistory) {
        let first = history.first();
        while self.runs.front().is_some_and(|run| run.end <= first) {
            self.runs.pop_front();
        }
        while self.sets.front().is_some_and(|set| set.end <= first) {
            self.sets.pop_front();
        }
        if self.runs.len().max(self.sets.len()) >= self.sweep_at {
            let is_held = |from, end| history.next_from(from).is_some_and(|held| held.sequence < end);
            let newest = self.runs.back().map(|run| run.first);
            self.runs.retain(|run| Some(run.first) == newest || is_held(run.first, run.end));
            let newest = self.sets.back().map(|set| set.first);
            self.sets.retain(|set| Some(set.first) == newest || is_held(set.first, set.end));
            self.sweep_at = SWEEP_MIN.max(2 * self.runs.len().max(self.sets.len()));
        }
    }

    /// The place of a sample.
    pub(super) fn of(&self, sequence: SequenceNumber) -> Option<GroupPlace> {
        let run = &self.runs[self.runs.partition_point(|run| run.first <= sequence).checked_sub(1)?];
        let number = (sequence < run.end).then(|| run.number + (sequence - run.first))?;
        let after = self.sets.partition_point(|set| set.first <= sequence);
        let set = after.checked_sub(1).map(|place| &self.sets[place]).filter(|set| sequence < set.end);
        Some(GroupPlace { number, set: set.map_or(SequenceNumber::ZERO, |set| set.id) })
    }

    /// The highest number of the publisher below which the writer has nothing to send from `unsent` on.
    pub(super) fn settled_before(&self, unsent: SequenceNumber) -> SequenceNumber {
        match self.runs.get(self.runs.partition_point(|run| run.end <= unsent)) {
            Some(run) => (run.number + (unsent - run.first).max(0)).previous(),
            None => self.group.last(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Change, ChangeKind};
    use crate::payload::Payload;
    use crate::qos::{History, ResourceLimits};
    use crate::types::KeyHash;

    fn write(history: &mut WriterHistory, places: &mut GroupPlaces, instance: u8) -> SequenceNumber {
        let change = Change {
            sequence: SequenceNumber::UNKNOWN,
            kind: ChangeKind::Write,
            instance: KeyHash([instance; 16]),
            timestamp: None,
            payload: Payload::from(vec![0; 8]),
            fragment_bytes: None,
        };
        let sequence = history.push(change).sequence;
        places.note_written(sequence, history);
        sequence
    }

    #[test]
    fn samples_of_two_writers_share_their_numbers_and_keep_them() {
        let group = PublisherGroup::new(EntityId::UNKNOWN);
        let history = || WriterHistory::new(History::KeepAll, ResourceLimits::default(), true, 1 << 20);
        let mut ends = [0; 2].map(|_: i32| (history(), GroupPlaces::new(group.clone())));
        let mut written = Vec::new();
        for (number, at) in [0, 0, 1, 0, 1, 1, 1, 0].into_iter().enumerate() {
            let (history, places) = &mut ends[at];
            written.push((at, write(history, places, 0), SequenceNumber(number as i64 + 1)));
        }
        for (at, sequence, number) in &written {
            assert_eq!(ends[*at].1.of(*sequence).map(|place| place.number), Some(*number));
            assert_eq!(ends[*at].1.settled_before(*sequence), number.previous());
        }
        assert_eq!(ends[0].1.settled_before(SequenceNumber(100)), SequenceNumber(8));
        assert_eq!(ends[0].1.of(SequenceNumber(5)), None);
    }

    #[test]
    fn what_is_remembered_is_bounded_by_what_is_held() {
        let group = PublisherGroup::new(EntityId::UNKNOWN);
        let mut history = WriterHistory::new(History::KeepLast(1), ResourceLimits::default(), true, 1 << 20);
        let mut places = GroupPlaces::new(group.clone());
        let first = write(&mut history, &mut places, 1);
        for _ in 0..100_000 {
            group.take();
            places.open_set(group.last());
            write(&mut history, &mut places, 2);
        }
        let remembered = (places.runs.len(), places.sets.len());
        assert!(remembered.0 <= SWEEP_MIN && remembered.1 <= SWEEP_MIN, "{remembered:?}");
        assert_eq!(places.of(first), Some(GroupPlace { number: SequenceNumber(1), set: SequenceNumber::ZERO }));
        assert_eq!(places.of(history.last()).map(|place| place.number), Some(SequenceNumber(200_001)));
    }

    #[test]
    fn sets_of_a_writer_without_others_beside_it_are_bounded_by_what_is_held() {
        let group = PublisherGroup::new(EntityId::UNKNOWN);
        let mut history = WriterHistory::new(History::KeepLast(1), ResourceLimits::default(), true, 1 << 20);
        let mut places = GroupPlaces::new(group.clone());
        let first = write(&mut history, &mut places, 1);
        for _ in 0..10_000 {
            places.open_set(group.last().next());
            write(&mut history, &mut places, 2);
        }
        assert!(places.sets.len() <= SWEEP_MIN, "{} sets", places.sets.len());
        assert_eq!(places.of(first), Some(GroupPlace { number: SequenceNumber(1), set: SequenceNumber::ZERO }));
        let number = SequenceNumber(10_001);
        assert_eq!(places.of(history.last()), Some(GroupPlace { number, set: number }));
    }

    #[test]
    fn a_sample_that_is_written_while_a_set_is_opened_belongs_to_it() {
        let history = WriterHistory::new(History::KeepAll, ResourceLimits::default(), false, 1 << 20);
        let group = PublisherGroup::new(EntityId::UNKNOWN);
        let mut places = GroupPlaces::new(group.clone());
        assert!(!places.note_written(SequenceNumber(1), &history));
        let id = group.open_set();
        assert!(places.note_written(SequenceNumber(2), &history), "nobody had told this writer yet");
        assert!(places.is_in(id) && !places.note_written(SequenceNumber(3), &history));
        group.note_opened();
        places.open_set(SequenceNumber::ZERO);
        assert!(!places.note_written(SequenceNumber(4), &history));
        assert_eq!((id, group.last()), (SequenceNumber(2), SequenceNumber(4)));
    }
}
