//! The drivers of both ends allocate nothing for a packet: all their threads, sockets and reports to each other included. What they
//! tell each second is apart, since it costs as much at any rate; runs are shorter.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use thalweg_testing::allocations::{Counting, of_all_threads};
use thalweg_video::audio::{AudioFormat, AudioReceiverConfig, PacketTime};
use thalweg_video::format::{FrameRate, PixelFormat, Scan, VideoFormat};
use thalweg_video::io::{
    ControlPort, PictureTimes, ReceiveOptions, SendOptions, SendReport, SoundReceiveOptions, SoundSendOptions,
    StreamStart, run_receiver, run_sender, run_sound_receiver, run_sound_sender,
};
use thalweg_video::receiver::{ReceiverConfig, Repair};
use thalweg_video::rtcp::RtcpConfig;
use thalweg_video::sdp::AudioEncoding;
use thalweg_video::sender::{Batching, Resend};
use thalweg_video::sink::NullSink;
use thalweg_video::source::{Filled, FrameSource, SoundSource, SourceError};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Held by the test that counts.
static ALONE: Mutex<()> = Mutex::new(());

/// Attempts of each comparison: a machine that stalls costs buffers that others have not given back, and repairs.
const ATTEMPTS: usize = 3;
/// Frames of a short run, a quarter of a second; packets and batches of each are many more than its allocations may be.
const FRAMES: u64 = 50;
const FRAME_TIME: Duration = Duration::from_millis(5);
const FRAME_PACKETS_MIN: u64 = 40;
/// Packets of sound in a frame time, and samples of each channel in one.
const SOUND_PACKETS: u64 = 40;
const PACKET_SAMPLES: usize = 6;

/// What a run did, and what it allocated.
#[derive(Clone, Copy, Debug)]
struct RunCost {
    frames: u64,
    packets: u64,
    allocations: u64,
}

impl RunCost {
    /// That of a run that tells its frames and packets.
    fn of(run: impl FnOnce() -> (u64, u64)) -> RunCost {
        let before = of_all_threads();
        let (frames, packets) = run();
        RunCost { frames, packets, allocations: of_all_threads() - before }
    }
}

/// Compares a run with one that is twice as long: what that allocates in addition is at most `allowed` for each frame, of which each has
/// many packets. A run is told how many times as long it is.
#[track_caller]
fn check(allowed: u64, mut run: impl FnMut(u64) -> (u64, u64)) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut costs = Vec::new();
    for _ in 0..ATTEMPTS {
        let [short, long] = [1, 2].map(|times| RunCost::of(|| run(times)));
        let frames = long.frames.saturating_sub(short.frames);
        let is_whole = frames > 0 && long.packets.saturating_sub(short.packets) >= FRAME_PACKETS_MIN * frames;
        if is_whole && long.allocations.saturating_sub(short.allocations) <= allowed * frames {
            return;
        }
        costs.push([short, long]);
    }
    panic!("more than {allowed} allocations a frame: {costs:?}");
}

fn free() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A picture of 67 packets a frame.
fn picture() -> VideoFormat {
    let rate = FrameRate::new(200, 1).unwrap();
    VideoFormat::new(PixelFormat::Yuv422Bits10, (320, 120), rate, Scan::Progressive).unwrap()
}

/// So many frames, each of one octet.
struct PlainSource {
    left: u64,
}

impl FrameSource for PlainSource {
    fn format(&self) -> VideoFormat {
        picture()
    }

    fn fill(&mut self, frame: &mut [u8]) -> Result<Filled, SourceError> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(Filled::End) };
        self.left = left;
        frame.fill(left as u8);
        Ok(Filled::Frame)
    }
}

/// Two channels of nothing, so many samples of each.
struct SilentSource {
    left: usize,
}

impl SoundSource for SilentSource {
    fn channels(&self) -> u8 {
        2
    }

    fn fill(&mut self, frames: usize, samples: &mut Vec<i32>) -> Result<usize, SourceError> {
        let frames = frames.min(self.left);
        self.left -= frames;
        samples.resize(samples.len() + 2 * frames, 0);
        Ok(frames)
    }
}

/// One report of each end, soon after the beginning.
fn report_once(config: &mut RtcpConfig) {
    (config.first_report, config.interval) = (Duration::from_millis(20), Duration::from_secs(10));
}

fn picture_options() -> (SendOptions, ReceiveOptions) {
    let (format, mux) = (picture(), ControlPort::Multiplexed);
    let repair = Repair::by_retransmission(97);
    let config = ReceiverConfig { playout: 7 * FRAME_TIME, repair, ..ReceiverConfig::new(format) };
    let mut receive = ReceiveOptions::new(free(), config).unwrap();
    (receive.control, receive.duration) = (mux, Duration::from_secs(30));
    let mut send = SendOptions::new(receive.bind[0]).unwrap();
    (send.control, send.mtu) = (mux, Some(1500));
    send.sender.batching = Batching::Packets(8);
    send.sender.resend = Resend::Retransmission { payload_type: 97, ssrc: 3, first_sequence: 0 };
    report_once(&mut receive.rtcp);
    report_once(&mut send.rtcp);
    (send, receive)
}

