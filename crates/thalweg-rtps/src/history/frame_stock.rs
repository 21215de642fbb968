//! Recycled frames and the buffers of their samples.

use std::collections::VecDeque;

use super::frame::Frame;
use crate::payload::{PayloadPool, SlabPool};

/// Memory that one writer's frames reuse, so that collecting samples allocates nothing in steady state.
#[derive(Debug)]
pub(super) struct FrameStock {
    spare: VecDeque<Box<Frame>>,
    /// Memory of their lists.
    spare_bytes: usize,
    /// Buffers of the size of present frames.
    buffers: SlabPool,
    /// Buffers of frames that were sent long before they were full.
    small: PayloadPool,
    /// Something is being collected: the newest frame of the history.
    open: bool,
}

/// Memory of the lists of frames kept for reuse.
const SPARE_BYTES_MAX: usize = 4 << 20;
/// Bytes of buffers kept: twice a window of 8 MiB.
const BUFFERS_BYTES: usize = 16 << 20;
/// Bytes that the pool of small buffers keeps in each size class.
const SMALL_BYTES: usize = 1 << 20;

impl Default for FrameStock {
    fn default() -> FrameStock {
        FrameStock {
            spare: VecDeque::new(),
            spare_bytes: 0,
            buffers: SlabPool::new(0, 0),
            small: PayloadPool::new(SMALL_BYTES),
            open: false,
        }
    }
}

impl FrameStock {
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// A frame to be collected, for at most `bytes` of samples.
    pub(super) fn open(&mut self, encapsulation: [u8; 4], bytes: usize) -> Box<Frame> {
        if self.buffers.slab_bytes() != bytes {
            self.buffers = SlabPool::new(bytes, (BUFFERS_BYTES / bytes.max(1)).max(2));
        }
        let mut frame = self.spare.pop_back().unwrap_or_else(|| Box::new(Frame::new()));
        self.spare_bytes = self.spare_bytes.saturating_sub(frame.list_bytes());
        frame.start(self.buffers.take_empty(), encapsulation);
        self.open = true;
        frame
    }

    /// The frame is complete: a frame that is mostly empty moves to a buffer of its own size. `is_kept`: for as long as the
    /// writer lives, so that its lists are cut to size as well.
    pub(super) fn seal(&mut self, frame: &mut Frame, is_kept: bool) {
        self.open = false;
        frame.bodies().remember_in(&mut self.buffers);
        if frame.bodies().len() * 2 <= self.buffers.slab_bytes() {
            let right_sized = self.small.copy(frame.bodies());
            frame.move_to(right_sized);
        }
        if is_kept {
            frame.shrink();
        }
    }

    /// Takes back an unneeded frame; `was_open`: it was still being collected.
    pub(super) fn recycle(&mut self, mut frame: Box<Frame>, was_open: bool) {
        if was_open {
            self.open = false;
            frame.bodies().remember_in(&mut self.buffers);
        }
        frame.release();
        if self.spare_bytes + frame.list_bytes() <= SPARE_BYTES_MAX {
            self.spare_bytes += frame.list_bytes();
            self.spare.push_back(frame);
        }
    }
}
