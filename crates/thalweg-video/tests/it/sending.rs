//! A sender before a peer that is no receiver of this crate.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thalweg_transport::clock;
use thalweg_transport::stream::StreamOptions;
use thalweg_video::format::{FrameRate, PixelFormat, Scan, VideoFormat};
use thalweg_video::io::{
    ControlPort, MediaOptions, MediaReceiver, MediaSocket, Protocol, SendOptions, SendReport, run_sender,
};
use thalweg_video::rfc4175::Packing;
use thalweg_video::rtcp::{CompoundWriter, NackEntry, RtcpPacket, RtcpPackets, SDES_CNAME};
use thalweg_video::sender::{Resend, SenderConfig};

use crate::listener::{Heard, Packet, REPETITIONS, listen};
use crate::sources::{Numbered, number_of, octet, small};

fn bind(control: ControlPort) -> MediaSocket {
    let stream = StreamOptions { receive_buffer_bytes: 8 << 20, ..StreamOptions::default() };
    MediaSocket::bind("127.0.0.1:0".parse().unwrap(), &MediaOptions { stream, control }).unwrap()
}

fn options(to: SocketAddr) -> SendOptions {
    let mut options = SendOptions::new(to).unwrap();
    // Not the jumbo packets of loopback.
    options.mtu = Some(1500);
    options
}

/// Sends `frames` frames to a listener; returns both ends' accounts.
fn exchange(
    format: VideoFormat,
    frames: u64,
    control: ControlPort,
    change: impl FnOnce(&mut SendOptions),
    answer: impl FnMut(&Packet) -> Option<Vec<u8>> + Send,
) -> (SendReport, Heard, SendOptions) {
    let socket = bind(control);
    let mut options = options(socket.media().local_address());
    options.control = control;
    change(&mut options);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let heard = scope.spawn(|| listen(socket, format, &stop, answer));
        let mut source = Numbered::new(format, frames);
        let report = run_sender(&mut source, &options, &AtomicBool::new(false), |_| ()).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        stop.store(true, Ordering::Relaxed);
        (report, heard.join().unwrap(), options)
    })
}

/// Each frame that came must be one of the source's, in their order; returns how many came. A machine that stalls makes a sender drop
/// some.
#[track_caller]
fn check_frames(heard: &Heard, format: VideoFormat, first_timestamp: u32) -> u64 {
    let mut frames: Vec<(u32, &Vec<u8>)> =
        heard.frames.iter().map(|(timestamp, frame)| (timestamp.wrapping_sub(first_timestamp), frame)).collect();
    frames.sort();
    let mut before = None;
    for (since, frame) in &frames {
        // 90,000 ticks a second at 50 frames a second.
        assert_eq!(since % 1800, 0);
        let number = number_of(frame[0]);
        let wrong = (0..format.frame_octets()).find(|place| frame[*place] != octet(number, *place));
        assert_eq!(wrong, None, "frame {number}");
        assert!(before < Some(number) && u64::from(since / 1800) >= number, "frame {number} after {before:?}");
        before = Some(number);
    }
    frames.len() as u64
}

#[test]
fn frames_that_leave_at_once_follow_each_other() {
    let tiny = VideoFormat::new(PixelFormat::Yuv422Bits8, (64, 36), FrameRate::NTSC, Scan::Progressive).unwrap();
    let (report, heard, _) = exchange(tiny, 20, ControlPort::Next, |_| (), |_| None);
    assert!(report.sender.packets_sent / 20 <= 16, "a frame is one batch: {report:?}");
    let (first, all) = heard.packets.split_first().unwrap();
    let lateness = |packet: &Packet| {
        let due = Duration::from_micros(u64::from(packet.timestamp.wrapping_sub(first.timestamp)) * 100 / 9);
        packet.arrived.since(first.arrived).saturating_sub(due)
    };
    let late = all.iter().filter(|packet| packet.marker && lateness(packet) > Duration::from_millis(8)).count();
    // A machine may stall.
    assert!(heard.frames.len() == 20 && late <= 2, "{late} frames late of {}", heard.frames.len());
}

