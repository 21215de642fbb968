//! Laws of OWNERSHIP, DESTINATION_ORDER, TIME_BASED_FILTER and DEADLINE at the reader.

use super::tests::{READER, matched_writer, number};
use super::*;
use crate::history::ReadFilter;
use crate::history::{ChangeKind, InstanceState, PayloadKind};
use crate::payload::Payload;
use crate::qos::{DestinationOrder, History, Ownership, ReaderTiming, Reliability, WriterOwnership, WriterQos};
use crate::time::{EpochOffset, Timestamp};
use crate::types::{EntityId, GuidPrefix};

pub(super) const SPAN: Duration = Duration::from_millis(100);
const MILLI: Duration = Duration::from_millis(1);

/// A keyed reader with writers numbered from 1, each of which is as strong as its number unless a test says otherwise.
pub(super) struct Stage {
    pub(super) now: Instant,
    pub(super) reader: Reader,
    /// The last number of each writer.
    pub(super) sequences: [i64; 8],
}

pub(super) fn guid(writer: u8) -> Guid {
    Guid::new(GuidPrefix([writer; 12]), EntityId([0, 0, 1, 2]))
}

pub(super) fn reader_of(change: impl FnOnce(&mut ReaderQos)) -> Stage {
    let mut qos = ReaderQos { reliability: Reliability::RELIABLE, history: History::KeepAll, ..ReaderQos::default() };
    change(&mut qos);
    qos.check().expect("a legal QoS");
    let reader = Reader::new(READER, qos.into(), Keyed::Yes, ReassemblyBudget::new(1 << 20));
    let mut stage = Stage { now: Instant::from_nanos(1_000_000_000), reader, sequences: [0; 8] };
    (1..4).for_each(|writer| stage.join(writer, i32::from(writer)));
    stage
}

impl Stage {
    fn join(&mut self, writer: u8, strength: i32) {
        let qos = WriterQos { ownership: WriterOwnership::Exclusive { strength }, ..WriterQos::default() };
        let matched = MatchedWriter { guid: guid(writer), qos: qos.into(), ..matched_writer() };
        self.reader.match_writer(self.now, matched);
    }

    pub(super) fn put(&mut self, writer: u8, instance: u8, kind: ChangeKind, stamp: Option<u64>) {
        self.sequences[usize::from(writer)] += 1;
        let received = Received {
            coherent_set: crate::types::SequenceNumber::ZERO,
            related: None,
            sequence: number(self.sequences[usize::from(writer)]),
            timestamp: stamp.map(|nanos| Timestamp::from_unix(Duration::from_nanos(nanos))),
            kind,
            instance: KeyHash([instance; 16]),
            content: Payload::from(vec![0, 1, 0, 0, writer, instance, 0, 0]),
            content_kind: if kind == ChangeKind::Write { PayloadKind::Data } else { PayloadKind::Key },
        };
        self.reader.handle_arrivals(self.now, guid(writer), std::iter::once(Arrival::Sample(received)));
    }

    pub(super) fn write(&mut self, writer: u8, instance: u8) {
        self.put(writer, instance, ChangeKind::Write, None);
    }

    /// The writers and numbers of the samples that can be taken.
    pub(super) fn taken(&mut self) -> Vec<(u8, i64)> {
        let (mut taken, now) = (Vec::new(), self.now);
        self.reader.take(|| now, usize::MAX, &ReadFilter::ALL, &mut taken);
        taken.retain(|sample| sample.info.valid);
        taken.iter().map(|sample| (sample.info.writer.prefix.0[0], sample.info.sequence.0)).collect()
    }

    pub(super) fn state(&self, instance: u8) -> Option<InstanceState> {
        self.reader.cache().instance_state(KeyHash([instance; 16]))
    }
}

fn exclusive() -> Stage {
    reader_of(|qos| qos.ownership = Ownership::Exclusive)
}

