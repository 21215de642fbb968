//! Numbers that one reader has asked for again, of samples or of packs, and which of them were sent again lately.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Instant;
use crate::types::SequenceNumber;
use crate::wire::SequenceSet;

/// Numbers of one kind that wait for their repair.
#[derive(Debug, Default)]
pub(super) struct Requests {
    wanted: Option<SequenceSet>,
    lately: Lately,
    /// What was sent again before tells nothing of what is sent from then on.
    forgotten_at: Instant,
}

impl Requests {
    pub(super) fn is_empty(&self) -> bool {
        self.wanted.is_none()
    }

    /// The first number that is to be sent again.
    pub(super) fn first(&self) -> Option<SequenceNumber> {
        self.wanted.as_ref().and_then(|wanted| wanted.iter().next())
    }

    /// Notes which of `wanted` to send again, in place of what waits: what was sent before and not again lately. Numbers from
    /// `unsent` on were never sent: a reader that asks for them was lied to, and an answer would only make it ask again. Returns
    /// those that this tells to be lost: numbers beyond `old`, and those that were sent again since [`Requests::forget_lost`], as far
    /// as they do not wait already and are not still `is_being_sent`.
    pub(super) fn request(
        &mut self,
        now: Instant,
        wanted: SequenceSet,
        unsent: SequenceNumber,
        old: SequenceNumber,
        suppression: Duration,
        is_being_sent: impl Fn(SequenceNumber) -> bool,
    ) -> SequenceSet {
        let waiting = self.wanted.take();
        self.wanted = self.lately.fresh(now, &wanted, unsent, suppression);
        let waits = |number: SequenceNumber| waiting.is_some_and(|waiting| waiting.contains(number));
        let mut lost = SequenceSet::new(wanted.base());
        let crossed = self.lately.ask_for_shared(now, &wanted, suppression);
        crossed.iter().filter(|number| *number > old).for_each(|number| _ = lost.insert(number));
        let was_sent = |number: SequenceNumber| {
            number > old || self.lately.was_sent(number, self.forgotten_at) && !is_being_sent(number)
        };
        let fresh = self.wanted.iter().flat_map(SequenceSet::iter);
        fresh.filter(|number| !waits(*number) && was_sent(*number)).for_each(|number| _ = lost.insert(number));
        lost
    }

    /// True when it was sent again since [`Requests::forget_lost`], as far as that is remembered.
    pub(super) fn was_repeated(&self, number: SequenceNumber) -> bool {
        self.lately.was_sent(number, self.forgotten_at)
    }

    /// When it was sent again, if it was once as far as that is remembered.
    pub(super) fn sent_once_at(&self, number: SequenceNumber) -> Option<Instant> {
        let mut times = self.lately.0.iter().filter(|again| again.numbers.contains(number));
        times.next().filter(|again| again.was_asked_for && times.next().is_none()).map(|again| again.at)
    }

    /// Notes one more, as far as the others leave it its place; it is asked for again otherwise.
    pub(super) fn add(&mut self, now: Instant, number: SequenceNumber, unsent: SequenceNumber, suppression: Duration) {
        let mut wanted = SequenceSet::new(number);
        wanted.insert(number);
        if self.lately.fresh(now, &wanted, unsent, suppression).is_some() {
            self.add_gone(number);
        }
    }

    /// Something that is gone was asked for: the reader is to be told.
    pub(super) fn add_gone(&mut self, number: SequenceNumber) {
        self.wanted.get_or_insert_with(|| SequenceSet::new(number)).insert(number);
    }

    /// Takes out what is to be sent again.
    pub(super) fn take(&mut self) -> Option<SequenceSet> {
        self.wanted.take()
    }

    /// `rest` of what was taken out was not sent.
    pub(super) fn put_back(&mut self, rest: Option<SequenceSet>) {
        self.wanted = rest;
    }

    /// Nothing is asked for any more.
    pub(super) fn withdraw(&mut self) {
        self.wanted = None;
    }

    /// What was sent again so far, and is lost, says nothing of what is sent from now on.
    pub(super) fn forget_lost(&mut self, now: Instant) {
        self.forgotten_at = now;
    }

