//! Laws of samples that are overwritten while they leave.

use super::tests::{
    START, Told, acknowledge, collecting, drain, locator, matched_reader, patient_writer, reader, send,
    sent_submessages, write, write_stamped,
};
use super::transmission::Place;
use super::*;
use crate::qos::{History, Method};
use crate::time::INFINITE;
use crate::types::VendorId;

/// Two large samples for a KEEP_LAST(1) writer, the second written in the middle of the first: how many fragments left, and how many
/// samples were abandoned.
fn overwrite_in_the_middle(vendor: VendorId, reliable: bool, method: Method) -> (u64, u64) {
    let mut writer = collecting(method, History::KeepLast(1));
    writer.unmatch_reader(reader(1));
    let receive_buffer_bytes = Some(100_000);
    writer.match_reader(START, MatchedReader { vendor, reliable, receive_buffer_bytes, ..matched_reader(2) });
    acknowledge(&mut writer, START, 2, SequenceNumber(1), &[]);
    let mut now = START;
    let mut outbox = Outbox::new();
    let mut send = |writer: &mut Writer, now| {
        while writer.poll_transmit(now, &mut outbox) {
            outbox.clear();
        }
        outbox.clear();
    };
    write_stamped(&mut writer, now, 400_000);
    send(&mut writer, now);
    assert!(writer.outgoing.place.fragment > 0, "it stops in the middle");
    write_stamped(&mut writer, now, 400_000);
    for _ in 0..100 {
        now += Duration::from_millis(5);
        writer.handle_timeout(now);
        send(&mut writer, now);
        let place = writer.outgoing.place;
        if vendor != VendorId::THALWEG && place.fragment == 0 {
            acknowledge(&mut writer, now, 2, place.sample, &[]);
        }
    }
    (writer.counters().transmitted, writer.counters().abandoned)
}

#[test]
fn a_large_sample_that_nobody_acknowledges_is_finished_although_it_is_overwritten() {
    let fragments = 400_000_u64.div_ceil(1_304);
    for method in [Method::Immediate, Method::asynchronous("slow")] {
        assert_eq!(overwrite_in_the_middle(VendorId::THALWEG, false, method), (2 * fragments, 0));
    }
}

#[test]
fn a_large_sample_to_a_reader_that_acknowledges_whole_ones_is_finished_although_it_is_overwritten() {
    let fragments = 400_000_u64.div_ceil(1_304);
    for method in [Method::Immediate, Method::asynchronous("slow")] {
        assert_eq!(overwrite_in_the_middle(VendorId::CYCLONE, true, method), (2 * fragments, 0));
    }
}

#[test]
fn large_samples_to_a_reader_that_acknowledges_whole_ones_keep_within_the_window() {
    let mut writer = patient_writer(INFINITE);
    let path = MatchedReader { on_this_host: true, datagram_bytes: 65_000, ..matched_reader(1) };
    writer.match_reader(START, MatchedReader { vendor: VendorId::CYCLONE, receive_buffer_bytes: None, ..path });
    acknowledge(&mut writer, START, 1, SequenceNumber(1), &[]);
    send(&mut writer, START);
    // Less than a quarter of the window, and then more than fits beside it.
    for bytes in [20_000, 130_000, 130_000, 1_000_000, 20_000] {
        write(&mut writer, bytes);
    }
    let mut now = START;
    for expected in [1, 2, 3, 4, 5] {
        let mut asked = false;
        for _ in 0..20 {
            let told = sent_submessages(&mut writer, now);
            let last = SequenceNumber(expected);
            asked |= told.iter().any(|told| matches!(told, Told::Heartbeat { last: told, .. } if *told == last));
            let expected_end = (last.next(), 0);
            if (writer.outgoing.place.sample, writer.outgoing.place.fragment) == expected_end && asked {
                break;
            }
            now += Duration::from_millis(1);
            writer.handle_timeout(now);
        }
        assert!(asked, "the reader is asked for sample {expected} before the next one leaves");
        assert_eq!(writer.outgoing.place, Place::before(SequenceNumber(expected + 1)));
        acknowledge(&mut writer, now, 1, SequenceNumber(expected + 1), &[]);
    }
}

#[test]
fn a_foreign_reader_learns_by_heartbeat_and_never_by_gap_that_a_sample_it_has_a_part_of_will_not_come() {
    for fragments_alone in [false, true] {
        let mut writer = collecting(Method::Immediate, History::KeepLast(1));
        writer.unmatch_reader(reader(1));
        let receive_buffer_bytes = Some(200_000);
        let foreign = MatchedReader { vendor: VendorId::CYCLONE, receive_buffer_bytes, ..matched_reader(2) };
        writer.match_reader(START, foreign);
        acknowledge(&mut writer, START, 2, SequenceNumber(1), &[]);
        let mut now = START;
        for _ in 0..2 {
            write_stamped(&mut writer, now, 20_000);
            for _ in 0..20 {
                now += Duration::from_millis(5);
                writer.handle_timeout(now);
                drain(&mut writer, now);
            }
        }
        assert_eq!(writer.outgoing.place.sample, SequenceNumber(3));
        if fragments_alone {
            let mut state = crate::wire::FragmentSet::new(1);
            state.insert(1);
            let (reader, entity) = (reader(2), writer.guid().entity);
            let sequence = SequenceNumber(1);
            let nack = crate::wire::NackFrag { reader: reader.entity, writer: entity, sequence, state, count: 1 };
            writer.handle_nack_frag(now, reader, &nack);
        } else {
            acknowledge(&mut writer, now, 2, SequenceNumber(1), &[1]);
        }
        let told = sent_submessages(&mut writer, now);
        let first = SequenceNumber(2);
        assert_eq!(told, [Told::Heartbeat { to: locator(2), first, last: first }], "{fragments_alone}");
    }
}

#[test]
fn a_reliable_sample_that_is_overwritten_in_the_middle_is_abandoned_and_counted() {
    let (transmitted, abandoned) = overwrite_in_the_middle(VendorId::THALWEG, true, Method::Immediate);
    assert_eq!(abandoned, 1);
    assert!(transmitted < 400, "{transmitted} fragments");
}
