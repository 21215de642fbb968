use std::net::IpAddr;
use std::time::Duration;

use thalweg_base::time::Instant;

use super::*;
use crate::sdp::SessionDescription;

const CAMERA: &str = "v=0\r\no=- 7 1 IN IP4 192.0.2.1\r\ns=Camera 1\r\nt=0 0\r\nm=video 5004 RTP/AVP 96\r\n\
                      c=IN IP4 239.1.2.3/32\r\na=rtpmap:96 raw/90000\r\n\
                      a=fmtp:96 sampling=RGB; width=640; height=480; depth=8\r\n";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn at(seconds: u64) -> Instant {
    Instant::from_nanos(1) + Duration::from_secs(seconds)
}

fn announcer(description: &str) -> SapAnnouncer {
    SapAnnouncer::new(at(0), SapConfig::new(ip("192.0.2.1")), description.to_owned(), 5)
}

fn announcement(announcer: &mut SapAnnouncer, now: Instant) -> Vec<u8> {
    let mut out = Vec::new();
    assert!(announcer.poll_announcement(now, 0, &mut out));
    out
}

#[track_caller]
fn check(datagram: &[u8], expect: &str) {
    let got = match SapPacket::parse(datagram) {
        Ok(packet) => format!(
            "{:?} {:x} {} {}",
            packet.kind,
            packet.hash,
            packet.source,
            String::from_utf8_lossy(packet.description)
        ),
        Err(error) => error.to_string(),
    };
    assert_eq!(got, expect);
}

#[test]
fn announcements_are_read_with_and_without_a_type() {
    check(b"\x20\x00\xab\xcd\xc0\x00\x02\x01v=0\r\n", "Announcement abcd 192.0.2.1 v=0\r\n");
    check(b"\x20\x00\xab\xcd\xc0\x00\x02\x01application/sdp\0v=0\r\n", "Announcement abcd 192.0.2.1 v=0\r\n");
    check(b"\x24\x00\x00\x01\xc0\x00\x02\x01o=- 7 1 IN IP4 h\r\n", "Deletion 1 192.0.2.1 o=- 7 1 IN IP4 h\r\n");
    check(b"\x20\x01\x00\x01\xc0\x00\x02\x01AUTHv=0\r\n", "Announcement 1 192.0.2.1 v=0\r\n");
    let six = [&b"\x30\x00\x00\x02"[..], &[0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9], b"v=0"].concat();
    check(&six, "Announcement 2 fe80::9 v=0");
}

#[test]
fn what_cannot_be_read_is_refused() {
    check(b"\x20\x00\xab", "the announcement ends within its header");
    check(b"\x20\x00\xab\xcd\xc0\x00\x02", "the announcement ends within its header");
    check(b"\x30\x00\xab\xcd\xc0\x00\x02\x01", "the announcement ends within its header");
    check(b"\x20\xff\xab\xcd\xc0\x00\x02\x01v=0", "the announcement ends within its header");
    check(b"\x00\x00\xab\xcd\xc0\x00\x02\x01v=0", "the announcement has version 0 instead of 1");
    check(b"\x22\x00\xab\xcd\xc0\x00\x02\x01v=0", "the announcement is encrypted, which is not supported");
    check(b"\x21\x00\xab\xcd\xc0\x00\x02\x01v=0", "the announcement is compressed, which is not supported");
    let other = "the announcement carries \"text/plain\" instead of application/sdp";
    check(b"\x20\x00\xab\xcd\xc0\x00\x02\x01text/plain\0hello", other);
    check(b"\x20\x00\xab\xcd\xc0\x00\x02\x01hello", "the announcement carries \"\" instead of application/sdp");
}

#[test]
fn the_interval_is_that_of_the_rfc() {
    let interval = |others: usize| {
        let mut announcer = announcer(CAMERA);
        let mut times = Vec::new();
        let mut now = at(0);
        for _ in 0..200 {
            let mut out = Vec::new();
            assert!(!announcer.poll_announcement(now - Duration::from_nanos(1), others, &mut out));
            assert!(announcer.poll_announcement(now, others, &mut out));
            times.push(announcer.poll_timeout().since(now).as_secs_f64());
            now = announcer.poll_timeout();
        }
        let (shortest, longest) =
            times.iter().fold((f64::MAX, 0.0f64), |(low, high), time| (low.min(*time), high.max(*time)));
        (shortest.round() as u64, longest.round() as u64, times.iter().sum::<f64>() / 200.0)
    };
    let (shortest, longest, mean) = interval(0);
    assert!((200..210).contains(&shortest) && (390..=400).contains(&longest) && (mean - 300.0).abs() < 15.0, "{mean}");
    // 1,000 announcements of 230 octets at 4,000 bits a second take 460 s.
    let (shortest, longest, mean) = interval(999);
    let octets = announcement(&mut announcer(CAMERA), at(0)).len() as f64;
    let expected = octets * 8.0 * 1000.0 / 4000.0;
    assert!((mean / expected - 1.0).abs() < 0.05, "{mean} instead of {expected}");
    assert!(shortest as f64 >= expected * 0.66 && longest as f64 <= expected * 1.34);
}

