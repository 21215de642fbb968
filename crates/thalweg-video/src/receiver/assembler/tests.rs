use std::collections::BTreeSet;

use thalweg_base::rng::Rng;

use super::*;
use crate::format::{FrameRate, PixelFormat};

const FRAME: u32 = 3003;
const LINES: u16 = 8;
const HEIGHT: u16 = 48;

/// A sender of small frames in slices of eight lines: each line is filled with the number of its frame.
struct Peer {
    format: VideoFormat,
    source: u32,
    number: u64,
    frame: u64,
    timestamp: u32,
}

impl Peer {
    fn new(scan: Scan) -> Peer {
        let format = VideoFormat::new(PixelFormat::Yuv422Bits8, (4, HEIGHT), FrameRate::NTSC, scan).unwrap();
        Peer { format, source: 1, number: 0, frame: 0, timestamp: u32::MAX - 5000 }
    }

    fn assembler(&self, concealment: Concealment) -> FrameAssembler {
        FrameAssembler::new(AssemblerConfig { concealment, ..AssemblerConfig::new(self.format) }).unwrap()
    }

    /// The slices of the next frame.
    fn frame(&mut self) -> Vec<(SliceHead, Vec<u8>)> {
        let fields: &[Field] =
            if self.format.scan() == Scan::Progressive { &[Field::First] } else { &[Field::First, Field::Second] };
        let mut slices = Vec::new();
        for field in fields {
            for first_line in (0..self.format.field_height()).step_by(LINES.into()) {
                let is_last = first_line + LINES == self.format.field_height();
                let head = SliceHead {
                    source: self.source,
                    number: self.number,
                    frame: self.frame,
                    timestamp: self.timestamp,
                    field: *field,
                    first_line,
                    is_last,
                };
                slices.push((head, vec![self.frame as u8; usize::from(LINES) * self.format.line_octets()]));
                self.number += 1;
            }
        }
        self.timestamp = self.timestamp.wrapping_add(FRAME);
        self.frame += 1;
        slices
    }
}

/// The middle of the time of slice `slice` of frame `frame`, of seven.
fn at(frame: u64, slice: u64) -> Instant {
    Instant::from_nanos(1_000_000_000 + FrameRate::NTSC.time_of(frame).as_nanos() as u64 + slice * 4_000_000)
}

/// The frame that each line of a picture is from.
fn lines(picture: &ReceivedPicture) -> Vec<u8> {
    picture.octets.chunks(8).map(|line| line[0]).collect()
}

/// Sends three frames without the slices `missing` of the second; returns how the second one comes out, and when.
#[track_caller]
fn check(scan: Scan, concealment: &str, missing: &[usize], expect: &[u8]) {
    let mut peer = Peer::new(scan);
    let mut assembler = peer.assembler(concealment.parse().unwrap());
    let mut pictures = Vec::new();
    for frame in 0..3 {
        for (index, (head, octets)) in peer.frame().into_iter().enumerate() {
            if frame != 1 || !missing.contains(&index) {
                let now = at(frame, index as u64);
                assert_eq!(assembler.handle_slice(now, &head, &octets), SliceArrival::Placed);
                pictures.extend(std::iter::from_fn(|| assembler.poll_frame(now)).map(|picture| (now, picture)));
            }
        }
    }
    let counters = assembler.counters();
    let shown: Vec<u8> =
        match pictures.iter().find(|(_, picture)| picture.timestamp == (u32::MAX - 5000).wrapping_add(FRAME)) {
            Some((_, picture)) => lines(picture).chunks(8).map(|slice| slice[0]).collect(),
            None => Vec::new(),
        };
    assert_eq!(shown, expect, "{scan} without {missing:?}: {counters:?}");
    assert!(pictures.is_sorted_by_key(|(now, _)| *now));
    assert!(counters.packets.are_consistent());
    assert_eq!(counters.packets.lost, missing.len() as u64);
    assert_eq!(counters.frames.expected(), 3, "{counters:?}");
}

