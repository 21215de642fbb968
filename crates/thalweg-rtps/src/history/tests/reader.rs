use std::sync::Arc;

use super::super::sample_store::PLACE_BYTES;
use super::*;
use crate::payload::Payload;
use crate::qos::History;
use crate::time::Instant;
use crate::types::SequenceNumber;

fn cache(history: History) -> SampleCache {
    SampleCache::new(history, limits(0, 0, 0), Keyed::Yes)
}

/// Parses `1a`: writer 1 writes instance a; `1Da` disposes, `1Ua` unregisters, `1Xa` does both.
fn sample(step: &str, number: i64) -> CachedSample {
    let bytes = step.as_bytes();
    let change = match bytes[1] {
        b'D' => ChangeKind::Dispose,
        b'U' => ChangeKind::Unregister,
        b'X' => ChangeKind::DisposeUnregister,
        _ => ChangeKind::Write,
    };
    let instance = bytes[bytes.len() - 1];
    let payload = if change == ChangeKind::Write { vec![instance; 100] } else { vec![instance; 4] };
    CachedSample {
        coherent_set: crate::types::SequenceNumber::ZERO,
        related: None,
        payload: Payload::from(payload),
        payload_kind: if change == ChangeKind::Write { PayloadKind::Data } else { PayloadKind::Key },
        valid: change == ChangeKind::Write,
        writer: writer(bytes[0]),
        sequence: SequenceNumber(number),
        source_timestamp: None,
        received: Instant::ZERO,
        expires: Instant::NEVER,
        instance: key(instance),
        change,
    }
}

fn feed(cache: &mut SampleCache, script: &str) -> Vec<Insert> {
    let steps = script.split_whitespace().enumerate();
    steps.map(|(number, step)| cache.insert(sample(step, number as i64 + 1))).collect()
}

