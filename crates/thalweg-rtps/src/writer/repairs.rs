//! What one reader has asked for again, and what was sent again to it lately.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Instant;
use crate::types::SequenceNumber;
use crate::wire::{FragmentSet, SequenceSet};

/// Requests of one reader that wait for their repair.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    /// Samples asked for by ACKNACK.
    pub samples: Option<SequenceSet>,
    /// Packs asked for by ACKNACK_BATCH.
    pub packs: Option<SequenceSet>,
    /// Samples of which fragments are to be sent again, or were lately; at most [`LARGE_MAX`].
    pub large: Vec<LargeRepair>,
    /// When the next part may leave.
    pub paused_until: Option<Instant>,
    /// Kernel memory filled since the reader was last asked how far it is.
    pub unasked: u64,
    /// When something was sent again last.
    repaired_at: Option<Instant>,
    pub lately: Lately,
    packs_lately: Lately,
    /// What was sent again before tells nothing of what is sent from then on.
    forgotten_at: Instant,
}

/// Large samples repaired at a time; a reader asks again for others.
const LARGE_MAX: usize = 8;

impl Repairs {
    pub(super) fn is_empty(&self) -> bool {
        self.samples.is_none() && self.packs.is_none() && self.large.iter().all(|large| large.wanted.is_empty())
    }

    /// True when something may leave.
    pub(super) fn are_due(&self, now: Instant) -> bool {
        !self.is_empty() && self.paused_until.is_none_or(|until| until <= now)
    }

    /// True when something was sent again since `at`, which may be what arrived.
    pub(super) fn followed(&self, at: Instant) -> bool {
        self.repaired_at.is_some_and(|repaired| repaired >= at)
    }

    /// A sample that is to be sent again, if there is any; `first_of` is the first one of a pack.
    pub(super) fn first(&self, first_of: impl Fn(SequenceNumber) -> SequenceNumber) -> Option<SequenceNumber> {
        let first = |set: &Option<SequenceSet>| set.as_ref().and_then(|set| set.iter().next());
        let large = || self.large.iter().find(|large| !large.wanted.is_empty()).map(|large| large.sequence);
        first(&self.samples).or_else(|| first(&self.packs).map(first_of)).or_else(large)
    }

    /// Notes which of `wanted` to send again: what was sent before and not again lately. Numbers from `unsent` on were never
    /// sent: a reader that asks for them was lied to, and an answer would only make it ask again. Returns how many losses
    /// that tells of: numbers beyond `old`, and those that were sent again since [`Repairs::forget_lost`].
    pub(super) fn request_samples(
        &mut self,
        now: Instant,
        wanted: SequenceSet,
        unsent: SequenceNumber,
        old: SequenceNumber,
        suppression: Duration,
    ) -> u64 {
        let waiting = self.samples.take();
        self.samples = self.lately.fresh(now, &wanted, unsent, suppression);
        let is_waiting = |sequence| self.large.iter().any(|one| one.sequence == sequence && !one.wanted.is_empty());
        let was_sent = |sequence| self.lately.was_sent(sequence, self.forgotten_at) && !is_waiting(sequence);
        count_lost(self.samples.as_ref(), waiting.as_ref(), |sequence| sequence > old || was_sent(sequence))
    }

    /// Notes one more sample to send again, as far as the others leave it its place; it is asked for again otherwise.
    pub(super) fn request_sample(
        &mut self,
        now: Instant,
        sequence: SequenceNumber,
        unsent: SequenceNumber,
        suppression: Duration,
    ) {
        let mut wanted = SequenceSet::new(sequence);
        wanted.insert(sequence);
        let Some(fresh) = self.lately.fresh(now, &wanted, unsent, suppression) else { return };
        match &mut self.samples {
            Some(samples) => _ = samples.insert(sequence),
            None => self.samples = Some(fresh),
        }
    }

    /// As [`Repairs::request_samples`] for packs.
    pub(super) fn request_packs(
        &mut self,
        now: Instant,
        wanted: SequenceSet,
        unsent: SequenceNumber,
        old: SequenceNumber,
        suppression: Duration,
    ) -> u64 {
        let waiting = self.packs.take();
        self.packs = self.packs_lately.fresh(now, &wanted, unsent, suppression);
        let was_sent = |pack| self.packs_lately.was_sent(pack, self.forgotten_at);
        count_lost(self.packs.as_ref(), waiting.as_ref(), |pack| pack > old || was_sent(pack))
    }

