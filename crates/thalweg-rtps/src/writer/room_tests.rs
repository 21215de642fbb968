//! Laws of the room that acknowledgements make.

use super::large_repair::Cut;
use super::repairs::Repairs;
use super::tests::{START, acknowledge, matched_reader, reader, send, write, writer};
use super::*;
use crate::qos::{Durability, History, Method, Transmission, WriterQos};
use crate::types::{EntityId, GuidPrefix, Keyed};
use crate::wire::{AckNack, FragmentSet, NackFrag, SequenceSet};

/// A KEEP_ALL writer of 100 samples that is full, with one reader that has been sent all of them.
fn full_writer() -> Writer {
    let guid = Guid::new(GuidPrefix([99; 12]), EntityId::user_writer(1, Keyed::No));
    let transmission = Transmission::by(Method::Immediate);
    let mut qos = WriterQos { history: History::KeepAll, transmission, ..WriterQos::default() };
    qos.resource_limits.max_samples = Some(100);
    let mut writer = Writer::new(guid, &qos, &WriterOptions::default());
    writer.match_reader(START, matched_reader(1));
    acknowledge(&mut writer, START, 1, SequenceNumber(1), &[]);
    (0..100).for_each(|_| write(&mut writer, 10));
    send(&mut writer, START);
    let change = NewChange {
        kind: ChangeKind::Write,
        instance: KeyHash::default(),
        timestamp: None,
        payload: Payload::from(vec![0; 10]),
    };
    assert!(writer.write(START, change).is_err(), "the history is full");
    writer
}

/// Whether a write that waits is told of room when the reader has everything below `base`.
fn tells_of_room(writer: &mut Writer, base: i64) -> bool {
    let acknack = AckNack {
        reader: reader(1).entity,
        writer: writer.guid().entity,
        state: SequenceSet::new(SequenceNumber(base)),
        count: u32::try_from(base).expect("small"),
        is_final: true,
    };
    writer.handle_acknack(START, reader(1), &acknack).space
}

#[test]
fn a_write_that_waits_is_told_when_a_quarter_of_the_history_is_free() {
    let mut writer = full_writer();
    assert!(!tells_of_room(&mut writer, 25), "76 of 100 are left");
    assert!(tells_of_room(&mut writer, 26), "75 are left");
}

#[test]
fn what_was_sent_waits_no_longer_to_be_sent() {
    let mut writer = writer(1);
    (0..10).for_each(|_| write(&mut writer, 1_000));
    let unsent = writer.ahead.unsent_bytes;
    assert!(unsent >= 10_000, "{unsent} bytes wait");
    writer.note_unsent(1_000);
    assert_eq!(writer.ahead.unsent_bytes, unsent - 1_000, "the others still wait");
    send(&mut writer, START);
    assert_eq!(writer.ahead.unsent_bytes, 0);
}

#[test]
fn repairs_leave_in_bursts_however_many_outboxes_they_need() {
    let guid = Guid::new(GuidPrefix([99; 12]), EntityId::user_writer(1, Keyed::No));
    let (durability, transmission) = (Durability::TransientLocal, Transmission::by(Method::Immediate));
    let qos = WriterQos { history: History::KeepAll, durability, transmission, ..WriterQos::default() };
    let mut writer = Writer::new(guid, &qos, &WriterOptions::default());
    (0..256).for_each(|_| write(&mut writer, 1_300));
    let late = MatchedReader { wants_history: true, receive_buffer_bytes: Some(1 << 20), ..matched_reader(1) };
    writer.match_reader(START, late);
    writer.readers.at_mut(0).congestion = None;
    send(&mut writer, START);
    let missing: Vec<i64> = (1..=256).collect();
    acknowledge(&mut writer, START, 1, SequenceNumber(1), &missing);
    let (mut now, mut largest) = (START, 0);
    for _ in 0..1_000 {
        let (mut burst, mut more) = (0, true);
        while more {
            let mut outbox = Outbox::new();
            more = writer.poll_transmit(now, &mut outbox);
            burst += outbox.len();
        }
        largest = largest.max(burst);
        now += Duration::from_millis(1);
    }
    let repaired = writer.counters().repaired;
    assert!((65..=160).contains(&largest), "{largest} datagrams left at once");
    assert_eq!(repaired, 256);
}

#[test]
fn what_was_sent_before_a_reader_came_is_not_lost_on_its_path() {
    let guid = Guid::new(GuidPrefix([99; 12]), EntityId::user_writer(1, Keyed::No));
    let (durability, transmission) = (Durability::TransientLocal, Transmission::by(Method::Immediate));
    let qos = WriterQos { history: History::KeepAll, durability, transmission, ..WriterQos::default() };
    let mut writer = Writer::new(guid, &qos, &WriterOptions::default());
    writer.match_reader(START, matched_reader(1));
    acknowledge(&mut writer, START, 1, SequenceNumber(1), &[]);
    write(&mut writer, 1_000_000);
    while writer.poll_transmit(START, &mut Outbox::new()) {}
    let sent = writer.outgoing.place.fragment;
    assert!((2..600).contains(&sent), "{sent} fragments left");
    writer.match_reader(START, MatchedReader { wants_history: true, ..matched_reader(2) });
    let mut ask = |count, fragments: std::ops::Range<u32>| {
        let mut state = FragmentSet::new(fragments.start);
        fragments.for_each(|number| _ = state.insert(number));
        let nack =
            NackFrag { reader: reader(2).entity, writer: guid.entity, sequence: SequenceNumber(1), state, count };
        writer.handle_nack_frag(START, reader(2), &nack);
        writer.readers.at(1).congestion.as_ref().expect("it is on another host").lost()
    };
    assert_eq!(ask(1, 1..sent), 0);
}

#[test]
fn a_fragment_is_lost_once_each_time_that_it_was_sent() {
    let cut = Cut { fragment_bytes: 1_000, fragments: 100 };
    let mut repairs = Repairs::default();
    let mut ask = |micros: u64, lost_meanwhile: bool| {
        let mut wanted = FragmentSet::new(1);
        wanted.insert(7);
        let now = START + Duration::from_micros(micros);
        let lost = repairs.request_fragments(now, SequenceNumber(1), cut, &wanted, Duration::from_micros(10), |_| true);
        repairs.large.iter_mut().for_each(|large| match lost_meanwhile {
            true => large.record(now, 7, Duration::from_micros(10)),
            false => large.clear(),
        });
        lost
    };
    assert_eq!([ask(0, false), ask(100, false), ask(200, true), ask(300, true), ask(400, false)], [1, 0, 0, 1, 1]);
}
