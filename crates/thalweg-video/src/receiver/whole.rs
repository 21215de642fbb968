//! The receiver of a picture in whole frames, as samples of a topic carry it: tells which frames are presented.
//!
//! The frames stay where they are; only their heads come here. Counters and times are those of
//! [`FrameAssembler`](super::FrameAssembler); a frame counts as a packet too.

use thalweg_base::time::Instant;

use super::playout::Playout;
use super::sample_numbers::{Numbered, SampleNumbers};
use super::{AssemblerConfig, ReceiverCounters, ReceiverError};
use crate::format::VideoFormat;
use crate::origin::{Origin, Source};

/// A time stamp at most so far from the last one belongs to the same clock: a second, in ticks.
const FAR_TICKS: i64 = 90_000;

/// What a frame says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// The number that a sender takes when it starts, as an SSRC.
    pub source: u32,
    /// Counts the frames of the sender.
    pub frame: u64,
    /// The time stamp, of 90 kHz.
    pub timestamp: u32,
}

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameArrival {
    /// It is presented; it is of use until its deadline.
    Present {
        /// The earliest arrival, its time since then, and the patience.
        deadline: Instant,
    },
    /// It came before, or one after it did.
    Duplicate,
    /// It came after its time.
    Late,
    /// Its number is far from all others, and the next one has to confirm it.
    Unplaced,
    /// It is of another sender, or has not the octets of a frame.
    Refused,
}

/// Tells which frames are presented.
#[derive(Debug)]
pub struct WholeFrames {
    format: VideoFormat,
    source: Source,
    numbers: SampleNumbers,
    playout: Playout,
    /// The time stamp of the last frame that came, counted on beyond 32 bits, and its number.
    last: Option<(i64, u64)>,
    counters: ReceiverCounters,
}

impl WholeFrames {
    /// The receiver of one stream; its concealment and start do not matter, since a frame comes whole or not at all.
    ///
    /// # Errors
    ///
    /// The patience is outside its range.
    pub fn new(config: AssemblerConfig) -> Result<WholeFrames, ReceiverError> {
        config.to_receiver().check()?;
        Ok(WholeFrames {
            format: config.format,
            source: Source::new(None),
            numbers: SampleNumbers::default(),
            playout: Playout::new(config.patience),
            last: None,
            counters: ReceiverCounters::default(),
        })
    }

    /// What became of frames.
    pub fn counters(&self) -> ReceiverCounters {
        self.counters
    }

    /// By how many millionths the sender's frame time is longer than it should be by our clock; `None` in the first 5 s.
    pub fn drift_ppm(&self) -> Option<f64> {
        self.playout.drift_ppm()
    }

    /// Takes a frame of so many octets that came at `now`.
    pub fn handle_frame(&mut self, now: Instant, head: &FrameHead, octets: usize) -> FrameArrival {
        if octets != self.format.frame_octets() {
            self.counters.refused.outside += 1;
            return FrameArrival::Refused;
        }
        match self.source.judge(now, head.source) {
            Origin::Own => {}
            Origin::Successor => self.begin_anew(),
            Origin::Foreign => {
                self.counters.refused.foreign += 1;
                return FrameArrival::Refused;
            }
        }
        match self.numbers.insert(head.frame, &mut self.counters.packets) {
            Numbered::New => {}
            Numbered::Again => return FrameArrival::Duplicate,
            Numbered::Doubted => return FrameArrival::Unplaced,
        }
        let timestamp = self.follow(head);
        self.playout.record(now, timestamp);
        let deadline = self.playout.deadline(timestamp).unwrap_or(now);
        if deadline < now {
            self.counters.packets.late += 1;
            self.counters.frames.discarded += 1;
            return FrameArrival::Late;
        }
        self.counters.frames.complete += 1;
        FrameArrival::Present { deadline }
    }

    fn begin_anew(&mut self) {
        self.numbers.reset();
        self.playout.reset();
        self.last = None;
    }

