//! What nobody can have said honestly leaves the writer as it was.

use super::tests::*;
use super::*;
use crate::qos::{History, Method, Transmission, WriterQos};
use crate::types::{DATAGRAM_MIN_BYTES, EntityId, VendorId};
use crate::wire::batch::AckNackBatch;
use crate::wire::{AckNack, FragmentSet, NackFrag, SequenceSet};

const FAR: SequenceNumber = SequenceNumber(1 << 40);

fn acknack(writer: &mut Writer, base: SequenceNumber, count: u32) -> WriterOutcome {
    let (reader, entity) = (reader(1), writer.guid().entity);
    let state = SequenceSet::new(base);
    writer.handle_acknack(
        START,
        reader,
        &AckNack { reader: reader.entity, writer: entity, state, count, is_final: true },
    )
}

/// A writer that has sent three of its four samples to its one reader, of which nothing was acknowledged.
fn busy_writer() -> Writer {
    let mut writer = writer(1);
    (0..3).for_each(|_| write(&mut writer, 8));
    send(&mut writer, START);
    write(&mut writer, 8);
    writer
}

#[test]
fn what_was_not_sent_is_not_acknowledged() {
    for base in [SequenceNumber(5), SequenceNumber(6), FAR, SequenceNumber(i64::MAX)] {
        let mut writer = busy_writer();
        let refused = acknack(&mut writer, base, 1 << 30);
        assert_eq!((refused, writer.counters().implausible), (WriterOutcome::default(), 1), "{base:?}");
        assert_eq!((writer.held(), writer.readers_behind()), (4, 1), "{base:?}");
        acknack(&mut writer, SequenceNumber(3), 2);
        assert_eq!(writer.held(), 2, "the reader itself is heard, and its count is not spoiled");
    }
}

#[test]
fn batches_that_do_not_exist_are_not_acknowledged() {
    let mut writer = busy_writer();
    let (reader, entity) = (reader(1), writer.guid().entity);
    for pack in [FAR, SequenceNumber(i64::MAX)] {
        let state = SequenceSet::new(pack);
        let answer = AckNackBatch { reader: reader.entity, writer: entity, state, count: 1 << 30, is_final: true };
        writer.handle_acknack_batch(START, reader, &answer);
    }
    assert_eq!((writer.held(), writer.readers_behind(), writer.counters().implausible), (4, 1, 2));
}

#[test]
fn fragments_that_do_not_exist_are_not_asked_for() {
    let mut writer = busy_writer();
    let (reader, entity) = (reader(1), writer.guid().entity);
    for (sequence, refused) in [(0, 1), (-5, 2), (1 << 40, 3), (i64::MAX, 4), (i64::MIN, 5)] {
        let (sequence, state) = (SequenceNumber(sequence), FragmentSet::new(u32::MAX));
        let nack = NackFrag { reader: reader.entity, writer: entity, sequence, state, count: 1 << 30 };
        writer.handle_nack_frag(START, reader, &nack);
        assert_eq!(writer.counters().implausible, refused);
    }
}

/// What is said of the publisher takes its room from the fragments.
#[test]
fn the_last_of_the_smallest_fragments_of_a_publisher_that_has_an_order_is_repaired() {
    let mut writer = patient_writer(crate::time::INFINITE);
    writer.join_group(PublisherGroup::new(EntityId::UNKNOWN));
    let (datagram_bytes, receive_buffer_bytes) = (DATAGRAM_MIN_BYTES, Some(1 << 20));
    writer.match_reader(START, MatchedReader { datagram_bytes, receive_buffer_bytes, ..matched_reader(1) });
    acknowledge(&mut writer, START, 1, SequenceNumber::FIRST, &[]);
    write(&mut writer, 20_000);
    while writer.poll_transmit(START, &mut Outbox::new()) {}
    let last = u32::try_from(writer.counters().transmitted).expect("few of them");
    assert_eq!(writer.outgoing.place.sample, SequenceNumber(2), "all {last} fragments have left");
    let (reader, entity) = (reader(1), writer.guid().entity);
    let mut state = FragmentSet::new(last);
    state.insert(last);
    let nack = NackFrag { reader: reader.entity, writer: entity, sequence: SequenceNumber(1), state, count: 1 };
    writer.handle_nack_frag(START, reader, &nack);
    send(&mut writer, START);
    assert_eq!((writer.counters().implausible, writer.counters().repaired), (0, 1));
}

