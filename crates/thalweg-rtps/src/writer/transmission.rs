//! First transmission of samples: in which form, and as far as the send window and the outbox allow.

use std::time::Duration;

use super::WriterCounters;
use super::charges::kernel_cost;
use super::flow::{Flow, Position};
use super::heartbeat_state::HeartbeatState;
use super::large_repair::Cut;
use super::lost::{NeverSent, SentLarge};
use super::pack::{
    Packer, Pair, batch_bytes, fragment_datagram_bytes, fragments_of, push_batch, push_fragment, push_sample,
    sample_bytes,
};
use super::route::{Route, collected_fragment_bytes};
use super::transmit::Form;
use crate::history::{FrameAt, HeldSample, WriterHistory};
use crate::time::Instant;
use crate::types::SequenceNumber;
use crate::wire::HeartbeatFrag;
use crate::wire::write;

/// Where first transmission stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The sample that is sent next.
    pub sample: SequenceNumber,
    /// Its first fragment that was not sent yet, counted from zero.
    pub fragment: u32,
}

impl Place {
    pub(super) fn before(sample: SequenceNumber) -> Place {
        Place { sample, fragment: 0 }
    }

    /// Everything that was sent.
    pub(super) fn position(&self) -> Position {
        Position { sample: self.sample.previous(), fragments: self.fragment }
    }

    /// The number after the last sample of which something was sent.
    pub(super) fn end(&self) -> SequenceNumber {
        if self.fragment == 0 { self.sample } else { self.sample.next() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Complete,
    OutboxFull,
    WindowClosed,
    /// The sample was cut, or not cut, for wider paths than there are now.
    TooWide {
        sample: SequenceNumber,
        fitting: u16,
    },
}

/// The next transmission after an attempt to send `sample`.
fn after(progress: Progress, sample: SequenceNumber) -> (Progress, SequenceNumber) {
    (progress, if progress == Progress::Complete { sample.next() } else { sample })
}

/// Bytes charged to the send window.
pub(super) enum Charge<'a> {
    /// Nobody acknowledges, or it was charged already.
    Nothing,
    /// Nobody acknowledges, but a large sample is not to overflow the readers' sockets.
    Unacknowledged,
    /// Whole samples: some reader cannot acknowledge parts of one.
    Samples,
    /// Every fragment; HEARTBEAT_FRAGs ask for acknowledgements of parts.
    Fragments(&'a mut HeartbeatState),
}

/// First transmission of samples to all readers of one form.
pub(super) struct Transmission<'a> {
    pub pair: Pair,
    pub form: Form,
    /// The readers are behind: samples that KEEP_LAST has overwritten are left out.
    pub conflates: bool,
    pub route: &'a Route,
    pub flow: &'a mut Flow,
    pub counters: &'a mut WriterCounters,
    pub scratch: &'a mut Vec<u8>,
    pub batched: &'a mut bool,
    /// Which large samples leave, and what does not leave; `None` where they have left before.
    pub record: Option<(&'a mut SentLarge, &'a mut NeverSent)>,
    pub charge: Charge<'a>,
    /// Time between two samples.
    pub period: Option<Duration>,
}

impl Transmission<'_> {
    /// Sends from `place` on, up to `end` at most.
    pub(super) fn run(
        &mut self,
        now: Instant,
        history: &WriterHistory,
        packer: &mut Packer<'_>,
        place: &mut Place,
        end: Place,
    ) -> Progress {
        while *place < end && place.sample <= history.last() {
            let begun = (place.fragment > 0).then(|| history.get_begun(place.sample)).flatten();
            let sample = begun.or_else(|| match self.conflates {
                true => history.next_from(place.sample),
                false => history.next_collected_from(place.sample),
            });
            let held = sample.as_ref().map_or(history.last().next(), |sample| sample.sequence);
            if held > place.sample {
                let counts = place.fragment > 0 && !matches!(self.charge, Charge::Nothing);
                self.counters.abandoned += u64::from(counts);
                self.pass_over(packer, place.sample, held);
                *place = Place::before(held);
            }
            let Some(sample) = sample else { break };
            let narrower = self.route.narrower_fragment_bytes(sample.len(), sample.fragment_bytes);
            if let Some(fitting) = narrower.filter(|_| place.fragment == 0 && sample.encapsulation.is_none()) {
                return Progress::TooWide { sample: held, fitting };
            }
            let frame = sample.encapsulation.and_then(|_| history.frame_with(held));
            let collected = frame.as_ref().and(narrower).map(|_| collected_fragment_bytes());
            let sent = match (sample.fragment_bytes.or(collected).or(narrower), frame) {
                (Some(bytes), _) => {
                    let progress = self.fragments(now, packer, &sample, bytes, place, end);
                    if let Some((sent_large, _)) = &mut self.record {
                        sent_large.note(held, Cut { fragment_bytes: bytes, fragments: place.fragment });
                    }
                    after(progress, held)
                }
                (None, Some(at)) if self.form == Form::Batch && at.first == held && at.frame.len() > 1 => {
                    self.batch(packer, &at).unwrap_or_else(|| self.one_by_one(packer, &at, held, end))
                }
                (None, Some(at)) => self.one_by_one(packer, &at, held, end),
                (None, None) => after(self.whole(packer, &sample), held),
            };
            let (progress, next) = sent;
            if next > held || progress == Progress::Complete {
                *place = Place::before(next);
            }
            if progress != Progress::Complete {
                return progress;
            }
        }
        Progress::Complete
    }

