//! Laws of the writer, checked message by message.

use std::net::SocketAddr;

use super::*;
use crate::qos::{History, Method, Transmission, WriterQos};
use crate::time::INFINITE;
use crate::types::{EntityId, GuidPrefix, Keyed, Locator, VendorId};
use crate::wire::batch::AckNackBatch;
use crate::wire::{AckNack, SequenceSet};

pub(super) const START: Instant = Instant::from_nanos(1);

pub(super) fn reader(number: u8) -> Guid {
    Guid::new(GuidPrefix([number; 12]), EntityId([0, 0, 1, 4]))
}

pub(super) fn locator(number: u8) -> Locator {
    Locator::from(SocketAddr::from(([10, 0, 0, number], 7411)))
}

/// A KEEP_ALL writer with so many reliable readers, numbered from 1, that have answered its greeting.
pub(super) fn writer(readers: u8) -> Writer {
    let mut writer = patient_writer(INFINITE);
    (1..=readers).for_each(|number| join(&mut writer, START, number));
    send(&mut writer, START);
    writer
}

/// A KEEP_ALL writer without readers.
pub(super) fn patient_writer(reader_patience: Duration) -> Writer {
    let guid = Guid::new(GuidPrefix([99; 12]), EntityId::user_writer(1, Keyed::No));
    let transmission = Transmission::by(Method::Immediate);
    let qos = WriterQos { history: History::KeepAll, transmission, reader_patience, ..WriterQos::default() };
    Writer::new(guid, qos.into(), &WriterOptions::default())
}

/// As [`writer`], with a patience of one second.
pub(super) fn impatient_writer(readers: u8) -> Writer {
    let mut writer = patient_writer(Duration::from_secs(1));
    (1..=readers).for_each(|number| join(&mut writer, START, number));
    send(&mut writer, START);
    writer
}

pub(super) fn matched_reader(number: u8) -> MatchedReader {
    MatchedReader {
        guid: reader(number),
        vendor: VendorId::THALWEG,
        reliable: true,
        qos: Arc::default(),
        unicast: vec![locator(number)],
        multicast: None,
        on_this_host: false,
        datagram_bytes: 1472,
        batches: true,
        round_trip: crate::round_trip::ASSUMED,
        receive_buffer_bytes: Some(0),
    }
}

pub(super) fn join(writer: &mut Writer, now: Instant, number: u8) {
    writer.match_reader(now, matched_reader(number));
    let next = writer.history.last().next();
    acknowledge(writer, now, number, next, &[]);
}

pub(super) fn write(writer: &mut Writer, bytes: usize) {
    let payload = Payload::from(vec![0; bytes]);
    let change = NewChange { kind: ChangeKind::Write, instance: KeyHash::default(), timestamp: None, payload };
    writer.write(START, change).expect("the history has room");
}

pub(super) fn acknowledge(
    writer: &mut Writer,
    now: Instant,
    number: u8,
    base: SequenceNumber,
    missing: &[i64],
) -> WriterOutcome {
    let mut state = SequenceSet::new(base);
    for number in missing {
        state.insert(SequenceNumber(*number));
    }
    let count = u32::try_from(writer.counters().acknacks + 1).expect("few of them");
    let (entity, guid) = (writer.guid().entity, reader(number));
    let acknack = AckNack { reader: guid.entity, writer: entity, state, count, is_final: false };
    writer.handle_acknack(now, guid, &acknack)
}

/// Reader 1 asks for a pack again.
pub(super) fn ask_for_pack(writer: &mut Writer, now: Instant, pack: SequenceNumber) {
    let mut state = SequenceSet::new(pack);
    state.insert(pack);
    let count = u32::try_from(writer.counters().acknacks + 1).expect("few of them");
    let (entity, guid) = (writer.guid().entity, reader(1));
    let acknack = AckNackBatch { reader: guid.entity, writer: entity, state, count, is_final: false };
    writer.handle_acknack_batch(now, guid, &acknack);
}

/// Where the writer's datagrams go now.
pub(super) fn send(writer: &mut Writer, now: Instant) -> Vec<Locator> {
    let mut outbox = Outbox::new();
    assert!(!writer.poll_transmit(now, &mut outbox), "little is to be sent");
    outbox.datagrams().flat_map(|datagram| datagram.destinations()).copied().collect()
}

