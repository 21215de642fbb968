//! Which of the samples that arrive in order reach the cache: OWNERSHIP, DESTINATION_ORDER and TIME_BASED_FILTER, and the DEADLINE of
//! what does. A reader without such policies has none of this.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

use super::MatchedWriter;
use super::standing::{Standing, Waiting, WaitingLoad, charge};
use crate::history::{
    CachedSample, ChangeKind, DeadlineMissed, Deadlines, InstanceState, PeriodWatch, RejectReason, SampleCache,
};
use crate::qos::{DestinationOrder, Ownership, ReaderQos, WriterOwnership};
use crate::time::{EpochOffset, Instant, Timestamp};
use crate::types::{Guid, KeyHash};

#[derive(Debug)]
pub(super) struct Admission {
    /// Writers by which instances are owned, where ownership is exclusive.
    owners: Option<BTreeMap<Guid, Rank>>,
    by_source: bool,
    /// The wall clock, where it is known.
    epoch: Option<EpochOffset>,
    separation: Option<Separation>,
    deadlines: Option<Deadlines>,
    instances: BTreeMap<KeyHash, Standing>,
    waits: WaitingLoad,
    ignores_unknown_ends: bool,
    withheld: u64,
}

/// The rank of a matched writer among others.
#[derive(Clone, Copy, Debug)]
struct Rank {
    strength: i32,
    is_alive: bool,
}

/// TIME_BASED_FILTER.
#[derive(Debug)]
struct Separation {
    /// The newest sample that came too early follows when its time has come: a reliable reader ends with the last value.
    keeps_last: bool,
    /// Instances of which a sample was admitted lately.
    recent: PeriodWatch,
    /// Instances whose waiting sample met a full cache when its time had come, with that time.
    overdue: BTreeSet<(Instant, KeyHash)>,
}

/// What decides about a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub writer: Guid,
    pub instance: KeyHash,
    pub kind: ChangeKind,
    pub timestamp: Option<Timestamp>,
}

impl Head {
    pub(super) fn of(sample: &CachedSample) -> Head {
        let CachedSample { writer, instance, change, source_timestamp, .. } = *sample;
        Head { writer, instance, kind: change, timestamp: source_timestamp }
    }

    /// Why `cache` has no room for it.
    #[inline]
    pub(super) fn refusal(&self, cache: &SampleCache, payload_bytes: usize) -> Option<RejectReason> {
        cache.refusal(self.instance, self.kind, self.writer, payload_bytes)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The cache gets it, as a change of this kind.
    Admit(ChangeKind),
    /// Nobody gets it.
    Withhold,
    /// Nobody gets it unless it is still the newest of its instance when its time has come and there is room.
    Wait,
}

/// How far the clocks of source and reader may differ, where they do not agree that a sample has been written yet. Chosen by Thalweg as
/// RTI Connext has it by default.
const SOURCE_TIME_TOLERANCE: Duration = Duration::from_secs(30);

/// Instances remembered beside twice those that the cache knows or of which a sample waits.
const STANDINGS_SPARE: usize = 64;

impl Admission {
    /// Admits whatever comes.
    pub(super) fn of_everything() -> Box<Admission> {
        Box::new(Admission {
            owners: None,
            by_source: false,
            epoch: None,
            separation: None,
            deadlines: None,
            instances: BTreeMap::new(),
            waits: WaitingLoad::default(),
            ignores_unknown_ends: false,
            withheld: 0,
        })
    }

    /// The wall clock, where it is known.
    pub(super) fn set_epoch(&mut self, epoch: Option<EpochOffset>) {
        self.epoch = epoch;
    }

    /// The ends of instances that the cache does not know are withheld.
    pub(super) fn without_unknown_ends(mut self: Box<Admission>) -> Box<Admission> {
        self.ignores_unknown_ends = true;
        self
    }

    pub(super) fn new(qos: &ReaderQos) -> Option<Box<Admission>> {
        let admission = Admission {
            owners: (qos.ownership == Ownership::Exclusive).then(BTreeMap::new),
            by_source: qos.destination_order == DestinationOrder::BySource,
            epoch: None,
            separation: Separation::new(qos),
            deadlines: Deadlines::new(qos.timing.deadline),
            ..*Admission::of_everything()
        };
        let Admission { owners, by_source, separation, deadlines, .. } = &admission;
        let any = owners.is_some() || *by_source || separation.is_some() || deadlines.is_some();
        any.then(|| Box::new(admission))
    }

