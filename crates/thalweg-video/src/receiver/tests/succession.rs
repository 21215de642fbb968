//! Senders that take another number: what comes under it before their farewell to the old one is read.

use super::*;

/// Ten frames, from the sixth on under the source 2. The farewell to the source 1 is read behind half of that frame; `disturb` gives
/// packets before it.
fn change(
    receiver: &mut VideoReceiver,
    peer: &mut Peer,
    disturb: impl Fn(&Peer) -> Vec<Vec<u8>>,
) -> Vec<ReceivedPicture> {
    let mut pictures = Vec::new();
    for index in 0..10 {
        let disturbing = if index == 5 { disturb(peer) } else { Vec::new() };
        peer.ssrc = if index < 5 { 1 } else { 2 };
        let frame = peer.frame(index as u8);
        let (early, late) = frame.split_at(24);
        pictures.extend(exchange(receiver, index, &[&disturbing[..], early].concat()));
        if index == 5 {
            receiver.handle_departure(1);
        }
        pictures.extend(exchange(receiver, index, late));
    }
    pictures
}

#[test]
fn nothing_is_lost_under_a_new_number_though_the_farewell_to_the_old_one_is_read_late() {
    for extends in [true, false] {
        let mut peer = Peer::new(Dialect { extends, ..ST_2110 }, Scan::Progressive);
        let mut receiver = peer.receiver(|_| {});
        let pictures = change(&mut receiver, &mut peer, |_| Vec::new());
        assert!(pictures.len() == 8 && pictures.iter().all(ReceivedPicture::is_complete), "{}", pictures.len());
        let ReceiverCounters { packets, frames, refused, .. } = receiver.counters();
        assert_eq!((packets.received, packets.lost, packets.duplicates), (480, 0, 0), "{packets:?}");
        assert_eq!((frames.discarded, frames.before_start, refused.foreign), (0, 0, 0));
        assert_eq!((receiver.ssrc(), receiver.source_packets()), (Some(2), (240, 240)));
    }
}

#[test]
fn a_packet_of_somebody_else_before_the_farewell_is_not_taken_for_the_senders() {
    let mut peer = Peer::new(ST_2110, Scan::Progressive);
    let mut receiver = peer.receiver(|_| {});
    let pictures = change(&mut receiver, &mut peer, |peer| {
        let Peer { sequence, timestamp, .. } = *peer;
        let mut other = Peer { ssrc: 666, sequence: sequence + 5, ..Peer::new(ST_2110, Scan::Progressive) };
        vec![other.packet(timestamp, Field::First, &[5], 200)]
    });
    assert!(pictures.len() == 8 && pictures.iter().all(ReceivedPicture::is_complete), "{}", pictures.len());
    assert!(pictures.iter().all(|picture| !picture.octets.contains(&200)));
    assert_eq!((receiver.ssrc(), receiver.counters().packets.lost), (Some(2), 0));
}

#[test]
fn packets_of_somebody_else_that_go_on_where_the_stream_does_do_not_take_it_over() {
    let mut peer = Peer::new(ST_2110, Scan::Progressive);
    let mut receiver = peer.receiver(|_| {});
    let mut pictures = Vec::new();
    for index in 0..20 {
        if index > 0 {
            let Peer { sequence, timestamp, .. } = peer;
            let mut other = Peer { ssrc: 666, sequence, timestamp, ..Peer::new(ST_2110, Scan::Progressive) };
            pictures.extend(exchange(&mut receiver, index, &other.frame(200)));
        }
        pictures.extend(exchange(&mut receiver, index, &peer.frame(index as u8)));
    }
    // The sender has gone on under its number: nothing of what came before was its own under another one.
    receiver.handle_departure(1);
    assert_eq!((receiver.ssrc(), receiver.counters().refused.foreign), (Some(1), 19 * 48));
    assert_eq!(pictures.len(), 18);
    assert!(pictures.iter().all(|picture| picture.is_complete() && picture.octets[0] < 20));
}

/// A receiver that has a frame by its first path, that frame, and the next one under another number.
fn on_two_paths() -> (VideoReceiver, Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut peer = Peer::new(ST_2110, Scan::Progressive);
    let mut receiver = peer.receiver(|config| config.paths = Paths::Two);
    let old = peer.frame(0);
    peer.ssrc = 2;
    let new = peer.frame(1);
    exchange(&mut receiver, 0, &old);
    (receiver, old, new)
}

#[test]
fn the_second_path_may_bring_the_end_of_the_old_number_later_than_the_first_one_the_new_number() {
    let (mut receiver, old, new) = on_two_paths();
    exchange(&mut receiver, 1, &new);
    for packet in &old {
        receiver.handle_datagram_from(at(1), NetworkPath::Second, packet);
    }
    receiver.handle_departure(1);
    let packets = receiver.counters().packets;
    assert_eq!((receiver.ssrc(), packets.received, packets.duplicates), (Some(2), 96, 48), "{packets:?}");
}

#[test]
fn what_the_second_path_brings_after_the_farewell_does_not_hold_the_place_of_the_old_number() {
    let (mut receiver, old, new) = on_two_paths();
    receiver.handle_departure(1);
    for packet in &old {
        receiver.handle_datagram_from(at(1), NetworkPath::Second, packet);
    }
    assert_eq!(receiver.ssrc(), Some(1));
    exchange(&mut receiver, 1, &new);
    let packets = receiver.counters().packets;
    assert_eq!((receiver.ssrc(), packets.received, packets.duplicates), (Some(2), 96, 48), "{packets:?}");
}

#[test]
fn a_sender_that_goes_on_after_its_farewell_keeps_its_place() {
    let mut peer = Peer::new(ST_2110, Scan::Progressive);
    let mut receiver = peer.receiver(|_| {});
    exchange(&mut receiver, 0, &peer.frame(0));
    receiver.handle_departure(1);
    for index in 1..8 {
        exchange(&mut receiver, index, &peer.frame(index as u8));
    }
    (peer.ssrc, peer.sequence) = (2, 77);
    exchange(&mut receiver, 8, &peer.frame(8));
    assert_eq!((receiver.ssrc(), receiver.counters().refused.foreign), (Some(1), 48));
}
