//! `take` and `read` of a reader, and what waits for the room that a take makes.

use super::writer_proxy::WriterProxy;
use super::{Reader, TakeOutcome};
use crate::history::{Choice, ReadFilter, SampleCache, TakenSample};
use crate::time::Instant;
use crate::types::KeyHash;

impl Reader {
    /// As [`Reader::take`] for the first instance behind `after`, in the order of key hashes, with samples that `filter` selects
    /// (DDS 1.4 §2.2.2.5.3.16).
    pub fn take_next_instance(
        &mut self,
        clock: impl Fn() -> Instant,
        after: Option<KeyHash>,
        max: usize,
        filter: &ReadFilter,
        into: &mut Vec<TakenSample>,
    ) -> TakeOutcome {
        self.take_by(clock, |cache| match cache.next_selected(after, filter) {
            Some(instance) => cache.take(max, &ReadFilter { instance: Some(instance), ..*filter }, into),
            None => 0,
        })
    }

    /// As [`Reader::take_next_instance`], but the samples stay and are marked READ.
    pub fn read_next_instance(
        &mut self,
        clock: impl Fn() -> Instant,
        after: Option<KeyHash>,
        max: usize,
        filter: &ReadFilter,
        into: &mut Vec<TakenSample>,
    ) -> TakeOutcome {
        self.read_by(clock, |cache| match cache.next_selected(after, filter) {
            Some(instance) => cache.read(max, &ReadFilter { instance: Some(instance), ..*filter }, into),
            None => 0,
        })
    }

    /// Whether everything has come that matched writers keep for late readers and have told of (DDS 1.4 §2.2.2.5.3.27).
    pub fn has_historical_data(&self) -> bool {
        let has_all = |writer: &WriterProxy| {
            writer.announced_by_heartbeat.is_some_and(|last| writer.window.next() > last) && writer.window.is_empty()
        };
        let mut owing = self.writers.iter().filter(|writer| writer.matched.reliable && writer.matched.keeps_history());
        !self.wants_history() || owing.all(has_all)
    }

    /// Removes up to `max` samples that `filter` selects, in order of reception, and appends them to `into`. `clock` is read
    /// only when samples had waited for room, or may have expired.
    pub fn take(
        &mut self,
        clock: impl Fn() -> Instant,
        max: usize,
        filter: &ReadFilter,
        into: &mut Vec<TakenSample>,
    ) -> TakeOutcome {
        self.take_by(clock, |cache| cache.take(max, filter, into))
    }

    /// As [`Reader::take`] for chosen samples.
    pub fn take_chosen(
        &mut self,
        clock: impl Fn() -> Instant,
        choice: &Choice,
        into: &mut Vec<TakenSample>,
    ) -> TakeOutcome {
        self.take_by(clock, |cache| cache.take_chosen(choice, into))
    }

    #[inline]
    fn take_by(&mut self, clock: impl Fn() -> Instant, take: impl FnOnce(&mut SampleCache) -> usize) -> TakeOutcome {
        let expired = self.handover.expire(&clock);
        let count = take(&mut self.handover.cache);
        if !self.handover.is_stalled || count == 0 && !expired {
            return TakeOutcome { count, ..TakeOutcome::default() };
        }
        let now = clock();
        let refill = self.use_room(now);
        self.refilled |= refill.is_any;
        TakeOutcome { count, arm: self.arm_after(now, refill), keys_due: self.has_keys_due(), stay: false }
    }

    /// As [`Reader::take`], but the samples stay and are marked READ.
    pub fn read(
        &mut self,
        clock: impl Fn() -> Instant,
        max: usize,
        filter: &ReadFilter,
        into: &mut Vec<TakenSample>,
    ) -> TakeOutcome {
        self.read_by(clock, |cache| cache.read(max, filter, into))
    }

    /// As [`Reader::read`] for chosen samples.
    pub fn read_chosen(
        &mut self,
        clock: impl Fn() -> Instant,
        choice: &Choice,
        into: &mut Vec<TakenSample>,
    ) -> TakeOutcome {
        self.read_by(clock, |cache| cache.read_chosen(choice, into))
    }

    #[inline]
    fn read_by(&mut self, clock: impl Fn() -> Instant, read: impl FnOnce(&mut SampleCache) -> usize) -> TakeOutcome {
        if !self.handover.expire(&clock) || !self.handover.is_stalled {
            return TakeOutcome { count: read(&mut self.handover.cache), stay: true, ..TakeOutcome::default() };
        }
        let now = clock();
        let refill = self.use_room(now);
        self.refilled |= refill.is_any;
        let count = read(&mut self.handover.cache);
        if !refill.is_any && !refill.is_to_be_looked_at {
            return TakeOutcome { count, stay: true, ..TakeOutcome::default() };
        }
        TakeOutcome { count, arm: self.arm_after(now, refill), keys_due: self.has_keys_due(), stay: true }
    }

    /// Hands over what had waited for room.
    pub(super) fn use_room(&mut self, now: Instant) -> Refill {
        let awaits_room = self.handover.awaits_room();
        self.handover.is_stalled = awaits_room;
        let is_overdue = self.handover.present_overdue(now);
        let is_any = self.move_writers_on(now) | is_overdue;
        Refill { is_any, is_to_be_looked_at: is_overdue || awaits_room }
    }

    /// Hands over what waits in the windows of writers, as far as there is room; true when something followed.
    pub(super) fn move_writers_on(&mut self, now: Instant) -> bool {
        let mut is_any = false;
        self.writers.move_on(|writer| {
            let has_delivered = self.handover.drain(now, writer) > 0;
            is_any |= has_delivered;
            has_delivered.then(|| writer.answer_after_take(now))
        });
        is_any
    }

    /// When the participant is to look at this reader, if that is earlier than it knows. What a writer had kept back is answered to the
    /// writer, and told to the application with that; nothing else tells of what had waited here, or with the subscriber.
    fn arm_after(&mut self, now: Instant, refill: Refill) -> Option<Instant> {
        let armed = self.newly_armed();
        if refill.is_to_be_looked_at { Some(now) } else { armed }
    }
}

/// What followed into room that there was.
#[derive(Clone, Copy)]
pub(super) struct Refill {
    pub is_any: bool,
    /// Some of it had come too early before, or is put in order by the participant.
    is_to_be_looked_at: bool,
}