    /// Changes DEADLINE and TIME_BASED_FILTER. The periods of all instances begin anew; a sample that waits for the end of one follows
    /// at the end of the new one.
    pub(super) fn set_timing(&mut self, now: Instant, qos: &ReaderQos) {
        let minimum = qos.timing.minimum_separation;
        match &mut self.separation {
            Some(separation) => separation.recent.set_period(now, minimum),
            None => self.separation = Separation::new(qos),
        }
        match &mut self.deadlines {
            Some(deadlines) => deadlines.set_period(now, qos.timing.deadline),
            None => self.deadlines = Deadlines::new(qos.timing.deadline),
        }
    }

    /// Samples that were not handed over.
    pub(super) fn withheld(&self) -> u64 {
        self.withheld
    }

    /// Bytes of the samples that came too early and wait for their time, or for room since.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.waits.bytes
    }

    /// Whether a sample that came too early finds no room beside those of other instances, which may have `bytes_max` together with it.
    pub(super) fn lacks_room_to_wait(&self, instance: KeyHash, payload_bytes: usize, bytes_max: usize) -> bool {
        let replaced = self.instances.get(&instance).and_then(|standing| standing.waiting.as_ref());
        let others = self.waits.bytes - replaced.map_or(0, Waiting::bytes);
        others > 0 && others.saturating_add(charge(payload_bytes)) > bytes_max
    }

    pub(super) fn deadline_missed(&self) -> DeadlineMissed {
        self.deadlines.as_ref().map(Deadlines::missed).unwrap_or_default()
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.instances.len() + self.separation.as_ref().map_or(0, |separation| separation.recent.len())
    }

    /// A writer is matched, or what is known of it has changed.
    pub(super) fn match_writer(&mut self, matched: &MatchedWriter) {
        if let Some(owners) = &mut self.owners {
            let strength = match matched.qos.ownership {
                WriterOwnership::Exclusive { strength } => strength,
                WriterOwnership::Shared => 0,
            };
            owners.entry(matched.guid).or_insert(Rank { strength, is_alive: true }).strength = strength;
        }
    }

    /// A writer is gone: it owns nothing any more.
    pub(super) fn unmatch_writer(&mut self, writer: Guid) {
        if let Some(owners) = &mut self.owners {
            owners.remove(&writer);
        }
        self.instances.values_mut().for_each(|standing| standing.leave(writer));
    }

    /// A writer has lost its liveliness, and with it all that it owned.
    pub(super) fn disregard(&mut self, writer: Guid) {
        if let Some(rank) = self.rank_mut(writer) {
            rank.is_alive = false;
        }
        self.instances.values_mut().for_each(|standing| standing.note_alive(writer, false));
    }

    /// A writer is alive again.
    pub(super) fn regard(&mut self, writer: Guid) {
        if let Some(rank) = self.rank_mut(writer) {
            rank.is_alive = true;
        }
        self.instances.values_mut().for_each(|standing| standing.note_alive(writer, true));
    }

    fn rank_mut(&mut self, writer: Guid) -> Option<&mut Rank> {
        self.owners.as_mut()?.get_mut(&writer)
    }

    /// Nothing is expected any more of instances that have ended with their last writer.
    pub(super) fn forget_ended(&mut self, cache: &SampleCache) {
        if let Some(deadlines) = &mut self.deadlines {
            deadlines.retain(|instance| cache.instance_state(instance) == Some(InstanceState::Alive));
        }
    }

    /// Decides about a sample. It changes nothing: a sample without room in the cache is judged again.
    pub(super) fn judge(&self, now: Instant, head: &Head, cache: &SampleCache) -> Verdict {
        if self.ignores_unknown_ends && head.kind != ChangeKind::Write && cache.instance_state(head.instance).is_none()
        {
            return Verdict::Withhold;
        }
        let standing = self.instances.get(&head.instance);
        let mut kind = head.kind;
        // The newest sample counts, whether the cache has it yet or not.
        if !self.may_write(standing, head, cache) {
            if !kind.unregisters() {
                return Verdict::Withhold;
            }
            // Only the owner deletes; a weaker writer can but give up.
            kind = ChangeKind::Unregister;
        }
        let precedes = |newest: (Timestamp, Guid)| is_older(head, newest) && !self.is_astray(now, head, newest.0);
        let older = |standing: &Standing| standing.newest().is_some_and(precedes);
        if self.by_source && kind != ChangeKind::Unregister && standing.is_some_and(older) {
            if !kind.unregisters() {
                return Verdict::Withhold;
            }
            kind = ChangeKind::Unregister;
        }
        match &self.separation {
            Some(separation)
                if kind == ChangeKind::Write
                    && (separation.is_recent(now, head.instance)
                        || standing.is_some_and(|standing| standing.overdue_since.is_some())) =>
            {
                if separation.keeps_last { Verdict::Wait } else { Verdict::Withhold }
            }
            _ => Verdict::Admit(kind),
        }
    }

