//! Laws of LIFESPAN, DEADLINE and LIVELINESS at the writer.

use super::tests::{START, Told, acknowledge, join, locator, matched_reader, reader, send, sent_submessages};
use super::*;
use crate::assertion::ManualAssertion;
use crate::history::StoredChange;
use crate::qos::{History, Liveliness, LivelinessKind, Method, ReaderQos, Transmission};
use crate::time::{EpochOffset, INFINITE};
use crate::types::{EntityId, GuidPrefix, Keyed, VendorId};
use crate::wire::{Message, Submessage};

const SPAN: Duration = Duration::from_millis(100);
const MILLI: Duration = Duration::from_millis(1);

/// A KEEP_ALL writer with this QoS, and no reader.
fn writer_with(change: impl FnOnce(&mut WriterQos)) -> Writer {
    let guid = Guid::new(GuidPrefix([99; 12]), EntityId::user_writer(1, Keyed::Yes));
    let transmission = Transmission::by(Method::Immediate);
    let mut qos = WriterQos { history: History::KeepAll, transmission, ..WriterQos::default() };
    change(&mut qos);
    let mut writer = Writer::new(guid, qos.into(), &WriterOptions::default());
    writer.begin_promises(START, &ManualAssertion::default());
    writer
}

fn put(writer: &mut Writer, now: Instant, kind: ChangeKind, instance: u8) {
    let payload = Payload::from(vec![0, 1, 0, 0, instance, 0, 0, 0]);
    let change = NewChange { kind, instance: KeyHash([instance; 16]), timestamp: None, payload };
    writer.write(now, change).expect("the history has room");
}

fn write(writer: &mut Writer, now: Instant, instance: u8) {
    put(writer, now, ChangeKind::Write, instance);
}

fn held(writer: &Writer) -> Vec<i64> {
    let next = |from: &SequenceNumber| writer.history.next_from(from.next()).map(|sample| sample.sequence);
    std::iter::successors(next(&SequenceNumber::ZERO), next).map(|sequence| sequence.0).collect()
}

/// Numbers of the samples that leave at `now`.
fn sent(writer: &mut Writer, now: Instant) -> Vec<i64> {
    let mut outbox = Outbox::new();
    writer.poll_transmit(now, &mut outbox);
    let datagrams: Vec<Vec<u8>> = outbox.datagrams().map(|datagram| datagram.to_vec()).collect();
    let of = |bytes: &Vec<u8>| -> Vec<i64> {
        let message = Message::parse(bytes).expect("our own");
        let number = |submessage| match submessage {
            Ok(Submessage::Data(data)) => Some(data.sequence.0),
            _ => None,
        };
        message.submessages().filter_map(number).collect()
    };
    datagrams.iter().flat_map(of).collect()
}

#[test]
fn samples_leave_the_history_when_their_time_is_over_and_late_readers_get_only_the_others() {
    let mut writer = writer_with(|qos| {
        (qos.timing.lifespan, qos.durability) = (SPAN, Durability::TransientLocal);
    });
    write(&mut writer, START, 1);
    write(&mut writer, START + SPAN / 2, 2);
    assert_eq!(writer.poll_timeout(), Some(START + SPAN));
    writer.handle_timeout(START + SPAN - MILLI);
    assert_eq!(held(&writer), [1, 2]);
    writer.handle_timeout(START + SPAN);
    assert_eq!((held(&writer), writer.poll_timeout()), (vec![2], Some(START + SPAN + SPAN / 2)));
    let qos = Arc::new(ReaderQos { durability: Durability::TransientLocal, ..ReaderQos::default() });
    writer.match_reader(START + SPAN, MatchedReader { qos, reliable: false, ..matched_reader(1) });
    writer.handle_timeout(START + SPAN * 2);
    assert_eq!((held(&writer), sent(&mut writer, START + SPAN * 2)), (vec![], vec![]));
}

