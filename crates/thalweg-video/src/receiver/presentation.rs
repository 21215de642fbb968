//! Frames at their times: complete, concealed or passed over.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use thalweg_base::time::Instant;

use super::slots::{Slot, Slots};
use super::{Concealment, FrameCounters, LineSet, PictureOctets, ReceiverConfig, conceal};

/// Frames that wait to be fetched because newer ones needed their slots: the driver has not asked for them in time.
const READY_MAX: usize = 2;

/// A frame at its time.
#[derive(Clone, Debug)]
pub struct ReceivedPicture {
    /// Its lines from top to bottom. Let go of it to have the memory used again.
    pub octets: PictureOctets,
    /// The time stamp of the frame, or of its first field.
    pub timestamp: u32,
    /// Lines of which at least one pixel is not from this frame; empty for a complete one.
    pub concealed_lines: LineSet,
    /// Pixel groups that are not from this frame.
    pub concealed_groups: usize,
    /// When the first of its packets came.
    pub first_arrival: Instant,
    /// When its last missing pixel came.
    pub completed: Option<Instant>,
    /// When it was due.
    pub deadline: Instant,
}

impl ReceivedPicture {
    /// Whether every pixel is from this frame.
    pub fn is_complete(&self) -> bool {
        self.concealed_groups == 0
    }

    /// The time from the first packet to the last one that was missing; `None` for an incomplete frame.
    pub fn latency(&self) -> Option<Duration> {
        Some(self.completed?.since(self.first_arrival))
    }
}

/// What was presented so far, and what waits to be fetched.
#[derive(Debug)]
pub(super) struct Presentation {
    concealment: Concealment,
    start_frames_max: u16,
    ready: VecDeque<ReceivedPicture>,
    previous: Option<Arc<[u8]>>,
    has_started: bool,
    /// Incomplete frames that were passed over at the beginning.
    passed_over: u16,
    /// The last frame that left: its time stamp and its highest number.
    last: Option<(i64, u64)>,
}

impl Presentation {
    pub(super) fn new(config: &ReceiverConfig) -> Presentation {
        Presentation {
            concealment: config.concealment,
            start_frames_max: config.start_frames_max,
            ready: VecDeque::with_capacity(READY_MAX + 1),
            previous: None,
            has_started: false,
            passed_over: 0,
            last: None,
        }
    }

    /// The frame before `slot` that left, with its highest number; `slot` is the last one from now on.
    pub(super) fn follow(&mut self, slot: &Slot) -> Option<(i64, u64)> {
        let before = self.last;
        let highest = slot.numbers.map(|(_, highest)| highest).or(before.map(|(_, highest)| highest));
        self.last = Some((slot.timestamp, highest.unwrap_or_default()));
        before
    }

    /// The highest number of the last frame that left; `None` before any.
    pub(super) fn highest(&self) -> Option<u64> {
        self.last.map(|(_, highest)| highest)
    }

    /// Makes a frame ready that leaves its slot, or passes it over. Its memory goes back to `slots`.
    pub(super) fn push(&mut self, mut slot: Slot, deadline: Instant, slots: &mut Slots, frames: &mut FrameCounters) {
        let missing = slot.coverage.missing();
        if !self.admit(missing, frames) {
            slots.retire(slot.octets, slot.coverage);
            return;
        }
        let mut concealed_lines = LineSet::default();
        if missing > 0 {
            let octets = Arc::get_mut(&mut slot.octets).expect("a slot's memory is its own");
            let previous = self.previous.as_deref();
            concealed_lines = conceal::conceal(self.concealment, slots.format(), octets, &slot.coverage, previous);
        }
        self.previous = Some(slot.octets.clone());
        slots.retire(slot.octets.clone(), slot.coverage);
        if self.ready.len() == READY_MAX {
            self.ready.pop_front();
            frames.discarded += 1;
        }
        self.ready.push_back(ReceivedPicture {
            octets: slot.octets.into(),
            // The clock wraps.
            timestamp: slot.timestamp as u32,
            concealed_lines,
            concealed_groups: missing,
            first_arrival: slot.first_arrival,
            completed: slot.completed,
            deadline,
        });
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(super) fn pop(&mut self, frames: &mut FrameCounters) -> Option<ReceivedPicture> {
        let picture = self.ready.pop_front()?;
        *(if picture.is_complete() { &mut frames.complete } else { &mut frames.concealed }) += 1;
        Some(picture)
    }

    /// Waits for a complete frame again; frames that are ready stay.
    pub(super) fn begin_anew(&mut self) {
        (self.has_started, self.passed_over, self.last) = (false, 0, None);
    }

    /// Forgets the pictures of another sender.
    pub(super) fn forget_pictures(&mut self) {
        self.previous = None;
    }

    /// Decides whether a frame with so many missing pixel groups is presented; counts those that are not.
    fn admit(&mut self, missing: usize, frames: &mut FrameCounters) -> bool {
        if missing == 0 {
            self.has_started = true;
            return true;
        }
        let drops = self.concealment == Concealment::Drop;
        if self.has_started {
            frames.dropped += u64::from(drops);
            return !drops;
        }
        if drops || self.passed_over < self.start_frames_max {
            self.passed_over = self.passed_over.saturating_add(1);
            frames.before_start += 1;
            return false;
        }
        self.has_started = true;
        frames.started_incomplete += 1;
        true
    }
}
