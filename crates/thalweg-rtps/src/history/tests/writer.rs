use super::super::writer_history::CHANGE_BYTES;
use super::super::{FrameLimit, SmallSample};
use super::*;
use crate::payload::Payload;
use crate::qos::History;
use crate::time::Timestamp;
use crate::types::SequenceNumber;

const UNLIMITED: ResourceLimits =
    ResourceLimits { max_samples: None, max_instances: None, max_samples_per_instance: None };

fn change(instance: u8, kind: ChangeKind) -> Change {
    Change {
        sequence: SequenceNumber::UNKNOWN,
        kind,
        instance: key(instance),
        timestamp: None,
        payload: Payload::from(vec![instance; 8]),
        fragment_bytes: None,
    }
}

/// Pushes what `script` says: `a1` writes instance a … in order, `D` disposes, `U` unregisters, `X` both; then checks
/// which numbers are held.
#[track_caller]
fn check(mut history: WriterHistory, script: &str, acknowledged: i64, held: &[i64]) {
    for step in script.split_whitespace() {
        let (kind, instance) = match step.as_bytes() {
            [b'D', instance] => (ChangeKind::Dispose, *instance),
            [b'U', instance] => (ChangeKind::Unregister, *instance),
            [b'X', instance] => (ChangeKind::DisposeUnregister, *instance),
            [instance] => (ChangeKind::Write, *instance),
            _ => unreachable!("{step}"),
        };
        history.push(change(instance, kind));
    }
    history.acknowledged(SequenceNumber(acknowledged));
    assert_eq!(numbers(&history), held, "{script}, acknowledged {acknowledged}");
}

fn numbers(history: &WriterHistory) -> Vec<i64> {
    let mut numbers = Vec::new();
    let mut from = SequenceNumber::FIRST;
    while let Some(change) = history.next_from(from) {
        numbers.push(change.sequence.0);
        from = change.sequence.next();
    }
    numbers
}

fn volatile(history: History) -> WriterHistory {
    WriterHistory::new(history, UNLIMITED, false, usize::MAX)
}

fn durable(history: History) -> WriterHistory {
    WriterHistory::new(history, UNLIMITED, true, usize::MAX)
}

#[test]
fn keep_last_keeps_the_newest_values_of_each_instance() {
    check(volatile(History::KeepLast(1)), "a b a c b", 0, &[3, 4, 5]);
    check(volatile(History::KeepLast(2)), "a b a c b a", 0, &[2, 3, 4, 5, 6]);
}

#[test]
fn a_notice_does_not_push_out_the_value_before_it() {
    check(volatile(History::KeepLast(1)), "a Da", 0, &[1, 2]);
    check(volatile(History::KeepLast(1)), "a Da Ua", 0, &[1, 2, 3]);
    check(volatile(History::KeepLast(1)), "a Da a", 0, &[3]);
    check(volatile(History::KeepLast(2)), "a Da a a", 0, &[3, 4]);
}

#[test]
fn notices_alone_do_not_pile_up() {
    check(volatile(History::KeepLast(1)), "a Da Da Da Da Da", 0, &[4, 5, 6]);
}

#[test]
fn a_volatile_history_drops_what_everybody_has() {
    check(volatile(History::KeepAll), "a b c d", 2, &[3, 4]);
    check(volatile(History::KeepAll), "a b c d", 99, &[]);
    check(volatile(History::KeepLast(1)), "a b a c b", 3, &[4, 5]);
}

#[test]
fn a_durable_history_keeps_it_until_the_instance_is_gone() {
    check(durable(History::KeepAll), "a b c d", 4, &[1, 2, 3, 4]);
    check(durable(History::KeepAll), "a b Xa b", 2, &[1, 2, 3, 4]);
    check(durable(History::KeepAll), "a b Xa b", 3, &[2, 4]);
    check(durable(History::KeepAll), "a Da Ua b", 4, &[4]);
    check(durable(History::KeepAll), "a Ua b", 4, &[1, 2, 3]);
    check(durable(History::KeepAll), "a Xa a", 4, &[1, 2, 3]);
}

#[test]
fn numbers_go_on_after_everything_was_dropped() {
    let mut history = volatile(History::KeepAll);
    assert_eq!((history.first().0, history.last().0), (1, 0));
    history.push(change(1, ChangeKind::Write));
    assert_eq!((history.first().0, history.last().0), (1, 1));
    assert!(history.acknowledged(SequenceNumber(1)));
    assert!(!history.acknowledged(SequenceNumber(1)));
    assert_eq!((history.first().0, history.last().0), (2, 1));
    assert_eq!(history.push(change(1, ChangeKind::Write)).sequence.0, 2);
}

#[test]
fn limits_refuse_what_keep_last_cannot_overwrite() {
    let mut history = WriterHistory::new(History::KeepLast(2), limits(3, 2, 2), false, usize::MAX);
    for instance in [1, 1, 2] {
        assert!(history.room_for(&key(instance), 8));
        history.push(change(instance, ChangeKind::Write));
    }
    assert!(!history.room_for(&key(3), 8), "a third instance");
    assert!(history.room_for(&key(1), 8), "overwrites its own");
    assert!(history.room_for(&key(2), 8), "overwrites its own");
    assert_eq!(history.push(change(2, ChangeKind::Write)).overwrote, Some(SequenceNumber(3)));
    assert_eq!(history.overwritten_unacknowledged(), 1);
}

