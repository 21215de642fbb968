//! What outlives a writer: a store that follows what it is told holds at any time what the history holds.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::{FrameLimit, Records, SmallSample, StoredChange};
use super::*;
use crate::payload::Payload;
use crate::qos::{DurabilityService, History};
use crate::rng::Rng;
use crate::time::{Instant, Timestamp};
use crate::types::SequenceNumber;

fn random_history(rng: &mut Rng) -> History {
    if rng.chance(0.3) { History::KeepAll } else { History::KeepLast(1 + rng.below(4) as u32) }
}

fn random_limits(rng: &mut Rng) -> ResourceLimits {
    let mut limit = |range: u64| rng.chance(0.3).then(|| 4 + rng.below(range) as u32);
    ResourceLimits { max_samples: limit(20), max_instances: limit(3), max_samples_per_instance: limit(4) }
}

fn service(rng: &mut Rng) -> DurabilityService {
    let cleanup_delay = Duration::from_millis(rng.below(3) * 50);
    DurabilityService { cleanup_delay, history: random_history(rng), resource_limits: random_limits(rng) }
}

/// A store as a table.
#[derive(Default)]
struct Mirror(BTreeMap<SequenceNumber, StoredChange>);

impl Mirror {
    fn apply(&mut self, records: Records) {
        let before = self.0.len() + records.added.len();
        self.0.extend(records.added.into_iter().map(|change| (change.sequence, change)));
        assert_eq!(self.0.len(), before, "nothing is added twice");
        for gone in records.removed {
            assert!(self.0.remove(&gone).is_some(), "{gone} is removed and was never stored");
        }
    }
}

fn held(history: &WriterHistory) -> Vec<SequenceNumber> {
    let mut from = SequenceNumber::FIRST;
    let next = || {
        let sample = history.next_from(from)?;
        from = sample.sequence.next();
        Some(sample.sequence)
    };
    std::iter::from_fn(next).collect()
}

fn push(history: &mut WriterHistory, rng: &mut Rng) {
    let instance = key(rng.below(5) as u8);
    let kinds = [ChangeKind::Write, ChangeKind::Write, ChangeKind::Dispose, ChangeKind::DisposeUnregister];
    let kind = kinds[rng.below(4) as usize];
    let bytes = vec![rng.below(256) as u8; 8 + rng.below(60) as usize];
    history.make_room(&instance, bytes.len());
    if !history.room_for(&instance, bytes.len()) {
        return;
    }
    if kind == ChangeKind::Write && rng.chance(0.5) {
        let timestamp = Timestamp { seconds: 1, fraction: 0 };
        let sample = SmallSample { instance, timestamp, encapsulation: [0, 1, 0, 0], body: &bytes };
        history.collect(&sample, FrameLimit { bytes: 200, overhead: 16 });
    } else {
        let sequence = SequenceNumber::UNKNOWN;
        let payload = Payload::from(bytes);
        history.push(Change { sequence, kind, instance, timestamp: None, payload, fragment_bytes: None });
    }
}

#[test]
fn a_store_holds_what_the_history_holds_and_gives_it_back() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let (own, limits, service) = (random_history(&mut rng), random_limits(&mut rng), service(&mut rng));
        let new = || WriterHistory::new(own, limits, true, 4_000).outliving(&service);
        let (mut history, mut mirror, mut now) = (new(), Mirror::default(), Instant::ZERO);
        history.begin_journal(SequenceNumber(i64::MAX));
        for step in 0..300 {
            match rng.below(10) {
                0..5 => push(&mut history, &mut rng),
                5 => {
                    history.seal();
                    history.sent_up_to(history.last().next());
                }
                6 | 7 => _ = history.acknowledged(history.last() + -(rng.below(4) as i64)),
                8 => {
                    now += Duration::from_millis(rng.below(80));
                    history.clean_up(now);
                }
                _ => {
                    history.take_records().into_iter().for_each(|records| mirror.apply(records));
                    let stored: Vec<SequenceNumber> = mirror.0.keys().copied().collect();
                    assert_eq!(stored, held(&history), "seed {seed}, step {step}, {own:?}, {limits:?}, {service:?}");
                    history.note_stored(history.last(), SequenceNumber(i64::MAX));
                    assert!(history.is_stored_up_to(history.last()) && !history.has_records());
                }
            }
        }
        history.take_records().into_iter().for_each(|records| mirror.apply(records));
        let stored: Vec<StoredChange> = mirror.0.values().cloned().collect();
        let mut again = new();
        again.begin_journal(SequenceNumber(i64::MAX));
        again.restore(stored, history.last() + 7);
        again.take_records().into_iter().for_each(|records| mirror.apply(records));
        let kept: Vec<SequenceNumber> = mirror.0.keys().copied().collect();
        assert_eq!(kept, held(&again), "seed {seed}: {own:?}, {limits:?}, {service:?}");
        assert_eq!(again.last(), history.last() + 7);
        assert!(again.is_stored_up_to(again.last()));
    }
}

