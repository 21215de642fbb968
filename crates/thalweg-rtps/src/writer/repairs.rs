//! What one reader has asked for again: samples, packs, fragments.

use std::time::Duration;

use super::charges::Charges;
use super::flow::Position;
use super::large_repair::{Cut, LargeRepair};
use super::loss::{Loss, LostFragments};
use super::requests::Requests;
use crate::time::Instant;
use crate::types::SequenceNumber;
use crate::wire::FragmentSet;

/// Requests of one reader that wait for their repair.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    /// Samples asked for by ACKNACK.
    pub samples: Requests,
    /// Packs asked for by ACKNACK_BATCH.
    pub packs: Requests,
    /// Samples of which fragments are to be sent again, at most [`LARGE_MAX`], or were: at most [`KNOWN_MAX`] together.
    pub large: Vec<LargeRepair>,
    /// When the next part may leave.
    pub paused_until: Option<Instant>,
    /// Kernel memory filled since the reader was last asked how far it is.
    pub unasked: u64,
    /// Of samples that are not cut.
    pub charges: Charges,
    /// When something was sent again last.
    repaired_at: Option<Instant>,
}

/// What an acknowledgement asks for by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbered {
    Samples,
    Packs,
}

/// What was sent again.
#[derive(Clone, Copy, Debug)]
pub(super) enum SentAgain {
    Whole(Numbered, SequenceNumber),
    /// A fragment, counted from 1, of a sample cut into these.
    Fragment(SequenceNumber, Cut, u32),
}

/// Large samples repaired at a time; a reader asks again for others.
const LARGE_MAX: usize = 8;
/// Large samples of which it is remembered what was sent again, until the reader has told of it: as many as an ACKNACK can ask for.
const KNOWN_MAX: usize = 256;

impl Repairs {
    pub(super) fn is_empty(&self) -> bool {
        self.samples.is_empty() && self.packs.is_empty() && self.large.iter().all(LargeRepair::is_done)
    }

    /// True when something may leave.
    pub(super) fn are_due(&self, now: Instant) -> bool {
        !self.is_empty() && self.paused_until.is_none_or(|until| until <= now)
    }

    /// True when something was sent again since `at`, which may be what arrived.
    pub(super) fn followed(&self, at: Instant) -> bool {
        self.repaired_at.is_some_and(|repaired| repaired >= at)
    }

    /// When `number` was sent again, if it was once as far as that is remembered.
    pub(super) fn sent_once_at(&self, number: SequenceNumber) -> Option<Instant> {
        match self.large.binary_search_by_key(&number, |large| large.sequence) {
            Ok(index) => self.large[index].sent_once_at(),
            Err(_) => self.samples.sent_once_at(number),
        }
    }

    /// The first sample that is asked for as a whole, if there is any; `first_of` is the first one of a pack.
    pub(super) fn first_whole(&self, first_of: impl Fn(SequenceNumber) -> SequenceNumber) -> Option<SequenceNumber> {
        self.samples.first().or_else(|| self.packs.first().map(first_of))
    }

    /// The first sample of which fragments are to be sent again.
    pub(super) fn first_large(&self) -> Option<&LargeRepair> {
        self.large.iter().find(|large| !large.is_done())
    }

    /// Notes which fragments of a sample cut into `cut` to send again. Returns the losses that tells of: fragments that
    /// `counts` names, and those that were sent again since [`Repairs::forget_lost`].
    pub(super) fn request_fragments(
        &mut self,
        now: Instant,
        sequence: SequenceNumber,
        cut: Cut,
        wanted: &FragmentSet,
        suppression: Duration,
        counts: impl Fn(u32) -> bool,
    ) -> LostFragments {
        let none = LostFragments::of(cut.fragment_bytes);
        self.large_of(sequence, cut).map_or(none, |large| large.request(now, wanted, suppression, counts))
    }

