//! The receiver of a picture in slices of whole lines, as samples of a topic carry it: slices and the time in, frames out.
//!
//! It has the slots, the concealment and the counters of [`VideoReceiver`](crate::receiver::VideoReceiver), so that the two can be
//! compared: a slice counts as a packet. Samples are larger than packets and are never asked for again here, since the
//! topic's reliability does that.

#[cfg(test)]
mod tests;

use std::time::Duration;

use thalweg_base::time::Instant;

use crate::format::{Field, Scan, VideoFormat};
use crate::origin::{Origin, Source};
use crate::receiver::playout::Playout;
use crate::receiver::presentation::Presentation;
use crate::receiver::sample_numbers::{Numbered, SampleNumbers};
use crate::receiver::slots::{NumberOrder, Slot, SlotPlace, Slots};
use crate::receiver::{Concealment, ReceivedPicture, ReceiverConfig, ReceiverCounters, ReceiverError};

/// Frames that fill at once, at most: slices of a writer come in their order, so that a third one ends the first.
pub const FRAMES_FILLING_MAX: usize = 2;

/// What an assembler is told once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssemblerConfig {
    /// The format of the frames.
    pub format: VideoFormat,
    /// What becomes of incomplete frames.
    pub concealment: Concealment,
    /// How long after the earliest arrival of a frame's first slice an incomplete frame is waited for: half a frame time
    /// to eight; two by default. A complete frame never waits.
    pub patience: Duration,
    /// How many incomplete frames are passed over at the beginning before one is presented with concealment. Default 10.
    pub start_frames_max: u16,
}

impl AssemblerConfig {
    /// The defaults for a format.
    pub fn new(format: VideoFormat) -> AssemblerConfig {
        let ReceiverConfig { concealment, playout, start_frames_max, .. } = ReceiverConfig::new(format);
        AssemblerConfig { format, concealment, patience: playout, start_frames_max }
    }

    pub(in crate::receiver) fn to_receiver(self) -> ReceiverConfig {
        let AssemblerConfig { format, concealment, patience, start_frames_max } = self;
        ReceiverConfig { concealment, playout: patience, start_frames_max, ..ReceiverConfig::new(format) }
    }
}

/// What a slice says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceHead {
    /// The number that a sender takes when it starts, as an SSRC.
    pub source: u32,
    /// Counts the slices of the sender.
    pub number: u64,
    /// Counts the frames of the sender.
    pub frame: u64,
    /// The time stamp of the frame, of 90 kHz.
    pub timestamp: u32,
    /// The field; the first one where lines are not interlaced.
    pub field: Field,
    /// The first line, counted in its field from 0.
    pub first_line: u16,
    /// Whether it ends its field.
    pub is_last: bool,
}

/// What became of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceArrival {
    /// Its lines are in their frame.
    Placed,
    /// It came before.
    Duplicate,
    /// Its frame is gone.
    Late,
    /// It counts, and its place is not known yet.
    Unplaced,
    /// It is of another sender, or outside the picture.
    Refused,
}

/// Makes frames of slices.
#[derive(Debug)]
pub struct FrameAssembler {
    format: VideoFormat,
    source: Source,
    numbers: SampleNumbers,
    slots: Slots,
    playout: Playout,
    presentation: Presentation,
    /// The newest time stamp of which the last slice came: nothing more comes of it.
    ended: Option<i64>,
    is_finished: bool,
    counters: ReceiverCounters,
}

impl FrameAssembler {
    /// An assembler of one stream.
    ///
    /// # Errors
    ///
    /// The patience is outside its range.
    pub fn new(config: AssemblerConfig) -> Result<FrameAssembler, ReceiverError> {
        let receiver = config.to_receiver();
        receiver.check()?;
        Ok(FrameAssembler {
            format: config.format,
            source: Source::new(None),
            numbers: SampleNumbers::default(),
            slots: Slots::new(config.format, FRAMES_FILLING_MAX),
            playout: Playout::new(config.patience),
            presentation: Presentation::new(&receiver),
            ended: None,
            is_finished: false,
            counters: ReceiverCounters::default(),
        })
    }

    /// What became of slices and frames: packets are slices.
    pub fn counters(&self) -> ReceiverCounters {
        self.counters
    }

    /// By how many millionths the sender's frame time is longer than it should be by our clock; `None` in the first 5 s.
    pub fn drift_ppm(&self) -> Option<f64> {
        self.playout.drift_ppm()
    }

    /// Takes the lines of a slice.
    pub fn handle_slice(&mut self, now: Instant, head: &SliceHead, octets: &[u8]) -> SliceArrival {
        let Some(lines) = self.locate(head, octets.len()) else {
            self.counters.refused.outside += 1;
            return SliceArrival::Refused;
        };
        match self.source.judge(now, head.source) {
            Origin::Own => {}
            Origin::Successor => self.begin_anew(),
            Origin::Foreign => {
                self.counters.refused.foreign += 1;
                return SliceArrival::Refused;
            }
        }
        match self.numbers.insert(head.number, &mut self.counters.packets) {
            Numbered::New => {}
            Numbered::Again => return SliceArrival::Duplicate,
            Numbered::Doubted => return SliceArrival::Unplaced,
        }
        let index = match self.slot_of(now, head) {
            Ok(index) => index,
            Err(arrival) => {
                let packets = &mut self.counters.packets;
                *(if arrival == SliceArrival::Late { &mut packets.late } else { &mut packets.unplaced }) += 1;
                return arrival;
            }
        };
        let slot = self.slots.get_mut(index);
        slot.add_lines(now, lines, octets, self.format);
        let (first, last) = slot.numbers.unwrap_or((head.frame, head.frame));
        slot.numbers = Some((first.min(head.frame), last.max(head.frame)));
        let ends_frame = head.is_last && (self.format.scan() == Scan::Progressive || head.field == Field::Second);
        if ends_frame {
            let timestamp = slot.timestamp;
            self.ended = Some(self.ended.map_or(timestamp, |ended| ended.max(timestamp)));
        }
        SliceArrival::Placed
    }