#[test]
fn a_restored_history_keeps_no_places_of_what_the_service_does_not_keep() {
    let service = DurabilityService { history: History::KeepLast(2), ..DurabilityService::default() };
    let new = || WriterHistory::new(History::KeepAll, ResourceLimits::default(), true, 1 << 20).outliving(&service);
    let (mut history, mut mirror) = (new(), Mirror::default());
    history.begin_journal(SequenceNumber(i64::MAX));
    for number in 0..1_000_u32 {
        let instance = key(if number == 0 { 1 } else { 2 });
        let (sequence, payload) = (SequenceNumber::UNKNOWN, Payload::from(vec![0; 8]));
        let kind = ChangeKind::Write;
        history.push(Change { sequence, kind, instance, timestamp: None, payload, fragment_bytes: None });
    }
    history.take_records().into_iter().for_each(|records| mirror.apply(records));
    let mut again = new();
    again.begin_journal(SequenceNumber(i64::MAX));
    again.restore(mirror.0.into_values().collect(), SequenceNumber(1_000));
    assert_eq!(held(&again), [1, 999, 1_000].map(SequenceNumber));
    assert!(again.places().slots < 64, "{:?}", again.places());
}

fn add(history: &mut WriterHistory, instance: u8, kind: ChangeKind) {
    let (sequence, payload) = (SequenceNumber::UNKNOWN, Payload::from(vec![0; 8]));
    history.push(Change { sequence, kind, instance: key(instance), timestamp: None, payload, fragment_bytes: None });
}

/// A KEEP_ALL history that keeps all that its bounds allow.
fn keeping_all(limits: ResourceLimits, bytes_max: usize) -> WriterHistory {
    let service = DurabilityService { history: History::KeepAll, ..DurabilityService::default() };
    WriterHistory::new(History::KeepAll, limits, true, bytes_max).outliving(&service)
}

#[test]
fn nothing_goes_for_an_instance_that_finds_no_place() {
    let mut history = keeping_all(limits(0, 2, 0), 1 << 20);
    [1, 2].iter().for_each(|instance| add(&mut history, *instance, ChangeKind::Write));
    history.acknowledged(SequenceNumber(2));
    history.make_room(&key(3), 8);
    assert_eq!((history.len(), history.room_for(&key(3), 8)), (2, false), "both are registered");
    add(&mut history, 1, ChangeKind::Unregister);
    history.make_room(&key(3), 8);
    assert_eq!(history.len(), 3, "some reader may not know yet that the first one is not");
    history.acknowledged(SequenceNumber(3));
    history.make_room(&key(3), 8);
    assert!(history.room_for(&key(3), 8));
}

#[test]
fn nothing_goes_for_a_payload_that_does_not_fit_beside_what_must_stay() {
    let mut history = keeping_all(limits(0, 0, 0), 2_000);
    [1, 2].iter().for_each(|instance| add(&mut history, *instance, ChangeKind::Write));
    history.acknowledged(SequenceNumber(1));
    history.make_room(&key(3), 5_000);
    assert_eq!(history.len(), 2, "the second one is not acknowledged");
    history.acknowledged(SequenceNumber(2));
    history.make_room(&key(3), 5_000);
    assert!(history.room_for(&key(3), 5_000), "one change always fits into an empty history");
}

#[test]
fn the_service_counts_the_instances_that_hold_samples() {
    let service = DurabilityService { resource_limits: limits(0, 10, 0), ..DurabilityService::default() };
    let mut history = WriterHistory::new(History::KeepAll, limits(0, 100, 0), true, 1 << 20).outliving(&service);
    (1..=11).for_each(|instance| add(&mut history, instance, ChangeKind::Write));
    history.acknowledged(SequenceNumber(11));
    let kept: Vec<SequenceNumber> = (2..=11).map(SequenceNumber).collect();
    assert_eq!(held(&history), kept, "the oldest goes");
}
