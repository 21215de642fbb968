//! `take` and `read` of a reader, and what waits for the room that a take makes.

use super::{Reader, TakeOutcome};
use crate::history::{Choice, ReadFilter, SampleCache, TakenSample};
use crate::time::Instant;

impl Reader {
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
        self.refilled |= self.use_room(clock());
        TakeOutcome { count, arm: self.newly_armed(), keys_due: self.has_keys_due() }
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
        let refilled = self.handover.expire(&clock) && self.handover.is_stalled && self.use_room(clock());
        self.refilled |= refilled;
        let count = read(&mut self.handover.cache);
        if !refilled {
            return TakeOutcome { count, ..TakeOutcome::default() };
        }
        TakeOutcome { count, arm: self.newly_armed(), keys_due: self.has_keys_due() }
    }
}
