use super::*;

/// The fixed header with its first octet given: payload type 96, sequence 0x1234, time stamp 5, source 7.
fn datagram(first: u8, rest: &[u8]) -> Vec<u8> {
    [&[first, 0xe0, 0x12, 0x34, 0, 0, 0, 5, 0, 0, 0, 7], rest].concat()
}

#[track_caller]
fn check(first: u8, rest: &[u8], expect: &str) {
    let datagram = datagram(first, rest);
    let told = match RtpPacket::parse(&datagram) {
        Ok(packet) => {
            let header = RtpHeader { marker: true, payload_type: 96, sequence: 0x1234, timestamp: 5, ssrc: 7 };
            assert_eq!(packet.header, header);
            let csrc: Vec<u32> = packet.contributors().collect();
            let extension = packet.extension.map(|extension| (extension.profile, extension.data));
            format!("{csrc:?} {extension:?} {:?} {}", packet.payload, packet.padding)
        }
        Err(error) => error.to_string(),
    };
    assert_eq!(told, expect);
}

#[test]
fn every_part_of_a_packet_is_found() {
    check(0x80, &[], "[] None [] 0");
    check(0x80, &[1, 2], "[] None [1, 2] 0");
    check(0x82, &[0, 0, 0, 9, 0, 0, 1, 0, 3], "[9, 256] None [3] 0");
    check(0x90, &[0xbe, 0xde, 0, 1, 1, 2, 3, 4, 9], "[] Some((48862, [1, 2, 3, 4])) [9] 0");
    check(0xa0, &[8, 0, 0, 3], "[] None [8] 3");
    check(0xb1, &[0, 0, 0, 1, 0, 1, 0, 0, 6, 1], "[1] Some((1, [])) [6] 1");
}

#[test]
fn lengths_beyond_the_end_are_refused() {
    assert_eq!(RtpPacket::parse(&datagram(0x80, &[])[..11]), Err(RtpError::Short));
    assert_eq!(RtpPacket::parse(&[]), Err(RtpError::Short));
    check(0x40, &[], "RTP version 1 instead of 2");
    check(0x81, &[0, 0, 0], "the contributing sources lead beyond the end");
    check(0x90, &[0, 0, 0], "the header extension leads beyond the end");
    check(0x90, &[0, 0, 0, 1, 0, 0, 0], "the header extension leads beyond the end");
    check(0xa0, &[], "the padding does not fit the payload");
    check(0xa0, &[1, 0], "the padding does not fit the payload");
    check(0xa0, &[1, 3], "the padding does not fit the payload");
}

#[test]
fn what_is_written_reads_the_same() {
    for (marker, payload_type) in [(false, 0), (true, 127), (false, 96)] {
        let header = RtpHeader { marker, payload_type, sequence: 0xfffe, timestamp: 0x8000_0001, ssrc: u32::MAX };
        let octets = header.to_octets();
        let packet = RtpPacket::parse(&octets).unwrap();
        assert_eq!((packet.header, packet.payload), (header, &[][..]));
    }
    let too_high = RtpHeader { payload_type: 0xe0, ..RtpHeader::default() };
    assert_eq!(too_high.to_octets()[1], 0x60, "a payload type cannot set the marker");
}

#[test]
fn reports_are_told_from_media_on_a_shared_port() {
    assert!(is_rtcp(&[0x80, 200, 0, 6]) && is_rtcp(&[0x81, 205, 0, 2]));
    assert!(!is_rtcp(&datagram(0x80, &[])) && !is_rtcp(&[0x80]) && !is_rtcp(&[0x00, 200]));
}
