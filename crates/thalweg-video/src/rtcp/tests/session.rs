use std::net::SocketAddr;
use std::time::Duration;

use thalweg_base::time::Instant;

use crate::rtcp::*;

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn at(millis: u64) -> Instant {
    Instant::from_nanos(1_000_000_000 + millis * 1_000_000)
}

fn session(ssrc: u32, cname: &str) -> RtcpSession {
    // The clocks of the two ends differ by seconds, as they do in life.
    let wall = WallClock::new(at(0), NtpTime::from_unix(Duration::from_secs(1_800_000_000 + u64::from(ssrc) * 7)));
    RtcpSession::new(at(0), ssrc, wall, RtcpConfig::new(cname))
}

fn sent(packets: u64) -> LocalStreams<'static> {
    let clock = MediaClock::new(NtpTime::from_unix(Duration::from_secs(1_800_000_007)), 90_000, 90_000).unwrap();
    LocalStreams { sent: Some(SentStream { packets, octets: packets * 1200, clock }), ..LocalStreams::default() }
}

/// As [`sent`], with so many repetitions.
fn sent_again(packets: u64, repetitions: u64) -> LocalStreams<'static> {
    LocalStreams { repetitions: sent(repetitions).sent, ..sent(packets) }
}

fn events(session: &mut RtcpSession) -> Vec<RtcpEvent> {
    std::iter::from_fn(|| session.poll_event()).collect()
}

fn report(session: &mut RtcpSession, now: Instant, local: &LocalStreams<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    assert!(session.poll_report(now, local, &mut out), "a report is due");
    out
}

fn types(datagram: &[u8]) -> Vec<u8> {
    let kind = |packet: RtcpPacket<'_>| match packet {
        RtcpPacket::SenderReport { .. } => 200,
        RtcpPacket::ReceiverReport { .. } => 201,
        RtcpPacket::SourceDescription(_) => 202,
        RtcpPacket::Bye { .. } => 203,
        RtcpPacket::Nack { .. } => 205,
        RtcpPacket::ExtendedReport { .. } => 207,
        RtcpPacket::Other { packet_type, .. } => packet_type,
    };
    RtcpPackets::parse(datagram).unwrap().map(|packet| kind(packet.unwrap())).collect()
}

#[test]
fn both_ends_measure_the_round_trip() {
    let (mut sender, mut receiver) = (session(1, "camera"), session(2, "screen"));
    let received = [ReceivedStream { ssrc: 1, highest_sequence: 19, expected: 10, received: 10, jitter: 3 }];
    let receives = LocalStreams { received: &received, ..LocalStreams::default() };
    // The way there takes 5 ms, the way back 15 ms.
    let first = report(&mut sender, at(100), &sent(10));
    receiver.handle_datagram(at(105), address(5005), &first).unwrap();
    let answer = report(&mut receiver, at(160), &receives);
    assert_eq!(types(&answer), [201, 202, 207]);
    sender.handle_datagram(at(175), address(6005), &answer).unwrap();
    let round_trip = sender.peer(2).unwrap().round_trip.unwrap();
    assert!(round_trip.abs_diff(Duration::from_millis(20)) < Duration::from_micros(50), "{round_trip:?}");

    assert_eq!(receiver.peer(1).unwrap().round_trip, None, "nothing has answered it yet");
    let second = report(&mut sender, at(1100), &sent(20));
    assert_eq!(types(&second), [200, 202, 207], "it answers the reference time");
    receiver.handle_datagram(at(1105), address(5005), &second).unwrap();
    let round_trip = receiver.peer(1).unwrap().round_trip.unwrap();
    assert!(round_trip.abs_diff(Duration::from_millis(20)) < Duration::from_micros(50), "{round_trip:?}");
    // Each reference time is answered once.
    assert_eq!(types(&report(&mut sender, at(2100), &sent(30))), [200, 202]);
}

