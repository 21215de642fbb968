//! What a writer sends: new samples, repairs, heartbeats.

use super::Writer;
use super::WriterCounters;
use super::flow::{Flow, Position, kernel_cost};
use super::pack::{
    OUTBOX_MAX_DATAGRAMS, Packer, fragment_datagram_bytes, fragments_of, push_fragment, push_sample, sample_bytes,
};
use super::reader_proxy::{Owed, ReaderProxy};
use super::repair::Repair;
use crate::history::Change;
use crate::outbox::Outbox;
use crate::time::Instant;
use crate::types::{EntityId, SequenceNumber, VendorId};
use crate::wire::write;
use crate::wire::{Heartbeat, HeartbeatFrag};

impl Writer {
    /// Fills `outbox` with what is to be sent now. True when more is waiting: send, clear and call again.
    pub fn poll_transmit(&mut self, now: Instant, outbox: &mut Outbox) -> bool {
        let (more_new, _) = self.transmit_new(now, u64::MAX, outbox);
        let (more_repairs, _) = self.transmit_repairs(now, u64::MAX, outbox);
        self.transmit_control(now, outbox);
        more_new || more_repairs
    }

    /// HEARTBEATs that are due.
    pub(super) fn transmit_control(&mut self, now: Instant, outbox: &mut Outbox) {
        self.transmit_owed_heartbeats(now, outbox);
        self.transmit_wanted_heartbeat(now, outbox);
        outbox.finish();
    }

    /// Returns whether more is waiting, and what is left of the allowance.
    pub(super) fn transmit_new(&mut self, now: Instant, allowance: u64, outbox: &mut Outbox) -> (bool, u64) {
        let last = self.history.last();
        if self.outgoing.next_unsent > last {
            return (false, allowance);
        }
        if self.route.destinations().is_empty() {
            self.outgoing.next_unsent = last.next();
            return (false, allowance);
        }
        if self.flow.is_paused(now) {
            return (false, allowance);
        }
        let awaited = self.readers.iter().any(ReaderProxy::is_awaited);
        let partial_acknowledgements = self
            .readers
            .iter()
            .filter(|reader| reader.is_awaited())
            .all(|reader| reader.matched.vendor == VendorId::THALWEG);
        let mut packer = Packer::new(outbox, self.guid, self.route.destinations(), None, self.route.datagram_bytes())
            .within(allowance);
        let mut transmission = Transmission {
            writer: self.guid.entity,
            reader: self.route.reader(),
            flow: &mut self.flow,
            counters: &mut self.counters,
            scratch: &mut self.outgoing.scratch,
            fragment_heartbeats: (awaited && partial_acknowledgements).then_some(&mut self.heartbeat.fragment_count),
            awaited,
        };
        let mut more = false;
        while self.outgoing.next_unsent <= last {
            if packer.is_full() {
                more = true;
                break;
            }
            let next_unsent = self.outgoing.next_unsent;
            let change = self.history.next_from(next_unsent);
            let held = change.map_or(last.next(), |change| change.sequence);
            if held > next_unsent {
                packer.gap(transmission.reader, next_unsent, held);
                self.outgoing.next_unsent = held;
                self.outgoing.next_fragment = 0;
            }
            let Some(change) = change else { break };
            if self.outgoing.next_fragment == 0
                && let Some(fitting) = self.route.narrower_fragment_bytes(change)
            {
                self.history.set_fragment_bytes(held, fitting);
                continue;
            }
            let complete = match change.fragment_bytes {
                None => transmission.sample(&mut packer, change),
                Some(fragment_bytes) => {
                    transmission.fragments(now, &mut packer, change, fragment_bytes, &mut self.outgoing.next_fragment)
                }
            };
            match complete {
                Progress::Complete => {
                    self.outgoing.next_unsent = change.sequence.next();
                    self.outgoing.next_fragment = 0;
                }
                Progress::OutboxFull => {
                    more = true;
                    break;
                }
                Progress::WindowClosed => break,
            }
        }
        let left = packer.allowance;
        self.after_burst(now, outbox, awaited);
        (more, left)
    }

