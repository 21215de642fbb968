//! Laws of how answers are judged: what counts as lost, and when a path is slowed down for it.

use super::flow::Position;
use super::tests::{
    START, acknowledge, ask_for_pack, collecting, drain, impatient_writer, locator, matched_reader, patient_writer,
    reader, run_until_given_up, send, write, write_stamped,
};
use super::transmission::Place;
use super::*;
use crate::qos::{History, Transmission};
use crate::time::INFINITE;
use crate::types::{EntityId, GuidPrefix, Keyed, Locator};
use crate::wire::{FragmentSet, LostFrag, NackFrag, SequenceSet};

const SAMPLE_BYTES: usize = 26_000;
const FRAGMENTS: u64 = 20;

fn after(millis: u64) -> Instant {
    START + Duration::from_millis(millis)
}

/// A writer whose reader has room for a few large samples.
fn roomy_writer(multicast: Option<Locator>) -> Writer {
    let mut writer = patient_writer(INFINITE);
    let receive_buffer_bytes = Some(4 << 20);
    writer.match_reader(START, MatchedReader { receive_buffer_bytes, multicast, ..matched_reader(1) });
    acknowledge(&mut writer, START, 1, SequenceNumber(1), &[]);
    writer.judge_path(START, reader(1));
    drain(&mut writer, START);
    writer
}

/// Datagrams that are known to be lost since the path was last judged.
fn lost(writer: &Writer) -> u64 {
    lost_memory(writer) / congestion::DATAGRAM
}

/// The same in kernel memory.
fn lost_memory(writer: &Writer) -> u64 {
    let proxy = writer.readers.get(reader(1)).expect("it is matched");
    proxy.congestion.as_ref().expect("it is elsewhere").lost()
}

fn is_paced(writer: &Writer) -> bool {
    writer.flow.paced
}

fn ask_for_fragments(writer: &mut Writer, now: Instant, sequence: i64, fragments: std::ops::RangeInclusive<u32>) {
    let mut state = FragmentSet::new(*fragments.start());
    fragments.for_each(|number| _ = state.insert(number));
    let (entity, sequence) = (writer.guid().entity, SequenceNumber(sequence));
    let count = writer.counters().acknacks as u32 + 1;
    let nack = NackFrag { reader: reader(1).entity, writer: entity, sequence, state, count };
    writer.handle_nack_frag(now, reader(1), &nack);
}

#[test]
fn a_large_sample_that_is_asked_for_as_a_whole_is_lost_with_all_its_parts_each_time_that_it_was_sent() {
    let mut writer = roomy_writer(None);
    write(&mut writer, SAMPLE_BYTES);
    drain(&mut writer, START);
    let ask = |writer: &mut Writer, millis| {
        acknowledge(writer, after(millis), 1, SequenceNumber(1), &[1]);
        lost(writer)
    };
    assert_eq!(ask(&mut writer, 10), FRAGMENTS);
    assert_eq!(ask(&mut writer, 11), FRAGMENTS, "that is known");
    drain(&mut writer, after(11));
    assert_eq!(writer.counters().repaired, FRAGMENTS);
    assert_eq!(ask(&mut writer, 12), FRAGMENTS, "the repair is on its way");
    assert_eq!(ask(&mut writer, 2_000), 2 * FRAGMENTS, "the repair is lost");
}

#[test]
fn a_pack_is_lost_as_the_datagram_that_it_was() {
    let lost = lost_with_a_pack(None);
    assert!((congestion::DATAGRAM * 3 / 4..=congestion::DATAGRAM).contains(&lost), "{lost}");
    let group = Locator::from(std::net::SocketAddr::from(([239, 255, 0, 7], 7401)));
    assert_eq!(lost_with_a_pack(Some(group)), 0, "a group that has brought nothing yet tells nothing of the path");
}

#[test]
fn small_samples_behind_large_ones_are_lost_as_the_datagram_that_they_shared() {
    let mut writer = roomy_writer(None);
    (0..2).for_each(|_| write(&mut writer, SAMPLE_BYTES));
    drain(&mut writer, START);
    acknowledge(&mut writer, after(10), 1, SequenceNumber(3), &[]);
    (0..20).for_each(|_| write(&mut writer, 8));
    assert!((1..3).contains(&drain(&mut writer, after(10))), "they share a datagram");
    let all: Vec<i64> = (3..23).collect();
    acknowledge(&mut writer, after(20), 1, SequenceNumber(3), &all);
    let lost = lost_memory(&writer);
    assert!((congestion::DATAGRAM / 2..=2 * congestion::DATAGRAM).contains(&lost), "{lost}");
}

