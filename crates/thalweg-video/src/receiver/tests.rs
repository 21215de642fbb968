mod forged;
mod numbers;
mod stop;
mod succession;

use super::*;
use crate::format::{FrameRate, PixelFormat, Scan, VideoFormat};
use crate::rfc4175::{Continuation, LINE_HEADER_OCTETS, LineHeader};

const FRAME: u32 = 3003;

/// How a sender writes fields: the dialects that exist.
#[derive(Clone, Copy, Debug)]
struct Dialect {
    /// Lines are counted in the frame (GStreamer 1.22) and not in the field.
    counts_in_frame: bool,
    /// The time stamp of the second field beyond the first one's: 0 (FFmpeg 5.1, segmented frames), 1501 or 1502.
    second_field: u32,
    /// Pieces in a packet.
    pieces: usize,
    /// GStreamer and FFmpeg send 0 in the upper half of the number.
    extends: bool,
}

const ST_2110: Dialect = Dialect { counts_in_frame: false, second_field: 1501, pieces: 1, extends: true };
const GSTREAMER: Dialect = Dialect { counts_in_frame: true, second_field: 1502, pieces: 2, extends: false };
const FFMPEG: Dialect = Dialect { counts_in_frame: false, second_field: 0, pieces: 4, extends: false };

/// A sender of small frames: 8 pixels wide, in packets of whole lines.
struct Peer {
    dialect: Dialect,
    format: VideoFormat,
    ssrc: u32,
    sequence: u32,
    timestamp: u32,
}

impl Peer {
    fn new(dialect: Dialect, scan: Scan) -> Peer {
        let format = VideoFormat::new(PixelFormat::Yuv422Bits8, (8, 48), FrameRate::NTSC, scan).unwrap();
        Peer { dialect, format, ssrc: 1, sequence: 0x1_fff0, timestamp: u32::MAX - 5000 }
    }

    fn receiver(&self, adjust: impl Fn(&mut ReceiverConfig)) -> VideoReceiver {
        let mut config = ReceiverConfig::new(self.format);
        adjust(&mut config);
        VideoReceiver::new(config).unwrap()
    }

    /// The packets of a frame whose pixels are `value` and the number of their line.
    fn frame(&mut self, value: u8) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        let fields: &[Field] =
            if self.format.scan() == Scan::Progressive { &[Field::First] } else { &[Field::First, Field::Second] };
        for field in fields {
            let timestamp = self.timestamp.wrapping_add(u32::from(field.bit()) * self.dialect.second_field);
            let lines: Vec<u16> = (0..self.format.field_height()).collect();
            for lines in lines.chunks(self.dialect.pieces) {
                out.push(self.packet(timestamp, *field, lines, value));
            }
        }
        self.timestamp = self.timestamp.wrapping_add(FRAME);
        out
    }

    fn packet(&mut self, timestamp: u32, field: Field, lines: &[u16], value: u8) -> Vec<u8> {
        let header =
            RtpHeader { marker: false, payload_type: 96, sequence: self.sequence as u16, timestamp, ssrc: self.ssrc };
        let mut out = header.to_octets().to_vec();
        out.extend(if self.dialect.extends { (self.sequence >> 16) as u16 } else { 0 }.to_be_bytes());
        for (index, line) in lines.iter().enumerate() {
            let number = if self.dialect.counts_in_frame { self.format.frame_line(field, *line) } else { *line };
            let continues = if index + 1 < lines.len() { Continuation::More } else { Continuation::Last };
            let mut octets = [0; LINE_HEADER_OCTETS];
            LineHeader { length: 16, field, line: number, offset: 0 }.write(continues, &mut octets);
            out.extend(octets);
        }
        lines.iter().for_each(|line| out.extend(pixels(value, self.format.frame_line(field, *line))));
        self.sequence = self.sequence.wrapping_add(1);
        out
    }
}

/// The octets of a line.
fn pixels(value: u8, line: u16) -> [u8; 16] {
    let mut octets = [value; 16];
    octets[1] = line as u8;
    octets
}

fn whole(value: u8) -> Vec<u8> {
    (0..48).flat_map(|line| pixels(value, line)).collect()
}

fn at(frame: u64) -> Instant {
    Instant::from_nanos(1 << 40) + FrameRate::NTSC.time_of(frame)
}

