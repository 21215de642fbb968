//! Frames that fill, each in a slot.

use std::collections::VecDeque;
use std::sync::Arc;

use thalweg_base::time::Instant;
use thalweg_transport::memory;

use super::assembler::SliceLines;
use super::coverage::Coverage;
use super::{CREDIBLE_PACKETS, FramePiece};
use crate::format::{Field, Scan, VideoFormat};
use crate::rfc4175::VideoPayload;

/// Buffers that are remembered at most while the user holds them; what is held beyond is allocated anew.
const BUFFERS_MAX: usize = 8;
/// A time stamp at most so far from the newest one is believed at once, or so far beyond the time that has passed since: a
/// second, in ticks.
const FAR_TICKS: i64 = 90_000;
/// Packets in a row from farther away, or from before frames that are gone, that show a jump of the sender's clock.
const JUMP_PACKETS: u32 = 16;

/// A frame that fills.
#[derive(Debug)]
pub(super) struct Slot {
    /// The time stamp of the first field, counted on beyond 32 bits.
    pub(super) timestamp: i64,
    /// Alone in the hands of this slot.
    pub(super) octets: Arc<[u8]>,
    pub(super) coverage: Coverage,
    pub(super) first_arrival: Instant,
    pub(super) completed: Option<Instant>,
    /// Packets placed.
    pub(super) packets: u32,
    /// The lowest and the highest number of a packet placed; `None` while no number is believed.
    pub(super) numbers: Option<(u64, u64)>,
}

impl Slot {
    /// Copies the pieces of a packet to their places.
    pub(super) fn add(&mut self, now: Instant, payload: &VideoPayload<'_>, pieces: &[FramePiece], format: VideoFormat) {
        let group = usize::from(format.pixels().group().octets);
        let frame = Arc::get_mut(&mut self.octets).expect("a slot's memory is its own");
        for (piece, (_, octets)) in pieces.iter().zip(payload.pieces()) {
            let [line, first, groups] = [piece.line, piece.first_group, piece.groups].map(usize::from);
            let start = line * format.line_octets() + first * group;
            frame[start..start + octets.len()].copy_from_slice(octets);
            self.coverage.cover(line, first..first + groups);
        }
        self.note_added(now);
    }

    /// Copies whole lines to their places.
    pub(super) fn add_lines(&mut self, now: Instant, lines: SliceLines, octets: &[u8], format: VideoFormat) {
        let line_octets = format.line_octets();
        let groups = usize::from(format.width() / format.pixels().group().pixels);
        let frame = Arc::get_mut(&mut self.octets).expect("a slot's memory is its own");
        if lines.step == 1 {
            let start = lines.first * line_octets;
            frame[start..start + octets.len()].copy_from_slice(octets);
        }
        for (index, from) in octets.chunks_exact(line_octets).enumerate() {
            let line = lines.first + index * lines.step;
            if lines.step > 1 {
                frame[line * line_octets..][..line_octets].copy_from_slice(from);
            }
            self.coverage.cover(line, 0..groups);
        }
        self.note_added(now);
    }

    /// The octets of the frame that are sent before a field with the same time stamp: none where fields have their own.
    pub(super) fn octets_before(&self, (timestamp, field): (u32, Field), format: VideoFormat) -> usize {
        if field == Field::First {
            return 0;
        }
        // The lower half is what packets carry.
        let later = i64::from(timestamp.wrapping_sub(self.timestamp as u32) as i32);
        let has_own_time = later > i64::from(format.rate().frame_ticks()) / 4;
        if has_own_time { 0 } else { format.field_octets() }
    }

    fn note_added(&mut self, now: Instant) {
        self.packets = self.packets.saturating_add(1);
        if self.completed.is_none() && self.coverage.is_complete() {
            self.completed = Some(now);
        }
    }
}

/// Where a packet belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotPlace {
    /// In this slot.
    Slot(usize),
    /// In a frame that is gone.
    Late,
    /// Not to be told yet: a second field without any first one, or a time far from all others.
    Unknown,
    /// The sender's clock has jumped: begin anew.
    Jump,
}

/// Ticks from the newest frame to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameDistance {
    /// It is believed at once.
    Near(i64),
    /// A single packet does not show it.
    Far(i64),
}

/// Where the number of a packet lies among those that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberOrder {
    /// Above all others.
    Newest,
    /// Below another one, or not known.
    Older,
}

/// The slots, the oldest first, and buffers for them.
#[derive(Debug)]
pub(super) struct Slots {
    format: VideoFormat,
    slots: VecDeque<Slot>,
    capacity: usize,
    /// The time stamp of the last frame that is gone.
    gone: Option<i64>,
    newest: Option<i64>,
    /// When its first packet came.
    newest_arrival: Instant,
    /// A time stamp from far away, and how many came from there in a row.
    far: (u32, u32),
    /// Packets in a row with the newest numbers and times before the last frame that is gone.
    backward: u32,
    /// The time stamp of a second field that came before any first one.
    orphan: Option<u32>,
    retired: VecDeque<Arc<[u8]>>,
    coverages: Vec<Coverage>,
}

