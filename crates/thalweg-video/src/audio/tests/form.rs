use std::time::Duration;

use thalweg_base::time::Instant;

use crate::audio::*;
use crate::rtcp::{NtpTime, WallClock};
use crate::rtp::RtpPacket;
use crate::sdp::AudioEncoding;
use crate::sender::Resend;

fn at(micros: u64) -> Instant {
    Instant::from_nanos(1_000_000_000 + micros * 1000)
}

fn sender(encoding: AudioEncoding, channels: u8, packet_time: PacketTime) -> AudioSender {
    let format = AudioFormat::new(encoding, channels, packet_time).unwrap();
    AudioSender::new(
        at(0),
        AudioSenderConfig {
            format,
            payload_type: 97,
            ssrc: 7,
            sequence: 65_535,
            timestamp: u32::MAX - 47,
            resend: Resend::Never,
        },
    )
}

#[test]
fn a_description_leads_to_the_form_and_back() {
    for encoding in [AudioEncoding::L16, AudioEncoding::L24] {
        for packet_time in [PacketTime::Millisecond, PacketTime::EighthMillisecond] {
            for channels in 1..=CHANNELS_MAX {
                let format = AudioFormat::new(encoding, channels, packet_time).unwrap();
                assert_eq!(AudioFormat::from_description(&format.to_description()), Ok(format));
            }
        }
    }
    let format = AudioFormat::new(AudioEncoding::L24, 2, PacketTime::EighthMillisecond).unwrap();
    let mut described = format.to_description();
    described.packet_time = Some(Duration::from_micros(120));
    assert_eq!(AudioFormat::from_description(&described), Ok(format), "descriptions round to 0.12 ms");
    described.packet_time = None;
    assert_eq!(AudioFormat::from_description(&described).unwrap().packet_time(), PacketTime::Millisecond);
    described.packet_time = Some(Duration::from_millis(20));
    let refusal = AudioFormat::from_description(&described).unwrap_err();
    assert_eq!(refusal.to_string(), "audio packets of 20ms instead of 1 ms or 125 µs");
    described.rate_hz = 44_100;
    assert_eq!(AudioFormat::from_description(&described), Err(AudioRefusal::Rate(44_100)));
    assert_eq!(AudioFormat::new(AudioEncoding::L16, 0, PacketTime::Millisecond), Err(AudioRefusal::Channels(0)));
    assert_eq!(AudioFormat::new(AudioEncoding::L16, 9, PacketTime::Millisecond), Err(AudioRefusal::Channels(9)));
}

#[test]
fn packets_hold_samples_with_the_most_significant_octet_first() {
    let payload = |encoding, samples: [i32; 6]| {
        let mut sender = sender(encoding, 1, PacketTime::EighthMillisecond);
        assert_eq!(sender.handle_samples(at(0), &samples), 6);
        let mut out = Vec::new();
        assert!(sender.poll_packet(at(125), &mut out));
        out.split_off(12)
    };
    let samples = [0, 1, -1, 0x12_3456, 1 << 30, i32::MIN];
    assert_eq!(
        payload(AudioEncoding::L24, samples),
        b"\x00\x00\x00\x00\x00\x01\xff\xff\xff\x12\x34\x56\x7f\xff\xff\x80\x00\x00"
    );
    assert_eq!(payload(AudioEncoding::L16, samples), b"\x00\x00\x00\x00\xff\xff\x12\x34\x7f\xff\x80\x00");
}