/// Gives the packets of the frame that is sent at frame time `index`, and takes what is due by then.
fn exchange(receiver: &mut VideoReceiver, index: u64, packets: &[Vec<u8>]) -> Vec<ReceivedPicture> {
    for packet in packets {
        receiver.handle_datagram(at(index), packet);
    }
    std::iter::from_fn(|| receiver.poll_frame(at(index))).collect()
}

#[test]
fn every_dialect_of_fields_is_read() {
    let single = Dialect { pieces: 1, ..GSTREAMER };
    for dialect in [ST_2110, GSTREAMER, single, FFMPEG, Dialect { second_field: 1501, ..GSTREAMER }] {
        for scan in [Scan::Progressive, Scan::Interlaced, Scan::SegmentedFrame] {
            let mut peer = Peer::new(dialect, scan);
            let mut receiver = peer.receiver(|_| {});
            let mut pictures = Vec::new();
            for index in 0..10 {
                let frame = peer.frame(index as u8);
                pictures.extend(exchange(&mut receiver, index, &frame));
            }
            let counters = receiver.counters();
            // Without a packet in which one line follows another, numbers of lines in the frame mean nothing before the second half of
            // the first field.
            let is_told = !dialect.counts_in_frame || dialect.pieces > 1;
            let unknown = u64::from(!is_told && scan != Scan::Progressive);
            assert_eq!(counters.frames.before_start, unknown, "{dialect:?} {scan}");
            assert_eq!((counters.packets.late, counters.packets.lost, counters.frames.concealed), (0, 0, 0));
            assert_eq!(pictures.len() as u64, 8 - unknown, "two frame times later");
            for (index, picture) in (unknown as u8..).zip(&pictures) {
                assert_eq!(picture.octets[..], whole(index), "{dialect:?} {scan}");
            }
        }
    }
}

#[test]
fn fields_join_their_frame_when_the_first_one_is_lost() {
    for dialect in [ST_2110, GSTREAMER, FFMPEG] {
        let mut peer = Peer::new(dialect, Scan::Interlaced);
        let mut receiver = peer.receiver(|_| {});
        let mut pictures = Vec::new();
        for index in 0..12 {
            let mut frame = peer.frame(index as u8);
            if index % 3 == 2 {
                frame.drain(..frame.len() / 2);
            }
            pictures.extend(exchange(&mut receiver, index, &frame));
        }
        let first = pictures[0].octets[0];
        for (value, picture) in (first..).zip(&pictures) {
            let half = if value % 3 == 2 { value - 1 } else { value };
            let mut expect = whole(value);
            (0..24).for_each(|line| expect[line * 32..line * 32 + 16].copy_from_slice(&pixels(half, 2 * line as u16)));
            assert_eq!(picture.octets[..], expect, "{dialect:?}");
            assert_eq!(picture.concealed_lines.count(), if value % 3 == 2 { 24 } else { 0 });
        }
        assert_eq!(receiver.counters().frames.lost + receiver.counters().frames.skipped, 0);
    }
}

#[test]
fn a_stream_that_begins_with_a_second_field_begins_with_the_frame_after_it() {
    for dialect in [ST_2110, GSTREAMER, FFMPEG] {
        for scan in [Scan::Interlaced, Scan::SegmentedFrame] {
            let mut peer = Peer::new(dialect, scan);
            let mut receiver = peer.receiver(|_| {});
            let mut pictures = Vec::new();
            for index in 0..8 {
                let mut frame = peer.frame(index as u8);
                if index == 0 {
                    frame.drain(..frame.len() / 2);
                }
                pictures.extend(exchange(&mut receiver, index, &frame));
            }
            receiver.finish();
            pictures.extend(std::iter::from_fn(|| receiver.poll_frame(at(8))));
            let ReceiverCounters { frames, packets, .. } = receiver.counters();
            assert_eq!((frames.before_start, frames.complete, frames.expected()), (1, 7, 8), "{dialect:?} {scan}");
            assert_eq!(packets.unplaced, (24 / dialect.pieces) as u64);
            assert!(packets.are_consistent() && packets.received == packets.expected, "{packets:?}");
            assert!((1..).zip(&pictures).all(|(value, picture)| picture.octets[..] == whole(value)), "{dialect:?}");
        }
    }
}

