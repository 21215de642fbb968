use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::conformance::PacingKind;
use crate::format::{FrameRate, PixelFormat};
use crate::rfc4175::{PacketPlan, Packing};
use crate::sender::{Batching, SenderConfig, VideoSender};

/// A datagram and its time.
type Sent = (Instant, Vec<u8>);

fn format(scan: Scan) -> VideoFormat {
    VideoFormat::new(PixelFormat::Yuv422Bits8, (160, 100), FrameRate::NTSC, scan).unwrap()
}

fn config(batching: Batching) -> SenderConfig {
    SenderConfig { ssrc: 7, first_sequence: 0x0001_ffc0, batching, ..SenderConfig::default() }
}

/// The datagrams of so many frames, each at its time.
fn send(format: VideoFormat, config: SenderConfig, frames: usize) -> Vec<Sent> {
    let plan = PacketPlan::new(format, Packing::Equal, 348).unwrap();
    let mut sender = VideoSender::new(plan, config).unwrap();
    let frame: Arc<[u8]> = vec![0; format.frame_octets()].into();
    let (mut now, mut given, mut sent) = (Instant::from_nanos(1 << 40), 0, Vec::new());
    loop {
        if given < frames && sender.wants_frame() {
            sender.handle_frame(now, Arc::clone(&frame)).unwrap();
            given += 1;
        }
        while let Some(batch) = sender.poll_batch(now) {
            sent.extend(batch.packets().map(|packet| (now, packet.slices().collect::<Vec<_>>().concat())));
        }
        match (sender.is_idle(), given == frames) {
            (true, true) => return sent,
            // A small frame left at once.
            (true, false) => {}
            (false, _) => now = now.max(sender.poll_timeout()),
        }
    }
}

fn analyse<'a>(format: VideoFormat, sent: impl IntoIterator<Item = &'a Sent>) -> StreamAnalysis {
    let mut analyser = StreamAnalyser::new(format, None);
    sent.into_iter().for_each(|(at, datagram)| analyser.handle_datagram(*at, datagram));
    analyser.finish();
    analyser.analysis()
}

#[track_caller]
fn times(analysis: &StreamAnalysis) -> StreamTimes {
    analysis.times.unwrap_or_else(|| panic!("not learned: {analysis:?}")).unwrap()
}

#[test]
fn each_way_of_batching_is_told_by_its_kind() {
    for (batching, expect) in [
        (Batching::Packets(1), Some(PacingKind::Narrow)),
        (Batching::Wide, Some(PacingKind::Wide)),
        (Batching::Lan, None),
    ] {
        let progressive = format(Scan::Progressive);
        let sent = send(progressive, config(batching), 30);
        let analysis = analyse(progressive, &sent);
        let times = times(&analysis);
        assert_eq!(times.pacing.kind(), expect, "{batching:?}: {times:?}");
        assert_eq!(analysis.frame_packets, Some(sent.len() as u32 / 30));
        assert_eq!((analysis.packets_missing, analysis.frames_irregular, analysis.frames), (0, 0, 29));
        assert_eq!((analysis.frame_ticks, analysis.shape.markers), (Some(3003), 30));
        assert!(times.intervals.p99.abs_diff(progressive.frame_time()) < Duration::from_micros(50), "{times:?}");
    }
}

#[test]
fn the_jitter_of_the_schedule_is_that_of_batches_and_the_usual_one_is_the_spacing() {
    let progressive = format(Scan::Progressive);
    let smooth = times(&analyse(progressive, &send(progressive, config(Batching::Packets(1)), 40)));
    let spacing = smooth.jitter_rfc3550_nanos;
    assert!(smooth.jitter_schedule_nanos < spacing / 100.0, "{smooth:?}");
    let wide = times(&analyse(progressive, &send(progressive, config(Batching::Wide), 40)));
    assert!(wide.jitter_schedule_nanos > spacing / 2.0, "{wide:?}");
}

#[test]
fn fields_with_time_stamps_of_their_own_are_one_frame() {
    for scan in [Scan::Interlaced, Scan::SegmentedFrame] {
        let format = format(scan);
        let sent = send(format, config(Batching::Packets(1)), 30);
        let analysis = analyse(format, &sent);
        assert_eq!(analysis.frame_packets, Some(sent.len() as u32 / 30), "{scan}");
        assert_eq!((analysis.dialect, analysis.frames_irregular), (LineDialect::InField, 0), "{scan}");
        assert_eq!(analysis.shape.second_field_packets, sent.len() as u64 / 2, "{scan}");
        assert_eq!(analysis.shape.outside, 0);
        let times = times(&analysis);
        assert!(times.jitter_schedule_nanos < 20_000.0, "{scan}: {times:?}");
        assert_eq!(times.pacing.packets_missing, 0, "{scan}");
    }
}

#[test]
fn lines_counted_in_the_frame_are_another_dialect() {
    let interlaced = format(Scan::Interlaced);
    let mut sent = send(interlaced, config(Batching::Wide), 3);
    for (_, datagram) in &mut sent {
        // The first line header begins behind 12 octets of RTP and 2 of the extended number.
        let line = u16::from_be_bytes([datagram[16], datagram[17]]);
        let in_frame = line & 0x8000 | (2 * (line & 0x7fff) + (line >> 15));
        datagram[16..18].copy_from_slice(&in_frame.to_be_bytes());
        datagram.truncate(12 + 2 + 6);
        datagram[14..16].copy_from_slice(&[0, 0]);
        datagram[18] &= 0x7f;
    }
    assert_eq!(analyse(interlaced, &sent).dialect, LineDialect::InFrame);
    assert_eq!(analyse(format(Scan::Progressive), &sent).dialect, LineDialect::Unknown);
}

