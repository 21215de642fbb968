//! Sound beside a picture, by the drivers of both ends.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thalweg_video::audio::{AudioFormat, AudioReceiverConfig, PacketTime};
use thalweg_video::format::Scan;
use thalweg_video::io::{
    ControlPort, Farewell, PathRoom, PictureTimes, ReceiveOptions, SendOptions, SoundReceiveOptions,
    SoundReceiveReport, SoundReceiver, SoundSendOptions, SoundSendReport, SoundSender, StreamStart, run_receiver,
    run_sender, run_sound_receiver, run_sound_sender,
};
use thalweg_video::receiver::{ReceiverConfig, Repair};
use thalweg_video::rtcp::{CompoundWriter, SDES_CNAME};
use thalweg_video::rtp::RtpHeader;
use thalweg_video::sdp::AudioEncoding;
use thalweg_video::sender::Resend;
use thalweg_video::sink::{NullSink, ToneSink, ToneSummary};
use thalweg_video::source::ToneSource;

use crate::sources::{Numbered, small};

fn free() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A picture of so many frames with its sound: what both ends of the sound found.
fn stream(channels: u8, packet_time: PacketTime, frames: u64) -> (SoundSendReport, SoundReceiveReport, ToneSummary) {
    let picture = small(Scan::Progressive);
    let format = AudioFormat::new(AudioEncoding::L24, channels, packet_time).unwrap();
    let (mux, first_report) = (ControlPort::Multiplexed, Duration::from_millis(20));
    let playout = 7 * picture.frame_time();
    let mut receive = ReceiveOptions::new(free(), ReceiverConfig { playout, ..ReceiverConfig::new(picture) }).unwrap();
    let times = PictureTimes::default();
    (receive.control, receive.picture, receive.rtcp.first_report) = (mux, Some(times.clone()), first_report);
    let config = AudioReceiverConfig { delay: Duration::from_millis(100), ..AudioReceiverConfig::new(format, 98) };
    let mut hear = SoundReceiveOptions::new(free(), config).unwrap();
    (hear.control, hear.picture, hear.rtcp.first_report) = (mux, Some(times), first_report);
    let mut send = SendOptions::new(receive.bind[0]).unwrap();
    let start = StreamStart::default();
    (send.control, send.mtu, send.rtcp.first_report) = (mux, Some(1500), first_report);
    send.start = Some(start.clone());
    let mut sound = SoundSendOptions::new(hear.bind[0], format, 98).unwrap();
    (sound.control, sound.rtcp.first_report) = (mux, first_report);
    sound.rtcp.cname.clone_from(&send.rtcp.cname);
    sound.start = Some(start);
    let [stop, is_sent, is_received] = [(); 3].map(|()| AtomicBool::new(false));
    let mut sink = ToneSink::new(format);
    let (sent, heard) = std::thread::scope(|scope| {
        let hearing = scope.spawn(|| run_sound_receiver(&mut sink, &hear, &is_received).unwrap());
        let seeing = scope.spawn(|| run_receiver(&mut NullSink, &receive, &stop, |_| ()).unwrap());
        std::thread::sleep(Duration::from_millis(100));
        let sounding = scope.spawn(|| run_sound_sender(&mut ToneSource::new(channels), &sound, &is_sent).unwrap());
        run_sender(&mut Numbered::new(picture, frames), &send, &stop, |_| ()).unwrap();
        is_sent.store(true, Ordering::Relaxed);
        seeing.join().unwrap();
        is_received.store(true, Ordering::Relaxed);
        (sounding.join().unwrap(), hearing.join().unwrap())
    });
    (sent, heard, sink.summary())
}

