//! Repairs of readers that share a process.

use super::tests::*;
use super::*;
use crate::types::EntityId;
use crate::wire::{AckNack, Message, SequenceSet, Submessage};

const FIRST: EntityId = EntityId([0, 0, 1, 4]);
const SECOND: EntityId = EntityId([0, 0, 2, 4]);

fn second() -> MatchedReader {
    let first = matched_reader(1);
    MatchedReader { guid: Guid::new(first.guid.prefix, SECOND), ..first }
}

fn answer(writer: &mut Writer, now: Instant, reader: EntityId, base: i64, missing: &[i64]) {
    let mut state = SequenceSet::new(SequenceNumber(base));
    missing.iter().for_each(|number| _ = state.insert(SequenceNumber(*number)));
    let count = u32::try_from(writer.counters().acknacks + 1).expect("few of them");
    let acknack = AckNack { reader, writer: writer.guid().entity, state, count, is_final: false };
    writer.handle_acknack(now, Guid::new(matched_reader(1).guid.prefix, reader), &acknack);
}

/// A writer with the first reader of process 1 and these others.
fn writer_with(others: impl IntoIterator<Item = MatchedReader>) -> Writer {
    let mut writer = writer(1);
    for other in others {
        let (entity, is_reliable) = (other.guid.entity, other.reliable);
        writer.match_reader(START, other);
        if is_reliable {
            answer(&mut writer, START, entity, 1, &[]);
        }
    }
    send(&mut writer, START);
    writer
}

/// What leaves at `now`, and for whom: samples and fragments by number, and 0 for a HEARTBEAT.
fn sent(writer: &mut Writer, now: Instant) -> Vec<(EntityId, i64)> {
    let mut sent = Vec::new();
    let mut outbox = Outbox::new();
    loop {
        let more = writer.poll_transmit(now, &mut outbox);
        for datagram in outbox.datagrams() {
            assert_eq!(datagram.destinations(), [locator(1)]);
            let bytes = datagram.to_vec();
            for submessage in Message::parse(&bytes).expect("well-formed").submessages() {
                match submessage.expect("well-formed") {
                    Submessage::Data(data) => sent.push((data.reader, data.sequence.0)),
                    Submessage::DataFrag(data) => sent.push((data.reader, i64::from(data.first_fragment))),
                    Submessage::Heartbeat(heartbeat) => sent.push((heartbeat.reader, 0)),
                    _ => {}
                }
            }
        }
        outbox.clear();
        if !more {
            return sent;
        }
    }
}

fn later(micros: u64) -> Instant {
    START + Duration::from_micros(micros)
}

#[test]
fn what_readers_of_one_process_lack_is_sent_again_once() {
    let mut writer = writer_with([second()]);
    (0..3).for_each(|_| write(&mut writer, 8));
    send(&mut writer, START);
    answer(&mut writer, later(10), FIRST, 1, &[1, 2]);
    let all = EntityId::UNKNOWN;
    assert_eq!(sent(&mut writer, later(10)), [(all, 1), (all, 2), (all, 0)], "and both are asked at once");
    answer(&mut writer, later(20), SECOND, 1, &[1, 2]);
    assert_eq!(sent(&mut writer, later(20)), [], "its request has crossed the repair");
    answer(&mut writer, later(30), SECOND, 1, &[1, 2, 3]);
    assert_eq!(sent(&mut writer, later(30)), [(all, 3), (all, 0)]);
    assert_eq!(writer.counters().repaired, 3);
    let much_later = START + Duration::from_secs(1);
    answer(&mut writer, much_later, SECOND, 1, &[1, 2, 3]);
    let again = sent(&mut writer, much_later);
    assert_eq!(again, [(all, 1), (all, 2), (all, 3), (all, 0)], "the repair was lost");
}

#[test]
fn what_both_have_asked_for_before_anything_leaves_is_sent_again_once() {
    let mut writer = writer_with([second()]);
    (0..3).for_each(|_| write(&mut writer, 8));
    send(&mut writer, START);
    answer(&mut writer, later(10), FIRST, 1, &[1]);
    answer(&mut writer, later(10), SECOND, 1, &[1, 3]);
    let all = EntityId::UNKNOWN;
    assert_eq!(sent(&mut writer, later(10)), [(all, 1), (all, 0), (all, 3), (all, 0)]);
}

