//! Both drivers, with a network between them that the tests spoil.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thalweg_transport::clock;
use thalweg_transport::stream::{StreamOptions, StreamReceiver, StreamScratch, StreamSocket};
use thalweg_video::format::{Scan, VideoFormat};
use thalweg_video::io::{
    ControlPort, Farewell, ReceiveError, ReceiveOptions, ReceiveReport, SendOptions, SendReport, run_receiver,
    run_sender,
};
use thalweg_video::receiver::{Concealment, ReceivedPicture, ReceiverConfig, Repair};
use thalweg_video::rtcp::{CompoundWriter, SDES_CNAME};
use thalweg_video::sender::{Resend, SenderConfig};
use thalweg_video::sink::{FrameSink, NullSink, SinkError};

use crate::listener::REPETITIONS;
use crate::sources::{Numbered, number_of, octet, small};

/// Checks each frame; complete ones must be the source's, in their order.
pub struct Checking {
    format: VideoFormat,
    complete: u64,
    concealed: u64,
    before: Option<u64>,
    delay: Duration,
}

impl Checking {
    pub fn new(format: VideoFormat) -> Checking {
        Checking { format, complete: 0, concealed: 0, before: None, delay: Duration::ZERO }
    }
}

impl FrameSink for Checking {
    fn take(&mut self, picture: &ReceivedPicture) -> Result<(), SinkError> {
        std::thread::sleep(self.delay);
        if !picture.is_complete() {
            self.concealed += 1;
            return Ok(());
        }
        let number = number_of(picture.octets[0]);
        let wrong = (0..self.format.frame_octets()).find(|place| picture.octets[*place] != octet(number, *place));
        assert_eq!(wrong, None, "frame {number}");
        assert!(self.before < Some(number), "frame {number} after {:?}", self.before);
        self.before = Some(number);
        self.complete += 1;
        Ok(())
    }
}

/// A free address of this host.
pub fn free() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap()
}

pub fn receive_options(format: VideoFormat, bind: SocketAddr) -> ReceiveOptions {
    // The machine may stall for longer than two frames of this rate.
    let config = ReceiverConfig { playout: 7 * format.frame_time(), ..ReceiverConfig::new(format) };
    let mut options = ReceiveOptions::new(bind, config).unwrap();
    options.control = ControlPort::Multiplexed;
    options.duration = Duration::from_secs(60);
    options.stream.receive_buffer_bytes = 16 << 20;
    options.rtcp.first_report = Duration::from_millis(20);
    options.rtcp.interval = Duration::from_millis(100);
    options
}

pub fn send_options(to: SocketAddr) -> SendOptions {
    let mut options = SendOptions::new(to).unwrap();
    options.control = ControlPort::Multiplexed;
    options.mtu = Some(1500);
    options.rtcp.first_report = Duration::from_millis(20);
    options.rtcp.interval = Duration::from_millis(100);
    options
}

/// Runs both ends until the sender leaves.
pub fn exchange(
    frames: u64,
    sink: &mut dyn FrameSink,
    receive: &ReceiveOptions,
    send: &SendOptions,
) -> (SendReport, ReceiveReport) {
    let stop = AtomicBool::new(false);
    let mut source = Numbered::new(receive.receiver.format, frames);
    std::thread::scope(|scope| {
        let received = scope.spawn(|| run_receiver(sink, receive, &stop, |_| ()).unwrap());
        std::thread::sleep(Duration::from_millis(50));
        let sent = run_sender(&mut source, send, &stop, |_| ()).unwrap();
        (sent, received.join().unwrap())
    })
}

/// A network on one port: what the first sender sends goes to `to`, but for packets that `loses` says; answers go back.
struct Relay {
    socket: StreamSocket,
    to: SocketAddr,
}

impl Relay {
    fn new(to: SocketAddr) -> Relay {
        let options = StreamOptions { receive_buffer_bytes: 16 << 20, ..StreamOptions::default() };
        Relay { socket: StreamSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap(), to }
    }

    fn address(&self) -> SocketAddr {
        self.socket.local_address()
    }