    /// The time stamp counted on beyond 32 bits; counts the frames between the last one and this one.
    fn follow(&mut self, head: &FrameHead) -> i64 {
        // Room below, since the clock may jump back.
        let first = (1 << 32) | i64::from(head.timestamp);
        let Some((last, frame)) = self.last else {
            self.last = Some((first, head.frame));
            return first;
        };
        // The nearest time stamp with these 32 bits.
        let distance = i64::from(head.timestamp.wrapping_sub(last as u32) as i32);
        if distance.abs() > FAR_TICKS {
            // The sender's clock has jumped, or nothing came for long: times before mean nothing any more.
            self.playout.reset();
        }
        let ticks = i64::from(self.format.rate().frame_ticks());
        let absent = u64::try_from((distance + ticks / 2).div_euclid(ticks) - 1).unwrap_or(0);
        let lost = head.frame.saturating_sub(frame).saturating_sub(1).min(absent);
        self.counters.frames.lost += lost;
        self.counters.frames.skipped += absent - lost;
        self.last = Some((last.saturating_add(distance), head.frame));
        last.saturating_add(distance)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::format::{FrameRate, PixelFormat, Scan};

    const OCTETS: usize = 4 * 2 * 4;

    fn frames() -> WholeFrames {
        let size = (8, 2);
        let format = VideoFormat::new(PixelFormat::Yuv422Bits8, size, FrameRate::PAL, Scan::Progressive).unwrap();
        assert_eq!(format.frame_octets(), OCTETS);
        WholeFrames::new(AssemblerConfig::new(format)).unwrap()
    }

    fn head(frame: u64, ticks: u64) -> FrameHead {
        FrameHead { source: 1, frame, timestamp: (u64::from(u32::MAX) - 9000 + 3600 * ticks) as u32 }
    }

    /// Frames as (number, frame time, milliseconds after their time) come in a row.
    #[track_caller]
    fn check(arrivals: &[(u64, u64, u64)], expect: &str) {
        let mut frames = frames();
        for (frame, time, delay) in arrivals {
            let now = Instant::ZERO + Duration::from_millis(1000 + 40 * time + delay);
            frames.handle_frame(now, &head(*frame, *time), OCTETS);
        }
        let counters = frames.counters();
        assert!(counters.packets.are_consistent());
        let told = counters.frames;
        let text = format!(
            "{} complete, {} lost, {} skipped, {} late, {} again",
            told.complete, told.lost, told.skipped, counters.packets.late, counters.packets.duplicates
        );
        assert_eq!(text, expect, "{arrivals:?}");
    }

    #[test]
    fn each_frame_time_has_one_fate() {
        check(&[(0, 0, 0), (1, 1, 0), (2, 2, 5)], "3 complete, 0 lost, 0 skipped, 0 late, 0 again");
        check(&[(0, 0, 0), (3, 3, 0), (4, 4, 0)], "3 complete, 2 lost, 0 skipped, 0 late, 0 again");
        check(&[(0, 0, 0), (1, 3, 0), (3, 5, 0)], "3 complete, 1 lost, 2 skipped, 0 late, 0 again");
        check(&[(0, 0, 0), (1, 1, 79), (2, 2, 81)], "2 complete, 0 lost, 0 skipped, 1 late, 0 again");
        check(&[(5, 0, 0), (5, 0, 1), (4, 0, 1)], "1 complete, 0 lost, 0 skipped, 0 late, 2 again");
    }

    #[test]
    fn a_stream_goes_on_after_a_long_silence_and_after_a_restart() {
        check(&[(0, 0, 0), (60, 60, 300), (61, 61, 300)], "3 complete, 59 lost, 0 skipped, 0 late, 0 again");
        let mut frames = frames();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        assert!(matches!(frames.handle_frame(at(0), &head(9, 9), OCTETS), FrameArrival::Present { .. }));
        let other = FrameHead { source: 2, ..head(0, 500) };
        assert_eq!(frames.handle_frame(at(40), &other, OCTETS), FrameArrival::Refused);
        let due = FrameArrival::Present { deadline: at(1080) };
        assert_eq!(frames.handle_frame(at(1000), &other, OCTETS), due);
        assert_eq!(frames.handle_frame(at(1040), &head(10, 501), OCTETS - 1), FrameArrival::Refused);
        let counters = frames.counters();
        assert_eq!((counters.frames.lost, counters.refused.foreign, counters.refused.outside), (0, 1, 1));
    }
}
