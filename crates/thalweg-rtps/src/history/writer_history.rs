//! A writer's changes until no reader needs them any more.

use std::collections::VecDeque;

use super::ChangeKind;
use super::bounds::{Bounds, Load};
use super::change::{Change, Content, FrameLimit, Held, HeldSample, PushResult, Slot, SmallSample};
use super::departures::Departure;
use super::frame::FrameAt;
use super::frame_stock::FrameStock;
use super::kept::Kept;
use super::pack_ring::{PackRing, Removed};
use super::writer_instances::WriterInstances;
use crate::qos::{History, ResourceLimits};
use crate::time::Instant;
use crate::types::{KeyHash, SequenceNumber};

/// The changes that a writer still holds, oldest first (`HistoryCache`, RTPS 2.5 §8.2.2).
///
/// A ring of packs, numbered consecutively: a pack is one change, or a [`Frame`](super::Frame) of small ones that were collected before they were
/// sent. Bounds: RESOURCE_LIMITS and a byte budget, asked by [`WriterHistory::room_for`] before each push.
#[derive(Debug)]
pub struct WriterHistory {
    pub(super) bounds: Bounds,
    keeps_acknowledged: bool,
    pub(super) ring: PackRing,
    pub(super) held: Load,
    pub(super) last: SequenceNumber,
    pub(super) acknowledged: SequenceNumber,
    /// `None` when nothing depends on instances: KEEP_ALL, volatile, no limit on them.
    pub(super) instances: Option<WriterInstances>,
    /// Instances of a durable writer that were disposed and unregistered: they are removed once all readers know.
    pub(super) departures: VecDeque<Departure>,
    /// Of those up to this number only the end is left.
    pub(super) reduced: SequenceNumber,
    overwritten_unacknowledged: u64,
    frames: FrameStock,
    /// First number that was not sent yet, as [`WriterHistory::sent_up_to`] tells.
    pub(super) unsent: SequenceNumber,
    /// A change of which a part was sent: it stays until the rest was, even if it is overwritten.
    begun: Option<SequenceNumber>,
    /// KEEP_LAST drops overwritten changes at once, even if they were not sent yet.
    pub(super) conflates: bool,
    /// What outlives the writer; `None` where nothing does.
    pub(super) kept: Option<Box<Kept>>,
}

/// Number of entries of a [`WriterHistory`] besides the payloads of its changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryPlaces {
    /// Packs, and places of packs that are gone until enough have gathered for a sweep.
    pub slots: usize,
    /// Instances.
    pub instances: usize,
    /// Instances of a durable writer that have ended and wait until every reader knows.
    pub departures: usize,
}

/// Cost of a held change besides its payload; charged to the byte budget, so that tiny samples are bounded as well.
pub(super) const CHANGE_BYTES: usize = size_of::<Slot>();
/// Departures of instances that have come back which are tolerated beside twice the changes that are held.
const DEPARTURES_SPARE: usize = 64;
/// Bytes collected into one frame where KEEP_LAST or late readers matter: an old sample that stays keeps no more than
/// this alive.
const FRAME_BYTES_WITH_INSTANCES: usize = 8 << 10;

impl WriterHistory {
    /// An empty history. With `durability_keeps` (transient-local) acknowledged changes stay for late joiners.
    /// `bytes_max` bounds payloads plus a fixed charge for each change; one change always fits into an empty history.
    pub fn new(history: History, limits: ResourceLimits, durability_keeps: bool, bytes_max: usize) -> WriterHistory {
        let bounds = Bounds::new(history, limits, bytes_max, usize::MAX);
        let instances_matter = bounds.depth.is_some()
            || durability_keeps
            || limits.max_instances.is_some()
            || limits.max_samples_per_instance.is_some();
        WriterHistory {
            bounds,
            keeps_acknowledged: durability_keeps,
            ring: PackRing::default(),
            held: Load::default(),
            last: SequenceNumber::ZERO,
            acknowledged: SequenceNumber::ZERO,
            instances: instances_matter.then(|| WriterInstances::new(&bounds)),
            departures: VecDeque::new(),
            reduced: SequenceNumber::ZERO,
            overwritten_unacknowledged: 0,
            frames: FrameStock::default(),
            unsent: SequenceNumber::FIRST,
            begun: None,
            conflates: true,
            kept: None,
        }
    }

