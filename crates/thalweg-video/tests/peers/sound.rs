//! Our ends of a stream of sound.

use std::net::UdpSocket;
use std::thread::JoinHandle;
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_transport::clock;
use thalweg_video::audio::{
    AudioFormat, AudioReceiver, AudioReceiverConfig, AudioSender, AudioSenderConfig, PacketTime,
};
use thalweg_video::io::{MediaOptions, MediaReceiver, MediaSocket, Protocol};
use thalweg_video::sdp::{AudioEncoding, MediaDescription, SessionDescription};
use thalweg_video::sender::Resend;

use crate::stream::{description_of, local};

/// Samples of each channel of half a second.
pub const FRAMES: usize = 24_000;
/// The payload type of sound.
pub const PAYLOAD_TYPE: u8 = 97;

pub fn format(channels: u8, packet_time: PacketTime) -> AudioFormat {
    AudioFormat::new(AudioEncoding::L24, channels, packet_time).expect("a form of audio")
}

/// Half a second in which neighbouring samples and channels differ in every octet; the channels in turn.
pub fn samples(channels: u8) -> Vec<i32> {
    let mixed = |place: usize| (place as u32 + 1).wrapping_mul(0x9e37_79b1) as i32 >> 8;
    (0..FRAMES * usize::from(channels)).map(mixed).collect()
}

/// Samples as a file of 24 bits, the most significant octet first.
pub fn octets(samples: &[i32]) -> Vec<u8> {
    samples.iter().flat_map(|sample| sample.to_be_bytes().into_iter().skip(1)).collect()
}

/// The description of such sound at a port of this host.
pub fn description(format: AudioFormat, port: u16) -> SessionDescription {
    description_of(MediaDescription::Audio(format.to_description()), PAYLOAD_TYPE, port)
}

/// Sends samples to a port of this host at their times.
pub fn send(format: AudioFormat, samples: &[i32], port: u16) {
    let socket = UdpSocket::bind(local(0)).expect("a socket");
    let config = AudioSenderConfig {
        format,
        payload_type: PAYLOAD_TYPE,
        ssrc: 0x5041,
        sequence: 65_500,
        timestamp: u32::MAX - 960,
        resend: Resend::Never,
    };
    let mut sender = AudioSender::new(clock::now(), config);
    assert_eq!(sender.handle_samples(clock::now(), samples), samples.len());
    let mut datagram = Vec::new();
    while sender.poll_timeout() < Instant::NEVER {
        std::thread::sleep(sender.poll_timeout().since(clock::now()));
        while sender.poll_packet(clock::now(), &mut datagram) {
            socket.send_to(&datagram, local(port)).expect("the peer listens");
            datagram.clear();
        }
    }
    assert_eq!(sender.packets_dropped(), 0, "the machine is too busy for sound");
}

/// Receives as many samples of each channel as [`samples`] has, on a thread of its own.
pub fn receive(format: AudioFormat, port: u16) -> JoinHandle<Vec<i32>> {
    let paths = [MediaSocket::bind(local(port), &MediaOptions::default()).expect("the port is free")];
    std::thread::spawn(move || {
        // The processors may serve others for a while.
        let config =
            AudioReceiverConfig { delay: Duration::from_millis(800), ..AudioReceiverConfig::new(format, PAYLOAD_TYPE) };
        let (mut socket, mut receiver) = (MediaReceiver::new(&paths).expect("a receiver"), AudioReceiver::new(config));
        let (mut played, mut block) = (Vec::new(), Vec::new());
        let end = clock::now() + Duration::from_secs(30);
        let is_whole = |played: &Vec<i32>| played.len() >= FRAMES * format.channels();
        while !is_whole(&played) && clock::now() < end {
            socket.wait_until(receiver.poll_timeout().min(end)).expect("a wait");
            socket.receive(|arrival| {
                for (_, datagram) in arrival.datagrams().filter(|(protocol, _)| *protocol == Protocol::Media) {
                    let taken = receiver.handle_datagram(arrival.message.arrived, datagram);
                    taken.expect("a packet of sound");
                }
            });
            // A busy machine plays late what was there in time.
            while !is_whole(&played) && receiver.poll_timeout() <= clock::now() {
                let told = receiver.poll_block(receiver.poll_timeout(), &mut block).expect("a block is due");
                assert_eq!(told.concealed, 0, "{:?}", receiver.counters());
                played.append(&mut block);
            }
        }
        played
    })
}

/// The samples of a file as [`octets`] makes it.
pub fn read(octets: &[u8]) -> Vec<i32> {
    octets.chunks_exact(3).map(|sample| i32::from_be_bytes([sample[0], sample[1], sample[2], 0]) >> 8).collect()
}

/// Fails unless what came is what was sent, with the channels in one order all the time; returns the order.
#[track_caller]
pub fn check(found: &[i32], sent: &[i32], channels: u8) -> Vec<usize> {
    let channels = usize::from(channels);
    assert_eq!(found.len(), sent.len(), "samples");
    let place = |sample| sent[..channels].iter().position(|own| own == sample).expect("a sample of the first set");
    let order: Vec<usize> = found[..channels].iter().map(place).collect();
    let sets = found.chunks_exact(channels).zip(sent.chunks_exact(channels));
    let wrong = sets.into_iter().position(|(found, sent)| !order.iter().map(|channel| &sent[*channel]).eq(found));
    assert_eq!(wrong, None, "the first set of samples that differs, in the order {order:?}");
    order
}