    /// Notes which fragments of a sample cut into `cut` to send again. Returns how many losses that tells of: fragments that
    /// `counts` names, and those that were sent again since [`Repairs::forget_lost`].
    pub(super) fn request_fragments(
        &mut self,
        now: Instant,
        sequence: SequenceNumber,
        cut: Cut,
        wanted: &FragmentSet,
        suppression: Duration,
        counts: impl Fn(u32) -> bool,
    ) -> u64 {
        let Some(large) = self.large_of(sequence, cut) else { return 0 };
        large.age(now, suppression);
        let lost = |number: &u32| large.request(*number) && large.count_loss(*number, counts(*number));
        wanted.iter().filter(lost).count() as u64
    }

    /// What was sent again so far, and is lost, says nothing of what is sent from now on.
    pub(super) fn forget_lost(&mut self, now: Instant) {
        self.forgotten_at = now;
        self.large.iter_mut().for_each(|large| large.repeated.clear());
    }

    /// All of a large sample is asked for. It is sent again once; asked for again before a round trip has passed since, the
    /// request has crossed it. False when too many are under repair.
    pub(super) fn request_whole(
        &mut self,
        now: Instant,
        sequence: SequenceNumber,
        cut: Cut,
        suppression: Duration,
    ) -> bool {
        let Some(large) = self.large_of(sequence, cut) else { return false };
        let on_its_way = !large.wanted.is_empty() || large.sent_at.is_some_and(|at| now.since(at) < suppression);
        if !on_its_way {
            (1..=cut.fragments).for_each(|number| _ = large.wanted.insert(number));
        }
        true
    }

    /// The sample's repair, new where there is none. Those that are done make room.
    fn large_of(&mut self, sequence: SequenceNumber, cut: Cut) -> Option<&mut LargeRepair> {
        let index = match self.large.binary_search_by_key(&sequence, |large| large.sequence) {
            Ok(index) => index,
            Err(mut index) => {
                if self.large.len() >= LARGE_MAX {
                    let done = self.large.iter().position(|large| large.wanted.is_empty())?;
                    self.large.remove(done);
                    index -= usize::from(done < index);
                }
                self.large.insert(index, LargeRepair::new(sequence, cut));
                index
            }
        };
        let large = &mut self.large[index];
        if large.cut.fragment_bytes != cut.fragment_bytes {
            // What was lost of the sample as it was cut before was counted then.
            *large = LargeRepair { is_recut: true, ..LargeRepair::new(sequence, cut) };
        }
        large.cut.fragments = large.cut.fragments.max(cut.fragments);
        Some(large)
    }

    /// A sample that is gone was asked for: the reader is to be told.
    pub(super) fn request_gone(&mut self, sequence: SequenceNumber) {
        self.samples.get_or_insert_with(|| SequenceSet::new(sequence)).insert(sequence);
    }

    /// It has everything below `next`.
    pub(super) fn forget_below(&mut self, next: SequenceNumber) {
        if self.large.first().is_some_and(|large| large.sequence < next) {
            self.large.retain(|large| large.sequence >= next);
        }
    }

    /// Nothing is asked for any more by sample.
    pub(super) fn withdraw_samples(&mut self) {
        self.samples = None;
        self.packs = None;
    }

    /// Fragments were sent again.
    pub(super) fn record_fragments(&mut self, now: Instant) {
        self.repaired_at = Some(now);
    }

    pub(super) fn record_sample(&mut self, now: Instant, repaired: SequenceNumber, suppression: Duration) {
        self.lately.record(now, repaired, suppression);
        self.repaired_at = Some(now);
    }

    pub(super) fn record_pack(&mut self, now: Instant, repaired: SequenceNumber, suppression: Duration) {
        self.packs_lately.record(now, repaired, suppression);
        self.repaired_at = Some(now);
    }
}

/// How many of the numbers asked for were sent, as `was_sent` tells, and are asked for anew.
fn count_lost(
    fresh: Option<&SequenceSet>,
    waiting: Option<&SequenceSet>,
    was_sent: impl Fn(SequenceNumber) -> bool,
) -> u64 {
    let waits = |sequence: SequenceNumber| waiting.is_some_and(|waiting| waiting.contains(sequence));
    fresh.map_or(0, |fresh| fresh.iter().filter(|one| !waits(*one) && was_sent(*one)).count() as u64)
}

/// Into how many fragments of which size a reader sees a sample cut, as far as they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub fragment_bytes: u16,
    pub fragments: u32,
}

impl Cut {
    /// True when `fragment` of the other cut was sent and is the same part of the sample in this one.
    pub(super) fn covers(&self, other: Cut, fragment: u32) -> bool {
        self.fragment_bytes == other.fragment_bytes && fragment <= self.fragments
    }
}