#[test]
fn what_expires_takes_the_end_of_its_instance_before_it_along() {
    for depth in [History::KeepAll, History::KeepLast(3)] {
        let mut writer = writer_with(|qos| {
            (qos.timing.lifespan, qos.durability, qos.history) = (SPAN, Durability::TransientLocal, depth);
        });
        write(&mut writer, START, 1);
        put(&mut writer, START, ChangeKind::Dispose, 1);
        write(&mut writer, START + MILLI, 1);
        write(&mut writer, START + SPAN, 1);
        writer.handle_timeout(START + SPAN);
        assert_eq!(held(&writer), [2, 3, 4], "{depth}: an end does not expire");
        writer.handle_timeout(START + SPAN + MILLI);
        assert_eq!(held(&writer), [4], "{depth}");
        writer.handle_timeout(START + SPAN * 2);
        assert_eq!((held(&writer), writer.history.bytes()), (vec![], 0), "{depth}");
    }
}

#[test]
fn a_blocked_write_goes_on_when_samples_expire() {
    let mut writer = writer_with(|qos| {
        qos.timing.lifespan = SPAN;
        qos.resource_limits.max_samples = Some(4);
    });
    join(&mut writer, START, 1);
    (0..4).for_each(|_| write(&mut writer, START, 1));
    send(&mut writer, START);
    let refused = NewChange {
        kind: ChangeKind::Write,
        instance: KeyHash([1; 16]),
        timestamp: None,
        payload: Payload::from(vec![0; 8]),
    };
    assert!(writer.write(START, refused.clone()).is_err());
    assert!(writer.handle_timeout(START + SPAN).space);
    assert_eq!(writer.write(START + SPAN, refused).map(|written| written.sequence), Ok(SequenceNumber(5)));
}

#[test]
fn ends_of_lives_are_not_kept_for_samples_that_are_gone() {
    let mut writer = writer_with(|qos| {
        (qos.timing.lifespan, qos.history) = (Duration::from_secs(3_600), History::KeepLast(1));
        qos.durability = Durability::TransientLocal;
    });
    (0..10_000).for_each(|_| write(&mut writer, START, 1));
    let kept = writer.promises.as_ref().expect("it has a lifespan").lifetimes_kept();
    assert!(kept <= 70, "{kept} for one sample");
}

#[test]
fn a_restored_value_whose_life_was_over_before_this_host_booted_does_not_live_again() {
    const WALL: Duration = Duration::from_secs(1_800_000_000);
    let mut writer = writer_with(|qos| {
        (qos.timing.lifespan, qos.durability) = (Duration::from_secs(10), Durability::Transient);
    });
    let stored = |number: u8, age: Duration| StoredChange {
        sequence: SequenceNumber(number.into()),
        kind: ChangeKind::Write,
        instance: KeyHash([number; 16]),
        timestamp: Some(Timestamp::from_unix(WALL - age)),
        payload: Payload::from(vec![0, 1, 0, 0, number, 0, 0, 0]),
    };
    let changes = vec![stored(1, Duration::from_secs(3_600)), stored(2, Duration::from_secs(9))];
    let now = Instant::from_nanos(8_000_000_000);
    writer.restore(now, Some(EpochOffset::new(now, Timestamp::from_unix(WALL))), changes, SequenceNumber(2));
    writer.handle_timeout(now);
    assert_eq!(held(&writer), [2], "written before the boot as well, and not yet over");
    writer.handle_timeout(now + Duration::from_secs(1) - MILLI);
    assert_eq!(held(&writer), [2]);
    writer.handle_timeout(now + Duration::from_secs(1));
    assert_eq!(held(&writer), [] as [i64; 0]);
}

#[test]
fn each_instance_that_is_not_written_in_time_is_reported() {
    let mut writer = writer_with(|qos| qos.timing.deadline = SPAN);
    write(&mut writer, START, 1);
    write(&mut writer, START, 2);
    write(&mut writer, START + SPAN / 2, 2);
    assert!(!writer.handle_timeout(START + SPAN - MILLI).deadline_missed);
    assert!(writer.handle_timeout(START + SPAN).deadline_missed);
    let missed = writer.deadline_missed();
    assert_eq!((missed.total, missed.last_instance), (1, Some(KeyHash([1; 16]))));
    put(&mut writer, START + SPAN, ChangeKind::Dispose, 1);
    put(&mut writer, START + SPAN, ChangeKind::Unregister, 2);
    assert!(!writer.handle_timeout(START + SPAN * 9).deadline_missed, "nothing is promised of either");
}