    /// Relays until `stop`; returns how many packets of the stream came, and how many of them were lost.
    fn run(&self, stop: &AtomicBool, mut loses: impl FnMut(u64) -> bool) -> (u64, u64) {
        let (mut sender, mut packets, mut lost) = (None, 0, 0);
        let (mut receiver, mut scratch) = (StreamReceiver::new(&[&self.socket]).unwrap(), StreamScratch::default());
        while !stop.load(Ordering::Relaxed) {
            receiver.wait_until(clock::now() + Duration::from_millis(5)).unwrap();
            while receiver.receive(0).unwrap() > 0 {
                while let Some(arrival) = receiver.next_arrival() {
                    let is_answer = arrival.source == self.to;
                    sender = if is_answer { sender } else { Some(arrival.source) };
                    let Some(to) = (if is_answer { sender } else { Some(self.to) }) else { continue };
                    let mut burst = self.socket.burst(&mut scratch, to);
                    for datagram in arrival.datagrams() {
                        let is_packet = !is_answer && datagram[1] & 0x7f == 96;
                        packets += u64::from(is_packet);
                        if is_packet && loses(packets) {
                            lost += 1;
                        } else {
                            burst.push([datagram]);
                        }
                    }
                    assert_eq!(burst.send(Duration::from_millis(100)).lost, 0);
                }
            }
        }
        (packets, lost)
    }
}

#[test]
fn every_frame_arrives_and_both_ends_agree() {
    for scan in [Scan::Progressive, Scan::Interlaced, Scan::SegmentedFrame] {
        let format = small(scan);
        let mut receive = receive_options(format, free());
        // Gathered by default, and here also one by one.
        receive.gathering = if scan == Scan::Interlaced { Duration::ZERO } else { receive.gathering };
        let mut sink = Checking::new(format);
        let (sent, received) = exchange(30, &mut sink, &receive, &send_options(receive.bind[0]));
        let (packets, frames) = (received.receiver.packets, received.receiver.frames);
        assert_eq!((packets.received, packets.lost), (sent.sender.packets_sent, 0), "{scan}");
        assert!(packets.are_consistent() && packets.received == packets.expected, "{packets:?}");
        assert_eq!((frames.complete, frames.concealed), (sent.sender.frames_sent, 0), "{frames:?}");
        assert_eq!(sink.complete, frames.complete - received.sink_missed);
        assert!(received.sockets.joined_messages > 0 && received.sockets.kernel_drops == 0);
        let peer = sent.peer.expect("the receiver reported");
        assert!(peer.lost == 0 && peer.round_trip.is_some() && received.times.round_trip.is_some(), "{peer:?}");
        assert_eq!(received.times.latency.count, frames.complete);
    }
}

/// Sends frames with repair through a relay that loses what `loses` says; returns the accounts of both ends, and how many packets came to the
/// relay and were lost there.
fn exchange_with_losses(
    frames: u64,
    loses: impl FnMut(u64) -> bool + Send,
) -> ((SendReport, ReceiveReport), (u64, u64)) {
    let format = small(Scan::Progressive);
    let mut receive = receive_options(format, free());
    receive.receiver.repair = Repair::by_retransmission(REPETITIONS);
    let relay = Relay::new(receive.bind[0]);
    let mut send = send_options(relay.address());
    let resend = Resend::Retransmission { payload_type: REPETITIONS, ssrc: 3, first_sequence: 0 };
    send.sender = SenderConfig { resend, ..send.sender };
    let (stop, mut sink) = (AtomicBool::new(false), Checking::new(format));
    std::thread::scope(|scope| {
        let relayed = scope.spawn(|| relay.run(&stop, loses));
        let both = exchange(frames, &mut sink, &receive, &send);
        stop.store(true, Ordering::Relaxed);
        (both, relayed.join().unwrap())
    })
}

#[test]
fn what_the_network_loses_comes_again() {
    let ((sent, received), (relayed, lost)) = exchange_with_losses(40, |packet| packet % 25 == 7);
    let packets = received.receiver.packets;
    assert_eq!(relayed, sent.sender.packets_sent, "the relay lost nothing by itself");
    assert!(packets.are_consistent() && packets.expected == relayed, "{packets:?}");
    assert_eq!((packets.received, packets.recovered + packets.lost), (relayed - lost, lost), "{packets:?}");
    assert!(packets.recovered * 10 > lost * 9, "{packets:?} {:?}", received.receiver.repair);
    assert!(sent.sender.packets_resent >= packets.recovered);
    assert!(received.receiver.frames.complete * 10 > sent.sender.frames_sent * 9, "{:?}", received.receiver.frames);
    assert!(sent.peer.unwrap().lost > 0, "reports tell what the network lost");
}

