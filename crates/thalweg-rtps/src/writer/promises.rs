//! What a writer promises by finite policies: how long its samples are worth something (LIFESPAN), how often it writes (DEADLINE) and
//! that its application asserts its liveliness (LIVELINESS). A writer without such policies has none of this.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::{Writer, WriterOutcome};
use crate::assertion::ManualAssertion;
use crate::history::{ChangeKind, DeadlineMissed, Deadlines, WriterHistory};
use crate::qos::{LivelinessKind, WriterQos, WriterTiming};
use crate::time::{INFINITE, Instant};
use crate::types::{KeyHash, SequenceNumber};

#[derive(Debug)]
pub(super) struct Promises {
    lifetimes: Option<Lifetimes>,
    deadlines: Option<Deadlines>,
    liveliness: Option<Assertions>,
}

/// The ends of the lives of the values of a writer, in the order of their numbers.
#[derive(Debug)]
struct Lifetimes {
    lifespan: Duration,
    ends: VecDeque<(Instant, SequenceNumber)>,
}

/// The assertions of a writer whose liveliness is manual.
#[derive(Debug)]
struct Assertions {
    kind: LivelinessKind,
    lease: Duration,
    last: Instant,
    /// When something left that tells readers so.
    told: Instant,
    /// Of all writers of the participant whose liveliness is asserted together.
    shared: ManualAssertion,
    is_lost: bool,
    /// When it is looked whether one that was lost is asserted again.
    look_again_at: Instant,
    lost: u64,
    /// The participant awaits the assertion, and is to be woken for it.
    wake_at: Option<Instant>,
    /// Readers are to be told by a HEARTBEAT.
    is_owed: bool,
}

/// How often within a lease readers are told that a writer is alive whose samples they do not want.
const SIGNS_IN_LEASE: u32 = 3;

/// Ends of lives of samples that are gone which are tolerated beside twice the samples that are held.
const ENDS_SPARE: usize = 64;

impl Promises {
    pub(super) fn new(qos: &WriterQos) -> Option<Box<Promises>> {
        let is_manual = match qos.liveliness.kind {
            LivelinessKind::Automatic => false,
            // Also with a lease that does not end: it asserts the others of its participant (RTPS 2.5 §8.7.2.2).
            LivelinessKind::ManualByParticipant => true,
            LivelinessKind::ManualByTopic => qos.liveliness.lease != INFINITE,
        };
        let promises = Promises {
            lifetimes: Lifetimes::new(qos.timing.lifespan),
            deadlines: Deadlines::new(qos.timing.deadline),
            liveliness: is_manual.then(|| Assertions {
                kind: qos.liveliness.kind,
                lease: qos.liveliness.lease,
                last: Instant::ZERO,
                told: Instant::ZERO,
                shared: ManualAssertion::default(),
                is_lost: false,
                look_again_at: Instant::NEVER,
                lost: 0,
                wake_at: None,
                is_owed: false,
            }),
        };
        let any = promises.lifetimes.is_some() || promises.deadlines.is_some() || promises.liveliness.is_some();
        any.then(|| Box::new(promises))
    }

    fn set_timing(&mut self, now: Instant, timing: &WriterTiming) {
        match &mut self.lifetimes {
            Some(lifetimes) => lifetimes.lifespan = timing.lifespan,
            None => self.lifetimes = Lifetimes::new(timing.lifespan),
        }
        match &mut self.deadlines {
            Some(deadlines) => deadlines.set_period(now, timing.deadline),
            None => self.deadlines = Deadlines::new(timing.deadline),
        }
    }

    /// A change was written; number zero stands for one that is not sent.
    pub(super) fn note_written(
        &mut self,
        now: Instant,
        (instance, kind): (KeyHash, ChangeKind),
        sequence: SequenceNumber,
        history: &WriterHistory,
    ) {
        let is_held = kind == ChangeKind::Write && sequence > SequenceNumber::ZERO;
        if let Some(lifetimes) = self.lifetimes.as_mut().filter(|_| is_held) {
            lifetimes.note(now, Duration::ZERO, sequence, history);
        }
        if let Some(deadlines) = &mut self.deadlines {
            match kind {
                ChangeKind::Write => deadlines.met(now, instance),
                _ => deadlines.end(instance),
            }
        }
        if let Some(liveliness) = &mut self.liveliness {
            liveliness.assert(now);
            match sequence {
                SequenceNumber::ZERO => liveliness.tell_of_unsent(now),
                _ => liveliness.told = now,
            }
        }
    }