#[test]
fn missing_slices_are_concealed_as_the_policy_says() {
    check(Scan::Progressive, "previous", &[], &[1; 6]);
    check(Scan::Progressive, "previous", &[0, 3], &[0, 1, 1, 0, 1, 1]);
    check(Scan::Progressive, "previous", &[5], &[1, 1, 1, 1, 1, 0]);
    check(Scan::Progressive, "previous", &[0, 1, 2, 3, 4, 5], &[]);
    check(Scan::Progressive, "interpolate", &[2], &[1; 6]);
    check(Scan::Progressive, "drop", &[2], &[]);
    // The lines of both fields take turns: a slice of a field is every second line of sixteen.
    check(Scan::Interlaced, "previous", &[0], &[0, 0, 1, 1, 1, 1]);
    check(Scan::SegmentedFrame, "previous", &[3], &[1; 6]);
}

#[test]
fn a_complete_frame_is_there_with_its_last_slice_and_an_incomplete_one_too() {
    let mut peer = Peer::new(Scan::Progressive);
    let mut assembler = peer.assembler(Concealment::Previous);
    for (frame, missing) in [(0, None), (1, Some(2))] {
        for (index, (head, octets)) in peer.frame().into_iter().enumerate() {
            assert!(assembler.poll_frame(at(frame, index as u64)).is_none());
            if Some(index) != missing {
                assembler.handle_slice(at(frame, index as u64), &head, &octets);
            }
        }
        assert_eq!(assembler.poll_timeout(), Instant::ZERO);
        let picture = assembler.poll_frame(at(frame, 5)).unwrap();
        assert_eq!(picture.concealed_lines.count(), missing.map_or(0, |_| LINES.into()));
    }
    assert_eq!(assembler.poll_timeout(), Instant::NEVER);
}

#[test]
fn a_frame_without_its_end_is_waited_for_until_its_patience_is_over() {
    let mut peer = Peer::new(Scan::Progressive);
    let mut assembler = peer.assembler(Concealment::Previous);
    for (index, (head, octets)) in peer.frame().into_iter().enumerate() {
        assembler.handle_slice(at(0, index as u64), &head, &octets);
    }
    assert!(assembler.poll_frame(at(0, 5)).is_some());
    let (head, octets) = peer.frame().swap_remove(0);
    assembler.handle_slice(at(1, 0), &head, &octets);
    let due = assembler.poll_timeout();
    let wait = due.since(at(1, 0));
    assert!(wait.abs_diff(2 * peer.format.frame_time()) < Duration::from_micros(1), "{wait:?}");
    assert!(assembler.poll_frame(Instant::from_nanos(due.as_nanos() - 1)).is_none());
    assert_eq!(lines(&assembler.poll_frame(due).unwrap())[..16], [[1; 8], [0; 8]].concat());
    // What comes now is late.
    let again = SliceHead { number: head.number + 1, first_line: 8, ..head };
    assert_eq!(assembler.handle_slice(due, &again, &octets), SliceArrival::Late);
    assert_eq!(assembler.counters().packets.late, 1);
}

#[test]
fn a_third_frame_ends_the_first_of_two_that_fill() {
    let mut peer = Peer::new(Scan::Progressive);
    let mut assembler = peer.assembler(Concealment::Flag);
    for (head, octets) in peer.frame() {
        assembler.handle_slice(at(0, 0), &head, &octets);
    }
    assert!(assembler.poll_frame(at(0, 0)).is_some());
    for frame in 1..4 {
        assert!(assembler.poll_frame(at(1, frame)).is_none(), "two frames fill");
        let (head, octets) = peer.frame().swap_remove(1);
        assembler.handle_slice(at(1, frame), &head, &octets);
    }
    let shown = lines(&assembler.poll_frame(at(1, 4)).unwrap());
    // The first octet of black is 128.
    assert_eq!(shown[..24], [[128; 8], [1; 8], [128; 8]].concat());
}