/// The repair of one large sample.
#[derive(Debug)]
pub(super) struct LargeRepair {
    pub sequence: SequenceNumber,
    pub cut: Cut,
    /// Still to be sent again.
    wanted: Fragments,
    /// Sent again since `aged_at`, and in the time before: a request for them has crossed them on the way.
    lately: Fragments,
    before: Fragments,
    /// Sent again since what is sent was slowed down, and not known to be lost.
    repeated: Fragments,
    /// Known to be lost of what was sent at first.
    lost: Fragments,
    /// It was cut for another path at first.
    is_recut: bool,
    aged_at: Instant,
    sent_at: Option<Instant>,
}

impl LargeRepair {
    fn new(sequence: SequenceNumber, cut: Cut) -> LargeRepair {
        LargeRepair {
            sequence,
            cut,
            wanted: Fragments::default(),
            lately: Fragments::default(),
            before: Fragments::default(),
            repeated: Fragments::default(),
            lost: Fragments::default(),
            is_recut: false,
            aged_at: Instant::ZERO,
            sent_at: None,
        }
    }

    /// What was sent again is remembered for at least `suppression`, and less than twice as long.
    fn age(&mut self, now: Instant, suppression: Duration) {
        let age = now.since(self.aged_at);
        if age < suppression {
            return;
        }
        std::mem::swap(&mut self.lately, &mut self.before);
        self.lately.clear();
        if age >= suppression * 2 {
            self.before.clear();
        }
        self.aged_at = now;
    }

    fn request(&mut self, number: u32) -> bool {
        let was_sent = (1..=self.cut.fragments).contains(&number);
        was_sent && !self.lately.contains(number) && !self.before.contains(number) && self.wanted.insert(number)
    }

    /// Whether the request for a fragment tells of a loss that is not known yet: each time that it was sent can be lost once.
    fn count_loss(&mut self, number: u32, counts: bool) -> bool {
        self.repeated.remove(number) || counts && !self.is_recut && self.lost.insert(number)
    }

    /// Nothing of it is to be sent again.
    pub(super) fn clear(&mut self) {
        self.wanted.clear();
    }

    /// The next fragment to send again, counted from 1.
    pub(super) fn next(&mut self) -> Option<u32> {
        self.wanted.first()
    }

    /// It was sent.
    pub(super) fn record(&mut self, now: Instant, number: u32, suppression: Duration) {
        self.age(now, suppression);
        self.wanted.remove(number);
        self.lately.insert(number);
        self.repeated.insert(number);
        self.sent_at = Some(now);
    }
}

/// A set of fragment numbers, counted from 1.
#[derive(Debug, Default)]
struct Fragments {
    words: Vec<u64>,
    len: usize,
    /// No word below has members.
    first: usize,
}

impl Fragments {
    fn place(number: u32) -> (usize, u64) {
        let index = number.saturating_sub(1);
        ((index / 64) as usize, 1 << (index % 64))
    }

    fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn contains(&self, number: u32) -> bool {
        let (word, bit) = Fragments::place(number);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// False when it was a member.
    fn insert(&mut self, number: u32) -> bool {
        let (word, bit) = Fragments::place(number);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.len += usize::from(new);
        self.first = self.first.min(word);
        new
    }

    /// True when it was a member.
    fn remove(&mut self, number: u32) -> bool {
        let (word, bit) = Fragments::place(number);
        let held = self.words.get_mut(word).filter(|word| **word & bit != 0);
        let is_held = held.is_some();
        if let Some(word) = held {
            *word &= !bit;
            self.len -= 1;
        }
        is_held
    }

    fn first(&mut self) -> Option<u32> {
        if self.is_empty() {
            return None;
        }
        let words = self.words.get(self.first..)?;
        self.first += words.iter().position(|word| *word != 0)?;
        Some(self.first as u32 * 64 + self.words[self.first].trailing_zeros() + 1)
    }

    fn clear(&mut self) {
        self.words.clear();
        self.len = 0;
        self.first = 0;
    }
}

/// Numbers that were sent again, with when; the oldest entries go first.
#[derive(Debug, Default)]
pub(super) struct Lately(VecDeque<(Instant, SequenceSet)>);

/// Entries kept: enough for eight parts of a round trip, twice.
const LATELY_MAX: usize = 16;

impl Lately {
    pub(super) fn record(&mut self, now: Instant, sequence: SequenceNumber, suppression: Duration) {
        if let Some((at, set)) = self.0.back_mut()
            && now.since(*at) <= suppression / 8
            && set.insert(sequence)
        {
            return;
        }
        if self.0.len() >= LATELY_MAX {
            self.0.pop_front();
        }
        let mut set = SequenceSet::new(sequence);
        set.insert(sequence);
        self.0.push_back((now, set));
    }