    /// Ends the stream: every frame is due.
    pub fn finish(&mut self) {
        self.is_finished = true;
    }

    /// Gives out the next frame that is complete or whose time has come; call again until `None`.
    pub fn poll_frame(&mut self, now: Instant) -> Option<ReceivedPicture> {
        while !self.presentation.has_ready() && self.oldest_deadline().is_some_and(|deadline| deadline <= now) {
            self.close_oldest();
        }
        self.presentation.pop(&mut self.counters.frames)
    }

    /// When [`FrameAssembler::poll_frame`] has something; [`Instant::NEVER`] if nothing is expected without further slices.
    pub fn poll_timeout(&self) -> Instant {
        if self.presentation.has_ready() {
            return Instant::ZERO;
        }
        self.oldest_deadline().unwrap_or(Instant::NEVER)
    }

    /// The lines of the frame that a slice has. `None` for one that is not of whole lines or reaches beyond its field.
    fn locate(&self, head: &SliceHead, octets: usize) -> Option<SliceLines> {
        let lines = octets / self.format.line_octets();
        let is_whole = lines > 0 && octets.is_multiple_of(self.format.line_octets());
        let fits = usize::from(head.first_line) + lines <= usize::from(self.format.field_height());
        let is_field = head.field == Field::First || self.format.scan() != Scan::Progressive;
        (is_whole && fits && is_field).then(|| SliceLines {
            first: self.format.frame_line(head.field, head.first_line).into(),
            step: self.format.scan().fields().into(),
        })
    }

    /// The slot of a frame, opened if it is a new one.
    fn slot_of(&mut self, now: Instant, head: &SliceHead) -> Result<usize, SliceArrival> {
        // Samples come in the order of their numbers.
        let (frame, order) = ((head.timestamp, head.field), NumberOrder::Newest);
        let mut found = self.slots.find(now, frame, order);
        if found == Ok(SlotPlace::Jump) {
            self.begin_at_another_time();
            found = self.slots.find(now, frame, order);
        }
        let (first, mut place) = match found {
            Ok(SlotPlace::Slot(index)) => return Ok(index),
            Ok(SlotPlace::Late) => return Err(SliceArrival::Late),
            Ok(SlotPlace::Unknown | SlotPlace::Jump) => return Err(SliceArrival::Unplaced),
            Err(new) => new,
        };
        if self.slots.is_full() {
            if place == 0 {
                return Err(SliceArrival::Late);
            }
            self.close_oldest();
            place -= 1;
        }
        self.counters.frames.before_start += u64::from(self.slots.take_orphan(first));
        self.slots.open(now, first, place);
        self.playout.record(now, first);
        Ok(place)
    }

    /// Another sender takes the place of the one before.
    fn begin_anew(&mut self) {
        self.numbers.reset();
        self.presentation.forget_pictures();
        self.begin_at_another_time();
    }

    /// The sender's clock has jumped: frames and times before it mean nothing any more.
    fn begin_at_another_time(&mut self) {
        self.counters.frames.discarded += self.slots.reset();
        self.playout.reset();
        self.ended = None;
        self.presentation.begin_anew();
    }

    fn oldest_deadline(&self) -> Option<Instant> {
        let oldest = self.slots.oldest()?;
        let has_ended = self.ended.is_some_and(|ended| oldest.timestamp <= ended);
        if self.is_finished || has_ended || oldest.completed.is_some() {
            return Some(Instant::ZERO);
        }
        self.playout.deadline(oldest.timestamp)
    }

    /// Takes the oldest frame out of its slot.
    fn close_oldest(&mut self) {
        let Some(slot) = self.slots.close_oldest() else { return };
        self.count_absent(&slot);
        let deadline = self.playout.deadline(slot.timestamp).unwrap_or_default();
        self.presentation.push(slot, deadline, &mut self.slots, &mut self.counters.frames);
    }

    /// Counts the frames between the last one and this one of which nothing came.
    fn count_absent(&mut self, slot: &Slot) {
        let Some((timestamp, frame)) = self.presentation.follow(slot) else { return };
        let ticks = i64::from(self.format.rate().frame_ticks());
        let absent = u64::try_from((slot.timestamp - timestamp + ticks / 2) / ticks - 1).unwrap_or(0);
        // The numbers are believed as far as time allows.
        let first = slot.numbers.map_or(frame, |(first, _)| first);
        let lost = first.saturating_sub(frame).saturating_sub(1).min(absent);
        self.counters.frames.lost += lost;
        self.counters.frames.skipped += absent - lost;
    }
}

/// Lines of a frame.
#[derive(Clone, Copy, Debug)]
pub(in crate::receiver) struct SliceLines {
    pub(in crate::receiver) first: usize,
    /// 2 in a field.
    pub(in crate::receiver) step: usize,
}