/// DDS 1.4 §2.2.3.18, §2.2.3.19: the newest samples replace the oldest, and the limit refuses none.
#[test]
fn a_limit_of_an_instance_that_is_the_depth_refuses_nothing() {
    for depth in [1, 3] {
        for durability_keeps in [false, true] {
            let history = History::KeepLast(depth);
            let mut history = WriterHistory::new(history, limits(0, 0, depth), durability_keeps, usize::MAX);
            for _ in 0..10 {
                assert!(history.room_for(&key(1), 8), "depth {depth}");
                history.push(change(1, ChangeKind::Write));
            }
            let held: Vec<i64> = (11 - i64::from(depth)..=10).collect();
            assert_eq!(numbers(&history), held, "depth {depth}");
        }
    }
}

#[test]
fn the_byte_budget_refuses_but_never_the_only_change() {
    let mut history = WriterHistory::new(History::KeepAll, UNLIMITED, false, 2 * (CHANGE_BYTES + 8));
    assert!(history.room_for(&key(1), 1 << 30));
    history.push(change(1, ChangeKind::Write));
    assert!(history.room_for(&key(1), 8));
    assert!(!history.room_for(&key(1), 9));
}

#[test]
fn a_fast_instance_beside_a_slow_one_stays_compact() {
    let mut history = volatile(History::KeepLast(1));
    history.push(change(1, ChangeKind::Write));
    for number in 2..100_000 {
        history.push(change(2, ChangeKind::Write));
        assert_eq!(history.first(), SequenceNumber(1));
        assert_eq!(history.next_from(SequenceNumber(2)).map(|change| change.sequence.0), Some(number));
        assert!(history.places().slots < 100, "{} slots", history.places().slots);
    }
    assert!(history.get(SequenceNumber(1)).is_some());
    assert!(history.get(SequenceNumber(500)).is_none());
}

#[test]
fn instances_that_come_and_go_leave_nothing_behind() {
    let mut history = volatile(History::KeepLast(1));
    for number in 1..10_000_i64 {
        let mut change = change(1, ChangeKind::DisposeUnregister);
        change.instance.0[..8].copy_from_slice(&number.to_be_bytes());
        history.push(change);
        history.acknowledged(SequenceNumber(number));
        assert!(history.places().instances < 200);
    }
}

fn collected_numbers(history: &WriterHistory, from: i64) -> Vec<i64> {
    let mut numbers = Vec::new();
    let mut from = SequenceNumber(from);
    while let Some(sample) = history.next_collected_from(from) {
        numbers.push(sample.sequence.0);
        from = sample.sequence.next();
    }
    numbers
}

#[test]
fn what_keep_last_overwrites_stays_until_it_was_sent_unless_the_history_conflates() {
    let timestamp = Timestamp { seconds: 1, fraction: 0 };
    let sample = SmallSample { instance: key(1), timestamp, encapsulation: [0; 4], body: &[1; 40] };
    // Two samples fill a frame.
    let limit = FrameLimit { bytes: 120, overhead: 16 };
    for collects in [false, true] {
        let mut history = durable(History::KeepLast(1));
        history.set_conflating(false);
        let write = |history: &mut WriterHistory| {
            if collects { history.collect(&sample, limit) } else { history.push(change(1, ChangeKind::Write)) }
        };
        for _ in 0..7 {
            write(&mut history);
        }
        assert_eq!(
            (numbers(&history), history.len()),
            (vec![7], 1),
            "for repairs and late readers only the newest is there"
        );
        assert_eq!(collected_numbers(&history, 1), [1, 2, 3, 4, 5, 6, 7]);
        history.sent_up_to(SequenceNumber(5));
        assert_eq!(collected_numbers(&history, 1), [5, 6, 7]);
        history.set_conflating(true);
        write(&mut history);
        history.seal();
        history.sent_up_to(SequenceNumber(9));
        assert_eq!(numbers(&history), [8]);
        assert_eq!(history.places().slots, 1, "nothing of what was overwritten is left");
    }
}

#[test]
fn an_instance_that_comes_and_goes_costs_no_memory_while_nobody_acknowledges() {
    let mut history = durable(History::KeepLast(1));
    for _ in 0..50_000 {
        history.push(change(b'a', ChangeKind::Write));
        history.push(change(b'a', ChangeKind::DisposeUnregister));
    }
    assert!(history.len() <= 2 && history.places().departures < 100, "{} departures", history.places().departures);
    history.acknowledged(SequenceNumber(100_000));
    assert_eq!((history.len(), history.places().departures), (0, 0));
}

#[test]
fn who_has_every_pack_has_every_sample_also_when_none_is_held() {
    let mut history = volatile(History::KeepAll);
    (0..3).for_each(|_| _ = history.push(change(b'a', ChangeKind::Write)));
    let next = (SequenceNumber(4), SequenceNumber(4));
    assert_eq!(history.pack(SequenceNumber(4)), next);
    history.acknowledged(SequenceNumber(3));
    assert_eq!((history.pack(SequenceNumber(4)), history.pack(SequenceNumber(9))), (next, next));
}