    /// These fragments of a sample that is gone, of which those of `cut` left, have not arrived. Returns the losses that tells of: those
    /// beyond `excused`, and not those that were lost when they were asked for before, in fragments of whatever size.
    pub(super) fn lose_gone(
        &mut self,
        now: Instant,
        sequence: SequenceNumber,
        cut: Cut,
        numbers: impl Iterator<Item = u32>,
        suppression: Duration,
        excused: Position,
    ) -> Loss {
        let counts = |fragments| Position { sample: sequence.previous(), fragments } > excused;
        let known = self.large.binary_search_by_key(&sequence, |large| large.sequence).ok();
        let mut known = known.map(|index| &mut self.large[index]);
        if known.as_ref().is_some_and(|large| large.cut.fragment_bytes != cut.fragment_bytes) {
            return Loss::default();
        }
        let is_lost = |number: &u32| match &mut known {
            Some(large) => large.loses(now, *number, suppression, counts(*number)),
            None => counts(*number),
        };
        let mut lost = LostFragments::of(cut.fragment_bytes);
        numbers.filter(is_lost).for_each(|number| lost.note(number));
        lost.loss()
    }

    /// All of a sample cut into `cut` is asked for, and no part of it has arrived. Returns the losses that tells of: the fragments
    /// that `counts` names, each once, and those that were sent again since [`Repairs::forget_lost`].
    pub(super) fn lose_whole(
        &mut self,
        now: Instant,
        sequence: SequenceNumber,
        cut: Cut,
        suppression: Duration,
        counts: impl Fn(u32) -> bool,
    ) -> LostFragments {
        let was_repeated = self.samples.was_repeated(sequence);
        let is_known = self.large.binary_search_by_key(&sequence, |large| large.sequence).is_ok();
        let told = self.large_of(sequence, cut).map(|large| large.lose_all(now, suppression, &counts));
        // Which of its fragments were sent again is forgotten when it makes room for others.
        let forgotten = was_repeated && !is_known;
        told.filter(|_| !forgotten).unwrap_or_else(|| {
            let mut lost = LostFragments::of(cut.fragment_bytes);
            (1..=cut.fragments).filter(|number| forgotten || counts(*number)).for_each(|number| lost.note(number));
            lost
        })
    }

    /// What was sent again so far, and is lost, says nothing of what is sent from now on.
    pub(super) fn forget_lost(&mut self, now: Instant) {
        self.samples.forget_lost(now);
        self.packs.forget_lost(now);
        self.large.iter_mut().for_each(LargeRepair::forget_lost);
    }

    /// All of a large sample is asked for. It is sent again once; asked for again before a round trip has passed since, the
    /// request has crossed it. False when too many are under repair that come before it.
    pub(super) fn request_whole(
        &mut self,
        now: Instant,
        sequence: SequenceNumber,
        cut: Cut,
        suppression: Duration,
    ) -> bool {
        let Some(large) = self.large_of(sequence, cut) else { return false };
        large.request_all(now, suppression);
        true
    }

    /// The sample's repair, new where there is none. A later one makes room for an earlier one: what a reader can hand over next goes first,
    /// and its cache may have no room for the others.
    fn large_of(&mut self, sequence: SequenceNumber, cut: Cut) -> Option<&mut LargeRepair> {
        let index = match self.large.binary_search_by_key(&sequence, |large| large.sequence) {
            Ok(index) => index,
            Err(mut index) => {
                if let Some(spare) = self.spare_for(index)? {
                    self.large.remove(spare);
                    index -= usize::from(spare < index);
                }
                self.large.insert(index, LargeRepair::new(sequence, cut));
                index
            }
        };
        let large = &mut self.large[index];
        large.follow(cut);
        Some(large)
    }

    /// Which one makes room for one that is new at `index`, if any has to; `None` where those before it leave no room.
    fn spare_for(&self, index: usize) -> Option<Option<usize>> {
        let waits = |large: &LargeRepair| !large.is_done();
        if self.large.iter().filter(|large| waits(large)).count() >= LARGE_MAX {
            return self.large.iter().rposition(waits).filter(|last| *last >= index).map(Some);
        }
        let is_full = self.large.len() >= KNOWN_MAX;
        Some(is_full.then(|| self.large.iter().position(LargeRepair::is_done)).flatten())
    }

