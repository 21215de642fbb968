//! The receiver of audio under any datagrams, times and pictures: it counts each sample once, and its next time is bounded.

#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use thalweg_base::time::Instant;
use thalweg_video::audio::{AudioFormat, AudioReceiver, AudioReceiverConfig, PacketTime};
use thalweg_video::conformance::{Alignment, FramePacing, PacingMeter};
use thalweg_video::format::{FrameRate, Scan};
use thalweg_video::jitter::JitterMeter;
use thalweg_video::receiver::{NACK_ITEMS_MAX, Repair};
use thalweg_video::rtcp::{MediaClock, NtpTime, WallClock};
use thalweg_video::rtp::RtpHeader;
use thalweg_video::sdp::AudioEncoding;

fuzz_target!(|bytes: &[u8]| {
    check_receiver(bytes);
    check_meters(bytes);
});

/// Each step is a kind, a wait, and two octets that mean a time stamp or a picture.
fn check_receiver(bytes: &[u8]) {
    let format = AudioFormat::new(AudioEncoding::L16, 1, PacketTime::EighthMillisecond).expect("a form of audio");
    let repair = Repair::by_retransmission(99);
    let mut receiver = AudioReceiver::new(AudioReceiverConfig { repair, ..AudioReceiverConfig::new(format, 97) });
    let start = Instant::from_nanos(5_000_000_000);
    let mut now = start;
    let mut samples = Vec::new();
    for (index, step) in bytes.chunks_exact(4).take(64).enumerate() {
        now += Duration::from_micros(u64::from(step[1]) * u64::from(step[1]) * 2);
        let value = u16::from_be_bytes([step[2], step[3]]);
        match step[0] % 8 {
            0 => drop(receiver.handle_datagram(now, step)),
            1 => {
                let ntp = NtpTime::from_unix(Duration::from_secs(1000));
                let clock = MediaClock::new(ntp, u32::from(value), 48_000).expect("a rate");
                receiver.set_picture(WallClock::new(start + Duration::from_millis(value.into()), ntp), clock);
            }
            kind => {
                // Most time stamps are near each other; some are anywhere.
                let timestamp = if kind == 2 { u32::from(value) << 16 } else { u32::from(value) };
                let header = RtpHeader {
                    marker: false,
                    payload_type: if kind == 4 { 99 } else { 97 },
                    sequence: if kind == 5 { u16::from(step[1]) << 7 } else { index as u16 },
                    timestamp,
                    ssrc: u32::from(kind == 3),
                };
                let mut datagram = header.to_octets().to_vec();
                if kind == 4 {
                    // The original's number, near the newest one.
                    datagram.extend((index as u16).wrapping_sub(u16::from(step[1] % 8)).to_be_bytes());
                }
                datagram.resize(12 + usize::from(step[1]) * 2, step[2]);
                let _ = receiver.handle_datagram(now, &datagram);
            }
        }
        // Within the 100 ms that are made up for, and what is skipped, a poll never runs on.
        for _ in 0..1000 {
            samples.clear();
            if receiver.poll_block(now, &mut samples).is_none() {
                break;
            }
            assert_eq!(samples.len(), 6);
        }
        assert!(receiver.poll_block(now, &mut samples).is_none(), "the receiver comes to rest");
        while let Some(items) = receiver.poll_nack(now) {
            assert!(items.len() <= NACK_ITEMS_MAX);
        }
        assert!(receiver.nack_timeout() > now, "requests come to rest");
        let counters = receiver.counters();
        let heard = counters.frames_played - counters.frames_concealed;
        assert_eq!(counters.frames_placed, heard + counters.frames_skipped + receiver.frames_waiting());
        let _ = (receiver.received(), receiver.picture_offset_millis());
    }
}

/// Each step is a frame, a packet, and two octets of time that may run backwards.
fn check_meters(bytes: &[u8]) {
    let pacing = FramePacing::new(FrameRate::NTSC, 16, Scan::Progressive, 1080, 1500).expect("a pacing");
    let mut meter = PacingMeter::new(pacing, Alignment::Adaptive { frames: 4 });
    let mut jitter = JitterMeter::new(90_000, 100.0);
    for step in bytes.chunks_exact(4) {
        let at = Instant::from_nanos(u64::from(u16::from_be_bytes([step[2], step[3]])) * 100_000);
        if let Some(figures) = meter.handle_packet(u64::from(step[0]), u32::from(step[1] % 20), at) {
            assert!(figures.packets <= 16 && figures.linear.underflows == 0 && figures.gapped.underflows == 0);
            assert!(figures.linear.packets_max <= 32 && figures.gapped.packets_max <= 32);
        }
        jitter.handle_packet(at, u32::from(step[0]) << 24, u32::from(step[1]));
        assert!(jitter.rfc3550_nanos() >= 0.0 && jitter.schedule_nanos() >= 0.0);
    }
    assert!(meter.summary().packets_missing <= meter.summary().frames * 16);
}
