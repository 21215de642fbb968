//! What a writer sends: new samples, repairs, heartbeats.

use super::Writer;
use super::charges::kernel_cost;
use super::pack::{OUTBOX_MAX_DATAGRAMS, Packer, Pair};
use super::reader_proxy::Owed;
use super::repair::Repair;
use super::route::Route;
use super::sharing::Shared;
use super::transmission::{Charge, Place, Progress, Transmission};
use crate::history::WriterHistory;
use crate::outbox::Outbox;
use crate::time::Instant;
use crate::trace::{self, Mark};
use crate::types::{EntityId, Guid, SequenceNumber};
use crate::wire::write;

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
        self.transmit_within(now, u64::MAX, outbox)
    }

    /// As [`Writer::poll_transmit`], until [`Outbox::cost`] would exceed `allowance`.
    pub(super) fn transmit_within(&mut self, now: Instant, allowance: u64, outbox: &mut Outbox) -> bool {
        // Where the path allows only so much, what was lost goes first: what is new would leave nothing for it.
        let repairs_first = self.flow.paced;
        let first_repairs = repairs_first && self.transmit_repairs(now, allowance, outbox);
        outbox.finish();
        let more_new = self.transmit_new(now, allowance, outbox);
        let more_repairs = first_repairs || !repairs_first && self.transmit_repairs(now, allowance, outbox);
        let more_control = self.transmit_control(now, outbox);
        more_new || more_repairs || more_control
    }

    /// HEARTBEATs that are due. True when there are more than the outbox can take.
    pub(super) fn transmit_control(&mut self, now: Instant, outbox: &mut Outbox) -> bool {
        // Here, since nobody asks a flow controller for tokens for it.
        self.pass_over_unaddressed();
        let more = self.transmit_owed_heartbeats(now, outbox);
        self.transmit_wanted_heartbeat(now, outbox);
        self.transmit_assertion(outbox);
        outbox.finish();
        more
    }

    pub(super) fn transmit_new(&mut self, now: Instant, allowance: u64, outbox: &mut Outbox) -> bool {
        let last = self.history.last();
        if self.outgoing.place.sample > last {
            return false;
        }
        if self.route.destinations().is_empty() || self.collection.holds(now) {
            return false;
        }
        if self.flow.continue_pause(now) {
            self.collection.mark_blocked();
            return false;
        }
        let awaited = self.is_awaiting();
        self.flow.bound_for_cache(self.cache_window());
        if !self.take_grant(now) {
            self.collection.mark_blocked();
            return false;
        }
        if awaited && self.first_owed() <= self.outgoing.place.sample && self.waits_for_a_full_datagram() {
            if self.flow.has_unasked() {
                self.request_acknowledgement(now);
            }
            return false;
        }
        self.history.seal();
        let start = self.outgoing.place;
        let transmitted_before = self.counters.transmitted;
        let charged_before = self.flow.sent();
        let datagrams_before = outbox.len();
        let mut progress = None;
        for form in [Form::Batch, Form::Plain] {
            if self.route.destinations_in(form).is_empty() {
                continue;
            }
            match progress {
                None => {
                    let first = self.transmit_first(now, form, awaited, allowance, outbox);
                    let waits = first == Progress::WindowClosed && self.outgoing.place.fragment == 0;
                    // Less than a quarter of the window may keep a large sample waiting.
                    if waits && awaited && self.flow.has_unasked() && !self.parts_are_acknowledged() {
                        self.request_acknowledgement(now);
                    }
                    progress = Some(first);
                    let transmitted = self.counters.transmitted - transmitted_before;
                    self.counters.left_to_repairs += transmitted * self.route.spared() as u64;
                }
                // The others get exactly the same; the window has admitted it already.
                Some(_) => self.transmit_again(form, start, outbox),
            }
            self.after_burst(now, form, outbox, awaited);
        }
        trace::pass(|| Mark::Packed { writer: self.guid, first: start.sample, end: self.outgoing.place.end() });
        self.history.sent_up_to(self.outgoing.place.sample);
        // Where nobody acknowledges parts of a sample nothing holds up the rest of one: half of one is of no use to anybody.
        let begun = self.outgoing.place.fragment > 0 && !self.parts_are_acknowledged();
        self.history.keep_begun(begun.then_some(self.outgoing.place.sample));
        self.charge_paths(now, self.flow.sent() - charged_before);
        self.note_unsent(self.flow.sent() - charged_before);
        self.counters.datagrams += (outbox.len() + usize::from(outbox.open_len() > 0) - datagrams_before) as u64;
        if self.first_owed() > start.sample {
            let is_news = self.release_acknowledged();
            self.room.note_news(is_news);
        }
        match self.outgoing.place.sample > last {
            true => self.collection.clear(),
            false => self.collection.mark_blocked(),
        }
        matches!(progress, Some(Progress::OutboxFull))
    }

    /// Counts everything as sent where that goes to no address: nobody is there to get it.
    fn pass_over_unaddressed(&mut self) {
        let last = self.history.last();
        if self.outgoing.place.sample > last || !self.route.destinations().is_empty() {
            return;
        }
        self.pass_over(last.next());
        let is_news = self.release_acknowledged();
        self.room.note_news(is_news);
    }

    /// A reader has left. Counts as sent what nobody is owed any more: those that stay have come since it was written.
    pub(super) fn pass_over_unowed(&mut self) {
        let next = self.history.last().next();
        let together = self.readers.summary();
        let owed = match together.reliable {
            Some(acknowledged) if together.unacknowledged_buffer.is_none() => acknowledged.next().min(next),
            None if self.readers.is_empty() => next,
            _ => return,
        };
        self.pass_over_up_to(owed);
    }

    /// A reader was given up. Counts as sent what nobody else is owed: a link that carries nothing would be flooded with it, and no answer
    /// would slow that down.
    pub(super) fn pass_over_forgone(&mut self) {
        let next = self.history.last().next();
        let together = self.readers.summary();
        if together.unacknowledged_buffer.is_none() {
            self.pass_over_up_to(together.awaited().map_or(next, |acknowledged| acknowledged.next().min(next)));
        }
    }

    fn pass_over_up_to(&mut self, owed: SequenceNumber) {
        if owed > self.outgoing.place.sample {
            self.pass_over(owed);
        }
    }

    fn pass_over(&mut self, next: SequenceNumber) {
        self.history.seal();
        self.outgoing.place = Place::before(next);
        self.history.sent_up_to(next);
        if next > self.history.last() {
            self.collection.clear();
        }
        self.forget_sent();
    }

    /// The first sample that a reader that is waited for has not acknowledged. What was not sent below it concerns readers that do
    /// not acknowledge: the others have come since it was written.
    pub(super) fn first_owed(&self) -> SequenceNumber {
        self.readers.summary().awaited().map_or(SequenceNumber(i64::MAX), SequenceNumber::next)
    }

    /// While the window is closed to what was collected, it goes on being collected: opening by and by, the window would else
    /// let out one small datagram after the other.
    pub(super) fn waits_for_a_full_datagram(&self) -> bool {
        let bytes = (self.collection.bytes() + write::HEADER_LEN).min(self.route.datagram_bytes());
        self.collection.was_blocked() && self.outgoing.place.fragment == 0 && !self.flow.admits(kernel_cost(bytes))
    }

    /// Whether somebody is waited for, and all who are acknowledge fragments.
    fn parts_are_acknowledged(&self) -> bool {
        self.is_awaiting() && !self.readers.summary().any.whole_only
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
        let partial = self.parts_are_acknowledged();
        let first_owed = self.first_owed();
        let mut packer = packer_to(&self.route, form, self.guid, outbox)
            .within(allowance)
            .marking(&self.coherent, self.related.as_deref());
        let mut transmission = Transmission {
            pair: Pair { writer: self.guid.entity, reader: self.route.reader() },
            form,
            conflates: self.collection.was_blocked(),
            route: &self.route,
            flow: &mut self.flow,
            counters: &mut self.counters,
            scratch: &mut self.outgoing.scratch,
            batched: &mut self.outgoing.batched,
            record: Some((&mut self.outgoing.sent_large, &mut self.outgoing.never_sent)),
            charge: if awaited { Charge::Nothing } else { Charge::Unacknowledged },
            period: self.collection.write_interval(),
        };
        let (history, place) = (&mut self.history, &mut self.outgoing.place);
        let progress = run_until(now, &mut transmission, history, &mut packer, place, first_owed);
        if progress != Progress::Complete || place.sample < first_owed {
            return progress;
        }
        transmission.charge = match partial {
            false => Charge::Samples,
            true => Charge::Fragments(&mut self.heartbeat),
        };
        run_until(now, &mut transmission, history, &mut packer, place, SequenceNumber(i64::MAX))
    }

    /// The same samples in another form for readers that need it.
    fn transmit_again(&mut self, form: Form, start: Place, outbox: &mut Outbox) {
        let mut packer = packer_to(&self.route, form, self.guid, outbox)
            .without_limit()
            .marking(&self.coherent, self.related.as_deref());
        let mut transmission = Transmission {
            pair: Pair { writer: self.guid.entity, reader: self.route.reader() },
            form,
            conflates: self.collection.was_blocked(),
            route: &self.route,
            flow: &mut self.flow,
            counters: &mut self.counters,
            scratch: &mut self.outgoing.scratch,
            batched: &mut self.outgoing.batched,
            record: None,
            charge: Charge::Nothing,
            period: None,
        };
        let mut place = start;
        transmission.run(Instant::ZERO, &self.history, &mut packer, &mut place, self.outgoing.place);
    }

    pub(super) fn transmit_repairs(&mut self, now: Instant, allowance: u64, outbox: &mut Outbox) -> bool {
        self.flow.repairs_due = None;
        let mut next = 0;
        while let Some(place) = self.readers.next_with(next, |any| any.repairs) {
            next = place + 1;
            if let Some(until) = self.readers.at(place).repairs.paused_until.filter(|until| now < *until) {
                self.flow.note_repairs_due(until);
                continue;
            }
            if outbox.len() >= OUTBOX_MAX_DATAGRAMS {
                return true;
            }
            let shared_from = self.readers.shared_from(place).unwrap_or(SequenceNumber(i64::MAX));
            let mut changed = self.readers.at_mut(place);
            let reader = &mut *changed;
            let burst = self.flow.repair_burst(reader.matched.receive_buffer_bytes);
            let budget = reader.repair_budget(now, burst);
            let forgotten = self.history.first().min(self.outgoing.place.sample).previous();
            let hangs_on_gap = reader.matched.vendor.traits().hangs_on_gap_of_begun_sample;
            let gone = if hangs_on_gap { forgotten } else { SequenceNumber::ZERO };
            let mut repair = Repair {
                history: &self.history,
                place: self.outgoing.place,
                start: reader.start,
                forsaken: reader.forsaken,
                gone,
                limit: reader.repair_bytes,
                batches: reader.matched.batches,
                scratch: &mut self.outgoing.scratch,
                counters: &mut self.counters,
                pair: Pair { writer: self.guid.entity, reader: reader.matched.guid.entity },
                suppression: reader.suppression(),
                budget,
                spent: 0,
                shared: Shared::from(shared_from),
            };
            outbox.finish();
            let mut packer = Packer::directed(outbox, self.guid, &reader.matched)
                .within(allowance)
                .marking(&self.coherent, self.related.as_deref());
            repair.serve(now, &mut packer, &mut reader.repairs);
            let (spent, is_spent) = (repair.spent, repair.is_spent());
            let shared = repair.shared;
            let asks = reader.note_repaired(now, spent, is_spent);
            let paused_until = reader.repairs.paused_until;
            if let Some(until) = paused_until {
                self.flow.note_repairs_due(until);
            }
            let is_outbox_full = paused_until.is_none() && !reader.repairs.is_empty();
            if !is_outbox_full && outbox.open_len() == 0 && reader.acknowledged.sample < reader.forsaken.max(gone) {
                reader.owed = reader.owed.max_with(Owed::Heartbeat);
            }
            drop(changed);
            self.readers.share_repairs(now, place, &shared);
            if is_outbox_full {
                return true;
            }
            // Without anything that was asked for, a HEARTBEAT would only make the reader ask again.
            if asks && outbox.open_len() > 0 {
                self.ask_after_repair(now, place, !shared.sent.is_empty(), outbox);
            }
        }
        false
    }

    /// A HEARTBEAT behind what was sent again, for all readers of its process where some of that was `shared`.
    fn ask_after_repair(&mut self, now: Instant, place: usize, shared: bool, outbox: &mut Outbox) {
        self.readers.at_mut(place).note_asked(now);
        if shared {
            self.readers.note_asked_beside(now, place);
        }
        let entity = self.readers.at(place).matched.guid.entity;
        let heartbeat = self.next_heartbeat(now, if shared { EntityId::UNKNOWN } else { entity });
        let matched = &self.readers.at(place).matched;
        let form = if matched.batches { Form::Batch } else { Form::Plain };
        let mut packer = Packer::directed(outbox, self.guid, matched).resume();
        packer.reserve_heartbeat();
        self.push_heartbeat(form, &heartbeat, outbox);
    }
}

/// Sends samples below `end`, cut for the paths that there are now.
fn run_until(
    now: Instant,
    transmission: &mut Transmission<'_>,
    history: &mut WriterHistory,
    packer: &mut Packer<'_>,
    place: &mut Place,
    end: SequenceNumber,
) -> Progress {
    loop {
        match transmission.run(now, history, packer, place, Place::before(end)) {
            // Readers with a narrower path have come since it was written.
            Progress::TooWide { sample, fitting } => history.set_fragment_bytes(sample, fitting),
            progress => return progress,
        }
    }
}

pub(super) fn packer_to<'a>(route: &'a Route, form: Form, source: Guid, outbox: &'a mut Outbox) -> Packer<'a> {
    Packer::new(outbox, source, route.destinations_in(form), None, route.datagram_bytes())
}
