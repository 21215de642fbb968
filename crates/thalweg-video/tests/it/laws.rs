//! The laws.

use std::collections::BTreeSet;
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_video::format::{FrameRate, PixelFormat, Scan, VideoFormat};
use thalweg_video::receiver::{Concealment, NetworkPath, Paths, ReceiverConfig, Repair};
use thalweg_video::rfc4175::Packing;

use crate::world::{Shown, Weather, World, format};

pub const SMALL: (u16, u16) = (64, 36);
pub const FORMS: [(Packing, usize); 4] =
    [(Packing::Equal, 110), (Packing::Equal, 400), (Packing::Blocks, 420), (Packing::Fill, 377)];
pub const SCANS: [Scan; 3] = [Scan::Progressive, Scan::Interlaced, Scan::SegmentedFrame];
const POLICIES: [Concealment; 4] =
    [Concealment::Previous, Concealment::Interpolate, Concealment::Flag, Concealment::Drop];

/// Each pixel group is that of the frame sent, or one that the policy allows, and only in lines that say so.
pub fn check_pixels(world: &World, shown: &Shown) {
    let format = world.format;
    let policy = world.receiver.config().concealment;
    let (line_octets, group) = (format.line_octets(), usize::from(format.pixels().group().octets));
    let mut concealed = 0;
    for (line, (seen, sent)) in shown.picture.octets.chunks(line_octets).zip(shown.sent.chunks(line_octets)).enumerate()
    {
        if !shown.picture.concealed_lines.contains(line as u16) {
            assert!(seen == sent, "line {line} is from nowhere");
            continue;
        }
        for (at, (seen, sent)) in seen.chunks(group).zip(sent.chunks(group)).enumerate() {
            if seen != sent {
                concealed += 1;
                let octets = line * line_octets + at * group..line * line_octets + (at + 1) * group;
                let previous = shown.before.as_ref().map(|before| &before[octets.clone()]);
                assert!(is_allowed(format, policy, &shown.sent, (line, octets.start), seen, previous), "from nowhere");
            }
        }
    }
    // Random pixels are never those of another frame by chance, but black and means may be.
    assert!(concealed <= shown.picture.concealed_groups);
    assert!(policy != Concealment::Previous || concealed == shown.picture.concealed_groups);
    assert_eq!(shown.picture.is_complete(), shown.picture.concealed_lines.count() == 0);
    assert_eq!(shown.picture.is_complete(), shown.picture.latency().is_some());
}

fn is_allowed(
    format: VideoFormat,
    policy: Concealment,
    sent: &[u8],
    (line, at): (usize, usize),
    seen: &[u8],
    previous: Option<&[u8]>,
) -> bool {
    let black = format.pixels().black();
    let is_black = black.starts_with(seen);
    match policy {
        Concealment::Drop => false,
        Concealment::Flag => is_black,
        Concealment::Previous => previous.map_or(is_black, |previous| previous == seen),
        Concealment::Interpolate => {
            let step = usize::from(format.scan().fields());
            let word = |at: usize| sent[at..at + 5].iter().fold(0_u64, |word, octet| word << 8 | u64::from(*octet));
            let line_octets = format.line_octets();
            let above =
                (1..=8).map_while(|count| (line >= count * step).then(|| word(at - count * step * line_octets)));
            let rest = usize::from(format.height()) - line;
            let below = (1..=8).map_while(|count| (count * step < rest).then(|| word(at + count * step * line_octets)));
            let (above, below): (Vec<u64>, Vec<u64>) = (above.collect(), below.collect());
            let seen_word = seen.iter().fold(0_u64, |word, octet| word << 8 | u64::from(*octet));
            let mean = |left: u64, right: u64| {
                [30, 20, 10, 0]
                    .map(|shift| ((left >> shift & 1023) + (right >> shift & 1023)) / 2)
                    .into_iter()
                    .fold(0, |word, part| word << 10 | part)
            };
            let is_mean = above.iter().any(|left| below.iter().any(|right| mean(*left, *right) == seen_word));
            let is_copy = above.iter().chain(&below).any(|other| *other == seen_word);
            is_mean || is_copy || previous.map_or(is_black, |previous| previous == seen)
        }
    }
}

/// The laws that hold in any weather, after the end of a stream.
fn check(world: &World) {
    let mut times = BTreeSet::new();
    let mut last: Option<u32> = None;
    for shown in &world.shown {
        check_pixels(world, shown);
        assert!(times.insert(shown.picture.timestamp), "presented twice");
        assert!(last.is_none_or(|last| shown.picture.timestamp.wrapping_sub(last) < 1 << 31), "out of order");
        last = Some(shown.picture.timestamp);
    }
    let counters = world.receiver.counters();
    let packets = counters.packets;
    let truth = world.truth();
    let counted = [packets.expected, packets.received, packets.recovered, packets.lost, packets.duplicates];
    assert_eq!(counted, [truth.expected, truth.received, truth.recovered, truth.lost, truth.duplicates], "{packets:?}");
    assert_eq!((packets.outstanding, packets.stale, packets.implausible), (0, 0, 0));
    assert!(packets.are_consistent());
    let frames = counters.frames;
    let complete = world.shown.iter().filter(|shown| shown.picture.is_complete()).count() as u64;
    assert_eq!((frames.complete, frames.concealed), (complete, world.shown.len() as u64 - complete));
    assert_eq!(frames.discarded, 0, "the driver was punctual");
    let sent = world.sender.counters();
    assert!(frames.expected() <= sent.frames_sent, "{frames:?} of {sent:?}");
    assert_eq!(counters.refused, Default::default());
}