    /// Whether one more change of `instance` with a payload of `bytes` fits now. KEEP_LAST overwrites within its
    /// instance, so it is refused only when other instances exhaust the limits.
    pub fn room_for(&self, instance: &KeyHash, bytes: usize) -> bool {
        let own = match &self.instances {
            Some(instances) => instances.admit(instance),
            None => Some(Load::default()),
        };
        own.is_some_and(|own| self.bounds.admit(self.counted(), own, bytes.saturating_add(CHANGE_BYTES)))
    }

    /// What counts against the limits: all but ends of coherent sets of which nothing else is here.
    pub(super) fn counted(&self) -> Load {
        let mut counted = self.held;
        if let Some(instances) = &self.instances {
            counted.subtract(instances.ends());
        }
        counted
    }

    /// Changes that count against the limits, and their bytes.
    pub(crate) fn occupied(&self) -> (usize, usize) {
        let Load { changes, bytes, .. } = self.counted();
        (changes, bytes)
    }

    /// Adds `change` under the next number. Ask [`WriterHistory::room_for`] first: a push without room exceeds the
    /// limits rather than lose the change.
    pub fn push(&mut self, mut change: Change) -> PushResult {
        self.seal();
        let sequence = self.last.next();
        change.sequence = sequence;
        let is_value = change.kind == ChangeKind::Write;
        let (instance, overwrote) = self.account(change.instance, change.kind, change.payload.len());
        let held = Held { change, instance, next_of_instance: SequenceNumber::ZERO, is_live: true };
        self.ring.push(sequence, Content::One(held));
        self.chain(instance, sequence, is_value);
        self.sweep();
        PushResult { sequence, overwrote }
    }

    /// Adds a value to the frame that is being collected, or starts a new one. As [`WriterHistory::push`] otherwise.
    pub fn collect(&mut self, sample: &SmallSample<'_>, limit: FrameLimit) -> PushResult {
        let sequence = self.last.next();
        let bytes = sample.encapsulation.len() + sample.body.len();
        let (instance, overwrote) = self.account(sample.instance, ChangeKind::Write, bytes);
        if !self.extends_frame(sample, limit) || !self.push_to_frame(instance, sample) {
            self.start_frame(sequence, sample.encapsulation, limit);
            self.push_to_frame(instance, sample);
        }
        self.chain(instance, sequence, true);
        if overwrote.is_some() {
            self.sweep();
        }
        PushResult { sequence, overwrote }
    }

    /// The next number is taken by a change with `payload_bytes`: makes room as KEEP_LAST does and charges it.
    pub(super) fn account(
        &mut self,
        instance: KeyHash,
        kind: ChangeKind,
        payload_bytes: usize,
    ) -> (usize, Option<SequenceNumber>) {
        self.last = self.last.next();
        let is_value = kind == ChangeKind::Write;
        let bytes = payload_bytes.saturating_add(CHANGE_BYTES);
        let instance = self.instances.as_mut().map(|instances| instances.register(instance, kind));
        let overwrote = instance.and_then(|slot| self.overwrite_for(slot, is_value, bytes));
        self.charge(instance, is_value, bytes);
        (instance.unwrap_or_default(), overwrote)
    }

    /// Chains the newest change to its instance and charges it.
    pub(super) fn charge(&mut self, instance: Option<usize>, is_value: bool, bytes: usize) {
        let before = match (instance, self.instances.as_mut()) {
            (Some(slot), Some(instances)) => instances.append(slot, self.last, is_value, bytes),
            _ => None,
        };
        let last = self.last;
        if let Some(next) = before.and_then(|before| self.ring.next_of_instance(before)) {
            *next = last;
        }
        self.held.add(is_value, bytes);
        if let Some(kept) = &mut self.kept {
            kept.note_written(bytes);
        }
    }

