//! Answers to what readers ask for again: samples, packs, fragments, or the news that they will not come.

use std::time::Duration;

use super::WriterCounters;
use super::large_repair::Cut;
use super::pack::{
    Packer, Pair, batch_bytes, fragment_datagram_bytes, fragments_of, push_batch, push_fragment, push_sample,
    sample_bytes,
};
use super::repairs::{Numbered, Repairs, SentAgain};
use super::route::{collected_fragment_bytes, fragment_bytes_in};
use super::sharing::Shared;
use super::transmission::Place;
use crate::history::{HeldSample, WriterHistory};
use crate::time::Instant;
use crate::types::{EntityId, SequenceNumber};
use crate::wire::SequenceSet;

/// Answers to one reader's requests.
pub(super) struct Repair<'a> {
    pub history: &'a WriterHistory,
    /// First number that was not sent yet.
    pub place: Place,
    /// First sample that concerns the reader.
    pub start: SequenceNumber,
    /// Last sample that was dropped although it was owed to the reader: a HEARTBEAT tells it, since a GAP would say that it has
    /// missed nothing.
    pub forsaken: SequenceNumber,
    /// Last sample that a HEARTBEAT tells, too, from `start` on. After a GAP for a sample of which it has a part, a reader of Fast DDS
    /// 3.1.2 goes on using the part, which it has freed; at a HEARTBEAT it forgets the part.
    pub gone: SequenceNumber,
    /// Largest datagram that reaches it.
    pub limit: usize,
    /// Whether it understands DATA_BATCH.
    pub batches: bool,
    pub scratch: &'a mut Vec<u8>,
    pub counters: &'a mut WriterCounters,
    pub pair: Pair,
    /// How long a repair counts as being on its way.
    pub suppression: Duration,
    /// Kernel memory at the reader that may still be filled now.
    pub budget: u64,
    /// The result of filling an outbox.
    pub spent: u64,
    /// What goes to all readers of its process.
    pub shared: Shared,
}

/// How far a set of requests was served.
enum Served {
    /// The reader is served up to here.
    Until(SequenceNumber),
    /// And so are the others of its process.
    Shared(SequenceNumber),
    /// It is a large one, noted to be sent fragment by fragment.
    Noted,
    /// The outbox is full, or the budget spent.
    Full,
    /// It is one of too many large ones: it waits for its turn.
    Waits,
}

impl<'a> Repair<'a> {
    /// Serves what is asked for until the outbox is full or the budget is spent.
    pub(super) fn serve(&mut self, now: Instant, packer: &mut Packer<'_>, repairs: &mut Repairs) {
        for kind in [Numbered::Samples, Numbered::Packs] {
            if let Some(numbers) = repairs.numbered(kind).take() {
                let rest = self.serve_numbered(now, packer, (kind, numbers), repairs);
                repairs.numbered(kind).put_back(rest);
            }
        }
        self.large(now, packer, repairs);
    }

    /// True when `bytes` more are for the next call.
    fn is_full_for(&self, packer: &Packer<'_>, bytes: usize) -> bool {
        self.is_spent() || packer.is_full_for(bytes)
    }

    /// True when the budget is spent.
    pub(super) fn is_spent(&self) -> bool {
        self.spent >= self.budget
    }

    fn pay(&mut self, packer: &Packer<'_>, bytes: usize, pair: Pair) {
        let cost = packer.cost_of(bytes);
        self.spent += cost;
        if pair.reader == EntityId::UNKNOWN {
            self.shared.spent += cost;
        }
    }

    /// To whom samples from `first` on are sent again.
    fn pair_from(&self, first: SequenceNumber) -> Pair {
        match first >= self.shared.from {
            true => Pair { reader: EntityId::UNKNOWN, ..self.pair },
            false => self.pair,
        }
    }

    /// Sends fragments of large samples again.
    fn large(&mut self, now: Instant, packer: &mut Packer<'_>, repairs: &mut Repairs) {
        let repaired_before = self.counters.repaired;
        self.fragments(now, packer, repairs);
        if self.counters.repaired > repaired_before {
            repairs.record_fragments(now);
        }
    }

    fn fragments(&mut self, now: Instant, packer: &mut Packer<'_>, repairs: &mut Repairs) {
        for large in &mut repairs.large {
            let Some(first) = large.next() else { continue };
            let Some(sample) = self.held(large.sequence, self.place.sample) else {
                large.clear();
                if large.sequence < self.place.sample && self.told_by_heartbeat(large.sequence).is_none() {
                    packer.gap(self.pair.reader, large.sequence, large.sequence.next());
                }
                continue;
            };
            if !self.cut(&sample).is_some_and(|cut| cut.covers(large.cut, first)) {
                // It is cut for another path meanwhile: its reader will ask for what it lacks of that.
                large.clear();
                continue;
            }
            let fragment_bytes = large.cut.fragment_bytes;
            let bytes = fragment_datagram_bytes(&sample, fragment_bytes);
            let pair = self.pair_from(large.sequence);
            while let Some(number) = large.next() {
                if self.is_full_for(packer, bytes) {
                    return;
                }
                self.pay(packer, bytes, pair);
                push_fragment(packer, self.scratch, pair, &sample, fragment_bytes, number - 1);
                if pair.reader == EntityId::UNKNOWN {
                    self.shared.sent.push(SentAgain::Fragment(large.sequence, large.cut, number));
                }
                self.counters.repaired += 1;
                large.record(now, number, self.suppression);
            }
            repairs.samples.record(now, large.sequence, self.suppression);
        }
    }

