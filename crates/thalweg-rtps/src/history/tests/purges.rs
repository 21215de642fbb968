//! READER_DATA_LIFECYCLE, by name and against a list of what must be left.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::payload::Payload;
use crate::qos::{History, ReaderLifecycle};
use crate::rng::Rng;
use crate::time::{INFINITE, Instant};
use crate::types::SequenceNumber;

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(1_000_000 + nanos)
}

fn lifecycle(nowriter: Option<u64>, disposed: Option<u64>) -> ReaderLifecycle {
    let delay = |nanos: Option<u64>| nanos.map_or(INFINITE, Duration::from_nanos);
    ReaderLifecycle {
        autopurge_nowriter_samples_delay: delay(nowriter),
        autopurge_disposed_samples_delay: delay(disposed),
    }
}

fn cache(keyed: Keyed, lifecycle: ReaderLifecycle) -> SampleCache {
    SampleCache::new(History::KeepAll, ResourceLimits::default(), keyed).purging(lifecycle)
}

fn sample(now: Instant, number: i64, instance: KeyHash, change: ChangeKind) -> CachedSample {
    CachedSample {
        related: None,
        coherent_set: SequenceNumber::ZERO,
        payload: Payload::from(&b"\0\x01\0\0x"[..]),
        payload_kind: PayloadKind::Data,
        valid: change == ChangeKind::Write,
        writer: writer(1),
        sequence: SequenceNumber(number),
        source_timestamp: None,
        received: now,
        expires: Instant::NEVER,
        instance,
        change,
    }
}

#[test]
fn an_instance_without_writers_goes_with_its_samples_after_its_delay() {
    for keyed in [Keyed::No, Keyed::Yes] {
        let mut cache = cache(keyed, lifecycle(Some(10), None));
        cache.insert(sample(at(0), 1, KeyHash::default(), ChangeKind::Write));
        assert_eq!(cache.next_expiry(), Instant::NEVER);
        cache.writer_lost(writer(1), at(5));
        assert_eq!((cache.next_expiry(), cache.expire(at(14)), cache.len()), (at(15), 0, 2));
        // The value counts, the notice does not.
        assert_eq!((cache.expire(at(15)), cache.len(), cache.instances(), cache.bytes()), (1, 0, 0, 0));
        assert_eq!(cache.next_expiry(), Instant::NEVER);
    }
}

#[test]
fn a_disposed_instance_loses_its_samples_and_keeps_its_state() {
    let mut cache = cache(Keyed::Yes, lifecycle(None, Some(10)));
    cache.insert(sample(at(0), 1, key(1), ChangeKind::Write));
    cache.insert(sample(at(3), 2, key(1), ChangeKind::Dispose));
    cache.insert(sample(at(3), 3, key(2), ChangeKind::Write));
    assert_eq!((cache.expire(at(13)), cache.len()), (1, 1));
    assert_eq!(cache.instance_state(key(1)), Some(InstanceState::NotAliveDisposed));
    assert_eq!(cache.instance_state(key(2)), Some(InstanceState::Alive));
}

#[test]
fn an_instance_that_is_reborn_in_time_stays() {
    let mut cache = cache(Keyed::Yes, lifecycle(Some(10), Some(10)));
    cache.insert(sample(at(0), 1, key(1), ChangeKind::Dispose));
    cache.insert(sample(at(9), 2, key(1), ChangeKind::Write));
    assert_eq!((cache.next_expiry(), cache.expire(at(100)), cache.len()), (Instant::NEVER, 0, 2));
}

/// Each instance by itself: when it ended and how, and the values that were not taken.
#[test]
fn what_is_purged_is_what_ended_long_enough_ago() {
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let delays = [Some(40), Some(90), None];
        let delays = (delays[rng.below(3) as usize], delays[rng.below(3) as usize]);
        let mut cache = cache(Keyed::Yes, lifecycle(delays.0, delays.1));
        let mut model: BTreeMap<u8, (InstanceState, u64, usize)> = BTreeMap::new();
        let mut now = 0;
        for number in 1..150 {
            now += rng.below(20);
            let instance = rng.below(4) as u8;
            let change = [ChangeKind::Write, ChangeKind::Write, ChangeKind::Dispose, ChangeKind::Unregister];
            let change = change[rng.below(4) as usize];
            cache.expire(at(now));
            model.retain(|_, (state, since, values)| {
                let delay = match state {
                    InstanceState::Alive => None,
                    InstanceState::NotAliveDisposed => delays.1,
                    InstanceState::NotAliveNoWriters => delays.0,
                };
                if delay.is_some_and(|delay| *since + delay <= now) {
                    *values = 0;
                    return *state == InstanceState::NotAliveDisposed;
                }
                true
            });
            cache.insert(sample(at(now), number, key(instance), change));
            let known = model.get(&instance).copied();
            let next = match (change, known) {
                (ChangeKind::Write, known) => Some((InstanceState::Alive, now, known.map_or(0, |known| known.2) + 1)),
                (ChangeKind::Dispose, Some((InstanceState::NotAliveDisposed, since, values))) => {
                    Some((InstanceState::NotAliveDisposed, since, values))
                }
                (ChangeKind::Dispose, known) => {
                    Some((InstanceState::NotAliveDisposed, now, known.map_or(0, |known| known.2)))
                }
                (_, Some((InstanceState::Alive, _, values))) => Some((InstanceState::NotAliveNoWriters, now, values)),
                (_, known) => known,
            };
            if let Some(next) = next {
                model.insert(instance, next);
            }
            let held = cache.entries().filter(|entry| entry.is_value).count();
            assert_eq!(held, model.values().map(|known| known.2).sum::<usize>(), "seed {seed}, step {number}");
        }
    }
}