    fn extends_frame(&self, sample: &SmallSample<'_>, limit: FrameLimit) -> bool {
        let Some(Slot { content: Content::Frame(frame), .. }) = self.ring.slots.back() else { return false };
        let filled = frame.bodies().len() + sample.body.len() + (frame.len() + 1) * limit.overhead;
        self.frames.is_open() && frame.encapsulation() == sample.encapsulation && filled <= self.frame_bytes(limit)
    }

    /// False when the newest pack cannot take the sample.
    fn push_to_frame(&mut self, instance: usize, sample: &SmallSample<'_>) -> bool {
        match self.ring.slots.back_mut() {
            Some(Slot { content: Content::Frame(frame), .. }) => frame.push(instance, sample.timestamp, sample.body),
            _ => false,
        }
    }

    fn frame_bytes(&self, limit: FrameLimit) -> usize {
        if self.instances.is_some() { limit.bytes.min(FRAME_BYTES_WITH_INSTANCES) } else { limit.bytes }
    }

    fn start_frame(&mut self, first: SequenceNumber, encapsulation: [u8; 4], limit: FrameLimit) {
        self.seal();
        let frame = self.frames.open(encapsulation, self.frame_bytes(limit));
        self.ring.push(first, Content::Frame(frame));
    }

    /// Closes the frame that is being collected, because it is about to be sent.
    pub fn seal(&mut self) {
        if self.frames.is_open()
            && let Some(Slot { content: Content::Frame(frame), .. }) = self.ring.slots.back_mut()
        {
            self.frames.seal(frame, self.keeps_acknowledged);
            if self.ring.slots.back().is_some_and(|slot| slot.is_dead() && !self.is_kept_unsent(slot)) {
                self.ring.slots.pop_back();
            }
        }
    }

    /// Whether KEEP_LAST drops unsent changes (the default). Otherwise it drops them once they were sent.
    pub fn set_conflating(&mut self, conflates: bool) {
        self.conflates = conflates;
    }

    /// A part of this change was sent, and the rest is to follow even if KEEP_LAST overwrites it meanwhile.
    pub fn keep_begun(&mut self, begun: Option<SequenceNumber>) {
        self.begun = begun;
    }

    /// All changes below `unsent` were sent: drops those that were overwritten meanwhile.
    pub fn sent_up_to(&mut self, unsent: SequenceNumber) {
        let before = std::mem::replace(&mut self.unsent, unsent);
        if self.instances.is_none() || unsent <= before {
            return;
        }
        let mut index = self.ring.position(before).unwrap_or_else(|place| place);
        let empty = self.ring.empty;
        while self.ring.slots.get(index).is_some_and(|slot| slot.end() <= unsent) {
            if self.ring.slots[index].is_dead() {
                self.clear_slot(index);
            }
            index += 1;
        }
        if self.ring.empty > empty {
            self.sweep();
        }
    }

    fn is_kept_unsent(&self, slot: &Slot) -> bool {
        (!self.conflates || self.begun == Some(slot.first)) && slot.end() > self.unsent
    }

    fn clear_slot(&mut self, index: usize) {
        if let Content::Frame(frame) = self.ring.clear(index) {
            self.frames.recycle(frame, false);
        }
    }