#[test]
fn a_second_field_that_overtakes_its_first_one_is_no_frame_of_its_own() {
    for dialect in [ST_2110, FFMPEG] {
        let mut peer = Peer::new(dialect, Scan::Interlaced);
        let mut receiver = peer.receiver(|_| {});
        let frame = peer.frame(0);
        // One packet of the second field comes before all others, and is lost to the frame.
        receiver.handle_datagram(at(0), &frame[frame.len() - 2]);
        for index in 0..4 {
            let packets = if index == 0 { frame.clone() } else { peer.frame(index as u8) };
            exchange(&mut receiver, index, &packets);
        }
        receiver.finish();
        while receiver.poll_frame(at(4)).is_some() {}
        let frames = receiver.counters().frames;
        assert_eq!((frames.before_start, frames.complete, frames.expected()), (1, 3, 4), "{dialect:?}: {frames:?}");
    }
}

#[test]
fn any_order_within_a_frame_and_the_one_before_is_put_right() {
    let mut peer = Peer::new(ST_2110, Scan::Interlaced);
    let mut receiver = peer.receiver(|_| {});
    let mut rng = thalweg_base::rng::Rng::new(1);
    // The first frame tells how lines are counted.
    let mut shown = exchange(&mut receiver, 0, &peer.frame(0)).len() as u8;
    let mut held: Vec<Vec<u8>> = Vec::new();
    for index in 1..30 {
        let frame = peer.frame(index as u8);
        let mut frame: Vec<_> = rng.order(frame.len()).into_iter().map(|place| frame[place].clone()).collect();
        // A third comes among the packets of the next frame.
        let late = frame.split_off(frame.len() * 2 / 3);
        frame.append(&mut held);
        held = late;
        let packets: Vec<_> = rng.order(frame.len()).into_iter().map(|place| frame[place].clone()).collect();
        for picture in exchange(&mut receiver, index, &packets) {
            assert!(picture.is_complete() && picture.octets[..] == whole(shown));
            shown += 1;
        }
    }
    assert_eq!(shown, 28);
    assert!(receiver.counters().packets.reordered > 100);
}

#[test]
fn pieces_outside_the_picture_are_refused_and_touch_nothing() {
    let mut peer = Peer::new(ST_2110, Scan::Progressive);
    let mut receiver = peer.receiver(|_| {});
    let good = peer.packet(5, Field::First, &[0, 1], 7);
    assert!(matches!(receiver.handle_datagram(at(0), &good), PacketArrival::Placed(_)));
    let change = |offset: usize, octets: [u8; 2]| {
        let mut bad = good.clone();
        bad[3] += 1;
        bad[offset..offset + 2].copy_from_slice(&octets);
        bad
    };
    // The second header: length, field and line, offset.
    let outside = [(20, [0, 15]), (22, [0, 48]), (22, [0x80, 1]), (24, [0, 1]), (24, [0, 2])];
    for (offset, octets) in outside {
        assert_eq!(
            receiver.handle_datagram(at(0), &change(offset, octets)),
            PacketArrival::Refused,
            "{offset} {octets:?}"
        );
    }
    assert_eq!(receiver.handle_datagram(at(0), &change(20, [0, 32])), PacketArrival::Refused, "beyond its end");
    assert_eq!(receiver.handle_datagram(at(0), &change(8, [9, 9])), PacketArrival::Refused, "another source");
    assert_eq!(receiver.handle_datagram(at(0), &good[..11]), PacketArrival::Refused);
    assert_eq!(receiver.counters().refused, RefusalCounters { malformed: 2, foreign: 1, outside: 5 });
    assert_eq!(receiver.counters().packets.expected, 1, "what is refused is not counted");
}

#[test]
fn another_sender_is_taken_after_a_silence_of_one_second() {
    let mut peer = Peer::new(ST_2110, Scan::Progressive);
    let mut receiver = peer.receiver(|_| {});
    let mut values = Vec::new();
    for index in 0..5 {
        values.extend(exchange(&mut receiver, index, &peer.frame(index as u8)).iter().map(|picture| picture.octets[0]));
    }
    assert_eq!(receiver.source_packets(), (5 * 48, 5 * 48));
    (peer.ssrc, peer.sequence, peer.timestamp) = (2, 77, 1_000_000);
    assert!(exchange(&mut receiver, 6, &peer.frame(100)).iter().all(|picture| picture.octets[0] < 100));
    assert_eq!(receiver.counters().refused.foreign, 48);
    for index in 50..56 {
        values.extend(exchange(&mut receiver, index, &peer.frame(index as u8)).iter().map(|picture| picture.octets[0]));
    }
    assert_eq!(values, [0, 1, 2, 50, 51, 52, 53]);
    let counters = receiver.counters();
    assert_eq!((receiver.ssrc(), counters.packets.expected, counters.packets.lost), (Some(2), 11 * 48, 0));
    assert!(counters.packets.are_consistent());
    assert_eq!(receiver.source_packets(), (6 * 48, 6 * 48), "reports tell of the new sender alone");
    let mut fixed = peer.receiver(|config| config.ssrc = Some(1));
    assert!(peer.frame(1).iter().all(|packet| fixed.handle_datagram(at(99), packet) == PacketArrival::Refused));
}

