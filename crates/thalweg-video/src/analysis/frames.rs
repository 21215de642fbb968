//! Where frames begin: by their time stamps, and by the numbers of their packets.

use super::LEARNED_FRAMES;
use crate::format::{Field, Scan, VideoFormat};

/// The place of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketPlace {
    /// The frame, counted by time stamps from the first whole one.
    pub(super) frame: u64,
    /// The packet within its frame, counted from 0.
    pub(super) packet: u32,
    /// The packet among those with its time stamp: within its field where fields have time stamps of their own.
    pub(super) stamped: u32,
}

/// Finds the first packet of each frame.
#[derive(Clone, Debug)]
pub(super) struct FrameStarts {
    format: VideoFormat,
    /// The time stamp of the packet before.
    last: Option<u32>,
    current: Option<CurrentFrame>,
    frames: u64,
    irregular: u64,
    packets: Latest,
    ticks: Latest,
    /// Packets in a row whose time stamps lie far before the current frame.
    behind: u32,
}

/// The frame that comes in.
#[derive(Clone, Copy, Debug)]
struct CurrentFrame {
    index: u64,
    /// The number of its first packet, as far as it can be told.
    first: u64,
    timestamp: u32,
    /// Ticks since the first whole frame.
    ticks: u64,
    highest: u64,
}

impl FrameStarts {
    pub(super) fn new(format: VideoFormat) -> FrameStarts {
        FrameStarts {
            format,
            last: None,
            current: None,
            frames: 0,
            irregular: 0,
            packets: Latest::default(),
            ticks: Latest::default(),
            behind: 0,
        }
    }

    /// The sender's clock was set back, or what seemed to be its newest frame was none.
    pub(super) fn are_lost(&self) -> bool {
        self.behind >= BEHIND_PACKETS
    }

    pub(super) fn frames(&self) -> u64 {
        self.frames
    }

    pub(super) fn frames_irregular(&self) -> u64 {
        self.irregular
    }

    pub(super) fn frame_packets(&self) -> Option<u32> {
        self.packets.usual()
    }

    pub(super) fn frame_ticks(&self) -> Option<u32> {
        self.ticks.usual()
    }

    /// The place of the packet `number`, whose first piece is of `field`; `None` before the first whole frame, and for packets that
    /// came after their frame.
    pub(super) fn handle_packet(&mut self, number: u64, timestamp: u32, field: Field) -> Option<PacketPlace> {
        let before = self.last.replace(timestamp);
        let Some(current) = self.current else {
            // A frame begins where the time stamp changes, with its first field.
            let begins = before.is_some_and(|before| before != timestamp) && field == Field::First;
            if begins {
                self.begin(CurrentFrame { index: 0, first: number, timestamp, ticks: 0, highest: number });
            }
            return begins.then_some(PacketPlace { frame: 0, packet: 0, stamped: 0 });
        };
        let step = timestamp.wrapping_sub(current.timestamp) as i32;
        self.behind = if step < -BEHIND_TICKS { self.behind + 1 } else { 0 };
        if step < 0 {
            return None;
        }
        let is_second_field = step != 0 && self.is_second_field(step as u32);
        if step != 0 && !is_second_field {
            return Some(self.follow(current, number, timestamp, step as u32));
        }
        self.current = Some(CurrentFrame { highest: current.highest.max(number), ..current });
        let packet = u32::try_from(number.checked_sub(current.first)?).ok()?;
        let field_packets = self.packets.usual().unwrap_or_default() / 2;
        let stamped = if is_second_field { packet.saturating_sub(field_packets) } else { packet };
        Some(PacketPlace { frame: current.index, packet, stamped })
    }

    /// Whether a time stamp so many ticks after that of a frame is that of its second field.
    fn is_second_field(&self, step: u32) -> bool {
        let frame = self.format.rate().frame_ticks();
        self.format.scan() == Scan::Interlaced && step < frame - frame / 4
    }

    /// Begins the frame after the current one.
    fn follow(&mut self, current: CurrentFrame, number: u64, timestamp: u32, step: u32) -> PacketPlace {
        let ticks = current.ticks + u64::from(step);
        // Without a gap it begins here; otherwise where the current one would end.
        let predicted = self.packets.usual().map(|packets| current.first + u64::from(packets));
        let first = match predicted {
            Some(predicted) if number > current.highest + 1 && (current.highest + 1..=number).contains(&predicted) => {
                predicted
            }
            _ => number,
        };
        let packets = u32::try_from(first.saturating_sub(current.first)).unwrap_or(u32::MAX);
        self.irregular += u64::from(self.packets.usual().is_some_and(|usual| usual != packets));
        self.packets.push(packets);
        self.ticks.push(step);
        let index = self.index_of(ticks).max(current.index + 1);
        self.begin(CurrentFrame { index, first, timestamp, ticks, highest: number });
        let packet = u32::try_from(number.saturating_sub(first)).unwrap_or(u32::MAX);
        PacketPlace { frame: index, packet, stamped: packet }
    }

    fn begin(&mut self, frame: CurrentFrame) {
        self.current = Some(frame);
        self.frames += 1;
    }

    /// The frame that begins so many ticks after the first one, to the nearest.
    fn index_of(&self, ticks: u64) -> u64 {
        let rate = self.format.rate();
        let (numerator, denominator) = (u128::from(rate.numerator()), 90_000 * u128::from(rate.denominator()));
        let frames = (2 * u128::from(ticks) * numerator + denominator) / (2 * denominator);
        u64::try_from(frames).unwrap_or(u64::MAX - 1)
    }
}

/// The latest numbers, of which the most frequent one is usual.
#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    numbers: [u32; LEARNED_FRAMES],
    count: usize,
}

impl Latest {
    fn push(&mut self, number: u32) {
        self.numbers[self.count % LEARNED_FRAMES] = number;
        self.count += 1;
    }

    /// `None` until there are enough.
    fn usual(&self) -> Option<u32> {
        let frequency = |number: &u32| self.numbers.iter().filter(|other| *other == number).count();
        let usual = self.numbers.iter().copied().max_by_key(frequency);
        usual.filter(|_| self.count >= LEARNED_FRAMES)
    }
}

/// Ticks before the current frame at which a packet is late no more: a second.
const BEHIND_TICKS: i32 = 90_000;
/// Packets so far behind, and none other among them, after which the frames are looked for anew.
const BEHIND_PACKETS: u32 = 16;