#[test]
fn sound_is_proved_sample_by_sample_and_played_with_its_picture() {
    for (channels, packet_time) in [(2, PacketTime::Millisecond), (8, PacketTime::EighthMillisecond)] {
        let (sent, heard, tone) = stream(channels, packet_time, 60);
        let received = heard.stream.expect("packets came");
        assert_eq!(received.expected, sent.packets + sent.packets_dropped, "{heard:?}");
        assert_eq!((received.received, sent.lost), (sent.packets, 0), "loopback loses nothing");
        let counters = heard.counters;
        assert_eq!(
            counters.frames_placed + counters.frames_concealed,
            counters.frames_played + counters.frames_skipped + heard.frames_waiting,
            "{counters:?}"
        );
        assert!(tone.wrong == 0 && tone.proved > 24_000, "{tone:?} {counters:?}");
        let behind = heard.behind_picture_millis.expect("reports of both came");
        assert!(behind.abs() < 20.0 && heard.steps > 0, "{behind} ms behind, {} steps", heard.steps);
    }
}

/// How sound of these tests is heard at a free port.
fn hear_options(format: AudioFormat) -> SoundReceiveOptions {
    let mut hear = SoundReceiveOptions::new(free(), AudioReceiverConfig::new(format, 98)).unwrap();
    (hear.control, hear.rtcp.first_report) = (ControlPort::Multiplexed, Duration::from_millis(20));
    hear
}

/// Sends the tone for a while.
fn sound(to: SocketAddr, format: AudioFormat) -> SoundSendReport {
    let mut send = SoundSendOptions::new(to, format, 98).unwrap();
    (send.control, send.rtcp.first_report) = (ControlPort::Multiplexed, Duration::from_millis(20));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| run_sound_sender(&mut ToneSource::new(2), &send, &stop).unwrap());
        std::thread::sleep(Duration::from_millis(300));
        stop.store(true, Ordering::Relaxed);
        sending.join().unwrap()
    })
}

#[test]
fn another_sender_of_sound_is_heard_where_a_farewell_is_not_the_end() {
    let format = AudioFormat::new(AudioEncoding::L24, 2, PacketTime::Millisecond).unwrap();
    for farewell in [Farewell::Continue, Farewell::End] {
        let mut hear = hear_options(format);
        hear.farewell = farewell;
        let stop = AtomicBool::new(false);
        let (sent, heard) = std::thread::scope(|scope| {
            let hearing = scope.spawn(|| run_sound_receiver(&mut NullSink, &hear, &stop).unwrap());
            std::thread::sleep(Duration::from_millis(100));
            let first = sound(hear.bind[0], format);
            // Longer than packets are on their way, and shorter than the silence behind which another one is taken.
            std::thread::sleep(Duration::from_millis(400));
            let second = sound(hear.bind[0], format);
            std::thread::sleep(Duration::from_millis(100));
            stop.store(true, Ordering::Relaxed);
            ([first.packets, second.packets], hearing.join().unwrap())
        });
        let (count, starts) = if farewell == Farewell::Continue { (2, 2) } else { (1, 1) };
        let received = heard.stream.expect("packets came").received;
        assert_eq!((received, heard.counters.starts), (sent[..count].iter().sum(), starts), "{farewell:?}: {heard:?}");
    }
}

#[test]
fn a_farewell_that_somebody_else_says_does_not_end_sound() {
    let format = AudioFormat::new(AudioEncoding::L24, 2, PacketTime::Millisecond).unwrap();
    let hear = hear_options(format);
    let mut send = SoundSendOptions::new(hear.bind[0], format, 98).unwrap();
    // Whoever reports first speaks for a number.
    (send.control, send.rtcp.first_report) = (ControlPort::Multiplexed, Duration::from_secs(60));
    let mut farewell = Vec::new();
    let mut writer = CompoundWriter::new(&mut farewell);
    writer.receiver_report(send.sender.ssrc, &[]);
    writer.description(send.sender.ssrc, &[(SDES_CNAME, "another")]);
    writer.bye(&[send.sender.ssrc], "");
    let [is_sent, is_over] = [(); 2].map(|()| AtomicBool::new(false));
    let (sent, heard) = std::thread::scope(|scope| {
        let hearing = scope.spawn(|| run_sound_receiver(&mut NullSink, &hear, &is_over).unwrap());
        std::thread::sleep(Duration::from_millis(100));
        let sending = scope.spawn(|| run_sound_sender(&mut ToneSource::new(2), &send, &is_sent).unwrap());
        std::thread::sleep(Duration::from_millis(200));
        UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&farewell, hear.bind[0]).unwrap();
        std::thread::sleep(Duration::from_millis(500));
        is_sent.store(true, Ordering::Relaxed);
        let sent = sending.join().unwrap();
        std::thread::sleep(Duration::from_millis(200));
        is_over.store(true, Ordering::Relaxed);
        (sent, hearing.join().unwrap())
    });
    let received = heard.stream.expect("packets came").received;
    assert_eq!((received, heard.counters.starts), (sent.packets, 1), "{heard:?}");
}

