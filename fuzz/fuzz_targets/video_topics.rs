//! Frames and slices of topics: any bytes as samples, and an assembler of slices under any heads at any times. No panic,
//! octets within their sample, what is written again reads the same, counters with their law, frames of the right size,
//! and it comes to rest.

#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use thalweg_base::time::Instant;
use thalweg_video::format::{Field, PixelFormat, Scan, VideoFormat};
use thalweg_video::receiver::{
    AssemblerConfig, Concealment, FRAMES_FILLING_MAX, FrameAssembler, FrameHead, SliceHead, WholeFrames,
};
use thalweg_video::topics::{FrameWords, SliceWords};

/// Frames that come at once: those that fill, and those that wait.
const PICTURES_MAX: usize = FRAMES_FILLING_MAX + 2;

fn check_samples(payload: &[u8]) {
    if let Some((words, range)) = FrameWords::parse(payload) {
        let mut again = Vec::new();
        words.append_head(range.len(), &mut again);
        again.extend_from_slice(&payload[range.clone()]);
        let (same, octets) = FrameWords::parse(&again).expect("what is written is read");
        assert_eq!((same, &again[octets]), (words, &payload[range]));
        _ = VideoFormat::try_from(words.format);
    }
    if let Some((words, range)) = SliceWords::parse(payload) {
        let mut again = Vec::new();
        words.append_head(range.len(), &mut again);
        again.extend_from_slice(&payload[range.clone()]);
        let (same, octets) = SliceWords::parse(&again).expect("what is written is read");
        assert_eq!((same, &again[octets]), (words, &payload[range]));
    }
}

struct World {
    assembler: FrameAssembler,
    frames: WholeFrames,
    format: VideoFormat,
    now: Instant,
    /// The head of the next genuine slice.
    head: SliceHead,
}

impl World {
    fn new(choice: [u8; 2]) -> World {
        let scan = [Scan::Progressive, Scan::Interlaced, Scan::SegmentedFrame][usize::from(choice[0]) % 3];
        let pixels = PixelFormat::ALL[usize::from(choice[0]) / 3 % 3];
        let rate = "30000/1001".parse().expect("a rate");
        let format = VideoFormat::new(pixels, (4, 12), rate, scan).expect("a format");
        let mut config = AssemblerConfig::new(format);
        config.concealment = [Concealment::Previous, Concealment::Interpolate, Concealment::Flag, Concealment::Drop]
            [usize::from(choice[1]) % 4];
        config.patience = format.frame_time() * u32::from(choice[1] / 4 % 8 + 1);
        let head = SliceHead {
            source: 1,
            number: 0,
            frame: 0,
            timestamp: u32::MAX - 9000,
            field: Field::First,
            first_line: 0,
            is_last: false,
        };
        World {
            assembler: FrameAssembler::new(config).expect("an assembler"),
            frames: WholeFrames::new(config).expect("a receiver"),
            format,
            now: Instant::from_nanos(1 << 40),
            head,
        }
    }

    /// Sends the next slice of three lines, unless it is lost.
    fn send(&mut self, value: u8) {
        let lines = self.format.field_height().min(3);
        let end = self.head.first_line + lines;
        self.head.is_last = end >= self.format.field_height();
        if value % 4 > 0 {
            let octets = vec![value; usize::from(lines) * self.format.line_octets()];
            self.assembler.handle_slice(self.now, &self.head, &octets);
        }
        self.head.number += 1;
        match (self.head.is_last, self.head.field, self.format.scan()) {
            (false, ..) => self.head.first_line = end,
            (true, Field::First, Scan::Interlaced | Scan::SegmentedFrame) => {
                (self.head.field, self.head.first_line) = (Field::Second, 0);
            }
            (true, ..) => {
                let whole = FrameHead { source: 1, frame: self.head.frame, timestamp: self.head.timestamp };
                self.frames.handle_frame(self.now, &whole, self.format.frame_octets());
                (self.head.field, self.head.first_line) = (Field::First, 0);
                self.head.frame += 1;
                self.head.timestamp = self.head.timestamp.wrapping_add(3003);
                self.now += self.format.frame_time();
            }
        }
    }

    /// A head of any numbers, and octets of any length.
    fn disturb(&mut self, words: [u8; 16], octets: &[u8]) {
        let wide = u64::from_le_bytes([words[0], words[1], words[2], words[3], words[4], words[5], words[6], words[7]]);
        let is_near = words[15] & 1 == 0;
        let head = SliceHead {
            source: u32::from(words[8] % 3),
            number: if is_near { self.head.number.wrapping_add(u64::from(words[0])) } else { wide },
            frame: if is_near { self.head.frame.wrapping_add(u64::from(words[1])) } else { wide },
            timestamp: self.head.timestamp.wrapping_add(if is_near { u32::from(words[2]) * 3003 } else { wide as u32 }),
            field: if words[9] & 1 == 0 { Field::First } else { Field::Second },
            first_line: u16::from_le_bytes([words[10], words[11] & words[12]]),
            is_last: words[13] & 1 == 1,
        };
        self.assembler.handle_slice(self.now, &head, octets);
        let whole = FrameHead { source: head.source, frame: head.frame, timestamp: head.timestamp };
        self.frames.handle_frame(
            self.now,
            &whole,
            if words[14] & 1 == 0 { self.format.frame_octets() } else { octets.len() },
        );
    }

    fn settle(&mut self) {
        let mut pictures = 0;
        while let Some(picture) = self.assembler.poll_frame(self.now) {
            assert_eq!(picture.octets.len(), self.format.frame_octets());
            assert_eq!(picture.is_complete(), picture.concealed_lines.count() == 0);
            pictures += 1;
        }
        assert!(pictures <= PICTURES_MAX, "{pictures} frames at once");
        assert!(self.assembler.poll_timeout() > self.now, "nothing is due that was not given out");
        for counters in [self.assembler.counters(), self.frames.counters()] {
            assert!(counters.packets.are_consistent(), "{counters:?}");
        }
    }
}

fuzz_target!(|input: &[u8]| {
    check_samples(input);
    let Some((choice, mut steps)) = input.split_first_chunk() else { return };
    let mut world = World::new(*choice);
    while let Some(([kind, value], rest)) = steps.split_first_chunk() {
        steps = rest;
        match kind % 4 {
            0 => world.now += Duration::from_micros(u64::from(*value).pow(3)),
            1 | 2 => world.send(*value),
            _ => {
                let Some((words, rest)) = steps.split_first_chunk() else { return };
                let lines = vec![*value; usize::from(*value % 16) * world.format.line_octets()];
                let (octets, rest) =
                    if *value & 1 == 0 { (&lines[..], rest) } else { rest.split_at(rest.len().min(99)) };
                steps = rest;
                world.disturb(*words, octets);
            }
        }
        world.settle();
    }
    world.assembler.finish();
    world.settle();
    assert_eq!(world.assembler.poll_timeout(), Instant::NEVER, "it comes to rest");
});