    /// True when it was sent again after `after`, as far as that is remembered.
    fn was_sent(&self, number: SequenceNumber, after: Instant) -> bool {
        self.0.iter().rev().take_while(|(at, _)| *at > after).any(|(_, set)| set.contains(number))
    }

    /// The numbers below `unsent` that are wanted and not on their way already.
    fn fresh(
        &self,
        now: Instant,
        wanted: &SequenceSet,
        unsent: SequenceNumber,
        suppression: Duration,
    ) -> Option<SequenceSet> {
        let mut fresh = SequenceSet::new(wanted.base());
        let recent = || self.0.iter().rev().take_while(|(at, _)| now.since(*at) < suppression);
        for sequence in wanted.iter().take_while(|sequence| *sequence < unsent) {
            if !recent().any(|(_, set)| set.contains(sequence)) {
                fresh.insert(sequence);
            }
        }
        (!fresh.is_empty()).then_some(fresh)
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

    fn samples(numbers: &[i64]) -> SequenceSet {
        let mut set = SequenceSet::new(SequenceNumber(numbers[0]));
        numbers.iter().for_each(|number| _ = set.insert(SequenceNumber(*number)));
        set
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
    fn a_request_that_crossed_its_repair_is_not_served_twice() {
        let mut repairs = Repairs::default();
        let unsent = SequenceNumber(10);
        let ask = |repairs: &mut Repairs, micros, numbers: &[i64]| {
            repairs.request_samples(at(micros), samples(numbers), unsent, SequenceNumber::ZERO, ROUND_TRIP);
            let asked = repairs.samples.take();
            asked.map_or(Vec::new(), |set| set.iter().map(|sequence| sequence.0).collect())
        };
        assert_eq!(ask(&mut repairs, 0, &[1, 12]), [1], "what was never sent is not repeated");
        repairs.record_sample(at(0), SequenceNumber(1), ROUND_TRIP);
        assert_eq!(ask(&mut repairs, 400, &[1, 5]), [5]);
        repairs.record_sample(at(400), SequenceNumber(5), ROUND_TRIP);
        assert_eq!(ask(&mut repairs, 800, &[1, 5, 9]), [9], "both are on their way");
        repairs.record_sample(at(800), SequenceNumber(9), ROUND_TRIP);
        assert_eq!(ask(&mut repairs, 1_200, &[1, 5, 9]), [1], "its repair must be lost");
    }

    #[test]
    fn what_is_old_is_repaired_and_tells_nothing_of_the_path() {
        let mut repairs = Repairs::default();
        let (unsent, old) = (SequenceNumber(10), SequenceNumber(5));
        assert_eq!(repairs.request_samples(at(0), samples(&[4, 5, 6, 8]), unsent, old, ROUND_TRIP), 2);
        assert_eq!(repairs.samples.as_ref().map_or(0, |wanted| wanted.iter().count()), 4);
        assert_eq!(repairs.request_packs(at(0), samples(&[5, 6]), unsent, old, ROUND_TRIP), 1);
        repairs.samples = None;
        repairs.record_sample(at(0), SequenceNumber(4), ROUND_TRIP);
        let mut ask = |micros| repairs.request_samples(at(micros), samples(&[4, 5]), unsent, old, ROUND_TRIP);
        assert_eq!(ask(500), 0, "its repair is on its way");
        assert_eq!(ask(1_500), 1, "its repair is lost");
        assert_eq!(ask(1_600), 0, "that is known");
        repairs.samples = None;
        repairs.forget_lost(at(1_700));
        assert_eq!(repairs.request_samples(at(3_000), samples(&[4]), unsent, old, ROUND_TRIP), 0);
    }

    #[test]
    fn a_fragment_is_sent_again_once_in_a_round_trip_however_often_it_is_asked_for() {
        let mut repairs = Repairs::default();
        let ask = |repairs: &mut Repairs, micros, numbers: &[u32]| {
            repairs.request_fragments(at(micros), SequenceNumber(1), CUT, &fragments(numbers), ROUND_TRIP, |_| true)
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
    fn only_so_many_large_samples_are_repaired_at_a_time() {
        let mut repairs = Repairs::default();
        for number in 0..LARGE_MAX as i64 {
            assert!(repairs.request_whole(at(0), SequenceNumber(number), CUT, ROUND_TRIP));
        }
        assert!(!repairs.request_whole(at(0), SequenceNumber(50), CUT, ROUND_TRIP));
        serve(&mut repairs, at(0), 100);
        assert!(repairs.request_whole(at(0), SequenceNumber(50), CUT, ROUND_TRIP), "one is done");
        assert!(repairs.large.is_sorted_by_key(|large| large.sequence));
        repairs.forget_below(SequenceNumber(50));
        assert_eq!(repairs.large.len(), 1);
    }
}