#[test]
fn an_instance_comes_from_its_strongest_writer_only() {
    let mut stage = exclusive();
    for writer in [1, 2, 1, 3, 2, 1, 3] {
        stage.write(writer, 7);
    }
    assert_eq!(stage.taken(), [(1, 1), (2, 1), (3, 1), (3, 2)]);
    stage.write(1, 8);
    assert_eq!(stage.taken(), [(1, 4)], "each instance by itself");
    assert_eq!(stage.reader.counters().withheld, 3);
}

#[test]
fn among_equals_the_lowest_guid_owns() {
    let mut stage = exclusive();
    (1..4).for_each(|writer| stage.join(writer, 5));
    for writer in [2, 3, 1, 2, 1] {
        stage.write(writer, 7);
    }
    assert_eq!(stage.taken(), [(2, 1), (1, 1), (1, 2)]);
}

#[test]
fn a_strength_that_changes_counts_at_once() {
    let mut stage = exclusive();
    stage.write(3, 7);
    stage.join(3, 0);
    stage.write(1, 7);
    stage.write(3, 7);
    assert_eq!(stage.taken(), [(3, 1), (1, 1)]);
}

/// How instance 7 loses writer 3.
const LOSSES: [fn(&mut Stage); 3] = [
    |stage| stage.put(3, 7, ChangeKind::Unregister, None),
    |stage| _ = stage.reader.unmatch_writer(stage.now, guid(3)),
    |stage| _ = stage.reader.writer_not_alive(stage.now, guid(3)),
];

#[test]
fn the_next_writer_follows_when_the_owner_gives_up_leaves_or_is_not_alive() {
    for lose in LOSSES {
        let mut stage = exclusive();
        stage.write(3, 7);
        stage.write(2, 7);
        lose(&mut stage);
        assert_eq!(stage.state(7), Some(InstanceState::Alive), "the weaker writer still writes it");
        stage.write(2, 7);
        assert_eq!(stage.taken(), [(3, 1), (2, 2)]);
    }
    let mut stage = exclusive();
    stage.write(3, 7);
    stage.reader.writer_not_alive(stage.now, guid(3));
    stage.write(2, 7);
    stage.reader.writer_alive(guid(3));
    stage.write(3, 7);
    stage.write(2, 7);
    assert_eq!(stage.taken(), [(3, 1), (2, 1), (3, 2)], "the stronger one is back");
}

#[test]
fn the_strongest_of_all_that_write_an_instance_follows_its_owner() {
    for lose in LOSSES {
        let mut stage = exclusive();
        for writer in [2, 3, 2, 1] {
            stage.write(writer, 7);
        }
        lose(&mut stage);
        stage.write(1, 7);
        stage.write(2, 7);
        stage.put(2, 7, ChangeKind::Unregister, None);
        stage.write(1, 7);
        assert_eq!(stage.taken(), [(2, 1), (3, 1), (2, 3), (1, 3)]);
    }
    let mut stage = exclusive();
    stage.write(3, 7);
    stage.put(3, 7, ChangeKind::Unregister, None);
    stage.write(1, 7);
    assert_eq!(stage.taken(), [(3, 1), (1, 1)], "the second writer is there and does not write it");
}

#[test]
fn only_the_owner_deletes_an_instance_and_it_stays_the_owner() {
    let mut stage = exclusive();
    stage.write(3, 7);
    stage.write(2, 7);
    stage.put(2, 7, ChangeKind::Dispose, None);
    assert_eq!(stage.state(7), Some(InstanceState::Alive));
    stage.put(2, 7, ChangeKind::DisposeUnregister, None);
    assert_eq!(stage.state(7), Some(InstanceState::Alive));
    stage.put(3, 7, ChangeKind::Dispose, None);
    assert_eq!(stage.state(7), Some(InstanceState::NotAliveDisposed));
    stage.write(1, 7);
    assert_eq!(stage.taken(), [(3, 1)]);
}