    /// The change numbered `sequence`, unless it was never written, overwritten or dropped.
    pub fn get(&self, sequence: SequenceNumber) -> Option<HeldSample<'_>> {
        self.ring.sample(sequence, false)
    }

    /// Changes the fragment size of a change whose transmission has not begun: readers with a narrower path have come
    /// since it was written.
    pub fn set_fragment_bytes(&mut self, sequence: SequenceNumber, fragment_bytes: u16) {
        self.ring.set_fragment_bytes(sequence, fragment_bytes);
    }

    /// The oldest held change with a number of at least `from`. Numbers skipped on the way were overwritten or dropped.
    pub fn next_from(&self, from: SequenceNumber) -> Option<HeldSample<'_>> {
        self.ring.sample_from(from, false)
    }

    /// As [`WriterHistory::next_from`], but also finds samples that KEEP_LAST has overwritten and that are still to be sent.
    pub fn next_collected_from(&self, from: SequenceNumber) -> Option<HeldSample<'_>> {
        self.ring.sample_from(from, true)
    }

    /// The change numbered `sequence`, also when it was overwritten after a part of it had been sent.
    pub fn get_begun(&self, sequence: SequenceNumber) -> Option<HeldSample<'_>> {
        self.ring.sample(sequence, true).filter(|_| self.begun == Some(sequence))
    }

    /// The frame that sample `sequence` is in.
    pub fn frame_with(&self, sequence: SequenceNumber) -> Option<FrameAt<'_>> {
        self.ring.frame_with(sequence)
    }

    /// The numbers of pack `pack`: from the first to below the second. Of a pack that is gone: the numbers between its
    /// neighbours, none of which is held. Of a pack that is still to come: none.
    pub fn pack(&self, pack: SequenceNumber) -> (SequenceNumber, SequenceNumber) {
        self.ring.pack(pack, self.last)
    }

    /// Number of the pack that `sequence` is in, or of the one that it would be in.
    pub fn pack_of(&self, sequence: SequenceNumber) -> SequenceNumber {
        self.ring.pack_of(sequence)
    }

    /// Entries besides the payloads: places in the ring, those of changes that are gone included, instances, and ends of
    /// instances that some readers do not know yet.
    pub fn places(&self) -> HistoryPlaces {
        HistoryPlaces {
            slots: self.ring.slots.len(),
            instances: self.instances.as_ref().map_or(0, WriterInstances::len),
            departures: self.departures.len(),
        }
    }

    /// Number of the oldest held change; one more than [`WriterHistory::last`] when nothing is held.
    pub fn first(&self) -> SequenceNumber {
        self.next_from(SequenceNumber::ZERO).map_or(self.last.next(), |sample| sample.sequence)
    }

    /// Number of the newest change ever pushed; zero before the first.
    pub fn last(&self) -> SequenceNumber {
        self.last
    }

    /// Learns that every matched reader has everything up to and including `sequence`: a volatile writer drops it.
    /// Returns whether anything was freed.
    pub fn acknowledged(&mut self, sequence: SequenceNumber) -> bool {
        let sequence = sequence.min(self.last);
        if sequence <= self.acknowledged {
            return false;
        }
        let since = std::mem::replace(&mut self.acknowledged, sequence);
        let before = self.held.changes;
        if self.kept.is_some() {
            self.shorten(since);
        }
        if self.keeps_acknowledged {
            self.drop_departed();
        } else {
            self.drop_up_to(sequence);
        }
        self.sweep();
        self.held.changes < before
    }

    fn drop_up_to(&mut self, sequence: SequenceNumber) {
        while let Some(slot) = self.ring.slots.front()
            && slot.first <= sequence
        {
            let whole = slot.end() <= sequence.next();
            if whole && self.instances.is_none() {
                self.drop_front();
                continue;
            }
            let (mut number, end) = (slot.first, slot.end().min(sequence.next()));
            while number < end {
                self.remove(number);
                number = number.next();
            }
            if !whole {
                return;
            }
            self.ring.pop_front();
        }
    }

    /// Drops the pack at the front at once: nothing depends on its samples one by one.
    fn drop_front(&mut self) {
        let open = self.frames.is_open() && self.ring.slots.len() == 1;
        let Some(slot) = self.ring.pop_front() else { return };
        match slot.content {
            Content::Empty => {}
            Content::One(held) if held.is_live => {
                self.held.remove(held.change.is_value(), held.change.payload.len().saturating_add(CHANGE_BYTES));
            }
            Content::One(_) => {}
            Content::Frame(frame) => {
                let (count, bytes) = frame.live_bytes();
                let each = frame.encapsulation().len() + CHANGE_BYTES;
                self.held.remove_many(count, bytes + count * each);
                self.frames.recycle(frame, open);
            }
        }
    }

    /// Number of held changes.
    pub fn len(&self) -> usize {
        self.held.changes
    }

    /// True when nothing is held.
    pub fn is_empty(&self) -> bool {
        self.held.changes == 0
    }

    /// Bytes charged to the budget: payloads and a fixed amount for each change.
    pub fn bytes(&self) -> usize {
        self.held.bytes
    }

    /// Number of changes that KEEP_LAST dropped before every matched reader had acknowledged them.
    pub fn overwritten_unacknowledged(&self) -> u64 {
        self.overwritten_unacknowledged
    }

    /// Makes room within the instance as KEEP_LAST does; returns the newest change that went.
    fn overwrite_for(&mut self, instance: usize, is_value: bool, bytes: usize) -> Option<SequenceNumber> {
        let mut overwrote = None;
        loop {
            let instances = self.instances.as_ref()?;
            let own = instances.get(instance);
            if own.held.changes == 0 {
                return overwrote;
            }
            let oldest = own.oldest;
            let all = if !is_value && own.is_of_ends() { Load::default() } else { self.counted() };
            let must = self.bounds.must_overwrite(all, own.held, is_value, bytes);
            // A notice older than every value kept tells nothing: the instance has been reborn since.
            let stale = overwrote.is_some()
                && own.held.values + usize::from(is_value) > 0
                && self.get(oldest).is_some_and(|sample| !sample.is_value());
            if !must && !stale {
                return overwrote;
            }
            self.overwritten_unacknowledged += u64::from(oldest > self.acknowledged);
            self.remove(oldest);
            overwrote = Some(oldest);
        }
    }

    /// Chains the newest change to its instance, and notes when it ends the instance's life here.
    pub(super) fn chain(&mut self, instance: usize, sequence: SequenceNumber, is_value: bool) {
        let Some(instances) = self.instances.as_ref() else { return };
        if is_value || !self.keeps_acknowledged || !instances.get(instance).is_departed() {
            return;
        }
        if self.departures.len() >= DEPARTURES_SPARE + 2 * self.held.changes {
            let stands = |departure: &Departure| instances.get(departure.instance).ends_with(departure.sequence);
            self.departures.retain(stands);
        }
        let due = self.kept.as_ref().map_or(Instant::ZERO, |kept| kept.cleanup_at());
        self.departures.push_back(Departure { sequence, instance, due });
    }

    /// Drops a change that is its instance's oldest, with the end of its coherent set if nobody waits for that; its slot stays.
    pub(super) fn remove(&mut self, sequence: SequenceNumber) {
        let Some(removed) = self.ring.kill(sequence) else { return };
        let Removed { index, instance, next_of_instance, is_value, ends_set, bytes } = removed;
        if let Some(kept) = &mut self.kept {
            kept.note_removed(sequence);
        }
        let slot = &self.ring.slots[index];
        let is_open = self.frames.is_open() && index + 1 == self.ring.slots.len();
        if slot.is_dead() && !is_open && !self.is_kept_unsent(slot) {
            self.clear_slot(index);
        }
        let bytes = bytes.saturating_add(CHANGE_BYTES);
        self.held.remove(is_value, bytes);
        if let Some(instances) = self.instances.as_mut() {
            instances.remove_oldest(instance, next_of_instance, is_value, bytes);
        }
        let is_known = next_of_instance > SequenceNumber::ZERO && next_of_instance <= self.acknowledged;
        if is_known && !ends_set && self.get(next_of_instance).is_some_and(|next| next.ends_set()) {
            self.remove(next_of_instance);
        }
    }

    /// Removes empty slots: those at the front at once, the others (and unused instances) when they outnumber the rest.
    pub(super) fn sweep(&mut self) {
        self.ring.sweep();
        if let Some(instances) = self.instances.as_mut() {
            instances.sweep();
        }
    }
}
