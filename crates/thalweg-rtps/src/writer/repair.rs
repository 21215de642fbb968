//! Answers to what readers ask for again: samples, packs, fragments, or the news that they will not come.

use std::collections::VecDeque;

use super::WriterCounters;
use super::pack::{
    Packer, Pair, batch_bytes, fragment_datagram_bytes, fragments_of, push_batch, push_fragment, push_sample,
    sample_bytes,
};
use super::reader_proxy::Repairs;
use super::route::fragment_bytes_in;
use super::transmission::Place;
use crate::history::{HeldSample, WriterHistory};
use crate::time::Instant;
use crate::types::SequenceNumber;
use crate::wire::{FragmentSet, SequenceSet};

/// Answers to one reader's requests.
pub(super) struct Repair<'a> {
    pub history: &'a WriterHistory,
    /// What was not sent for the first time yet.
    pub place: Place,
    /// First sample that concerns the reader.
    pub start: SequenceNumber,
    /// Last sample that was dropped although it was owed to the reader: a HEARTBEAT tells it, since a GAP would say that it has
    /// missed nothing.
    pub forsaken: SequenceNumber,
    /// Largest datagram that reaches it.
    pub limit: usize,
    /// Whether it understands DATA_BATCH.
    pub batches: bool,
    pub scratch: &'a mut Vec<u8>,
    pub counters: &'a mut WriterCounters,
    pub pair: Pair,
    /// Kernel memory at the reader that may still be filled at once; it asks for the rest when it has that.
    pub burst_left: u64,
}

impl<'a> Repair<'a> {
    /// Serves what is asked for until the outbox is full; what is beyond the burst is forgotten.
    pub(super) fn serve(&mut self, now: Instant, packer: &mut Packer<'_>, repairs: &mut Repairs) {
        if let Some(done) = self.fragments(packer, &mut repairs.fragments) {
            repairs.record_fragments(now, done.0, done.1);
        }
        if let Some(wanted) = repairs.samples.take() {
            let (done, left) = self.samples(packer, wanted, &mut repairs.next_fragment);
            repairs.record_samples(now, done);
            repairs.samples = left.filter(|_| self.burst_left > 0);
        }
        if let Some(wanted) = repairs.packs.take() {
            let (done, left) = self.packs(packer, wanted);
            repairs.record_packs(now, done);
            repairs.packs = left.filter(|_| self.burst_left > 0);
        }
    }

    /// True when `bytes` more are for the next call, or for the next request.
    fn is_full_for(&self, packer: &Packer<'_>, bytes: usize) -> bool {
        self.burst_left == 0 || packer.is_full_for(bytes)
    }

    fn pay(&mut self, packer: &Packer<'_>, bytes: usize) {
        self.burst_left = self.burst_left.saturating_sub(packer.cost_of(bytes));
    }

    /// Serves NACK_FRAGs; returns the last set served.
    fn fragments(
        &mut self,
        packer: &mut Packer<'_>,
        requests: &mut VecDeque<(SequenceNumber, FragmentSet)>,
    ) -> Option<(SequenceNumber, FragmentSet)> {
        let mut done = None;
        while !self.is_full_for(packer, 0)
            && let Some((sequence, wanted)) = requests.pop_front()
        {
            let before = requests.len();
            let in_mid_sample = sequence == self.place.sample;
            match self.held(sequence, self.place.sample) {
                Some(sample) => {
                    let Some(fragment_bytes) = self.fragment_bytes(&sample) else { continue };
                    let total = if in_mid_sample { self.place.fragment } else { fragments_of(&sample, fragment_bytes) };
                    let bytes = fragment_datagram_bytes(&sample, fragment_bytes);
                    for number in wanted.iter().filter(|number| (1..=total).contains(number)) {
                        if self.is_full_for(packer, bytes) {
                            let mut rest = FragmentSet::new(number);
                            wanted.iter().filter(|wanted| *wanted >= number).for_each(|wanted| _ = rest.insert(wanted));
                            requests.push_front((sequence, rest));
                            break;
                        }
                        self.pay(packer, bytes);
                        push_fragment(packer, self.scratch, self.pair, &sample, fragment_bytes, number - 1);
                        self.counters.repaired += 1;
                    }
                }
                None if sequence <= self.forsaken => {}
                None if sequence < self.place.sample => packer.gap(self.pair.reader, sequence, sequence.next()),
                None => {}
            }
            if requests.len() > before {
                break;
            }
            done = Some((sequence, wanted));
        }
        if self.burst_left == 0 {
            requests.clear();
        }
        done
    }