    /// Sends a frame's samples from `from` to `end`, as a DATA each; returns what is to be sent next.
    fn one_by_one(
        &mut self,
        packer: &mut Packer<'_>,
        at: &FrameAt<'_>,
        from: SequenceNumber,
        end: Place,
    ) -> (Progress, SequenceNumber) {
        let mut next = from;
        for sample in at.samples(from, !self.conflates).take_while(|sample| sample.sequence < end.sample) {
            if sample.sequence > next {
                self.pass_over(packer, next, sample.sequence);
            }
            next = sample.sequence;
            let progress = self.whole(packer, &sample);
            if progress != Progress::Complete {
                return (progress, next);
            }
            next = next.next();
        }
        (Progress::Complete, next)
    }

    /// Sends a frame as a DATA_BATCH where that can be; returns what is to be sent next.
    fn batch(&mut self, packer: &mut Packer<'_>, at: &FrameAt<'_>) -> Option<(Progress, SequenceNumber)> {
        let bytes = batch_bytes(at.frame);
        let conflated = self.conflates && at.frame.live() < at.frame.len();
        if conflated || !packer.can_hold(bytes) {
            return None;
        }
        let cost = packer.cost_of(bytes);
        if packer.is_full_for(bytes) {
            return Some((Progress::OutboxFull, at.first));
        }
        if self.is_closed_for(cost) {
            return Some((Progress::WindowClosed, at.first));
        }
        let next = at.last().next();
        push_batch(packer, self.pair, at);
        self.charge(cost);
        self.counters.transmitted += at.frame.len() as u64;
        self.counters.batches += 1;
        *self.batched = true;
        Some((Progress::Complete, next))
    }

    /// The numbers from `start` to below `end` are gone, and do not leave.
    fn pass_over(&mut self, packer: &mut Packer<'_>, start: SequenceNumber, end: SequenceNumber) {
        if let Some((_, never_sent)) = &mut self.record {
            never_sent.note(start, end);
        }
        packer.gap(self.pair.reader, start, end);
    }

    /// Sends one sample as a DATA.
    fn whole(&mut self, packer: &mut Packer<'_>, sample: &HeldSample<'_>) -> Progress {
        let bytes = sample_bytes(sample);
        if packer.is_full_for(bytes) {
            return Progress::OutboxFull;
        }
        let cost = packer.cost_of(bytes);
        if self.is_closed_for(cost) {
            return Progress::WindowClosed;
        }
        push_sample(packer, self.scratch, self.pair, sample);
        self.charge(cost);
        self.flow.charges.note(sample.len(), cost);
        self.counters.transmitted += 1;
        *self.batched = false;
        Progress::Complete
    }

    fn charge(&mut self, cost: u64) {
        if !matches!(self.charge, Charge::Nothing) {
            self.flow.record_sent(cost);
        }
    }

    fn is_closed_for(&self, cost: u64) -> bool {
        !matches!(self.charge, Charge::Nothing) && (self.flow.is_granted_out() || !self.flow.admits(cost))
    }

    fn fragments(
        &mut self,
        now: Instant,
        packer: &mut Packer<'_>,
        sample: &HeldSample<'_>,
        fragment_bytes: u16,
        place: &mut Place,
        end: Place,
    ) -> Progress {
        let total = fragments_of(sample, fragment_bytes);
        let last = if sample.sequence == end.sample { end.fragment.min(total) } else { total };
        let next_fragment = &mut place.fragment;
        if *next_fragment == 0 {
            // Unacknowledged samples may lie in the reader's socket: the sample waits until there is room for all of it, or until
            // there is nothing else.
            let cost = kernel_cost(fragment_datagram_bytes(sample, fragment_bytes)) * u64::from(total);
            if matches!(self.charge, Charge::Samples) && !self.flow.admits(cost) {
                return Progress::WindowClosed;
            }
            self.flow.start_burst(now);
        }
        while *next_fragment < last {
            let bytes = fragment_datagram_bytes(sample, fragment_bytes);
            if packer.is_full_for(bytes) {
                return Progress::OutboxFull;
            }
            let cost = kernel_cost(bytes);
            let closed = match self.charge {
                Charge::Nothing => false,
                Charge::Unacknowledged => self.flow.pause_unacknowledged(now, u64::from(total) * cost, self.period),
                Charge::Samples => {
                    self.flow.is_granted_out() || self.flow.pause_after_burst(now, sample.len() as u64, self.period)
                }
                Charge::Fragments(_) => self.flow.is_granted_out() || !self.flow.admits(cost),
            };
            if closed {
                return Progress::WindowClosed;
            }
            push_fragment(packer, self.scratch, self.pair, sample, fragment_bytes, *next_fragment);
            self.charge(cost);
            self.counters.transmitted += 1;
            *next_fragment += 1;
            if let Charge::Fragments(heartbeat) = &mut self.charge
                && *next_fragment < total
                && self.flow.wants_acknowledgement()
            {
                let count = heartbeat.ask_for_fragments(now);
                ask_for_fragments(now, packer, self.flow, self.pair, sample.sequence, *next_fragment, count);
            }
        }
        if last < total { Progress::WindowClosed } else { Progress::Complete }
    }
}

/// Asks for progress within a large sample.
fn ask_for_fragments(
    now: Instant,
    packer: &mut Packer<'_>,
    flow: &mut Flow,
    pair: Pair,
    sequence: SequenceNumber,
    sent: u32,
    count: u32,
) {
    flow.record_request(now, Position { sample: sequence.previous(), fragments: sent });
    let Pair { writer, reader } = pair;
    let heartbeat = HeartbeatFrag { reader, writer, sequence, last_fragment: sent, count };
    write::heartbeat_frag(packer.outbox.buffer(), &heartbeat);
}