#[test]
fn an_owner_that_misses_the_deadline_loses_the_instance() {
    let mut stage = reader_of(|qos| (qos.ownership, qos.timing.deadline) = (Ownership::Exclusive, SPAN));
    stage.write(3, 7);
    stage.now += SPAN - MILLI;
    stage.write(1, 7);
    stage.now += MILLI;
    assert!(stage.reader.handle_timeout(stage.now).deadline_missed, "samples of others do not count");
    stage.write(1, 7);
    assert_eq!(stage.taken(), [(3, 1), (1, 2)], "although the owner is stronger and still writes it");
}

#[test]
fn what_is_withheld_is_acknowledged_and_neither_lost_nor_rejected() {
    let mut stage = exclusive();
    stage.write(3, 7);
    (0..5).for_each(|_| stage.write(1, 7));
    let counters = stage.reader.counters();
    assert_eq!((counters.lost, counters.rejected, counters.withheld, counters.received), (0, 0, 5, 1));
    let proxy = stage.reader.writers.place(guid(1)).map(|place| stage.reader.writers[place].window.next());
    assert_eq!(proxy, Some(number(6)));
}

#[test]
fn samples_older_at_their_source_are_dropped_and_all_readers_end_with_the_same_value() {
    let stamps = [(1, 20), (2, 10), (1, 30), (2, 30), (3, 30), (2, 31)];
    let mut last = Vec::new();
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [1, 3, 0, 4, 2]] {
        let mut stage = reader_of(|qos| qos.destination_order = DestinationOrder::BySource);
        for place in order {
            let (writer, stamp) = stamps[place];
            stage.put(writer, 7, ChangeKind::Write, Some(stamp));
        }
        last.push(stage.taken().last().map(|(writer, _)| *writer));
    }
    assert_eq!(last, [Some(1); 3]);
    let mut stage = reader_of(|qos| qos.destination_order = DestinationOrder::BySource);
    for (writer, stamp) in stamps {
        stage.put(writer, 7, ChangeKind::Write, Some(stamp));
    }
    assert_eq!(stage.taken(), [(1, 1), (1, 2), (2, 3)]);
    stage.put(3, 7, ChangeKind::Dispose, Some(5));
    assert_eq!(stage.state(7), Some(InstanceState::Alive), "an older end ends nothing");
}

/// A board with a wrong clock, or whoever makes a sample up, does not silence an instance for good.
#[test]
fn a_sample_from_the_future_is_followed_by_those_of_today() {
    let mut stage = reader_of(|qos| qos.destination_order = DestinationOrder::BySource);
    let (today, year) = (50 * 31_536_000_000_000_000_u64, 31_536_000_000_000_000_u64);
    let put = |stage: &mut Stage, stamp: u64| {
        stage.put(1, 1, ChangeKind::Write, Some(stamp));
        stage.taken().len()
    };
    assert_eq!(put(&mut stage, today + 20 * year), 1);
    assert_eq!(put(&mut stage, today), 0, "nobody knows what time it is");
    stage.reader.set_epoch(Some(EpochOffset::new(stage.now, Timestamp::from_unix(Duration::from_nanos(today)))));
    assert_eq!(put(&mut stage, today + 1), 1);
    assert_eq!(put(&mut stage, today), 0, "it is older");
    assert_eq!(put(&mut stage, today + 20_000_000_000), 1);
    assert_eq!(put(&mut stage, today + 2), 0, "clocks differ a little");
    // Where the reader's own clock is wrong, sources that agree keep their order.
    stage.reader.set_epoch(Some(EpochOffset::new(stage.now, Timestamp::from_unix(Duration::from_nanos(year)))));
    assert_eq!(put(&mut stage, today + 3), 0);
}

pub(super) fn separated(reliability: Reliability) -> Stage {
    reader_of(|qos| {
        qos.reliability = reliability;
        qos.timing = ReaderTiming { minimum_separation: SPAN, ..ReaderTiming::default() };
    })
}

#[test]
fn samples_of_an_instance_come_no_closer_than_the_minimum_separation() {
    let mut stage = separated(Reliability::BestEffort);
    let mut times = Vec::new();
    for _ in 0..100 {
        stage.write(1, 7);
        stage.write(1, 8);
        times.extend(stage.taken().iter().map(|_| stage.now));
        stage.now += MILLI * 30;
    }
    assert_eq!(times.len(), 2 * 25, "every fourth of each");
    assert!(times.chunks(2).collect::<Vec<_>>().windows(2).all(|two| two[1][0].since(two[0][0]) >= SPAN));
}