    /// It has everything below `next`.
    pub(super) fn forget_below(&mut self, next: SequenceNumber) {
        if self.large.first().is_some_and(|large| large.sequence < next) {
            self.large.retain(|large| large.sequence >= next);
        }
    }

    /// Nothing is asked for any more by sample.
    pub(super) fn withdraw_samples(&mut self) {
        self.samples.withdraw();
        self.packs.withdraw();
    }

    /// Fragments were sent again.
    pub(super) fn record_fragments(&mut self, now: Instant) {
        self.repaired_at = Some(now);
    }

    /// What was asked for as `number` was sent again.
    pub(super) fn record(&mut self, now: Instant, kind: Numbered, number: SequenceNumber, suppression: Duration) {
        self.numbered(kind).record(now, number, suppression);
        self.repaired_at = Some(now);
    }

    /// It was sent to another reader of its process, and to this one with it.
    pub(super) fn share(&mut self, now: Instant, sent: SentAgain, suppression: Duration) {
        match sent {
            SentAgain::Whole(kind, number) => self.numbered(kind).share(now, number, suppression),
            SentAgain::Fragment(sequence, cut, number) => {
                let index = match self.large.binary_search_by_key(&sequence, |large| large.sequence) {
                    Ok(index) => index,
                    Err(_) if self.large.len() >= KNOWN_MAX => return,
                    Err(index) => {
                        self.large.insert(index, LargeRepair::new(sequence, cut));
                        index
                    }
                };
                let large = &mut self.large[index];
                large.follow(cut);
                large.share(now, number, suppression);
            }
        }
        self.repaired_at = Some(now);
    }

