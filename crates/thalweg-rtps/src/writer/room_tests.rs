//! Laws of the room that acknowledgements make.

use super::large_repair::Cut;
use super::repairs::Repairs;
use super::tests::{
    START, acknowledge, collecting_for, join, matched_reader, reader, send, write, write_stamped, writer,
};
use super::*;
use crate::qos::{Durability, History, Method, ReaderQos, Transmission, WriterQos};
use crate::types::{EntityId, GuidPrefix, Keyed};
use crate::wire::{AckNack, FragmentSet, NackFrag, SequenceSet};

/// The QoS of a reader that requests what was written before it came.
fn wanting_history() -> Arc<ReaderQos> {
    Arc::new(ReaderQos { durability: Durability::TransientLocal, ..ReaderQos::default() })
}

/// A KEEP_ALL writer of 100 samples that is full, with one reader that has been sent all of them.
fn full_writer() -> Writer {
    let guid = Guid::new(GuidPrefix([99; 12]), EntityId::user_writer(1, Keyed::No));
    let transmission = Transmission::by(Method::Immediate);
    let mut qos = WriterQos { history: History::KeepAll, transmission, ..WriterQos::default() };
    qos.resource_limits.max_samples = Some(100);
    let mut writer = Writer::new(guid, qos.into(), &WriterOptions::default());
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

/// Whether a write that waits is told of room when everything below `base` is acknowledged.
fn tells_of_room(writer: &mut Writer, base: i64) -> bool {
    let state = SequenceSet::new(SequenceNumber(base));
    let count = u32::try_from(writer.counters().acknacks + 1).expect("few of them");
    let acknack = AckNack { reader: reader(1).entity, writer: writer.guid().entity, state, count, is_final: true };
    writer.handle_acknack(START, reader(1), &acknack).space
}

#[test]
fn a_write_that_waits_is_told_when_a_quarter_of_the_history_is_free() {
    let mut writer = full_writer();
    assert!(!tells_of_room(&mut writer, 25), "76 of 100 are left");
    assert!(tells_of_room(&mut writer, 26), "75 are left");
}

/// A reader that stalls may never make a quarter of the room.
#[test]
fn a_write_that_waits_gets_what_room_there_is_when_nothing_more_comes() {
    let mut writer = full_writer();
    assert!(!tells_of_room(&mut writer, 20), "81 of 100 are left");
    let due = writer.poll_timeout().expect("it asks again");
    assert!(due <= START + HEARTBEAT_PERIOD_REFUSED_MAX);
    assert!(writer.handle_timeout(due).space);
    let mut writer = full_writer();
    let due = writer.poll_timeout().expect("it asks again");
    assert!(!writer.handle_timeout(due).space, "there is none");
}

#[test]
fn a_write_that_waits_for_room_of_its_instance_is_told_when_that_is_there() {
    let guid = Guid::new(GuidPrefix([99; 12]), EntityId::user_writer(1, Keyed::Yes));
    let transmission = Transmission::by(Method::Immediate);
    let mut qos = WriterQos { history: History::KeepAll, transmission, ..WriterQos::default() };
    qos.resource_limits.max_samples_per_instance = Some(4);
    let mut writer = Writer::new(guid, qos.into(), &WriterOptions::default());
    writer.match_reader(START, matched_reader(1));
    acknowledge(&mut writer, START, 1, SequenceNumber(1), &[]);
    let change = |instance: u8| NewChange {
        kind: ChangeKind::Write,
        instance: KeyHash([instance; 16]),
        timestamp: None,
        payload: Payload::from(vec![0; 10]),
    };
    for instance in 1..=3 {
        (0..4).for_each(|_| _ = writer.write(START, change(instance)).expect("it has room"));
    }
    send(&mut writer, START);
    assert!(writer.write(START, change(1)).is_err(), "the instance is full");
    assert!(tells_of_room(&mut writer, 5), "8 samples of others are left");
    writer.write(START, change(1)).expect("it has room");
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
    let mut writer = Writer::new(guid, qos.into(), &WriterOptions::default());
    (0..256).for_each(|_| write(&mut writer, 1_300));
    let late = MatchedReader { qos: wanting_history(), receive_buffer_bytes: Some(1 << 20), ..matched_reader(1) };
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
    let mut writer = Writer::new(guid, qos.into(), &WriterOptions::default());
    writer.match_reader(START, matched_reader(1));
    acknowledge(&mut writer, START, 1, SequenceNumber(1), &[]);
    write(&mut writer, 1_000_000);
    while writer.poll_transmit(START, &mut Outbox::new()) {}
    let sent = writer.outgoing.place.fragment;
    assert!((2..600).contains(&sent), "{sent} fragments left");
    writer.match_reader(START, MatchedReader { qos: wanting_history(), ..matched_reader(2) });
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
        let lost = repairs
            .request_fragments(now, SequenceNumber(1), cut, &wanted, Duration::from_micros(10), |_| true)
            .fragments;
        repairs.large.iter_mut().for_each(|large| match lost_meanwhile {
            true => large.record(now, 7, Duration::from_micros(10)),
            false => large.clear(),
        });
        lost
    };
    assert_eq!([ask(0, false), ask(100, false), ask(200, true), ask(300, true), ask(400, false)], [1, 0, 0, 1, 1]);
}