#[test]
fn a_step_of_the_wall_clock_does_not_change_the_round_trip() {
    let (mut sender, mut receiver) = (session(1, "camera"), session(2, "screen"));
    receiver.handle_datagram(at(105), address(5005), &report(&mut sender, at(100), &sent(10))).unwrap();
    sender.set_wall_clock(WallClock::new(at(110), NtpTime::from_unix(Duration::from_secs(1_000_000_000))));
    let received = [ReceivedStream { ssrc: 1, ..ReceivedStream::default() }];
    let answer = report(&mut receiver, at(160), &LocalStreams { received: &received, ..LocalStreams::default() });
    sender.handle_datagram(at(165), address(6005), &answer).unwrap();
    let round_trip = sender.peer(2).unwrap().round_trip.unwrap();
    assert!(round_trip.abs_diff(Duration::from_millis(10)) < Duration::from_micros(50), "{round_trip:?}");
}

#[test]
fn an_answer_to_a_report_never_sent_gives_no_round_trip() {
    let mut sender = session(1, "camera");
    report(&mut sender, at(100), &sent(10));
    let block = ReportBlock { ssrc: 1, last_sender_report: 0x1234_5678, delay_since_last: 1, ..ReportBlock::default() };
    let mut forged = Vec::new();
    CompoundWriter::new(&mut forged).receiver_report(2, &[block]);
    sender.handle_datagram(at(200), address(6005), &forged).unwrap();
    assert_eq!((sender.peer(2).unwrap().round_trip, sender.counters().implausible), (None, 1));
}

#[test]
fn losses_are_told_since_the_report_before_and_since_the_start() {
    let mut receiver = session(2, "screen");
    let blocks = |receiver: &mut RtcpSession, millis, highest: u64, received| {
        let stream = ReceivedStream {
            ssrc: 1,
            highest_sequence: highest as u32,
            expected: highest - 65_529,
            received,
            jitter: 7,
        };
        let datagram = report(receiver, at(millis), &LocalStreams { received: &[stream], ..LocalStreams::default() });
        let packet = RtcpPackets::parse(&datagram).unwrap().next().unwrap().unwrap();
        let RtcpPacket::ReceiverReport { mut reports, .. } = packet else { panic!("{packet:?}") };
        let block = reports.next().unwrap();
        (block.fraction_lost, block.cumulative_lost, block.highest_sequence)
    };
    assert_eq!(blocks(&mut receiver, 100, 65_629, 75), (64, 25, 65_629), "25 of 100");
    assert_eq!(blocks(&mut receiver, 1100, 65_729, 175), (0, 25, 65_729), "none of the next 100");
    assert_eq!(blocks(&mut receiver, 2100, 65_829, 175), (255, 125, 65_829), "all of the next 100");
    assert_eq!(blocks(&mut receiver, 3100, 65_829, 375), (0, -75, 65_829), "200 duplicates");
    // After nine hours the extended number exceeds 32 bits, and losses go on.
    assert_eq!(blocks(&mut receiver, 4100, (1 << 32) + 65_829, (1 << 32) + 374), (0, -74, 65_829));
}

#[test]
fn reports_keep_their_interval_and_a_late_driver_sends_one() {
    let mut receiver = session(2, "screen");
    let mut out = Vec::new();
    assert!(!receiver.poll_report(at(99), &LocalStreams::default(), &mut out));
    assert_eq!(receiver.poll_timeout(), at(100));
    assert!(receiver.poll_report(at(103), &LocalStreams::default(), &mut out));
    assert_eq!(receiver.poll_timeout(), at(1100), "the interval does not drift");
    assert!(receiver.poll_report(at(9000), &LocalStreams::default(), &mut out));
    assert_eq!(receiver.poll_timeout(), at(9500));
    assert!(!receiver.poll_report(at(9001), &LocalStreams::default(), &mut out));
}

#[test]
fn a_sender_that_pauses_becomes_a_receiver() {
    let mut sender = session(1, "camera");
    let first = |datagram: Vec<u8>| types(&datagram)[0];
    assert_eq!(first(report(&mut sender, at(100), &sent(0))), 201, "it has sent nothing yet");
    assert_eq!(first(report(&mut sender, at(1100), &sent(5))), 200);
    assert_eq!(first(report(&mut sender, at(2100), &sent(5))), 200, "it sent within two intervals");
    assert_eq!(first(report(&mut sender, at(3100), &sent(5))), 201);
}