    /// Asks for an acknowledgement on the burst's last datagram where one is due; drops what nobody will ask for.
    fn after_burst(&mut self, now: Instant, outbox: &mut Outbox, awaited: bool) {
        if !awaited {
            self.history.acknowledged(self.outgoing.next_unsent.previous());
            return;
        }
        let sent = self.outgoing.next_unsent.previous();
        let samples_since = sent - self.heartbeat.asked_for;
        let due = self.heartbeat.wanted
            || self.flow.wants_acknowledgement()
            || samples_since >= self.capacity.ask_every
            || self.heartbeat.due.is_some_and(|due| due <= now);
        if due && outbox.open_len() > 0 {
            let heartbeat = self.next_heartbeat_to_all(now);
            write::heartbeat(outbox.buffer(), &heartbeat);
        }
    }

    /// A HEARTBEAT of what was sent so far for every reader.
    fn next_heartbeat_to_all(&mut self, now: Instant) -> Heartbeat {
        self.heartbeat.asked_for = self.outgoing.next_unsent.previous();
        self.heartbeat.wanted = false;
        self.heartbeat.all_asked = Some(now);
        self.next_heartbeat(now, self.route.reader())
    }

    /// A HEARTBEAT of what was sent so far for one reader, or for all that the datagram reaches.
    fn next_heartbeat(&mut self, now: Instant, reader: EntityId) -> Heartbeat {
        let last = self.outgoing.next_unsent.previous();
        if self.outgoing.next_fragment == 0 {
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
        if self.route.destinations().is_empty() || !self.readers.iter().any(ReaderProxy::is_awaited) {
            return;
        }
        let heartbeat = self.next_heartbeat_to_all(now);
        let mut packer = Packer::new(outbox, self.guid, self.route.destinations(), None, self.route.datagram_bytes());
        packer.reserve(write::HEARTBEAT_LEN);
        write::heartbeat(packer.outbox.buffer(), &heartbeat);
        self.transmit_fragment_heartbeat(self.route.reader(), outbox);
    }

    /// Within a large sample the readers are also asked for the fragments sent so far.
    fn transmit_fragment_heartbeat(&mut self, reader: EntityId, outbox: &mut Outbox) {
        if self.outgoing.next_fragment == 0 {
            return;
        }
        self.heartbeat.fragment_count = self.heartbeat.fragment_count.wrapping_add(1);
        let heartbeat = HeartbeatFrag {
            reader,
            writer: self.guid.entity,
            sequence: self.outgoing.next_unsent,
            last_fragment: self.outgoing.next_fragment,
            count: self.heartbeat.fragment_count,
        };
        self.flow.record_request(Position {
            sample: self.outgoing.next_unsent.previous(),
            fragments: self.outgoing.next_fragment,
        });
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
            let mut packer = Packer::directed(outbox, self.guid, &reader.matched);
            if reader.owed == Owed::Greeting && reader.start > SequenceNumber::FIRST {
                packer.gap(reader.matched.guid.entity, SequenceNumber::FIRST, reader.start);
            }
            packer.reserve(write::HEARTBEAT_LEN);
            write::heartbeat(packer.outbox.buffer(), &heartbeat);
            reader.owed = Owed::Nothing;
            self.transmit_fragment_heartbeat(heartbeat.reader, outbox);
        }
    }