#[test]
fn reports_go_to_the_sender_of_the_sound_and_not_to_who_sends_something_else() {
    let format = AudioFormat::new(AudioEncoding::L24, 2, PacketTime::Millisecond).unwrap();
    let mut hear = hear_options(format);
    // A second path, on which the sound does not come.
    hear.bind.push(free());
    let receiver = SoundReceiver::open(&hear).unwrap();
    let [sender, stranger] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let packet = |payload_type| {
        let header = RtpHeader { marker: false, payload_type, sequence: 1, timestamp: 2, ssrc: 3 };
        [&header.to_octets()[..], &[0; 48 * 6]].concat()
    };
    sender.send_to(&packet(98), hear.bind[0]).unwrap();
    let stop = AtomicBool::new(false);
    let heard = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            stranger.send_to(&packet(50), hear.bind[1]).unwrap();
            std::thread::sleep(Duration::from_millis(100));
            stop.store(true, Ordering::Relaxed);
        });
        receiver.run(&mut NullSink, &stop).unwrap()
    });
    assert_eq!((heard.counters.packets, heard.counters.packets_foreign), (1, 1));
    // The last report is a farewell by every path on which somebody is known.
    let mut buffer = [0; 2048];
    [&sender, &stranger].iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
    assert!(sender.recv(&mut buffer).is_ok());
    assert!(stranger.recv(&mut buffer).is_err(), "it is asked for nothing");
}

#[test]
fn sound_alone_ends_with_a_sender_that_falls_silent() {
    let format = AudioFormat::new(AudioEncoding::L24, 2, PacketTime::Millisecond).unwrap();
    for (is_alone, ends) in [(true, true), (false, false)] {
        let mut hear = hear_options(format);
        hear.rtcp.peer_timeout = Duration::from_millis(300);
        hear.picture = (!is_alone).then(PictureTimes::default);
        let stop = AtomicBool::new(false);
        let has_ended = std::thread::scope(|scope| {
            let hearing = scope.spawn(|| run_sound_receiver(&mut NullSink, &hear, &stop).unwrap());
            std::thread::sleep(Duration::from_millis(100));
            let header = RtpHeader { marker: false, payload_type: 98, sequence: 1, timestamp: 2, ssrc: 3 };
            let packet = [&header.to_octets()[..], &[0; 48 * 6]].concat();
            UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&packet, hear.bind[0]).unwrap();
            std::thread::sleep(Duration::from_millis(1500));
            let has_ended = hearing.is_finished();
            stop.store(true, Ordering::Relaxed);
            assert_eq!(hearing.join().unwrap().counters.packets, 1);
            has_ended
        });
        assert_eq!(has_ended, ends, "alone: {is_alone}");
    }
}

/// Relays between a sender and the receiver at `receiver` until `stop`, and loses each twentieth packet of sound; returns how many.
fn lose_some(socket: &UdpSocket, receiver: SocketAddr, stop: &AtomicBool) -> u64 {
    let (mut sender, mut packets, mut lost) = (None, 0_u64, 0);
    let mut buffer = [0; 2048];
    while !stop.load(Ordering::Relaxed) {
        let Ok((octets, from)) = socket.recv_from(&mut buffer) else { continue };
        let is_answer = from == receiver;
        sender = if is_answer { sender } else { Some(from) };
        let is_packet = !is_answer && buffer[1] & 0x7f == 98;
        packets += u64::from(is_packet);
        if is_packet && packets % 20 == 7 {
            lost += 1;
            continue;
        }
        if let Some(to) = if is_answer { sender } else { Some(receiver) } {
            // Either end may have gone.
            let _ = socket.send_to(&buffer[..octets], to);
        }
    }
    lost
}