/// Lets the writer's timer run out, again and again, until it gives a reader up; returns which and when.
pub(super) fn run_until_given_up(writer: &mut Writer) -> (Guid, Instant) {
    for _ in 0..100 {
        let at = writer.poll_timeout().expect("somebody owes an acknowledgement");
        let given_up = writer.handle_timeout(at).given_up;
        send(writer, at);
        if let Some(given_up) = given_up {
            return (given_up, at);
        }
    }
    unreachable!("nobody is given up")
}

/// What a datagram tells of numbers.
#[derive(Debug, PartialEq)]
pub(super) enum Told {
    Heartbeat { to: Locator, first: SequenceNumber, last: SequenceNumber },
    Gap,
}

pub(super) fn sent_submessages(writer: &mut Writer, now: Instant) -> Vec<Told> {
    let mut told = Vec::new();
    let mut outbox = Outbox::new();
    loop {
        let more = writer.poll_transmit(now, &mut outbox);
        for datagram in outbox.datagrams() {
            let bytes = datagram.to_vec();
            let message = crate::wire::Message::parse(&bytes).expect("well-formed");
            for submessage in message.submessages() {
                match submessage.expect("well-formed") {
                    crate::wire::Submessage::Heartbeat(heartbeat) => {
                        told.extend(datagram.destinations().iter().map(|to| Told::Heartbeat {
                            to: *to,
                            first: heartbeat.first,
                            last: heartbeat.last,
                        }));
                    }
                    crate::wire::Submessage::Gap(_) => told.push(Told::Gap),
                    _ => {}
                }
            }
        }
        outbox.clear();
        if !more {
            return told;
        }
    }
}

#[test]
fn greetings_beyond_one_outbox_follow_at_once() {
    let mut writer = writer(0);
    (1..=100).for_each(|number| writer.match_reader(START, matched_reader(number)));
    let mut outbox = Outbox::new();
    assert!(writer.poll_transmit(START, &mut outbox), "more is waiting");
    let first = outbox.len();
    outbox.clear();
    assert!(!writer.poll_transmit(START, &mut outbox));
    assert_eq!(first + outbox.len(), 100);
}

#[test]
fn a_request_whose_repair_is_on_its_way_is_not_answered_again() {
    let mut writer = writer(1);
    write(&mut writer, 8);
    assert_eq!(send(&mut writer, START).len(), 1);
    acknowledge(&mut writer, START, 1, SequenceNumber(1), &[1]);
    assert_eq!(send(&mut writer, START).len(), 1, "the repair");
    acknowledge(&mut writer, START, 1, SequenceNumber(1), &[1]);
    assert_eq!(send(&mut writer, START), [], "neither a repair nor a HEARTBEAT that would be answered at once");
    let later = START + Duration::from_secs(1);
    acknowledge(&mut writer, later, 1, SequenceNumber(1), &[1]);
    assert_eq!(send(&mut writer, later).len(), 1, "the repair was lost");
}

#[test]
fn a_reader_that_asks_for_nothing_but_an_answer_gets_one() {
    let mut writer = writer(1);
    write(&mut writer, 8);
    assert_eq!(send(&mut writer, START).len(), 1);
    acknowledge(&mut writer, START, 1, SequenceNumber(1), &[]);
    assert_eq!(send(&mut writer, START).len(), 1);
}

#[test]
fn a_reader_that_was_given_up_does_not_keep_others_from_being_asked() {
    let mut writer = impatient_writer(2);
    write(&mut writer, 8);
    write(&mut writer, 8);
    send(&mut writer, START);
    acknowledge(&mut writer, START, 2, SequenceNumber(2), &[]);
    assert_eq!(run_until_given_up(&mut writer).0, reader(1));
    let mut asked = 0;
    for _ in 0..10 {
        let Some(at) = writer.poll_timeout() else { break };
        writer.handle_timeout(at);
        let sent = send(&mut writer, at);
        asked += sent.iter().filter(|to| **to == locator(2)).count();
        // The one that is back keeps asking, and is served.
        let soon = at + Duration::from_millis(4);
        acknowledge(&mut writer, soon, 1, SequenceNumber(1), &[1]);
        send(&mut writer, soon);
    }
    assert!(asked >= 4, "asked {asked} times in 30 s");
}