    /// It was sent again.
    pub(super) fn record(&mut self, now: Instant, number: SequenceNumber, suppression: Duration) {
        self.lately.record(now, number, suppression, self.forgotten_at, true);
    }

    /// It was sent to another reader of its process, and to this one with it.
    pub(super) fn share(&mut self, now: Instant, number: SequenceNumber, suppression: Duration) {
        let waits = self.wanted.is_some_and(|wanted| wanted.contains(number));
        if waits {
            self.wanted = self.wanted.and_then(|wanted| without(&wanted, number));
        }
        self.lately.record(now, number, suppression, self.forgotten_at, waits);
    }
}

fn without(numbers: &SequenceSet, number: SequenceNumber) -> Option<SequenceSet> {
    let mut rest = SequenceSet::new(numbers.base());
    numbers.iter().filter(|other| *other != number).for_each(|other| _ = rest.insert(other));
    (!rest.is_empty()).then_some(rest)
}

/// Numbers that were sent again. Of a reader whose answers are rare, all must be known that it was sent since the last one.
#[derive(Debug, Default)]
struct Lately(VecDeque<Again>);

#[derive(Debug)]
struct Again {
    at: Instant,
    numbers: SequenceSet,
    /// False where another reader of its process asked, before this one did.
    was_asked_for: bool,
}

/// Entries kept: enough for eight parts of a round trip, twice; older ones become one.
const LATELY_MAX: usize = 16;

impl Lately {
    fn record(
        &mut self,
        now: Instant,
        sequence: SequenceNumber,
        suppression: Duration,
        forgotten_at: Instant,
        was_asked_for: bool,
    ) {
        if let Some(last) = self.0.back_mut()
            && last.was_asked_for == was_asked_for
            && now.since(last.at) <= suppression / 8
            && last.numbers.insert(sequence)
        {
            return;
        }
        if self.0.len() >= LATELY_MAX {
            self.join_oldest(forgotten_at);
        }
        let mut numbers = SequenceSet::new(sequence);
        numbers.insert(sequence);
        self.0.push_back(Again { at: now, numbers, was_asked_for });
    }

    /// Makes one entry of the two oldest, as far as numbers have a place in it and the older one still tells something.
    fn join_oldest(&mut self, forgotten_at: Instant) {
        if let Some(oldest) = self.0.pop_front()
            && let Some(next) = self.0.front_mut()
            && oldest.at > forgotten_at
        {
            let mut both = SequenceSet::new(oldest.numbers.base().min(next.numbers.base()));
            if next.numbers.iter().all(|number| both.insert(number)) {
                oldest.numbers.iter().for_each(|number| _ = both.insert(number));
                next.numbers = both;
                next.was_asked_for &= oldest.was_asked_for;
            }
        }
    }

    /// The numbers that were shared lately and that the reader, which had not asked for them, asks for now.
    fn ask_for_shared(&mut self, now: Instant, wanted: &SequenceSet, suppression: Duration) -> SequenceSet {
        let mut crossed = SequenceSet::new(wanted.base());
        let recent = self.0.iter_mut().rev().take_while(|again| now.since(again.at) < suppression);
        for again in recent.filter(|again| !again.was_asked_for) {
            for number in again.numbers.iter().filter(|number| wanted.contains(*number)) {
                crossed.insert(number);
                again.was_asked_for = true;
            }
        }
        crossed
    }

