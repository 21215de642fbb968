//! The caches allocate nothing per sample in steady state: an allocator that counts watches them.

use thalweg_rtps::history::{
    CachedSample, Change, ChangeKind, Insert, PayloadKind, ReadFilter, SampleCache, WriterHistory,
};
use thalweg_rtps::payload::{Payload, PayloadPool};
use thalweg_rtps::qos::{History, ResourceLimits};
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::{EntityId, Guid, GuidPrefix, KeyHash, Keyed, SequenceNumber};
use thalweg_testing::allocations::{self, Counting};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const WARM_UP: i64 = 20_000;
const MEASURED: i64 = 100_000;
const UNLIMITED: ResourceLimits =
    ResourceLimits { max_samples: None, max_instances: None, max_samples_per_instance: None };

/// Runs `step` until it is warm, then checks that further runs do not allocate.
#[track_caller]
fn check(mut step: impl FnMut(i64)) {
    (1..=WARM_UP).for_each(&mut step);
    let before = allocations::of_this_thread();
    (WARM_UP + 1..=WARM_UP + MEASURED).for_each(&mut step);
    let count = allocations::of_this_thread() - before;
    assert_eq!(count, 0, "{count} allocations in {MEASURED} samples");
}

fn instance(number: i64, instances: i64) -> KeyHash {
    KeyHash([(number % instances) as u8; 16])
}

fn check_writer(history: History, durable: bool, instances: i64, acknowledged_after: i64) {
    let mut pool = PayloadPool::new(1 << 20);
    let mut history = WriterHistory::new(history, UNLIMITED, durable, usize::MAX);
    check(|number| {
        let change = Change {
            sequence: SequenceNumber::UNKNOWN,
            kind: if number % 50 == 0 { ChangeKind::Dispose } else { ChangeKind::Write },
            instance: instance(number, instances),
            timestamp: None,
            payload: pool.copy(&[0; 200]),
            fragment_bytes: None,
        };
        assert!(history.room_for(&change.instance, 200));
        history.push(change);
        history.acknowledged(SequenceNumber(number - acknowledged_after));
    });
}

#[test]
fn a_volatile_keep_all_writer_does_not_allocate() {
    check_writer(History::KeepAll, false, 1, 100);
}

#[test]
fn a_keyed_keep_last_writer_does_not_allocate() {
    check_writer(History::KeepLast(3), false, 7, 100);
    check_writer(History::KeepLast(1), true, 100, 100);
}

#[test]
fn a_fast_instance_beside_slow_ones_does_not_allocate() {
    let payload = Payload::from(vec![0; 200]);
    let mut history = WriterHistory::new(History::KeepLast(2), UNLIMITED, true, usize::MAX);
    check(|number| {
        history.push(Change {
            sequence: SequenceNumber::UNKNOWN,
            kind: ChangeKind::Write,
            instance: if number < 100 { instance(number, 100) } else { instance(0, 1) },
            timestamp: None,
            payload: payload.clone(),
            fragment_bytes: None,
        });
    });
}

fn check_reader(history: History, keyed: Keyed, instances: i64, take_every: i64) {
    let mut pool = PayloadPool::new(1 << 20);
    let mut cache = SampleCache::new(history, UNLIMITED, keyed);
    let mut taken = Vec::new();
    let (sample, key) = ([0; 200], [0; 4]);
    check(|number| {
        let change = if number % 50 == 0 { ChangeKind::Dispose } else { ChangeKind::Write };
        let writes = change == ChangeKind::Write;
        let inserted = cache.insert(CachedSample {
            coherent_set: SequenceNumber::ZERO,
            related: None,
            payload: pool.copy(if writes { &sample } else { &key }),
            payload_kind: if writes { PayloadKind::Data } else { PayloadKind::Key },
            valid: writes,
            writer: Guid::new(GuidPrefix([(number % 3) as u8; 12]), EntityId::user_writer(1, keyed)),
            sequence: SequenceNumber(number),
            source_timestamp: None,
            received: Instant::ZERO,
            expires: Instant::NEVER,
            instance: instance(number, instances),
            change,
        });
        assert_ne!(inserted, Insert::Full);
        if number % take_every == 0 {
            cache.read(3, &ReadFilter::ALL, &mut taken);
            taken.clear();
            cache.take(usize::MAX, &ReadFilter::ALL, &mut taken);
            taken.clear();
        }
    });
}

#[test]
fn a_keep_all_reader_does_not_allocate() {
    check_reader(History::KeepAll, Keyed::No, 1, 1);
    check_reader(History::KeepAll, Keyed::Yes, 40, 500);
}

#[test]
fn a_keep_last_reader_does_not_allocate() {
    check_reader(History::KeepLast(1), Keyed::Yes, 100, 1_000);
    check_reader(History::KeepLast(10), Keyed::No, 1, 100);
}