    /// Serves what an acknowledgement asked for; returns what is left.
    fn serve_numbered(
        &mut self,
        now: Instant,
        packer: &mut Packer<'_>,
        wanted: (Numbered, SequenceSet),
        repairs: &mut Repairs,
    ) -> Option<SequenceSet> {
        let (kind, numbers) = wanted;
        let mut next = SequenceNumber::ZERO;
        // Below it not all has reached the others of its process.
        let mut apart_until = self.shared.from;
        for number in numbers.iter() {
            let (first, end) = match kind {
                Numbered::Samples => (number, number.next()),
                Numbered::Packs => self.history.pack(number),
            };
            if first >= self.place.sample {
                break;
            }
            next = next.max(first);
            let mut is_sent = true;
            while next < end.min(self.place.sample) {
                match self.repair_one(now, packer, next, repairs) {
                    Served::Until(until) => (next, apart_until) = (until, apart_until.max(until)),
                    Served::Shared(until) => next = until,
                    Served::Noted => {
                        (next, is_sent) = (next.next(), kind == Numbered::Packs);
                        apart_until = apart_until.max(next);
                    }
                    Served::Full | Served::Waits => return Some(rest_of(&numbers, number)),
                }
            }
            // What is only noted may make room for an earlier one before any of it was sent.
            if is_sent {
                repairs.record(now, kind, number, self.suppression);
                if first >= apart_until {
                    self.shared.sent.push(SentAgain::Whole(kind, number));
                }
            }
        }
        None
    }

    /// Sends sample `sequence` again, with its whole frame to a reader that understands it; a large one is noted, to be sent
    /// fragment by fragment.
    fn repair_one(
        &mut self,
        now: Instant,
        packer: &mut Packer<'_>,
        sequence: SequenceNumber,
        repairs: &mut Repairs,
    ) -> Served {
        if self.is_full_for(packer, 0) {
            return Served::Full;
        }
        let Some(sample) = self.held(sequence, self.place.sample.previous()) else {
            if let Some(last) = self.told_by_heartbeat(sequence) {
                return Served::Until(last.next().min(self.place.sample));
            }
            let next_held = self.history.next_from(sequence.max(self.start)).map_or(self.place.sample, |s| s.sequence);
            let until = next_held.min(self.place.sample).max(sequence.next());
            packer.gap(self.pair.reader, sequence, until);
            return Served::Until(until);
        };
        if let Some(cut) = self.cut(&sample) {
            return match repairs.request_whole(now, sequence, cut, self.suppression) {
                true => Served::Noted,
                false => Served::Waits,
            };
        }
        let frame = self.history.frame_with(sequence).filter(|at| {
            let whole = at.frame.len() > 1 && at.frame.live() == at.frame.len();
            self.batches && whole && at.first >= self.start && packer.can_hold(batch_bytes(at.frame))
        });
        let pair = self.pair_from(frame.as_ref().map_or(sequence, |at| at.first));
        let bytes = frame.map_or_else(|| sample_bytes(&sample), |at| batch_bytes(at.frame));
        if self.is_full_for(packer, bytes) {
            return Served::Full;
        }
        if frame.is_none() {
            repairs.charges.note(sample.len(), packer.cost_of(bytes));
        }
        self.pay(packer, bytes, pair);
        match frame {
            Some(at) => push_batch(packer, pair, &at),
            None => push_sample(packer, self.scratch, pair, &sample),
        }
        let until = frame.map_or(sequence.next(), |at| at.last().next());
        self.counters.repaired += (until - sequence) as u64;
        match pair.reader {
            EntityId::UNKNOWN => Served::Shared(until),
            _ => Served::Until(until),
        }
    }

    /// If the first number of a HEARTBEAT tells that this sample will not come: the last that it tells so of.
    fn told_by_heartbeat(&self, sequence: SequenceNumber) -> Option<SequenceNumber> {
        let last = if sequence >= self.start { self.forsaken.max(self.gone) } else { self.forsaken };
        (sequence <= last).then_some(last)
    }

    fn held(&self, sequence: SequenceNumber, last: SequenceNumber) -> Option<HeldSample<'a>> {
        let concerns_reader = sequence >= self.start && sequence <= last;
        let history: &'a WriterHistory = self.history;
        history.get(sequence).filter(|_| concerns_reader)
    }

    fn cut(&self, sample: &HeldSample<'_>) -> Option<Cut> {
        cut_of(sample, self.limit, self.place)
    }
}

/// How a reader whose datagrams have at most `limit` bytes sees a sample cut, as far as it was sent: as at first, or smaller
/// where its path is narrower. `None`: not at all.
pub(super) fn cut_of(sample: &HeldSample<'_>, limit: usize, place: Place) -> Option<Cut> {
    let fitting = fragment_bytes_in(limit);
    let fragment_bytes = match sample.fragment_bytes {
        Some(bytes) => bytes.min(fitting),
        None if sample.len() <= usize::from(fitting) => return None,
        None => sample.encapsulation.map_or(fitting, |_| collected_fragment_bytes()),
    };
    let fragments = match sample.sequence == place.sample {
        true => sent_of(place.fragment, sample.fragment_bytes, fragment_bytes),
        false => fragments_of(sample, fragment_bytes),
    };
    Some(Cut { fragment_bytes, fragments })
}

/// How many fragments of `fragment_bytes` were sent with the first `fragments` of `first_bytes`.
fn sent_of(fragments: u32, first_bytes: Option<u16>, fragment_bytes: u16) -> u32 {
    let sent = u64::from(fragments) * u64::from(first_bytes.unwrap_or(fragment_bytes));
    u32::try_from(sent / u64::from(fragment_bytes.max(1))).unwrap_or(u32::MAX)
}

fn rest_of(wanted: &SequenceSet, from: SequenceNumber) -> SequenceSet {
    let mut rest = SequenceSet::new(from);
    for sequence in wanted.iter().filter(|sequence| *sequence >= from) {
        rest.insert(sequence);
    }
    rest
}
