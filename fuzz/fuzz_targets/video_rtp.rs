//! Any datagram as RTP with the payload of RFC 4175: no panic, pieces within the datagram, and what is written again
//! reads the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg_video::rfc4175::{Continuation, LINE_HEADER_OCTETS, PIECES_MAX, VideoPayload};
use thalweg_video::rtp::{HEADER_OCTETS, RtpPacket, is_rtcp};

fuzz_target!(|datagram: &[u8]| {
    let _ = is_rtcp(datagram);
    let Ok(packet) = RtpPacket::parse(datagram) else { return };
    let extension = packet.extension.map_or(0, |extension| 4 + extension.data.len());
    let octets = HEADER_OCTETS + packet.csrc.len() + extension + packet.payload.len() + usize::from(packet.padding);
    assert_eq!(octets, datagram.len(), "every octet has its part");
    assert_eq!(packet.contributors().count() * 4, packet.csrc.len());
    let written = packet.header.to_octets();
    assert_eq!(RtpPacket::parse(&written).expect("it was read before").header, packet.header);
    assert_eq!(written[1..], datagram[1..HEADER_OCTETS]);
    if let Ok(payload) = VideoPayload::parse(packet.payload) {
        check(packet.payload, &payload);
    }
});

/// Writes a payload again.
fn check(octets: &[u8], payload: &VideoPayload<'_>) {
    assert!((1..=PIECES_MAX).contains(&payload.piece_count()));
    let mut written = payload.extended_sequence.to_be_bytes().to_vec();
    let pieces: Vec<_> = payload.pieces().collect();
    assert_eq!(pieces.len(), payload.piece_count());
    for (index, (header, piece)) in pieces.iter().enumerate() {
        assert_eq!(usize::from(header.length), piece.len());
        let continues = if index + 1 < pieces.len() { Continuation::More } else { Continuation::Last };
        let mut octets = [0; LINE_HEADER_OCTETS];
        header.write(continues, &mut octets);
        written.extend(octets);
    }
    pieces.iter().for_each(|(_, piece)| written.extend(*piece));
    assert!(octets.starts_with(&written), "the rest is ignored");
}