/// Behind them comes nothing that would show them to be missing.
#[test]
fn the_last_packets_of_a_stream_come_again() {
    // One of the first frame, and the last three of twenty with 160 each.
    let loses = |packet| packet == 50 || packet > 20 * 160 - 3;
    let ((sent, received), (relayed, lost)) = exchange_with_losses(20, loses);
    let (packets, frames) = (received.receiver.packets, received.receiver.frames);
    assert_eq!((packets.expected, packets.recovered, packets.lost), (relayed, lost, 0), "{packets:?}");
    assert_eq!((frames.complete, frames.concealed), (sent.sender.frames_sent, 0), "{frames:?}");
    // A machine that stalls makes a sender drop frames.
    assert_eq!(lost, if sent.sender.frames_sent == 20 { 4 } else { 1 });
}

#[test]
fn without_repair_what_is_lost_is_concealed() {
    let format = small(Scan::Progressive);
    let mut receive = receive_options(format, free());
    receive.receiver.concealment = Concealment::Interpolate;
    let relay = Relay::new(receive.bind[0]);
    let send = send_options(relay.address());
    let (stop, mut sink) = (AtomicBool::new(false), Checking::new(format));
    let packets_of_frame = 160;
    // In every third frame but the first.
    let loses = |packet: u64| packet % (3 * packets_of_frame) == 2 * packets_of_frame - 20;
    let ((sent, received), (_, lost)) = std::thread::scope(|scope| {
        let relayed = scope.spawn(|| relay.run(&stop, loses));
        let both = exchange(30, &mut sink, &receive, &send);
        stop.store(true, Ordering::Relaxed);
        (both, relayed.join().unwrap())
    });
    let frames = received.receiver.frames;
    assert_eq!((received.receiver.packets.lost, frames.concealed), (lost, lost), "{frames:?}");
    assert_eq!(frames.complete + frames.concealed, sent.sender.frames_sent);
    assert!(lost > 0 && sink.concealed + sink.complete + received.sink_missed == sent.sender.frames_sent);
}

#[test]
fn two_paths_that_lose_different_packets_lose_nothing_together() {
    let format = small(Scan::Progressive);
    let mut receive = receive_options(format, free());
    receive.bind.push(free());
    let relays = [Relay::new(receive.bind[0]), Relay::new(receive.bind[1])];
    let mut send = send_options(relays[0].address());
    send.to.push(relays[1].address());
    let (stop, mut sink) = (AtomicBool::new(false), Checking::new(format));
    let (sent, received) = std::thread::scope(|scope| {
        scope.spawn(|| relays[0].run(&stop, |packet| packet % 10 == 3));
        scope.spawn(|| relays[1].run(&stop, |packet| packet % 10 == 8));
        let both = exchange(20, &mut sink, &receive, &send);
        stop.store(true, Ordering::Relaxed);
        both
    });
    let packets = received.receiver.packets;
    assert_eq!((packets.lost, packets.received), (0, sent.sender.packets_sent), "{packets:?}");
    assert_eq!(received.receiver.frames.complete, sent.sender.frames_sent);
    assert_eq!(received.paths.len(), 2);
    assert!(received.paths.iter().all(|path| path.packets_received < packets.received && path.packets_received > 0));
}

#[test]
fn what_is_lost_comes_again_though_the_first_of_two_paths_is_cut() {
    let format = small(Scan::Progressive);
    let mut receive = receive_options(format, free());
    receive.bind.push(free());
    receive.receiver.repair = Repair::by_retransmission(REPETITIONS);
    let relays = [Relay::new(receive.bind[0]), Relay::new(receive.bind[1])];
    let mut send = send_options(relays[0].address());
    send.to.push(relays[1].address());
    let resend = Resend::Retransmission { payload_type: REPETITIONS, ssrc: 3, first_sequence: 0 };
    send.sender = SenderConfig { resend, ..send.sender };
    let [stop, cut] = [(); 2].map(|()| AtomicBool::new(false));
    let mut sink = Checking::new(format);
    let (received, lost) = std::thread::scope(|scope| {
        scope.spawn(|| relays[0].run(&cut, |_| false));
        let relayed = scope.spawn(|| relays[1].run(&stop, |packet| packet % 25 == 7));
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            cut.store(true, Ordering::Relaxed);
        });
        let (_, received) = exchange(60, &mut sink, &receive, &send);
        stop.store(true, Ordering::Relaxed);
        (received, relayed.join().unwrap().1)
    });
    let packets = received.receiver.packets;
    // The first path brought what the second one lost in the first quarter of a second.
    assert!(packets.are_consistent() && packets.recovered * 2 > lost, "{packets:?} of {lost}");
}