    /// Whether the newest sample of an instance bears a time that cannot be, while that of the next one can: the clock of its source
    /// was wrong, or somebody made it up. Nothing would follow it otherwise.
    fn is_astray(&self, now: Instant, head: &Head, newest: Timestamp) -> bool {
        let is_beyond =
            |stamp: Timestamp| self.epoch.is_some_and(|epoch| epoch.instant(stamp) > now + SOURCE_TIME_TOLERANCE);
        is_beyond(newest) && !head.timestamp.is_some_and(is_beyond)
    }

    /// Whether its writer may update the instance: it owns it, or is stronger than the owner, or of equal strength and lower GUID (DDS
    /// 1.4 §2.2.3.9.2). When the owner has left, it has to be the strongest of those that write the instance.
    fn may_write(&self, standing: Option<&Standing>, head: &Head, cache: &SampleCache) -> bool {
        let Some(owners) = &self.owners else { return true };
        let place =
            |guid: Guid| owners.get(&guid).filter(|rank| rank.is_alive).map(|rank| (rank.strength, Reverse(guid)));
        let own = place(head.writer);
        let is_weaker = |other: Guid| place(other).is_some_and(|other| own.is_none_or(|own| own < other));
        match standing.and_then(Standing::owner) {
            Some(owner) if place(owner).is_some() => owner == head.writer || !is_weaker(owner),
            _ if standing.is_some_and(|standing| standing.is_free) => true,
            _ => !cache.writers(head.instance).iter().any(|other| *other != head.writer && is_weaker(*other)),
        }
    }

    /// A sample was not handed over.
    pub(super) fn withhold(&mut self, sample: CachedSample, verdict: Verdict, cache: &mut SampleCache) {
        self.withheld += 1;
        if sample.change == ChangeKind::Write {
            cache.note_writer(sample.instance, sample.writer);
        }
        if verdict == Verdict::Wait {
            let standing = self.instances.entry(sample.instance).or_default();
            self.waits.exchange(&mut standing.waiting, Some(Waiting { sample, has_left: false, is_silent: false }));
        }
    }

    /// A sample was handed to the cache.
    pub(super) fn note_admitted(&mut self, now: Instant, head: &Head, cache: &SampleCache) {
        let keeps_standings = self.owners.is_some() || self.by_source || self.separation.is_some();
        let is_value = head.kind == ChangeKind::Write;
        // A writer that gives up an instance that another one still writes does not end it.
        let ends = !is_value && cache.instance_state(head.instance) != Some(InstanceState::Alive);
        let mut keeps_waiting = false;
        if keeps_standings {
            let standing = self.instances.entry(head.instance).or_default();
            if self.owners.is_some() {
                let gives_up = head.kind.unregisters();
                match gives_up {
                    true if standing.owner == Some(head.writer) => standing.owner = None,
                    true => {}
                    false => (standing.owner, standing.is_free) = (Some(head.writer), false),
                }
            }
            if let Some(timestamp) = head.timestamp.filter(|_| head.kind != ChangeKind::Unregister) {
                standing.newest = Some((timestamp, head.writer));
            }
            // Who gives the instance up does not take its last value back, as little as one that leaves without a word.
            let gives_up_value = head.kind == ChangeKind::Unregister && standing.waiting.is_some();
            keeps_waiting = !is_value && (!ends || gives_up_value);
            if keeps_waiting {
                standing.leave(head.writer);
            } else {
                self.waits.exchange(&mut standing.waiting, None);
                if let Some(since) = standing.overdue_since.take()
                    && let Some(separation) = &mut self.separation
                {
                    separation.overdue.remove(&(since, head.instance));
                }
            }
            self.forget_unknown(cache);
        }
        if let Some(separation) = &mut self.separation {
            if ends && !keeps_waiting {
                separation.recent.end(head.instance);
            } else if is_value && !separation.recent.period().is_zero() {
                separation.recent.renew(now, head.instance);
            }
        }
        if let Some(deadlines) = &mut self.deadlines {
            if ends {
                deadlines.end(head.instance);
            } else if is_value {
                deadlines.met(now, head.instance);
            }
        }
    }