#[test]
fn frames_arrive_as_the_source_made_them_in_paced_batches() {
    let format = small(Scan::Progressive);
    let (report, heard, options) = exchange(format, 10, ControlPort::Next, |_| (), |_| None);
    let config = options.sender;
    let sent = report.sender.frames_sent;
    assert_eq!((sent + report.sender.frames_dropped, report.lost), (10, 0));
    assert!(sent >= 2 && check_frames(&heard, format, config.first_timestamp) == sent, "{report:?}");
    assert_eq!(heard.packets.len() as u64, report.sender.packets_sent);
    let mut expected = config.first_sequence;
    for packet in &heard.packets {
        assert_eq!((packet.sequence, packet.ssrc, packet.payload_type), (expected, config.ssrc, 96));
        expected = expected.wrapping_add(1);
    }
    assert_eq!(heard.packets.iter().filter(|packet| packet.marker).count() as u64, sent);
    let first = &heard.packets[0];
    let last = heard.packets.last().unwrap();
    let spread = last.arrived.since(first.arrived);
    let least = Duration::from_millis(20) * (sent as u32 - 1);
    assert!(spread >= least, "{sent} frames take {least:?} at least: {spread:?}");
    assert_eq!(report.sockets.datagrams, report.sender.packets_sent);
    assert!(report.sockets.calls < report.sender.packets_sent / 4, "batches leave as one message: {report:?}");
    assert!(heard.messages < heard.packets.len() / 4, "and arrive joined: {}", heard.messages);
}

#[test]
fn fields_carry_the_lines_of_their_frame() {
    for scan in [Scan::Interlaced, Scan::SegmentedFrame] {
        let format = small(scan);
        let (report, heard, options) = exchange(format, 3, ControlPort::Multiplexed, |_| (), |_| None);
        let sent = report.sender.frames_sent;
        assert_eq!(sent + report.sender.frames_dropped, 3, "{scan}");
        if scan == Scan::SegmentedFrame {
            assert_eq!(check_frames(&heard, format, options.sender.first_timestamp), sent);
        }
        assert_eq!(heard.packets.iter().filter(|packet| packet.marker).count() as u64, 2 * sent, "one a field");
    }
}

#[test]
fn packets_that_a_receiver_asks_for_come_again() {
    let format = small(Scan::Progressive);
    let resend = Resend::Retransmission { payload_type: REPETITIONS, ssrc: 77, first_sequence: 9 };
    let change = |options: &mut SendOptions| {
        options.sender = SenderConfig { resend, ..options.sender };
        options.rtcp.first_report = Duration::ZERO;
    };
    let mut count = 0;
    let ask = |packet: &Packet| {
        count += 1;
        let is_asked = packet.payload_type == 96 && count % 50 == 30;
        is_asked.then(|| {
            let mut datagram = Vec::new();
            let mut writer = CompoundWriter::new(&mut datagram);
            writer.receiver_report(5, &[]);
            writer.nack(5, packet.ssrc, &[NackEntry { first: packet.sequence as u16, following: 0 }]);
            datagram
        })
    };
    let (report, heard, options) = exchange(format, 20, ControlPort::Next, change, ask);
    let again: Vec<&Packet> = heard.packets.iter().filter(|packet| packet.payload_type == REPETITIONS).collect();
    assert!(!again.is_empty() && again.len() as u64 == report.sender.packets_resent, "{report:?}");
    assert!(again.iter().all(|packet| packet.ssrc == 77));
    let (mut named, mut reported, mut left) = (0, Vec::new(), Vec::new());
    for packet in heard.control.iter().flat_map(|datagram| RtcpPackets::parse(datagram).unwrap()) {
        match packet.unwrap() {
            RtcpPacket::SourceDescription(items) => {
                let cname = options.rtcp.cname.as_bytes();
                named += items.filter(|item| (item.ssrc, item.kind, item.text) == (77, SDES_CNAME, cname)).count();
            }
            RtcpPacket::SenderReport { ssrc: 77, info, .. } => reported.push(u64::from(info.packets)),
            RtcpPacket::Bye { sources, .. } => left.extend(sources),
            _ => {}
        }
    }
    assert_eq!(named, heard.control.len(), "each report names the source of repetitions");
    assert_eq!(reported.last(), Some(&report.sender.packets_resent));
    assert_eq!(left, [options.sender.ssrc, 77]);
    check_frames(&heard, format, heard.packets[0].timestamp);
}