#[test]
fn a_slow_sink_loses_frames_and_no_packets() {
    let format = small(Scan::Progressive);
    let receive = receive_options(format, free());
    let mut sink = Checking { delay: Duration::from_millis(100), ..Checking::new(format) };
    let (sent, received) = exchange(30, &mut sink, &receive, &send_options(receive.bind[0]));
    assert_eq!(received.receiver.packets.received, sent.sender.packets_sent);
    assert!(received.sink_missed > 0, "{received:?}");
    assert_eq!(sink.complete + received.sink_missed, received.receiver.frames.complete);
}

/// Fails at its second frame.
struct Failing(u64);

impl FrameSink for Failing {
    fn take(&mut self, _: &ReceivedPicture) -> Result<(), SinkError> {
        self.0 += 1;
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        if self.0 == 2 { Err(SinkError::Write { path: "full".into(), source: full }) } else { Ok(()) }
    }
}

#[test]
fn a_sink_that_fails_ends_the_receiver() {
    let format = small(Scan::Progressive);
    let (receive, stop) = (receive_options(format, free()), AtomicBool::new(false));
    let send = send_options(receive.bind[0]);
    let mut source = Numbered::new(format, u64::MAX);
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| run_sender(&mut source, &send, &stop, |_| ()).unwrap());
        let begun = clock::now();
        let error = run_receiver(&mut Failing(0), &receive, &AtomicBool::new(false), |_| ()).unwrap_err();
        assert!(clock::now().since(begun) < receive.duration, "it does not go on");
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(error, ReceiveError::Sink(_)) && error.to_string().contains("cannot write full"), "{error}");
        sender.join().unwrap();
    });
}

#[test]
fn members_of_a_group_all_receive() {
    let format = small(Scan::Progressive);
    let group = SocketAddr::new("239.77.2.1".parse().unwrap(), free().port());
    let mut receive = receive_options(format, group);
    receive.group_interface = LOOPBACK;
    let mut send = send_options(group);
    send.stream.multicast_interface = Some(LOOPBACK);
    send.from = vec!["127.0.0.1:0".parse().unwrap()];
    let (mut first, mut second) = (Checking::new(format), Checking::new(format));
    let other = receive.clone();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| run_receiver(&mut second, &other, &AtomicBool::new(false), |_| ()).unwrap());
        let (sent, received) = exchange(15, &mut first, &receive, &send);
        let all = [received, other.join().unwrap()];
        assert_eq!(all.map(|received| received.receiver.frames.complete), [sent.sender.frames_sent; 2]);
    });
}

#[test]
fn each_path_is_heard_from_its_own_sources() {
    let format = small(Scan::Progressive);
    let group = |last: u8| SocketAddr::new([239, 77, 2, last].into(), free().port());
    let mut receive = receive_options(format, group(2));
    receive.bind.push(group(3));
    receive.group_interface = LOOPBACK;
    let sources: [IpAddr; 2] = [[127, 0, 0, 1].into(), [127, 0, 0, 2].into()];
    let mut send = send_options(receive.bind[0]);
    send.to.clone_from(&receive.bind);
    send.stream.multicast_interface = Some(LOOPBACK);
    send.from = sources.map(|source| SocketAddr::new(source, 0)).to_vec();
    for (second, share) in [(sources[1], 1), (sources[0], 0)] {
        receive.group_sources = vec![vec![[127, 0, 0, 9].into(), sources[0]], vec![second]];
        let (sent, received) = exchange(15, &mut Checking::new(format), &receive, &send);
        let packets = received.paths.iter().map(|path| path.packets_received).collect::<Vec<u64>>();
        assert_eq!(packets, [sent.sender.packets_sent, share * sent.sender.packets_sent]);
    }
}

