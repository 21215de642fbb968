//! Packets that somebody else sends, and times that step: what a few datagrams may not do.

use super::*;

/// Plays `frames` frames from frame time `index` on, and before each what `disturb` gives; the pictures that come.
fn play(
    peer: &mut Peer,
    receiver: &mut VideoReceiver,
    frames: std::ops::Range<u64>,
    mut disturb: impl FnMut(u64) -> Vec<Vec<u8>>,
) -> Vec<ReceivedPicture> {
    let mut pictures = Vec::new();
    for index in frames {
        let packets = [disturb(index), peer.frame(index as u8)].concat();
        pictures.extend(exchange(receiver, index, &packets));
    }
    pictures
}

/// The number of complete pictures; each that says so must be one frame's.
#[track_caller]
fn complete(pictures: &[ReceivedPicture]) -> usize {
    let complete = pictures.iter().filter(|picture| picture.is_complete());
    complete.inspect(|picture| assert_eq!(picture.octets[..], whole(picture.octets[0]))).count()
}

fn nothing(_: u64) -> Vec<Vec<u8>> {
    Vec::new()
}

#[test]
fn one_packet_does_not_change_the_line_numbering() {
    let mut peer = Peer::new(ST_2110, Scan::Interlaced);
    let mut receiver = peer.receiver(|_| {});
    let mut other = Peer::new(Dialect { pieces: 16, ..GSTREAMER }, Scan::Interlaced);
    let pictures = play(&mut peer, &mut receiver, 0..12, |index| {
        // As many pieces as a packet holds, all of which only the other way of counting has, of a frame that is gone.
        if index == 5 { vec![other.packet(u32::MAX - 5000, Field::Second, &[23; 16], 99)] } else { Vec::new() }
    });
    assert_eq!((complete(&pictures), pictures.len()), (10, 10));
}

#[test]
fn a_packet_a_second_of_another_source_does_not_keep_out_a_stream() {
    for first in [0, 100] {
        let mut peer = Peer::new(ST_2110, Scan::Progressive);
        let mut receiver = peer.receiver(|_| {});
        let mut other = Peer { ssrc: 666, sequence: 77, timestamp: 5, ..Peer::new(ST_2110, Scan::Progressive) };
        let before = play(&mut peer, &mut receiver, 0..first, nothing);
        assert_eq!(complete(&before) as u64, first.saturating_sub(2));
        // After the stream was silent for 1.5 s the other source is first.
        let pictures = play(&mut peer, &mut receiver, first + 45..first + 200, |index| {
            let forged = other.packet(5 + index as u32 * FRAME, Field::First, &[3], 99);
            if (index - first - 45).is_multiple_of(25) { vec![forged] } else { Vec::new() }
        });
        assert!(complete(&pictures) >= 150, "{} of 155 after {first}", complete(&pictures));
        assert_eq!(receiver.ssrc(), Some(1));
    }
}

#[test]
fn two_streams_do_not_take_turns() {
    let mut peer = Peer::new(ST_2110, Scan::Progressive);
    let mut receiver = peer.receiver(|_| {});
    let mut other = Peer { ssrc: 666, ..Peer::new(ST_2110, Scan::Progressive) };
    let pictures = play(&mut peer, &mut receiver, 0..60, |index| if index > 2 { other.frame(200) } else { Vec::new() });
    assert_eq!((complete(&pictures), pictures.len()), (58, 58));
    assert!(pictures.iter().all(|picture| picture.octets[0] != 200));
    assert_eq!(receiver.counters().refused.foreign, 57 * 48);
}

#[test]
fn single_packets_of_frames_to_come_do_not_stop_the_stream() {
    let mut peer = Peer::new(ST_2110, Scan::Progressive);
    let mut receiver = peer.receiver(|_| {});
    let pictures = play(&mut peer, &mut receiver, 0..40, |_| Vec::new());
    assert_eq!(complete(&pictures), 38);
    let mut other = Peer::new(ST_2110, Scan::Progressive);
    let now = peer.timestamp;
    let pictures = play(&mut peer, &mut receiver, 40..80, |index| {
        other.sequence = 0x1_fff0 + 48 * index as u32;
        let forged = |ahead: u32| other.packet(now.wrapping_add(ahead), Field::First, &[3], 99);
        if index == 45 { [80_000, 84_000, 88_000].map(forged).into() } else { Vec::new() }
    });
    assert!(complete(&pictures) >= 38, "{} of 40", complete(&pictures));
}

#[test]
fn a_stream_goes_on_after_an_outage_of_any_length() {
    for silence in [20, 29, 31, 45, 300, 3000] {
        for scan in [Scan::Progressive, Scan::Interlaced] {
            let mut peer = Peer::new(ST_2110, scan);
            let mut receiver = peer.receiver(|_| {});
            play(&mut peer, &mut receiver, 0..10, nothing);
            for index in 10..10 + silence {
                peer.frame(0);
                exchange(&mut receiver, index, &[]);
            }
            let first = 10 + silence;
            let pictures = play(&mut peer, &mut receiver, first..first + 10, nothing);
            assert_eq!((complete(&pictures), pictures.len()), (8, 8), "after {silence} frame times, {scan}");
            assert_eq!(receiver.counters().packets.unplaced, 0);
        }
    }
}