#[test]
fn a_session_is_announced_changed_and_deleted() {
    let (mut announcer, mut directory) = (announcer(CAMERA), SapDirectory::default());
    let mut handle = |now, from: &str, datagram: &[u8]| {
        let event = directory.handle_datagram(now, ip(from), datagram).unwrap();
        let name = |session: SapSession| (session.source.to_string(), session.description.version);
        match event {
            None => (String::new(), directory.sessions().count()),
            Some(SapEvent::Announced(session)) => {
                (format!("announced {:?}", name(session)), directory.sessions().count())
            }
            Some(SapEvent::Changed(session)) => (format!("changed {:?}", name(session)), directory.sessions().count()),
            Some(SapEvent::Deleted(session)) => (format!("deleted {:?}", name(session)), directory.sessions().count()),
            Some(SapEvent::Expired(session)) => (format!("expired {:?}", name(session)), directory.sessions().count()),
        }
    };
    let first = announcement(&mut announcer, at(0));
    assert_eq!(handle(at(0), "192.0.2.1", &first), ("announced (\"192.0.2.1\", 1)".to_owned(), 1));
    assert_eq!(handle(at(9), "192.0.2.1", &first), (String::new(), 1), "repeated");
    announcer.change(at(10), CAMERA.replace(" 7 1 ", " 7 2 "));
    let second = announcement(&mut announcer, at(10));
    assert_eq!(handle(at(10), "192.0.2.1", &second), ("changed (\"192.0.2.1\", 2)".to_owned(), 1));
    let mut deletion = Vec::new();
    announcer.create_deletion(&mut deletion);
    assert_eq!(announcer.poll_timeout(), Instant::NEVER);
    assert_eq!(handle(at(11), "192.0.2.66", &deletion), (String::new(), 1), "another host deletes nothing");
    assert_eq!(handle(at(12), "192.0.2.1", &deletion), ("deleted (\"192.0.2.1\", 2)".to_owned(), 0));
    assert_eq!(handle(at(13), "192.0.2.1", &deletion), (String::new(), 0));
}

#[test]
fn a_session_expires_after_an_hour_or_ten_intervals() {
    let datagram = announcement(&mut announcer(CAMERA), at(0));
    let mut directory = SapDirectory::default();
    directory.handle_datagram(at(0), ip("192.0.2.1"), &datagram).unwrap();
    assert_eq!(directory.poll_timeout(), at(3600));
    directory.handle_datagram(at(1000), ip("192.0.2.1"), &datagram).unwrap();
    assert_eq!(directory.poll_timeout(), at(11_000));
    assert_eq!(directory.poll_expired(at(10_999)), None);
    assert!(matches!(directory.poll_expired(at(11_000)), Some(SapEvent::Expired(_))));
    assert!(directory.is_empty() && directory.poll_expired(at(11_000)).is_none());
}

#[test]
fn the_directory_is_bounded_and_counts_foreign_sessions() {
    let mut directory = SapDirectory::default();
    for hash in 1..=DIRECTORY_MAX as u16 + 10 {
        let packet = SapPacket {
            kind: SapKind::Announcement,
            hash,
            source: ip("192.0.2.1"),
            description: b"v=0\r\no=- 1 1 IN IP4 h\r\n",
        };
        let mut datagram = Vec::new();
        packet.write(&mut datagram);
        assert_eq!(directory.handle_datagram(at(1), ip("192.0.2.1"), &datagram), Ok(None));
    }
    assert_eq!((directory.len(), directory.sessions().count(), directory.dropped()), (DIRECTORY_MAX, 0, 10));
}

#[test]
fn groups_follow_the_scope() {
    for (destination, group) in [
        ("239.255.1.2", "239.255.255.255:9875"),
        ("239.1.2.3", "239.255.255.255:9875"),
        ("239.192.0.1", "239.195.255.255:9875"),
        ("232.1.1.1", "224.2.127.254:9875"),
        ("10.0.0.1", "239.255.255.255:9875"),
        ("ff3e::17", "[ff0e::2:7ffe]:9875"),
        ("ff15::17", "[ff05::2:7ffe]:9875"),
        ("2001:db8::1", "[ff05::2:7ffe]:9875"),
    ] {
        assert_eq!(announcement_group(ip(destination)).to_string(), group, "{destination}");
    }
}

/// An announcement of session `id` from the source that it names, whatever address sends it.
fn forged(kind: SapKind, hash: u16, id: u32, source: &str) -> Vec<u8> {
    let text = CAMERA.replace("- 7 1", &format!("- {id} 1"));
    let mut out = Vec::new();
    SapPacket { kind, hash, source: ip(source), description: text.as_bytes() }.write(&mut out);
    out
}