#[test]
fn what_the_others_of_a_process_have_or_may_not_get_goes_to_one_reader() {
    let write_some = |writer: &mut Writer| {
        (0..2).for_each(|_| write(writer, 8));
        send(writer, START);
    };
    let repairs = |mut writer: Writer| {
        answer(&mut writer, later(10), FIRST, 1, &[1, 2]);
        sent(&mut writer, later(10))
    };
    let to_first = [(FIRST, 1), (FIRST, 2), (FIRST, 0)];

    let mut has_all = writer_with([second()]);
    write_some(&mut has_all);
    answer(&mut has_all, later(5), SECOND, 3, &[]);
    send(&mut has_all, later(5));
    assert_eq!(repairs(has_all), to_first);

    let mut comes_late = writer_with([]);
    write_some(&mut comes_late);
    comes_late.match_reader(later(1), second());
    send(&mut comes_late, later(1));
    answer(&mut comes_late, later(5), SECOND, 3, &[]);
    send(&mut comes_late, later(5));
    assert_eq!(repairs(comes_late), to_first);

    let different = [
        MatchedReader { reliable: false, ..second() },
        MatchedReader { batches: false, ..second() },
        MatchedReader { datagram_bytes: 800, ..second() },
    ];
    for other in different {
        let mut writer = writer_with([other]);
        write_some(&mut writer);
        assert_eq!(repairs(writer), to_first);
    }
}

#[test]
fn fragments_that_readers_of_one_process_lack_are_sent_again_once() {
    let mut writer = writer_with([second()]);
    write(&mut writer, 4_000);
    let first = sent(&mut writer, START).into_iter().filter(|(_, number)| *number > 0).collect::<Vec<_>>();
    assert!(first.len() > 2, "{first:?}");
    let mut fragments = Vec::new();
    let mut now = later(10);
    // Both have lost all of it; one of them asks again and again.
    for turn in 0..20 {
        now += Duration::from_micros(100);
        answer(&mut writer, now, if turn == 0 { FIRST } else { SECOND }, 1, &[1]);
        fragments.extend(sent(&mut writer, now).into_iter().filter(|(_, number)| *number > 0));
    }
    assert_eq!(fragments, first);
}

#[test]
fn what_a_reader_has_lost_counts_although_its_request_has_crossed_the_repair() {
    let lost = |writer: &Writer| {
        let place = writer.readers.place(second().guid).expect("it is matched");
        writer.readers.at(place).congestion.as_ref().expect("it is on another host").lost()
    };
    let mut writer = writer_with([second()]);
    (0..3).for_each(|_| write(&mut writer, 8));
    send(&mut writer, START);
    answer(&mut writer, later(10), FIRST, 1, &[1, 2]);
    send(&mut writer, later(10));
    assert_eq!(lost(&writer), 0);
    answer(&mut writer, later(20), SECOND, 1, &[1, 2]);
    let told = lost(&writer);
    assert!(told > 0);
    answer(&mut writer, later(30), SECOND, 1, &[1, 2]);
    assert_eq!(lost(&writer), told, "once");
}

#[test]
fn repairs_are_shared_among_so_many_readers_only() {
    let named = |number: usize| {
        let entity = EntityId([0, 1, number as u8, 4]);
        MatchedReader { guid: Guid::new(second().guid.prefix, entity), ..second() }
    };
    for (others, reader) in [(sharing::SHARING_MAX - 1, EntityId::UNKNOWN), (sharing::SHARING_MAX, FIRST)] {
        let mut writer = writer_with((0..others).map(named));
        write(&mut writer, 8);
        send(&mut writer, START);
        answer(&mut writer, later(10), FIRST, 1, &[1]);
        assert_eq!(sent(&mut writer, later(10))[0], (reader, 1), "{others} others");
    }
}