#[test]
fn reports_tell_of_the_stream_and_a_bye_ends_it() {
    let format = small(Scan::Progressive);
    let change = |options: &mut SendOptions| options.rtcp.first_report = Duration::from_millis(50);
    let (report, heard, options) = exchange(format, 15, ControlPort::Multiplexed, change, |_| None);
    let (mut infos, mut byes) = (Vec::new(), 0);
    for datagram in &heard.control {
        for packet in RtcpPackets::parse(datagram).unwrap() {
            match packet.unwrap() {
                RtcpPacket::SenderReport { ssrc, info, .. } => {
                    assert_eq!(ssrc, options.sender.ssrc);
                    infos.push(info);
                }
                RtcpPacket::Bye { .. } => byes += 1,
                _ => {}
            }
        }
    }
    assert!(infos.len() >= 2 && byes == 1, "{infos:?}");
    let last = infos.last().unwrap();
    assert_eq!(u64::from(last.packets), report.sender.packets_sent);
    assert_eq!(u64::from(last.octets), report.sender.payload_octets_sent);
}

#[test]
fn a_single_host_hears_a_report_before_the_first_packet() {
    let first = |control| {
        let socket = bind(control);
        let mut source = Numbered::new(small(Scan::Progressive), 2);
        let options = SendOptions { control, ..options(socket.media().local_address()) };
        run_sender(&mut source, &options, &AtomicBool::new(false), |_| ()).unwrap();
        let mut receiver = MediaReceiver::new(&[socket]).unwrap();
        let mut arrived = Vec::new();
        receiver.wait_until(clock::now() + Duration::from_millis(500)).unwrap();
        while receiver.receive(|arrival| {
            arrived.extend(arrival.datagrams().map(|(protocol, _)| (arrival.message.arrived, protocol)));
        }) {}
        arrived.sort_by_key(|(arrived, _)| *arrived);
        arrived.iter().position(|(_, protocol)| *protocol == Protocol::Media)
    };
    assert_eq!(first(ControlPort::Next), Some(1));
    assert_eq!(first(ControlPort::Multiplexed), Some(1));
}

/// A report of somebody else who has this number as well.
fn colliding(ssrc: u32) -> Vec<u8> {
    let mut datagram = Vec::new();
    let mut writer = CompoundWriter::new(&mut datagram);
    writer.receiver_report(ssrc, &[]);
    writer.description(ssrc, &[(SDES_CNAME, "another")]);
    datagram
}

/// The numbers that were left, each farewell with its own.
fn farewells(heard: &Heard) -> Vec<Vec<u32>> {
    let packets = heard.control.iter().flat_map(|datagram| RtcpPackets::parse(datagram).unwrap());
    packets
        .filter_map(|packet| match packet.unwrap() {
            RtcpPacket::Bye { sources, .. } => Some(sources.collect()),
            _ => None,
        })
        .collect()
}

#[test]
fn a_sender_takes_another_number_where_somebody_has_its_own_and_does_not_run_from_an_echo() {
    let format = small(Scan::Progressive);
    let change = |options: &mut SendOptions| options.rtcp.first_report = Duration::ZERO;
    // Whoever answers has each number that the sender takes.
    let (_, heard, options) = exchange(format, 40, ControlPort::Next, change, |packet| Some(colliding(packet.ssrc)));
    let mut numbers: Vec<u32> = heard.packets.iter().map(|packet| packet.ssrc).collect();
    numbers.dedup();
    assert_eq!((numbers[0], numbers.len()), (options.sender.ssrc, 2), "RFC 3550 §8.2: the second time it is a loop");
    let sequences = heard.packets.windows(2).all(|pair| pair[1].sequence == pair[0].sequence.wrapping_add(1));
    assert!(sequences, "the packets go on in their order");
    assert_eq!(farewells(&heard), numbers.iter().map(|number| vec![*number]).collect::<Vec<_>>());
}

#[test]
fn repetitions_take_another_number_where_somebody_has_theirs() {
    let format = small(Scan::Progressive);
    let resend = Resend::Retransmission { payload_type: REPETITIONS, ssrc: 77, first_sequence: 9 };
    let change = |options: &mut SendOptions| {
        options.sender = SenderConfig { resend, ..options.sender };
        options.rtcp.first_report = Duration::ZERO;
    };
    let (mut count, mut has_collided) = (0, false);
    let answer = |packet: &Packet| {
        count += 1;
        // The first repetition shows the number that somebody else has.
        if packet.ssrc == 77 && !std::mem::replace(&mut has_collided, true) {
            return Some(colliding(77));
        }
        let is_asked = packet.payload_type == 96 && count % 50 == 30;
        is_asked.then(|| {
            let mut datagram = Vec::new();
            let mut writer = CompoundWriter::new(&mut datagram);
            writer.receiver_report(5, &[]);
            writer.nack(5, packet.ssrc, &[NackEntry { first: packet.sequence as u16, following: 0 }]);
            datagram
        })
    };
    let (report, heard, options) = exchange(format, 40, ControlPort::Next, change, answer);
    let again = heard.packets.iter().filter(|packet| packet.payload_type == REPETITIONS);
    let mut again: Vec<u32> = again.map(|packet| packet.ssrc).collect();
    again.dedup();
    assert_eq!((again[0], again.len()), (77, 2), "{report:?}");
    let mut own = heard.packets.iter().filter(|packet| packet.payload_type == 96);
    assert!(own.all(|packet| packet.ssrc == options.sender.ssrc), "the stream itself keeps its number");
    assert_eq!(farewells(&heard), [vec![77], vec![options.sender.ssrc, again[1]]]);
}