/// One word a sample: instance, `!` when invalid, number, generation counts, ranks (sample, generation, absolute).
fn show(taken: &[TakenSample]) -> String {
    let word = |taken: &TakenSample| {
        let info = &taken.info;
        let state = match info.instance_state {
            InstanceState::Alive => 'A',
            InstanceState::NotAliveDisposed => 'D',
            InstanceState::NotAliveNoWriters => 'N',
        };
        let view = if info.view_state == ViewState::New { 'n' } else { 'o' };
        let read = if info.sample_state == SampleState::Read { 'r' } else { 'u' };
        let number = if info.sequence == SequenceNumber::UNKNOWN { 0 } else { info.sequence.0 };
        format!(
            "{}{}{number}:{state}{view}{read}:{}{}:{}{}{}",
            char::from(info.instance.0[0]),
            if info.valid { "" } else { "!" },
            info.disposed_generation_count,
            info.no_writers_generation_count,
            info.sample_rank,
            info.generation_rank,
            info.absolute_generation_rank,
        )
    };
    taken.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn take(cache: &mut SampleCache, filter: &ReadFilter) -> String {
    let mut taken = Vec::new();
    assert_eq!(cache.take(usize::MAX, filter, &mut taken), taken.len());
    show(&taken)
}

#[track_caller]
fn check(history: History, script: &str, expected: &str) {
    let mut cache = cache(history);
    feed(&mut cache, script);
    assert_eq!(take(&mut cache, &ReadFilter::ALL), expected, "{script}");
    assert_eq!(cache.len(), 0);
}

#[test]
fn a_cache_grouped_by_instance_gives_out_one_after_the_other() {
    for grouped in [false, true] {
        let mut cache = SampleCache::new(History::KeepAll, ResourceLimits::default(), Keyed::Yes);
        if grouped {
            cache = cache.grouped_by_instance();
        }
        for (number, script) in ["1a", "1b", "1a", "1c", "1b", "1a"].into_iter().enumerate() {
            cache.insert(sample(script, number as i64 + 1));
        }
        let take = |cache: &mut SampleCache, max| {
            let mut taken = Vec::new();
            cache.take(max, &ReadFilter::ALL, &mut taken);
            taken.iter().map(|sample| (sample.info.sequence.0, sample.info.sample_rank)).collect::<Vec<_>>()
        };
        let first = if grouped { [(1, 2), (3, 1), (6, 0), (2, 0)] } else { [(1, 1), (2, 0), (3, 0), (4, 0)] };
        assert_eq!(take(&mut cache, 4), first);
        assert_eq!(take(&mut cache, 4), if grouped { [(4, 0), (5, 0)] } else { [(5, 0), (6, 0)] });
    }
}

#[test]
fn samples_come_out_in_order_of_reception_with_their_ranks() {
    check(History::KeepAll, "1a 1b 1a", "a1:Anu:00:100 b2:Anu:00:000 a3:Anu:00:000");
}

#[test]
fn a_dispose_is_told_by_an_invalid_sample() {
    check(History::KeepAll, "1a 1Da", "a1:Dnu:00:100 a!2:Dnu:00:000");
    check(History::KeepLast(1), "1a 1Da", "a1:Dnu:00:100 a!2:Dnu:00:000");
}

#[test]
fn a_disposed_instance_is_reborn_by_a_write() {
    check(History::KeepAll, "1a 1Da 1a", "a1:Anu:00:211 a!2:Anu:00:111 a3:Anu:10:000");
    check(History::KeepAll, "1a 1Ua 1a", "a1:Anu:00:211 a!2:Anu:00:111 a3:Anu:01:000");
}

#[test]
fn absolute_rank_counts_rebirths_that_the_result_does_not_show() {
    let mut cache = cache(History::KeepAll);
    feed(&mut cache, "1a 1Da 1a 1Ua 1a");
    let mut taken = Vec::new();
    cache.take(2, &ReadFilter::ALL, &mut taken);
    assert_eq!(show(&taken), "a1:Anu:00:102 a!2:Anu:00:002");
    assert_eq!(take(&mut cache, &ReadFilter::ALL), "a3:Aou:10:211 a!4:Aou:10:111 a5:Aou:11:000");
}

#[test]
fn the_view_is_new_again_after_a_rebirth() {
    let mut cache = cache(History::KeepAll);
    feed(&mut cache, "1a");
    assert_eq!(take(&mut cache, &ReadFilter::ALL), "a1:Anu:00:000");
    feed(&mut cache, "1a");
    assert_eq!(take(&mut cache, &ReadFilter::ALL), "a1:Aou:00:000");
    feed(&mut cache, "1Da 1a");
    assert_eq!(take(&mut cache, &ReadFilter::ALL), "a!1:Anu:00:111 a2:Anu:10:000");
}

#[test]
fn the_last_of_several_writers_ends_the_instance() {
    let mut cache = cache(History::KeepAll);
    assert_eq!(feed(&mut cache, "1a 2a 1Ua"), [Insert::Stored, Insert::Stored, Insert::Ignored]);
    assert_eq!(cache.instance_state(key(b'a')), Some(InstanceState::Alive));
    assert_eq!(feed(&mut cache, "1Ua 3Ua 2Ua"), [Insert::Ignored, Insert::Ignored, Insert::Stored]);
    assert_eq!(cache.instance_state(key(b'a')), Some(InstanceState::NotAliveNoWriters));
}

#[test]
fn a_lost_writer_ends_only_what_nobody_else_writes() {
    let mut cache = cache(History::KeepAll);
    feed(&mut cache, "1a 1b 2b 1c 1Dc");
    take(&mut cache, &ReadFilter::ALL);
    cache.writer_lost(writer(b'1'), Instant::ZERO);
    let mut taken = Vec::new();
    cache.take(9, &ReadFilter::ALL, &mut taken);
    assert_eq!(show(&taken), "a!0:Nou:00:000", "b has a writer, c was disposed before");
    assert_eq!(taken[0].payload[0], b'a', "tells the key");
    assert_eq!(taken[0].payload_kind, PayloadKind::Data);
    assert_eq!(cache.instances(), 1, "a and c are forgotten");
}

#[test]
fn a_notice_tells_the_key_with_the_least_memory() {
    let mut cache = cache(History::KeepAll);
    cache.insert(CachedSample { payload: Payload::from(vec![b'a'; 100_000]), ..sample("1a", 1) });
    feed(&mut cache, "1Da");
    let mut taken = Vec::new();
    cache.take(9, &ReadFilter::ALL, &mut taken);
    assert_eq!((&*taken[1].payload, taken[1].payload_kind), (&[b'a'; 4][..], PayloadKind::Key));
}

#[test]
fn a_remembered_key_does_not_pin_a_large_receive_buffer() {
    let mut cache = cache(History::KeepAll);
    let slab = Payload::from(vec![b'a'; 65_536]);
    cache.insert(CachedSample { payload: slab.slice(0..100), ..sample("1a", 1) });
    cache.insert(sample("1Ua", 2));
    let mut taken = Vec::new();
    cache.take(9, &ReadFilter::ALL, &mut taken);
    assert_eq!(taken[1].payload.len(), 100);
    assert!(taken[1].payload.pinned_bytes() < 200);
}

#[test]
fn the_end_of_what_is_unknown_or_ended_is_no_news() {
    let mut cache = cache(History::KeepAll);
    assert_eq!(feed(&mut cache, "1Ua"), [Insert::Ignored]);
    let hash_only = CachedSample { payload: Payload::from(vec![]), ..sample("1Db", 1) };
    assert_eq!(cache.insert(hash_only), Insert::Ignored);
    assert_eq!(cache.instances(), 0);
    assert_eq!(feed(&mut cache, "1Dc 1Dc 1Xc"), [Insert::Stored, Insert::Ignored, Insert::Ignored]);
}

/// What the samples that are taken did to their instances.
fn take_changes(cache: &mut SampleCache) -> Vec<ChangeKind> {
    let mut taken = Vec::new();
    cache.take(usize::MAX, &ReadFilter::ALL, &mut taken);
    taken.iter().map(|sample| sample.change).collect()
}

#[test]
fn a_notice_tells_how_the_instance_ended_though_it_lives_again() {
    use ChangeKind::{Dispose, Unregister, Write};
    for keyed in [Keyed::No, Keyed::Yes] {
        let mut cache = SampleCache::new(History::KeepAll, limits(0, 0, 0), keyed);
        feed(&mut cache, "1a 1Da 1a 1Ua 1a");
        let mut read = Vec::new();
        cache.read(usize::MAX, &ReadFilter::ALL, &mut read);
        cache.look(&ReadFilter::ALL, &mut read);
        let expected = [Write, Dispose, Write, Unregister, Write];
        assert!(read.iter().map(|sample| sample.change).eq(expected.into_iter().cycle().take(10)), "{keyed:?}");
        assert_eq!(take_changes(&mut cache), expected, "{keyed:?}");
    }
}

#[test]
fn every_end_is_told_where_that_is_wanted() {
    use ChangeKind::{Dispose, DisposeUnregister, Unregister, Write};
    let mut cache = cache(History::KeepAll);
    cache.tell_every_end();
    let inserted = feed(&mut cache, "1a 2a 1Ua 2Da 2Da 2Xa 2Ua 3Ub");
    assert_eq!(inserted, [Insert::Stored; 8]);
    let states = [key(b'a'), key(b'b')].map(|instance| cache.instance_state(instance));
    assert_eq!(states, [Some(InstanceState::NotAliveDisposed), Some(InstanceState::NotAliveNoWriters)]);
    let expected = [Write, Write, Unregister, Dispose, Dispose, DisposeUnregister, Unregister, Unregister];
    assert_eq!(take_changes(&mut cache), expected);
    assert_eq!((cache.instances(), cache.bytes()), (0, 0), "nothing of it stays");
}

#[test]
fn an_end_that_is_told_in_any_case_has_its_own_key() {
    for keyed in [Keyed::No, Keyed::Yes] {
        let mut cache = SampleCache::new(History::KeepAll, limits(0, 0, 0), keyed);
        cache.tell_every_end();
        feed(&mut cache, "1a");
        // All are taken for one instance, as where nobody knows the type.
        for (number, name) in [(2, b'k'), (3, b'l')] {
            cache.insert(CachedSample { payload: Payload::from(vec![name; 4]), ..sample("1Da", number) });
        }
        let mut taken = Vec::new();
        cache.take(usize::MAX, &ReadFilter::ALL, &mut taken);
        let told: Vec<_> = taken.iter().map(|sample| (sample.payload[0], sample.payload_kind)).collect();
        assert_eq!(told, [(b'a', PayloadKind::Data), (b'k', PayloadKind::Key), (b'l', PayloadKind::Key)]);
        assert_eq!(cache.bytes(), 0);
    }
}

#[test]
fn an_end_that_is_told_in_any_case_waits_for_room_and_outlasts_the_values_before_it() {
    let mut full = SampleCache::new(History::KeepAll, limits(1, 0, 0), Keyed::Yes);
    full.tell_every_end();
    assert_eq!(feed(&mut full, "1Da 1Da"), [Insert::Stored, Insert::Full]);
    assert_eq!(full.refusal(key(b'a'), ChangeKind::Dispose, writer(b'1'), 4), Some(RejectReason::Samples));
    assert_eq!(take_changes(&mut full), [ChangeKind::Dispose]);
    assert_eq!(full.refusal(key(b'a'), ChangeKind::Dispose, writer(b'1'), 4), None);
    let mut last = cache(History::KeepLast(1));
    last.tell_every_end();
    feed(&mut last, "1a 1Da 1a");
    assert_eq!(take_changes(&mut last), [ChangeKind::Dispose, ChangeKind::Write]);
}

#[test]
fn keep_last_drops_the_oldest_of_the_instance() {
    check(History::KeepLast(2), "1a 1b 1a 1a", "b2:Anu:00:000 a3:Anu:00:100 a4:Anu:00:000");
    check(History::KeepLast(1), "1a 1Da 1a", "a3:Anu:10:000");
}

/// DDS 1.4 §2.2.3.18, §2.2.3.19: the newest samples replace the oldest, read or not, and the limit rejects none.
#[test]
fn a_limit_of_an_instance_that_is_the_depth_rejects_nothing() {
    for keyed in [Keyed::Yes, Keyed::No] {
        let mut cache = SampleCache::new(History::KeepLast(2), limits(0, 0, 2), keyed);
        let inserted = feed(&mut cache, "1a 1a 1a 1a");
        assert_eq!(inserted, [Insert::Stored, Insert::Stored, Insert::Overwrote, Insert::Overwrote]);
        assert_eq!((cache.len(), cache.overwritten(), cache.rejected()), (2, 2, 0));
    }
}

#[test]
fn keep_all_is_full_and_accepts_the_same_sample_later() {
    let mut cache = SampleCache::new(History::KeepAll, limits(2, 0, 0), Keyed::Yes);
    assert_eq!(feed(&mut cache, "1a 1a 1a 1Da"), [Insert::Stored, Insert::Stored, Insert::Full, Insert::Full]);
    assert_eq!(cache.rejected(), 2);
    assert!(!cache.has_room(key(b'a'), 100));
    assert_eq!(take(&mut cache, &ReadFilter::ALL), "a1:Anu:00:100 a2:Anu:00:000");
    assert_eq!(feed(&mut cache, "1Da"), [Insert::Stored]);
}

#[test]
fn the_byte_budget_is_kept() {
    let mut cache = cache(History::KeepAll).with_bytes_max(2 * (PLACE_BYTES + 100));
    assert_eq!(feed(&mut cache, "1a 1b 1c"), [Insert::Stored, Insert::Stored, Insert::Full]);
    take(&mut cache, &ReadFilter::ALL);
    assert_eq!(cache.bytes(), 0);
}

#[test]
fn read_leaves_samples_and_marks_them() {
    let mut cache = cache(History::KeepAll);
    feed(&mut cache, "1a 1b");
    let mut read = Vec::new();
    cache.read(1, &ReadFilter::ALL, &mut read);
    assert_eq!(show(&read), "a1:Anu:00:000");
    assert!(cache.has_unread());
    let unread = ReadFilter { sample_state: Some(SampleState::NotRead), ..ReadFilter::ALL };
    read.clear();
    cache.read(9, &unread, &mut read);
    assert_eq!(show(&read), "b2:Anu:00:000");
    assert!(!cache.has_unread());
    assert_eq!(take(&mut cache, &ReadFilter::ALL), "a1:Aor:00:000 b2:Aor:00:000");
}

#[test]
fn filters_select_by_instance_and_by_state() {
    let mut cache = cache(History::KeepAll);
    feed(&mut cache, "1a 1b 1Db 1c 1Uc");
    let disposed = ReadFilter { instance_states: InstanceStates::NOT_ALIVE_DISPOSED, ..ReadFilter::ALL };
    assert_eq!(take(&mut cache, &disposed), "b2:Dnu:00:100 b!3:Dnu:00:000");
    assert_eq!(take(&mut cache, &ReadFilter::instance(key(b'c'))), "c4:Nnu:00:100 c!5:Nnu:00:000");
    assert_eq!(take(&mut cache, &ReadFilter { view_state: Some(ViewState::NotNew), ..ReadFilter::ALL }), "");
    assert_eq!(take(&mut cache, &ReadFilter::ALL), "a1:Anu:00:000");
}

#[test]
fn instances_are_visited_in_the_order_of_their_keys() {
    let mut cache = cache(History::KeepAll);
    feed(&mut cache, "1c 1a 1b");
    take(&mut cache, &ReadFilter::instance(key(b'b')));
    assert_eq!(cache.next_instance(None), Some(key(b'a')));
    assert_eq!(cache.next_instance(Some(key(b'a'))), Some(key(b'c')), "b has no samples");
    assert_eq!(cache.next_instance(Some(key(b'b'))), Some(key(b'c')));
    assert_eq!(cache.next_instance(Some(key(b'c'))), None);
}

#[test]
fn a_disposed_instance_gives_way_to_a_new_one() {
    let mut cache = SampleCache::new(History::KeepAll, limits(0, 2, 0), Keyed::Yes);
    assert_eq!(feed(&mut cache, "1a 1b 1c"), [Insert::Stored, Insert::Stored, Insert::Full]);
    feed(&mut cache, "1Da");
    assert_eq!(feed(&mut cache, "1c"), [Insert::Full], "its samples are still to be taken");
    take(&mut cache, &ReadFilter::ALL);
    assert_eq!(feed(&mut cache, "1c"), [Insert::Stored]);
    assert_eq!(cache.instance_state(key(b'a')), None);
    assert_eq!(cache.instances(), 2);
}

#[test]
fn a_keyless_topic_is_one_instance() {
    let mut cache = SampleCache::new(History::KeepLast(2), limits(0, 0, 0), Keyed::No);
    feed(&mut cache, "1a 1b 2c");
    assert_eq!(cache.instances(), 1);
    assert_eq!(cache.len(), 2);
    assert_eq!(cache.next_instance(None), Some(KeyHash::default()));
    cache.writer_lost(writer(b'1'), Instant::ZERO);
    cache.writer_lost(writer(b'2'), Instant::ZERO);
    let mut taken = Vec::new();
    cache.take(9, &ReadFilter::ALL, &mut taken);
    assert_eq!(taken.len(), 3);
    assert_eq!(taken[2].info.instance_state, InstanceState::NotAliveNoWriters);
    assert!(!taken[2].info.valid && taken[2].payload.is_empty());
}

#[test]
fn chosen_samples_have_the_ranks_that_others_have() {
    for keyed in [Keyed::No, Keyed::Yes] {
        let filled = || {
            let mut cache = SampleCache::new(History::KeepAll, limits(0, 0, 0), keyed);
            feed(&mut cache, "1a 1a");
            cache.writer_lost(writer(b'1'), Instant::ZERO);
            feed(&mut cache, "2a 2a 2Da 2a");
            cache
        };
        let all = take(&mut filled(), &ReadFilter::ALL);
        let mut cache = filled();
        let numbers = (1..10).map(SequenceNumber).chain([SequenceNumber::UNKNOWN]);
        let choice: Choice = numbers.flat_map(|number| [b'1', b'2'].map(|name| (writer(name), number))).collect();
        let mut chosen = Vec::new();
        cache.take_chosen(&choice, &mut chosen);
        assert_eq!(show(&chosen), all);
        assert!(all.contains(":62"), "generations differ: {all}");
    }
}

#[test]
fn a_sample_that_went_lets_go_of_its_buffer() {
    let buffer = Arc::new(vec![0; 100]);
    let mut cache = SampleCache::new(History::KeepLast(1), limits(0, 0, 0), Keyed::No);
    cache.insert(CachedSample { payload: Payload::new(Arc::clone(&buffer)), ..sample("1a", 1) });
    assert_eq!(Arc::strong_count(&buffer), 2);
    feed(&mut cache, "1a");
    assert_eq!(Arc::strong_count(&buffer), 1, "overwritten");
}
