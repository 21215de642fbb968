//! What readers go without: samples that were lost, and overwritten before they were asked for.

use std::collections::VecDeque;

use super::Writer;
use super::congestion::DATAGRAM;
use super::flow::Position;
use super::large_repair::Cut;
use super::loss::Loss;
use super::outgoing::Outgoing;
use super::reader_proxy::ReaderProxy;
use crate::history::WriterHistory;
use crate::time::Instant;
use crate::types::{Guid, SequenceNumber};
use crate::wire::{LostFrag, SequenceSet};

/// The last large samples that left, with the fragments of them that did: what is overwritten may be lost all the same.
#[derive(Debug, Default)]
pub(super) struct SentLarge(VecDeque<(SequenceNumber, Cut)>);

/// Samples that are remembered: as many as a reader can tell of at a time.
const SENT_MAX: usize = 256;

impl SentLarge {
    /// The fragments of `sent` have left of a sample.
    pub(super) fn note(&mut self, sequence: SequenceNumber, sent: Cut) {
        match self.0.back_mut().filter(|last| last.0 == sequence) {
            Some(last) => last.1 = sent,
            None => {
                if self.0.len() >= SENT_MAX {
                    self.0.pop_front();
                }
                self.0.push_back((sequence, sent));
            }
        }
    }

    fn get(&self, sequence: SequenceNumber) -> Option<Cut> {
        let index = self.0.binary_search_by_key(&sequence, |entry| entry.0).ok()?;
        Some(self.0[index].1)
    }
}

/// Numbers that first transmission passed over: what had them was overwritten, or went otherwise, before all of it left. Only the last
/// ranges are remembered; what lies before those may or may not have been sent.
#[derive(Debug, Default)]
pub(super) struct NeverSent(VecDeque<(SequenceNumber, SequenceNumber)>);

/// Ranges that are remembered.
const NEVER_SENT_MAX: usize = 64;

impl NeverSent {
    /// The numbers from `start` to below `end` are passed over.
    pub(super) fn note(&mut self, start: SequenceNumber, end: SequenceNumber) {
        match self.0.back_mut() {
            // They are sent once more, in another form.
            Some(last) if last.1 >= end => {}
            Some(last) if last.1 >= start => last.1 = end,
            _ => {
                if self.0.len() >= NEVER_SENT_MAX {
                    self.0.pop_front();
                }
                self.0.push_back((start, end));
            }
        }
    }

    /// Whether a number was passed over, as far as that is remembered.
    fn contains(&self, number: SequenceNumber) -> bool {
        let place = self.0.partition_point(|range| range.1 <= number);
        self.0.get(place).is_some_and(|range| range.0 <= number)
    }

    /// Whether all that was passed over from a number on is remembered.
    fn reaches(&self, number: SequenceNumber) -> bool {
        self.0.len() < NEVER_SENT_MAX || self.0.front().is_some_and(|first| first.0 <= number)
    }
}

/// Up to where a reader has told what it goes without: each counts once, in the order of the numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ToldLost {
    samples: SequenceNumber,
    /// A sample and its last fragment.
    parts: (SequenceNumber, u32),
}

impl ToldLost {
    /// What was sent below `unsent` did not reach the reader, since it had been given up.
    pub(super) fn pass_over(&mut self, unsent: SequenceNumber) {
        self.samples = self.samples.max(unsent.previous());
        self.parts = self.parts.max((unsent.previous(), u32::MAX));
    }
}

impl Writer {
    /// A reader goes without these samples. Those that left and are gone count as lost on its path.
    pub fn handle_lost(&mut self, now: Instant, reader: Guid, numbers: &SequenceSet) {
        let end = self.outgoing.place.sample;
        let usual = self.flow.charges.of(self.collection.sample_bytes()).min(DATAGRAM);
        self.forgo(reader, |proxy, outgoing, history| {
            let told = proxy.forgone.samples;
            proxy.forgone.samples = told.max(numbers.last().unwrap_or_default().min(end.previous()));
            let is_fresh = |number: &SequenceNumber| *number > told && *number < end && history.get(*number).is_none();
            let lost = numbers.iter().filter(is_fresh).map(|number| proxy.lose_gone(now, outgoing, number, usual));
            lost.fold(Loss::default(), Loss::and)
        });
    }

