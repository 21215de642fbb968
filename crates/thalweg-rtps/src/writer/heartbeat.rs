//! HEARTBEATs: on the last datagram of a burst, on request, and to each reader that is owed one (RTPS 2.5 §8.4.2.2.5).

use super::Writer;
use super::flow::Position;
use super::pack::{OUTBOX_MAX_DATAGRAMS, Packer};
use super::reader_proxy::Owed;
use super::transmission::Place;
use super::transmit::{Form, packer_to};
use crate::outbox::Outbox;
use crate::time::Instant;
use crate::types::{EntityId, SequenceNumber};
use crate::wire::batch::HeartbeatBatch;
use crate::wire::write;
use crate::wire::{Heartbeat, HeartbeatFrag};

impl Writer {
    /// Asks for an acknowledgement on the burst's last datagram where one is due.
    pub(super) fn after_burst(&mut self, now: Instant, form: Form, outbox: &mut Outbox, awaited: bool) {
        if !awaited || outbox.open_len() == 0 {
            return;
        }
        let sent = self.outgoing.place.sample.previous();
        let samples_since = sent - self.heartbeat.asked_for;
        let due = self.heartbeat.wanted
            || self.flow.wants_acknowledgement()
            || samples_since >= self.room.ask_every
            || self.heartbeat.due.is_some_and(|due| due <= now)
            || self.guid.entity.is_builtin()
            || self.serves_both_forms();
        if due && self.heartbeat.is_withheld {
            self.ask_one_by_one(now);
        } else if due {
            let heartbeat = self.next_heartbeat_to_all(now);
            let mut packer = packer_to(&self.route, form, self.guid, outbox).resume();
            packer.reserve_heartbeat();
            self.push_heartbeat(form, &heartbeat, outbox);
        }
    }

    /// Each half of the destinations is then asked in its own datagram.
    fn serves_both_forms(&self) -> bool {
        [Form::Batch, Form::Plain].iter().all(|form| !self.route.destinations_in(*form).is_empty())
    }

