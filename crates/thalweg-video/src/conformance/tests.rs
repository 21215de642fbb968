use std::time::Duration;

use thalweg_base::time::Instant;

use super::*;
use crate::format::{FrameRate, Scan};

const PACKETS: u32 = 4320;

fn hd() -> FramePacing {
    FramePacing::new(FrameRate::NTSC, PACKETS, Scan::Progressive, 1080, 1500).unwrap()
}

/// When a frame of a trace begins, a second after the zero of the clock.
fn begin(pacing: &FramePacing, frame: u64) -> f64 {
    1e9 + pacing.rate().time_of(frame).as_nanos() as f64
}

fn at(nanos: f64) -> Instant {
    Instant::from_nanos(nanos.round() as u64)
}

/// Measures frames whose packets come so many nanoseconds after the frame begins.
fn measure(pacing: FramePacing, alignment: Alignment, frames: u64, time: impl Fn(u64, u32) -> f64) -> PacingSummary {
    let mut meter = PacingMeter::new(pacing, alignment);
    for frame in 0..frames {
        for packet in 0..pacing.packets() {
            meter.handle_packet(frame, packet, at(begin(&pacing, frame) + time(frame, packet)));
        }
    }
    meter.finish_frame();
    assert_eq!(meter.summary().frames, frames);
    meter.summary()
}

const ADAPTIVE: Alignment = Alignment::Adaptive { frames: 8 };

#[test]
fn limits_are_those_of_the_analysers() {
    let limits = |pacing: FramePacing| PacingKind::ALL.map(|kind| (pacing.burst_max(kind), pacing.buffer_max(kind)));
    assert_eq!(limits(hd()), [(4, 8), (4, 8), (16, 720)], "1080p29.97 in packets of 1,200 octets");
    assert!((hd().packet_nanos(PacingKind::Narrow) - 7414.8).abs() < 0.1);
    assert_eq!(hd().default_offset(), Duration::from_nanos(1_275_348));
    // 2160p59.94: the shares exceed the minima.
    let rate = FrameRate::new(60_000, 1001).unwrap();
    let uhd = FramePacing::new(rate, 16_460, Scan::Progressive, 2160, 1500).unwrap();
    assert_eq!(limits(uhd), [(23, 36), (22, 36), (45, 3288)]);
    // Jumbo packets: fewer of them fill the same octets.
    let jumbo = FramePacing::new(FrameRate::NTSC, 720, Scan::Progressive, 1080, 9000).unwrap();
    assert_eq!(limits(jumbo), [(4, 1), (4, 1), (16, 120)]);
    let offset = |scan, height| FramePacing::new(FrameRate::PAL, 4320, scan, height, 1500).unwrap().default_offset();
    assert_eq!(offset(Scan::Progressive, 720), Duration::from_nanos(1_493_333));
    assert_eq!(offset(Scan::Interlaced, 576), Duration::from_nanos(1_664_000));
    assert_eq!(offset(Scan::SegmentedFrame, 1080), Duration::from_nanos(782_222));
}

#[test]
fn what_the_models_do_not_fit_is_refused() {
    let new = |packets, scan, octets| FramePacing::new(FrameRate::PAL, packets, scan, 1080, octets).map(|_| ());
    assert_eq!(new(0, Scan::Progressive, 1500), Err(PacingRefusal::Packets(0)));
    assert_eq!(new(PACKETS_MAX + 1, Scan::Progressive, 1500), Err(PacingRefusal::Packets(PACKETS_MAX + 1)));
    assert_eq!(new(4321, Scan::Interlaced, 1500), Err(PacingRefusal::Fields(4321)));
    assert_eq!(new(4320, Scan::Progressive, 0), Err(PacingRefusal::Octets(0)));
    assert_eq!(new(4320, Scan::Interlaced, 1500), Ok(()));
}