    /// Serves an ACKNACK's set; returns what was served and what is left.
    fn samples(
        &mut self,
        packer: &mut Packer<'_>,
        wanted: SequenceSet,
        next_fragment: &mut u32,
    ) -> (SequenceSet, Option<SequenceSet>) {
        let mut done = SequenceSet::new(wanted.base());
        let mut served_until = SequenceNumber::ZERO;
        let unsent = self.place.sample;
        for sequence in wanted.iter().take_while(|sequence| *sequence < unsent) {
            if sequence < served_until {
                done.insert(sequence);
                continue;
            }
            match self.repair_one(packer, sequence, next_fragment) {
                Some(until) => served_until = until,
                None => return (done, Some(rest_of(&wanted, sequence))),
            }
            done.insert(sequence);
            *next_fragment = 0;
        }
        (done, None)
    }

    /// Serves an ACKNACK_BATCH's set; returns what was served and what is left.
    fn packs(&mut self, packer: &mut Packer<'_>, wanted: SequenceSet) -> (SequenceSet, Option<SequenceSet>) {
        let mut done = SequenceSet::new(wanted.base());
        for pack in wanted.iter() {
            let (mut sequence, end) = self.history.pack(pack);
            let end = end.min(self.place.sample);
            let mut next_fragment = 0;
            while sequence < end {
                match self.repair_one(packer, sequence, &mut next_fragment) {
                    Some(until) => sequence = until,
                    None => return (done, Some(rest_of(&wanted, pack))),
                }
                next_fragment = 0;
            }
            done.insert(pack);
        }
        (done, None)
    }

    /// Sends sample `sequence` again, with its whole frame to a reader that understands it. Returns up to where the reader
    /// is served, or `None` when the outbox or the burst is full.
    fn repair_one(
        &mut self,
        packer: &mut Packer<'_>,
        sequence: SequenceNumber,
        next_fragment: &mut u32,
    ) -> Option<SequenceNumber> {
        if self.is_full_for(packer, 0) {
            return None;
        }
        let Some(sample) = self.held(sequence, self.place.sample.previous()) else {
            if sequence <= self.forsaken {
                return Some(self.forsaken.next().min(self.place.sample));
            }
            let next_held = self.history.next_from(sequence.max(self.start)).map_or(self.place.sample, |s| s.sequence);
            let until = next_held.min(self.place.sample).max(sequence.next());
            packer.gap(self.pair.reader, sequence, until);
            return Some(until);
        };
        if let Some(fragment_bytes) = self.fragment_bytes(&sample) {
            let total = fragments_of(&sample, fragment_bytes);
            while *next_fragment < total {
                if self.is_full_for(packer, usize::from(fragment_bytes)) {
                    return None;
                }
                self.pay(packer, usize::from(fragment_bytes));
                push_fragment(packer, self.scratch, self.pair, &sample, fragment_bytes, *next_fragment);
                self.counters.repaired += 1;
                *next_fragment += 1;
            }
            return Some(sequence.next());
        }
        let frame = self.history.frame_with(sequence).filter(|at| {
            let whole = at.frame.len() > 1 && at.frame.live() == at.frame.len();
            self.batches && whole && at.first >= self.start && packer.can_hold(batch_bytes(at.frame))
        });
        let bytes = frame.map_or_else(|| sample_bytes(&sample), |at| batch_bytes(at.frame));
        if self.is_full_for(packer, bytes) {
            return None;
        }
        self.pay(packer, bytes);
        match frame {
            Some(at) => push_batch(packer, self.pair, &at),
            None => push_sample(packer, self.scratch, self.pair, &sample),
        }
        let until = frame.map_or(sequence.next(), |at| at.last().next());
        self.counters.repaired += (until - sequence) as u64;
        Some(until)
    }

    fn held(&self, sequence: SequenceNumber, last: SequenceNumber) -> Option<HeldSample<'a>> {
        let concerns_reader = sequence >= self.start && sequence <= last;
        let history: &'a WriterHistory = self.history;
        history.get(sequence).filter(|_| concerns_reader)
    }

    /// The size this reader sees: what was sent at first, or smaller where its path is narrower.
    fn fragment_bytes(&self, sample: &HeldSample<'_>) -> Option<u16> {
        let fitting = fragment_bytes_in(self.limit);
        match sample.fragment_bytes {
            Some(bytes) => Some(bytes.min(fitting)),
            None => (sample.len() > usize::from(fitting)).then_some(fitting),
        }
    }
}

fn rest_of(wanted: &SequenceSet, from: SequenceNumber) -> SequenceSet {
    let mut rest = SequenceSet::new(from);
    for sequence in wanted.iter().filter(|sequence| *sequence >= from) {
        rest.insert(sequence);
    }
    rest
}