#[test]
fn losses_are_counted_and_move_no_frame() {
    let progressive = format(Scan::Progressive);
    let sent = send(progressive, config(Batching::Packets(1)), 40);
    let frame = sent.len() / 40;
    // Those at the ends and at the beginnings of frames among them.
    let is_lost = |place: usize| {
        place > frame * 10
            && (place.is_multiple_of(frame) || place % frame == 30 || (place + 1).is_multiple_of(7 * frame))
    };
    let came: Vec<&Sent> =
        sent.iter().enumerate().filter(|(place, _)| !is_lost(*place)).map(|(_, sent)| sent).collect();
    let analysis = analyse(progressive, came.iter().copied());
    let (times, lost) = (times(&analysis), (sent.len() - came.len()) as u64);
    assert_eq!((analysis.packets_missing, analysis.packets_expected), (lost, sent.len() as u64), "{analysis:?}");
    assert_eq!((analysis.frames_irregular, analysis.frames), (0, 39), "{analysis:?}");
    assert_eq!(times.pacing.packets_missing, lost, "{times:?}");
    assert_eq!(times.pacing.kind(), Some(PacingKind::Narrow), "{times:?}");
}

#[test]
fn a_frame_that_was_never_sent_leaves_the_schedule_as_it_is() {
    let progressive = format(Scan::Progressive);
    let mut sent = send(progressive, config(Batching::Packets(1)), 40);
    let frame = sent.len() / 40;
    sent.drain(20 * frame..21 * frame);
    for (_, datagram) in &mut sent[20 * frame..] {
        // A sender that drops a frame goes on with its numbers.
        let number = u16::from_be_bytes([datagram[2], datagram[3]]).wrapping_sub(frame as u16);
        datagram[2..4].copy_from_slice(&number.to_be_bytes());
    }
    let analysis = analyse(progressive, &sent);
    assert_eq!((analysis.packets_missing, analysis.frames_irregular, analysis.frames), (0, 0, 38));
    assert_eq!(times(&analysis).pacing.kind(), Some(PacingKind::Narrow), "{analysis:?}");
}

#[test]
fn a_frame_that_was_never_sent_leaves_a_gap_in_the_count_of_frames() {
    let mut starts = FrameStarts::new(format(Scan::Progressive));
    // Ten packets a frame, and the time stamps of frames 0, 1, 3 and 7 after one that is not whole.
    let mut number = 100;
    for (ticks, frame) in [(0, None), (3003, Some(0)), (6006, Some(1)), (12_012, Some(3)), (24_024, Some(7))] {
        for packet in 0..10 {
            let timestamp = 0xffff_f000_u32.wrapping_add(ticks);
            let place = starts.handle_packet(number, timestamp, Field::First);
            assert_eq!(place, frame.map(|frame| PacketPlace { frame, packet, stamped: packet }), "{ticks}");
            number += 1;
        }
    }
    assert_eq!(starts.handle_packet(110, 0xffff_f000_u32.wrapping_add(3003), Field::First), None, "it came too late");
}

#[test]
fn another_source_takes_over_once_the_first_is_silent() {
    let progressive = format(Scan::Progressive);
    let first = send(progressive, config(Batching::Wide), 10);
    let second = send(progressive, SenderConfig { ssrc: 8, ..config(Batching::Wide) }, 20);
    let both: Vec<Sent> =
        first.iter().zip(&second).flat_map(|(first, second)| [first.clone(), second.clone()]).collect();
    let together = analyse(progressive, &both);
    assert_eq!((together.ssrc, together.shape.foreign), (Some(7), first.len() as u64));
    let analysis = analyse(progressive, first.iter().chain(&second));
    assert_eq!((analysis.ssrc, analysis.restarts, analysis.shape.foreign), (Some(8), 1, 512), "{analysis:?}");
    assert!(analysis.times.is_some(), "{analysis:?}");
}

#[test]
fn a_clock_that_is_set_back_is_followed_and_a_single_packet_is_not() {
    let progressive = format(Scan::Progressive);
    let stamped = |first_timestamp, first_sequence| {
        send(progressive, SenderConfig { first_timestamp, first_sequence, ..config(Batching::Wide) }, 20)
    };
    let first = stamped(900_000_000, 0);
    let packets = u32::try_from(first.len()).expect("few");
    let second = stamped(300_000_000, packets);
    let analysis = analyse(progressive, first.iter().chain(&second));
    assert_eq!((analysis.ssrc, analysis.restarts), (Some(7), 1), "{analysis:?}");
    assert!(analysis.frames >= 18 && analysis.times.is_some(), "{analysis:?}");
    let regular = analyse(progressive, &first);
    let mut forged = first.clone();
    forged[550].1[4..8].copy_from_slice(&300_000_000_u32.to_be_bytes());
    let analysis = analyse(progressive, &forged);
    assert_eq!((analysis.restarts, analysis.frames), (0, regular.frames), "{analysis:?}");
}

#[test]
fn what_is_no_such_stream_is_counted() {
    let progressive = format(Scan::Progressive);
    let sent = send(progressive, config(Batching::Wide), 1);
    let mut analyser = StreamAnalyser::new(progressive, Some(97));
    analyser.handle_datagram(Instant::ZERO, b"hello");
    analyser.handle_datagram(Instant::ZERO, &sent[0].1);
    let analysis = analyser.analysis();
    assert_eq!((analysis.shape.malformed, analysis.shape.foreign, analysis.ssrc), (1, 1, None));
    let narrow = VideoFormat::new(PixelFormat::Yuv422Bits8, (80, 100), FrameRate::NTSC, Scan::Progressive).unwrap();
    assert!(analyse(narrow, &sent).shape.outside > 0);
}