#[test]
fn a_jump_of_the_senders_clock_is_followed_and_a_single_one_is_not() {
    let mut peer = Peer::new(ST_2110, Scan::Progressive);
    let mut receiver = peer.receiver(|_| {});
    for index in 0..5 {
        exchange(&mut receiver, index, &peer.frame(index as u8));
    }
    let regular = peer.timestamp;
    let forged = peer.packet(regular.wrapping_add(1 << 30), Field::First, &[0], 99);
    assert_eq!(receiver.handle_datagram(at(5), &forged), PacketArrival::Unplaced);
    let shown: Vec<u8> = (5..8)
        .flat_map(|index| exchange(&mut receiver, index, &peer.frame(index as u8)))
        .map(|picture| picture.octets[0])
        .collect();
    assert_eq!(shown, [3, 4, 5], "nothing is disturbed");
    peer.timestamp = regular.wrapping_add(1 << 31);
    let mut shown = Vec::new();
    for index in 8..14 {
        shown.extend(exchange(&mut receiver, index, &peer.frame(index as u8)).iter().map(|picture| picture.octets[0]));
    }
    assert_eq!(shown, [9, 10, 11], "the first frame after the jump is incomplete");
    assert!(receiver.counters().frames.discarded >= 1);
}

#[test]
fn a_forged_time_does_not_move_the_playout() {
    let mut peer = Peer::new(ST_2110, Scan::Progressive);
    let mut receiver = peer.receiver(|_| {});
    for index in 0..4 {
        exchange(&mut receiver, index, &peer.frame(index as u8));
    }
    // Half a second ahead: near enough to be believed, too few packets to be a frame.
    let ahead = peer.timestamp.wrapping_add(45_000);
    let forged = peer.packet(ahead, Field::First, &[0], 99);
    receiver.handle_datagram(at(4), &forged);
    for index in 4..10 {
        let shown = exchange(&mut receiver, index, &peer.frame(index as u8));
        assert_eq!(shown.iter().map(|picture| picture.octets[0]).collect::<Vec<_>>(), [index as u8 - 2]);
    }
}

#[test]
fn a_frame_whose_numbers_are_not_believed_counts_no_losses() {
    let mut peer = Peer::new(ST_2110, Scan::Progressive);
    let mut receiver = peer.receiver(|_| {});
    for index in 0..3 {
        exchange(&mut receiver, index, &peer.frame(index as u8));
    }
    // Two frames are skipped, and the only packet of the next one has a number from nowhere.
    let (timestamp, sequence) = (peer.timestamp.wrapping_add(2 * FRAME), peer.sequence);
    peer.sequence = sequence + 30_000;
    let strange = peer.packet(timestamp, Field::First, &[0], 5);
    assert!(matches!(receiver.handle_datagram(at(5), &strange), PacketArrival::Placed(_)));
    (peer.sequence, peer.timestamp) = (sequence, timestamp.wrapping_add(FRAME));
    for index in 6..10 {
        exchange(&mut receiver, index, &peer.frame(index as u8));
    }
    receiver.finish();
    let counters = receiver.counters();
    assert_eq!((counters.frames.skipped, counters.frames.lost, counters.packets.implausible), (2, 0, 1));
}

#[test]
fn what_nobody_fetches_is_bounded() {
    let mut peer = Peer::new(ST_2110, Scan::Progressive);
    let mut receiver = peer.receiver(|_| {});
    for index in 0..20 {
        for packet in peer.frame(index) {
            receiver.handle_datagram(at(index.into()), &packet);
        }
    }
    let shown: Vec<u8> = std::iter::from_fn(|| receiver.poll_frame(at(40))).map(|picture| picture.octets[0]).collect();
    assert_eq!(shown, [15, 16, 17, 18, 19], "two that are ready and three slots");
    assert_eq!(receiver.counters().frames.discarded, 15);
    assert_eq!(receiver.counters().frames.expected(), 20);
}

