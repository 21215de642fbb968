use std::time::Duration;

use rtcp_types::{RtcpPacketParserExt, RtcpPacketWriterExt};
use thalweg_base::rng::Rng;

use crate::rtcp::*;

fn octets(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// Compares the packets of a datagram, as `Debug` shows them, with what is expected.
#[track_caller]
fn check(hex: &str, expect: &[&str]) {
    let octets = octets(hex);
    let got: Vec<String> = match RtcpPackets::parse(&octets) {
        Ok(packets) => {
            packets.map(|packet| packet.map_or_else(|error| error.to_string(), |packet| show(&packet))).collect()
        }
        Err(error) => vec![error.to_string()],
    };
    assert_eq!(got, expect, "input: {hex}");
}

fn show(packet: &RtcpPacket<'_>) -> String {
    match packet {
        RtcpPacket::SenderReport { ssrc, info, reports } => {
            let blocks: Vec<_> = reports.clone().map(|block| (block.ssrc, block.cumulative_lost)).collect();
            format!("SR {ssrc:x} {:x} {:x} {} {} {blocks:?}", info.ntp.0, info.rtp, info.packets, info.octets)
        }
        RtcpPacket::ReceiverReport { ssrc, reports } => {
            let blocks: Vec<_> =
                reports.clone().map(|b| (b.ssrc, b.fraction_lost, b.cumulative_lost, b.jitter)).collect();
            format!("RR {ssrc:x} {blocks:?}")
        }
        RtcpPacket::SourceDescription(items) => {
            let items: Vec<_> =
                items.clone().map(|i| (i.ssrc, i.kind, String::from_utf8_lossy(i.text).into_owned())).collect();
            format!("SDES {items:?}")
        }
        RtcpPacket::Bye { sources, reason } => {
            format!("BYE {:?} {:?}", sources.clone().collect::<Vec<_>>(), reason.map(String::from_utf8_lossy))
        }
        RtcpPacket::ExtendedReport { ssrc, blocks } => {
            let blocks: Vec<_> = blocks
                .clone()
                .map(|block| match block {
                    XrBlock::ReferenceTime(ntp) => format!("RRTR {:x}", ntp.0),
                    XrBlock::Delays(delays) => format!(
                        "DLRR {:?}",
                        delays.map(|d| (d.ssrc, d.last_report, d.delay_since_last)).collect::<Vec<_>>()
                    ),
                    XrBlock::Other { kind, body } => format!("{kind}: {}", body.len()),
                })
                .collect();
            format!("XR {ssrc:x} {blocks:?}")
        }
        RtcpPacket::Nack { sender, media, entries } => {
            let numbers: Vec<_> = entries.clone().flat_map(NackEntry::sequence_numbers).collect();
            format!("NACK {sender:x} {media:x} {numbers:?}")
        }
        RtcpPacket::Other { count, packet_type, body } => format!("{packet_type}/{count}: {}", body.len()),
    }
}

#[test]
fn cumulative_loss_is_signed() {
    // As GStreamer 1.22 sends it after a duplicate: a receiver report alone, with 0xffffff packets lost.
    let report = "81 c9 0007 11223344 55667788 00 ffffff 00010002 00000005 00000000 00000000";
    check(report, &["RR 11223344 [(1432778632, 0, -1, 5)]"]);
    check(&report.replace("00 ffffff", "80 7fffff"), &["RR 11223344 [(1432778632, 128, 8388607, 5)]"]);
    check(&report.replace("00 ffffff", "80 800000"), &["RR 11223344 [(1432778632, 128, -8388608, 5)]"]);
}

#[test]
fn compounds_and_reduced_sizes_are_read_alike() {
    check("80 c9 0001 00000001 81 cb 0001 00000001", &["RR 1 []", "BYE [1] None"]);
    check("81 cb 0003 00000001 06 62796521 2100 00", &["BYE [1] Some(\"bye!!\\0\")"]);
    check("81 cd 0003 00000001 00000002 ffff 8001", &["NACK 1 2 [65535, 0, 15]"]);
    check("81 ca 0003 00000001 01 03 612e62 00 0000", &["SDES [(1, 1, \"a.b\")]"]);
    check("82 ca 0004 00000001 01 01 61 00 00000002 00000000", &["SDES [(1, 1, \"a\")]"]);
    // A chunk ends with one to four zero octets.
    for (items, text) in
        [("01 00 00 00", ""), ("01 02 6162 00000000", "ab"), ("01 07 61626364656667 000000", "abcdefg")]
    {
        let words = 3 + (items.replace(' ', "").len() / 8);
        check(
            &format!("82 ca {words:04x} 00000001 {items} 00000002 01 01 63 00"),
            &[&format!("SDES [(1, 1, \"{text}\"), (2, 1, \"c\")]")],
        );
    }
    check("80 cc 0002 00000001 41424344", &["204/0: 8"]);
}

#[test]
fn an_extended_report_may_hold_several_answers_and_foreign_blocks() {
    let answers = "05 00 0006 00000001 00000002 00000003 00000004 00000005 00000006";
    let text = format!("80 cf 000e 00000009 04 00 0002 0102030405060708 {answers} 01 00 0002 0000000000000000");
    check(&text, &["XR 9 [\"RRTR 102030405060708\", \"DLRR [(1, 2, 3), (4, 5, 6)]\", \"1: 8\"]"]);
    check("80 cf 0004 00000009 05 00 0002 0000000100000002", &["XR 9 [\"5: 8\"]"]);
}

#[test]
fn padding_belongs_to_the_last_packet_and_not_to_its_contents() {
    check("a1 cd 0004 00000001 00000002 0005 0000 00000004", &["NACK 1 2 [5]"]);
    check("a0 c9 0001 00000001 81 cb 0001 00000001", &["the padding of an RTCP packet is out of place"]);
    check("a0 c9 0001 00000000", &["the padding of an RTCP packet is out of place"]);
    check("a0 c9 0001 00000009", &["the padding of an RTCP packet is out of place"]);
}

#[test]
fn what_does_not_fit_is_refused_and_leaves_its_neighbours() {
    check("", &["the RTCP packet at octet 0 does not fit its datagram"]);
    check("80 c9 0002 00000001", &["the RTCP packet at octet 0 does not fit its datagram"]);
    check("80 c9 0001 00000001 80", &["the RTCP packet at octet 8 does not fit its datagram"]);
    check("40 c9 0001 00000001", &["the RTCP packet has version 1 instead of 2"]);
    let misfit = |packet_type| format!("the contents of an RTCP packet of type {packet_type} do not fit its length");
    check("81 c9 0001 00000001 81 cb 0001 00000001", &[&misfit(201), "BYE [1] None"]);
    check("80 c8 0005 00000001 0000000000000000 00000000 00000000", &[&misfit(200)]);
    check("81 ca 0001 00000001", &[&misfit(202)]);
    check("81 ca 0002 00000001 01 09 6162", &[&misfit(202)]);
    check("82 cb 0001 00000001", &[&misfit(203)]);
    check("81 cb 0002 00000001 05 616263", &[&misfit(203)]);
    check("80 cf 0002 00000001 04 00 0002", &[&misfit(207)]);
    check("81 cd 0001 00000001", &[&misfit(205)]);
}

#[test]
fn a_nack_asks_for_a_bounded_number_of_packets() {
    let mut datagram = octets("81 cd 1002 00000001 00000002");
    datagram.extend([0xff; 4 * 4096]);
    let packets = RtcpPackets::parse(&datagram).unwrap().next().unwrap().unwrap();
    let RtcpPacket::Nack { entries, .. } = packets else { panic!("{packets:?}") };
    assert_eq!(entries.count(), NACK_ENTRIES_MAX);
}

#[test]
fn sequence_numbers_are_packed_in_the_order_sent() {
    let mut entries = Vec::new();
    let numbers = [65_534, 65_535, 0, 14, 15, 40, 40, 56, 57];
    assert_eq!(pack_nack(&numbers, &mut entries), numbers.len());
    let firsts: Vec<u16> = entries.iter().map(|entry| entry.first).collect();
    assert_eq!(firsts, [65_534, 15, 40, 57]);
    let again: Vec<u16> = entries.iter().flat_map(|entry| entry.sequence_numbers()).collect();
    assert_eq!(again, [65_534, 65_535, 0, 14, 15, 40, 56, 57]);

    let sparse: Vec<u16> = (0..300).map(|index| index * 17).collect();
    entries.clear();
    assert_eq!(pack_nack(&sparse, &mut entries), NACK_ENTRIES_MAX, "the others wait");
    let dense: Vec<u16> = (0..300).collect();
    entries.clear();
    assert_eq!((pack_nack(&dense, &mut entries), entries.len()), (300, 18));
}

fn report(rng: &mut Rng) -> ReportBlock {
    ReportBlock {
        ssrc: rng.next_u64() as u32,
        fraction_lost: rng.next_u64() as u8,
        cumulative_lost: rng.below(1 << 24) as i32 - (1 << 23),
        highest_sequence: rng.next_u64() as u32,
        jitter: rng.next_u64() as u32,
        last_sender_report: rng.next_u64() as u32,
        delay_since_last: rng.next_u64() as u32,
    }
}

#[test]
fn what_is_written_is_read() {
    for seed in 0..200 {
        let rng = &mut Rng::new(seed);
        let reports: Vec<ReportBlock> = (0..rng.below(70)).map(|_| report(rng)).collect();
        let info = SenderInfo { ntp: NtpTime(rng.next_u64()), rtp: rng.next_u64() as u32, packets: 7, octets: 9 };
        let answer = |index| Dlrr { ssrc: index, last_report: index * 3, delay_since_last: index * 5 };
        let answers: Vec<Dlrr> = (0..rng.below(32) as u32).map(answer).collect();
        let name = "ü".repeat(rng.below(200) as usize);
        let numbers: Vec<u16> = (0..=rng.below(500)).map(|_| rng.next_u64() as u16).collect();
        let mut entries = Vec::new();
        pack_nack(&numbers, &mut entries);

        let mut datagram = Vec::new();
        let mut writer = CompoundWriter::new(&mut datagram);
        writer.sender_report(1, &info, &reports);
        writer.description(1, &[(SDES_CNAME, &name), (SDES_TOOL, "t")]);
        writer.extended_report(1, Some(NtpTime(seed)), &answers);
        writer.nack(1, 2, &entries);
        writer.bye(&[1, 2], &name);

        let (mut blocks, mut infos, mut got_answers, mut got_entries, mut texts) =
            (vec![], vec![], vec![], vec![], vec![]);
        for packet in RtcpPackets::parse(&datagram).unwrap() {
            match packet.unwrap() {
                RtcpPacket::SenderReport { info, reports, .. } => {
                    infos.push(info);
                    blocks.extend(reports);
                }
                RtcpPacket::ReceiverReport { reports, .. } => blocks.extend(reports),
                RtcpPacket::SourceDescription(items) => texts.extend(items.map(|item| item.text.to_vec())),
                RtcpPacket::ExtendedReport { blocks, .. } => {
                    for block in blocks {
                        match block {
                            XrBlock::ReferenceTime(ntp) => assert_eq!(ntp, NtpTime(seed)),
                            XrBlock::Delays(delays) => got_answers.extend(delays),
                            XrBlock::Other { .. } => panic!("{block:?}"),
                        }
                    }
                }
                RtcpPacket::Nack { entries, .. } => got_entries.extend(entries),
                RtcpPacket::Bye { sources, reason } => {
                    assert_eq!(sources.collect::<Vec<_>>(), [1, 2]);
                    texts.push(reason.unwrap_or_default().to_vec());
                }
                RtcpPacket::Other { .. } => panic!("nothing else was written"),
            }
        }
        let cut = name.as_bytes()[..name.len().min(254)].to_vec();
        assert_eq!((infos, blocks, got_answers, got_entries), (vec![info], reports, answers, entries), "seed {seed}");
        assert_eq!(texts, [cut.clone(), b"t".to_vec(), cut], "seed {seed}");
    }
}

#[test]
fn an_independent_reader_agrees() {
    let block = ReportBlock {
        ssrc: 5,
        fraction_lost: 3,
        cumulative_lost: -2,
        highest_sequence: 0x1_0007,
        ..Default::default()
    };
    let mut datagram = Vec::new();
    let mut writer = CompoundWriter::new(&mut datagram);
    writer.sender_report(1, &SenderInfo { ntp: NtpTime(42), rtp: 43, packets: 44, octets: 45 }, &[block]);
    writer.description(1, &[(SDES_CNAME, "camera@studio"), (SDES_TOOL, "thalweg")]);
    writer.extended_report(
        1,
        Some(NtpTime(0x0102_0304_0506_0708)),
        &[Dlrr { ssrc: 5, last_report: 6, delay_since_last: 7 }],
    );
    writer.nack(1, 5, &[NackEntry { first: 65_535, following: 0b101 }]);
    writer.bye(&[1], "the end");

    let mut seen = Vec::new();
    for packet in rtcp_types::Compound::parse(&datagram).unwrap() {
        match packet.unwrap() {
            rtcp_types::Packet::Sr(report) => {
                assert_eq!((report.ssrc(), report.ntp_timestamp(), report.rtp_timestamp()), (1, 42, 43));
                assert_eq!((report.packet_count(), report.octet_count()), (44, 45));
                let block = report.report_blocks().next().unwrap();
                assert_eq!((block.ssrc(), block.cumulative_lost(), block.fraction_lost()), (5, 0xff_fffe, 3));
                assert_eq!(block.extended_sequence_number(), 0x1_0007);
                seen.push(200);
            }
            rtcp_types::Packet::Sdes(sdes) => {
                let texts: Vec<String> =
                    sdes.chunks().flat_map(|c| c.items()).map(|i| i.get_value_string().unwrap()).collect();
                assert_eq!(texts, ["camera@studio", "thalweg"]);
                seen.push(202);
            }
            rtcp_types::Packet::Xr(xr) => {
                let blocks: Vec<_> = xr.block_iter().collect();
                let reference: rtcp_types::ReceiverReferenceTime<'_> = blocks[0].parse_into().unwrap();
                assert_eq!(reference.ntp_timestamp(), 0x0102_0304_0506_0708);
                let delays: rtcp_types::DelaySinceLastReceiverReport<'_> = blocks[1].parse_into().unwrap();
                let delay = delays.block_iter().next().unwrap();
                assert_eq!((delay.ssrc(), delay.last_receiver_report()), (5, 6));
                assert_eq!(delay.delay_since_last_receiver_report_timestamp(), 7);
                seen.push(207);
            }
            rtcp_types::Packet::TransportFeedback(feedback) => {
                assert_eq!((feedback.sender_ssrc(), feedback.media_ssrc()), (1, 5));
                let nack: rtcp_types::Nack<'_> = feedback.parse_fci().unwrap();
                assert_eq!(nack.entries().collect::<Vec<_>>(), [65_535, 0, 2]);
                seen.push(205);
            }
            rtcp_types::Packet::Bye(bye) => {
                assert_eq!((bye.count(), bye.get_reason_string().unwrap().unwrap().as_str()), (1, "the end"));
                seen.push(203);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, [200, 202, 207, 205, 203]);
}

#[test]
fn an_independent_writer_is_read() {
    let nack =
        [3, 4, 20, 21].into_iter().fold(rtcp_types::Nack::builder(), |nack, number| nack.add_rtp_sequence(number));
    let chunk = rtcp_types::SdesChunk::builder(8).add_item(rtcp_types::SdesItem::builder(1, "viewer"));
    let compound = rtcp_types::Compound::builder()
        .add_packet(
            rtcp_types::ReceiverReport::builder(8)
                .add_report_block(rtcp_types::ReportBlock::builder(9).cumulative_lost(0xff_fffd)),
        )
        .add_packet(rtcp_types::Sdes::builder().add_chunk(chunk))
        .add_packet(rtcp_types::TransportFeedback::builder_owned(nack).sender_ssrc(8).media_ssrc(9))
        .add_packet(rtcp_types::Bye::builder().add_source(8).reason("so long").padding(8));
    let mut datagram = vec![0; 512];
    let length = compound.write_into(&mut datagram).unwrap();
    let hex: String = datagram[..length].iter().map(|octet| format!("{octet:02x}")).collect();
    check(
        &hex,
        &["RR 8 [(9, 0, -3, 0)]", "SDES [(8, 1, \"viewer\")]", "NACK 8 9 [3, 4, 20, 21]", "BYE [8] Some(\"so long\")"],
    );
}

#[test]
fn times_map_there_and_back_across_wraps() {
    let ntp = NtpTime::from_unix(Duration::new(1_800_000_000, 500_000_000));
    assert_eq!((ntp.0 >> 32, ntp.0 as u32), (1_800_000_000 + 2_208_988_800, 1 << 31));
    assert_eq!(ntp.compact(), ((1_800_000_000u64 + 2_208_988_800) << 16) as u32 | 0x8000);
    let clock = MediaClock::new(ntp, u32::MAX - 10, 90_000).unwrap();
    for ticks in [-45_000_000i64, -3003, -1, 0, 1, 11, 3003, 90_000, 1_000_000_000] {
        let rtp = (u32::MAX - 10).wrapping_add(ticks as u32);
        assert_eq!(clock.rtp_of(clock.ntp_of(rtp)), rtp, "{ticks} ticks");
        let nanos = clock.ntp_of(rtp).nanos_since(ntp);
        assert!((nanos - ticks * 1_000_000_000 / 90_000).abs() <= 1, "{ticks} ticks are {nanos} ns");
    }
    // The era of NTP ends in February 2036.
    let last = NtpTime(u64::MAX);
    assert_eq!(last.offset_by(2_000_000_001).nanos_since(last), 2_000_000_001);
    assert!(MediaClock::new(ntp, 0, 0).is_none());
}