    pub(super) fn push_heartbeat(&self, form: Form, heartbeat: &Heartbeat, outbox: &mut Outbox) {
        if let Some(info) = self.group_info(heartbeat) {
            write::group_heartbeat(outbox.buffer(), heartbeat, &info);
            return;
        }
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

    /// A HEARTBEAT that tells of no sample, and that the next one begins at `first`: a reader that answers has received it.
    pub(crate) fn empty_heartbeat(&mut self, reader: EntityId, first: SequenceNumber) -> Heartbeat {
        let (writer, count) = (self.guid.entity, self.heartbeat.take_count());
        Heartbeat { reader, writer, first, last: first.previous(), count, is_final: false, liveliness: false }
    }

    /// A HEARTBEAT of what was sent so far for every reader.
    fn next_heartbeat_to_all(&mut self, now: Instant) -> Heartbeat {
        self.note_all_asked(now);
        self.next_heartbeat(now, self.route.reader())
    }

    fn note_all_asked(&mut self, now: Instant) {
        self.heartbeat.note_all_asked(now, self.outgoing.place.sample.previous());
    }

    /// Owes a HEARTBEAT to each reader that may be told what was sent: one to all would reach those that may not.
    fn ask_one_by_one(&mut self, now: Instant) {
        self.note_all_asked(now);
        self.readers.change(
            |readers, _| readers.slowest.is_some(),
            |reader| {
                if !reader.must_prove_itself() {
                    reader.owed = reader.owed.max_with(Owed::Heartbeat);
                }
            },
        );
    }

    /// A HEARTBEAT of what was sent so far for one reader, or for all that the datagram reaches.
    pub(super) fn next_heartbeat(&mut self, now: Instant, reader: EntityId) -> Heartbeat {
        let last = self.outgoing.place.sample.previous();
        if self.outgoing.place.fragment == 0 {
            self.flow.record_request(now, Position::whole(last));
        }
        let count = self.heartbeat.ask(now);
        self.counters.heartbeats += 1;
        self.schedule_heartbeat(now);
        Heartbeat {
            reader,
            writer: self.guid.entity,
            first: self.history.first().min(last.next()),
            last,
            count,
            is_final: false,
            liveliness: false,
        }
    }

    pub(super) fn transmit_wanted_heartbeat(&mut self, now: Instant, outbox: &mut Outbox) {
        if !self.heartbeat.wanted {
            return;
        }
        self.heartbeat.wanted = false;
        if !self.is_awaiting() {
            return;
        }
        if self.heartbeat.is_withheld {
            self.ask_one_by_one(now);
            self.transmit_owed_heartbeats(now, outbox);
            return;
        }
        for form in [Form::Batch, Form::Plain] {
            if self.route.destinations_in(form).is_empty() {
                continue;
            }
            let heartbeat = self.next_heartbeat_to_all(now);
            packer_to(&self.route, form, self.guid, outbox).reserve(write::HEARTBEAT_BATCH_LEN);
            self.push_heartbeat(form, &heartbeat, outbox);
            self.transmit_fragment_heartbeat(now, self.route.reader(), outbox);
        }
    }

    /// Tells every reader that the application has asserted the writer's liveliness (RTPS 2.5 §8.3.8.6). Nobody has to answer.
    pub(super) fn transmit_assertion(&mut self, outbox: &mut Outbox) {
        if !self.promises.as_mut().is_some_and(|promises| promises.take_owed_assertion()) {
            return;
        }
        if self.heartbeat.is_withheld {
            (0..self.readers.len()).for_each(|place| self.transmit_assertion_to(place, outbox));
            return;
        }
        for form in [Form::Batch, Form::Plain] {
            if self.route.destinations_in(form).is_empty() {
                continue;
            }
            let heartbeat = self.next_assertion(self.route.reader());
            packer_to(&self.route, form, self.guid, outbox).reserve(write::HEARTBEAT_LEN);
            write::heartbeat(outbox.buffer(), &heartbeat);
        }
        let mut next = 0;
        while let Some(place) = self.readers.next_with(next, |any| any.repairs_only) {
            next = place + 1;
            self.transmit_assertion_to(place, outbox);
        }
    }

    /// Tells one reader alone of the assertion, and of no sample where it must prove itself first.
    fn transmit_assertion_to(&mut self, place: usize, outbox: &mut Outbox) {
        let mut heartbeat = self.next_assertion(self.readers.at(place).matched.guid.entity);
        let reader = self.readers.at(place);
        if reader.must_prove_itself() {
            (heartbeat.first, heartbeat.last) = (reader.start, reader.start.previous());
        }
        Packer::directed(outbox, self.guid, &reader.matched).reserve(write::HEARTBEAT_LEN);
        write::heartbeat(outbox.buffer(), &heartbeat);
    }

    fn next_assertion(&mut self, reader: EntityId) -> Heartbeat {
        let last = self.outgoing.place.sample.previous();
        let (first, writer) = (self.history.first().min(last.next()), self.guid.entity);
        Heartbeat { reader, writer, first, last, count: self.heartbeat.take_count(), is_final: true, liveliness: true }
    }

    /// Within a large sample the readers are also asked for the fragments sent so far.
    fn transmit_fragment_heartbeat(&mut self, now: Instant, reader: EntityId, outbox: &mut Outbox) {
        let Place { sample, fragment } = self.outgoing.place;
        if fragment == 0 {
            return;
        }
        let heartbeat = HeartbeatFrag {
            reader,
            writer: self.guid.entity,
            sequence: sample,
            last_fragment: fragment,
            count: self.heartbeat.ask_for_fragments(now),
        };
        self.flow.record_request(now, Position { sample: sample.previous(), fragments: fragment });
        write::heartbeat_frag(outbox.buffer(), &heartbeat);
    }

    /// True when more are owed than the outbox can take.
    pub(super) fn transmit_owed_heartbeats(&mut self, now: Instant, outbox: &mut Outbox) -> bool {
        while let Some(place) = self.readers.next_with(0, |any| any.owed) {
            if outbox.len() >= OUTBOX_MAX_DATAGRAMS {
                return true;
            }
            let mut heartbeat = self.next_heartbeat(now, self.readers.at(place).matched.guid.entity);
            let mut reader = self.readers.at_mut(place);
            reader.asking.asks(now);
            let greeting = std::mem::replace(&mut reader.owed, Owed::Nothing) == Owed::Greeting;
            let is_withheld = reader.must_prove_itself();
            if is_withheld {
                (heartbeat.first, heartbeat.last) = (reader.start, reader.start.previous());
            }
            let form = if reader.matched.batches && !greeting { Form::Batch } else { Form::Plain };
            let mut packer = Packer::directed(outbox, self.guid, &reader.matched);
            // A reader that is back has what precedes; the first number of the HEARTBEAT tells how much it has missed.
            // So it does for readers of built-in topics, whose samples are kept for all that come.
            let is_told = reader.forsaken > SequenceNumber::ZERO || self.guid.entity.is_builtin();
            // Samples written before it came and not sent yet are announced when they are sent: nothing is said of numbers to come.
            let start = reader.start.min(self.outgoing.place.sample);
            if greeting && start > SequenceNumber::FIRST && !is_told {
                // A GAP from the first number says where to start: what left since then has been lost by nobody.
                let entity = reader.matched.guid.entity;
                let before = start.min(reader.met_at.max(SequenceNumber::FIRST.next()));
                packer.gap(entity, SequenceNumber::FIRST, before);
                if before < start {
                    packer.gap(entity, before, start);
                }
            }
            packer.reserve(write::HEARTBEAT_BATCH_LEN);
            drop(reader);
            self.push_heartbeat(form, &heartbeat, outbox);
            if !is_withheld {
                self.transmit_fragment_heartbeat(now, heartbeat.reader, outbox);
            }
        }
        false
    }
}