#[test]
fn a_sender_with_the_gaps_of_sdi_is_narrow() {
    let pacing = hd();
    let summary = measure(pacing, ADAPTIVE, 10, |_, packet| pacing.read_nanos(PacingKind::Narrow, packet));
    assert_eq!(summary.kind(), Some(PacingKind::Narrow), "{summary:?}");
    assert_eq!((summary.burst_max, summary.gapped.packets_max), (1, 1));
    // A linear receiver would have to hold what comes early: 4 % of a frame.
    assert_eq!(summary.linear.packets_max, 173);
    assert!(summary.check(PacingKind::NarrowLinear).is_err());
}

#[test]
fn a_sender_over_the_whole_frame_time_is_narrow_linear() {
    let pacing = hd();
    let summary = measure(pacing, ADAPTIVE, 10, |_, packet| pacing.read_nanos(PacingKind::Wide, packet));
    assert_eq!(summary.kind(), Some(PacingKind::NarrowLinear), "{summary:?}");
    assert_eq!((summary.burst_max, summary.linear.packets_max), (1, 1));
    let fault = summary.check(PacingKind::Narrow).unwrap_err();
    assert!(matches!(fault, PacingFault::Buffer { allowed: 8, .. }), "{fault}");
}

#[test]
fn batches_of_sixteen_are_wide_and_larger_ones_are_nothing() {
    let pacing = hd();
    let batches =
        |size: u32| measure(pacing, ADAPTIVE, 5, |_, packet| pacing.read_nanos(PacingKind::Wide, packet / size * size));
    let wide = batches(16);
    assert_eq!(wide.kind(), Some(PacingKind::Wide), "{wide:?}");
    // All packets of a batch but the first come early.
    assert_eq!((wide.burst_max, wide.linear.packets_max), (16, 16));
    let fault = batches(53).check(PacingKind::Wide).unwrap_err();
    assert!(matches!(fault, PacingFault::Burst { measured: 53..=54, allowed: 16 }), "{fault}");
    assert_eq!(batches(53).kind(), None);
}

#[test]
fn a_frame_sent_at_once_is_told_by_both_models() {
    let pacing = hd();
    let summary = measure(pacing, ADAPTIVE, 3, |_, _| 0.0);
    assert_eq!((summary.burst_max, summary.linear.packets_max), (PACKETS, PACKETS));
    assert_eq!(summary.kind(), None);
}

#[test]
fn a_stall_fills_the_buffer_of_the_model_and_the_burst_after_it_the_network() {
    let pacing = hd();
    // From packet 1000 on, 200 packets come together a stall later.
    let stalled = |_, packet| {
        let packet = if (1000..1200).contains(&packet) { 1200 } else { packet };
        pacing.read_nanos(PacingKind::Wide, packet)
    };
    let summary = measure(pacing, ADAPTIVE, 3, stalled);
    assert!((190..=201).contains(&summary.burst_max), "{summary:?}");
    // The reads have to wait for the packet that came 200 packet times late.
    assert_eq!(summary.linear.packets_max, 201);
    assert_eq!(summary.kind(), None);
}

#[test]
fn with_a_common_clock_late_packets_underflow() {
    let pacing = hd();
    let first_read = Alignment::Fixed(at(begin(&pacing, 0) + 1e6));
    let time = |late: f64| move |_, packet| 1e6 + late + pacing.read_nanos(PacingKind::Narrow, packet);
    let early = measure(pacing, first_read, 3, time(-30_000.0));
    assert_eq!(
        (early.kind(), early.gapped),
        (Some(PacingKind::Narrow), BufferFigures { packets_max: 5, underflows: 0 })
    );
    let late = measure(pacing, first_read, 3, time(1000.0));
    assert_eq!(late.check(PacingKind::Narrow), Err(PacingFault::Underflow { packets: 3 * PACKETS }));
}

#[test]
fn the_first_frame_measured_need_not_be_frame_zero() {
    let pacing = hd();
    let mut meter = PacingMeter::new(pacing, Alignment::Fixed(at(begin(&pacing, 0))));
    for packet in 0..PACKETS {
        meter.handle_packet(100, packet, at(begin(&pacing, 100) + pacing.read_nanos(PacingKind::Narrow, packet)));
    }
    let figures = meter.finish_frame().unwrap();
    assert_eq!((figures.frame, figures.gapped), (100, BufferFigures { packets_max: 1, underflows: 0 }));
}

