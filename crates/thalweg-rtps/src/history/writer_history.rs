//! A writer's changes until nobody needs them any more.

use std::collections::VecDeque;

use super::ChangeKind;
use super::bounds::{Bounds, Load};
use super::writer_instances::WriterInstances;
use crate::payload::Payload;
use crate::qos::{History, ResourceLimits};
use crate::time::Timestamp;
use crate::types::{KeyHash, SequenceNumber};

/// One sample, dispose or unregister of a writer (`CacheChange`, RTPS 2.5 §8.2.1.2).
#[derive(Clone, Debug)]
pub struct Change {
    /// Number within the writer; assigned by [`WriterHistory::push`], whatever it was before.
    pub sequence: SequenceNumber,
    /// What the change does to its instance.
    pub kind: ChangeKind,
    /// The instance; zero for keyless topics.
    pub instance: KeyHash,
    /// When the application says it happened; `None` sends no time.
    pub timestamp: Option<Timestamp>,
    /// Serialized sample, or key for dispose and unregister, with its encapsulation header.
    pub payload: Payload,
    /// Bytes of each fragment but the last when the change travels in fragments; fixed when it is written.
    pub fragment_bytes: Option<u16>,
}

/// What [`WriterHistory::push`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushResult {
    /// Number of the new change.
    pub sequence: SequenceNumber,
    /// The newest change that had to make room, under KEEP_LAST; older ones of the same instance may have gone with it.
    pub overwrote: Option<SequenceNumber>,
}

/// The changes that a writer still holds, oldest first (`HistoryCache`, RTPS 2.5 §8.2.2).
///
/// Bounds: RESOURCE_LIMITS and a byte budget, asked by [`WriterHistory::room_for`] before each push.
#[derive(Debug)]
pub struct WriterHistory {
    bounds: Bounds,
    keeps_acknowledged: bool,
    /// Ordered by number. Overwritten changes leave an empty slot until enough have gathered for one sweep.
    slots: VecDeque<Slot>,
    held: Load,
    last: SequenceNumber,
    acknowledged: SequenceNumber,
    /// `None` when nothing depends on instances: KEEP_ALL, volatile, no limit on them.
    instances: Option<WriterInstances>,
    /// Instances of a durable writer that were disposed and unregistered: they go once everybody knows.
    departures: VecDeque<Departure>,
    overwritten_unacknowledged: u64,
}

#[derive(Debug)]
struct Slot {
    sequence: SequenceNumber,
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    change: Change,
    instance: usize,
    next_of_instance: SequenceNumber,
}

#[derive(Debug)]
struct Departure {
    sequence: SequenceNumber,
    instance: usize,
}

