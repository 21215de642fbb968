//! RTCP: what is read can be written and reads the same; a session under any datagrams and times stays within its bounds,
//! reports what can be read, and always comes to a next time.

#![no_main]

use std::net::SocketAddr;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use thalweg_base::time::Instant;
use thalweg_video::rtcp::*;

const OWN: u32 = 7;

fuzz_target!(|bytes: &[u8]| {
    check_codec(bytes);
    check_session(bytes);
});

fn check_codec(bytes: &[u8]) {
    let Ok(packets) = RtcpPackets::parse(bytes) else { return };
    for packet in packets.flatten() {
        let mut out = Vec::new();
        let mut writer = CompoundWriter::new(&mut out);
        match packet.clone() {
            RtcpPacket::SenderReport { ssrc, info, reports } => {
                writer.sender_report(ssrc, &info, &reports.collect::<Vec<_>>());
            }
            RtcpPacket::ReceiverReport { ssrc, reports } => {
                writer.receiver_report(ssrc, &reports.collect::<Vec<_>>());
            }
            RtcpPacket::Nack { sender, media, entries } => {
                let entries: Vec<NackEntry> = entries.collect();
                assert!(entries.len() <= NACK_ENTRIES_MAX);
                writer.nack(sender, media, &entries);
                // An empty one is not written.
                if entries.is_empty() {
                    continue;
                }
            }
            RtcpPacket::SourceDescription(items) => {
                let _ = items.count();
                continue;
            }
            RtcpPacket::Bye { sources, .. } => {
                assert!(sources.count() <= 31);
                continue;
            }
            RtcpPacket::ExtendedReport { blocks, .. } => {
                for block in blocks {
                    if let XrBlock::Delays(delays) = block {
                        let _ = delays.count();
                    }
                }
                continue;
            }
            RtcpPacket::Other { .. } => continue,
        }
        let again = RtcpPackets::parse(&out).expect("what is written is RTCP").next();
        assert_eq!(again, Some(Ok(packet)));
    }
}

/// Each step is a length, a wait and a port, and a datagram of that length.
fn check_session(mut bytes: &[u8]) {
    let mut now = Instant::from_nanos(1_000_000_000);
    let wall = WallClock::new(now, NtpTime::from_unix(Duration::from_secs(1_800_000_000)));
    let mut session = RtcpSession::new(now, OWN, wall, RtcpConfig::new("fuzz@host")).with_repetitions(OWN + 1);
    let clock = MediaClock::new(wall.ntp(now), 5, 90_000).expect("a rate");
    let received = [ReceivedStream { ssrc: 1, highest_sequence: 90, expected: 86, received: 80, jitter: 3 }];
    let mut packets = 0;
    while let [length, wait, port, rest @ ..] = bytes {
        let (datagram, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        bytes = rest;
        now += Duration::from_millis(u64::from(*wait) * 20);
        packets += u64::from(*wait % 3);
        let _ = session.handle_datagram(now, SocketAddr::from(([127, 0, 0, 1], 5000 + u16::from(port % 2))), datagram);
        let sent = (port % 3 != 0).then_some(SentStream { packets, octets: packets * 1200, clock });
        let again = SentStream { packets: packets / 2, octets: packets * 600, clock };
        let repetitions = (port % 5 == 0).then_some(again);
        let mut out = Vec::new();
        if session.poll_report(now, &LocalStreams { sent, repetitions, received: &received }, &mut out) {
            assert!(out.len() <= 1500, "a report fits a datagram");
            assert!(RtcpPackets::parse(&out).expect("a report is RTCP").all(|packet| packet.is_ok()));
        }
        assert!(session.poll_timeout() > now, "the session comes to rest");
        assert!(session.peers().count() <= PEERS_MAX);
        let mut events = 0;
        while let Some(event) = session.poll_event() {
            events += 1;
            if let RtcpEvent::RoundTrip { round_trip, .. } = event {
                assert!(round_trip <= now.since(Instant::from_nanos(1_000_000_000)));
            }
            match event {
                RtcpEvent::Collision { .. } => session.create_new_identity(now, OWN, &mut out),
                RtcpEvent::RepetitionsCollision { .. } => session.create_new_repetitions(now, OWN + 1, &mut out),
                _ => {}
            }
        }
        assert!(events <= 256);
        for peer in session.peers() {
            let _ = peer.media_clock(90_000).map(|clock| clock.rtp_of(clock.ntp_of(u32::from(*wait))));
        }
    }
    let mut out = Vec::new();
    session.create_bye(now, &LocalStreams::default(), "end", &mut out);
    assert!(RtcpPackets::parse(&out).expect("a farewell is RTCP").all(|packet| packet.is_ok()));
}