#[test]
fn a_write_waits_for_readers_on_its_host_while_they_move() {
    let mut writer = writer(0);
    let near = MatchedReader { on_this_host: true, receive_buffer_bytes: Some(8 << 20), ..matched_reader(1) };
    writer.match_reader(START, near);
    acknowledge(&mut writer, START, 1, SequenceNumber(1), &[]);
    let drive = |writer: &mut Writer| while writer.poll_transmit(START, &mut Outbox::new()) {};
    let mut written = 0;
    while !writer.await_readers() {
        write(&mut writer, 50_000);
        drive(&mut writer);
        written += 1;
        assert!(written < 100, "the window for the cache is never full");
    }
    let sent = writer.outgoing.place.sample;
    assert!(writer.flow.in_flight() <= 2 << 20 && SequenceNumber(written) > sent, "{written} written, sent to {sent}");
    assert!(!writer.note_movement(), "nothing has moved");
    writer.stop_awaiting_readers();
    assert!(!writer.await_readers(), "who has waited in vain goes on");
    (0..20).for_each(|_| write(&mut writer, 50_000));
    acknowledge(&mut writer, START, 1, SequenceNumber(2), &[]);
    assert!(writer.await_readers(), "the readers move: it waits again");
    let acknack = AckNack {
        reader: reader(1).entity,
        writer: writer.guid().entity,
        state: SequenceSet::new(sent),
        count: 100,
        is_final: true,
    };
    assert!(writer.handle_acknack(START, reader(1), &acknack).space, "and is told when they have followed");
    drive(&mut writer);
    (0..100).for_each(|_| write(&mut writer, 50_000));
    let far = MatchedReader { on_this_host: false, receive_buffer_bytes: Some(8 << 20), ..matched_reader(1) };
    writer.match_reader(START, far);
    drive(&mut writer);
    assert!(!writer.await_readers(), "readers on other hosts have the network between");
}

#[test]
fn samples_under_way_to_readers_on_the_same_host_fit_the_cache() {
    let by = |method: Method, bytes: usize, on_this_host: bool| {
        let receive_buffer_bytes = Some(64 << 20);
        let near = MatchedReader { on_this_host, receive_buffer_bytes, datagram_bytes: 60_000, ..matched_reader(1) };
        let mut writer = collecting_for(near, method, History::KeepAll);
        (0..(8 << 20) / bytes).for_each(|_| write_stamped(&mut writer, START, bytes));
        writer.flush();
        while writer.poll_transmit(START, &mut Outbox::new()) {}
        (writer.flow.in_flight(), writer.await_readers())
    };
    let under_way = |bytes: usize, on_this_host: bool| by(Method::batch(), bytes, on_this_host);
    for bytes in [600, 1_000, 50_000] {
        let (bytes_under_way, waits) = under_way(bytes, true);
        assert!((1 << 20..=2 << 20).contains(&bytes_under_way), "{bytes_under_way} under way in samples of {bytes}");
        assert!(waits, "samples of {bytes} wait for the readers before they are written");
    }
    let (bytes_under_way, waits) = under_way(64, true);
    assert!(
        bytes_under_way > 4 << 20,
        "{bytes_under_way} under way in samples so small that their bytes do not matter"
    );
    assert!(!by(Method::Immediate, 1_000, true).1, "samples that leave by themselves cost more than their bytes do");
    assert!(!waits && !under_way(1_000, false).1, "small samples wait for nobody, and none waits for another host");
}

/// A KEEP_ALL writer of at most so many samples, with one reader.
fn limited_writer(max_samples: u32) -> Writer {
    let guid = Guid::new(GuidPrefix([99; 12]), EntityId::user_writer(1, Keyed::No));
    let transmission = Transmission::by(Method::Immediate);
    let mut qos = WriterQos { history: History::KeepAll, transmission, ..WriterQos::default() };
    qos.resource_limits.max_samples = Some(max_samples);
    let mut writer = Writer::new(guid, qos.into(), &WriterOptions::default());
    join(&mut writer, START, 1);
    writer
}