    /// Values of these ages are there again.
    pub(super) fn note_restored(
        &mut self,
        now: Instant,
        values: impl Iterator<Item = (Duration, SequenceNumber)>,
        history: &WriterHistory,
    ) {
        if let Some(lifetimes) = &mut self.lifetimes {
            values.for_each(|(age, sequence)| lifetimes.note(now, age, sequence, history));
        }
    }

    /// When something is to be done.
    fn next_due(&self) -> Instant {
        let lifetimes = self.lifetimes.as_ref().and_then(|lifetimes| lifetimes.ends.front());
        let deadlines = self.deadlines.as_ref().map_or(Instant::NEVER, Deadlines::next_due);
        let liveliness = self.liveliness.as_ref().map_or(Instant::NEVER, Assertions::next_due);
        lifetimes.map_or(Instant::NEVER, |(end, _)| *end).min(deadlines).min(liveliness)
    }

    #[cfg(test)]
    pub(super) fn lifetimes_kept(&self) -> usize {
        self.lifetimes.as_ref().map_or(0, |lifetimes| lifetimes.ends.len())
    }

    /// Whether a HEARTBEAT has to assert the writer's liveliness.
    pub(super) fn owes_assertion(&self) -> bool {
        self.liveliness.as_ref().is_some_and(|liveliness| liveliness.is_owed)
    }

    /// True once after readers were to be told.
    pub(super) fn take_owed_assertion(&mut self) -> bool {
        self.liveliness.as_mut().is_some_and(|liveliness| std::mem::take(&mut liveliness.is_owed))
    }
}

impl Lifetimes {
    /// `None` for an infinite lifespan.
    fn new(lifespan: Duration) -> Option<Lifetimes> {
        (lifespan != INFINITE).then(|| Lifetimes { lifespan, ends: VecDeque::new() })
    }

    /// A value was written so long before `now`.
    fn note(&mut self, now: Instant, age: Duration, sequence: SequenceNumber, history: &WriterHistory) {
        if self.lifespan == INFINITE {
            return;
        }
        if self.ends.len() >= ENDS_SPARE + 2 * history.len() {
            self.ends.retain(|(_, sequence)| history.get(*sequence).is_some());
        }
        // Behind all others, unless the lifespan was shortened lately, or the wall clock set back while values were stored.
        let end = now + self.lifespan.saturating_sub(age);
        let place = self.ends.partition_point(|(other, _)| *other <= end);
        self.ends.insert(place, (end, sequence));
    }

    /// Takes out the samples whose time is over, and those that are gone in front of the others.
    fn end(&mut self, now: Instant, history: &mut WriterHistory) -> bool {
        let count = self.ends.partition_point(|(end, _)| *end <= now);
        let freed = history.expire(self.ends.drain(..count).map(|(_, sequence)| sequence));
        while self.ends.front().is_some_and(|(_, sequence)| history.get(*sequence).is_none()) {
            self.ends.pop_front();
        }
        freed
    }
}

impl Assertions {
    fn assert(&mut self, now: Instant) {
        (self.last, self.is_lost) = (now, false);
        if self.kind == LivelinessKind::ManualByParticipant && self.shared.assert(now) {
            self.wake_at = Some(now);
        }
    }

    /// A sample counts as written but does not leave: by topic, nothing tells readers of the assertion unless a HEARTBEAT does.
    fn tell_of_unsent(&mut self, now: Instant) {
        if self.kind == LivelinessKind::ManualByTopic && now.since(self.told) >= self.lease / SIGNS_IN_LEASE {
            (self.is_owed, self.told) = (true, now);
        }
    }

    fn next_due(&self) -> Instant {
        let lease_end = self.lease_end();
        self.wake_at.map_or(lease_end, |at| at.min(lease_end))
    }

    fn lease_end(&self) -> Instant {
        if self.is_lost { self.look_again_at } else { self.last + self.lease }
    }