/// A writer that has two large samples, of which the second takes the place of the first, with what `leaves` before that was written.
fn overwriting_writer(mut leaves: impl FnMut(&mut Writer)) -> Writer {
    let mut writer = collecting(Method::Immediate, History::KeepLast(1));
    writer.unmatch_reader(reader(1));
    writer.match_reader(START, MatchedReader { receive_buffer_bytes: Some(4 << 20), ..matched_reader(1) });
    acknowledge(&mut writer, START, 1, SequenceNumber(1), &[]);
    writer.judge_path(START, reader(1));
    for _ in 0..2 {
        write_stamped(&mut writer, START, SAMPLE_BYTES);
        leaves(&mut writer);
    }
    drain(&mut writer, START);
    assert_eq!((writer.history.first(), writer.outgoing.place), (SequenceNumber(2), Place::before(SequenceNumber(3))));
    writer
}

fn tell_lost(writer: &mut Writer, numbers: &[i64]) -> u64 {
    let mut set = SequenceSet::new(SequenceNumber(numbers[0]));
    numbers.iter().for_each(|number| assert!(set.insert(SequenceNumber(*number))));
    writer.handle_lost(after(10), reader(1), &set);
    lost(writer)
}

fn tell_lost_fragments(writer: &mut Writer, numbers: std::ops::RangeInclusive<u32>, rest: bool) -> u64 {
    let mut state = FragmentSet::new(*numbers.start());
    numbers.for_each(|number| assert!(state.insert(number)));
    let (reader_id, writer_id) = (reader(1).entity, writer.guid.entity);
    let fragment_size = writer.history.get(SequenceNumber(2)).and_then(|sample| sample.fragment_bytes).expect("cut");
    let told =
        LostFrag { reader: reader_id, writer: writer_id, sequence: SequenceNumber(1), fragment_size, state, rest };
    writer.handle_lost_frag(after(10), reader(1), &told);
    lost(writer)
}

#[test]
fn what_is_lost_and_overwritten_counts_when_it_is_told_and_only_once() {
    let sent = || overwriting_writer(|writer| _ = drain(writer, START));
    let mut writer = sent();
    assert_eq!(tell_lost(&mut writer, &[1]), FRAGMENTS);
    assert_eq!(tell_lost(&mut writer, &[1]), FRAGMENTS, "the network repeats datagrams");
    assert_eq!(tell_lost(&mut writer, &[2]), FRAGMENTS, "the writer has that one");
    assert_eq!(tell_lost(&mut writer, &[3, 200]), FRAGMENTS, "nobody has lost what was never written");
    let mut writer = sent();
    assert_eq!(tell_lost_fragments(&mut writer, 3..=8, false), 6);
    assert_eq!(tell_lost_fragments(&mut writer, 3..=9, false), 6);
    let mut writer = sent();
    assert_eq!(tell_lost_fragments(&mut writer, 3..=8, true), FRAGMENTS - 2);
    assert_eq!(tell_lost_fragments(&mut writer, 9..=10, true), FRAGMENTS - 2, "those are among the rest");
    let behind = FRAGMENTS as u32 + 1;
    assert_eq!(tell_lost_fragments(&mut sent(), behind..=behind + 9, true), 0, "there were no more");
}

#[test]
fn a_reader_that_was_given_up_has_lost_nothing_of_what_was_sent_meanwhile() {
    let mut writer = overwriting_writer(|writer| _ = drain(writer, START));
    writer.readers.get_mut(reader(1)).expect("matched").active = false;
    assert_eq!(tell_lost(&mut writer, &[1]), 0);
    acknowledge(&mut writer, after(5), 1, SequenceNumber(2), &[]);
    assert!(writer.readers.get(reader(1)).is_some_and(|proxy| proxy.active));
    assert_eq!(tell_lost(&mut writer, &[1]), 0);
}

#[test]
fn what_was_asked_for_before_it_was_overwritten_counts_once() {
    let mut asks = true;
    let mut writer = overwriting_writer(|writer| {
        drain(writer, START);
        if std::mem::take(&mut asks) {
            ask_for_fragments(writer, after(5), 1, 3..=8);
        }
    });
    assert_eq!(tell_lost_fragments(&mut writer, 5..=10, false), 8);
}

#[test]
fn what_was_overwritten_before_it_left_is_not_lost() {
    let mut writer = overwriting_writer(|_| ());
    assert_eq!(tell_lost(&mut writer, &[1]), 0);
}

#[test]
fn what_left_before_a_reader_came_or_before_its_path_was_slowed_down_is_not_lost_on_it() {
    let mut writer = overwriting_writer(|writer| {
        drain(writer, START);
        if writer.outgoing.place.sample == SequenceNumber(2) {
            writer.unmatch_reader(reader(1));
            writer.match_reader(START, MatchedReader { receive_buffer_bytes: Some(4 << 20), ..matched_reader(1) });
        }
    });
    assert_eq!(tell_lost(&mut writer, &[1]), 0);
    let mut writer = overwriting_writer(|writer| _ = drain(writer, START));
    writer.readers.get_mut(reader(1)).expect("matched").slowed_at =
        Position { sample: SequenceNumber(0), fragments: 4 };
    assert_eq!(tell_lost(&mut writer, &[1]), FRAGMENTS - 4);
}

