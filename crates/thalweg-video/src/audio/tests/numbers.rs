//! What a receiver of sound tells of packets by their numbers.

use super::receiver::at;
use crate::audio::*;
use crate::rtp::RtpHeader;
use crate::sdp::AudioEncoding;

fn receiver() -> AudioReceiver {
    let format = AudioFormat::new(AudioEncoding::L16, 1, PacketTime::Millisecond).unwrap();
    AudioReceiver::new(AudioReceiverConfig::new(format, 97))
}

/// A millisecond of sound with these numbers.
fn packet(sequence: u16, timestamp: u32) -> Vec<u8> {
    packet_of(1, sequence, timestamp)
}

fn packet_of(ssrc: u32, sequence: u16, timestamp: u32) -> Vec<u8> {
    let header = RtpHeader { marker: false, payload_type: 97, sequence, timestamp, ssrc };
    [&header.to_octets()[..], &[1; 96]].concat()
}

/// The packet that is sent at this millisecond.
fn sent_at(millis: u64) -> Vec<u8> {
    packet(millis as u16, millis as u32 * 48)
}

/// Hands over so many packets in a row, a millisecond apart, and plays what is due.
fn hear(receiver: &mut AudioReceiver, from_millis: u64, count: u64, packet: impl Fn(u64) -> Vec<u8>) {
    for index in 0..count {
        let now = at((from_millis + index) * 1000);
        receiver.handle_datagram(now, &packet(index)).unwrap();
        while receiver.poll_timeout() <= now {
            let due = receiver.poll_timeout();
            receiver.poll_block(due, &mut Vec::new());
        }
    }
}

#[track_caller]
fn check(receiver: &AudioReceiver, expected: u64, received: u64) {
    let stream = receiver.received().unwrap();
    assert_eq!((stream.expected, stream.received), (expected, received));
}

#[test]
fn a_packet_counts_once_though_a_second_path_brings_it_late() {
    let mut receiver = receiver();
    for millis in 0..200_u64 {
        let copy = millis.checked_sub(30);
        for sent in [Some(millis), copy].into_iter().flatten().filter(|sent| *sent != 50 && *sent < 100) {
            hear(&mut receiver, millis, 1, |_| sent_at(sent));
        }
    }
    assert!(receiver.counters().frames_late > 90 * 48, "copies come after their time");
    check(&receiver, 100, 99);
}

#[test]
fn a_single_number_far_away_is_not_believed() {
    let mut receiver = receiver();
    hear(&mut receiver, 0, 10, sent_at);
    hear(&mut receiver, 10, 1, |_| packet(20_010, 480));
    hear(&mut receiver, 11, 10, |index| sent_at(11 + index));
    check(&receiver, 21, 20);
}

#[test]
fn a_sender_that_begins_anew_has_lost_nothing() {
    for first in [20_000, 50_000] {
        let mut receiver = receiver();
        hear(&mut receiver, 0, 10, sent_at);
        hear(&mut receiver, 10, 10, |index| packet(first + index as u16, 1_000_000_000 + index as u32 * 48));
        // The first packet behind the jump has no place yet.
        check(&receiver, 19, 19);
        assert_eq!(receiver.received().unwrap().highest_sequence, u32::from(first) + 9);
    }
}

#[test]
fn a_sender_that_begins_anew_behind_its_numbers_has_lost_nothing() {
    let mut receiver = receiver();
    hear(&mut receiver, 0, 300, sent_at);
    // Its times go on: the packets are none that came before.
    hear(&mut receiver, 300, 50, |index| packet(100 + index as u16, (300 + index as u32) * 48));
    check(&receiver, 350, 350);
    let highest = receiver.received().unwrap().highest_sequence;
    assert_eq!((highest, receiver.counters().starts), (149, 1));
}

#[test]
fn old_packets_in_a_row_are_copies() {
    let mut receiver = receiver();
    hear(&mut receiver, 0, 300, sent_at);
    hear(&mut receiver, 300, 150, sent_at);
    hear(&mut receiver, 450, 1, |_| sent_at(300));
    check(&receiver, 301, 301);
}

#[test]
fn an_outage_is_lost_as_long_as_time_and_numbers_agree() {
    for gap in [5000, 40_000] {
        let mut receiver = receiver();
        hear(&mut receiver, 0, 10, sent_at);
        hear(&mut receiver, 10 + gap, 10, |index| sent_at(10 + gap + index));
        check(&receiver, 20 + gap, 20);
    }
}

#[test]
fn packets_under_a_new_number_wait_for_the_farewell_to_the_old_one() {
    let mut receiver = receiver();
    let sent = |ssrc, index: u64| packet_of(ssrc, 65_500_u16.wrapping_add(index as u16), index as u32 * 48);
    hear(&mut receiver, 0, 50, |index| sent(1, index));
    hear(&mut receiver, 50, 1, |_| sent(666, 53));
    hear(&mut receiver, 51, 5, |index| sent(2, 50 + index));
    assert_eq!((receiver.received().unwrap().ssrc, receiver.counters().packets_foreign), (1, 6));
    receiver.handle_departure(1);
    hear(&mut receiver, 56, 10, |index| sent(2, 55 + index));
    assert_eq!(receiver.received().unwrap().ssrc, 2);
    check(&receiver, 15, 15);
    assert_eq!((receiver.packets(), receiver.counters().packets_foreign), ((65, 65), 1));
    // Nobody takes over a sender that goes on.
    hear(&mut receiver, 66, 1, |_| sent(666, 65));
    hear(&mut receiver, 67, 5, |index| sent(2, 65 + index));
    receiver.handle_departure(2);
    assert_eq!(receiver.received().unwrap().ssrc, 2);
}

#[test]
fn a_sender_under_another_number_is_counted_anew_in_reports() {
    let mut receiver = receiver();
    let sent = |ssrc, index: u64| packet_of(ssrc, 65_500_u16.wrapping_add(index as u16), index as u32 * 48);
    // The last packet under the first number is lost, the first one under the second, and another one later.
    hear(&mut receiver, 0, 50, |index| sent(1, index));
    hear(&mut receiver, 51, 9, |index| sent(1, 51 + index));
    receiver.handle_departure(1);
    hear(&mut receiver, 62, 10, |index| sent(2, 62 + index));
    hear(&mut receiver, 73, 10, |index| sent(2, 73 + index));
    let stream = receiver.received().unwrap();
    assert_eq!((stream.ssrc, stream.highest_sequence), (2, 46), "no wrap under this number");
    check(&receiver, 21, 20);
    assert_eq!((receiver.packets(), receiver.counters().starts), ((83, 79), 1));
    hear(&mut receiver, 2000, 5, |index| packet_of(3, index as u16, index as u32 * 48));
    check(&receiver, 5, 5);
    assert_eq!((receiver.packets(), receiver.counters().starts), ((88, 84), 2), "another sender");
}