    pub(super) fn numbered(&mut self, kind: Numbered) -> &mut Requests {
        match kind {
            Numbered::Samples => &mut self.samples,
            Numbered::Packs => &mut self.packs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(1);
    const CUT: Cut = Cut { fragment_bytes: 1_000, fragments: 100 };

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(1_000_000_000 + micros * 1_000)
    }

    fn fragments(numbers: &[u32]) -> FragmentSet {
        let mut set = FragmentSet::new(numbers[0]);
        numbers.iter().for_each(|number| _ = set.insert(*number));
        set
    }

    fn serve(repairs: &mut Repairs, now: Instant, most: usize) -> Vec<u32> {
        let large = &mut repairs.large[0];
        let mut sent = Vec::new();
        while sent.len() < most
            && let Some(number) = large.next()
        {
            large.record(now, number, ROUND_TRIP);
            sent.push(number);
        }
        sent
    }

    #[test]
    fn a_fragment_is_sent_again_once_in_a_round_trip_however_often_it_is_asked_for() {
        let mut repairs = Repairs::default();
        let ask = |repairs: &mut Repairs, micros, numbers: &[u32]| {
            repairs
                .request_fragments(at(micros), SequenceNumber(1), CUT, &fragments(numbers), ROUND_TRIP, |_| true)
                .fragments
        };
        assert_eq!(ask(&mut repairs, 0, &[3, 70, 100, 101]), 3);
        assert_eq!(ask(&mut repairs, 10, &[3, 70, 80]), 1);
        assert_eq!(serve(&mut repairs, at(20), 2), [3, 70]);
        assert_eq!(ask(&mut repairs, 500, &[3, 70, 80, 100]), 0);
        assert_eq!(serve(&mut repairs, at(500), 9), [80, 100]);
        assert!(repairs.is_empty());
        assert_eq!(ask(&mut repairs, 1_010, &[3, 70, 80, 100]), 0);
        assert_eq!(ask(&mut repairs, 3_000, &[3, 80]), 2, "the repairs must be lost");
    }

    #[test]
    fn a_whole_sample_asked_for_again_and_again_goes_on_and_does_not_start_again() {
        let mut repairs = Repairs::default();
        let mut sent = Vec::new();
        for turn in 0..60 {
            assert!(repairs.request_whole(at(turn * 10), SequenceNumber(1), CUT, ROUND_TRIP));
            sent.extend(serve(&mut repairs, at(turn * 10), 2));
        }
        assert_eq!(sent, (1..=100).collect::<Vec<_>>());
        assert!(repairs.request_whole(at(3_000), SequenceNumber(1), CUT, ROUND_TRIP));
        assert_eq!(serve(&mut repairs, at(3_000), 200).len(), 100, "and again a round trip later");
    }

    #[test]
    fn a_whole_sample_that_is_sent_once_more_was_lost() {
        let mut repairs = Repairs::default();
        for turn in 0..9 {
            // Between one round trip and two.
            let now = at(turn * 1_500);
            let lost = repairs.lose_whole(now, SequenceNumber(1), CUT, ROUND_TRIP, |_| true).fragments;
            assert!(repairs.request_whole(now, SequenceNumber(1), CUT, ROUND_TRIP));
            assert_eq!((lost, serve(&mut repairs, now, 200).len()), (100, 100), "turn {turn}");
            assert_eq!(repairs.lose_whole(now, SequenceNumber(1), CUT, ROUND_TRIP, |_| true).fragments, 0);
        }
    }

    #[test]
    fn what_was_sent_again_of_a_sample_that_made_room_is_lost_as_a_whole() {
        let mut repairs = Repairs::default();
        for number in (0..=KNOWN_MAX as i64).map(SequenceNumber) {
            assert!(repairs.request_whole(at(0), number, CUT, ROUND_TRIP));
            let index = repairs.large.iter().position(|large| large.sequence == number).expect("it was asked for");
            (1..=CUT.fragments).for_each(|fragment| repairs.large[index].record(at(0), fragment, ROUND_TRIP));
            repairs.record(at(0), Numbered::Samples, number, ROUND_TRIP);
        }
        assert_eq!((repairs.large.len(), repairs.large[0].sequence), (KNOWN_MAX, SequenceNumber(1)));
        let lose = |repairs: &mut Repairs, number| {
            repairs.lose_whole(at(5_000), SequenceNumber(number), CUT, ROUND_TRIP, |_| false).fragments
        };
        assert_eq!([0, 5, 500].map(|number| lose(&mut repairs, number)), [100, 100, 0]);
        repairs.forget_lost(at(6_000));
        assert_eq!(lose(&mut repairs, 1), 0);
    }

    #[test]
    fn only_so_many_large_samples_are_repaired_at_a_time() {
        let mut repairs = Repairs::default();
        for number in 0..LARGE_MAX as i64 {
            assert!(repairs.request_whole(at(0), SequenceNumber(number), CUT, ROUND_TRIP));
        }
        assert!(!repairs.request_whole(at(0), SequenceNumber(50), CUT, ROUND_TRIP));
        assert!(
            repairs.request_whole(at(0), SequenceNumber(-1), CUT, ROUND_TRIP),
            "an earlier one takes the place of the last"
        );
        let held = |repairs: &Repairs| repairs.large.iter().map(|large| large.sequence.0).collect::<Vec<_>>();
        assert_eq!(held(&repairs), (-1..LARGE_MAX as i64 - 1).collect::<Vec<_>>());
        serve(&mut repairs, at(0), 100);
        assert!(repairs.request_whole(at(0), SequenceNumber(50), CUT, ROUND_TRIP), "one is done");
        assert_eq!(held(&repairs).first(), Some(&-1), "which is remembered until the reader has told of it");
        assert!(repairs.large.is_sorted_by_key(|large| large.sequence));
        repairs.forget_below(SequenceNumber(50));
        assert_eq!(repairs.large.len(), 1);
    }
}