#[test]
fn repetitions_have_the_name_of_their_stream_reports_and_a_farewell() {
    let (mut sender, mut receiver) = (session(1, "camera").with_repetitions(9), session(2, "screen"));
    let mut hear = |datagram: &[u8], millis| {
        receiver.handle_datagram(at(millis), address(5005), datagram).unwrap();
        let told: Vec<RtcpEvent> = std::iter::from_fn(|| receiver.poll_event()).collect();
        (told, receiver.peer(9).map(|peer| (peer.cname.clone(), peer.sender_report.map(|(info, _)| info))))
    };
    let named = Some("camera".to_owned());
    let first = report(&mut sender, at(100), &sent_again(10, 0));
    assert_eq!(types(&first), [200, 202], "none was sent yet");
    assert_eq!(hear(&first, 105).1, Some((named.clone(), None)));
    let second = report(&mut sender, at(1100), &sent_again(20, 3));
    assert_eq!(types(&second), [200, 200, 202]);
    let (told, _) = hear(&second, 1105);
    let infos: Vec<(u32, u32, u32)> = told
        .iter()
        .filter_map(|event| match event {
            RtcpEvent::SenderReport { ssrc, info } => Some((*ssrc, info.packets, info.octets)),
            _ => None,
        })
        .collect();
    assert_eq!(infos, [(1, 20, 20 * 1200), (9, 3, 3 * 1200)]);
    assert_eq!(types(&report(&mut sender, at(2100), &sent_again(30, 3))), [200, 200, 202]);
    assert_eq!(types(&report(&mut sender, at(3100), &sent_again(40, 3))), [200, 202], "none was sent for a while");
    let mut bye = Vec::new();
    sender.create_bye(at(3200), &sent_again(40, 3), "end", &mut bye);
    let left = hear(&bye, 3205).0.into_iter().filter_map(|event| match event {
        RtcpEvent::Left { ssrc, .. } => Some(ssrc),
        _ => None,
    });
    assert_eq!(left.collect::<Vec<u32>>(), [1, 9]);
}

#[test]
fn a_sender_report_maps_time_stamps_to_its_wall_clock() {
    let (mut sender, mut receiver) = (session(1, "camera"), session(2, "screen"));
    receiver.handle_datagram(at(105), address(5005), &report(&mut sender, at(100), &sent(10))).unwrap();
    let clock = receiver.peer(1).unwrap().media_clock(90_000).unwrap();
    // The sender's wall clock shows the second 1,800,000,007 at `at(0)`, where its time stamp is 90,000.
    assert_eq!(clock.rtp, 99_000);
    assert_eq!(
        clock.ntp_of(90_000 + 45_000).nanos_since(NtpTime::from_unix(Duration::from_secs(1_800_000_007))),
        500_000_000
    );
    assert!(
        events(&mut receiver)
            .iter()
            .any(|event| matches!(event, RtcpEvent::SenderReport { ssrc: 1, info } if info.packets == 10))
    );
}

#[test]
fn a_nack_is_a_full_compound_for_one_stream() {
    let (mut sender, receiver) = (session(1, "camera"), session(2, "screen"));
    let entries = [NackEntry { first: 7, following: 1 }];
    let mut out = Vec::new();
    receiver.create_nack(1, &entries, &mut out);
    assert_eq!(types(&out), [201, 202, 205]);
    sender.handle_datagram(at(5), address(6005), &out).unwrap();
    assert_eq!(
        events(&mut sender),
        [RtcpEvent::Joined { ssrc: 2 }, RtcpEvent::Nack { arrived: at(5), from: 2, entries: entries.to_vec() }]
    );
    out.clear();
    receiver.create_nack(99, &entries, &mut out);
    sender.handle_datagram(at(6), address(6005), &out).unwrap();
    assert_eq!(events(&mut sender), [], "it is for another stream");
}

