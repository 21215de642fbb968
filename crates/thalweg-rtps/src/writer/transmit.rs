//! What a writer sends: new samples, repairs, heartbeats.

use super::Writer;
use super::WriterCounters;
use super::flow::{Flow, Position, kernel_cost};
use super::pack::{
    OUTBOX_MAX_DATAGRAMS, Packer, Pair, batch_bytes, fragments_of, push_batch, push_fragment, push_sample, sample_bytes,
};
use super::reader_proxy::{Owed, ReaderProxy};
use super::repair::Repair;
use super::route::Route;
use crate::history::{FrameAt, HeldSample, WriterHistory};
use crate::outbox::Outbox;
use crate::time::Instant;
use crate::types::{EntityId, Guid, Locator, SequenceNumber, VendorId};
use crate::wire::batch::HeartbeatBatch;
use crate::wire::write;
use crate::wire::{Heartbeat, HeartbeatFrag};

/// In which form collected samples travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As DATA_BATCH.
    Batch,
    /// As a DATA each.
    Plain,
}

impl Writer {
    /// Fills `outbox` with what is to be sent now. True when more is waiting: send, clear and call again.
    pub fn poll_transmit(&mut self, now: Instant, outbox: &mut Outbox) -> bool {
        let more_new = self.transmit_new(now, u64::MAX, outbox);
        let more_repairs = self.transmit_repairs(now, u64::MAX, outbox);
        self.transmit_control(now, outbox);
        more_new || more_repairs
    }

    /// HEARTBEATs that are owed or wanted.
    pub(super) fn transmit_control(&mut self, now: Instant, outbox: &mut Outbox) {
        self.transmit_owed_heartbeats(now, outbox);
        self.transmit_wanted_heartbeat(now, outbox);
        outbox.finish();
    }

    pub(super) fn transmit_new(&mut self, now: Instant, allowance: u64, outbox: &mut Outbox) -> bool {
        let last = self.history.last();
        if self.outgoing.place.sample > last {
            return false;
        }
        if self.route.destinations().is_empty() {
            self.outgoing.place = Place::before(last.next());
            self.collection.is_sent();
            return false;
        }
        if self.collection.holds(now) {
            return false;
        }
        if self.flow.is_paused(now) {
            self.collection.is_blocked();
            return false;
        }
        let awaited = self.readers.iter().any(ReaderProxy::is_awaited);
        if awaited && self.waits_for_a_full_datagram() {
            return false;
        }
        self.history.seal();
        let start = self.outgoing.place;
        let mut progress = None;
        for form in [Form::Batch, Form::Plain] {
            if destinations_of(&self.route, form).is_empty() {
                continue;
            }
            match progress {
                None => progress = Some(self.transmit_first(now, form, awaited, allowance, outbox)),
                // The others get exactly the same; the window has admitted it already.
                Some(_) => self.transmit_again(form, start, outbox),
            }
            self.after_burst(now, form, outbox, awaited);
        }
        if !awaited {
            self.history.acknowledged(self.outgoing.place.sample.previous());
        }
        match self.outgoing.place.sample > last {
            true => self.collection.is_sent(),
            false => self.collection.is_blocked(),
        }
        matches!(progress, Some(Progress::OutboxFull))
    }

    /// While the window is closed to what was collected, it goes on being collected: opening by and by, the window would else
    /// let out one small datagram after the other.
    fn waits_for_a_full_datagram(&self) -> bool {
        let bytes = (self.collection.bytes() + write::HEADER_LEN).min(self.route.datagram_bytes());
        self.collection.was_blocked() && self.outgoing.place.fragment == 0 && !self.flow.admits(kernel_cost(bytes))
    }

    /// First transmission to the readers of one form, as far as the window goes.
    fn transmit_first(
        &mut self,
        now: Instant,
        form: Form,
        awaited: bool,
        allowance: u64,
        outbox: &mut Outbox,
    ) -> Progress {
        let mut awaited_readers = self.readers.iter().filter(|reader| reader.is_awaited());
        let partial = awaited && awaited_readers.all(|reader| reader.matched.vendor == VendorId::THALWEG);
        let charge = match (awaited, partial) {
            (false, _) => Charge::Nothing,
            (true, false) => Charge::Samples,
            (true, true) => Charge::Fragments(&mut self.heartbeat.fragment_count),
        };
        let mut packer = packer_to(&self.route, form, self.guid, outbox).within(allowance);
        let mut transmission = Transmission {
            pair: Pair { writer: self.guid.entity, reader: self.route.reader() },
            form,
            conflates: self.collection.was_blocked(),
            route: &self.route,
            flow: &mut self.flow,
            counters: &mut self.counters,
            scratch: &mut self.outgoing.scratch,
            batched: &mut self.outgoing.batched,
            charge,
        };
        let end = Place::before(SequenceNumber(i64::MAX));
        loop {
            match transmission.run(now, &self.history, &mut packer, &mut self.outgoing.place, end) {
                // Readers with a narrower path have come since it was written.
                Progress::TooWide { sample, fitting } => self.history.set_fragment_bytes(sample, fitting),
                progress => return progress,
            }
        }
    }