#[test]
fn what_is_waited_for_is_told_while_more_is_written() {
    let mut writer = writer(1);
    (0..2).for_each(|_| write(&mut writer, 8));
    send(&mut writer, START);
    writer.await_acknowledgement(SequenceNumber(2));
    write(&mut writer, 8);
    send(&mut writer, START);
    let tells = |writer: &mut Writer, base| acknowledge(writer, START, 1, SequenceNumber(base), &[]).all_acknowledged;
    assert!(!tells(&mut writer, 2), "the second is missing");
    assert!(tells(&mut writer, 3), "the third may be");
    assert!(tells(&mut writer, 4), "it is all now");
}

#[test]
fn who_waits_is_told_when_only_a_reader_that_was_given_up_is_behind() {
    let mut writer = impatient_writer(2);
    write(&mut writer, 8);
    send(&mut writer, START);
    acknowledge(&mut writer, START, 2, SequenceNumber(2), &[]);
    let (given_up, at) = run_until_given_up(&mut writer);
    write(&mut writer, 8);
    send(&mut writer, at);
    writer.await_acknowledgement(SequenceNumber(2));
    let tells = |writer: &mut Writer| acknowledge(writer, at, 2, SequenceNumber(3), &[]).all_acknowledged;
    assert!(tells(&mut writer), "nobody else is waited for");
    assert_eq!((given_up, writer.readers_below(SequenceNumber(2)), writer.readers_given_up()), (reader(1), 1, 1));
    assert!(!tells(&mut writer), "once");
}

#[test]
fn a_late_joiner_does_not_acknowledge_what_was_not_sent() {
    let mut writer = impatient_writer(1);
    (0..30).for_each(|_| write(&mut writer, 1_000));
    send(&mut writer, START);
    let sent = writer.outgoing.place.sample.previous();
    assert!(sent < SequenceNumber(25), "the window closes");
    writer.match_reader(START, matched_reader(2));
    acknowledge(&mut writer, START, 2, SequenceNumber(31), &[]);
    assert_eq!(writer.held(), 30);
    assert_eq!(run_until_given_up(&mut writer).0, reader(1));
    assert!(!writer.all_acknowledged(), "reader 1 has nothing");
    writer.match_reader(START, MatchedReader { reliable: false, ..matched_reader(3) });
    let unsent = 31 - writer.outgoing.place.sample.0;
    assert!(writer.held() as i64 >= unsent, "{} held, {unsent} to be sent", writer.held());
}

#[test]
fn what_was_written_before_all_readers_came_goes_once_it_was_sent() {
    let mut writer = writer(1);
    (0..30).for_each(|_| write(&mut writer, 1_000));
    send(&mut writer, START);
    join(&mut writer, START, 2);
    writer.unmatch_reader(reader(1));
    send(&mut writer, START);
    assert_eq!((writer.outgoing.place.sample, writer.held()), (SequenceNumber(31), 0));
}

#[test]
fn without_a_limit_to_its_patience_a_writer_gives_no_reader_up() {
    let mut writer = writer(2);
    write(&mut writer, 8);
    send(&mut writer, START);
    acknowledge(&mut writer, START, 2, SequenceNumber(2), &[]);
    let mut at = START;
    while at < START + Duration::from_secs(3_600) {
        at = writer.poll_timeout().expect("reader 1 owes an acknowledgement");
        assert_eq!(writer.handle_timeout(at).given_up, None);
        send(&mut writer, at);
    }
    assert_eq!((writer.held(), writer.readers_behind(), writer.all_acknowledged()), (1, 1, false));
}

#[test]
fn what_a_given_up_reader_was_owed_is_told_as_lost_and_never_as_a_gap() {
    let mut writer = impatient_writer(2);
    (0..3).for_each(|_| write(&mut writer, 8));
    send(&mut writer, START);
    acknowledge(&mut writer, START, 2, SequenceNumber(4), &[]);
    let (given_up, at) = run_until_given_up(&mut writer);
    assert_eq!((given_up, writer.held()), (reader(1), 0));
    acknowledge(&mut writer, at, 1, SequenceNumber(1), &[1, 2, 3]);
    let submessages = sent_submessages(&mut writer, at);
    let told = submessages.iter().any(|submessage| matches!(submessage, Told::Heartbeat { first, .. } if first.0 == 4));
    assert!(told && !submessages.contains(&Told::Gap), "{submessages:?}");
    acknowledge(&mut writer, at, 1, SequenceNumber(4), &[]);
    assert_eq!((writer.readers_given_up(), writer.all_acknowledged()), (0, true));
}

