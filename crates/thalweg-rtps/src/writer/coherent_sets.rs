//! Coherent sets of a writer: which of its samples belong together (DDS 1.4 §2.2.2.4.1.10, RTPS 2.5 §8.7.5).

use std::collections::VecDeque;

use super::Writer;
use super::publisher_group::{GroupPlaces, PublisherGroup};
use crate::history::WriterHistory;
use crate::time::{Instant, Timestamp};
use crate::types::SequenceNumber;
use crate::wire::parameters::Belonging;
use crate::wire::{GroupInfo, Heartbeat};

/// The sets that the history still holds, oldest first.
#[derive(Debug, Default)]
pub(super) struct CoherentSets {
    sets: VecDeque<CoherentSet>,
    /// How many calls of `begin` have no `end` yet.
    depth: u32,
    /// The places of samples within the publisher, where its writers have a common order or common sets.
    group: Option<Box<GroupPlaces>>,
}

/// A set, which has at least one sample.
#[derive(Clone, Copy, Debug)]
struct CoherentSet {
    first: SequenceNumber,
    /// The number that says that it is complete; above all others while it is open.
    end: SequenceNumber,
}

const OPEN: SequenceNumber = SequenceNumber(i64::MAX);

/// Sets of which nothing may be held that are tolerated beside the changes that are.
const SETS_SPARE: usize = 64;

impl CoherentSets {
    /// Whether a sample that is written now belongs to a set.
    pub(super) fn is_open(&self) -> bool {
        self.depth > 0
    }

    /// Whether samples have a place within their publisher.
    pub(super) fn is_grouped(&self) -> bool {
        self.group.is_some()
    }

    /// Whether no sample belongs to anything.
    pub(super) fn is_plain(&self) -> bool {
        self.sets.is_empty() && self.group.is_none()
    }

    /// What a sample belongs to.
    pub(super) fn belonging(&self, sequence: SequenceNumber) -> Belonging {
        let group = self.group.as_ref().and_then(|group| group.of(sequence));
        Belonging { coherent_set: self.of(sequence), group, ..Belonging::default() }
    }

    /// What a sample says of sets: the number of the first sample of its own, [`SequenceNumber::UNKNOWN`] at the end of one; `None` for
    /// others.
    fn of(&self, sequence: SequenceNumber) -> Option<SequenceNumber> {
        let after = self.sets.partition_point(|set| set.first <= sequence);
        let set = self.sets.get(after.checked_sub(1)?)?;
        match sequence.cmp(&set.end) {
            std::cmp::Ordering::Less => Some(set.first),
            std::cmp::Ordering::Equal => Some(SequenceNumber::UNKNOWN),
            std::cmp::Ordering::Greater => None,
        }
    }

    fn has_open(&self) -> bool {
        self.sets.back().is_some_and(|set| set.end == OPEN)
    }

    /// A sample was written.
    pub(super) fn note_written(&mut self, sequence: SequenceNumber, history: &WriterHistory) {
        if let Some(group) = &mut self.group
            && group.note_written(sequence, history)
        {
            self.depth = self.depth.saturating_add(1);
        }
        if self.is_open() && !self.has_open() {
            self.sets.push_back(CoherentSet { first: sequence, end: OPEN });
        }
    }

    /// Forgets sets of which nothing is held any more.
    fn forget(&mut self, history: &WriterHistory) {
        let first = history.first();
        while self.sets.front().is_some_and(|set| set.end < first) {
            self.sets.pop_front();
        }
        if self.sets.len() >= SETS_SPARE + 2 * history.len() {
            self.sets.retain(|set| history.next_from(set.first).is_some_and(|sample| sample.sequence <= set.end));
        }
    }
}

impl Writer {
    /// Samples written from now on belong together, until as many calls of [`Writer::end_coherent_changes`] have followed as there were
    /// of this.
    pub fn begin_coherent_changes(&mut self) {
        self.coherent.depth = self.coherent.depth.saturating_add(1);
    }

    /// Ends what [`Writer::begin_coherent_changes`] began; returns false when nothing had begun. Readers learn of it by a number of its
    /// own, which leaves with the next [`Writer::start_sending`]; its time stamp is `timestamp`.
    pub fn end_coherent_changes(&mut self, now: Instant, timestamp: Timestamp) -> bool {
        if self.coherent.depth == 0 {
            return false;
        }
        self.coherent.depth -= 1;
        if self.coherent.depth > 0 || !self.coherent.has_open() {
            return true;
        }
        self.push_end(now, timestamp);
        true
    }