    /// The same samples in another form for readers that need it.
    fn transmit_again(&mut self, form: Form, start: Place, outbox: &mut Outbox) {
        let mut packer = packer_to(&self.route, form, self.guid, outbox);
        let mut transmission = Transmission {
            pair: Pair { writer: self.guid.entity, reader: self.route.reader() },
            form,
            conflates: self.collection.was_blocked(),
            route: &self.route,
            flow: &mut self.flow,
            counters: &mut self.counters,
            scratch: &mut self.outgoing.scratch,
            batched: &mut self.outgoing.batched,
            charge: Charge::Nothing,
        };
        let mut place = start;
        transmission.run(Instant::ZERO, &self.history, &mut packer, &mut place, self.outgoing.place);
    }

    /// Asks for an acknowledgement on the burst's last datagram where one is due.
    fn after_burst(&mut self, now: Instant, form: Form, outbox: &mut Outbox, awaited: bool) {
        if !awaited || outbox.open_len() == 0 {
            return;
        }
        let sent = self.outgoing.place.sample.previous();
        let samples_since = sent - self.heartbeat.asked_for;
        let due = self.heartbeat.wanted
            || self.flow.wants_acknowledgement()
            || samples_since >= self.capacity.ask_every
            || self.heartbeat.due.is_some_and(|due| due <= now)
            || self.route.batch_destinations().len() < self.route.destinations().len()
                && !self.route.batch_destinations().is_empty();
        if due {
            let heartbeat = self.next_heartbeat_to_all(now);
            let mut packer = packer_to(&self.route, form, self.guid, outbox).resume();
            packer.reserve_heartbeat();
            self.push_heartbeat(form, &heartbeat, outbox);
        }
    }

    fn push_heartbeat(&self, form: Form, heartbeat: &Heartbeat, outbox: &mut Outbox) {
        if form == Form::Plain || !self.outgoing.batched {
            write::heartbeat(outbox.buffer(), heartbeat);
            return;
        }
        let batch = HeartbeatBatch {
            first_batch: self.history.pack_of(heartbeat.first),
            last_batch: self.history.pack_of(heartbeat.last.next()).previous(),
            heartbeat: *heartbeat,
        };
        write::heartbeat_batch(outbox.buffer(), &batch);
    }

    /// A HEARTBEAT of what was sent so far for every reader.
    fn next_heartbeat_to_all(&mut self, now: Instant) -> Heartbeat {
        self.heartbeat.asked_for = self.outgoing.place.sample.previous();
        self.heartbeat.wanted = false;
        self.heartbeat.all_asked = Some(now);
        self.next_heartbeat(now, self.route.reader())
    }

    /// A HEARTBEAT of what was sent so far for one reader, or for all that the datagram reaches.
    fn next_heartbeat(&mut self, now: Instant, reader: EntityId) -> Heartbeat {
        let last = self.outgoing.place.sample.previous();
        if self.outgoing.place.fragment == 0 {
            self.flow.record_request(Position::whole(last));
        }
        self.heartbeat.last_sent = Some(now);
        self.heartbeat.count = self.heartbeat.count.wrapping_add(1);
        self.counters.heartbeats += 1;
        self.schedule_heartbeat(now);
        Heartbeat {
            reader,
            writer: self.guid.entity,
            first: self.history.first().min(last.next()),
            last,
            count: self.heartbeat.count,
            is_final: false,
            liveliness: false,
        }
    }

    fn transmit_wanted_heartbeat(&mut self, now: Instant, outbox: &mut Outbox) {
        if !self.heartbeat.wanted {
            return;
        }
        self.heartbeat.wanted = false;
        if !self.readers.iter().any(ReaderProxy::is_awaited) {
            return;
        }
        for form in [Form::Batch, Form::Plain] {
            if destinations_of(&self.route, form).is_empty() {
                continue;
            }
            let heartbeat = self.next_heartbeat_to_all(now);
            packer_to(&self.route, form, self.guid, outbox).reserve(write::HEARTBEAT_BATCH_LEN);
            self.push_heartbeat(form, &heartbeat, outbox);
            self.transmit_fragment_heartbeat(self.route.reader(), outbox);
        }
    }

