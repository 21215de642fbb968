//! What is counted of senders that pause, begin anew or send again.

use super::*;

/// Frames in a row from frame time `index` on.
fn play(peer: &mut Peer, receiver: &mut VideoReceiver, frames: std::ops::Range<u64>) {
    for index in frames {
        exchange(receiver, index, &peer.frame(index as u8));
    }
}

#[test]
fn frames_of_a_long_pause_are_skipped_and_not_lost() {
    let mut peer = Peer::new(Dialect { extends: false, ..ST_2110 }, Scan::Progressive);
    let mut receiver = peer.receiver(|_| {});
    play(&mut peer, &mut receiver, 0..10);
    // Of 48 packets a frame more than half of all 16 bits.
    peer.timestamp = peer.timestamp.wrapping_add(700 * FRAME);
    play(&mut peer, &mut receiver, 710..720);
    receiver.finish();
    while receiver.poll_frame(at(720)).is_some() {}
    let ReceiverCounters { packets, frames, .. } = receiver.counters();
    assert_eq!((packets.expected, packets.received), (20 * 48, 20 * 48), "{packets:?}");
    assert_eq!((frames.skipped, frames.lost, frames.complete), (700, 0, 20));
}

#[test]
fn a_sender_that_begins_anew_under_its_source_has_lost_nothing() {
    // The time stamps begin elsewhere too, or are those of a clock that went on.
    // Also behind what came before, among the numbers that are still told apart.
    let behind = 0_u32.wrapping_sub(300);
    let beginnings = [(true, 1 << 30, true), (true, 1 << 30, false), (false, 20_000, true)];
    let from_behind = [false, true].into_iter().flat_map(|extends| [true, false].map(|time| (extends, behind, time)));
    for (extends, ahead, is_other_time) in beginnings.into_iter().chain(from_behind) {
        for paths in [Paths::One, Paths::Two] {
            let mut peer = Peer::new(Dialect { extends, ..ST_2110 }, Scan::Progressive);
            let mut receiver = peer.receiver(|config| config.paths = paths);
            for index in (0..10).chain(40..50) {
                if index == 40 {
                    peer.sequence = peer.sequence.wrapping_add(ahead);
                    let ticks = if is_other_time { 1 << 30 } else { 30 * FRAME };
                    peer.timestamp = peer.timestamp.wrapping_add(ticks);
                }
                let frame = peer.frame(index as u8);
                exchange(&mut receiver, index, &frame);
                for packet in frame.iter().filter(|_| paths == Paths::Two) {
                    receiver.handle_datagram_from(at(index), NetworkPath::Second, packet);
                }
            }
            receiver.finish();
            while receiver.poll_frame(at(50)).is_some() {}
            let ReceiverCounters { packets, frames, .. } = receiver.counters();
            assert!(packets.are_consistent());
            assert_eq!((packets.expected, packets.received), (20 * 48, 20 * 48), "{packets:?}");
            assert_eq!((packets.stale, packets.implausible), (0, 0));
            assert_eq!((frames.skipped, frames.lost), (if is_other_time { 0 } else { 30 }, 0), "{frames:?}");
            for path in [NetworkPath::First, NetworkPath::Second] {
                let lost = receiver.path_counters(path).map_or(0, |counters| counters.packets_lost);
                assert_eq!(lost, 0, "{path:?}");
            }
        }
    }
}

#[test]
fn pictures_go_on_at_once_after_a_beginning_behind_the_newest_number() {
    let mut peer = Peer::new(Dialect { extends: false, ..ST_2110 }, Scan::Progressive);
    let mut receiver = peer.receiver(|_| {});
    play(&mut peer, &mut receiver, 0..40);
    let before = receiver.counters().frames.complete;
    peer.sequence = peer.sequence.wrapping_sub(1500);
    peer.timestamp = peer.timestamp.wrapping_add(20 * FRAME);
    play(&mut peer, &mut receiver, 60..80);
    let ReceiverCounters { packets, frames, .. } = receiver.counters();
    assert_eq!((packets.duplicates, packets.received), (0, 60 * 48), "{packets:?}");
    // Those before the beginning that still waited, and all but the last two of it.
    assert_eq!((frames.complete - before, frames.concealed, frames.lost), (2 + 18, 0, 0), "{frames:?}");
}

#[test]
fn old_packets_from_far_behind_do_not_begin_a_stream_anew() {
    for scan in [Scan::Progressive, Scan::Interlaced] {
        let mut peer = Peer::new(Dialect { extends: false, ..ST_2110 }, scan);
        let mut receiver = peer.receiver(|_| {});
        let mut sent = Vec::new();
        for index in 0..50 {
            let frame = peer.frame(index as u8);
            exchange(&mut receiver, index, &frame);
            sent.push(frame);
        }
        // Copies of frames that were shown, some of them more than a second ago, in their order.
        for packet in sent[10..40].concat() {
            receiver.handle_datagram(at(49), &packet);
        }
        let packets = receiver.counters().packets;
        assert_eq!((packets.expected, packets.received, packets.implausible), (50 * 48, 50 * 48, 0), "{packets:?}");
        assert_eq!(packets.duplicates + packets.stale, 30 * 48);
    }
}

#[test]
fn reports_count_what_was_sent_again_where_it_came_in_the_stream() {
    for retransmission in [None, Some(97)] {
        let mut peer = Peer::new(ST_2110, Scan::Progressive);
        let reorder_window = Repair::REORDER_WINDOW;
        let mut receiver = peer.receiver(|config| config.repair = Repair::Nack { reorder_window, retransmission });
        let mut frame = peer.frame(0);
        let lost = frame.remove(5);
        exchange(&mut receiver, 0, &frame);
        let asked = at(0) + Duration::from_millis(1);
        assert!(receiver.poll_nack(asked).is_some());
        assert_eq!(receiver.source_packets(), (48, 47));
        let again = match retransmission {
            None => lost,
            Some(payload_type) => {
                let header = RtpHeader { payload_type, ssrc: 2, ..RtpPacket::parse(&lost).unwrap().header };
                [&header.to_octets()[..], &lost[2..4], &lost[12..]].concat()
            }
        };
        let taken = receiver.handle_datagram(asked + Duration::from_millis(1), &again);
        assert_eq!(receiver.counters().packets.recovered, 1, "{taken:?}");
        let received = if retransmission.is_none() { 48 } else { 47 };
        assert_eq!(receiver.source_packets(), (48, received), "a stream of its own has reports of its own");
        assert_eq!(taken == PacketArrival::Repaired, retransmission.is_some());
    }
}