#[test]
fn an_application_that_does_not_assert_its_writer_loses_its_liveliness_once() {
    for kind in [LivelinessKind::ManualByTopic, LivelinessKind::ManualByParticipant] {
        let mut writer = writer_with(|qos| qos.liveliness = Liveliness { kind, lease: SPAN });
        write(&mut writer, START + SPAN / 2, 1);
        assert!(!writer.handle_timeout(START + SPAN).liveliness_lost, "{kind:?}: a write is an assertion");
        let asserted_at = START + SPAN;
        let by_participant = writer.assert_liveliness(asserted_at);
        assert_eq!(by_participant, kind == LivelinessKind::ManualByParticipant);
        assert!(!writer.handle_timeout(asserted_at + SPAN - MILLI).liveliness_lost);
        assert!(writer.handle_timeout(asserted_at + SPAN).liveliness_lost);
        assert!(!writer.handle_timeout(asserted_at + SPAN * 5).liveliness_lost);
        write(&mut writer, asserted_at + SPAN * 5, 1);
        assert!(writer.handle_timeout(asserted_at + SPAN * 6).liveliness_lost);
        assert_eq!(writer.liveliness_lost(), 2);
    }
}

#[test]
fn an_assertion_by_topic_leaves_as_a_final_heartbeat_with_its_flag() {
    let lease = Liveliness { kind: LivelinessKind::ManualByTopic, lease: SPAN };
    let mut writer = writer_with(|qos| qos.liveliness = lease);
    join(&mut writer, START, 1);
    write(&mut writer, START, 1);
    send(&mut writer, START);
    writer.assert_liveliness(START + MILLI);
    assert!(writer.wants_to_send(START + MILLI));
    let mut outbox = Outbox::new();
    writer.poll_transmit(START + MILLI, &mut outbox);
    let datagrams: Vec<Vec<u8>> = outbox.datagrams().map(|datagram| datagram.to_vec()).collect();
    let [bytes] = datagrams.as_slice() else { panic!("{} datagrams", datagrams.len()) };
    let heartbeat = Message::parse(bytes).unwrap().submessages().find_map(|submessage| match submessage {
        Ok(Submessage::Heartbeat(heartbeat)) => Some(heartbeat),
        _ => None,
    });
    let heartbeat = heartbeat.expect("a HEARTBEAT");
    assert!(heartbeat.liveliness && heartbeat.is_final && heartbeat.last == SequenceNumber(1), "{heartbeat:?}");
    assert_eq!(writer.readers.get(reader(1)).map(|reader| reader.matched.guid), Some(reader(1)));
    assert!(send(&mut writer, START + MILLI).is_empty(), "it is told once");
}

/// It would take what is told for history that it has missed.
#[test]
fn an_assertion_tells_a_reader_that_has_not_proved_itself_of_no_sample() {
    let lease = Liveliness { kind: LivelinessKind::ManualByTopic, lease: SPAN };
    let mut writer = writer_with(|qos| qos.liveliness = lease);
    let foreign = MatchedReader { vendor: VendorId::CYCLONE, batches: false, ..matched_reader(1) };
    writer.match_reader(START, foreign);
    join(&mut writer, START, 2);
    (0..5).for_each(|_| write(&mut writer, START, 1));
    sent_submessages(&mut writer, START);
    writer.assert_liveliness(START + MILLI);
    let heartbeat = |number, last| {
        let (to, first) = (locator(number), SequenceNumber::FIRST);
        Told::Heartbeat { to, first, last: SequenceNumber(last) }
    };
    assert_eq!(sent_submessages(&mut writer, START + MILLI), [heartbeat(1, 0), heartbeat(2, 5)]);
    acknowledge(&mut writer, START + MILLI, 1, SequenceNumber::FIRST, &[]);
    sent_submessages(&mut writer, START + MILLI);
    writer.assert_liveliness(START + MILLI * 2);
    let told = sent_submessages(&mut writer, START + MILLI * 2);
    assert!(told.contains(&heartbeat(1, 5)) && told.contains(&heartbeat(2, 5)), "it has proved itself: {told:?}");
}

