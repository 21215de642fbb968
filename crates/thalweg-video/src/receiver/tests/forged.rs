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