#[test]
fn who_says_bye_is_gone_and_a_late_packet_does_not_bring_it_back() {
    let (mut sender, mut receiver) = (session(1, "camera"), session(2, "screen"));
    let hello = report(&mut receiver, at(100), &LocalStreams::default());
    sender.handle_datagram(at(101), address(6005), &hello).unwrap();
    let mut bye = Vec::new();
    receiver.create_bye(at(150), &LocalStreams::default(), "done", &mut bye);
    assert_eq!(types(&bye), [201, 202, 207, 203]);
    assert_eq!(receiver.poll_timeout(), Instant::NEVER);
    let mut forged = Vec::new();
    CompoundWriter::new(&mut forged).bye(&[2], "");
    sender.handle_datagram(at(151), address(9999), &forged).unwrap();
    assert!(sender.peer(2).is_some(), "a farewell from elsewhere, without the peer's name, counts for nothing");
    sender.handle_datagram(at(151), address(6005), &bye).unwrap();
    sender.handle_datagram(at(152), address(6005), &hello).unwrap();
    assert_eq!((sender.peers().count(), sender.peer(2).is_none()), (0, true));
    assert!(events(&mut sender).contains(&RtcpEvent::Left { ssrc: 2, reason: "done".to_owned() }));
    let mut out = Vec::new();
    sender.poll_report(at(1200), &sent(1), &mut out);
    sender.handle_datagram(at(1201), address(6005), &hello).unwrap();
    assert_eq!(sender.peers().count(), 1, "much later it may come back");
}

#[test]
fn a_silent_peer_times_out() {
    let (mut sender, mut receiver) = (session(1, "camera"), session(2, "screen"));
    sender.handle_datagram(at(100), address(6005), &report(&mut receiver, at(100), &LocalStreams::default())).unwrap();
    events(&mut sender);
    let mut now = at(100);
    while events(&mut sender).is_empty() {
        now = sender.poll_timeout();
        sender.poll_report(now, &sent(1), &mut Vec::new());
    }
    assert_eq!((now, sender.peers().count()), (at(25_100), 0));
}

#[test]
fn our_own_datagrams_are_told_from_a_collision() {
    let mut sender = session(1, "camera");
    let own = report(&mut sender, at(100), &sent(3));
    sender.handle_datagram(at(100), address(5005), &own).unwrap();
    assert_eq!((events(&mut sender), sender.counters().looped), (vec![], 1));
    let other = report(&mut session(1, "impostor"), at(100), &sent(3));
    sender.handle_datagram(at(101), address(7005), &other).unwrap();
    sender.handle_datagram(at(102), address(7005), &other).unwrap();
    sender.handle_rtp_source(1, address(7004));
    assert_eq!(events(&mut sender), [RtcpEvent::Collision { from: address(7005) }], "it is told once");
    let mut out = Vec::new();
    sender.create_new_identity(at(103), 77, &mut out);
    assert_eq!((types(&out), sender.ssrc(), sender.poll_timeout()), (vec![201, 202, 203], 77, at(103)));
    sender.handle_rtp_source(1, address(7004));
    assert_eq!(events(&mut sender), []);
    sender.handle_rtp_source(77, address(7004));
    assert_eq!(events(&mut sender), [RtcpEvent::Collision { from: address(7004) }]);
}

#[test]
fn repetitions_leave_a_number_that_somebody_has_and_go_on_under_another() {
    let (mut sender, mut receiver) = (session(1, "camera").with_repetitions(9), session(2, "screen"));
    let other = report(&mut session(9, "impostor"), at(100), &sent(3));
    sender.handle_datagram(at(101), address(7005), &other).unwrap();
    sender.handle_rtp_source(9, address(7004));
    assert_eq!(events(&mut sender), [RtcpEvent::RepetitionsCollision { from: address(7005) }], "it is told once");
    receiver.handle_datagram(at(102), address(5005), &report(&mut sender, at(102), &sent_again(10, 3))).unwrap();
    assert!(sender.is_used(9) && sender.is_used(1) && !sender.is_used(77));
    let mut out = Vec::new();
    sender.create_new_repetitions(at(103), 77, &mut out);
    assert_eq!((types(&out), sender.ssrc(), sender.poll_timeout()), (vec![201, 202, 203], 1, at(103)));
    events(&mut receiver);
    receiver.handle_datagram(at(104), address(5005), &out).unwrap();
    let left = RtcpEvent::Left { ssrc: 9, reason: "SSRC collision".to_owned() };
    assert_eq!(events(&mut receiver), [left], "the stream itself stays");
    let again = report(&mut sender, at(105), &sent_again(20, 1));
    assert_eq!(types(&again), [200, 200, 202]);
    receiver.handle_datagram(at(106), address(5005), &again).unwrap();
    let peer = receiver.peer(77).expect("it reports at once");
    assert_eq!((peer.cname.as_deref(), peer.sender_report.map(|(info, _)| info.packets)), (Some("camera"), Some(1)));
    let mut bye = Vec::new();
    sender.create_bye(at(200), &sent_again(20, 1), "end", &mut bye);
    receiver.handle_datagram(at(201), address(5005), &bye).unwrap();
    let left = events(&mut receiver).into_iter().filter_map(|event| match event {
        RtcpEvent::Left { ssrc, .. } => Some(ssrc),
        _ => None,
    });
    assert_eq!(left.collect::<Vec<u32>>(), [1, 77]);
}