#[test]
fn samples_that_do_not_fit_are_refused_and_change_nothing() {
    let mut peer = Peer::new(Scan::Progressive);
    let mut assembler = peer.assembler(Concealment::Previous);
    let (head, octets) = peer.frame().swap_remove(0);
    let outside = [
        (SliceHead { first_line: HEIGHT - 7, ..head }, &octets[..]),
        (SliceHead { first_line: u16::MAX, ..head }, &octets[..]),
        (SliceHead { field: Field::Second, ..head }, &octets[..]),
        (head, &octets[1..]),
        (head, &[]),
    ];
    for (head, octets) in outside {
        assert_eq!(assembler.handle_slice(at(0, 0), &head, octets), SliceArrival::Refused);
    }
    assert_eq!(assembler.handle_slice(at(0, 0), &head, &octets), SliceArrival::Placed);
    let foreign = SliceHead { source: 2, number: 1, ..head };
    assert_eq!(assembler.handle_slice(at(0, 1), &foreign, &octets), SliceArrival::Refused);
    assert_eq!(assembler.handle_slice(at(0, 1), &head, &octets), SliceArrival::Duplicate);
    let counters = assembler.counters();
    assert_eq!((counters.refused.outside, counters.refused.foreign, counters.packets.expected), (5, 1, 1));
    // Another sender takes over when the first has been silent for a second.
    assert_eq!(assembler.handle_slice(at(40, 0), &foreign, &octets), SliceArrival::Placed);
}

/// What a simulated network did to a stream.
#[derive(Default)]
struct Truth {
    slices_sent: u64,
    slices_lost: BTreeSet<u64>,
    whole: u64,
    touched: u64,
    absent: u64,
}

#[test]
fn each_line_is_from_its_frame_or_the_one_presented_before_and_the_counts_are_the_networks() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let scan = [Scan::Progressive, Scan::Interlaced, Scan::SegmentedFrame][seed as usize % 3];
        let mut peer = Peer::new(scan);
        let mut assembler = peer.assembler(Concealment::Previous);
        let (mut truth, mut previous) = (Truth::default(), None::<ReceivedPicture>);
        let mut seen = 0;
        let loss = [0, 2, 10, 40][seed as usize / 3 % 4];
        for frame in 0..60 {
            let slices = peer.frame();
            // The first and the last frame come whole, so that both ends of the counts are known.
            let is_safe = frame == 0 || frame == 59;
            let (mut came, count) = (0, slices.len() as u64);
            for (index, (head, octets)) in slices.into_iter().enumerate() {
                truth.slices_sent += 1;
                if !is_safe && rng.below(100) < loss {
                    truth.slices_lost.insert(head.number);
                    continue;
                }
                came += 1;
                let now = at(frame, index as u64);
                assert_eq!(assembler.handle_slice(now, &head, &octets), SliceArrival::Placed, "seed {seed}");
                while let Some(picture) = assembler.poll_frame(now) {
                    check_lines(&picture, previous.as_ref(), seed);
                    seen += 1;
                    previous = Some(picture);
                }
            }
            match came {
                0 => truth.absent += 1,
                _ if came == count => truth.whole += 1,
                _ => truth.touched += 1,
            }
        }
        let counters = assembler.counters();
        assert!(counters.packets.are_consistent(), "seed {seed}: {counters:?}");
        assert_eq!(counters.packets.expected, truth.slices_sent, "seed {seed}");
        assert_eq!(counters.packets.lost, truth.slices_lost.len() as u64, "seed {seed}");
        let frames = counters.frames;
        assert_eq!(
            (frames.complete, frames.concealed, frames.lost),
            (truth.whole, truth.touched, truth.absent),
            "seed {seed}"
        );
        assert_eq!((frames.expected(), frames.complete + frames.concealed), (60, seen), "seed {seed}");
    }
}

#[track_caller]
fn check_lines(picture: &ReceivedPicture, previous: Option<&ReceivedPicture>, seed: u64) {
    let ticks = picture.timestamp.wrapping_sub(u32::MAX - 5000);
    let own = u8::try_from(ticks / FRAME).unwrap();
    let before = previous.map(lines);
    for (index, line) in lines(picture).into_iter().enumerate() {
        let expect = match &before {
            Some(before) if picture.concealed_lines.contains(index as u16) => before[index],
            _ => own,
        };
        assert_eq!(line, expect, "seed {seed}, frame {own}, line {index}");
    }
}
