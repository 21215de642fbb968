//! What reports count of a stream, and of what is sent again.

use super::*;

#[test]
fn under_another_number_reports_count_anew() {
    let (mut sender, sent, now) = halfway(Resend::Never);
    let counters = sender.counters();
    let before = SentCounts { packets: sent.len() as u64, octets: counters.payload_octets_sent };
    assert_eq!(sender.sent(), before);
    sender.set_ssrc(77);
    assert_eq!(sender.sent(), SentCounts::default());
    let end = at(0) + FrameRate::NTSC.time_of(6);
    let rest: Vec<Vec<u8>> = run(&mut sender, now, end).into_iter().flat_map(|(_, list)| list).collect();
    let octets: usize = rest.iter().map(|datagram| datagram.len() - HEADER_OCTETS).sum();
    assert_eq!((rest.len(), sender.sent()), (8, SentCounts { packets: 8, octets: octets as u64 }));
    assert_eq!(sender.counters().packets_sent, 240, "the totals go on");
}

#[test]
fn repetitions_under_another_number_are_counted_anew() {
    let (mut sender, _, now) = halfway(RETRANSMISSION);
    let number = |packet: u16| 0xfff0_u16.wrapping_add(packet);
    let again = |sender: &mut VideoSender, packet| {
        sender.handle_nack(now, [number(packet)]);
        let batch = sender.poll_batch(now).expect("a repetition is due");
        let header = RtpPacket::parse(&datagrams(&batch)[0]).unwrap().header;
        (header.ssrc, header.sequence, header.payload_type)
    };
    assert_eq!(again(&mut sender, 200), (9, 0xffff, 97));
    sender.set_repetitions_ssrc(78);
    assert_eq!((sender.repeated(), sender.sent().packets), (SentCounts::default(), 232));
    assert_eq!(again(&mut sender, 201), (78, 0, 97), "the numbers go on");
    assert_eq!((sender.repeated().packets, sender.counters().packets_resent), (1, 2));
}

#[test]
fn repetitions_in_the_stream_count_in_its_reports_and_those_of_another_stream_do_not() {
    for (resend, count) in [(Resend::Same, 1), (RETRANSMISSION, 0)] {
        let (mut sender, sent, now) = halfway(resend);
        for packet in [200_u16, 201] {
            let before = sender.sent();
            sender.handle_nack(now, [0xfff0_u16.wrapping_add(packet)]);
            let again = datagrams(&sender.poll_batch(now).expect("a repetition is due"));
            let octets = count * (sent[usize::from(packet)].len() - HEADER_OCTETS) as u64;
            let after = SentCounts { packets: before.packets + count, octets: before.octets + octets };
            assert_eq!((again.len(), sender.sent()), (1, after), "{resend:?}");
            sender.set_ssrc(77);
            assert_eq!(sender.sent(), SentCounts::default(), "{resend:?}");
        }
    }
}
