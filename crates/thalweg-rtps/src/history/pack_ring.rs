//! The packs of a writer's history in their order, each found by the numbers of its changes.

use std::collections::VecDeque;

use super::change::{Content, HeldSample, Slot};
use super::frame::FrameAt;
use crate::types::SequenceNumber;

/// A ring of packs, numbered consecutively.
#[derive(Debug, Default)]
pub(super) struct PackRing {
    /// Ordered by number. Overwritten changes leave an empty slot until enough have gathered for one sweep.
    pub slots: VecDeque<Slot>,
    /// Slots without content.
    pub empty: usize,
    last_pack: SequenceNumber,
}

/// A change that was taken out of its pack.
pub(super) struct Removed {
    /// The pack's slot.
    pub index: usize,
    /// The place of its instance in the table of instances.
    pub instance: usize,
    /// The next change of the instance that is held; zero for none.
    pub next_of_instance: SequenceNumber,
    /// False for the end of an instance or of a coherent set.
    pub is_value: bool,
    pub ends_set: bool,
    /// Bytes of its payload.
    pub bytes: usize,
}

/// Empty slots that are tolerated before a sweep is considered.
const EMPTY_SLOTS_MAX: usize = 32;

impl PackRing {
    /// Adds a pack whose first change is `first`.
    pub fn push(&mut self, first: SequenceNumber, content: Content) {
        self.last_pack += 1;
        self.slots.push_back(Slot { first, pack: self.last_pack, content });
    }

    /// Takes the content of a slot, which stays.
    pub fn clear(&mut self, index: usize) -> Content {
        self.empty += 1;
        std::mem::replace(&mut self.slots[index].content, Content::Empty)
    }

    /// Takes the oldest slot, which may have lost its content before.
    pub fn pop_front(&mut self) -> Option<Slot> {
        let slot = self.slots.pop_front()?;
        self.empty -= usize::from(matches!(slot.content, Content::Empty));
        Some(slot)
    }

