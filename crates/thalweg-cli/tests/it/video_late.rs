//! A `video send` or `video recv` that the host stops for a while: what leaves and what is shown when it goes on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_transport::clock;
use thalweg_transport::stream::{StreamOptions, StreamReceiver, StreamSocket};

use crate::program::{PATIENCE, Running, command};
use crate::video::{address, figure, json, receiver};

/// Batches that may follow each other at once after a delay, as the sender's pacer has it.
const CATCH_UP_BATCHES: f64 = 4.0;
/// The least time of a packet in that of a frame: four fifths of its regular one, which is 96 % of the frame time in all.
const FASTEST: f64 = 0.96 * 4.0 / 5.0;
/// Five frames a second, in ticks of their time stamps.
const FRAME_TIME: Duration = Duration::from_millis(200);
const FRAME_TICKS: u32 = 18_000;
/// How long an end is stopped each time: three frame times and a half.
const STOP: Duration = Duration::from_millis(700);
/// How long it runs before each stop, so that each comes at another time of a frame.
const RUNS: [Duration; 3] = [Duration::from_millis(430), Duration::from_millis(560), Duration::from_millis(620)];

/// A packet of the picture.
struct Packet {
    /// By the kernel's clock: this process may be late itself.
    arrived: Instant,
    sequence: u32,
    timestamp: u32,
    is_last: bool,
}

impl Packet {
    /// The packet in a datagram of RTP (RFC 3550 §5.1, RFC 4175 §4.1); `None` for RTCP.
    fn parse(arrived: Instant, datagram: &[u8]) -> Option<Packet> {
        let half = |at: usize| u32::from(datagram[at]) << 8 | u32::from(datagram[at + 1]);
        (datagram[1] & 0x7f == 96).then(|| Packet {
            arrived,
            sequence: half(12) << 16 | half(2),
            timestamp: half(4) << 16 | half(6),
            is_last: datagram[1] & 0x80 != 0,
        })
    }
}

/// Packets of the picture in the order of their arrival, until `stop`; `has_begun` tells of the first.
fn hear(socket: &StreamSocket, has_begun: &AtomicBool, stop: &AtomicBool) -> Vec<Packet> {
    let (mut receiver, mut packets) = (StreamReceiver::new(&[socket]).expect("a receiver"), Vec::new());
    let end = clock::now() + 2 * PATIENCE;
    while !stop.load(Ordering::Relaxed) && clock::now() < end {
        receiver.wait_until(clock::now() + Duration::from_millis(5)).expect("a wait");
        while receiver.receive(0).expect("a socket") > 0 {
            while let Some(arrival) = receiver.next_arrival() {
                packets.extend(arrival.datagrams().filter_map(|datagram| Packet::parse(arrival.arrived, datagram)));
            }
            has_begun.store(!packets.is_empty(), Ordering::Relaxed);
        }
    }
    packets
}

/// By how many packets the stream was ahead of one that leaves a packet each `packet_time`, at most.
fn burst(packets: &[Packet], packet_time: f64) -> f64 {
    let (mut ahead, mut most, mut before) = (0.0, 0.0, packets[0].arrived);
    for packet in packets {
        ahead = f64::max(ahead - packet.arrived.since(before).as_secs_f64() / packet_time, 0.0) + 1.0;
        (most, before) = (f64::max(most, ahead), packet.arrived);
    }
    most
}