    /// Writes the number that says that a set is complete: of the writer's own samples, if it has a set, and of its publisher's.
    fn push_end(&mut self, now: Instant, timestamp: Timestamp) {
        let pushed = self.history.push_end_of_set(timestamp, self.coherent.has_open());
        if let Some(set) = self.coherent.sets.back_mut().filter(|set| set.end == OPEN) {
            set.end = pushed.sequence;
        }
        if let Some(group) = &mut self.coherent.group {
            group.note_end(pushed.sequence, &self.history);
        }
        self.coherent.forget(&self.history);
        self.note_pushed(now, pushed, 0);
        self.flush();
    }

    /// The writer's samples get their places among those of its publisher. For a writer that has written nothing.
    pub fn join_group(&mut self, group: PublisherGroup) {
        self.coherent.group = Some(Box::new(GroupPlaces::new(group)));
    }

    /// As [`Writer::begin_coherent_changes`] for the set `id` of its publisher, which is the number that the publisher uses next.
    pub fn begin_group_set(&mut self, id: SequenceNumber) {
        if let Some(group) = &mut self.coherent.group {
            if group.is_in(id) && id > SequenceNumber::ZERO {
                return; // A sample of another thread was the first.
            }
            group.open_set(id);
        }
        self.begin_coherent_changes();
    }

    /// Ends what [`Writer::begin_group_set`] began. Readers learn of it also from a writer that has written nothing meanwhile. As
    /// [`Writer::end_coherent_changes`] otherwise.
    pub fn end_group_set(&mut self, now: Instant, timestamp: Timestamp) -> bool {
        let is_whole = self.coherent.depth == 1;
        let tells = is_whole && self.coherent.is_grouped() && !self.coherent.has_open();
        let ended = self.end_coherent_changes(now, timestamp);
        if tells {
            self.push_end(now, timestamp);
        }
        if let Some(group) = self.coherent.group.as_mut().filter(|_| is_whole) {
            group.open_set(SequenceNumber::ZERO);
        }
        ended
    }

    /// What a HEARTBEAT of all that was sent says of the publisher; `None` for a HEARTBEAT that tells less, and without publisher.
    pub(super) fn group_info(&self, heartbeat: &Heartbeat) -> Option<GroupInfo> {
        let group = self.coherent.group.as_ref()?;
        let unsent = self.outgoing.place.sample;
        let number = |sequence| group.of(sequence).map_or(SequenceNumber::ZERO, |place| place.number);
        let (first, last) = (number(heartbeat.first), number(heartbeat.last));
        (heartbeat.last == unsent.previous()).then(|| GroupInfo { current: group.settled_before(unsent), first, last })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::START;
    use super::*;
    use crate::history::ChangeKind;
    use crate::payload::Payload;
    use crate::qos::{Durability, History, ResourceLimits, WriterQos};
    use crate::types::{EntityId, Guid, GuidPrefix, KeyHash, Keyed};
    use crate::writer::{NewChange, WriterOptions};

    #[test]
    fn sets_to_which_a_writer_contributes_nothing_take_no_room_from_its_samples() {
        let limited =
            |max_samples, max_instances| ResourceLimits { max_samples, max_instances, ..ResourceLimits::default() };
        for (history, resource_limits) in [
            (History::KeepAll, limited(Some(100), None)),
            (History::KeepLast(1), limited(None, Some(1))),
            (History::KeepLast(1), limited(Some(1), None)),
        ] {
            let guid = Guid::new(GuidPrefix([99; 12]), EntityId::user_writer(1, Keyed::Yes));
            let durability = Durability::TransientLocal;
            let qos = WriterQos { history, durability, resource_limits, ..WriterQos::default() };
            let mut writer = Writer::new(guid, qos.into(), &WriterOptions::default());
            let group = PublisherGroup::new(EntityId::UNKNOWN);
            writer.join_group(group.clone());
            for _ in 0..1_000 {
                writer.begin_group_set(group.open_set());
                group.note_opened();
                assert!(writer.end_group_set(START, Timestamp { seconds: 1, fraction: 0 }));
            }
            assert!(writer.held() <= 100, "{} held with {resource_limits:?}", writer.held());
            let (kind, instance, payload) = (ChangeKind::Write, KeyHash([1; 16]), Payload::from(vec![0; 8]));
            let written = writer.write(START, NewChange { kind, instance, timestamp: None, payload });
            assert!(written.is_ok(), "{resource_limits:?}");
        }
    }
}
