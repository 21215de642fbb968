//! Frames that were sent, kept for receivers that ask for packets again.

use std::collections::VecDeque;
use std::sync::Arc;

use thalweg_base::time::Instant;

/// Frames kept after they were sent, beside the one that is being sent: a receiver presents a frame two frame times
/// after its beginning and asks for nothing afterwards.
pub const FRAMES_KEPT: usize = 3;

/// A frame that is being sent or was sent.
#[derive(Debug)]
pub(super) struct SentFrame {
    pub(super) octets: Arc<[u8]>,
    first_sequence: u32,
    pub(super) timestamps: [u32; 2],
    /// Packets given out so far.
    pub(super) packets_sent: u32,
    /// When each packet was last sent again: [`Instant::ZERO`] for never, [`Instant::NEVER`] while it waits.
    again: Vec<Instant>,
}

impl SentFrame {
    pub(super) fn new(octets: Arc<[u8]>, first_sequence: u32, timestamps: [u32; 2]) -> SentFrame {
        SentFrame { octets, first_sequence, timestamps, packets_sent: 0, again: Vec::new() }
    }

    /// The number of packet `packet` of the frame.
    pub(super) fn sequence(&self, packet: usize) -> u32 {
        // A frame has at most twice PACKETS_MAX packets.
        self.first_sequence.wrapping_add(packet as u32)
    }

    /// Marks a packet as waiting; false if it waits already, or was sent again after whoever asked at `asked` did so.
    pub(super) fn mark_pending(&mut self, packet: usize, asked: Instant) -> bool {
        let again = &mut self.again[packet];
        let is_new = asked >= *again;
        if is_new {
            *again = Instant::NEVER;
        }
        is_new
    }

    /// Notes that a packet is sent again now.
    pub(super) fn mark_sent(&mut self, packet: usize, now: Instant) {
        self.again[packet] = now;
    }
}

/// The newest frames, the oldest first.
#[derive(Debug)]
pub(super) struct SentFrames {
    frames: VecDeque<SentFrame>,
    frame_packets: usize,
}

impl SentFrames {
    pub(super) fn new(frame_packets: usize) -> SentFrames {
        SentFrames { frames: VecDeque::with_capacity(FRAMES_KEPT + 1), frame_packets }
    }

    /// Adds the newest frame and lets go of the oldest.
    pub(super) fn push(&mut self, mut frame: SentFrame) {
        let oldest = if self.frames.len() > FRAMES_KEPT { self.frames.pop_front() } else { None };
        frame.again = oldest.map(|oldest| oldest.again).unwrap_or_default();
        frame.again.clear();
        frame.again.resize(self.frame_packets, Instant::ZERO);
        self.frames.push_back(frame);
    }

    pub(super) fn newest_mut(&mut self) -> &mut SentFrame {
        self.frames.back_mut().expect("a frame is being sent")
    }

    pub(super) fn get(&self, index: usize) -> &SentFrame {
        &self.frames[index]
    }

    pub(super) fn get_mut(&mut self, index: usize) -> &mut SentFrame {
        &mut self.frames[index]
    }

    /// The frame that a packet was sent in, and the packet's place there.
    pub(super) fn find(&self, sequence: u32) -> Option<(usize, usize)> {
        let places = self.frames.iter().map(|frame| (sequence.wrapping_sub(frame.first_sequence), frame.packets_sent));
        let found = places.enumerate().find(|(_, (place, sent))| place < sent);
        found.map(|(frame, (place, _))| (frame, place as usize))
    }
}