#[test]
fn a_reliable_reader_ends_with_the_last_value() {
    let mut stage = separated(Reliability::RELIABLE);
    (0..4).for_each(|_| stage.write(1, 7));
    assert_eq!(stage.taken(), [(1, 1)]);
    assert!(stage.reader.poll_timeout().is_some_and(|due| due <= stage.now + SPAN));
    stage.now += SPAN;
    assert!(stage.reader.handle_timeout(stage.now).data_available);
    assert_eq!(stage.taken(), [(1, 4)]);
    stage.write(1, 7);
    stage.now += SPAN;
    stage.reader.handle_timeout(stage.now);
    assert_eq!(stage.taken(), [(1, 5)], "that one began a new period");
    let mut stage = separated(Reliability::BestEffort);
    (0..4).for_each(|_| stage.write(1, 7));
    stage.now += SPAN;
    stage.reader.handle_timeout(stage.now);
    assert_eq!(stage.taken(), [(1, 1)], "best effort waits for the next one");
}

#[test]
fn what_waits_of_a_writer_that_is_not_alive_brings_no_instance_back() {
    let limited = || reader_of(|qos| qos.resource_limits.max_samples = Some(1));
    for (name, mut stage) in [("for its time", separated(Reliability::RELIABLE)), ("for room", limited())] {
        (0..2).for_each(|_| stage.write(1, 7));
        stage.reader.writer_not_alive(stage.now, guid(1));
        let ended = Some(InstanceState::NotAliveNoWriters);
        assert_eq!((stage.state(7), stage.taken()), (ended, vec![(1, 1)]), "{name}");
        stage.now += SPAN;
        stage.reader.handle_timeout(stage.now);
        assert_eq!((stage.state(7), stage.taken()), (ended, vec![(1, 2)]), "{name}");
    }
    let mut stage = separated(Reliability::RELIABLE);
    (0..2).for_each(|_| stage.write(1, 7));
    stage.reader.writer_not_alive(stage.now, guid(1));
    stage.reader.writer_alive(guid(1));
    stage.now += SPAN;
    stage.reader.handle_timeout(stage.now);
    assert_eq!(stage.state(7), Some(InstanceState::Alive), "it has shown a sign of life since");
    let mut stage = separated(Reliability::RELIABLE);
    (0..2).for_each(|_| stage.write(1, 7));
    stage.put(1, 7, ChangeKind::Unregister, None);
    stage.reader.writer_not_alive(stage.now, guid(1));
    stage.reader.writer_alive(guid(1));
    stage.now += SPAN;
    stage.reader.handle_timeout(stage.now);
    assert_eq!(stage.state(7), Some(InstanceState::NotAliveNoWriters), "it has given the instance up");
}

#[test]
fn what_waits_for_room_and_then_for_its_time_brings_no_instance_back() {
    let mut stage = reader_of(|qos| {
        qos.resource_limits.max_samples = Some(1);
        qos.timing = ReaderTiming { minimum_separation: SPAN, ..ReaderTiming::default() };
    });
    stage.write(2, 9);
    (0..2).for_each(|_| stage.write(1, 7));
    stage.reader.writer_not_alive(stage.now, guid(1));
    assert_eq!(stage.taken(), [(2, 1)]);
    assert_eq!(stage.taken(), [(1, 1)]);
    stage.now += SPAN;
    stage.reader.handle_timeout(stage.now);
    assert_eq!(stage.state(7), Some(InstanceState::NotAliveNoWriters));
    assert_eq!(stage.taken(), [(1, 2)]);
}

