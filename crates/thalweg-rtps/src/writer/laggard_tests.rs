//! What a reader gets that has fallen behind on a path that is sent to at a rate, checked datagram by datagram.

use super::tests::{START, acknowledge, locator, matched_reader, reader, send, writer};
use super::*;
use crate::types::Locator;

const LATER: Instant = Instant::from_nanos(2_000_000_000);

/// A writer that has sent many samples to reader 1 beside it, which has them, and reader 2 on another host, which has the first one and
/// was left behind.
fn with_a_laggard() -> Writer {
    let mut writer = writer(0);
    let beside = MatchedReader { on_this_host: true, receive_buffer_bytes: Some(1 << 24), ..matched_reader(1) };
    writer.match_reader(START, beside);
    writer.match_reader(START, MatchedReader { receive_buffer_bytes: Some(1 << 24), ..matched_reader(2) });
    (1..=2).for_each(|number| acknowledge(&mut writer, START, number, SequenceNumber::FIRST, &[]));
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
fn a_reader_that_is_behind_is_asked_alone_and_told_that_the_writer_is_alive() {
    let mut writer = with_a_laggard();
    super::tests::write(&mut writer, 1_000);
    send(&mut writer, LATER);
    let due = writer.poll_timeout().expect("it owes an acknowledgement");
    assert!(due <= LATER + HEARTBEAT_PERIOD_MAX);
    writer.handle_timeout(due.max(LATER + HEARTBEAT_PERIOD_MAX));
    assert!(send(&mut writer, LATER + HEARTBEAT_PERIOD_MAX).contains(&locator(2)));
}