#[test]
fn clocks_that_drift_do_not_fill_the_model_of_an_adaptive_receiver() {
    let pacing = hd();
    let drift = |frame: u64, packet| frame as f64 * -1700.0 + pacing.read_nanos(PacingKind::Wide, packet);
    // 51 ppm for three seconds move a frame by 168 microseconds, or 22 packets.
    let adaptive = measure(pacing, Alignment::Adaptive { frames: 2 }, 100, drift);
    assert_eq!(adaptive.kind(), Some(PacingKind::NarrowLinear), "{adaptive:?}");
    let fixed = measure(pacing, Alignment::Fixed(at(begin(&pacing, 0))), 100, drift);
    assert!(fixed.linear.packets_max > 20, "{fixed:?}");
}

#[test]
fn fields_are_half_a_frame_time_apart() {
    let pacing = FramePacing::new(FrameRate::PAL, 4320, Scan::Interlaced, 1080, 1500).unwrap();
    assert_eq!(pacing.read_nanos(PacingKind::Narrow, 2160), 20e6);
    let summary = measure(pacing, ADAPTIVE, 5, |_, packet| pacing.read_nanos(PacingKind::Narrow, packet));
    assert_eq!(summary.kind(), Some(PacingKind::Narrow), "{summary:?}");
    let progressive = FramePacing::new(FrameRate::PAL, 4320, Scan::Progressive, 1080, 1500).unwrap();
    let summary = measure(pacing, ADAPTIVE, 5, |_, packet| progressive.read_nanos(PacingKind::Narrow, packet));
    assert_ne!(summary.kind(), Some(PacingKind::Narrow), "{summary:?}");
}

#[test]
fn packets_of_the_frame_before_are_held_until_they_are_read() {
    let pacing = hd();
    // The receiver reads 100 packet times after the packets came; of the second frame, 50 come.
    let delay = 100.0 * pacing.packet_nanos(PacingKind::Wide);
    let last_figures = |second: u64| {
        let mut meter = PacingMeter::new(pacing, Alignment::Fixed(at(begin(&pacing, 0) + delay)));
        for (frame, packets) in [(0, PACKETS), (second, 50)] {
            for packet in 0..packets {
                let time = begin(&pacing, frame) + pacing.read_nanos(PacingKind::Wide, packet);
                meter.handle_packet(frame, packet, at(time));
            }
        }
        meter.finish_frame().unwrap().linear.packets_max
    };
    assert_eq!((last_figures(1), last_figures(2)), (101, 50));
}

#[test]
fn losses_duplicates_and_late_frames_do_not_disturb_the_rest() {
    let pacing = hd();
    let mut meter = PacingMeter::new(pacing, ADAPTIVE);
    let mut figures = Vec::new();
    for frame in [0, 1, 3] {
        for packet in (0..PACKETS).filter(|packet| packet % 100 != 7) {
            let now = at(begin(&pacing, frame) + pacing.read_nanos(PacingKind::Narrow, packet));
            figures.extend(meter.handle_packet(frame, packet, now));
            if packet % 500 == 0 {
                meter.handle_packet(frame, packet, now);
                meter.handle_packet(frame.saturating_sub(1), packet, now);
                meter.handle_packet(frame, PACKETS + packet, now);
            }
        }
    }
    figures.extend(meter.finish_frame());
    assert_eq!(meter.finish_frame(), None);
    let come: Vec<_> =
        figures.iter().map(|figures| (figures.frame, figures.packets, figures.gapped.packets_max)).collect();
    assert_eq!(come, [(0, 4276, 1), (1, 4276, 1), (3, 4276, 1)]);
    assert_eq!(meter.summary().packets_missing, 3 * 44);
    assert_eq!(PacingMeter::new(pacing, ADAPTIVE).summary().check(PacingKind::Wide), Err(PacingFault::Nothing));
}