#[test]
fn the_end_of_a_writer_is_news_where_it_takes_the_place_of_a_value() {
    let mut stage = reader_of(|qos| {
        (qos.history, qos.resource_limits.max_samples_per_instance) = (History::KeepLast(1), Some(1));
    });
    stage.write(1, 7);
    assert!(stage.reader.writer_not_alive(stage.now, guid(1)).data_available);
    assert!(!stage.reader.writer_not_alive(stage.now, guid(1)).data_available, "it is told once");
}

#[test]
fn the_end_of_an_instance_is_told_at_once_and_overtakes_nothing() {
    let mut stage = separated(Reliability::RELIABLE);
    (0..2).for_each(|_| stage.write(1, 7));
    stage.put(1, 7, ChangeKind::Dispose, None);
    assert_eq!(stage.state(7), Some(InstanceState::NotAliveDisposed));
    stage.now += SPAN;
    stage.reader.handle_timeout(stage.now);
    assert_eq!((stage.taken(), stage.state(7)), (vec![(1, 1)], Some(InstanceState::NotAliveDisposed)));
}

#[test]
fn each_instance_without_a_sample_in_time_is_reported_until_it_ends() {
    let mut stage = reader_of(|qos| qos.timing.deadline = SPAN);
    stage.write(1, 7);
    stage.write(2, 8);
    stage.now += SPAN / 2;
    stage.write(2, 8);
    stage.now += SPAN / 2;
    assert!(stage.reader.handle_timeout(stage.now).deadline_missed);
    let missed = stage.reader.deadline_missed();
    assert_eq!((missed.total, missed.last_instance), (1, Some(KeyHash([7; 16]))));
    stage.put(1, 7, ChangeKind::Dispose, None);
    stage.reader.unmatch_writer(stage.now, guid(2));
    stage.now += SPAN * 5;
    assert!(!stage.reader.handle_timeout(stage.now).deadline_missed, "nothing is expected of what has ended");
}

#[test]
fn instances_without_end_leave_nothing_behind() {
    let mut stage = reader_of(|qos| {
        qos.ownership = Ownership::Exclusive;
        qos.timing = ReaderTiming { deadline: SPAN, minimum_separation: SPAN / 2, ..ReaderTiming::default() };
    });
    for round in 0..20_000_u32 {
        stage.sequences[1] += 2;
        let mut instance = [0; 16];
        instance[..4].copy_from_slice(&round.to_be_bytes());
        for (back, kind) in [(1, ChangeKind::Write), (0, ChangeKind::DisposeUnregister)] {
            let received = Received {
                coherent_set: crate::types::SequenceNumber::ZERO,
                related: None,
                sequence: number(stage.sequences[1] - back),
                timestamp: None,
                kind,
                instance: KeyHash(instance),
                content: Payload::from(vec![0, 1, 0, 0]),
                content_kind: PayloadKind::Data,
            };
            stage.reader.handle_arrivals(stage.now, guid(1), std::iter::once(Arrival::Sample(received)));
        }
        stage.taken();
    }
    let held = stage.reader.handover.admission.as_ref().map(|admission| admission.held());
    assert!(held <= Some(200), "{held:?}");
}

#[test]
fn a_writer_that_gives_an_instance_up_does_not_meet_the_deadline_of_it() {
    let mut stage = reader_of(|qos| qos.timing.deadline = SPAN);
    stage.write(1, 7);
    stage.write(2, 7);
    stage.now += SPAN - MILLI;
    stage.put(1, 7, ChangeKind::Unregister, None);
    assert_eq!(stage.state(7), Some(InstanceState::Alive), "another writer has it");
    stage.now += MILLI;
    assert!(stage.reader.handle_timeout(stage.now).deadline_missed);
}