    /// True when the lease ends now.
    fn check(&mut self, now: Instant) -> bool {
        // Whoever calls this is the participant, or has woken it.
        self.wake_at = None;
        if self.lease_end() > now {
            return false;
        }
        let is_shared = self.kind == LivelinessKind::ManualByParticipant;
        if is_shared && self.shared.last() > self.last {
            (self.last, self.is_lost) = (self.shared.last(), false);
        }
        let ends = !self.is_lost && self.lease_end() <= now;
        if ends {
            self.is_lost = true;
            self.lost += 1;
        }
        // Other writers may assert it.
        self.look_again_at = if is_shared { now + self.lease } else { Instant::NEVER };
        ends
    }
}

impl Writer {
    /// The writer's life begins at `now`. `shared` holds the assertions of all writers of its participant that are asserted together.
    pub(crate) fn begin_promises(&mut self, now: Instant, shared: &ManualAssertion) {
        if let Some(liveliness) = self.promises.as_mut().and_then(|promises| promises.liveliness.as_mut()) {
            (liveliness.last, liveliness.shared) = (now, shared.clone());
            // Readers of one that was lost in an earlier life are told of the new one.
            let was_lost = std::mem::take(&mut liveliness.is_lost);
            liveliness.is_owed |= was_lost && liveliness.kind == LivelinessKind::ManualByTopic;
        }
    }

    /// Changes the policies that may change; see [`WriterQos::check_change`], which holds. A new LIFESPAN counts for samples that are
    /// written from now on, and a DEADLINE that there was none of before for instances from their next sample on.
    pub(crate) fn set_qos(&mut self, now: Instant, qos: Arc<WriterQos>) {
        match &mut self.promises {
            Some(promises) => promises.set_timing(now, &qos.timing),
            None => self.promises = Promises::new(&qos),
        }
        self.qos = qos;
    }

    /// Asserts the writer's liveliness (DDS 1.4 §2.2.2.4.2.22): true when its participant has to tell the others, since its liveliness
    /// is asserted together with that of other writers. It is by itself where its QoS is manual by topic: a HEARTBEAT leaves with the
    /// next [`Writer::start_sending`] or [`Writer::poll_transmit`].
    pub fn assert_liveliness(&mut self, now: Instant) -> bool {
        let Some(liveliness) = self.promises.as_mut().and_then(|promises| promises.liveliness.as_mut()) else {
            return false;
        };
        liveliness.assert(now);
        // The caller wakes it.
        liveliness.wake_at = None;
        (liveliness.is_owed, liveliness.told) = (liveliness.kind == LivelinessKind::ManualByTopic, now);
        !liveliness.is_owed
    }

    /// OFFERED_DEADLINE_MISSED.
    pub fn deadline_missed(&self) -> DeadlineMissed {
        let deadlines = self.promises.as_ref().and_then(|promises| promises.deadlines.as_ref());
        deadlines.map(Deadlines::missed).unwrap_or_default()
    }

    /// LIVELINESS_LOST: how often the application did not assert the writer's liveliness in time.
    pub fn liveliness_lost(&self) -> u64 {
        let liveliness = self.promises.as_ref().and_then(|promises| promises.liveliness.as_ref());
        liveliness.map_or(0, |liveliness| liveliness.lost)
    }

    /// Whether it has a LIFESPAN, a DEADLINE or a manual LIVELINESS: these fall due whoever is sending for it.
    pub fn has_promises(&self) -> bool {
        self.promises.is_some()
    }

    /// When a promise is due.
    #[inline]
    pub(super) fn promises_due(&self) -> Instant {
        self.promises.as_ref().map_or(Instant::NEVER, |promises| promises.next_due())
    }

    /// Lets samples go whose time is over, and takes note of promises that were not kept.
    pub(super) fn check_promises(&mut self, now: Instant, outcome: &mut WriterOutcome) {
        let Some(promises) = &mut self.promises else { return };
        if promises.next_due() > now {
            return;
        }
        let freed = promises.lifetimes.as_mut().is_some_and(|lifetimes| lifetimes.end(now, &mut self.history));
        outcome.deadline_missed = promises.deadlines.as_mut().is_some_and(|deadlines| deadlines.check(now, |_| ()));
        outcome.liveliness_lost = promises.liveliness.as_mut().is_some_and(|liveliness| liveliness.check(now));
        if freed {
            let has_room = self.room.is_drained(&self.history);
            outcome.space |= self.room.take_awaited(has_room);
        }
    }
}