#[test]
fn a_stream_goes_on_after_a_step_of_its_clock() {
    for step in [-200_000_000_i64, -85_000, -30_000, -9000, 9000, 30_000, 85_000, 200_000_000] {
        for scan in [Scan::Progressive, Scan::Interlaced] {
            let mut peer = Peer::new(ST_2110, scan);
            let mut receiver = peer.receiver(|_| {});
            play(&mut peer, &mut receiver, 0..60, nothing);
            peer.timestamp = peer.timestamp.wrapping_add(step as u32);
            // A frame in which the step shows, and two frame times until the next one is due.
            let pictures = play(&mut peer, &mut receiver, 60..100, nothing);
            assert!(complete(&pictures) >= 36, "{} of 40 after {step}, {scan}", complete(&pictures));
        }
    }
}

#[test]
fn packets_without_pixels_change_nothing() {
    let mut peer = Peer::new(ST_2110, Scan::Progressive);
    let mut receiver = peer.receiver(|_| {});
    let format = peer.format;
    let pictures = play(&mut peer, &mut receiver, 0..20, |index| {
        let header =
            RtpHeader { payload_type: 96, sequence: 9, timestamp: index as u32, ssrc: 1, ..RtpHeader::default() };
        let piece = |line, offset| {
            let mut octets = [0; LINE_HEADER_OCTETS];
            LineHeader { length: 0, field: Field::First, line, offset }.write(Continuation::Last, &mut octets);
            [&header.to_octets()[..], &[0, 0], &octets].concat()
        };
        if index > 2 { vec![piece(format.height() - 1, format.width()), piece(0, 0)] } else { Vec::new() }
    });
    assert_eq!((complete(&pictures), pictures.len()), (18, 18));
}

#[test]
fn a_reader_that_stood_still_for_a_second_goes_on() {
    // What the socket kept of the second, in frames.
    for kept in [0, 10, 30] {
        for scan in [Scan::Progressive, Scan::Interlaced] {
            let mut peer = Peer::new(ST_2110, scan);
            let mut receiver = peer.receiver(|config| config.repair = Repair::by_retransmission(97));
            play(&mut peer, &mut receiver, 0..30, nothing);
            let backlog: Vec<Vec<Vec<u8>>> = (30..60).map(|index| peer.frame(index)).collect();
            let backlog = backlog[..kept].concat();
            let late = exchange(&mut receiver, 60, &backlog);
            assert!(late.len() <= 5, "three that fill and two that wait: {}", late.len());
            let pictures = play(&mut peer, &mut receiver, 60..100, nothing);
            assert!(complete(&pictures) >= 38, "{} of 40 after {kept} kept frames, {scan}", complete(&pictures));
            let requests = receiver.counters().repair.requests;
            assert!(requests <= 30 * 48, "{requests} requests");
            assert!(receiver.counters().packets.are_consistent());
        }
    }
}

#[test]
fn one_packet_does_not_end_the_trust_in_the_numbers() {
    let mut peer = Peer::new(ST_2110, Scan::Progressive);
    let mut receiver = peer.receiver(|_| {});
    let mut other = Peer::new(Dialect { extends: false, ..ST_2110 }, Scan::Progressive);
    play(&mut peer, &mut receiver, 0..20, |index| {
        // The upper half of its number is not that of the others.
        if index == 10 { vec![other.packet(u32::MAX - 5000, Field::First, &[3], 99)] } else { Vec::new() }
    });
    let before = receiver.counters().packets;
    // More is lost than 16 bits can tell.
    peer.sequence += 2100 * 48;
    peer.timestamp = peer.timestamp.wrapping_add(2100 * FRAME);
    play(&mut peer, &mut receiver, 2120..2123, nothing);
    let packets = receiver.counters().packets;
    assert_eq!(packets.lost + packets.outstanding - before.lost - before.outstanding, 2100 * 48, "{packets:?}");
}

#[test]
fn a_delay_that_grows_beyond_the_playout_is_followed() {
    let playout = 2 * FrameRate::NTSC.time_of(1);
    for step in [Duration::from_millis(100), playout - Duration::from_micros(1)] {
        let mut peer = Peer::new(ST_2110, Scan::Progressive);
        let mut receiver = peer.receiver(|_| {});
        play(&mut peer, &mut receiver, 0..30, nothing);
        let mut pictures = Vec::new();
        for index in 30..300 {
            let mut now = at(index) + step;
            // Fewer packets at once than show a frame.
            for packets in peer.frame(index as u8).chunks(7) {
                for packet in packets {
                    receiver.handle_datagram(now, packet);
                }
                now += Duration::from_micros(2);
                pictures.extend(std::iter::from_fn(|| receiver.poll_frame(now)));
            }
        }
        let late = pictures.iter().filter(|picture| !picture.is_complete()).count();
        assert!((120..=165).contains(&late), "{late} in 5 s or half a second less");
        assert_eq!(complete(&pictures[pictures.len() - 50..]), 50, "{step:?} later");
    }
}