#[test]
fn what_the_network_loses_of_sound_comes_again() {
    let format = AudioFormat::new(AudioEncoding::L24, 2, PacketTime::Millisecond).unwrap();
    let relay = UdpSocket::bind("127.0.0.1:0").unwrap();
    relay.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let mut hear = hear_options(format);
    // A machine that stalls answers late.
    (hear.receiver.delay, hear.receiver.repair) = (Duration::from_secs(1), Repair::by_retransmission(99));
    let mut send = SoundSendOptions::new(relay.local_addr().unwrap(), format, 98).unwrap();
    (send.control, send.rtcp.first_report) = (ControlPort::Multiplexed, Duration::from_millis(20));
    send.sender.resend = REPEATED;
    let [stop, is_sent] = [(); 2].map(|()| AtomicBool::new(false));
    let mut sink = ToneSink::new(format);
    let (sent, heard, lost) = std::thread::scope(|scope| {
        let losing = scope.spawn(|| lose_some(&relay, hear.bind[0], &stop));
        let hearing = scope.spawn(|| run_sound_receiver(&mut sink, &hear, &AtomicBool::new(false)).unwrap());
        std::thread::sleep(Duration::from_millis(100));
        let sending = scope.spawn(|| run_sound_sender(&mut ToneSource::new(2), &send, &is_sent).unwrap());
        std::thread::sleep(Duration::from_millis(1500));
        is_sent.store(true, Ordering::Relaxed);
        let (sent, heard) = (sending.join().unwrap(), hearing.join().unwrap());
        stop.store(true, Ordering::Relaxed);
        (sent, heard, losing.join().unwrap())
    });
    let stream = heard.stream.expect("packets came");
    // Nobody misses the last one, and the last ones cannot come again.
    let missed = stream.expected - stream.received - sent.packets_dropped;
    assert!(lost > 30 && (lost - 1..=lost).contains(&missed), "{lost} lost: {heard:?}");
    assert!(heard.packets_recovered + 3 >= lost && heard.packets_recovered <= lost, "{lost} lost: {heard:?}");
    assert!(sent.packets_resent >= heard.packets_recovered, "{sent:?}");
    assert!(heard.requests.requests >= heard.packets_recovered && heard.requests.repetitions > 0, "{heard:?}");
    assert_eq!(sink.summary().wrong, 0, "{:?}", sink.summary());
}

#[test]
fn sound_that_does_not_fit_its_path_is_refused_before_it_begins() {
    let format = AudioFormat::new(AudioEncoding::L24, 8, PacketTime::Millisecond).unwrap();
    let mut send = SoundSendOptions::new(free(), format, 98).unwrap();
    let loopback = PathRoom { mtu: 65_535, payload: 65_507 };
    assert_eq!((send.datagram_octets(), send.room().unwrap()), (1164, loopback), "the path itself tells its room");
    for (mtu, resend, is_fitting) in
        [(1192, Resend::Never, true), (1191, Resend::Never, false), (1193, REPEATED, false)]
    {
        (send.mtu, send.sender.resend) = (Some(mtu), resend);
        match SoundSender::open(&send) {
            Ok(_) => assert!(is_fitting, "{mtu}, {resend:?}"),
            Err(error) => {
                let expect = format!("an MTU of {mtu} has room for {}", mtu - 28);
                assert!(!is_fitting && error.to_string().contains(&expect), "{error}");
            }
        }
    }
}

/// As a stream of repetitions is sent.
const REPEATED: Resend = Resend::Retransmission { payload_type: 99, ssrc: 3, first_sequence: 0 };