#[test]
fn a_sender_that_falls_silent_has_left_without_a_farewell() {
    let format = small(Scan::Progressive);
    for (farewell, seconds) in [(Farewell::End, 20), (Farewell::Continue, 3)] {
        let mut receive = receive_options(format, free());
        (receive.farewell, receive.duration) = (farewell, Duration::from_secs(seconds));
        receive.rtcp.peer_timeout = Duration::from_millis(500);
        let relay = Relay::new(receive.bind[0]);
        let send = send_options(relay.address());
        let stop = AtomicBool::new(false);
        let (_, received) = std::thread::scope(|scope| {
            scope.spawn(|| relay.run(&stop, |_| false));
            scope.spawn(|| {
                // The network is gone before the stream ends.
                std::thread::sleep(Duration::from_millis(600));
                stop.store(true, Ordering::Relaxed);
            });
            exchange(60, &mut Checking::new(format), &receive, &send)
        });
        assert!(received.receiver.frames.complete > 5, "{received:?}");
        let stays = received.elapsed > Duration::from_millis(2500);
        assert!(
            stays == (farewell == Farewell::Continue) && received.elapsed < Duration::from_secs(10),
            "{received:?}"
        );
    }
}

#[test]
fn limits_and_a_stop_end_a_receiver() {
    let format = small(Scan::Progressive);
    let mut receive = receive_options(format, free());
    receive.duration = Duration::from_millis(100);
    let report = run_receiver(&mut NullSink, &receive, &AtomicBool::new(false), |_| ()).unwrap();
    assert_eq!((report.receiver.packets.expected, report.elapsed), (0, Duration::ZERO));
    receive.duration = Duration::MAX;
    let stop = AtomicBool::new(false);
    let mut seconds = 0;
    run_receiver(&mut NullSink, &receive, &stop, |_| {
        seconds += 1;
        stop.store(true, Ordering::Relaxed);
    })
    .unwrap();
    assert_eq!(seconds, 1);
    receive.frames_max = 5;
    let (_, report) = exchange(30, &mut NullSink, &receive, &send_options(receive.bind[0]));
    assert!(report.receiver.frames.complete >= 5 && report.elapsed < Duration::from_secs(20), "{report:?}");
}

#[test]
fn a_receiver_that_ends_before_its_sender_has_lost_nothing_and_reports_it() {
    let format = small(Scan::Progressive);
    let mut receive = receive_options(format, free());
    // Its last report is the only one.
    receive.rtcp.first_report = Duration::from_secs(60);
    receive.duration = Duration::from_millis(700);
    let mut sink = Checking::new(format);
    let (sent, received) = exchange(60, &mut sink, &receive, &send_options(receive.bind[0]));
    let (packets, frames) = (received.receiver.packets, received.receiver.frames);
    assert!(frames.complete > 5 && frames.complete < sent.sender.frames_sent, "{frames:?}");
    // Only a machine that stalls makes packets late.
    assert!((frames.concealed, sink.concealed) == (0, 0) || packets.late > 0, "{frames:?} {packets:?}");
    assert_eq!(frames.expected(), frames.complete + frames.concealed, "a frame on its way is none of its own");
    assert_eq!(packets.lost, 0, "{packets:?}");
    assert_eq!(sent.peer.map(|peer| (peer.ssrc, peer.lost)), Some((receive.ssrc, 0)));
}

#[test]
fn a_farewell_that_somebody_else_says_does_not_end_a_receiver() {
    let format = small(Scan::Progressive);
    let receive = receive_options(format, free());
    let mut send = send_options(receive.bind[0]);
    // Whoever reports first speaks for a number.
    send.rtcp.first_report = Duration::from_secs(60);
    let (mut sink, to) = (Checking::new(format), receive.bind[0]);
    let mut farewell = Vec::new();
    let mut writer = CompoundWriter::new(&mut farewell);
    writer.receiver_report(send.sender.ssrc, &[]);
    writer.description(send.sender.ssrc, &[(SDES_CNAME, "another")]);
    writer.bye(&[send.sender.ssrc], "");
    let (sent, received) = std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(350));
            UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&farewell, to).unwrap();
        });
        exchange(60, &mut sink, &receive, &send)
    });
    let packets = received.receiver.packets;
    assert_eq!((packets.received, packets.lost), (sent.sender.packets_sent, 0), "{packets:?}");
    assert!(received.elapsed < Duration::from_secs(20), "the sender's own farewell ends it");
}

#[test]
fn names_of_both_ends_differ() {
    let ssrcs: BTreeSet<u32> = (0..4).map(|_| receive_options(small(Scan::Progressive), free()).ssrc).collect();
    assert_eq!(ssrcs.len(), 4);
}

/// The index of the loopback interface in every network namespace.
const LOOPBACK: u32 = 1;