#[test]
fn a_sign_that_the_participant_awaits_wakes_it_and_others_do_not() {
    let lease = Liveliness { kind: LivelinessKind::ManualByParticipant, lease: SPAN };
    let mut writer = writer_with(|qos| qos.liveliness = lease);
    let signs = ManualAssertion::default();
    signs.await_from(START + MILLI * 30);
    writer.begin_promises(START, &signs);
    writer.newly_armed();
    let arm = |writer: &mut Writer, now: Instant| {
        let payload = Payload::from(vec![0, 1, 0, 0, 1, 0, 0, 0]);
        let change = NewChange { kind: ChangeKind::Write, instance: KeyHash([1; 16]), timestamp: None, payload };
        writer.write(now, change).expect("the history has room").arm
    };
    assert_eq!(arm(&mut writer, START + MILLI * 20), None, "others were told a moment ago");
    let awaited_at = START + MILLI * 40;
    assert_eq!(arm(&mut writer, awaited_at), Some(awaited_at));
    assert_eq!(arm(&mut writer, awaited_at + MILLI), None, "it is being woken");
    writer.disarm();
    assert!(!writer.handle_timeout(awaited_at + MILLI).liveliness_lost);
    assert_eq!(writer.poll_timeout(), Some(awaited_at + MILLI + SPAN), "only the lease is left");
    assert!(writer.handle_timeout(awaited_at + MILLI + SPAN).liveliness_lost);
}

#[test]
fn a_lease_that_does_not_end_asserts_and_is_never_lost() {
    let lease = Liveliness { kind: LivelinessKind::ManualByParticipant, lease: INFINITE };
    let mut writer = writer_with(|qos| qos.liveliness = lease);
    let signs = ManualAssertion::default();
    signs.await_from(Instant::NEVER);
    writer.begin_promises(START, &signs);
    write(&mut writer, START + SPAN, 1);
    assert_eq!((signs.last(), writer.poll_timeout()), (START + SPAN, None));
    assert!(!writer.handle_timeout(START + SPAN * 100_000).liveliness_lost);
    assert!(writer.assert_liveliness(START + SPAN * 100_000), "its participant tells the others");
    assert_eq!((signs.last(), writer.liveliness_lost()), (START + SPAN * 100_000, 0));
}

/// Readers hear nothing of what is not sent to them: the liveliness of a writer that goes on writing ended for them.
#[test]
fn samples_that_no_reader_wants_assert_by_topic_as_others_do() {
    let lease = Liveliness { kind: LivelinessKind::ManualByTopic, lease: SPAN };
    let mut writer = writer_with(|qos| qos.liveliness = lease);
    join(&mut writer, START, 1);
    write(&mut writer, START, 1);
    send(&mut writer, START);
    acknowledge(&mut writer, START, 1, SequenceNumber(2), &[]);
    send(&mut writer, START);
    let mut signs = Vec::new();
    for millis in (10..=200).step_by(10) {
        let now = START + MILLI * millis;
        let passed = writer.pass_over_unwanted(now, KeyHash([1; 16]), &[reader(1)]).expect("nobody wants it");
        if !send(&mut writer, now).is_empty() {
            assert_eq!(passed.arm, Some(now));
            signs.push(millis);
        }
    }
    assert_eq!(signs, [40, 80, 120, 160, 200]);
}

#[test]
fn a_writer_whose_history_goes_on_is_alive_at_first() {
    let lease = Liveliness { kind: LivelinessKind::ManualByTopic, lease: SPAN };
    let mut writer = writer_with(|qos| qos.liveliness = lease);
    join(&mut writer, START, 1);
    assert!(writer.handle_timeout(START + SPAN).liveliness_lost);
    let born = START + SPAN * 3;
    writer.begin_promises(born, &ManualAssertion::default());
    assert!(writer.wants_to_send(born), "its readers are told");
    assert!(!writer.handle_timeout(born + SPAN / 2).liveliness_lost);
    assert!(writer.handle_timeout(born + SPAN).liveliness_lost);
    assert_eq!(writer.liveliness_lost(), 2);
}