#[test]
fn what_comes_back_from_where_a_collision_was_is_a_loop() {
    let mut sender = session(1, "camera").with_repetitions(9);
    sender.handle_rtp_source(1, address(7004));
    assert_eq!(events(&mut sender), [RtcpEvent::Collision { from: address(7004) }]);
    sender.create_new_identity(at(1), 77, &mut Vec::new());
    // An echo of all that is sent has each number.
    (0..5).for_each(|_| [77, 9].iter().for_each(|ssrc| sender.handle_rtp_source(*ssrc, address(7004))));
    assert_eq!((events(&mut sender), sender.counters().looped), (vec![], 10));
    sender.handle_rtp_source(77, address(7006));
    assert_eq!(events(&mut sender), [RtcpEvent::Collision { from: address(7006) }], "elsewhere it is a collision");
}

#[test]
fn of_two_peers_with_one_ssrc_the_first_one_counts_and_a_peer_may_move() {
    let mut receiver = session(2, "screen");
    let first = report(&mut session(1, "camera"), at(100), &sent(3));
    let second = report(&mut session(1, "impostor"), at(100), &sent(4));
    receiver.handle_datagram(at(101), address(5005), &first).unwrap();
    receiver.handle_datagram(at(102), address(7005), &second).unwrap();
    receiver.handle_datagram(at(103), address(7005), &second).unwrap();
    let conflicts = events(&mut receiver).into_iter().filter(|event| matches!(event, RtcpEvent::Conflict { .. }));
    assert_eq!(conflicts.collect::<Vec<_>>(), [RtcpEvent::Conflict { ssrc: 1, from: address(7005) }]);
    assert_eq!(receiver.peer(1).unwrap().sender_report.unwrap().0.packets, 3);
    receiver.handle_datagram(at(104), address(8005), &first).unwrap();
    assert_eq!(receiver.peer(1).unwrap().address, address(8005), "its name stays");
}

#[test]
fn whoever_was_earlier_does_not_speak_for_the_host_that_sends_the_media() {
    let (media, elsewhere) = (SocketAddr::from(([192, 0, 2, 1], 5005)), SocketAddr::from(([192, 0, 2, 9], 9)));
    let mut receiver = session(2, "screen");
    let forged = report(&mut session(1, "impostor"), at(100), &sent(4));
    let mut bye = Vec::new();
    session(1, "impostor").create_bye(at(100), &LocalStreams::default(), "", &mut bye);
    let packets = |receiver: &RtcpSession| u64::from(receiver.peer(1).unwrap().sender_report.unwrap().0.packets);
    let mut camera = session(1, "camera");
    for (millis, farewell) in [(1000, None), (2000, Some(&bye))] {
        receiver.handle_datagram(at(millis), elsewhere, &forged).unwrap();
        farewell.into_iter().for_each(|bye| receiver.handle_datagram(at(millis), elsewhere, bye).unwrap());
        receiver.handle_media_source(1, media);
        let own = report(&mut camera, at(millis + 1), &sent(millis));
        receiver.handle_datagram(at(millis + 1), media, &own).unwrap();
        assert_eq!((packets(&receiver), receiver.peer(1).unwrap().address), (millis, media));
        receiver.handle_datagram(at(millis + 2), elsewhere, &forged).unwrap();
        assert_eq!(packets(&receiver), millis, "the others are in conflict");
        receiver = session(2, "screen");
    }
}

#[test]
fn an_answer_without_a_reference_time_measures_nothing() {
    let mut receiver = session(2, "screen");
    for (last_report, implausible) in [(0, 0), (7, 1)] {
        let mut datagram = Vec::new();
        let answer = Dlrr { ssrc: 2, last_report, delay_since_last: 0 };
        CompoundWriter::new(&mut datagram).extended_report(1, None, &[answer]);
        receiver.handle_datagram(at(1), address(5005), &datagram).unwrap();
        assert_eq!(receiver.counters().implausible, implausible);
    }
}