fn config(policy: Concealment, repair: Repair) -> impl Fn(&mut ReceiverConfig) {
    move |config| (config.concealment, config.repair) = (policy, repair)
}

#[test]
fn on_a_good_network_every_frame_is_complete_from_the_first_on() {
    for form in FORMS {
        for scan in SCANS {
            let mut world = World::new(1, format(SMALL, scan), form, |_| {});
            let start = world.now;
            world.run(20);
            check(&world);
            assert_eq!(world.receiver.counters().frames.complete, 20);
            assert_eq!(world.receiver.counters().packets.reordered, 0);
            let frame = world.format.frame_time();
            for (index, shown) in world.shown.iter().enumerate() {
                let due = start + Duration::from_millis(1) + world.format.rate().time_of(index as u64) + 2 * frame;
                // Time stamps are whole ticks of 11 µs.
                assert!(shown.picture.deadline.as_nanos().abs_diff(due.as_nanos()) < 12_000, "frame {index}");
                assert!(shown.picture.latency().unwrap() <= frame, "paced over the frame");
            }
        }
    }
}

#[test]
fn in_any_weather_pixels_are_from_their_frame_or_the_concealment_and_counters_are_true() {
    for seed in 0..60 {
        let policy = POLICIES[seed as usize % 4];
        let scan = SCANS[seed as usize / 4 % 3];
        let form = FORMS[seed as usize / 12 % 4];
        let repair = if seed % 5 < 3 { Repair::by_retransmission(97) } else { Repair::Off };
        let weather = Weather {
            loss: [0.0, 0.01, 0.05, 0.3][seed as usize / 3 % 4],
            jitter: Duration::from_millis([0, 1, 20][seed as usize % 3]),
            jittery: 0.2,
            duplicates: 0.05,
            stalls: 0.1,
            stall: Duration::from_millis(150),
            ..Weather::default()
        };
        let mut world = World::new(seed, format(SMALL, scan), form, config(policy, repair)).weather(weather, weather);
        world.run(60);
        world.finish();
        check(&world);
        assert_eq!(world.receiver.counters().packets.reordered, world.truth().reordered, "seed {seed}");
    }
}

#[test]
fn two_paths_lose_only_what_both_lose() {
    for seed in 0..12 {
        let first = Weather { loss: 0.1, jittery: 0.1, jitter: Duration::from_millis(1), ..Weather::default() };
        let second = Weather { loss: 0.2, delay: Duration::from_millis(4), duplicates: 0.1, ..first };
        let mut world = World::new(seed, format(SMALL, Scan::Progressive), FORMS[0], |config| {
            config.paths = Paths::Two;
        })
        .weather(first, second);
        world.run(40);
        world.finish();
        check(&world);
        for (index, path) in [NetworkPath::First, NetworkPath::Second].into_iter().enumerate() {
            let (counted, truth) = (world.receiver.path_counters(path).unwrap(), world.path_truth(index));
            let counted = [
                counted.packets_expected,
                counted.packets_received,
                counted.packets_lost,
                counted.packets_duplicate,
                counted.packets_reordered,
            ];
            assert_eq!(counted, [truth.expected, truth.received, truth.lost, truth.duplicates, truth.reordered]);
        }
        let lost = world.truth().lost as f64 / world.truth().expected as f64;
        assert!((0.01..0.03).contains(&lost), "a tenth of a fifth: {lost}");
    }
}

#[test]
fn what_the_slower_path_brings_is_not_asked_for() {
    let first = Weather { loss: 0.1, ..Weather::default() };
    let second = Weather { delay: Duration::from_millis(4), ..Weather::default() };
    let mut world = World::new(7, format(SMALL, Scan::Progressive), FORMS[0], |config| {
        config.paths = Paths::Two;
        config.repair = Repair::by_retransmission(97);
    })
    .weather(first, second);
    world.run(40);
    world.finish();
    check(&world);
    let counters = world.receiver.counters();
    assert_eq!((counters.packets.lost, counters.packets.recovered), (0, 0), "{counters:?}");
    assert_eq!((counters.repair.requests, world.sender.counters().packets_resent), (0, 0), "{counters:?}");
}