impl Slots {
    pub(super) fn new(format: VideoFormat, capacity: usize) -> Slots {
        Slots {
            format,
            slots: VecDeque::with_capacity(capacity),
            capacity,
            gone: None,
            newest: None,
            newest_arrival: Instant::ZERO,
            far: (0, 0),
            backward: 0,
            orphan: None,
            retired: VecDeque::with_capacity(BUFFERS_MAX + 1),
            coverages: Vec::with_capacity(capacity),
        }
    }

    pub(super) fn format(&self) -> VideoFormat {
        self.format
    }

    pub(super) fn get_mut(&mut self, index: usize) -> &mut Slot {
        &mut self.slots[index]
    }

    pub(super) fn oldest(&self) -> Option<&Slot> {
        self.slots.front()
    }

    /// Whether a new frame has no room.
    pub(super) fn is_full(&self) -> bool {
        self.slots.len() == self.capacity
    }

    /// The newest time stamp, counted on beyond 32 bits.
    pub(super) fn newest(&self) -> Option<i64> {
        self.newest
    }

    /// From the newest frame to a time stamp that was counted on; `None` without any frame.
    pub(super) fn since_newest(&self, now: Instant, timestamp: i64) -> Option<FrameDistance> {
        let ticks = timestamp - self.newest?;
        Some(if self.is_far(now, timestamp) { FrameDistance::Far(ticks) } else { FrameDistance::Near(ticks) })
    }

    /// A time stamp counted on beyond its 32 bits: the closest to the newest one.
    pub(super) fn extend(&self, timestamp: u32) -> i64 {
        match self.newest {
            Some(newest) => newest + i64::from(timestamp.wrapping_sub(newest as u32) as i32),
            // Room below for frames before the first one.
            None => (1 << 32) | i64::from(timestamp),
        }
    }

    /// The slot of a frame, or the place of a new one: `Err` with the frame's time stamp and the place in the order.
    /// `number` tells whether the packet is the newest one by its number: with an old time stamp it shows a step.
    pub(super) fn find(
        &mut self,
        now: Instant,
        (timestamp, field): (u32, Field),
        number: NumberOrder,
    ) -> Result<SlotPlace, (i64, usize)> {
        let extended = self.extend(timestamp);
        if let Some(index) = self.slots.iter().rposition(|slot| self.belongs(slot.timestamp, extended, field)) {
            (self.far.1, self.backward) = (0, 0);
            return Ok(SlotPlace::Slot(index));
        }
        if self.is_far(now, extended) {
            return Ok(self.handle_far(timestamp));
        }
        if let Some(gone) = self.gone
            && (extended < gone || self.belongs(gone, extended, field))
        {
            let is_backward = number == NumberOrder::Newest && !self.belongs(gone, extended, field);
            return Ok(if is_backward { self.handle_backward() } else { SlotPlace::Late });
        }
        let Some(first) = self.first_field(extended, field) else {
            self.orphan = Some(timestamp);
            return Ok(SlotPlace::Unknown);
        };
        (self.far.1, self.backward) = (0, 0);
        let place = self.slots.iter().position(|slot| slot.timestamp > first).unwrap_or(self.slots.len());
        Err((first, place))
    }

    /// Whether a second field came before any first one and is of another frame than the one whose first field has this time stamp,
    /// which is about to be opened: a frame of which nothing else will come. Tells it once.
    pub(super) fn take_orphan(&mut self, first: i64) -> bool {
        // The lower half is what packets carry.
        let distance = |orphan: u32| i64::from(orphan.wrapping_sub(first as u32) as i32);
        self.orphan.take().is_some_and(|orphan| !self.belongs(0, distance(orphan), Field::Second))
    }

    /// Opens a slot at a place of the order.
    pub(super) fn open(&mut self, now: Instant, timestamp: i64, place: usize) {
        if self.newest.is_none_or(|newest| newest < timestamp) {
            (self.newest, self.newest_arrival) = (Some(timestamp), now);
        }
        let octets = self.take_buffer();
        let mut coverage = self.coverages.pop().unwrap_or_else(|| Coverage::new(self.format));
        coverage.clear();
        let slot = Slot { timestamp, octets, coverage, first_arrival: now, completed: None, packets: 0, numbers: None };
        self.slots.insert(place, slot);
    }