#[test]
fn a_reader_that_is_back_goes_on_where_it_was_as_far_as_the_history_reaches() {
    for another in [true, false] {
        let mut writer = writer(1 + u8::from(another));
        (0..5).for_each(|_| write(&mut writer, 8));
        send(&mut writer, START);
        acknowledge(&mut writer, START, 1, SequenceNumber(4), &[]);
        writer.unmatch_reader(reader(1));
        write(&mut writer, 8);
        send(&mut writer, START);
        writer.match_reader(START, matched_reader(1));
        let told = sent_submessages(&mut writer, START);
        assert_eq!(told.contains(&Told::Gap), another, "it would hide what is lost: {told:?}");
        let first = SequenceNumber(if another { 1 } else { 7 });
        assert!(told.contains(&Told::Heartbeat { to: locator(1), first, last: SequenceNumber(6) }), "{told:?}");
        acknowledge(&mut writer, START, 1, SequenceNumber(if another { 4 } else { 7 }), &[]);
        assert_eq!(writer.readers_behind(), if another { 2 } else { 0 });
    }
}

#[test]
fn readers_that_went_are_remembered_within_bounds() {
    let mut writer = writer(0);
    for number in 0..2_000_u16 {
        let [high, low] = number.to_be_bytes();
        let guid = Guid::new(GuidPrefix([high, low, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]), reader(1).entity);
        writer.match_reader(START, MatchedReader { guid, ..matched_reader(1) });
        let state = SequenceSet::new(SequenceNumber(1));
        let acknack = AckNack { reader: guid.entity, writer: writer.guid().entity, state, count: 1, is_final: true };
        writer.handle_acknack(START, guid, &acknack);
        writer.unmatch_reader(guid);
    }
    assert_eq!(writer.former.len(), 256);
}

/// A writer of one instance with one reader and a window of 1 MB.
pub(super) fn collecting(method: Method, history: History) -> Writer {
    let matched = MatchedReader { datagram_bytes: 1_472, receive_buffer_bytes: Some(1_500_000), ..matched_reader(1) };
    collecting_for(matched, method, history)
}

/// A writer whose only reader has acknowledged everything.
pub(super) fn collecting_for(matched: MatchedReader, method: Method, history: History) -> Writer {
    let guid = Guid::new(GuidPrefix([99; 12]), EntityId::user_writer(1, Keyed::No));
    let transmission = Transmission::by(method);
    let qos = WriterQos { history, transmission, ..WriterQos::default() };
    let mut writer = Writer::new(guid, qos.into(), &WriterOptions::default());
    writer.match_reader(START, matched);
    let next = writer.history.last().next();
    acknowledge(&mut writer, START, 1, next, &[]);
    send(&mut writer, START);
    writer
}

pub(super) fn write_stamped(writer: &mut Writer, now: Instant, bytes: usize) {
    let payload = Payload::from(vec![0; bytes]);
    let timestamp = Some(Timestamp { seconds: 1, fraction: 0 });
    let change = NewChange { kind: ChangeKind::Write, instance: KeyHash::default(), timestamp, payload };
    writer.write(now, change).expect("the history has room");
}

/// Sends everything that is due at `now`.
pub(super) fn drain(writer: &mut Writer, now: Instant) -> usize {
    let mut datagrams = 0;
    let mut outbox = Outbox::new();
    let mut sending = writer.start_sending(now, &mut outbox);
    while sending {
        let count = outbox.len();
        datagrams += count;
        outbox.clear();
        sending = writer.continue_sending(now, now, count, &mut outbox);
    }
    datagrams
}

#[test]
fn what_waits_for_company_is_sent_although_keep_last_overwrites_it() {
    for method in [Method::batch(), Method::coalesce(), Method::Auto] {
        for bytes in [40, 1_000, 3_000, 40_000] {
            let mut writer = collecting(method.clone(), History::KeepLast(1));
            for number in 0..100_u64 {
                let now = START + Duration::from_nanos(number * 100);
                write_stamped(&mut writer, now, bytes);
                if writer.wants_to_send(now) {
                    drain(&mut writer, now);
                }
                let next = writer.outgoing.place.sample;
                acknowledge(&mut writer, now, 1, next, &[]);
            }
            let later = START + Duration::from_millis(2);
            for _ in 0..10 {
                drain(&mut writer, later);
                let next = writer.outgoing.place.sample;
                acknowledge(&mut writer, later, 1, next, &[]);
            }
            assert_eq!(writer.outgoing.place.sample, SequenceNumber(101), "{method}, {bytes} B");
            let samples = writer.counters().transmitted;
            let fragments = if bytes > 1_300 { 1 + bytes as u64 / 1_304 } else { 1 };
            assert!(samples >= 100 * fragments, "{method}, {bytes} B: {samples} of {}", 100 * fragments);
            assert!(writer.held() <= 1, "{method}, {bytes} B");
        }
    }
}