    /// The change numbered `sequence`; `dead`: also where it was overwritten.
    pub fn sample(&self, sequence: SequenceNumber, dead: bool) -> Option<HeldSample<'_>> {
        let slot = self.slots.get(self.position(sequence).ok()?)?;
        slot.sample_from(sequence, dead).filter(|sample| sample.sequence == sequence)
    }

    /// The oldest held change with a number of at least `from`; `dead`: those included that were overwritten and are still to be sent.
    pub fn sample_from(&self, from: SequenceNumber, dead: bool) -> Option<HeldSample<'_>> {
        let start = self.position(from).unwrap_or_else(|place| place);
        self.slots.range(start..).find_map(|slot| slot.sample_from(from, dead))
    }

    /// The frame that sample `sequence` is in.
    pub fn frame_with(&self, sequence: SequenceNumber) -> Option<FrameAt<'_>> {
        match self.slots.get(self.position(sequence).ok()?)? {
            Slot { first, pack, content: Content::Frame(frame) } => {
                Some(FrameAt { batch: *pack, first: *first, frame })
            }
            _ => None,
        }
    }

    /// The numbers of a pack, where `last` is the newest number, as [`super::WriterHistory::pack`] tells them.
    pub fn pack(&self, pack: SequenceNumber, last: SequenceNumber) -> (SequenceNumber, SequenceNumber) {
        if pack > self.last_pack {
            return (last.next(), last.next());
        }
        let index = self.slots.partition_point(|slot| slot.pack < pack);
        let next = self.slots.get(index).map_or(last.next(), |slot| slot.first);
        match self.slots.get(index) {
            Some(slot) if slot.pack == pack => (slot.first, slot.end()),
            _ => (index.checked_sub(1).map_or(SequenceNumber::FIRST, |before| self.slots[before].end()), next),
        }
    }

    /// Number of the pack that `sequence` is in, or of the one that it would be in.
    pub fn pack_of(&self, sequence: SequenceNumber) -> SequenceNumber {
        let index = self.position(sequence).unwrap_or_else(|place| place);
        self.slots.get(index).map_or(self.last_pack.next(), |slot| slot.pack)
    }

    /// Changes into a pack of a single change.
    pub fn set_fragment_bytes(&mut self, sequence: SequenceNumber, fragment_bytes: u16) {
        let index = self.position(sequence).ok();
        if let Some(Content::One(held)) = index.map(|index| &mut self.slots[index].content) {
            held.change.fragment_bytes = Some(fragment_bytes);
        }
    }

    /// Place of the link from a held change to the next one of its instance.
    pub fn next_of_instance(&mut self, sequence: SequenceNumber) -> Option<&mut SequenceNumber> {
        let index = self.position(sequence).ok()?;
        let slot = self.slots.get_mut(index)?;
        match &mut slot.content {
            Content::Empty => None,
            Content::One(held) => Some(&mut held.next_of_instance),
            Content::Frame(frame) => {
                frame.entry((sequence - slot.first) as usize).map(|entry| &mut entry.next_of_instance)
            }
        }
    }

    /// Place of the instance of a held change in the table of instances.
    pub fn instance_of(&self, sequence: SequenceNumber) -> Option<usize> {
        let slot = &self.slots[self.position(sequence).ok()?];
        match &slot.content {
            Content::Empty => None,
            Content::One(held) => Some(held.instance),
            Content::Frame(frame) => frame.instance_of((sequence - slot.first) as usize),
        }
    }

    /// Takes out a held change; its slot stays.
    pub fn kill(&mut self, sequence: SequenceNumber) -> Option<Removed> {
        let index = self.position(sequence).ok()?;
        let sample = self.slots[index].sample_from(sequence, false).filter(|sample| sample.sequence == sequence)?;
        let (is_value, ends_set, bytes) = (sample.is_value(), sample.ends_set(), sample.len());
        let slot = &mut self.slots[index];
        let (instance, next_of_instance) = match &mut slot.content {
            Content::Empty => return None,
            Content::One(held) => {
                held.is_live = false;
                (held.instance, held.next_of_instance)
            }
            Content::Frame(frame) => {
                let place = (sequence - slot.first) as usize;
                frame.kill(place);
                let entry = frame.entry(place)?;
                (entry.instance as usize, entry.next_of_instance)
            }
        };
        Some(Removed { index, instance, next_of_instance, is_value, ends_set, bytes })
    }

    /// Removes empty slots: those at the front at once, the others when they outnumber the rest.
    pub fn sweep(&mut self) {
        while self.slots.front().is_some_and(|slot| matches!(slot.content, Content::Empty)) {
            self.pop_front();
        }
        if self.empty > EMPTY_SLOTS_MAX.max(self.slots.len() - self.empty) {
            self.slots.retain(|slot| !matches!(slot.content, Content::Empty));
            self.empty = 0;
        }
    }

    /// Index of the slot with `sequence`, or where it would stand. Most are looked for at one of the ends, and single changes are mostly
    /// contiguous, seen from one end or the other.
    pub fn position(&self, sequence: SequenceNumber) -> Result<usize, usize> {
        let (Some(front), Some(back)) = (self.slots.front(), self.slots.back()) else { return Err(0) };
        if sequence < front.first {
            return Err(0);
        }
        if sequence < front.end() {
            return Ok(0);
        }
        let newest = self.slots.len() - 1;
        if sequence >= back.first {
            return if sequence < back.end() { Ok(newest) } else { Err(newest + 1) };
        }
        let from_front = usize::try_from(sequence - front.first).unwrap_or(usize::MAX);
        let from_back = usize::try_from(back.first - sequence).unwrap_or(usize::MAX);
        for index in [from_front, newest.wrapping_sub(from_back)] {
            if self.slots.get(index).is_some_and(|slot| slot.first == sequence) {
                return Ok(index);
            }
        }
        let after = self.slots.partition_point(|slot| slot.first <= sequence);
        let index = after - 1;
        if sequence < self.slots[index].end() { Ok(index) } else { Err(after) }
    }
}