    /// Within a large sample the readers are also asked for the fragments sent so far.
    fn transmit_fragment_heartbeat(&mut self, reader: EntityId, outbox: &mut Outbox) {
        let Place { sample, fragment } = self.outgoing.place;
        if fragment == 0 {
            return;
        }
        self.heartbeat.fragment_count = self.heartbeat.fragment_count.wrapping_add(1);
        let heartbeat = HeartbeatFrag {
            reader,
            writer: self.guid.entity,
            sequence: sample,
            last_fragment: fragment,
            count: self.heartbeat.fragment_count,
        };
        self.flow.record_request(Position { sample: sample.previous(), fragments: fragment });
        write::heartbeat_frag(outbox.buffer(), &heartbeat);
    }

    fn transmit_owed_heartbeats(&mut self, now: Instant, outbox: &mut Outbox) {
        for index in 0..self.readers.len() {
            if self.readers[index].owed == Owed::Nothing {
                continue;
            }
            if outbox.len() >= OUTBOX_MAX_DATAGRAMS {
                return;
            }
            let heartbeat = self.next_heartbeat(now, self.readers[index].matched.guid.entity);
            let reader = &mut self.readers[index];
            let greeting = std::mem::replace(&mut reader.owed, Owed::Nothing) == Owed::Greeting;
            let form = if reader.matched.batches && !greeting { Form::Batch } else { Form::Plain };
            let mut packer = Packer::directed(outbox, self.guid, &reader.matched);
            if greeting && reader.start > SequenceNumber::FIRST {
                packer.gap(reader.matched.guid.entity, SequenceNumber::FIRST, reader.start);
            }
            packer.reserve(write::HEARTBEAT_BATCH_LEN);
            self.push_heartbeat(form, &heartbeat, outbox);
            self.transmit_fragment_heartbeat(heartbeat.reader, outbox);
        }
    }

    pub(super) fn transmit_repairs(&mut self, now: Instant, allowance: u64, outbox: &mut Outbox) -> bool {
        for index in 0..self.readers.len() {
            if self.readers[index].repairs.is_empty() {
                continue;
            }
            if outbox.len() >= OUTBOX_MAX_DATAGRAMS {
                return true;
            }
            let reader = &mut self.readers[index];
            let mut repair = Repair {
                history: &self.history,
                place: self.outgoing.place,
                start: reader.start,
                limit: reader.matched.datagram_bytes,
                batches: reader.matched.batches,
                scratch: &mut self.outgoing.scratch,
                counters: &mut self.counters,
                pair: Pair { writer: self.guid.entity, reader: reader.matched.guid.entity },
                burst_left: self.flow.repair_burst(reader.matched.receive_buffer_bytes),
            };
            outbox.finish();
            let mut packer = Packer::directed(outbox, self.guid, &reader.matched).within(allowance);
            repair.serve(now, &mut packer, &mut reader.repairs);
            if !reader.repairs.is_empty() {
                return true;
            }
            if outbox.open_len() == 0 {
                continue; // Nothing of what was asked for exists: a HEARTBEAT would only make the reader ask again.
            }
            reader.owed = Owed::Nothing;
            let form = if reader.matched.batches { Form::Batch } else { Form::Plain };
            let heartbeat = self.next_heartbeat(now, self.readers[index].matched.guid.entity);
            let mut packer = Packer::directed(outbox, self.guid, &self.readers[index].matched).resume();
            packer.reserve_heartbeat();
            self.push_heartbeat(form, &heartbeat, outbox);
        }
        false
    }
}

fn destinations_of(route: &Route, form: Form) -> &[Locator] {
    match form {
        Form::Batch => route.batch_destinations(),
        Form::Plain => route.plain_destinations(),
    }
}

fn packer_to<'a>(route: &'a Route, form: Form, source: Guid, outbox: &'a mut Outbox) -> Packer<'a> {
    Packer::new(outbox, source, destinations_of(route, form), None, route.datagram_bytes())
}

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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Complete,
    OutboxFull,
    WindowClosed,
    /// The sample was cut, or not cut, for wider paths than there are now.
    TooWide {
        sample: SequenceNumber,
        fitting: u16,
    },
}

/// What is to be sent next after an attempt to send `sample`.
fn after(progress: Progress, sample: SequenceNumber) -> (Progress, SequenceNumber) {
    (progress, if progress == Progress::Complete { sample.next() } else { sample })
}