#[test]
fn a_copy_from_another_address_neither_changes_nor_deletes_a_session() {
    let mut directory = SapDirectory::default();
    let original = forged(SapKind::Announcement, 5, 7, "192.0.2.1");
    assert!(matches!(directory.handle_datagram(at(0), ip("192.0.2.1"), &original), Ok(Some(SapEvent::Announced(_)))));
    // The same announcement, a deletion of it, and another version that leads to another host.
    directory.handle_datagram(at(1), ip("192.0.2.66"), &original).unwrap();
    let deletion = forged(SapKind::Deletion, 5, 7, "192.0.2.1");
    directory.handle_datagram(at(2), ip("192.0.2.66"), &deletion).unwrap();
    let elsewhere = String::from_utf8(original.clone()[8..].to_vec()).unwrap().replace("239.1.2.3", "239.6.6.6");
    let elsewhere = [&original[..2], &[0, 9], &original[4..8], elsewhere.as_bytes()].concat();
    let event = directory.handle_datagram(at(3), ip("192.0.2.66"), &elsewhere).unwrap();
    assert!(!matches!(event, Some(SapEvent::Changed(_))), "{event:?}");
    let expected = SessionDescription::parse(CAMERA.as_bytes()).unwrap();
    assert!(directory.sessions().any(|session| *session == expected), "it stays as it was announced");
    // Its own address still deletes it.
    let event = directory.handle_datagram(at(4), ip("192.0.2.1"), &deletion).unwrap();
    assert!(matches!(event, Some(SapEvent::Deleted(_))), "{event:?}");
}

#[test]
fn an_address_that_announces_much_does_not_keep_out_others() {
    let mut directory = SapDirectory::default();
    for id in 0..4 * DIRECTORY_MAX as u32 {
        let datagram = forged(SapKind::Announcement, 1 + id as u16, 1000 + id, "192.0.2.66");
        directory.handle_datagram(at(0), ip("192.0.2.66"), &datagram).unwrap();
        assert!(directory.len() <= DIRECTORY_MAX);
    }
    assert_eq!(directory.dropped(), 3 * DIRECTORY_MAX as u64, "it does not push out its own");
    for host in 1..=9 {
        let address = format!("192.0.2.{host}");
        let datagram = forged(SapKind::Announcement, 5, 7, &address);
        let event = directory.handle_datagram(at(1), ip(&address), &datagram).unwrap();
        assert!(matches!(event, Some(SapEvent::Announced(_))), "{address}: {event:?}");
    }
    assert_eq!((directory.len(), directory.dropped()), (DIRECTORY_MAX, 3 * DIRECTORY_MAX as u64 + 9));
}

#[test]
fn a_rare_announcement_does_not_live_for_ever() {
    let mut directory = SapDirectory::default();
    let datagram = forged(SapKind::Announcement, 5, 7, "192.0.2.1");
    let mut now = at(0);
    for _ in 0..4 {
        directory.handle_datagram(now, ip("192.0.2.1"), &datagram).unwrap();
        // Just before it would expire: its interval is the longest that it can show.
        let life = directory.poll_timeout().since(now);
        assert!(life <= Duration::from_secs(36_000), "{life:?}");
        now = now + life - Duration::from_secs(1);
    }
}

#[test]
fn without_a_hash_a_session_is_deleted_by_its_origin() {
    let mut directory = SapDirectory::default();
    let host = ip("192.0.2.1");
    for id in [7, 8] {
        directory.handle_datagram(at(0), host, &forged(SapKind::Announcement, 0, id, "192.0.2.1")).unwrap();
    }
    let deletion = |line: &str| {
        let mut out = Vec::new();
        let description = line.as_bytes();
        SapPacket { kind: SapKind::Deletion, hash: 0, source: host, description }.write(&mut out);
        out
    };
    for foreign in ["o=- 9 1 IN IP4 192.0.2.1", "o=- 8 1 IN IP4 192.0.2.9", "o=- 8 0 IN IP4 192.0.2.1", "o=- 8", "v=0"]
    {
        assert_eq!(directory.handle_datagram(at(1), host, &deletion(foreign)), Ok(None), "{foreign}");
    }
    let event = directory.handle_datagram(at(2), host, &deletion("o=- 8 1 IN IP4 192.0.2.1\r\n"));
    assert!(matches!(event, Ok(Some(SapEvent::Deleted(session))) if session.description.id == 8));
    let event = directory.handle_datagram(at(3), host, &deletion("v=0\r\no=- 7 2 IN IP4 192.0.2.1\r\ns=x\r\n"));
    assert!(matches!(event, Ok(Some(SapEvent::Deleted(session))) if session.description.id == 7), "a later version");
    assert!(directory.is_empty());
}

#[test]
fn without_a_hash_an_unknown_session_does_not_take_the_place_of_another() {
    let mut directory = SapDirectory::default();
    let host = ip("192.0.2.1");
    directory.handle_datagram(at(0), host, &forged(SapKind::Announcement, 0, 7, "192.0.2.1")).unwrap();
    for id in [8, 9, 8] {
        let text = format!("v=0\r\no=- {id} 1 IN IP4 192.0.2.1\r\ns=Talk\r\nt=0 0\r\n");
        let mut out = Vec::new();
        let description = text.as_bytes();
        SapPacket { kind: SapKind::Announcement, hash: 0, source: host, description }.write(&mut out);
        assert_eq!(directory.handle_datagram(at(1), host, &out), Ok(None));
    }
    assert_eq!((directory.len(), directory.sessions().count()), (3, 1));
}