#[test]
fn a_reader_that_was_told_of_samples_to_come_is_put_right() {
    let mut writer = busy_writer();
    acknack(&mut writer, SequenceNumber(4), 1);
    send(&mut writer, START);
    acknack(&mut writer, SequenceNumber(5), 2);
    let (reader, entity) = (reader(1), writer.guid().entity);
    let mut state = SequenceSet::new(SequenceNumber(5));
    (5..100).for_each(|number| _ = state.insert(SequenceNumber(number)));
    let later = START + Duration::from_secs(1);
    let asked = AckNack { reader: reader.entity, writer: entity, state, count: 3, is_final: false };
    let before = writer.counters().heartbeats;
    writer.handle_acknack(later, reader, &asked);
    send(&mut writer, later);
    assert_eq!(writer.counters().heartbeats, before + 1);
    writer.handle_acknack(later, reader, &AckNack { count: 4, ..asked });
    send(&mut writer, later);
    assert_eq!(writer.counters().heartbeats, before + 1, "but not as often as it asks");
}

#[test]
fn a_reader_that_is_beyond_all_samples_is_put_right() {
    let mut writer = busy_writer();
    acknack(&mut writer, SequenceNumber(4), 1);
    send(&mut writer, START);
    let (later, entity, before) = (START + Duration::from_secs(1), writer.guid().entity, writer.counters().heartbeats);
    let acknowledged = writer.acknowledged_by(reader(1));
    let beyond = |count| {
        let state = SequenceSet::at(FAR);
        AckNack { reader: reader(1).entity, writer: entity, state, count, is_final: false }
    };
    for count in 2..5 {
        writer.handle_acknack(later, reader(1), &beyond(count));
        send(&mut writer, later);
    }
    assert_eq!(writer.counters().heartbeats, before + 1, "but not as often as it asks");
    assert_eq!(writer.acknowledged_by(reader(1)), acknowledged);
}

#[test]
fn a_sample_that_is_whole_is_repeated_for_a_reader_that_asks_for_parts_of_it() {
    let mut writer = busy_writer();
    let (reader, entity) = (reader(1), writer.guid().entity);
    let mut state = FragmentSet::new(2);
    state.insert(2);
    let nack = NackFrag { reader: reader.entity, writer: entity, sequence: SequenceNumber(1), state, count: 1 };
    writer.handle_nack_frag(START, reader, &nack);
    send(&mut writer, START);
    assert_eq!(writer.counters().repaired, 1);
}

#[test]
fn what_is_implausible_proves_no_match() {
    let mut writer = patient_writer(crate::time::INFINITE);
    writer.match_reader(START, MatchedReader { vendor: VendorId([1, 16]), ..matched_reader(1) });
    send(&mut writer, START);
    acknack(&mut writer, FAR, 7);
    assert!(writer.readers.at(0).must_prove_itself());
}

/// What follows the last pack sent is gone since it was overwritten: the next pack there is has the next number, and begins later.
#[test]
fn an_answer_in_batches_to_what_was_sent_is_believed_although_the_next_batch_begins_later() {
    let (guid, transmission) = (writer(0).guid(), Transmission::by(Method::batch()));
    let qos = WriterQos { history: History::KeepLast(1), transmission, ..WriterQos::default() };
    let mut writer = Writer::new(guid, qos.into(), &WriterOptions::default());
    writer.match_reader(START, matched_reader(1));
    send(&mut writer, START);
    for _ in 0..20 {
        write(&mut writer, 1_400);
        writer.flush();
        send(&mut writer, START);
    }
    let unsent = writer.outgoing.place.sample;
    assert!(unsent < writer.history.first(), "the window is closed, and what follows is overwritten");
    let state = SequenceSet::new(writer.history.pack_of(unsent));
    let (entity, count) = (guid.entity, 1);
    let answer = AckNackBatch { reader: reader(1).entity, writer: entity, state, count, is_final: true };
    writer.handle_acknack_batch(START, reader(1), &answer);
    assert_eq!(writer.acknowledged_by(reader(1)), Some(unsent.previous()));
    send(&mut writer, START);
    assert_eq!(writer.outgoing.place.sample, writer.last().next());
}