fn sound_options() -> (SoundSendOptions, SoundReceiveOptions) {
    let format = AudioFormat::new(AudioEncoding::L24, 2, PacketTime::EighthMillisecond).unwrap();
    let config = AudioReceiverConfig { delay: Duration::from_millis(50), ..AudioReceiverConfig::new(format, 98) };
    let mut hear = SoundReceiveOptions::new(free(), config).unwrap();
    let mut sound = SoundSendOptions::new(hear.bind[0], format, 98).unwrap();
    (hear.control, sound.control) = (ControlPort::Multiplexed, ControlPort::Multiplexed);
    report_once(&mut hear.rtcp);
    report_once(&mut sound.rtcp);
    (sound, hear)
}

/// Sends so many frames from one driver to the other.
fn stream_picture(send: &SendOptions, receive: &ReceiveOptions, frames: u64) -> SendReport {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| run_receiver(&mut NullSink, receive, &stop, |_| ()).unwrap());
        std::thread::sleep(Duration::from_millis(50));
        let sent = run_sender(&mut PlainSource { left: frames }, send, &stop, |_| ()).unwrap();
        let received = receiving.join().unwrap().receiver;
        assert!(received.packets.received * 2 > sent.sender.packets_sent, "{received:?}");
        sent
    })
}

#[test]
fn a_picture_costs_no_allocation_a_packet() {
    check(2, |times| {
        let (send, receive) = picture_options();
        let sent = stream_picture(&send, &receive, times * FRAMES).sender;
        (sent.frames_sent, sent.packets_sent)
    });
}

#[test]
fn sound_costs_no_allocation_a_packet() {
    check(1, |times| {
        let (mut sound, mut hear) = sound_options();
        // Packets are kept for half a second, in memory that is used again behind it.
        sound.sender.resend = Resend::Retransmission { payload_type: 99, ssrc: 4, first_sequence: 0 };
        hear.receiver.repair = Repair::by_retransmission(99);
        let packets = times * 3 * FRAMES * SOUND_PACKETS;
        let mut source = SilentSource { left: packets as usize * PACKET_SAMPLES };
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let hearing = scope.spawn(|| run_sound_receiver(&mut NullSink, &hear, &stop).unwrap());
            std::thread::sleep(Duration::from_millis(50));
            let sent = run_sound_sender(&mut source, &sound, &stop).unwrap();
            let heard = hearing.join().unwrap();
            assert_eq!(sent.packets + sent.packets_dropped, packets);
            assert!(heard.counters.packets * 2 > packets, "{heard:?}");
            (packets / SOUND_PACKETS, packets)
        })
    });
}

#[test]
fn a_picture_with_its_sound_costs_no_allocation_a_packet() {
    check(6, |times| {
        let (mut send, mut receive) = picture_options();
        let (mut sound, mut hear) = sound_options();
        let (start, shown) = (StreamStart::default(), PictureTimes::default());
        (send.start, sound.start) = (Some(start.clone()), Some(start));
        (receive.picture, hear.picture) = (Some(shown.clone()), Some(shown));
        sound.rtcp.cname.clone_from(&send.rtcp.cname);
        // Reports of a sender tell times once it has sent something.
        send.rtcp.interval = Duration::from_millis(100);
        sound.rtcp.interval = Duration::from_millis(100);
        let [is_sent, is_received] = [(); 2].map(|()| AtomicBool::new(false));
        std::thread::scope(|scope| {
            let hearing = scope.spawn(|| run_sound_receiver(&mut NullSink, &hear, &is_received).unwrap());
            let sounding = scope.spawn(|| {
                let mut endless = SilentSource { left: usize::MAX };
                run_sound_sender(&mut endless, &sound, &is_sent).unwrap()
            });
            let sent = stream_picture(&send, &receive, times * FRAMES).sender;
            is_sent.store(true, Ordering::Relaxed);
            let sounded = sounding.join().unwrap();
            is_received.store(true, Ordering::Relaxed);
            let heard = hearing.join().unwrap();
            assert!(heard.behind_picture_millis.is_some(), "the sound follows the picture: {heard:?}");
            (sent.frames_sent, sent.packets_sent + sounded.packets)
        })
    });
}

#[test]
#[should_panic(expected = "more than 2 allocations a frame")]
fn an_allocation_a_packet_is_found() {
    check(2, |times| {
        let (frames, packets) = (times * FRAMES, times * FRAMES * FRAME_PACKETS_MIN);
        let kept: Vec<Vec<u64>> = (0..packets).map(|packet| vec![packet]).collect();
        (frames, kept.len() as u64)
    });
}