#[test]
fn requests_complete_999_of_1000_frames_at_five_percent_loss() {
    let weather = Weather { loss: 0.05, ..Weather::default() };
    let mut world = World::new(5, format((480, 270), Scan::Progressive), (Packing::Equal, 1452), |config| {
        config.repair = Repair::by_retransmission(97);
    })
    .weather(weather, weather);
    world.run(2000);
    world.finish();
    let counters = world.receiver.counters();
    let truth = world.truth();
    assert_eq!([counters.packets.expected, counters.packets.lost], [truth.expected, truth.lost]);
    assert_eq!([counters.packets.received, counters.packets.recovered], [truth.received, truth.recovered]);
    assert!(truth.recovered as f64 > 0.04 * truth.expected as f64, "{truth:?}");
    // The first frame may be lost at its very beginning, and the last one at its very end.
    let complete = counters.frames.complete as f64 / counters.frames.expected() as f64;
    assert!(complete >= 0.999, "{complete}: {counters:?}");
    let round_trip = world.receiver.round_trip().unwrap();
    assert!((Duration::from_millis(2)..Duration::from_millis(3)).contains(&round_trip), "{round_trip:?}");
    let wasted = counters.repair.needless as f64 / counters.repair.repetitions as f64;
    assert!(wasted < 0.02, "{wasted} of the repetitions were needless");
}

#[test]
fn repetitions_in_the_stream_itself_recover_as_well() {
    let weather = Weather { loss: 0.03, ..Weather::default() };
    let repair = Repair::Nack { reorder_window: Repair::REORDER_WINDOW, retransmission: None };
    let mut world = World::new(1, format(SMALL, Scan::Progressive), FORMS[0], config(Concealment::Previous, repair))
        .weather(weather, weather);
    world.run(300);
    world.finish();
    let packets = world.receiver.counters().packets;
    assert!(packets.are_consistent());
    let (truth, frames) = (world.truth(), world.receiver.counters().frames);
    assert_eq!(packets.received + packets.recovered, truth.received, "the network cannot tell them apart");
    assert!(packets.recovered as f64 > 0.02 * truth.expected as f64);
    assert!(frames.complete as f64 >= 0.98 * frames.expected() as f64, "{frames:?}");
}

#[test]
fn a_stream_that_loses_something_in_every_frame_begins_after_ten_frames() {
    for policy in POLICIES {
        let weather = Weather { loss: 0.2, ..Weather::default() };
        let mut world = World::new(3, format(SMALL, Scan::Progressive), FORMS[0], config(policy, Repair::Off))
            .weather(weather, weather);
        world.run(40);
        world.finish();
        check(&world);
        let frames = world.receiver.counters().frames;
        if policy == Concealment::Drop {
            assert_eq!((frames.before_start, frames.started_incomplete), (40, 0));
        } else {
            assert_eq!((frames.before_start, frames.concealed, frames.started_incomplete), (10, 30, 1));
        }
    }
}

#[test]
fn every_pixel_format_arrives() {
    for pixels in PixelFormat::ALL {
        let format = VideoFormat::new(pixels, SMALL, "60000/1001".parse().unwrap(), Scan::Progressive).unwrap();
        let mut world = World::new(1, format, (Packing::Equal, 300), |_| {});
        world.run(10);
        check(&world);
        assert_eq!(world.receiver.counters().frames.complete, 10);
    }
}

#[test]
fn frames_that_a_stalled_sender_drops_are_skipped_and_not_lost() {
    let mut skipped = 0;
    for seed in 0..10 {
        let weather = Weather { stalls: 0.2, stall: Duration::from_millis(200), ..Weather::default() };
        let mut world = World::new(seed, format(SMALL, Scan::Interlaced), FORMS[1], |_| {}).weather(weather, weather);
        world.run(50);
        world.finish();
        check(&world);
        let (frames, sent) = (world.receiver.counters().frames, world.sender.counters());
        assert_eq!(frames.lost, 0);
        assert!(frames.skipped <= sent.frames_dropped + sent.frames_missed);
        assert_eq!(frames.expected(), sent.frames_sent);
        skipped += frames.skipped;
    }
    assert!(skipped > 20, "{skipped}");
}

#[test]
fn time_passes_only_as_the_driver_says() {
    let mut world = World::new(1, format(SMALL, Scan::Progressive), FORMS[0], |_| {});
    assert_eq!(world.receiver.poll_timeout(), Instant::NEVER);
    world.run(3);
    assert_eq!((world.receiver.poll_timeout(), world.sender.poll_timeout()), (Instant::NEVER, Instant::NEVER));
}

#[test]
fn every_size_and_rate_comes_whole_in_calm_weather() {
    let sizes = [(1, 1), (2, 2), (7, 3), (34, 6), (8191, 1), (8192, 2), (2, 8192)];
    for (size, pixels) in sizes.iter().flat_map(|size| PixelFormat::ALL.map(|pixels| (*size, pixels))) {
        for rate in ["1", "3/2", "24000/1001", "240", "1000"] {
            for scan in SCANS {
                let Ok(format) = VideoFormat::new(pixels, size, rate.parse().unwrap(), scan) else { continue };
                let mut world = World::new(1, format, (Packing::Equal, 1452), |_| {});
                world.run(8);
                world.finish();
                check(&world);
                let frames = world.receiver.counters().frames;
                assert_eq!((frames.complete, frames.expected()), (8, 8), "{format}: {frames:?}");
            }
        }
    }
    assert!("1/10".parse::<FrameRate>().is_err(), "less than one frame a second is refused");
}