    /// The writer of a value that was handed over late had left before: its instance loses it at once.
    pub(super) fn let_go(&mut self, now: Instant, head: &Head, cache: &mut SampleCache) {
        cache.instance_left(head.instance, head.writer, now);
        self.note_admitted(now, &Head { kind: ChangeKind::Unregister, ..*head }, cache);
    }

    /// Forgets instances that the cache does not know any more and of which nothing waits, once they are many.
    fn forget_unknown(&mut self, cache: &SampleCache) {
        if self.instances.len() > STANDINGS_SPARE + 2 * (cache.instances() + self.waits.samples) {
            self.instances
                .retain(|instance, standing| standing.waiting.is_some() || cache.instance_state(*instance).is_some());
        }
    }

    /// When something is to be done.
    pub(super) fn next_due(&self) -> Instant {
        let deadline = self.deadlines.as_ref().map_or(Instant::NEVER, Deadlines::next_due);
        let separation = self.separation.as_ref().map_or(Instant::NEVER, |separation| separation.recent.next_end());
        deadline.min(separation)
    }

    /// Notes deadlines that were missed by `now`; true when there were any. Who misses one does not own the instance any more.
    pub(super) fn check_deadlines(&mut self, now: Instant) -> bool {
        let Admission { deadlines, instances, .. } = self;
        deadlines.as_mut().is_some_and(|deadlines| {
            deadlines.check(now, |instance| {
                if let Some(standing) = instances.get_mut(&instance) {
                    (standing.owner, standing.is_free) = (None, true);
                }
            })
        })
    }

    /// The next sample that came too early and whose time has come by `now`.
    pub(super) fn poll_waiting(&mut self, now: Instant) -> Option<Waiting> {
        let separation = self.separation.as_mut()?;
        while let Some((instance, _)) = separation.recent.pop_ended(now) {
            let Some(standing) = self.instances.get_mut(&instance) else { continue };
            let waiting = self.waits.exchange(&mut standing.waiting, None);
            if waiting.is_some() {
                return waiting;
            }
        }
        None
    }

    /// A sample whose time has come at `since` finds no room in the cache: it follows when there is some, unless a newer one of its
    /// instance comes first.
    pub(super) fn keep_overdue(&mut self, since: Instant, waiting: Waiting) {
        let Some(separation) = &mut self.separation else { return };
        let instance = waiting.sample.instance;
        separation.overdue.insert((since, instance));
        let standing = self.instances.entry(instance).or_default();
        standing.overdue_since = Some(since);
        self.waits.exchange(&mut standing.waiting, Some(waiting));
    }

    /// The sample that has waited for room longest behind that at `after`, and its place.
    pub(super) fn overdue_after(
        &self,
        after: Option<(Instant, KeyHash)>,
    ) -> Option<((Instant, KeyHash), &CachedSample)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut places = self.separation.as_ref()?.overdue.range((from, Bound::Unbounded));
        places.find_map(|place| Some((*place, &self.instances.get(&place.1)?.waiting.as_ref()?.sample)))
    }

    /// Takes out the sample that waits for room at this place.
    pub(super) fn take_overdue(&mut self, place: (Instant, KeyHash)) -> Option<Waiting> {
        self.separation.as_mut()?.overdue.remove(&place);
        let standing = self.instances.get_mut(&place.1)?;
        standing.overdue_since = None;
        self.waits.exchange(&mut standing.waiting, None)
    }
}

impl Separation {
    /// `None` without a minimum.
    fn new(qos: &ReaderQos) -> Option<Separation> {
        let minimum = qos.timing.minimum_separation;
        (!minimum.is_zero()).then(|| Separation {
            keeps_last: qos.reliability.is_reliable(),
            recent: PeriodWatch::new(minimum),
            overdue: BTreeSet::new(),
        })
    }

    fn is_recent(&self, now: Instant, instance: KeyHash) -> bool {
        self.recent.end_of(instance).is_some_and(|end| now < end)
    }
}

/// Whether a sample is older at its source than the newest one of its instance. Without a time stamp, the order of reception counts.
fn is_older(head: &Head, (newest, writer): (Timestamp, Guid)) -> bool {
    head.timestamp.is_some_and(|timestamp| timestamp < newest || timestamp == newest && head.writer > writer)
}
