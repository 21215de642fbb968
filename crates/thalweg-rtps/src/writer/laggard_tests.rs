//! What a reader gets that has fallen behind on a path that is sent to at a rate, checked datagram by datagram.

use super::tests::{START, acknowledge, locator, matched_reader, reader, send, writer};
use super::*;
use crate::qos::{History, Liveliness, LivelinessKind, Transmission};
use crate::types::{EntityId, GuidPrefix, Keyed, Locator};

const LATER: Instant = Instant::from_nanos(2_000_000_000);

/// A writer that has sent many samples to reader 1 beside it, which has them, and reader 2 on another host, which has the first one and
/// was left behind.
fn with_a_laggard() -> Writer {
    with_a_laggard_of(writer(0))
}

fn with_a_laggard_of(mut writer: Writer) -> Writer {
    let beside = MatchedReader { on_this_host: true, receive_buffer_bytes: Some(1 << 24), ..matched_reader(1) };
    writer.match_reader(START, beside);
    writer.match_reader(START, MatchedReader { receive_buffer_bytes: Some(1 << 24), ..matched_reader(2) });
    (1..=2).for_each(|number| _ = acknowledge(&mut writer, START, number, SequenceNumber::FIRST, &[]));
    send(&mut writer, START);
    for _ in 0..40 {
        super::tests::write(&mut writer, 1_000);
        send(&mut writer, START);
    }
    acknowledge(&mut writer, LATER, 1, SequenceNumber(41), &[]);
    writer.readers.at_mut(1).joined = SequenceNumber(40);
    writer.readers.at_mut(1).congestion.as_mut().expect("it is elsewhere").pace_at(START, 100_000);
    answer(&mut writer, 2, &[]);
    writer
}

/// Reader 2 has everything below `base` and asks for some.
fn answer(writer: &mut Writer, base: i64, missing: &[i64]) {
    acknowledge(writer, LATER, 2, SequenceNumber(base), missing);
    writer.judge_path(LATER, reader(2));
    send(writer, LATER);
}

/// Where a new sample goes.
fn destinations(writer: &mut Writer) -> Vec<Locator> {
    super::tests::write(writer, 1_000);
    let mut destinations = send(writer, LATER + Duration::from_secs(1));
    destinations.dedup();
    destinations
}

#[test]
fn a_reader_that_is_behind_on_its_path_gets_nothing_but_repairs_until_it_has_caught_up() {
    let mut writer = with_a_laggard();
    assert_eq!(destinations(&mut writer), [locator(1)]);
    assert_eq!(writer.counters().left_to_repairs, 1);
    answer(&mut writer, 20, &[20]);
    assert_eq!(writer.counters().repaired, 1, "what it asks for is sent to it");
    assert_eq!(destinations(&mut writer), [locator(1)], "it still lacks more than its path holds");
    assert_eq!(writer.readers.at(1).congestion.as_ref().map(|path| path.lost()), Some(0), "nothing of that is lost");
    answer(&mut writer, 43, &[]);
    assert_eq!(destinations(&mut writer), [locator(1), locator(2)]);
    assert_eq!(writer.counters().left_to_repairs, 2);
}

/// A reader may announce any buffer and never answer.
#[test]
fn the_buffer_of_a_reader_that_is_behind_does_not_bound_what_is_sent_to_the_others() {
    let mut writer = with_a_laggard();
    writer.readers.at_mut(1).matched.receive_buffer_bytes = Some(1);
    writer.readers_changed();
    assert_eq!(writer.flow.window(), Some((1 << 24) * 2 / 3));
    answer(&mut writer, 41, &[]);
    assert_eq!(writer.flow.window(), Some(16_384), "it follows");
}

#[test]
fn where_nobody_follows_what_is_new_goes_to_readers_that_are_behind() {
    let mut writer = with_a_laggard();
    writer.unmatch_reader(reader(1));
    assert_eq!(destinations(&mut writer), [locator(2)]);
    let mut writer = with_a_laggard();
    writer.unmatch_reader(reader(2));
    assert_eq!(destinations(&mut writer), [locator(1)]);
    assert_eq!(writer.counters().left_to_repairs, 0);
}

#[test]
fn a_reader_that_is_behind_is_asked_alone_however_often_the_others_are() {
    let mut writer = with_a_laggard();
    let (mut now, mut asked) = (LATER, 0);
    for number in 41..141 {
        now += Duration::from_millis(10);
        super::tests::write(&mut writer, 1_000);
        writer.request_acknowledgement(now);
        if writer.poll_timeout().is_some_and(|due| due <= now) {
            writer.handle_timeout(now);
        }
        asked += send(&mut writer, now).iter().filter(|to| **to == locator(2)).count();
        acknowledge(&mut writer, now, 1, SequenceNumber(number).next(), &[]);
    }
    assert!((2..50).contains(&asked), "{asked} times in a second");
}

#[test]
fn a_reader_that_is_behind_is_told_that_its_writer_is_alive() {
    let liveliness = Liveliness { kind: LivelinessKind::ManualByTopic, lease: Duration::from_secs(60) };
    let transmission = Transmission::by(Method::Immediate);
    let qos = WriterQos { history: History::KeepAll, transmission, liveliness, ..WriterQos::default() };
    let guid = Guid::new(GuidPrefix([99; 12]), EntityId::user_writer(1, Keyed::No));
    let mut writer = with_a_laggard_of(Writer::new(guid, qos.into(), &WriterOptions::default()));
    assert_eq!(destinations(&mut writer), [locator(1)]);
    assert_eq!(send(&mut writer, LATER), []);
    writer.assert_liveliness(LATER);
    assert_eq!(send(&mut writer, LATER), [locator(1), locator(2)]);
}

#[test]
fn what_was_kept_back_for_a_reader_goes_without_it_when_it_is_left_behind() {
    for rate in [None, Some(100_000)] {
        let mut writer = writer(0);
        let beside = MatchedReader { on_this_host: true, receive_buffer_bytes: Some(1 << 24), ..matched_reader(1) };
        writer.match_reader(START, beside);
        writer.match_reader(START, MatchedReader { receive_buffer_bytes: Some(1 << 24), ..matched_reader(2) });
        (1..=2).for_each(|number| _ = acknowledge(&mut writer, START, number, SequenceNumber::FIRST, &[]));
        super::tests::write(&mut writer, 1_000);
        send(&mut writer, START);
        if let Some(rate) = rate {
            writer.readers.at_mut(1).congestion.as_mut().expect("it is elsewhere").pace_at(START, rate);
        }
        (0..40).for_each(|_| super::tests::write(&mut writer, 1_000));
        acknowledge(&mut writer, START, 1, SequenceNumber(2), &[]);
        writer.readers.at_mut(1).behind_since = Some(START);
        assert!(writer.leave_laggards_behind(LATER));
        let mut destinations = send(&mut writer, LATER);
        destinations.dedup();
        let all = [locator(1), locator(2)];
        assert_eq!(destinations.contains(&all[1]), rate.is_none(), "{rate:?}: {destinations:?}");
    }
}