/// What the send window is charged for.
enum Charge<'a> {
    /// Nobody acknowledges, or it was charged already.
    Nothing,
    /// Whole samples: some reader cannot acknowledge parts of one.
    Samples,
    /// Every fragment; the counter of the HEARTBEAT_FRAGs that ask for acknowledgements of parts.
    Fragments(&'a mut u32),
}

/// First transmission of samples to all readers of one form.
struct Transmission<'a> {
    pair: Pair,
    form: Form,
    /// The readers are behind: samples that KEEP_LAST has overwritten are left out.
    conflates: bool,
    route: &'a Route,
    flow: &'a mut Flow,
    counters: &'a mut WriterCounters,
    scratch: &'a mut Vec<u8>,
    batched: &'a mut bool,
    charge: Charge<'a>,
}

impl Transmission<'_> {
    /// Sends from `place` on, up to `end` at most.
    fn run(
        &mut self,
        now: Instant,
        history: &WriterHistory,
        packer: &mut Packer<'_>,
        place: &mut Place,
        end: Place,
    ) -> Progress {
        while *place < end && place.sample <= history.last() {
            let sample = match self.conflates {
                true => history.next_from(place.sample),
                false => history.next_collected_from(place.sample),
            };
            let held = sample.as_ref().map_or(history.last().next(), |sample| sample.sequence);
            if held > place.sample {
                packer.gap(self.pair.reader, place.sample, held);
                *place = Place::before(held);
            }
            let Some(sample) = sample else { break };
            let narrower = self.route.narrower_fragment_bytes(sample.len(), sample.fragment_bytes);
            if let Some(fitting) = narrower.filter(|_| place.fragment == 0 && sample.encapsulation.is_none()) {
                return Progress::TooWide { sample: held, fitting };
            }
            let frame = sample.encapsulation.and_then(|_| history.frame_with(held));
            let sent = match (sample.fragment_bytes.or(narrower), frame) {
                (Some(bytes), _) => after(self.fragments(now, packer, &sample, bytes, &mut place.fragment), held),
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
                packer.gap(self.pair.reader, next, sample.sequence);
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
        self.flow.record_sent(cost);
        self.counters.transmitted += at.frame.len() as u64;
        self.counters.batches += 1;
        *self.batched = true;
        Some((Progress::Complete, next))
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
        self.flow.record_sent(cost);
        self.counters.transmitted += 1;
        *self.batched = false;
        Progress::Complete
    }

    fn is_closed_for(&self, cost: u64) -> bool {
        !matches!(self.charge, Charge::Nothing) && !self.flow.admits(cost)
    }

    fn fragments(
        &mut self,
        now: Instant,
        packer: &mut Packer<'_>,
        sample: &HeldSample<'_>,
        fragment_bytes: u16,
        next_fragment: &mut u32,
    ) -> Progress {
        let total = fragments_of(sample, fragment_bytes);
        if *next_fragment == 0 {
            self.flow.start_burst();
        }
        while *next_fragment < total {
            let bytes = usize::from(fragment_bytes) + 100;
            if packer.is_full_for(bytes) {
                return Progress::OutboxFull;
            }
            let cost = kernel_cost(bytes);
            let closed = match self.charge {
                Charge::Nothing => false,
                Charge::Samples => self.flow.pause_after_burst(now),
                Charge::Fragments(_) => !self.flow.admits(cost),
            };
            if closed {
                return Progress::WindowClosed;
            }
            push_fragment(packer, self.scratch, self.pair, sample, fragment_bytes, *next_fragment);
            self.flow.record_sent(cost);
            self.counters.transmitted += 1;
            *next_fragment += 1;
            if let Charge::Fragments(count) = &mut self.charge
                && *next_fragment < total
                && self.flow.wants_acknowledgement()
            {
                **count = count.wrapping_add(1);
                ask_for_fragments(packer, self.flow, self.pair, sample.sequence, *next_fragment, **count);
            }
        }
        Progress::Complete
    }
}

/// Asks for progress within a large sample.
fn ask_for_fragments(
    packer: &mut Packer<'_>,
    flow: &mut Flow,
    pair: Pair,
    sequence: SequenceNumber,
    sent: u32,
    count: u32,
) {
    flow.record_request(Position { sample: sequence.previous(), fragments: sent });
    let Pair { writer, reader } = pair;
    let heartbeat = HeartbeatFrag { reader, writer, sequence, last_fragment: sent, count };
    write::heartbeat_frag(packer.outbox.buffer(), &heartbeat);
}