    /// Takes the oldest frame out; the caller gives its coverage back.
    pub(super) fn close_oldest(&mut self) -> Option<Slot> {
        let slot = self.slots.pop_front()?;
        self.gone = Some(slot.timestamp);
        Some(slot)
    }

    /// Gives up frames from the first one on that is not to be kept; tells the highest number of the packets of the others.
    pub(super) fn keep_while(&mut self, keeps: impl Fn(&Slot) -> bool) -> Option<u64> {
        let end = self.slots.iter().position(|slot| !keeps(slot)).unwrap_or(self.slots.len());
        self.slots.truncate(end);
        self.slots.iter().filter_map(|slot| slot.numbers).map(|(_, highest)| highest).max()
    }

    /// Gives up the newest frame if a few packets alone tell of it, from beyond all frames that may be held together with one of
    /// time stamp `timestamp`: somebody else may have sent them. Tells whether there is room now.
    pub(super) fn drop_doubtful(&mut self, timestamp: i64) -> bool {
        let span = i64::from(self.format.rate().frame_ticks()) * self.capacity as i64;
        let is_doubtful = |slot: &Slot| {
            slot.packets < CREDIBLE_PACKETS && slot.completed.is_none() && slot.timestamp - timestamp > span
        };
        let Some(slot) = self.slots.pop_back_if(|slot| is_doubtful(slot)) else { return false };
        self.retire(slot.octets, slot.coverage);
        self.newest = self.slots.back().map(|slot| slot.timestamp).or(self.gone).or(self.newest);
        true
    }

    /// Takes back what a closed slot held; `octets` may be with the user as well.
    pub(super) fn retire(&mut self, octets: Arc<[u8]>, coverage: Coverage) {
        self.coverages.push(coverage);
        if self.retired.len() == BUFFERS_MAX {
            self.retired.pop_front();
        }
        self.retired.push_back(octets);
    }

    /// Forgets the times of another sender; tells how many frames that ends.
    pub(super) fn reset(&mut self) -> u64 {
        let ended = self.slots.len() as u64;
        while let Some(slot) = self.slots.pop_front() {
            self.retire(slot.octets, slot.coverage);
        }
        (self.gone, self.newest, self.far, self.backward, self.orphan) = (None, None, (0, 0), 0, None);
        ended
    }

    /// Whether a packet belongs to the frame whose first field has the time stamp `first`. The second field has the same
    /// one (FFmpeg, segmented frames) or one half a frame time later (GStreamer), give or take its rounding.
    fn belongs(&self, first: i64, timestamp: i64, field: Field) -> bool {
        if self.format.scan() == Scan::Progressive {
            return first == timestamp;
        }
        let frame = i64::from(self.format.rate().frame_ticks());
        let distance = timestamp - first;
        match field {
            Field::First => distance.abs() <= frame / 4,
            Field::Second => distance >= -frame / 4 && distance < frame * 3 / 4,
        }
    }

    /// The time stamp of the first field of a frame that is not known yet.
    fn first_field(&self, timestamp: i64, field: Field) -> Option<i64> {
        if field == Field::First || self.format.scan() == Scan::Progressive {
            return Some(timestamp);
        }
        let known = self.slots.back().map(|slot| slot.timestamp).or(self.gone)?;
        let frame = i64::from(self.format.rate().frame_ticks());
        Some(known + (timestamp - known + frame / 4).div_euclid(frame) * frame)
    }

    /// Whether a time stamp is not to be believed at once.
    fn is_far(&self, now: Instant, timestamp: i64) -> bool {
        let passed = || i64::try_from(now.since(self.newest_arrival).as_nanos() * 9 / 100_000).unwrap_or(i64::MAX);
        self.newest.is_some_and(|newest| {
            let ahead = timestamp - newest;
            ahead < -FAR_TICKS || (ahead > FAR_TICKS && ahead - FAR_TICKS > passed())
        })
    }

    fn handle_backward(&mut self) -> SlotPlace {
        self.backward += 1;
        if self.backward < JUMP_PACKETS { SlotPlace::Late } else { SlotPlace::Jump }
    }

    fn handle_far(&mut self, timestamp: u32) -> SlotPlace {
        let (last, count) = self.far;
        let is_near = i64::from(timestamp.wrapping_sub(last) as i32).abs() <= FAR_TICKS;
        self.far = (timestamp, if is_near { count + 1 } else { 1 });
        if self.far.1 < JUMP_PACKETS { SlotPlace::Unknown } else { SlotPlace::Jump }
    }

    /// A buffer that nobody else holds.
    fn take_buffer(&mut self) -> Arc<[u8]> {
        let free = self.retired.iter_mut().position(|octets| Arc::get_mut(octets).is_some());
        match free.and_then(|index| self.retired.remove(index)) {
            Some(octets) => octets,
            None => memory::zeroed(self.format.frame_octets()),
        }
    }
}