#[test]
fn nobody_listening_does_not_disturb_a_sender() {
    // Connected to somebody else it refuses all others, and nobody takes its port meanwhile.
    let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    closed.connect("127.0.0.1:9").unwrap();
    let mut source = Numbered::new(small(Scan::Progressive), 5);
    let report =
        run_sender(&mut source, &options(closed.local_addr().unwrap()), &AtomicBool::new(false), |_| ()).unwrap();
    assert_eq!((report.sender.frames_sent + report.sender.frames_dropped, report.lost), (5, 0));
    assert!(report.sockets.asynchronous_errors > 0);
}

#[test]
fn a_slow_source_leaves_frame_times_empty_and_a_stop_ends_the_stream() {
    let socket = bind(ControlPort::Multiplexed);
    let mut source = Numbered::new(small(Scan::Progressive), u64::MAX);
    source.delay = Duration::from_millis(50);
    let stop = AtomicBool::new(false);
    let mut options = options(socket.media().local_address());
    options.duration = Duration::from_secs(60);
    let mut seconds = 0;
    let report = run_sender(&mut source, &options, &stop, |second| {
        seconds += 1;
        assert!(second.fps > 1.0 && second.fps < 30.0, "{second:?}");
        stop.store(true, Ordering::Relaxed);
    });
    let report = report.unwrap();
    assert!(seconds == 1 && report.sender.frames_missed > 10 && report.elapsed < Duration::from_secs(10), "{report:?}");
}

#[test]
fn limits_end_a_stream() {
    let socket = bind(ControlPort::Multiplexed);
    let mut options = options(socket.media().local_address());
    options.frames_max = 4;
    let mut source = Numbered::new(small(Scan::Progressive), u64::MAX);
    let report = run_sender(&mut source, &options, &AtomicBool::new(false), |_| ()).unwrap();
    assert_eq!(report.sender.frames_sent + report.sender.frames_dropped, 4);
    options.frames_max = u64::MAX;
    options.duration = Duration::from_millis(200);
    let report = run_sender(&mut source, &options, &AtomicBool::new(false), |_| ()).unwrap();
    assert!((1..=12).contains(&report.sender.frames_sent), "{report:?}");
}

#[test]
fn a_picture_that_does_not_fit_the_path_is_refused() {
    let socket = bind(ControlPort::Multiplexed);
    let mut options = options(socket.media().local_address());
    options.mtu = Some(50);
    let mut source = Numbered::new(small(Scan::Progressive), 1);
    let error = run_sender(&mut source, &options, &AtomicBool::new(false), |_| ()).unwrap_err();
    assert!(error.to_string().contains("hold no picture"), "{error}");
}

#[test]
fn a_repetition_fits_the_path_as_its_original_does() {
    let format = VideoFormat::new(PixelFormat::Yuv422Bits10, (1920, 1080), FrameRate::NTSC, Scan::Progressive).unwrap();
    let again = Resend::Retransmission { payload_type: REPETITIONS, ssrc: 9, first_sequence: 0 };
    for (mtu, room) in [(1500, 1472), (4000, 3972), (9000, 8972)] {
        for packing in [Packing::Equal, Packing::Blocks, Packing::Fill] {
            for resend in [Resend::Never, Resend::Same, again] {
                let mut options = options("192.0.2.1:5004".parse().unwrap());
                (options.mtu, options.packing, options.sender.resend) = (Some(mtu), packing, resend);
                let plan = options.plan(format).unwrap();
                let octets = usize::from(plan.datagram_octets_max()) + resend.added_octets();
                assert!(octets <= room, "{octets} octets at an MTU of {mtu}, {packing:?}, {resend:?}");
            }
        }
    }
}