#[test]
fn memory_is_used_again_once_the_user_lets_go() {
    let mut peer = Peer::new(ST_2110, Scan::Progressive);
    let mut receiver = peer.receiver(|_| {});
    let mut places = std::collections::BTreeSet::new();
    for index in 0..50 {
        let shown = exchange(&mut receiver, index, &peer.frame(index as u8));
        places.extend(shown.iter().map(|picture| picture.octets.as_ptr().addr()));
    }
    assert!(places.len() <= 5, "three slots, the frame before and one that is given out: {}", places.len());
    // A user that keeps everything keeps it unchanged.
    let kept: Vec<ReceivedPicture> =
        (50..80).flat_map(|index| exchange(&mut receiver, index, &peer.frame(index as u8))).collect();
    assert!((48..).zip(&kept).all(|(value, picture)| picture.octets[..] == whole(value)));
}

#[test]
fn arrivals_tell_where_they_belong() {
    // By time stamp: that of the frame, or one of each field.
    for (second_field, lines) in [(0, 48), (1501, 24)] {
        let mut peer = Peer::new(Dialect { second_field, ..ST_2110 }, Scan::Interlaced);
        let mut receiver = peer.receiver(|_| {});
        let frame = peer.frame(1);
        let places: Vec<usize> = frame
            .iter()
            .map(|packet| match receiver.handle_datagram(at(0), packet) {
                PacketArrival::Placed(place) => place.octets_before,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(places, (0..48).map(|line| 16 * (line % lines)).collect::<Vec<_>>(), "in the order of sending");
        assert_eq!(receiver.handle_datagram(at(0), &frame[3]), PacketArrival::Duplicate);
        exchange(&mut receiver, 3, &[]);
        let late = peer.packet(peer.timestamp.wrapping_sub(FRAME), Field::First, &[0], 5);
        assert_eq!(receiver.handle_datagram(at(3), &late), PacketArrival::Late);
        assert_eq!(receiver.counters().packets.late, 1);
    }
}

#[test]
fn drift_is_told_in_millionths_and_in_seconds_a_frame() {
    let mut peer = Peer::new(ST_2110, Scan::Progressive);
    let mut receiver = peer.receiver(|_| {});
    assert_eq!(receiver.drift_ppm(), None);
    for index in 0..900 {
        // The sender's clock is slow by 100 ppm.
        let now = at(index) + at(index).since(at(0)) / 10_000;
        for packet in peer.frame(0) {
            receiver.handle_datagram(now, &packet);
        }
        while receiver.poll_frame(now).is_some() {}
    }
    let drift = receiver.drift_ppm().unwrap();
    assert!((drift - 100.0).abs() < 1.0, "{drift}");
    let seconds = receiver.seconds_per_slipped_frame().unwrap();
    assert!((seconds - 333.7).abs() < 4.0, "{seconds}");
}

#[test]
fn two_paths_have_time_to_differ_before_anything_is_asked_for() {
    let micros = Duration::from_micros;
    let window = |reorder_window, playout| {
        let told = Repair::Nack { reorder_window, retransmission: Some(97) };
        match told.on_two_paths(playout) {
            Repair::Nack { reorder_window, retransmission: Some(97) } => reorder_window,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(window(Repair::REORDER_WINDOW, micros(66_000)), Repair::PATH_WINDOW);
    assert_eq!(window(micros(30_000), micros(66_000)), micros(30_000), "longer than that");
    assert_eq!(window(Repair::REORDER_WINDOW, micros(8000)), micros(4000), "and never too late to be asked for");
    assert_eq!(Repair::Off.on_two_paths(micros(66_000)), Repair::Off);
}

#[test]
fn numbers_outside_their_ranges_are_refused() {
    let peer = Peer::new(ST_2110, Scan::Progressive);
    let refused = |adjust: fn(&mut ReceiverConfig)| {
        let mut config = ReceiverConfig::new(peer.format);
        adjust(&mut config);
        VideoReceiver::new(config).unwrap_err().to_string()
    };
    assert!(refused(|config| config.payload_type = Some(128)).contains("payload type 128 is above 127"));
    assert!(refused(|config| config.repair = Repair::by_retransmission(200)).contains("payload type 200"));
    let same = refused(|config| (config.payload_type, config.repair) = (Some(96), Repair::by_retransmission(96)));
    assert_eq!(same, "packets and their repetitions need payload types that differ");
    for playout in [Duration::from_millis(16), Duration::from_millis(268)] {
        let mut config = ReceiverConfig::new(peer.format);
        config.playout = playout;
        let told = VideoReceiver::new(config).unwrap_err().to_string();
        assert!(told.contains("is not between half a frame time and eight"), "{told}");
    }
}
