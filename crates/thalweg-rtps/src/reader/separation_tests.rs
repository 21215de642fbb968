//! What came too early for TIME_BASED_FILTER follows when its time has come, whatever becomes of its writer, within the reader's memory.

use super::admission_tests::{SPAN, Stage, guid, reader_of, separated};
use super::tests::number;
use super::*;
use crate::history::{ChangeKind, InstanceState, PayloadKind, RejectReason};
use crate::payload::Payload;
use crate::qos::{History, Ownership, Reliability, ResourceLimits};

/// A reader whose cache may have so many bytes.
fn bounded(bytes_max: usize) -> Stage {
    let mut stage = separated(Reliability::RELIABLE);
    let cache = SampleCache::new(History::KeepAll, ResourceLimits::default(), Keyed::Yes);
    stage.reader.handover.cache = cache.with_bytes_max(bytes_max);
    stage
}

/// Writer 1 writes a value of so many bytes.
fn write_bytes(stage: &mut Stage, instance: u8, bytes: usize) {
    stage.sequences[1] += 1;
    let received = Received {
        coherent_set: SequenceNumber::ZERO,
        related: None,
        sequence: number(stage.sequences[1]),
        timestamp: None,
        kind: ChangeKind::Write,
        instance: KeyHash([instance; 16]),
        content: Payload::from(vec![0; bytes]),
        content_kind: PayloadKind::Data,
    };
    stage.reader.handle_arrivals(stage.now, guid(1), std::iter::once(Arrival::Sample(received)));
}

/// The cache knows none of their instances any more; the first that followed had made the reader forget the others.
#[test]
fn all_of_many_values_that_wait_follow_their_writer() {
    for (instances, waiting) in [(100, 100), (200, 10)] {
        let mut stage = separated(Reliability::RELIABLE);
        (0..instances).chain(0..waiting).for_each(|instance| stage.write(1, instance));
        stage.reader.unmatch_writer(stage.now, guid(1));
        assert_eq!((stage.taken().len(), stage.reader.cache().instances()), (usize::from(instances), 0));
        stage.now += SPAN;
        stage.reader.handle_timeout(stage.now);
        assert_eq!(stage.taken().len(), usize::from(waiting), "{instances} instances");
    }
}

#[test]
fn a_value_follows_although_its_writer_has_given_the_instance_up() {
    let mut stage = separated(Reliability::RELIABLE);
    (0..2).for_each(|_| stage.write(1, 7));
    stage.put(1, 7, ChangeKind::Unregister, None);
    assert_eq!(stage.state(7), Some(InstanceState::NotAliveNoWriters));
    stage.now += SPAN;
    stage.reader.handle_timeout(stage.now);
    assert_eq!(stage.state(7), Some(InstanceState::NotAliveNoWriters), "it revives nothing");
    assert_eq!(stage.taken(), [(1, 1), (1, 2)]);
}

#[test]
fn an_owner_that_has_given_the_instance_up_keeps_nobody_from_it_while_its_value_waits() {
    let mut stage = reader_of(|qos| (qos.ownership, qos.timing.minimum_separation) = (Ownership::Exclusive, SPAN));
    (0..2).for_each(|_| stage.write(3, 7));
    stage.put(3, 7, ChangeKind::Unregister, None);
    stage.write(1, 7);
    stage.now += SPAN;
    stage.reader.handle_timeout(stage.now);
    assert_eq!((stage.taken(), stage.state(7)), (vec![(3, 1), (1, 1)], Some(InstanceState::Alive)));
}

#[test]
fn values_wait_within_the_memory_of_the_reader_and_none_is_lost() {
    const BYTES_MAX: usize = 10_000;
    let mut stage = bounded(BYTES_MAX);
    let mut numbers: Vec<i64> = Vec::new();
    let mut take = |stage: &mut Stage| {
        for _ in 0..2 {
            let footprint = stage.reader.footprint();
            assert!(footprint.waiting_bytes <= BYTES_MAX, "{footprint:?}");
            numbers.extend(stage.taken().iter().map(|(_, number)| *number));
        }
    };
    for instance in 0..100 {
        (0..2).for_each(|_| write_bytes(&mut stage, instance, 1_000));
        take(&mut stage);
    }
    assert_eq!(stage.reader.rejections().last_reason, Some(RejectReason::Memory));
    for _ in 0..100 {
        stage.now += SPAN;
        stage.reader.handle_timeout(stage.now);
        take(&mut stage);
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=200).collect::<Vec<i64>>());
    assert_eq!(stage.reader.footprint().waiting_bytes, 0);
}

#[test]
fn a_value_whose_time_has_come_leaves_its_room_to_the_next_that_waits() {
    let mut stage = bounded(10_000);
    for bytes in [8, 6_000] {
        write_bytes(&mut stage, 1, bytes);
    }
    stage.now += SPAN / 2;
    for (instance, bytes) in [(2, 8), (2, 6_000), (3, 8)] {
        write_bytes(&mut stage, instance, bytes);
    }
    assert_eq!(stage.taken(), [(1, 1), (1, 3)]);
    stage.now += SPAN / 2;
    assert!(stage.reader.handle_timeout(stage.now).data_available);
    assert_eq!(stage.taken(), [(1, 2), (1, 5)], "it holds nothing up any more");
    stage.now += SPAN / 2;
    stage.reader.handle_timeout(stage.now);
    assert_eq!(stage.taken(), [(1, 4)]);
    assert_eq!(stage.reader.rejections().total, 1);
}