#[test]
fn a_value_whose_time_has_come_waits_for_room_and_the_newest_follows() {
    for limits in [(Some(1), None), (None, Some(1))] {
        let mut stage = reader_of(|qos| {
            (qos.resource_limits.max_samples, qos.resource_limits.max_samples_per_instance) = limits;
            qos.timing = ReaderTiming { minimum_separation: SPAN, ..ReaderTiming::default() };
        });
        (0..2).for_each(|_| stage.write(1, 7));
        stage.now += SPAN;
        assert!(!stage.reader.handle_timeout(stage.now).data_available, "{limits:?}: there is no room");
        let counters = stage.reader.counters();
        assert_eq!((counters.lost, counters.rejected, counters.withheld), (0, 1, 1), "{limits:?}");
        // What comes meanwhile takes its place, and does not hold up the writer's other instances.
        (0..2).for_each(|_| stage.write(1, 7));
        assert_eq!(stage.taken(), [(1, 1)], "{limits:?}");
        assert!(stage.reader.take_refilled(), "{limits:?}: the application is told");
        assert_eq!(stage.taken(), [(1, 4)], "{limits:?}");
        assert_eq!(stage.reader.counters().rejected, 1, "{limits:?}: it counts once");
        // Its admission began a period.
        stage.write(1, 7);
        assert!(stage.taken().is_empty(), "{limits:?}");
        stage.now += SPAN;
        assert!(stage.reader.handle_timeout(stage.now).data_available, "{limits:?}");
        assert_eq!(stage.taken(), [(1, 5)], "{limits:?}");
    }
}

#[test]
fn of_many_values_without_room_each_follows_when_there_is_some() {
    let mut stage = reader_of(|qos| {
        qos.resource_limits.max_samples = Some(4);
        qos.timing = ReaderTiming { minimum_separation: SPAN, ..ReaderTiming::default() };
    });
    for instance in 0..4 {
        (0..2).for_each(|_| stage.write(1, instance));
    }
    stage.now += SPAN;
    stage.reader.handle_timeout(stage.now);
    assert_eq!(stage.reader.counters().rejected, 4);
    let (mut one, now) = (Vec::new(), stage.now);
    while stage.reader.take(|| now, 1, &ReadFilter::ALL, &mut one).count > 0 {}
    let numbers: Vec<i64> = one.iter().map(|sample| sample.info.sequence.0).collect();
    assert_eq!(numbers.iter().filter(|number| **number % 2 == 0).count(), 4, "the last value of each: {numbers:?}");
    assert_eq!(numbers.len(), 8);
}

#[test]
fn the_end_of_an_instance_follows_its_value_when_both_wait_for_room() {
    let mut stage = reader_of(|qos| {
        qos.resource_limits.max_samples = Some(2);
        qos.timing = ReaderTiming { minimum_separation: SPAN, ..ReaderTiming::default() };
    });
    (0..2).for_each(|_| stage.write(1, 7));
    stage.write(2, 8);
    stage.now += SPAN;
    stage.reader.handle_timeout(stage.now);
    let (mut taken, now) = (Vec::new(), stage.now);
    stage.put(1, 7, ChangeKind::Dispose, None);
    assert_eq!(stage.state(7), Some(InstanceState::Alive), "the end waits behind the value");
    stage.reader.take(|| now, usize::MAX, &ReadFilter::ALL, &mut taken);
    assert_eq!(stage.state(7), Some(InstanceState::NotAliveDisposed));
    assert_eq!(stage.taken(), [(1, 2)], "value and end follow in their order");
}

#[test]
fn an_older_value_or_a_weaker_writer_does_not_replace_one_that_waits() {
    let mut stage = reader_of(|qos| {
        qos.destination_order = DestinationOrder::BySource;
        qos.timing = ReaderTiming { minimum_separation: SPAN, ..ReaderTiming::default() };
    });
    for (writer, stamp) in [(1, 10), (2, 30), (3, 20)] {
        stage.put(writer, 7, ChangeKind::Write, Some(stamp));
    }
    stage.now += SPAN;
    stage.reader.handle_timeout(stage.now);
    assert_eq!(stage.taken(), [(1, 1), (2, 1)]);
    let mut stage = reader_of(|qos| {
        qos.ownership = Ownership::Exclusive;
        qos.timing = ReaderTiming { minimum_separation: SPAN, ..ReaderTiming::default() };
    });
    for writer in [1, 3, 2, 1] {
        stage.write(writer, 7);
    }
    stage.now += SPAN;
    stage.reader.handle_timeout(stage.now);
    assert_eq!(stage.taken(), [(1, 1), (3, 1)]);
}

