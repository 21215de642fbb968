mod counts;

use std::time::Duration;

use super::*;
use crate::format::{FrameRate, PixelFormat, VideoFormat};
use crate::rfc4175::{Packing, VideoPayload, pixels_of};
use crate::rtp::{RtpHeader, RtpPacket};

const RETRANSMISSION: Resend = Resend::Retransmission { payload_type: 97, ssrc: 9, first_sequence: 0xffff };

fn format(size: (u16, u16), scan: Scan) -> VideoFormat {
    VideoFormat::new(PixelFormat::Yuv422Bits10, size, FrameRate::NTSC, scan).unwrap()
}

fn sender(format: VideoFormat, packing: Packing, octets_max: usize, config: SenderConfig) -> VideoSender {
    VideoSender::new(PacketPlan::new(format, packing, octets_max).unwrap(), config).unwrap()
}

/// A small picture: 40 packets of 300 octets a frame.
fn small(config: SenderConfig) -> VideoSender {
    sender(format((120, 40), Scan::Progressive), Packing::Equal, 320, config)
}

fn frame(format: VideoFormat, seed: u64) -> Arc<[u8]> {
    let mut octets = vec![0; format.frame_octets()];
    thalweg_base::rng::Rng::new(seed).fill(&mut octets);
    octets.into()
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

/// The datagrams of a batch, and the law of its sizes.
fn datagrams(batch: &PacketBatch<'_>) -> Vec<Vec<u8>> {
    let list: Vec<Vec<u8>> = batch
        .packets()
        .map(|packet| {
            let mut out = Vec::new();
            packet.copy_to(&mut out);
            assert_eq!(out.len(), packet.octets());
            out
        })
        .collect();
    let (last, rest) = list.split_last().expect("a batch is never empty");
    assert!(rest.iter().all(|datagram| datagram.len() == batch.segment_octets()));
    assert!(last.len() <= batch.segment_octets() && batch.octets() <= BATCH_OCTETS_MAX);
    assert_eq!(batch.slices().map(<[u8]>::len).sum::<usize>(), batch.octets());
    list
}

/// A driver that wakes up exactly when it asked to: what leaves until `end`, with its time.
fn run(sender: &mut VideoSender, mut now: Instant, end: Instant) -> Vec<(Instant, Vec<Vec<u8>>)> {
    let mut out = Vec::new();
    while now <= end {
        while let Some(batch) = sender.poll_batch(now) {
            out.push((now, datagrams(&batch)));
        }
        let next = sender.poll_timeout();
        assert!(next > now, "nothing is due that is not given out");
        now = next;
    }
    out
}

#[test]
fn every_octet_of_a_frame_is_sent_once_in_each_form() {
    for scan in [Scan::Progressive, Scan::Interlaced, Scan::SegmentedFrame] {
        for (packing, octets) in
            [(Packing::Equal, 320), (Packing::Equal, 900), (Packing::Blocks, 700), (Packing::Fill, 777)]
        {
            let format = format((120, 40), scan);
            let config = SenderConfig { first_sequence: 0xffff_fff0, first_timestamp: u32::MAX, ..Default::default() };
            let mut sender = sender(format, packing, octets, config);
            let sent = frame(format, 1);
            assert_eq!(sender.handle_frame(at(0), sent.clone()), Ok(u32::MAX));
            let out: Vec<Vec<u8>> =
                run(&mut sender, at(0), at(40_000_000)).into_iter().flat_map(|(_, list)| list).collect();
            assert_eq!(out.len(), sender.plan().frame_packets());
            let mut received = vec![None; format.frame_octets()];
            let mut markers = 0;
            for (number, datagram) in out.iter().enumerate() {
                let packet = RtpPacket::parse(datagram).unwrap();
                let payload = VideoPayload::parse(packet.payload).unwrap();
                let sequence = u32::from(payload.extended_sequence) << 16 | u32::from(packet.header.sequence);
                assert_eq!(sequence, config.first_sequence.wrapping_add(number as u32));
                let is_second = number >= sender.plan().field_packets();
                let expect = if is_second && scan == Scan::Interlaced { 1501 } else { 0 };
                assert_eq!(packet.header.timestamp, u32::MAX.wrapping_add(expect));
                markers += usize::from(packet.header.marker);
                assert_eq!(packet.header.marker, (number + 1) % sender.plan().field_packets() == 0);
                for (header, octets) in payload.pieces() {
                    assert_eq!(header.field, if is_second { Field::Second } else { Field::First });
                    assert!(pixels_of(&header, format.pixels()).is_some());
                    let line = usize::from(format.frame_line(header.field, header.line));
                    let start = line * format.line_octets() + usize::from(header.offset) / 2 * 5;
                    for (index, octet) in octets.iter().enumerate() {
                        assert_eq!(received[start + index].replace(*octet), None, "sent twice");
                    }
                }
            }
            assert_eq!(markers, usize::from(scan.fields()));
            assert_eq!(received.into_iter().collect::<Option<Vec<u8>>>().as_deref(), Some(&sent[..]));
            assert!(sender.is_idle() && sender.counters().frames_sent == 1);
        }
    }
}

#[test]
fn packets_are_spread_over_the_active_part_of_the_frame() {
    let config = SenderConfig { batching: Batching::Packets(4), ..Default::default() };
    let mut sender = small(config);
    let format = sender.plan().format();
    sender.handle_frame(at(1000), frame(format, 1)).unwrap();
    let out = run(&mut sender, at(1000), at(40_000_000));
    // 40 packets in 960 thousandths of 33,366,666 ns: 800,799.98 ns each.
    let times: Vec<u64> = out.iter().map(|(time, _)| time.as_nanos()).collect();
    let expect: Vec<u64> = (0..10).map(|batch| 1000 + 32_031_999 * 4 * batch / 40).collect();
    assert_eq!(times, expect);
    assert!(out.iter().all(|(_, list)| list.len() == 4));
    assert_eq!(sender.next_frame_start(), Some(at(1000 + 33_366_666)));
}

#[test]
fn lines_that_follow_each_other_in_the_frame_are_one_slice() {
    for (scan, expect) in [(Scan::Progressive, 1), (Scan::Interlaced, 3)] {
        let mut sender = sender(format((120, 60), scan), Packing::Equal, 940, SenderConfig::default());
        let format = sender.plan().format();
        sender.handle_frame(at(0), frame(format, 1)).unwrap();
        let batch = sender.poll_batch(at(0)).unwrap();
        assert!(batch.packets().all(|packet| packet.picture().count() == expect));
    }
}

#[test]
fn the_second_field_begins_after_half_a_frame_time() {
    for scan in [Scan::Interlaced, Scan::SegmentedFrame] {
        let mut sender = sender(format((120, 40), scan), Packing::Equal, 320, SenderConfig::default());
        let format = sender.plan().format();
        sender.handle_frame(at(0), frame(format, 1)).unwrap();
        let out = run(&mut sender, at(0), at(40_000_000));
        let markers = out.iter().flat_map(|(time, list)| list.iter().map(move |datagram| (time, datagram[1] >> 7)));
        let ends: Vec<u64> = markers.filter(|(_, marker)| *marker == 1).map(|(time, _)| time.as_nanos()).collect();
        // 20 packets a field in batches of 16: the second batch is due at 16/20 of the active half frame.
        assert_eq!(
            ends,
            [16_016_000 - 1, 16_683_333 + 16_016_000 - 1].map(|active: u64| match active {
                first if first < 16_683_333 => first * 16 / 20,
                second => 16_683_333 + (second - 16_683_333) * 16 / 20,
            })
        );
    }
}

#[test]
fn batches_are_as_large_as_their_form_allows() {
    let hd = format((1920, 1080), Scan::Progressive);
    let sizes = |packing, octets_max, batching| {
        let mut sender = sender(hd, packing, octets_max, SenderConfig { batching, ..Default::default() });
        sender.handle_frame(at(0), frame(hd, 1)).unwrap();
        let out = run(&mut sender, at(0), at(40_000_000));
        out.iter().map(|(_, list)| list.len()).max().unwrap()
    };
    assert_eq!(sizes(Packing::Equal, 1472, Batching::Wide), 16);
    assert_eq!(sizes(Packing::Equal, 1472, Batching::Lan), 53);
    assert_eq!(sizes(Packing::Equal, 8972, Batching::Wide), 9, "9 · 7,226 octets fill a message");
    assert_eq!(sizes(Packing::Equal, 1472, Batching::Packets(1)), 1);
    let uhd =
        VideoFormat::new(PixelFormat::Yuv422Bits10, (3840, 2160), "60000/1001".parse().unwrap(), Scan::Progressive);
    let plan = PacketPlan::new(uhd.unwrap(), Packing::Equal, 1472).unwrap();
    let batches = Batches::cut(&plan, Batching::Wide).unwrap();
    assert_eq!(batches.packets(0), 0..47, "C_max of 17,280 packets in 16.68 ms, one message at most");
}

#[test]
fn in_a_local_network_messages_leave_together() {
    let hd = format((1920, 1080), Scan::Progressive);
    let messages_and_times = |octets_max| {
        let config = SenderConfig { batching: Batching::Lan, ..Default::default() };
        let mut sender = sender(hd, Packing::Equal, octets_max, config);
        sender.handle_frame(at(0), frame(hd, 1)).unwrap();
        let out = run(&mut sender, at(0), at(40_000_000));
        let mut times: Vec<Instant> = out.iter().map(|(time, _)| *time).collect();
        times.dedup();
        (out.len(), times.len())
    };
    assert_eq!(messages_and_times(1472), (82, 41), "4,320 packets, 53 in a message");
    assert_eq!(messages_and_times(8972), (80, 20), "720 packets, 9 in a message");
}

/// Packets that leave after a stall, and how many of them left in any tenth of a frame time.
#[test]
fn a_late_sender_drops_whole_frames_and_never_bursts() {
    for stall_millis in [5, 20, 33, 70, 500] {
        let config = SenderConfig { batching: Batching::Packets(2), ..Default::default() };
        let mut sender = small(config);
        let format = sender.plan().format();
        let period = 33_366_666;
        let mut out: Vec<(Instant, Vec<u8>)> = Vec::new();
        let mut now = at(0);
        let mut has_stalled = false;
        while now < at(40 * period) {
            if sender.wants_frame() {
                sender.handle_frame(now, frame(format, 1)).unwrap();
            }
            while let Some(batch) = sender.poll_batch(now) {
                out.extend(datagrams(&batch).into_iter().map(|datagram| (now, datagram)));
                if !has_stalled && now > at(5 * period + period / 3) {
                    has_stalled = true;
                    now += Duration::from_millis(stall_millis);
                }
            }
            if !sender.wants_frame() {
                now = sender.poll_timeout().max(now);
            }
        }
        // At most five fourths of the regular rate, and four batches of two at once.
        let window = Duration::from_nanos(period / 10);
        for (index, (start, _)) in out.iter().enumerate() {
            let count = out[index..].iter().take_while(|(time, _)| time.since(*start) < window).count();
            assert!(count <= 8 + 6, "{count} packets in a tenth of a frame time after a stall of {stall_millis} ms");
        }
        // Frames are whole: 40 packets with each time stamp.
        let mut frames: Vec<(u32, usize)> = Vec::new();
        for (_, datagram) in &out {
            let timestamp = RtpPacket::parse(datagram).unwrap().header.timestamp;
            match frames.last_mut().filter(|(last, _)| *last == timestamp) {
                Some((_, count)) => *count += 1,
                None => frames.push((timestamp, 1)),
            }
        }
        frames.pop();
        assert!(frames.iter().all(|(timestamp, count)| *count == 40 && timestamp % 3003 == 0));
        let counters = sender.counters();
        let absent = counters.frames_dropped + counters.frames_missed;
        let last = u64::from(frames.last().unwrap().0 / 3003);
        assert!((frames.len() as u64..=frames.len() as u64 + 1).contains(&(last + 1 - absent)));
        // A frame is late by more than a frame time once the stall has lasted a frame longer than its slack.
        assert_eq!(counters.frames_dropped > 0, stall_millis >= 70, "the frame that waited");
        assert_eq!(absent > 0, stall_millis >= 70, "{counters:?} after {stall_millis} ms");
        assert!(absent <= 1 + stall_millis * 1_000_000 / period);
        // It is back in time at the end.
        let last_start = at(last * period);
        let (time, _) = out
            .iter()
            .find(|(_, datagram)| RtpPacket::parse(datagram).unwrap().header.timestamp == last as u32 * 3003)
            .unwrap();
        assert!(time.since(last_start) < Duration::from_millis(1));
    }
}

#[test]
fn a_late_source_continues_at_the_next_frame_time() {
    let mut sender = small(SenderConfig { first_timestamp: 7, ..Default::default() });
    let format = sender.plan().format();
    let period = 33_366_666;
    assert_eq!(sender.handle_frame(at(0), frame(format, 1)), Ok(7));
    assert_eq!(sender.handle_frame(at(0), frame(format, 1)), Err(FrameRefusal::Full));
    run(&mut sender, at(0), at(period));
    assert_eq!(sender.handle_frame(at(period + 2_000_000), frame(format, 2)), Ok(7 + 3003), "somewhat late");
    run(&mut sender, at(period + 2_000_000), at(2 * period));
    assert_eq!(sender.handle_frame(at(5 * period + 9), frame(format, 3)), Ok(7 + 6 * 3003));
    assert_eq!(sender.counters().frames_missed, 4, "the third to the sixth frame time");
    assert_eq!(sender.poll_timeout(), at(0) + FrameRate::NTSC.time_of(6));
    assert_eq!(sender.timestamp_at(at(1_000_000_000)), 7 + 90_000);
    let wrong = sender.handle_frame(at(0), vec![0; 3].into()).unwrap_err().to_string();
    assert_eq!(wrong, "a frame of 3 octets does not have the 12000 octets of the format");
}

#[test]
fn sent_frames_are_kept_for_three_more_and_then_let_go() {
    let mut sender = small(SenderConfig::default());
    let format = sender.plan().format();
    let first = frame(format, 1);
    for index in 0..=FRAMES_KEPT {
        let now = at(0) + FrameRate::NTSC.time_of(index as u64);
        sender.handle_frame(now, if index == 0 { first.clone() } else { frame(format, 2) }).unwrap();
        run(&mut sender, now, now);
        assert_eq!(Arc::strong_count(&first), 2);
        run(&mut sender, now, now + Duration::from_millis(33));
    }
    let now = at(0) + FrameRate::NTSC.time_of(FRAMES_KEPT as u64 + 1);
    sender.handle_frame(now, frame(format, 3)).unwrap();
    run(&mut sender, now, now);
    assert_eq!(Arc::strong_count(&first), 1);
}

/// A sender in the middle of its sixth frame, and all that it sent.
fn halfway(resend: Resend) -> (VideoSender, Vec<Vec<u8>>, Instant) {
    let mut sender = small(SenderConfig { first_sequence: 0x0001_fff0, resend, ..Default::default() });
    let format = sender.plan().format();
    let mut sent = Vec::new();
    let mut now = at(0);
    for index in 0..6 {
        sender.handle_frame(now, frame(format, index)).unwrap();
        let end = if index == 5 { now + Duration::from_millis(14) } else { at(0) + FrameRate::NTSC.time_of(index + 1) };
        sent.extend(run(&mut sender, now, end).into_iter().flat_map(|(_, list)| list));
        now = end;
    }
    (sender, sent, now)
}

#[test]
fn packets_asked_for_come_again_in_their_own_stream() {
    let (mut sender, sent, now) = halfway(RETRANSMISSION);
    assert_eq!(sent.len(), 5 * 40 + 32);
    let number = |packet: usize| 0x0001_fff0_usize.wrapping_add(packet) as u16;
    // The last one sent, one of two frames ago, the oldest that is kept; twice the same; too old; not yet sent.
    sender.handle_nack(now, [231, 130, 80, 130, 79, 232].map(number));
    let counters = sender.counters();
    assert_eq!((counters.requests_refused, counters.requests_unknown), (1, 2));
    let mut again = Vec::new();
    while let Some(batch) = sender.poll_batch(now) {
        again.extend(datagrams(&batch));
    }
    for (index, (datagram, packet)) in again.iter().zip([231, 130, 80]).enumerate() {
        let (again, original) = (RtpPacket::parse(datagram).unwrap(), RtpPacket::parse(&sent[packet]).unwrap());
        let expect = RtpHeader { payload_type: 97, sequence: [0xffff, 0, 1][index], ssrc: 9, ..original.header };
        assert_eq!(again.header, expect);
        assert_eq!(again.payload[..2], number(packet).to_be_bytes());
        assert_eq!(&again.payload[2..], original.payload);
    }
    assert_eq!((again.len(), sender.counters().packets_resent), (3, 3));
    let octets: usize = again.iter().map(|datagram| datagram.len() - HEADER_OCTETS).sum();
    assert_eq!(sender.repeated(), SentCounts { packets: 3, octets: octets as u64 });
    sender.handle_nack(now, [number(130)]);
    assert!(sender.poll_batch(now).is_some(), "it may be asked for again once it was sent again");
}

#[test]
fn requests_that_waited_while_the_sender_stood_still_are_answered_once() {
    let (mut sender, _, now) = halfway(RETRANSMISSION);
    let lost = [200, 210].map(|packet: u16| 0xfff0_u16.wrapping_add(packet));
    let later = now + Duration::from_millis(9);
    let mut again = |now: Instant, asked: Instant| {
        sender.handle_nack(asked, lost);
        let mut count = 0;
        while let Some(batch) = sender.poll_batch(now) {
            count += usize::from(batch.place().is_none()) * batch.packets().count();
        }
        count
    };
    let millis = |count| now + Duration::from_millis(count);
    assert_eq!(again(later, now), 2);
    assert_eq!([again(later, millis(3)), again(later, millis(8))], [0, 0], "before they were sent again");
    assert_eq!(again(millis(12), millis(11)), 2, "they were lost again");
}

#[test]
fn repetitions_in_the_same_stream_are_unchanged_and_none_are_sent_by_default() {
    let (mut sender, sent, now) = halfway(Resend::Same);
    sender.handle_nack(now, [0xfff0_u16.wrapping_add(200)]);
    assert_eq!(datagrams(&sender.poll_batch(now).unwrap()), [sent[200].clone()]);
    let (mut sender, _, now) = halfway(Resend::Never);
    sender.handle_nack(now, [0xfff0_u16.wrapping_add(200)]);
    assert!(sender.poll_batch(now).is_none());
    assert_eq!(sender.counters().requests_refused, 1);
}

#[test]
fn repetitions_add_at_most_a_tenth() {
    let mut sender = small(SenderConfig { resend: RETRANSMISSION, ..Default::default() });
    let format = sender.plan().format();
    let (mut regular, mut again) = (Vec::new(), Vec::new());
    let mut now = at(0);
    let end = at(0) + FrameRate::NTSC.time_of(100);
    while now < end {
        if sender.wants_frame() {
            sender.handle_frame(now, frame(format, 1)).unwrap();
        }
        while let Some(batch) = sender.poll_batch(now) {
            for datagram in datagrams(&batch) {
                let packet = RtpPacket::parse(&datagram).unwrap();
                if packet.header.ssrc == 9 { again.push(now) } else { regular.push(packet.header.sequence) }
            }
        }
        // A receiver that asks for everything all the time.
        let from = regular.len().saturating_sub(100);
        sender.handle_nack(now, regular[from..].iter().copied());
        now = sender.poll_timeout().max(now + Duration::from_micros(100));
    }
    let share = again.len() as f64 / regular.len() as f64;
    assert!((0.095..=0.11).contains(&share), "{share}");
    assert_eq!(sender.counters().frames_dropped, 0, "repetitions do not delay the stream");
}

#[test]
fn what_is_asked_for_at_once_is_repeated_at_a_quarter_of_the_rate() {
    let format = format((1200, 40), Scan::Progressive);
    let mut sender =
        sender(format, Packing::Equal, 320, SenderConfig { resend: RETRANSMISSION, ..SenderConfig::default() });
    let packets = sender.plan().frame_packets();
    // Four frames have saved up a tenth of each.
    for index in 0..5 {
        let (now, end) = [index, index + 1].map(|frame| at(0) + FrameRate::NTSC.time_of(frame)).into();
        sender.handle_frame(now, frame(format, index)).unwrap();
        run(&mut sender, now, end);
    }
    let begun = at(0) + FrameRate::NTSC.time_of(5);
    let asked = packets / 3;
    let last = 5 * packets as u64;
    sender.handle_nack(begun, (last - asked as u64..last).map(|number| number as u16));
    let sent = run(&mut sender, begun, begun + Duration::from_millis(50));
    let until = |millis| {
        let end = begun + Duration::from_millis(millis);
        sent.iter().take_while(|(time, _)| *time <= end).map(|(_, list)| list.len()).sum::<usize>()
    };
    // Two batches of 16 leave at once.
    let quarter_of = |millis: u64| packets as f64 * 29.97 / 4.0 * millis as f64 / 1000.0;
    for millis in [0, 5, 10, 20] {
        let (count, quarter) = (until(millis), quarter_of(millis));
        assert!(count as f64 <= 32.0 + quarter + 16.0, "{count} in {millis} ms");
        assert!(count as f64 >= quarter, "{count} in {millis} ms");
    }
    assert_eq!(until(50), asked);
}

#[test]
fn repetitions_end_when_the_stream_pauses() {
    for size in [(120, 40), (2, 2)] {
        let format = format(size, Scan::Progressive);
        let config = SenderConfig { resend: RETRANSMISSION, ..Default::default() };
        let mut sender = sender(format, Packing::Equal, 320, config);
        let (mut regular, mut again, mut most) = (0, 0, 0);
        for millis in 0..20_000 {
            let now = at(millis * 1_000_000);
            // A second of the stream, and then nothing for a long time.
            if millis < 1000 && sender.wants_frame() {
                sender.handle_frame(now, frame(format, millis)).unwrap();
            }
            while let Some(batch) = sender.poll_batch(now) {
                for datagram in datagrams(&batch) {
                    let ssrc = RtpPacket::parse(&datagram).unwrap().header.ssrc;
                    *(if ssrc == 9 { &mut again } else { &mut regular }) += datagram.len();
                    most = most.max(datagram.len());
                }
            }
            let newest = sender.counters().packets_sent;
            sender.handle_nack(now, (newest.saturating_sub(160)..newest).map(|number| number as u16));
        }
        // Two batches of 16 may come first, and one may begin with the last octet of what is left.
        assert!(again <= regular / 10 + 3 * 16 * most, "{again} octets again for {regular} octets of {size:?}");
        assert!(again >= regular / 20, "{again} octets again for {regular} octets of {size:?}");
    }
}

#[test]
fn numbers_outside_their_ranges_are_refused() {
    let refused = |config| {
        let plan = PacketPlan::new(format((120, 40), Scan::Progressive), Packing::Equal, 320).unwrap();
        VideoSender::new(plan, config).unwrap_err().to_string()
    };
    let config = SenderConfig::default();
    assert_eq!(
        refused(SenderConfig { payload_type: 128, ..config }),
        "payload type 128 is above 127; give one from 96 to 127"
    );
    let resend = Resend::Retransmission { payload_type: 200, ssrc: 0, first_sequence: 0 };
    assert!(refused(SenderConfig { resend, ..config }).contains("payload type 200"));
    let active = refused(SenderConfig { active_per_mille: 99, ..config });
    assert_eq!(active, "an active part of 99 thousandths of a frame is not between 100 and 1000");
    for count in [0, 65] {
        let batch = refused(SenderConfig { batching: Batching::Packets(count), ..config });
        assert_eq!(batch, format!("a batch of {count} packets is not between 1 and 64"));
    }
}