#[test]
fn what_readers_cannot_keep_up_with_is_overwritten() {
    for method in [Method::batch(), Method::Immediate, Method::Auto] {
        let mut writer = collecting(method.clone(), History::KeepLast(1));
        for number in 0..20_000_u64 {
            let now = START + Duration::from_nanos(number * 100);
            write_stamped(&mut writer, now, 1_000);
            if writer.wants_to_send(now) {
                drain(&mut writer, now);
            }
        }
        let sent = writer.counters().transmitted;
        assert!(sent < 1_000, "{method}: {sent} sent, though nobody acknowledges");
        assert_eq!(writer.held(), 1);
        let next = writer.outgoing.place.sample;
        acknowledge(&mut writer, START + Duration::from_millis(2), 1, next, &[]);
        drain(&mut writer, START + Duration::from_millis(3));
        assert_eq!(writer.outgoing.place.sample, SequenceNumber(20_001));
        assert!(writer.counters().transmitted < sent + 100, "{method}: the newest, not all that were overwritten");
    }
}

#[test]
fn an_asynchronous_writer_forgets_what_was_overwritten_before_it_was_sent() {
    let mut writer = collecting(Method::asynchronous("slow"), History::KeepLast(1));
    (0..20_000_u64).for_each(|number| write_stamped(&mut writer, START + Duration::from_nanos(number), 1_000));
    let asynchronous = writer.outgoing.asynchronous.as_ref().expect("it is one");
    assert!(writer.held() == 1 && asynchronous.written() < 100, "{} entries", asynchronous.written());
}

#[test]
fn a_path_that_becomes_narrower_while_a_sample_is_repaired_hides_nothing() {
    let mut writer = collecting(Method::Immediate, History::KeepAll);
    write_stamped(&mut writer, START, 400_000);
    let mut now = START;
    while writer.outgoing.place.sample == SequenceNumber(1) {
        now += Duration::from_millis(1);
        drain(&mut writer, now);
        let next = writer.outgoing.place;
        let entity = writer.guid().entity;
        let state = crate::wire::FragmentSet::new(next.fragment + 1);
        let count = next.fragment;
        let nack =
            crate::wire::NackFrag { reader: reader(1).entity, writer: entity, sequence: next.sample, state, count };
        writer.handle_nack_frag(now, reader(1), &nack);
    }
    // The reader has lost all of it, and asks for the whole sample.
    acknowledge(&mut writer, now, 1, SequenceNumber(1), &[1]);
    assert!(!sent_submessages(&mut writer, now).contains(&Told::Gap));
    assert!(!writer.readers.at(0).repairs.is_empty(), "the repair is paced");
    let narrow = MatchedReader { datagram_bytes: 800, receive_buffer_bytes: Some(1_500_000), ..matched_reader(1) };
    writer.match_reader(now, narrow);
    for _ in 0..100 {
        now += Duration::from_millis(5);
        assert!(!sent_submessages(&mut writer, now).contains(&Told::Gap), "the sample is held");
    }
}

#[test]
fn a_frame_is_complete_before_anything_of_it_is_sent_or_repeated() {
    let mut writer = collecting(Method::batch(), History::KeepAll);
    for number in 0..30_u64 {
        write_stamped(&mut writer, START + Duration::from_nanos(number), 40);
    }
    writer.flush();
    assert_eq!(drain(&mut writer, START + Duration::from_micros(1)), 2, "30 samples in two datagrams");
    assert_eq!((writer.counters().batches, writer.counters().datagrams), (2, 2));
    acknowledge(&mut writer, START + Duration::from_millis(5), 1, SequenceNumber(1), &[1, 2, 3, 4, 5]);
    let mut outbox = Outbox::new();
    writer.poll_transmit(START + Duration::from_millis(5), &mut outbox);
    let repaired = outbox.len();
    assert_eq!(
        (repaired, writer.counters().repaired),
        (1, 25),
        "the whole frame again, once, and the HEARTBEAT with it"
    );
}