#[test]
fn a_take_wakes_the_participant_only_for_what_came_too_early_or_for_an_answer() {
    let full = |qos: &mut ReaderQos| qos.resource_limits.max_samples = Some(1);
    let arm = |stage: &mut Stage| {
        let now = stage.now;
        stage.reader.take(|| now, usize::MAX, &ReadFilter::ALL, &mut Vec::new()).arm
    };
    let mut stage = reader_of(|qos| {
        full(qos);
        qos.timing = ReaderTiming { minimum_separation: SPAN, ..ReaderTiming::default() };
    });
    (0..2).for_each(|_| stage.write(1, 7));
    stage.now += SPAN;
    stage.reader.handle_timeout(stage.now);
    stage.reader.disarm();
    assert_eq!(arm(&mut stage), Some(stage.now), "the application is to be told, though no writer waits for an answer");
    stage.now += SPAN;
    stage.reader.handle_timeout(stage.now);
    stage.reader.disarm();
    assert_eq!(arm(&mut stage), None, "nothing had waited");
    let mut stage = reader_of(full);
    (0..4).for_each(|_| stage.write(1, 7));
    stage.reader.disarm();
    assert_eq!(arm(&mut stage), Some(stage.now), "the writer is answered");
    assert_eq!(arm(&mut stage), None, "that is known");
}

#[test]
fn the_end_by_one_writer_leaves_what_waits_of_another() {
    let mut stage = separated(Reliability::RELIABLE);
    stage.write(2, 7);
    stage.write(1, 7);
    stage.put(2, 7, ChangeKind::Unregister, None);
    stage.write(1, 7);
    assert_eq!(stage.taken(), [(2, 1)], "the period goes on");
    stage.now += SPAN;
    stage.reader.handle_timeout(stage.now);
    assert_eq!(stage.taken(), [(1, 2)]);
    assert_eq!(stage.state(7), Some(InstanceState::Alive));
}

#[test]
fn a_value_that_follows_its_writer_revives_nothing() {
    let departures: [fn(&mut Stage); 2] = [
        |stage| _ = stage.reader.unmatch_writer(stage.now, guid(1)),
        |stage| {
            // Another one keeps the instance alive until the value is there.
            stage.write(2, 7);
            stage.write(1, 7);
            stage.put(1, 7, ChangeKind::Unregister, None);
            stage.reader.unmatch_writer(stage.now, guid(2));
        },
    ];
    for depart in departures {
        let mut stage = separated(Reliability::RELIABLE);
        stage.write(1, 7);
        stage.write(1, 7);
        depart(&mut stage);
        stage.now += SPAN;
        stage.reader.handle_timeout(stage.now);
        assert_eq!(stage.state(7), Some(InstanceState::NotAliveNoWriters));
        assert_eq!(stage.taken().len(), 2);
    }
}

#[test]
fn a_late_end_still_gives_the_instance_up() {
    let mut stage = reader_of(|qos| qos.destination_order = DestinationOrder::BySource);
    stage.put(1, 7, ChangeKind::Write, Some(10));
    stage.put(2, 7, ChangeKind::Write, Some(30));
    stage.put(1, 7, ChangeKind::DisposeUnregister, Some(20));
    assert_eq!(stage.state(7), Some(InstanceState::Alive));
    stage.put(2, 7, ChangeKind::Unregister, Some(40));
    assert_eq!(stage.state(7), Some(InstanceState::NotAliveNoWriters));
}

#[test]
fn the_end_of_an_instance_that_is_not_known_needs_no_room() {
    let mut stage = reader_of(|qos| qos.resource_limits.max_instances = Some(1));
    stage.write(1, 7);
    assert_eq!(stage.taken(), [(1, 1)]);
    stage.put(1, 8, ChangeKind::Unregister, None);
    stage.write(1, 7);
    assert_eq!(stage.taken(), [(1, 3)]);
}
