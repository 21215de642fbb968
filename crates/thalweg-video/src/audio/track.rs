//! The samples that wait to be played, by their place in time.

use super::config::AudioConcealment;

/// The longest gap that repetition fills, in samples of each channel: 10 ms. Longer repetition sounds like a tone.
const REPEATED_FRAMES_MAX: u64 = 480;

/// A ring of samples of all channels, where a late packet finds its place and a missing one leaves a gap.
#[derive(Clone, Debug)]
pub(super) struct Track {
    channels: usize,
    samples: Vec<i32>,
    is_there: Vec<bool>,
    /// How many of them are there.
    waiting: u64,
    /// The next sample to be played.
    next: i64,
    /// Samples concealed one after the other.
    gap: u64,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) placed: usize,
    pub(super) duplicate: usize,
    pub(super) late: usize,
}

impl Track {
    /// A track that holds `capacity` samples of each channel.
    pub(super) fn new(channels: usize, capacity: usize) -> Track {
        let (samples, is_there) = (vec![0; capacity * channels], vec![false; capacity]);
        Track { channels, samples, is_there, waiting: 0, next: 0, gap: 0 }
    }

    pub(super) fn next(&self) -> i64 {
        self.next
    }

    /// Begins anew at a sample; returns how many samples waited.
    pub(super) fn restart(&mut self, next: i64) -> u64 {
        self.is_there.fill(false);
        (self.next, self.gap) = (next, 0);
        // What repetition would read; a jump is no reason to go through the whole ring.
        for frame in next - REPEATED_FRAMES_MAX as i64..next {
            let slot = self.slot(frame);
            self.samples[slot * self.channels..][..self.channels].fill(0);
        }
        std::mem::take(&mut self.waiting)
    }

    /// How many samples wait to be played.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Whether a packet of so many samples fits before the track is full; a late one does.
    pub(super) fn fits(&self, first: i64, frames: usize) -> bool {
        let capacity = self.is_there.len() as i64;
        let end = first.saturating_add(frames as i64);
        // Repetition reads what was played last.
        frames as i64 <= capacity / 2 && end <= self.next.saturating_add(capacity / 2) && end > self.next - capacity
    }

    /// Puts samples in their places; those that are played or there already stay.
    pub(super) fn place(&mut self, first: i64, mut samples: impl Iterator<Item = i32>, frames: usize) -> Placed {
        let mut placed = Placed::default();
        for frame in (first..).take(frames) {
            let slot = self.slot(frame);
            let is_late = frame < self.next;
            let is_new = !is_late && !self.is_there[slot];
            for channel in 0..self.channels {
                let Some(sample) = samples.next() else { return placed };
                if is_new {
                    self.samples[slot * self.channels + channel] = sample;
                }
            }
            self.is_there[slot] |= is_new;
            self.waiting += u64::from(is_new);
            match (is_late, is_new) {
                (true, _) => placed.late += 1,
                (_, true) => placed.placed += 1,
                (_, false) => placed.duplicate += 1,
            }
        }
        placed
    }

    /// Appends the next samples to `out`, with gaps concealed; returns how many of each channel were.
    pub(super) fn play(&mut self, frames: usize, concealment: AudioConcealment, out: &mut Vec<i32>) -> u64 {
        let mut concealed = 0;
        for _ in 0..frames {
            let slot = self.slot(self.next);
            if std::mem::take(&mut self.is_there[slot]) {
                self.gap = 0;
                self.waiting -= 1;
            } else {
                concealed += 1;
                self.gap += 1;
                self.conceal(slot, frames, concealment);
            }
            out.extend_from_slice(&self.samples[slot * self.channels..][..self.channels]);
            self.next += 1;
        }
        concealed
    }

    /// Passes over samples without playing them; returns how many of those were there.
    pub(super) fn skip(&mut self, frames: i64) -> u64 {
        let mut skipped = 0;
        for frame in (self.next..).take(frames.clamp(0, self.is_there.len() as i64) as usize) {
            let slot = self.slot(frame);
            skipped += u64::from(std::mem::take(&mut self.is_there[slot]));
        }
        self.next += frames.max(0);
        self.waiting -= skipped;
        skipped
    }

    /// Fills one place: with silence, or with what was played a block before.
    fn conceal(&mut self, slot: usize, frames: usize, concealment: AudioConcealment) {
        let before = self.slot(self.next - frames as i64);
        let is_repeated = concealment == AudioConcealment::Repeat && self.gap <= REPEATED_FRAMES_MAX;
        for channel in 0..self.channels {
            let sample = if is_repeated { self.samples[before * self.channels + channel] } else { 0 };
            self.samples[slot * self.channels + channel] = sample;
        }
    }

    fn slot(&self, frame: i64) -> usize {
        frame.rem_euclid(self.is_there.len() as i64) as usize
    }
}
