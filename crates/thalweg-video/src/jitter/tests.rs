use std::time::Duration;

use thalweg_base::rng::Rng;
use thalweg_base::time::Instant;

use super::*;

const FRAME_NANOS: f64 = 1001.0 / 30_000.0 * 1e9;
const FRAME_TICKS: u32 = 3003;

/// Measures frames of paced packets, each later by what `delay` tells; the time stamps wrap on the way.
fn measure(packets: u32, frames: u32, mut delay: impl FnMut(u32, u32) -> f64) -> JitterMeter {
    let spacing = FRAME_NANOS / f64::from(packets);
    let mut meter = JitterMeter::new(90_000, spacing);
    for frame in 0..frames {
        let timestamp = (u32::MAX - 5000).wrapping_add(frame * FRAME_TICKS);
        for packet in 0..packets {
            let nanos = 1e9 + f64::from(frame) * FRAME_NANOS + f64::from(packet) * spacing + delay(frame, packet);
            meter.handle_packet(Instant::from_nanos(nanos.round() as u64), timestamp, packet);
        }
    }
    meter
}

#[test]
fn a_perfect_stream_shows_its_spacing_to_rfc_3550_and_nothing_to_the_schedule() {
    for packets in [580, 720, 4320] {
        let spacing = FRAME_NANOS / f64::from(packets);
        let meter = measure(packets, 5, |_, _| 0.0);
        assert!((meter.rfc3550_nanos() / spacing - 1.0).abs() < 0.001, "{packets}: {} ns", meter.rfc3550_nanos());
        assert!(meter.schedule_nanos() < 1.0, "{packets}: {} ns", meter.schedule_nanos());
    }
    // The stream of the paper: 580 packets a frame, and a "jitter" of 57.5 µs on a network without any.
    let paper = measure(580, 5, |_, _| 0.0);
    assert_eq!((paper.rfc3550_nanos() / 100.0).round() as u32, 575);
    assert_eq!(paper.rfc3550_ticks(), 5, "57.5 µs at 90 kHz");
}

#[test]
fn the_estimate_of_rfc_3550_depends_on_the_moment_and_the_schedule_does_not() {
    // Two packets into a frame, the gap to the time stamp before still counts.
    let mut meter = measure(580, 5, |_, _| 0.0);
    let spacing = FRAME_NANOS / 580.0;
    for packet in 0..2 {
        let nanos = 1e9 + 5.0 * FRAME_NANOS + f64::from(packet) * spacing;
        meter.handle_packet(
            Instant::from_nanos(nanos.round() as u64),
            (u32::MAX - 5000).wrapping_add(5 * FRAME_TICKS),
            packet,
        );
    }
    assert!(meter.rfc3550_nanos() > 1e6, "{} ns", meter.rfc3550_nanos());
    assert!(meter.schedule_nanos() < 1.0);
}

#[test]
fn jitter_of_the_network_shows_in_the_schedule() {
    let rng = &mut Rng::new(1);
    let meter = measure(4320, 5, |_, _| rng.share() * 300_000.0);
    // Two numbers from 0 to 300 µs differ by 100 µs in the mean.
    assert!((meter.schedule_nanos() - 100_000.0).abs() < 40_000.0, "{} ns", meter.schedule_nanos());
    let shifted = measure(4320, 5, |_, _| 700_000.0);
    assert!(shifted.schedule_nanos() < 1.0, "a constant delay is no jitter");
}

#[test]
fn audio_has_a_time_stamp_for_each_packet() {
    let mut meter = JitterMeter::new(48_000, 0.0);
    for packet in 0..1000u32 {
        let at = Instant::from_nanos(u64::from(packet) * 1_000_000 + u64::from(packet % 2) * 100_000);
        meter.handle_packet(at, packet * 48, 0);
    }
    assert!((meter.rfc3550_nanos() - 100_000.0).abs() < 1.0, "{}", meter.rfc3550_nanos());
    assert_eq!((meter.rfc3550_ticks(), meter.schedule_nanos()), (4, meter.rfc3550_nanos()));
}

#[test]
fn intervals_of_frames_have_a_median_a_tail_and_a_longest() {
    let mut intervals = FrameIntervals::default();
    assert_eq!(intervals.figures(), IntervalFigures::default());
    let mut now = Instant::from_nanos(1);
    intervals.handle_frame(now);
    for frame in 0..1000 {
        now += Duration::from_millis(if frame % 50 == 0 { 50 } else { 33 });
        intervals.handle_frame(now);
    }
    now += Duration::from_secs(1000);
    intervals.handle_frame(now);
    let near = |got: Duration, millis: u64| {
        got.abs_diff(Duration::from_millis(millis)) < Duration::from_micros(100 * millis / 50)
    };
    let figures = intervals.figures();
    assert!(near(figures.p50, 33) && near(figures.p99, 50) && near(figures.max, 60_000), "{figures:?}");
    assert_eq!(figures.count, 1001);
    intervals.clear_last();
    intervals.handle_frame(now + Duration::from_secs(5));
    assert_eq!(intervals.figures().count, 1001, "the pause does not count");
}
