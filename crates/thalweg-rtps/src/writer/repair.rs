//! Answers to what readers ask for again: samples, fragments, or the news that they will not come.

use std::collections::VecDeque;

use super::WriterCounters;
use super::pack::{Packer, fragment_datagram_bytes, fragments_of, push_fragment, push_sample, sample_bytes};
use super::route::fragment_bytes_in;
use crate::history::{Change, WriterHistory};
use crate::types::{EntityId, SequenceNumber};
use crate::wire::{FragmentSet, SequenceSet};

/// Answers to one reader's requests.
pub(super) struct Repair<'a> {
    pub history: &'a WriterHistory,
    pub next_unsent: SequenceNumber,
    /// Fragments of sample `next_unsent` that were sent.
    pub next_fragment: u32,
    pub start: SequenceNumber,
    pub limit: usize,
    pub scratch: &'a mut Vec<u8>,
    pub counters: &'a mut WriterCounters,
    pub writer: EntityId,
    pub reader: EntityId,
}

impl<'a> Repair<'a> {
    /// Serves NACK_FRAGs until the outbox is full; returns the last set served.
    pub(super) fn fragments(
        &mut self,
        packer: &mut Packer<'_>,
        requests: &mut VecDeque<(SequenceNumber, FragmentSet)>,
    ) -> Option<(SequenceNumber, FragmentSet)> {
        let mut done = None;
        while !packer.is_full()
            && let Some((sequence, wanted)) = requests.pop_front()
        {
            let in_mid_sample = sequence == self.next_unsent;
            match self.held(sequence, self.next_unsent) {
                Some(change) => {
                    let Some(fragment_bytes) = self.fragment_bytes(change) else { continue };
                    let total = if in_mid_sample { self.next_fragment } else { fragments_of(change, fragment_bytes) };
                    let bytes = fragment_datagram_bytes(change, fragment_bytes);
                    for number in wanted.iter().filter(|number| (1..=total).contains(number)) {
                        if !packer.pay(bytes) {
                            let mut rest = FragmentSet::new(number);
                            wanted.iter().filter(|wanted| *wanted >= number).for_each(|wanted| _ = rest.insert(wanted));
                            requests.push_front((sequence, rest));
                            return done;
                        }
                        let (writer, reader) = (self.writer, self.reader);
                        push_fragment(packer, self.scratch, writer, reader, change, fragment_bytes, number - 1);
                        self.counters.repaired += 1;
                    }
                }
                None if sequence < self.next_unsent => packer.gap(self.reader, sequence, sequence.next()),
                None => {}
            }
            done = Some((sequence, wanted));
        }
        done
    }

    /// Serves an ACKNACK's set; returns what was served and what is left for when the outbox has room again.
    pub(super) fn samples(
        &mut self,
        packer: &mut Packer<'_>,
        wanted: SequenceSet,
        next_fragment: &mut u32,
    ) -> (SequenceSet, Option<SequenceSet>) {
        let mut done = SequenceSet::new(wanted.base());
        let mut told_until = SequenceNumber::ZERO;
        let next_unsent = self.next_unsent;
        for sequence in wanted.iter().take_while(|sequence| *sequence < next_unsent) {
            if sequence < told_until {
                done.insert(sequence);
                continue;
            }
            if packer.is_full() || !self.repair_one(packer, sequence, next_fragment, &mut told_until) {
                return (done, rest_of(&wanted, sequence));
            }
            done.insert(sequence);
            *next_fragment = 0;
        }
        (done, None)
    }

    /// False when the outbox became full in mid-sample.
    fn repair_one(
        &mut self,
        packer: &mut Packer<'_>,
        sequence: SequenceNumber,
        next_fragment: &mut u32,
        told_until: &mut SequenceNumber,
    ) -> bool {
        let Some(change) = self.held(sequence, self.next_unsent.previous()) else {
            let next_held = self.history.next_from(sequence.max(self.start)).map_or(self.next_unsent, |c| c.sequence);
            *told_until = next_held.min(self.next_unsent).max(sequence.next());
            packer.gap(self.reader, sequence, *told_until);
            return true;
        };
        let Some(fragment_bytes) = self.fragment_bytes(change) else {
            if !packer.pay(sample_bytes(change)) {
                return false;
            }
            push_sample(packer, self.scratch, self.writer, self.reader, change);
            self.counters.repaired += 1;
            return true;
        };
        let total = fragments_of(change, fragment_bytes);
        while *next_fragment < total {
            if packer.is_full() || !packer.pay(fragment_datagram_bytes(change, fragment_bytes)) {
                return false;
            }
            push_fragment(packer, self.scratch, self.writer, self.reader, change, fragment_bytes, *next_fragment);
            self.counters.repaired += 1;
            *next_fragment += 1;
        }
        true
    }

    pub(super) fn held(&self, sequence: SequenceNumber, last: SequenceNumber) -> Option<&'a Change> {
        let concerns_reader = sequence >= self.start && sequence <= last;
        let history: &'a WriterHistory = self.history;
        history.get(sequence).filter(|_| concerns_reader)
    }

    /// The size this reader sees: what was sent at first, or smaller where its path is narrower.
    fn fragment_bytes(&self, change: &Change) -> Option<u16> {
        let fitting = fragment_bytes_in(self.limit);
        match change.fragment_bytes {
            Some(bytes) => Some(bytes.min(fitting)),
            None => (change.payload.len() > usize::from(fitting)).then_some(fitting),
        }
    }
}

fn rest_of(wanted: &SequenceSet, from: SequenceNumber) -> Option<SequenceSet> {
    let mut rest = SequenceSet::new(from);
    for sequence in wanted.iter().filter(|sequence| *sequence >= from) {
        rest.insert(sequence);
    }
    Some(rest)
}