#[test]
fn a_packet_is_sent_once_its_last_sample_was_taken() {
    let mut sender = sender(AudioEncoding::L24, 2, PacketTime::Millisecond);
    let mut out = Vec::new();
    assert_eq!(sender.poll_timeout(), Instant::NEVER);
    assert_eq!(sender.handle_samples(at(0), &[5; 95]), 94, "whole pairs");
    assert_eq!(sender.poll_timeout(), Instant::NEVER);
    assert_eq!(sender.handle_samples(at(0), &[5; 98]), 98);
    assert_eq!(sender.poll_timeout(), at(1000));
    assert!(!sender.poll_packet(at(999), &mut out));
    let mut headers = Vec::new();
    for millis in [1, 2] {
        out.clear();
        assert!(sender.poll_packet(at(millis * 1000), &mut out));
        let packet = RtpPacket::parse(&out).unwrap();
        assert_eq!((packet.payload.len(), packet.header.payload_type, packet.header.ssrc), (288, 97, 7));
        headers.push((packet.header.sequence, packet.header.timestamp));
        assert!(!sender.poll_packet(at(millis * 1000), &mut out), "the next one is not due");
    }
    assert_eq!(headers, [(65_535, u32::MAX - 47), (0, 0)], "both numbers wrap");
    let sent = sender.sent(&WallClock::new(at(0), NtpTime(1 << 40)));
    assert_eq!((sent.packets, sent.octets, sent.clock.rtp, sent.clock.ntp), (2, 576, u32::MAX - 47, NtpTime(1 << 40)));
}

#[test]
fn under_another_number_reports_count_anew() {
    let mut sender = sender(AudioEncoding::L24, 2, PacketTime::Millisecond);
    sender.handle_samples(at(0), &[5; 96 * 5]);
    let send = |sender: &mut AudioSender, millis: u64| assert!(sender.poll_packet(at(millis * 1000), &mut Vec::new()));
    (1..=3).for_each(|millis| send(&mut sender, millis));
    sender.set_ssrc(8);
    (4..=5).for_each(|millis| send(&mut sender, millis));
    let sent = sender.sent(&WallClock::new(at(0), NtpTime(1 << 40)));
    assert_eq!((sent.packets, sent.octets, sender.packets()), (2, 576, 5));
}

#[test]
fn a_late_sender_drops_packets_and_a_pause_is_passed_over() {
    let mut sender = sender(AudioEncoding::L16, 1, PacketTime::Millisecond);
    sender.handle_samples(at(0), &vec![1; 48 * 200]);
    let mut out = Vec::new();
    // 150 ms late: what is older than 100 ms is dropped, and leaves its numbers.
    assert!(sender.poll_packet(at(151_000), &mut out));
    let header = RtpPacket::parse(&out).unwrap().header;
    assert_eq!((sender.packets_dropped(), header.sequence), (50, 49));
    assert_eq!(header.timestamp, (u32::MAX - 47).wrapping_add(50 * 48));
    // By now, 48 more are late.
    while sender.poll_packet(at(200_000), &mut out) {}
    assert_eq!(sender.handle_samples(at(1_201_000), &[1; 48]), 48);
    out.clear();
    assert!(sender.poll_packet(at(1_201_000), &mut out));
    let header = RtpPacket::parse(&out).unwrap().header;
    assert_eq!((sender.packets_dropped(), header.sequence), (98, 199));
    assert_eq!(header.timestamp, (u32::MAX - 47).wrapping_add(1200 * 48), "a second was passed over");
}

#[test]
fn the_last_samples_leave_with_silence_behind_them() {
    let mut sender = sender(AudioEncoding::L16, 1, PacketTime::EighthMillisecond);
    sender.handle_samples(at(0), &[256; 8]);
    sender.handle_end();
    let mut payloads = Vec::new();
    for end in [125, 250] {
        let mut out = Vec::new();
        assert!(sender.poll_packet(at(end), &mut out));
        payloads.push(out.split_off(12));
    }
    let whole: Vec<u8> = [0, 1].repeat(6);
    let last: Vec<u8> = [&[0, 1, 0, 1][..], &[0; 8]].concat();
    assert_eq!(payloads, [whole, last]);
    sender.handle_end();
    assert_eq!(sender.poll_timeout(), Instant::NEVER, "nothing is left");
}

#[test]
fn a_second_of_samples_waits_at_most() {
    let mut sender = sender(AudioEncoding::L16, 8, PacketTime::Millisecond);
    assert_eq!(sender.handle_samples(at(0), &vec![0; 500_000]), 48_000 * 8);
    assert_eq!(sender.handle_samples(at(0), &[0; 8]), 0);
}