#[test]
fn the_longest_report_fits_a_datagram() {
    let wall = WallClock::new(at(0), NtpTime(1));
    let config = RtcpConfig { tool: "t".repeat(300), ..RtcpConfig::new("c".repeat(300)) };
    let mut sender = RtcpSession::new(at(0), 1, wall, config);
    for ssrc in 100..140 {
        let mut datagram = Vec::new();
        CompoundWriter::new(&mut datagram).extended_report(ssrc, Some(NtpTime(7)), &[]);
        sender.handle_datagram(at(1), address(6005), &datagram).unwrap();
    }
    let received = [ReceivedStream::default(); 40];
    let local = LocalStreams { received: &received, ..sent(5) };
    let mut out = Vec::new();
    sender.create_bye(at(2), &local, &"r".repeat(300), &mut out);
    assert_eq!(types(&out), [200, 202, 207, 203]);
    assert!((1300..=1472).contains(&out.len()), "{}", out.len());
}

#[test]
fn the_longest_report_with_repetitions_fits_as_well() {
    let octets = |cname: usize| {
        let config = RtcpConfig { tool: "t".repeat(300), ..RtcpConfig::new("c".repeat(cname)) };
        let mut sender = RtcpSession::new(at(0), 1, WallClock::new(at(0), NtpTime(1)), config).with_repetitions(9);
        for ssrc in 100..140 {
            let mut datagram = Vec::new();
            CompoundWriter::new(&mut datagram).extended_report(ssrc, Some(NtpTime(7)), &[]);
            sender.handle_datagram(at(1), address(6005), &datagram).unwrap();
        }
        let received = [ReceivedStream::default(); 40];
        let mut out = Vec::new();
        sender.create_bye(at(2), &LocalStreams { received: &received, ..sent_again(5, 5) }, &"r".repeat(300), &mut out);
        assert_eq!(types(&out), [200, 200, 202, 207, 203]);
        out.len()
    };
    let longest = (0..300).map(octets).max().unwrap();
    assert!((1400..=1472).contains(&longest), "{longest}");
}

#[test]
fn peers_and_events_are_bounded() {
    let mut sender = session(1, "camera");
    for ssrc in 100..100 + 10 * PEERS_MAX as u32 {
        let mut datagram = Vec::new();
        CompoundWriter::new(&mut datagram).receiver_report(ssrc, &[ReportBlock { ssrc: 1, ..ReportBlock::default() }]);
        for _ in 0..4 {
            sender.handle_datagram(at(1), address(6005), &datagram).unwrap();
        }
    }
    assert_eq!(sender.peers().count(), PEERS_MAX);
    assert_eq!(sender.counters().ignored, 4 * 9 * PEERS_MAX as u64);
    assert_eq!((events(&mut sender).len(), sender.counters().events_dropped), (256, 64));
}

#[test]
fn a_host_of_many_names_does_not_keep_out_a_receiver() {
    let mut sender = session(1, "camera");
    let flood = |sender: &mut RtcpSession, from: u32| {
        for ssrc in from..from + 4 * PEERS_MAX as u32 {
            let mut datagram = Vec::new();
            CompoundWriter::new(&mut datagram).receiver_report(ssrc, &[]);
            // A port for each name: the host counts.
            let from = SocketAddr::from(([192, 0, 2, 66], 1024 + (ssrc % 60_000) as u16));
            sender.handle_datagram(at(1), from, &datagram).unwrap();
        }
        events(sender)
    };
    flood(&mut sender, 1000);
    let mut request = Vec::new();
    session(7, "screen").create_nack(1, &[NackEntry { first: 3, following: 0 }], &mut request);
    sender.handle_datagram(at(2), address(6005), &request).unwrap();
    let told = events(&mut sender);
    assert!(told.iter().any(|event| matches!(event, RtcpEvent::Nack { from: 7, .. })), "{told:?}");
    assert!(
        told.iter().any(|event| matches!(event, RtcpEvent::TimedOut { ssrc: 1000.. })),
        "one gave its place: {told:?}"
    );
    assert_eq!(sender.peers().count(), PEERS_MAX);
    let told = flood(&mut sender, 5000);
    assert!(told.is_empty() && sender.peer(7).is_some(), "a flood pushes nobody out: {told:?}");
}
