use std::time::Duration;

use thalweg_base::rng::Rng;
use thalweg_base::time::Instant;

use super::receiver::at;
use crate::audio::*;
use crate::sdp::AudioEncoding;
use crate::sender::Resend;

/// What a network does to packets.
struct Weather {
    loss: f64,
    duplicates: f64,
    delay_max_nanos: u64,
    /// How much faster the clock of the sender runs.
    drift_ppm: i64,
}

/// What came of a run.
struct Run {
    counters: AudioCounters,
    waiting: u64,
    steps: u64,
    /// Samples that the network lost.
    lost: u64,
    /// Samples concealed before the last packet came.
    concealed_within: u64,
}

/// Sends a ramp through the weather and plays it; each sample played must be the one that was taken at its time, or silence.
fn run(format: AudioFormat, seed: u64, seconds: u64, weather: &Weather) -> Run {
    let rng = &mut Rng::new(seed);
    let timestamp = rng.next_u64() as u32;
    let sequence = rng.next_u64() as u16;
    let resend = Resend::Never;
    let config = AudioSenderConfig { format, payload_type: 97, ssrc: 9, sequence, timestamp, resend };
    let mut sender = AudioSender::new(at(0), config);
    let concealment = AudioConcealment::Silence;
    let mut receiver = AudioReceiver::new(AudioReceiverConfig { concealment, ..AudioReceiverConfig::new(format, 97) });
    let (channels, frames) = (format.channels(), format.packet_time().frames());
    let sample = |frame: u64, channel: usize| ((frame % 30_000) as i32 + 1) << 8 | (channel as i32) << 4;
    let mut network: Vec<(Instant, Vec<u8>)> = Vec::new();
    let packets = seconds * 48_000 / frames as u64;
    let mut lost = 0;
    for packet in 0..packets {
        let first = packet * frames as u64;
        let samples: Vec<i32> =
            (first..first + frames as u64).flat_map(|f| (0..channels).map(move |c| sample(f, c))).collect();
        let now = sender_time(&mut sender, &samples);
        let mut out = Vec::new();
        assert!(sender.poll_packet(now, &mut out));
        let passed = now.since(at(0)).as_nanos() as i64;
        let sent = at(0) + Duration::from_nanos((passed - passed * weather.drift_ppm / 1_000_000) as u64);
        let copies = 1 + u64::from(rng.chance(weather.duplicates));
        // The first packet says what time it is; it comes without delay.
        let come: Vec<u64> = (0..copies).filter(|_| packet == 0 || !rng.chance(weather.loss)).collect();
        lost += u64::from(come.is_empty()) * frames as u64;
        for _ in come {
            let delay = if packet == 0 { 0 } else { rng.below(weather.delay_max_nanos + 1) };
            network.push((sent + Duration::from_nanos(delay), out.clone()));
        }
    }
    network.sort();
    let mut played = Vec::new();
    let mut play = |receiver: &mut AudioReceiver, until: Instant| {
        while receiver.poll_timeout() <= until {
            let now = receiver.poll_timeout();
            played.clear();
            let Some(block) = receiver.poll_block(now, &mut played) else { continue };
            let first = u64::from(block.timestamp.wrapping_sub(timestamp));
            let mut silent = 0;
            for (offset, got) in played.chunks(channels).enumerate() {
                let expected: Vec<i32> = (0..channels).map(|channel| sample(first + offset as u64, channel)).collect();
                let is_silent = got.iter().all(|sample| *sample == 0);
                assert!(is_silent || got == expected, "seed {seed}: {got:?} instead of {expected:?}");
                silent += u64::from(is_silent);
            }
            assert_eq!(silent, block.concealed, "seed {seed}");
        }
    };
    for (now, datagram) in network {
        play(&mut receiver, now);
        receiver.handle_datagram(now, &datagram).unwrap();
    }
    let concealed_within = receiver.counters().frames_concealed;
    play(&mut receiver, at(seconds * 1_000_000 + 300_000));
    let (counters, waiting, steps) = (receiver.counters(), receiver.frames_waiting(), receiver.steps());
    Run { counters, waiting, steps, lost, concealed_within }
}

/// Gives samples to a sender; returns when their packet is due.
fn sender_time(sender: &mut AudioSender, samples: &[i32]) -> Instant {
    let before = at(0);
    assert_eq!(sender.handle_samples(before, samples), samples.len());
    sender.poll_timeout()
}

#[test]
fn each_sample_played_is_the_one_of_its_time_or_silence() {
    let encodings = [AudioEncoding::L16, AudioEncoding::L24];
    let times = [PacketTime::Millisecond, PacketTime::EighthMillisecond];
    for seed in 0..12 {
        let encoding = encodings[seed as usize % 2];
        let channels = if encoding == AudioEncoding::L16 { 1 } else { 1 + (seed % 8) as u8 };
        let format = AudioFormat::new(encoding, channels, times[seed as usize / 2 % 2]).unwrap();
        let weather = Weather { loss: 0.05, duplicates: 0.05, delay_max_nanos: 25_000_000, drift_ppm: 0 };
        let run = run(format, seed, 1, &weather);
        let counters = run.counters;
        let heard = counters.frames_played - counters.frames_concealed;
        assert_eq!(counters.frames_placed, heard + counters.frames_skipped + run.waiting, "seed {seed}: {counters:?}");
        let came = counters.frames_placed + counters.frames_late + counters.frames_duplicate;
        let frames = format.packet_time().frames() as u64;
        assert_eq!(came, counters.packets * frames, "seed {seed}: {counters:?}");
        assert!(run.lost > 0 && counters.frames_late > 0, "seed {seed}: the weather is bad");
        assert_eq!((counters.starts, counters.packets_astray, run.waiting), (1, 0, 0), "seed {seed}");
    }
}

#[test]
fn a_calm_network_loses_and_conceals_nothing() {
    for seed in 0..4 {
        let format = AudioFormat::new(AudioEncoding::L24, 8, PacketTime::EighthMillisecond).unwrap();
        let weather = Weather { loss: 0.0, duplicates: 0.0, delay_max_nanos: 19_000_000, drift_ppm: 0 };
        let run = run(format, seed, 1, &weather);
        assert_eq!((run.counters.frames_late, run.counters.frames_placed), (0, 48_000), "seed {seed}");
    }
}

#[test]
fn clocks_that_drift_are_followed_without_a_gap() {
    for drift_ppm in [-400, 400] {
        let format = AudioFormat::new(AudioEncoding::L16, 1, PacketTime::Millisecond).unwrap();
        let weather = Weather { loss: 0.0, duplicates: 0.0, delay_max_nanos: 2_000_000, drift_ppm };
        // 400 ppm are 24 ms in a minute: more than the delay.
        let run = run(format, 1, 60, &weather);
        assert_eq!((run.counters.frames_late, run.concealed_within, run.steps), (0, 0, 0), "{drift_ppm} ppm");
        assert_eq!(run.counters.frames_skipped, 0, "{drift_ppm} ppm");
    }
}