    /// Returns whether more is waiting, and what is left of the allowance.
    pub(super) fn transmit_repairs(&mut self, now: Instant, mut allowance: u64, outbox: &mut Outbox) -> (bool, u64) {
        for index in 0..self.readers.len() {
            if self.readers[index].repairs.is_empty() {
                continue;
            }
            if outbox.len() >= OUTBOX_MAX_DATAGRAMS {
                return (true, allowance);
            }
            let reader = &mut self.readers[index];
            let limit = reader.matched.datagram_bytes;
            let mut repair = Repair {
                history: &self.history,
                next_unsent: self.outgoing.next_unsent,
                next_fragment: self.outgoing.next_fragment,
                start: reader.start,
                limit,
                scratch: &mut self.outgoing.scratch,
                counters: &mut self.counters,
                writer: self.guid.entity,
                reader: reader.matched.guid.entity,
            };
            outbox.finish();
            let mut packer = Packer::directed(outbox, self.guid, &reader.matched).within(allowance);
            let repairs = &mut reader.repairs;
            if let Some(done) = repair.fragments(&mut packer, &mut repairs.fragments) {
                repairs.record_fragments(now, done.0, done.1);
            }
            if let Some(wanted) = repairs.samples.take() {
                let (done, left) = repair.samples(&mut packer, wanted, &mut repairs.next_fragment);
                repairs.record_samples(now, done);
                repairs.samples = left;
            }
            allowance = packer.allowance;
            if !repairs.is_empty() {
                return (true, allowance);
            }
            if outbox.open_len() == 0 {
                continue; // Nothing of what was asked for exists: a HEARTBEAT would only make the reader ask again.
            }
            reader.owed = Owed::Nothing;
            let heartbeat = self.next_heartbeat(now, self.readers[index].matched.guid.entity);
            let mut packer = Packer::directed(outbox, self.guid, &self.readers[index].matched).resume();
            packer.reserve(write::HEARTBEAT_LEN);
            write::heartbeat(packer.outbox.buffer(), &heartbeat);
        }
        (false, allowance)
    }
}

enum Progress {
    Complete,
    OutboxFull,
    WindowClosed,
}

/// First transmission of samples to all readers.
struct Transmission<'a> {
    writer: EntityId,
    reader: EntityId,
    flow: &'a mut Flow,
    counters: &'a mut WriterCounters,
    scratch: &'a mut Vec<u8>,
    /// Counter of HEARTBEAT_FRAGs where every reader acknowledges parts of a sample.
    fragment_heartbeats: Option<&'a mut u32>,
    awaited: bool,
}

impl Transmission<'_> {
    fn sample(&mut self, packer: &mut Packer<'_>, change: &Change) -> Progress {
        let bytes = sample_bytes(change);
        let cost = packer.cost_of(bytes);
        if self.awaited && !self.flow.admits(cost) {
            return Progress::WindowClosed;
        }
        if !packer.pay(bytes) {
            return Progress::OutboxFull;
        }
        push_sample(packer, self.scratch, self.writer, self.reader, change);
        self.flow.record_sent(cost);
        self.counters.transmitted += 1;
        Progress::Complete
    }

    fn fragments(
        &mut self,
        now: Instant,
        packer: &mut Packer<'_>,
        change: &Change,
        fragment_bytes: u16,
        next_fragment: &mut u32,
    ) -> Progress {
        let total = fragments_of(change, fragment_bytes);
        if *next_fragment == 0 {
            self.flow.start_burst();
        }
        while *next_fragment < total {
            if packer.is_full() {
                return Progress::OutboxFull;
            }
            let cost = kernel_cost(usize::from(fragment_bytes) + 100);
            if self.fragment_heartbeats.is_some() {
                if !self.flow.admits(cost) {
                    return Progress::WindowClosed;
                }
            } else if self.awaited && self.flow.pause_after_burst(now) {
                return Progress::WindowClosed;
            }
            if !packer.pay(fragment_datagram_bytes(change, fragment_bytes)) {
                return Progress::OutboxFull;
            }
            push_fragment(packer, self.scratch, self.writer, self.reader, change, fragment_bytes, *next_fragment);
            self.flow.record_sent(cost);
            self.counters.transmitted += 1;
            *next_fragment += 1;
            self.ask_for_fragments(packer, change.sequence, *next_fragment, total);
        }
        Progress::Complete
    }

    /// Asks for progress within a large sample after each quarter of the window.
    fn ask_for_fragments(&mut self, packer: &mut Packer<'_>, sequence: SequenceNumber, sent: u32, total: u32) {
        let Some(count) = self.fragment_heartbeats.as_deref_mut() else { return };
        if sent == total || !self.flow.wants_acknowledgement() {
            return;
        }
        self.flow.record_request(Position { sample: sequence.previous(), fragments: sent });
        *count = count.wrapping_add(1);
        let heartbeat =
            HeartbeatFrag { reader: self.reader, writer: self.writer, sequence, last_fragment: sent, count: *count };
        write::heartbeat_frag(packer.outbox.buffer(), &heartbeat);
    }
}