    /// As [`Writer::handle_lost`], of fragments of one sample.
    pub fn handle_lost_frag(&mut self, now: Instant, reader: Guid, lost: &LostFrag) {
        let LostFrag { sequence, fragment_size, state, rest, .. } = *lost;
        self.forgo(reader, |proxy, outgoing, history| {
            let Some(last) = state.iter().last() else { return Loss::default() };
            let is_fresh = (sequence, state.base()) > proxy.forgone.parts && history.get(sequence).is_none();
            let sent = outgoing.sent_large.get(sequence).filter(|sent| sent.fragment_bytes == fragment_size);
            let Some(sent) = sent.filter(|_| is_fresh) else { return Loss::default() };
            proxy.forgone.parts = (sequence, if rest { u32::MAX } else { last });
            let beyond = if rest { last.saturating_add(1) } else { u32::MAX };
            let numbers = state.iter().filter(|number| *number <= sent.fragments).chain(beyond..=sent.fragments);
            let (suppression, excused) = (proxy.suppression(), proxy.excused_from(outgoing));
            proxy.repairs.lose_gone(now, sequence, sent, numbers, suppression, excused)
        });
    }

    /// Counts what `lost` finds, where that tells of the reader's path: behind a group that brings it nothing it does not. Nothing is sent
    /// to a reader that was given up.
    fn forgo(&mut self, reader: Guid, lost: impl FnOnce(&mut ReaderProxy, &Outgoing, &WriterHistory) -> Loss) {
        let uses_group = self.route.uses_group();
        let Some(mut proxy) = self.readers.get_mut(reader).filter(|proxy| proxy.is_awaited()) else { return };
        if !proxy.matched.vendor.traits().confirms_fragments {
            return;
        }
        let loss = lost(&mut proxy, &self.outgoing, &self.history);
        if !uses_group || proxy.group.has_brought_any() {
            proxy.note_loss(loss);
        }
    }
}

impl ReaderProxy {
    /// Nothing of a sample that is gone has come. Returns what that tells to be lost: all that left of it, or a datagram of the `usual`
    /// kernel memory where it is not among the last large ones.
    fn lose_gone(&mut self, now: Instant, outgoing: &Outgoing, number: SequenceNumber, usual: u64) -> Loss {
        let (suppression, excused) = (self.suppression(), self.excused_from(outgoing));
        let never_sent = &outgoing.never_sent;
        match outgoing.sent_large.get(number) {
            Some(sent) => self.repairs.lose_gone(now, number, sent, 1..=sent.fragments, suppression, excused),
            None if !never_sent.reaches(number) || never_sent.contains(number) => Loss::default(),
            None => Loss::datagram(if number > excused.sample { usual } else { 0 }),
        }
    }

    fn excused_from(&self, outgoing: &Outgoing) -> Position {
        self.excused(outgoing.place.position()).max(Position::whole(self.joined))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_large_samples_are_remembered_with_what_left_of_them() {
        let mut sent = SentLarge::default();
        let cut = |fragments| Cut { fragment_bytes: 1_304, fragments };
        for number in 1..=SENT_MAX as i64 + 2 {
            sent.note(SequenceNumber(2 * number), cut(3));
            sent.note(SequenceNumber(2 * number), cut(5));
        }
        let left = |number| sent.get(SequenceNumber(number)).map(|cut| cut.fragments);
        assert_eq!((left(4), left(6), left(7), left(8)), (None, Some(5), None, Some(5)));
        assert_eq!(sent.0.len(), SENT_MAX);
    }

    #[test]
    fn what_was_passed_over_is_known_as_long_as_it_is_remembered() {
        let mut never_sent = NeverSent::default();
        let number = SequenceNumber;
        for (start, end) in [(3, 5), (5, 7), (4, 6), (9, 10)] {
            never_sent.note(number(start), number(end));
        }
        let passed: Vec<i64> = (1..12).filter(|n| never_sent.contains(number(*n))).collect();
        assert_eq!(passed, [3, 4, 5, 6, 9]);
        let more = NEVER_SENT_MAX as i64 - 1;
        (0..more).for_each(|range| never_sent.note(number(20 + 3 * range), number(21 + 3 * range)));
        assert!(!never_sent.reaches(number(8)) && never_sent.reaches(number(9)), "before what is remembered");
        assert!(never_sent.contains(number(9)) && !never_sent.contains(number(10)));
        assert_eq!(never_sent.0.len(), NEVER_SENT_MAX);
    }
}