    /// True when it was sent again after `after`, as far as that is remembered.
    fn was_sent(&self, number: SequenceNumber, after: Instant) -> bool {
        self.0.iter().rev().take_while(|again| again.at > after).any(|again| again.numbers.contains(number))
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
        let recent = || self.0.iter().rev().take_while(|again| now.since(again.at) < suppression);
        for sequence in wanted.iter().take_while(|sequence| *sequence < unsent) {
            if !recent().any(|again| again.numbers.contains(sequence)) {
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

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(1_000_000_000 + micros * 1_000)
    }

    fn samples(numbers: &[i64]) -> SequenceSet {
        let mut set = SequenceSet::new(SequenceNumber(numbers[0]));
        numbers.iter().for_each(|number| _ = set.insert(SequenceNumber(*number)));
        set
    }

    #[test]
    fn a_request_that_crossed_its_repair_is_not_served_twice() {
        let mut requests = Requests::default();
        let unsent = SequenceNumber(10);
        let ask = |requests: &mut Requests, micros, numbers: &[i64]| {
            requests.request(at(micros), samples(numbers), unsent, SequenceNumber::ZERO, ROUND_TRIP, |_| false);
            let asked = requests.take();
            asked.map_or(Vec::new(), |set| set.iter().map(|sequence| sequence.0).collect())
        };
        assert_eq!(ask(&mut requests, 0, &[1, 12]), [1], "what was never sent is not repeated");
        requests.record(at(0), SequenceNumber(1), ROUND_TRIP);
        assert_eq!(ask(&mut requests, 400, &[1, 5]), [5]);
        requests.record(at(400), SequenceNumber(5), ROUND_TRIP);
        assert_eq!(ask(&mut requests, 800, &[1, 5, 9]), [9], "both are on their way");
        requests.record(at(800), SequenceNumber(9), ROUND_TRIP);
        assert_eq!(ask(&mut requests, 1_200, &[1, 5, 9]), [1], "its repair must be lost");
    }

    #[test]
    fn what_is_old_is_repaired_and_tells_nothing_of_the_path() {
        let mut requests = Requests::default();
        let (unsent, old) = (SequenceNumber(10), SequenceNumber(5));
        let request = |requests: &mut Requests, micros, numbers: &[i64]| {
            let lost = requests.request(at(micros), samples(numbers), unsent, old, ROUND_TRIP, |_| false);
            lost.iter().map(|number| number.0).collect::<Vec<_>>()
        };
        assert_eq!(request(&mut requests, 0, &[4, 5, 6, 8]), [6, 8]);
        assert_eq!(requests.take().map_or(0, |wanted| wanted.iter().count()), 4);
        requests.record(at(0), SequenceNumber(4), ROUND_TRIP);
        assert_eq!(request(&mut requests, 500, &[4, 5]), [0; 0], "its repair is on its way");
        assert_eq!(request(&mut requests, 1_500, &[4, 5]), [4], "its repair is lost");
        assert_eq!(request(&mut requests, 1_600, &[4, 5]), [0; 0], "that is known");
        requests.withdraw();
        requests.forget_lost(at(1_700));
        assert_eq!(request(&mut requests, 3_000, &[4]), [0; 0]);
    }

    #[test]
    fn what_was_sent_again_since_a_rare_answer_is_known_to_be_lost() {
        let mut requests = Requests::default();
        let numbers: Vec<i64> = (1..=100).collect();
        let unsent = SequenceNumber(200);
        for number in &numbers {
            requests.record(at(*number as u64 * 500), SequenceNumber(*number), ROUND_TRIP);
        }
        let ask = |requests: &mut Requests, micros| {
            let old = SequenceNumber(100);
            let lost = requests.request(at(micros), samples(&numbers), unsent, old, ROUND_TRIP, |_| false);
            requests.withdraw();
            lost.iter().map(|number| number.0).collect::<Vec<_>>()
        };
        assert_eq!(ask(&mut requests, 100_000), numbers);
        requests.forget_lost(at(150_000));
        for number in (1..=100).rev() {
            requests.record(at(150_000 + number * 500), SequenceNumber(number as i64), ROUND_TRIP);
        }
        assert_eq!(ask(&mut requests, 300_000), numbers, "in whatever order");
        requests.forget_lost(at(400_000));
        (90..=99).for_each(|number| {
            requests.record(at(310_000 + number * 1_000), SequenceNumber(number as i64), ROUND_TRIP)
        });
        assert_eq!(ask(&mut requests, 500_000), (91..=99).collect::<Vec<_>>(), "after 400 ms");
        assert!(requests.lately.0.len() <= LATELY_MAX);
    }
}
