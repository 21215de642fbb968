//! A receiver that ends while its stream goes on.

use super::*;

/// What a receiver shows last, stopped at frame time `end`: the number of each picture.
fn stop(receiver: &mut VideoReceiver, end: u64) -> Vec<u8> {
    receiver.stop(at(end));
    std::iter::from_fn(|| receiver.poll_frame(at(end))).map(|picture| picture.octets[0]).collect()
}

#[test]
fn a_frame_on_its_way_is_no_loss_of_a_receiver_that_stops() {
    for paths in [Paths::One, Paths::Two] {
        let mut peer = Peer::new(ST_2110, Scan::Progressive);
        let mut receiver = peer.receiver(|config| config.paths = paths);
        for index in 0..6 {
            exchange(&mut receiver, index, &peer.frame(index as u8));
        }
        // Half of the next one has come, without one packet.
        let mut frame = peer.frame(6);
        frame.truncate(24);
        frame.remove(5);
        exchange(&mut receiver, 6, &frame);
        assert_eq!(stop(&mut receiver, 6), [5], "whole, and before its time");
        let ReceiverCounters { packets, frames, .. } = receiver.counters();
        assert_eq!((frames.complete, frames.expected()), (6, 6), "{frames:?}");
        assert_eq!((packets.received, packets.lost, packets.outstanding), (6 * 48 + 23, 0, 1), "{packets:?}");
        assert!(packets.are_consistent());
        assert_eq!(receiver.path_counters(NetworkPath::First).map_or(0, |path| path.packets_lost), 0);
        assert_eq!(receiver.source_packets(), (6 * 48 + 24, 6 * 48 + 23), "the last report tells it");
        assert!(receiver.highest_sequence().is_some());
    }
}

#[test]
fn what_has_not_come_in_its_time_is_lost_to_a_receiver_that_stops() {
    // Before and at the time of the frame that lacks a packet.
    let cases: [(u64, &[u8], u64); 2] = [(5, &[], 0), (6, &[4, 5], 1)];
    for (end, shown, lost) in cases {
        let mut peer = Peer::new(ST_2110, Scan::Progressive);
        let mut receiver = peer.receiver(|_| {});
        for index in 0..6 {
            let mut frame = peer.frame(index as u8);
            if index == 4 {
                frame.remove(7);
            }
            exchange(&mut receiver, index, &frame);
        }
        assert_eq!(stop(&mut receiver, end), shown, "until frame time {end}");
        let ReceiverCounters { packets, frames, .. } = receiver.counters();
        assert_eq!((frames.concealed, frames.expected()), (lost, 4 + shown.len() as u64), "{frames:?}");
        assert_eq!((packets.lost, packets.outstanding), (lost, 1 - lost), "{packets:?}");
        assert!(packets.are_consistent());
    }
}