#[test]
fn a_sender_that_was_stopped_drops_whole_frames_and_never_bursts() {
    let socket = StreamSocket::bind("127.0.0.1:0".parse().expect("an address"), &StreamOptions::default());
    let socket = socket.expect("a socket");
    let address = socket.local_address().to_string();
    let picture = ["--size", "320x180", "--rate", "5", "--frames", "16", "--mtu", "1500"];
    // Each packet by itself, so that each has its own time.
    let way = ["--batching", "1", "--repair", "off", "--rtcp", "mux", "--json"];
    let options = [&["video", "send", "--to", &address], &picture[..], &way].concat();
    let [has_begun, is_over] = [(); 2].map(|()| AtomicBool::new(false));
    let (said, packets) = std::thread::scope(|scope| {
        let hearing = scope.spawn(|| hear(&socket, &has_begun, &is_over));
        let sender = Running::start(command(&options));
        let end = clock::now() + PATIENCE;
        while !has_begun.load(Ordering::Relaxed) && clock::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        for run in RUNS {
            std::thread::sleep(run);
            sender.signal("STOP");
            std::thread::sleep(STOP);
            sender.signal("CONT");
        }
        let said = sender.finish();
        std::thread::sleep(Duration::from_millis(20));
        is_over.store(true, Ordering::Relaxed);
        (said, hearing.join().expect("no panic"))
    });
    // Frames that were dropped are a failure.
    let said = said.expect_code(1);
    let sent = json(&said);
    assert!(said.stderr.contains("frames were dropped because this host was late"), "{}", said.stderr);
    let [frames, dropped, missed] =
        ["frames_sent", "frames_dropped", "frames_missed"].map(|name| sent[name].as_u64().expect("a count"));
    check_whole_frames(&packets, frames, dropped + missed);
    assert_eq!(frames + dropped, 16, "each frame of the source was sent or dropped: {sent}");
    assert!(dropped >= 2, "the frame that waited during a stop: {sent}");
    assert_eq!(figure(&sent, "packets_sent"), packets.len() as f64);
    let packet_time = FRAME_TIME.as_secs_f64() * FASTEST / (packets.len() as f64 / frames as f64);
    // The kernel may stop a sender between its look at the clock and the packets that were due then: those come with the next ones.
    let bound = 2.0 * CATCH_UP_BATCHES + 0.5;
    let burst = burst(&packets, packet_time);
    assert!(burst <= bound, "{burst} packets ahead, {bound} at most; a frame has {}", packets.len() as u64 / frames);
}

/// Each frame time has a whole frame or nothing, and `absent` have nothing.
#[track_caller]
fn check_whole_frames(packets: &[Packet], frames: u64, absent: u64) {
    let first = &packets[0];
    let mut by_frame: BTreeMap<u32, Vec<&Packet>> = BTreeMap::new();
    for (number, packet) in (0..).zip(packets) {
        assert_eq!(packet.sequence, first.sequence.wrapping_add(number), "no number is left out");
        by_frame.entry(packet.timestamp.wrapping_sub(first.timestamp)).or_default().push(packet);
    }
    assert_eq!(by_frame.len() as u64, frames);
    let frame_packets = packets.len() / by_frame.len();
    for (since, packets) in &by_frame {
        assert_eq!((since % FRAME_TICKS, packets.len()), (0, frame_packets), "a part of a frame");
        let ends: Vec<bool> = packets.iter().map(|packet| packet.is_last).collect();
        assert_eq!(ends.iter().position(|is_last| *is_last), Some(frame_packets - 1), "its end comes last");
    }
    let span = by_frame.keys().next_back().expect("frames came") / FRAME_TICKS + 1;
    assert_eq!(u64::from(span) - frames, absent, "frame times without a frame");
    // The frame that was being sent ends late, and the times that passed meanwhile stay empty.
    assert!(absent >= 3 * RUNS.len() as u64, "{absent} frame times without a frame");
}

#[test]
fn a_receiver_that_was_stopped_reads_what_came_before_it_shows_what_is_due() {
    let address = address();
    // Two of these frames are more than a receiver reads at once, and four of them fit an unprivileged receive buffer.
    let picture = ["--size", "192x108", "--rate", "5", "--repair", "off", "--json"];
    let receiver = receiver(&address, &[&["--bind", &address], &picture[..]].concat());
    let way = ["--frames", "20", "--mtu", "1500", "--batching", "1"];
    let sender = Running::start(command(&[&["video", "send", "--to", &address], &picture[..], &way].concat()));
    for run in RUNS {
        std::thread::sleep(run);
        receiver.signal("STOP");
        std::thread::sleep(STOP);
        receiver.signal("CONT");
    }
    sender.finish().expect_code(0);
    let said = json(&receiver.finish());
    assert_eq!((figure(&said, "packets_lost"), figure(&said, "frames_concealed")), (0.0, 0.0), "{said}");
    assert_eq!(figure(&said, "frames_complete"), 20.0, "{said}");
    assert!(figure(&said, "presented_late_max_us") > 100_000.0, "it was not stopped when a frame was due: {said}");
}