/// What a held change costs beside its payload; charged to the byte budget, so that tiny samples are bounded as well.
pub(super) const CHANGE_BYTES: usize = size_of::<Slot>();
/// Empty slots that are tolerated before a sweep is considered.
const EMPTY_SLOTS_MAX: usize = 32;

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
            slots: VecDeque::new(),
            held: Load::default(),
            last: SequenceNumber::ZERO,
            acknowledged: SequenceNumber::ZERO,
            instances: instances_matter.then(|| WriterInstances::new(&bounds)),
            departures: VecDeque::new(),
            overwritten_unacknowledged: 0,
        }
    }

    /// Whether one more change of `instance` with a payload of `bytes` fits now. KEEP_LAST overwrites within its
    /// instance, so it is refused only when other instances exhaust the limits.
    pub fn room_for(&self, instance: &KeyHash, bytes: usize) -> bool {
        let own = match &self.instances {
            Some(instances) => instances.admit(instance),
            None => Some(Load::default()),
        };
        own.is_some_and(|own| self.bounds.admit(self.held, own, bytes.saturating_add(CHANGE_BYTES)))
    }

    /// Adds `change` under the next number. Ask [`WriterHistory::room_for`] first: a push without room exceeds the
    /// limits rather than lose the change.
    pub fn push(&mut self, mut change: Change) -> PushResult {
        let sequence = self.last.next();
        self.last = sequence;
        change.sequence = sequence;
        let is_value = change.kind == ChangeKind::Write;
        let bytes = charge(&change);
        let instance = self.instances.as_mut().map(|instances| instances.register(change.instance, change.kind));
        let overwrote = instance.and_then(|slot| self.overwrite_for(slot, is_value, bytes));
        if let Some(slot) = instance {
            self.chain(slot, sequence, is_value, bytes);
        }
        self.held.add(is_value, bytes);
        let held = Held { change, instance: instance.unwrap_or_default(), next_of_instance: SequenceNumber::ZERO };
        self.slots.push_back(Slot { sequence, held: Some(held) });
        self.sweep();
        PushResult { sequence, overwrote }
    }

    /// The change numbered `sequence`, unless it was never written, overwritten or dropped.
    pub fn get(&self, sequence: SequenceNumber) -> Option<&Change> {
        let index = self.position(sequence).ok()?;
        self.slots[index].held.as_ref().map(|held| &held.change)
    }

    /// Changes the fragment size of a change whose transmission has not begun: readers with a narrower path have come
    /// since it was written.
    pub fn set_fragment_bytes(&mut self, sequence: SequenceNumber, fragment_bytes: u16) {
        let index = self.position(sequence).ok();
        if let Some(held) = index.and_then(|index| self.slots[index].held.as_mut()) {
            held.change.fragment_bytes = Some(fragment_bytes);
        }
    }

    /// The oldest held change with a number of at least `from`. Numbers skipped on the way were overwritten or dropped.
    pub fn next_from(&self, from: SequenceNumber) -> Option<&Change> {
        let start = self.position(from).unwrap_or_else(|place| place);
        self.slots.range(start..).find_map(|slot| slot.held.as_ref()).map(|held| &held.change)
    }

    /// Number of the oldest held change; one more than [`WriterHistory::last`] when nothing is held.
    pub fn first(&self) -> SequenceNumber {
        self.slots.front().map_or(self.last.next(), |slot| slot.sequence)
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
        self.acknowledged = sequence;
        let before = self.held.changes;
        if self.keeps_acknowledged {
            self.drop_departed();
        } else {
            while self.slots.front().is_some_and(|slot| slot.sequence <= sequence) {
                self.remove_at(0);
                self.slots.pop_front();
            }
        }
        self.sweep();
        self.held.changes < before
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

    /// How many changes KEEP_LAST dropped before every matched reader had acknowledged them.
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
            let index = self.position(oldest).ok()?;
            let must = self.bounds.must_overwrite(self.held, own.held, is_value, bytes);
            // A notice older than every value kept tells nothing: the instance has been reborn since.
            let stale = overwrote.is_some()
                && own.held.values + usize::from(is_value) > 0
                && self.slots[index].held.as_ref().is_some_and(|held| held.change.kind != ChangeKind::Write);
            if !must && !stale {
                return overwrote;
            }
            self.overwritten_unacknowledged += u64::from(oldest > self.acknowledged);
            self.remove_at(index);
            overwrote = Some(oldest);
        }
    }

    fn chain(&mut self, instance: usize, sequence: SequenceNumber, is_value: bool, bytes: usize) {
        let Some(instances) = self.instances.as_mut() else { return };
        let before = instances.append(instance, sequence, is_value, bytes);
        if self.keeps_acknowledged && instances.get(instance).is_departed() {
            self.departures.push_back(Departure { sequence, instance });
        }
        let index = before.and_then(|before| self.position(before).ok());
        if let Some(held) = index.and_then(|index| self.slots[index].held.as_mut()) {
            held.next_of_instance = sequence;
        }
    }

    /// Empties slot `index`, which holds its instance's oldest change.
    fn remove_at(&mut self, index: usize) {
        let Some(held) = self.slots[index].held.take() else { return };
        let is_value = held.change.kind == ChangeKind::Write;
        let bytes = charge(&held.change);
        self.held.remove(is_value, bytes);
        if let Some(instances) = self.instances.as_mut() {
            instances.remove_oldest(held.instance, held.next_of_instance, is_value, bytes);
        }
    }

    /// Drops all that is held for instances that were disposed and unregistered, once everybody knows
    /// (service_cleanup_delay zero, DDS 1.4 §2.2.3.5).
    fn drop_departed(&mut self) {
        while let Some(&Departure { sequence, instance }) = self.departures.front()
            && sequence <= self.acknowledged
        {
            self.departures.pop_front();
            while let Some(own) = self.instances.as_ref().map(|instances| instances.get(instance))
                && own.newest == sequence
                && own.held.changes > 0
                && let Ok(index) = self.position(own.oldest)
            {
                self.remove_at(index);
            }
        }
    }

    /// Removes empty slots: those at the front at once, the others (and unused instances) when they outnumber the rest.
    fn sweep(&mut self) {
        while self.slots.front().is_some_and(|slot| slot.held.is_none()) {
            self.slots.pop_front();
        }
        let empty = self.slots.len() - self.held.changes;
        if empty > EMPTY_SLOTS_MAX.max(self.held.changes) {
            self.slots.retain(|slot| slot.held.is_some());
        }
        if let Some(instances) = self.instances.as_mut() {
            instances.sweep();
        }
    }

    /// Index of `sequence`, or where it would stand. Numbers are mostly contiguous, seen from one end or the other.
    fn position(&self, sequence: SequenceNumber) -> Result<usize, usize> {
        let (Some(front), Some(back)) = (self.slots.front(), self.slots.back()) else { return Err(0) };
        if sequence < front.sequence {
            return Err(0);
        }
        if sequence > back.sequence {
            return Err(self.slots.len());
        }
        let newest = self.slots.len() - 1;
        let from_front = usize::try_from(sequence - front.sequence).unwrap_or(usize::MAX);
        let from_back = usize::try_from(back.sequence - sequence).unwrap_or(usize::MAX);
        for index in [from_front, newest.wrapping_sub(from_back)] {
            if self.slots.get(index).is_some_and(|slot| slot.sequence == sequence) {
                return Ok(index);
            }
        }
        self.slots.binary_search_by_key(&sequence, |slot| slot.sequence)
    }
}

fn charge(change: &Change) -> usize {
    change.payload.len().saturating_add(CHANGE_BYTES)
}

#[cfg(test)]
impl WriterHistory {
    pub(super) fn slots_len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn instances_len(&self) -> usize {
        self.instances.as_ref().map_or(0, WriterInstances::len)
    }
}
