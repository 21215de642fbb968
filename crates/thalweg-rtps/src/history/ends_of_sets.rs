//! The ends of a writer's coherent sets (RTPS 2.5 §8.7.5).

use super::change::{Change, Content, END_OF_SET, Held, PushResult};
use super::writer_history::CHANGE_BYTES;
use super::{ChangeKind, WriterHistory};
use crate::payload::Payload;
use crate::time::Timestamp;
use crate::types::SequenceNumber;

/// How many ends of sets of which nothing else is here stay for late readers, unless max_samples is less: without them these would not get
/// what other writers have contributed to such a set. A reader remembers no more sets of which it knows nothing but ends.
const ENDS_MAX: usize = 4_096;

impl WriterHistory {
    /// Adds the end of a coherent set. It stays as long as the newest change, of which `ends_newest` says whether it belongs to the set;
    /// an end of which nothing else is here, as one of the newest of its own, which count against no limit.
    pub(crate) fn push_end_of_set(&mut self, timestamp: Timestamp, ends_newest: bool) -> PushResult {
        self.seal();
        let (newest, sequence) = (self.last, self.last.next());
        let is_held = ends_newest && self.get(newest).is_some();
        let of_newest = is_held.then(|| self.ring.instance_of(newest)).flatten();
        let lasts = |slot: &usize| self.instances.as_ref().is_some_and(|instances| !instances.get(*slot).is_departed());
        let (instance, overwrote) = match of_newest.filter(lasts) {
            Some(slot) => {
                self.last = sequence;
                self.charge(Some(slot), false, CHANGE_BYTES);
                (slot, None)
            }
            None => {
                self.drop_known_ends();
                self.account(END_OF_SET, ChangeKind::Unregister, 0)
            }
        };
        let change = Change {
            sequence,
            kind: ChangeKind::Write,
            instance: END_OF_SET,
            timestamp: Some(timestamp),
            payload: Payload::empty(),
            fragment_bytes: None,
        };
        let held = Held { change, instance, next_of_instance: SequenceNumber::ZERO, is_live: true };
        self.ring.push(sequence, Content::One(held));
        self.sweep();
        PushResult { sequence, overwrote }
    }

    /// Makes place for one more end of a set of which nothing else is here, among those that every matched reader has.
    fn drop_known_ends(&mut self) {
        let ends_max = self.bounds.samples_max.min(ENDS_MAX);
        while let Some(instances) = &self.instances
            && instances.ends().changes >= ends_max
            && let Some((oldest, _)) = instances.oldest_of(&END_OF_SET)
            && oldest <= self.acknowledged
            && self.get(oldest).is_some_and(|end| end.ends_set())
        {
            self.remove(oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::{History, ResourceLimits};
    use crate::types::KeyHash;

    fn history() -> WriterHistory {
        WriterHistory::new(History::KeepLast(1), ResourceLimits::default(), true, 1 << 20)
    }

    fn put(history: &mut WriterHistory, instance: u8, kind: ChangeKind) {
        let (sequence, instance) = (SequenceNumber::UNKNOWN, KeyHash([instance; 16]));
        let payload = Payload::from(vec![0; 8]);
        history.push(Change { sequence, kind, instance, timestamp: None, payload, fragment_bytes: None });
    }

    fn set(history: &mut WriterHistory, instances: &[u8]) {
        instances.iter().for_each(|instance| put(history, *instance, ChangeKind::Write));
        history.push_end_of_set(Timestamp { seconds: 0, fraction: 0 }, !instances.is_empty());
    }

    fn held(history: &WriterHistory) -> Vec<i64> {
        (1..=history.last().0).filter(|number| history.get(SequenceNumber(*number)).is_some()).collect()
    }

    #[test]
    fn the_end_of_a_set_stays_as_long_as_its_last_sample() {
        let mut history = history();
        set(&mut history, &[1, 2]);
        set(&mut history, &[3, 4]);
        assert_eq!(held(&history), [1, 2, 3, 4, 5, 6]);
        put(&mut history, 1, ChangeKind::Write);
        assert_eq!(held(&history), [2, 3, 4, 5, 6, 7]);
        put(&mut history, 2, ChangeKind::Write);
        assert_eq!(held(&history), [4, 5, 6, 7, 8], "with its last sample the set's end");
        history.expire([SequenceNumber(5)].into_iter());
        assert_eq!(held(&history), [4, 6, 7, 8], "some reader may wait for the end");
        history.acknowledged(SequenceNumber(8));
        put(&mut history, 4, ChangeKind::Write);
        history.expire([SequenceNumber(9)].into_iter());
        assert_eq!(held(&history), [4, 7, 8]);
    }

    #[test]
    fn values_of_an_instance_with_the_key_of_ends_are_values() {
        let mut history = WriterHistory::new(History::KeepLast(2), ResourceLimits::default(), true, 1 << 20);
        (0..4).for_each(|_| put(&mut history, 0xc5, ChangeKind::Write));
        assert_eq!(held(&history), [3, 4]);
    }

    #[test]
    fn ends_of_sets_take_no_more_room_than_their_samples() {
        for instances in [&[1, 2, 3][..], &[]] {
            let mut history = history();
            for round in 0..1_000 {
                set(&mut history, instances);
                if round % 3 == 0 {
                    history.acknowledged(history.last());
                }
            }
            assert!(history.len() <= 4, "{} of {instances:?}", history.len());
            assert!(history.places().instances <= 4, "{:?}", history.places());
        }
    }

    #[test]
    fn ends_of_sets_without_samples_stay_for_late_readers_and_take_no_room_from_samples() {
        let limits = ResourceLimits { max_samples: Some(3), ..ResourceLimits::default() };
        let mut history = WriterHistory::new(History::KeepAll, limits, true, 1 << 20);
        for _ in 0..10 {
            set(&mut history, &[]);
            history.acknowledged(history.last());
        }
        assert_eq!(held(&history), [8, 9, 10]);
        (0..2).for_each(|_| set(&mut history, &[]));
        assert_eq!(held(&history), [10, 11, 12], "those that some reader may wait for are among them");
        for number in 0..3 {
            assert!(history.room_for(&KeyHash([1; 16]), 8), "{number} samples are held");
            put(&mut history, 1, ChangeKind::Write);
        }
        assert!(!history.room_for(&KeyHash([1; 16]), 8));
    }

    #[test]
    fn instances_that_end_within_sets_go() {
        let mut history = history();
        for instance in 0..100 {
            put(&mut history, instance, ChangeKind::Write);
            put(&mut history, instance, ChangeKind::DisposeUnregister);
            history.push_end_of_set(Timestamp { seconds: 0, fraction: 0 }, true);
            history.acknowledged(history.last());
        }
        assert!(history.len() <= 3 && history.places().departures == 0, "{:?}", history.places());
    }
}