/// What a reader has lost for which the first of some packs did not come.
fn lost_with_a_pack(multicast: Option<Locator>) -> u64 {
    let guid = Guid::new(GuidPrefix([99; 12]), EntityId::user_writer(1, Keyed::No));
    let transmission = Transmission::by(Method::batch());
    let qos = WriterQos { history: History::KeepAll, transmission, ..WriterQos::default() };
    let mut writer = Writer::new(guid, qos.into(), &WriterOptions::default());
    let receive_buffer_bytes = Some(4 << 20);
    for number in 1..=if multicast.is_some() { 4 } else { 1 } {
        writer.match_reader(START, MatchedReader { receive_buffer_bytes, multicast, ..matched_reader(number) });
        acknowledge(&mut writer, START, number, SequenceNumber(1), &[]);
    }
    drain(&mut writer, START);
    writer.route.set_neighbourhood(std::sync::Arc::default());
    assert_eq!(writer.route.uses_group(), multicast.is_some());
    for _ in 0..60 {
        let time = Timestamp { seconds: 1, fraction: 0 };
        writer.write_small(START, KeyHash::default(), time, &[0; 50]).expect("it is small").expect("there is room");
    }
    writer.flush();
    let (first, end) = writer.history.pack(SequenceNumber(1));
    assert!(end.0 - first.0 > 10, "{first} to {end} are in one datagram");
    drain(&mut writer, START);
    ask_for_pack(&mut writer, after(10), SequenceNumber(1));
    lost_memory(&writer)
}

#[test]
fn what_a_reader_tells_in_one_datagram_is_judged_together() {
    let mut writer = roomy_writer(None);
    (0..3).for_each(|_| write(&mut writer, SAMPLE_BYTES));
    drain(&mut writer, START);
    ask_for_fragments(&mut writer, after(30), 1, 1..=8);
    assert_eq!(lost(&writer), 8);
    acknowledge(&mut writer, after(30), 1, SequenceNumber(1), &[2, 3]);
    assert_eq!(lost(&writer), 8 + 2 * FRAGMENTS, "one round, not two");
    assert!(!is_paced(&writer));
    writer.judge_path(after(30), reader(1));
    assert_eq!((lost(&writer), is_paced(&writer)), (0, true));
}

#[test]
fn what_was_sent_to_a_group_that_has_brought_nothing_yet_tells_nothing_of_the_path() {
    let group = Locator::from(std::net::SocketAddr::from(([239, 255, 0, 7], 7401)));
    for has_brought_any in [false, true] {
        let mut writer = roomy_writer(Some(group));
        let receive_buffer_bytes = Some(4 << 20);
        for number in 2..=4 {
            let multicast = Some(group);
            writer.match_reader(START, MatchedReader { receive_buffer_bytes, multicast, ..matched_reader(number) });
            acknowledge(&mut writer, START, number, SequenceNumber(1), &[]);
        }
        drain(&mut writer, START);
        writer.route.set_neighbourhood(std::sync::Arc::default());
        assert!(writer.route.uses_group());
        write(&mut writer, SAMPLE_BYTES);
        drain(&mut writer, START);
        let first = if has_brought_any { 2 } else { 1 };
        ask_for_fragments(&mut writer, after(1), 1, first..=10);
        assert_eq!(lost(&writer), 0);
        ask_for_fragments(&mut writer, after(2), 1, 11..=20);
        assert_eq!(lost(&writer), if has_brought_any { 10 } else { 0 });
    }
}

#[test]
fn what_nobody_else_is_owed_is_not_sent_once_a_reader_is_given_up() {
    let mut writer = impatient_writer(1);
    (0..40).for_each(|_| write(&mut writer, 1_000));
    send(&mut writer, START);
    let (next, sent) = (writer.outgoing.place.sample, writer.counters().transmitted);
    assert!(next < SequenceNumber(25), "the window closes");
    let (_, now) = run_until_given_up(&mut writer);
    assert_eq!((writer.outgoing.place.sample, writer.counters().transmitted), (SequenceNumber(41), sent));
    write(&mut writer, 1_000);
    assert_eq!(send(&mut writer, now), [locator(1)], "what is new leaves for it");
}

#[test]
fn large_samples_leave_in_pieces_for_readers_that_were_all_given_up() {
    let mut writer = impatient_writer(1);
    write(&mut writer, 8);
    send(&mut writer, START);
    let (_, now) = run_until_given_up(&mut writer);
    write(&mut writer, 4 << 20);
    let burst = drain(&mut writer, now);
    assert!(burst < 200, "{burst} datagrams at once");
}