fn is_refused(writer: &mut Writer) -> bool {
    let (kind, payload) = (ChangeKind::Write, Payload::from(vec![0; 8]));
    let refused =
        writer.write(START, NewChange { kind, instance: KeyHash::default(), timestamp: None, payload }).is_err();
    send(writer, START);
    refused
}

#[test]
fn a_write_that_others_left_no_room_for_is_told_of_the_next() {
    let mut writer = limited_writer(4);
    (1..=4).for_each(|_| assert!(!is_refused(&mut writer)));
    assert!(is_refused(&mut writer));
    assert!(tells_of_room(&mut writer, 3));
    (1..=2).for_each(|_| assert!(!is_refused(&mut writer), "others use it"));
    assert!(!writer.ask_for_room(&KeyHash::default(), 8));
    assert!(tells_of_room(&mut writer, 5));
    assert!(writer.ask_for_room(&KeyHash::default(), 8));
    assert!(!tells_of_room(&mut writer, 6), "nobody waits");
}

/// A reader without an address acknowledges nothing, and nothing ever leaves for it.
#[test]
fn what_goes_to_no_address_makes_room() {
    for method in [Method::Immediate, Method::asynchronous("slow")] {
        let guid = Guid::new(GuidPrefix([99; 12]), EntityId::user_writer(1, Keyed::No));
        let transmission = Transmission::by(method.clone());
        let mut qos = WriterQos { history: History::KeepAll, transmission, ..WriterQos::default() };
        qos.resource_limits.max_samples = Some(4);
        let mut writer = Writer::new(guid, qos.into(), &WriterOptions::default());
        writer.match_reader(START, MatchedReader { reliable: false, unicast: Vec::new(), ..matched_reader(1) });
        (0..4).for_each(|_| write(&mut writer, 8));
        assert!(!writer.ask_for_room(&KeyHash::default(), 8), "{method}");
        let mut outbox = Outbox::new();
        match writer.collection.is_asynchronous() {
            true => _ = writer.poll_transmit_within(START, 0, &mut outbox),
            false => _ = writer.poll_transmit(START, &mut outbox),
        }
        assert_eq!((outbox.len(), writer.held(), writer.poll_space()), (0, 0, true), "{method}");
    }
}

#[test]
fn a_small_history_tells_of_room_when_a_quarter_is_free() {
    for (max_samples, acknowledged) in [(1, 1), (2, 1), (3, 1), (4, 1), (5, 2), (8, 2), (9, 3)] {
        let mut writer = limited_writer(max_samples);
        (0..max_samples).for_each(|_| assert!(!is_refused(&mut writer)));
        assert!(is_refused(&mut writer));
        let told = (1..=max_samples).find(|last| tells_of_room(&mut writer, i64::from(*last) + 1));
        assert_eq!(told, Some(acknowledged), "of {max_samples}");
    }
}

#[test]
fn what_only_late_readers_would_get_makes_room_where_the_options_say_so() {
    for evicts_history in [false, true] {
        let guid = Guid::new(GuidPrefix([99; 12]), EntityId::user_writer(1, Keyed::No));
        let (durability, transmission) = (Durability::TransientLocal, Transmission::by(Method::Immediate));
        let qos = WriterQos { history: History::KeepAll, durability, transmission, ..WriterQos::default() };
        let options = WriterOptions { history_bytes_max: 2_000, evicts_history, ..WriterOptions::default() };
        let mut writer = Writer::new(guid, qos.into(), &options);
        join(&mut writer, START, 1);
        let held = (0..100).take_while(|_| !is_refused(&mut writer)).count();
        assert!((2..100).contains(&held), "what nobody has acknowledged makes no room: {held} are held");
        assert!(tells_of_room(&mut writer, held as i64 + 1), "a write that waits may look again");
        assert_eq!((is_refused(&mut writer), writer.held()), (!evicts_history, held));
    }
}

#[test]
fn the_first_flight_to_a_reader_on_another_host_is_small_whatever_it_announces() {
    let mut writer = writer(0);
    let far = MatchedReader { receive_buffer_bytes: Some(1 << 30), datagram_bytes: 1_472, ..matched_reader(1) };
    writer.match_reader(START, MatchedReader { on_this_host: false, ..far });
    (0..200).for_each(|_| write(&mut writer, 50_000));
    let (mut sent, mut now) = (0, START);
    for _ in 0..100 {
        let mut outbox = Outbox::new();
        while writer.poll_transmit(now, &mut outbox) {
            sent += outbox.cost();
            outbox.clear();
        }
        sent += outbox.cost();
        now += Duration::from_millis(100);
        writer.handle_timeout(now);
    }
    assert!(sent <= 200_000, "{sent} bytes before its first answer");
}
