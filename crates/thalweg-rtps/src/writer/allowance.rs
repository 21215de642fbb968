//! Sending within the tokens that a flow controller grants.

use std::collections::VecDeque;

use super::Writer;
use super::charges::kernel_cost;
use super::pack::{SAMPLE_OVERHEAD_BYTES, batch_bytes, fragment_datagram_bytes, fragments_of, sample_bytes};
use super::repair::cut_of;
use super::route::collected_fragment_bytes;
use crate::history::HeldSample;
use crate::outbox::Outbox;
use crate::qos::Method;
use crate::time::Instant;
use crate::types::SequenceNumber;
use crate::wire::write;

/// What waits to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backlog {
    /// Bytes that the next datagram costs at most: its size times its destinations.
    pub next_cost: u64,
    /// When the oldest sample that waits was written.
    pub since: Instant,
}

/// What a transmission cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Paid {
    /// Bytes of all datagrams, each counted once for each destination.
    pub spent: u64,
    /// More is waiting, for tokens or for another call.
    pub more: bool,
    /// HEARTBEATs wait for another call.
    pub more_control: bool,
}

/// What only asynchronous writers keep.
#[derive(Debug)]
pub(super) struct Asynchronous {
    /// Samples that were not sent completely, with when they were written; those that KEEP_LAST overwrote go now and then.
    written: VecDeque<(SequenceNumber, Instant)>,
    /// Who goes first when new samples and repairs both wait: they take turns, so that neither starves the other.
    repairs_first: bool,
}

/// Entries for samples that are gone which are tolerated beside twice those that are held.
const WRITTEN_SPARE: usize = 64;

impl Asynchronous {
    pub(super) fn of(method: &Method) -> Option<Asynchronous> {
        let is_asynchronous = matches!(method, Method::Asynchronous { .. });
        is_asynchronous.then(|| Asynchronous { written: VecDeque::new(), repairs_first: true })
    }

    /// How many samples wait, those that KEEP_LAST has overwritten lately included.
    pub(super) fn written(&self) -> usize {
        self.written.len()
    }
}

impl Writer {
    /// Notes when a sample was written. True when the participant must be told: nothing waited before.
    pub(super) fn note_written(&mut self, now: Instant, sequence: SequenceNumber) -> bool {
        let Some(asynchronous) = &mut self.outgoing.asynchronous else { return false };
        let written = &mut asynchronous.written;
        if written.len() >= WRITTEN_SPARE + 2 * self.history.len() {
            written.retain(|(sequence, _)| self.history.get(*sequence).is_some());
        }
        written.push_back((sequence, now));
        self.outgoing.place.sample == sequence
    }

    /// What waits to be sent, samples and repairs; `None` when nothing does, or when it waits for acknowledgements.
    pub(crate) fn backlog(&self, now: Instant) -> Option<Backlog> {
        let new = self.new_cost(now);
        let repair = self.repair_cost(now);
        let repairs_first = self.outgoing.asynchronous.as_ref().is_some_and(|state| state.repairs_first);
        let next_cost = if repairs_first { repair.or(new) } else { new.or(repair) }?;
        let oldest = self.outgoing.asynchronous.as_ref().and_then(|state| state.written.front());
        let since = oldest.map_or(now, |(_, written)| *written);
        Some(Backlog { next_cost, since })
    }

    /// Serialized bytes of the samples that were not sent completely.
    pub(crate) fn unsent_bytes(&self) -> u64 {
        let mut bytes = 0;
        let mut from = self.outgoing.place.sample;
        while let Some(sample) = self.history.next_from(from) {
            bytes += sample.len() as u64;
            from = sample.sequence.next();
        }
        bytes
    }

    /// As [`Writer::poll_transmit`], but stops before the datagram that `allowance` bytes do not pay for. HEARTBEATs and GAPs
    /// are free: they are few, and without them nothing would be acknowledged.
    pub(crate) fn poll_transmit_within(&mut self, now: Instant, allowance: u64, outbox: &mut Outbox) -> Paid {
        outbox.finish();
        if allowance == 0 {
            self.ask_where_the_window_is_closed(now);
            let more_control = self.transmit_control(now, outbox);
            let more = match self.collection.is_asynchronous() {
                true => self.backlog(now).is_some(),
                // Also what the send window is closed to: the attempt finds that out and stops asking for a timer.
                false => self.has_output(now),
            };
            return Paid { spent: 0, more, more_control };
        }
        let start = outbox.cost();
        let limit = start.saturating_add(allowance);
        let repairs_first = self.outgoing.asynchronous.as_ref().is_some_and(|state| state.repairs_first);
        let first_cost = if repairs_first { self.repair_cost(now) } else { self.new_cost(now) }.unwrap_or(0);
        let share = (allowance / 2).max(first_cost).min(allowance);
        let turns = [(repairs_first, start.saturating_add(share)), (!repairs_first, limit), (repairs_first, limit)];
        for (repairs, limit) in turns {
            match repairs {
                true => self.transmit_repairs(now, limit, outbox),
                false => self.transmit_new(now, limit, outbox),
            };
            outbox.finish();
        }
        let spent = outbox.cost() - start;
        self.ask_where_the_window_is_closed(now);
        let more_control = self.transmit_control(now, outbox);
        self.forget_sent();
        if let Some(asynchronous) = &mut self.outgoing.asynchronous {
            asynchronous.repairs_first ^= spent > 0;
        }
        Paid { spent, more: self.backlog(now).is_some(), more_control }
    }

    /// What was sent completely, or passed over, waits no longer.
    pub(super) fn forget_sent(&mut self) {
        let unsent = self.outgoing.place.sample;
        let Some(asynchronous) = &mut self.outgoing.asynchronous else { return };
        while asynchronous.written.front().is_some_and(|(sequence, _)| *sequence < unsent) {
            asynchronous.written.pop_front();
        }
    }

    /// True when samples or repairs do not wait for company.
    fn has_output(&self, now: Instant) -> bool {
        let new = self.outgoing.place.sample <= self.history.last() && !self.collection.holds(now);
        new || self.next_repair(now).is_some()
    }

    /// The place of a reader for which something is to be sent again now.
    fn next_repair(&self, now: Instant) -> Option<usize> {
        let mut place = self.readers.next_with(0, |any| any.repairs)?;
        while !self.readers.at(place).repairs.are_due(now) {
            place = self.readers.next_with(place + 1, |any| any.repairs)?;
        }
        Some(place)
    }

    /// What the next datagram with new samples costs at most; `None` where none would leave, whatever the tokens: other writers would wait
    /// for a turn that this one does not use.
    fn new_cost(&self, now: Instant) -> Option<u64> {
        let destinations = self.route.destinations().len() as u64;
        let place = self.outgoing.place;
        let is_owed = self.first_owed() <= place.sample;
        let is_paused = self.flow.paused_until().is_some_and(|until| now < until);
        if destinations == 0 || is_paused || is_owed && self.waits_for_a_full_datagram() {
            return None;
        }
        let begun = (place.fragment > 0).then(|| self.history.get_begun(place.sample)).flatten();
        let Some(sample) = begun.or_else(|| self.history.next_from(place.sample)) else {
            // All that waited has expired: its readers wait to be told.
            let tells = place.sample <= self.history.last();
            return tells.then_some(write::HEADER_LEN as u64 * destinations);
        };
        if place.fragment > 0 && sample.sequence > place.sample {
            // The rest of a sample that was overwritten meanwhile: its readers wait to be told, and the window for their answer.
            return Some(write::HEADER_LEN as u64 * destinations);
        }
        let narrower = self.route.narrower_fragment_bytes(sample.len(), sample.fragment_bytes);
        let cut = match sample.encapsulation {
            Some(_) => narrower.map(|_| collected_fragment_bytes()),
            None => narrower.filter(|_| place.fragment == 0).or(sample.fragment_bytes),
        };
        let (bytes, needed) = match cut {
            Some(fragment_bytes) => {
                let bytes = fragment_datagram_bytes(&sample, fragment_bytes);
                // Where parts of a sample are not acknowledged the window admits all of it, or not even the first.
                let fragments = match (self.readers.summary().any.whole_only, place.fragment) {
                    (false, _) => Some(1),
                    (true, 0) => Some(fragments_of(&sample, fragment_bytes)),
                    (true, _) => None,
                };
                (bytes, fragments.map(|fragments| kernel_cost(bytes) * u64::from(fragments)))
            }
            None => {
                let bytes = self.packed_bytes(&sample);
                (bytes, Some(kernel_cost(bytes + write::HEADER_LEN)))
            }
        };
        if is_owed && needed.is_some_and(|needed| !self.flow.admits(needed)) {
            return None;
        }
        Some((bytes + write::HEADER_LEN + write::INFO_DST_LEN) as u64 * destinations)
    }

    /// The send window is closed to what is next: where no answer is on its way that could open it, one is asked for.
    fn ask_where_the_window_is_closed(&mut self, now: Instant) {
        let place = self.outgoing.place;
        let is_owed = place.sample <= self.history.last() && place.fragment == 0 && self.first_owed() <= place.sample;
        let is_paused = self.flow.paused_until().is_some_and(|until| now < until);
        if !self.collection.is_asynchronous() || !is_owed || is_paused || self.new_cost(now).is_some() {
            return;
        }
        self.collection.mark_blocked();
        if self.flow.has_unasked() {
            self.request_acknowledgement(now);
        }
    }

    /// Bytes of the samples from `first` on that share a datagram.
    fn packed_bytes(&self, first: &HeldSample<'_>) -> usize {
        let room = self.route.datagram_bytes() - write::HEADER_LEN - write::INFO_DST_LEN - write::HEARTBEAT_BATCH_LEN;
        if let Some(at) = self.history.frame_with(first.sequence) {
            let one_by_one = at.frame.bodies().len() + at.frame.len() * SAMPLE_OVERHEAD_BYTES;
            return batch_bytes(at.frame).max(one_by_one).min(room);
        }
        let mut bytes = sample_bytes(first);
        let mut next = self.history.next_from(first.sequence.next());
        while let Some(sample) = next
            && sample.fragment_bytes.is_none()
            && bytes + sample_bytes(&sample) <= room
        {
            bytes += sample_bytes(&sample);
            next = self.history.next_from(sample.sequence.next());
        }
        bytes
    }

    /// Bytes of what answers a request for a sample that is gone: a GAP, and the next sample of the same pack.
    fn gap_cost(&self, gone: SequenceNumber) -> usize {
        let pack = self.history.pack_of(gone);
        let next = self.history.next_from(gone).filter(|next| self.history.pack_of(next.sequence) == pack);
        write::GAP_MIN_LEN + next.map_or(0, |next| sample_bytes(&next))
    }

    /// What the next datagram with a repair costs at most: a sample that is asked for as a whole may have to wait until fragments of
    /// others were sent.
    fn repair_cost(&self, now: Instant) -> Option<u64> {
        let reader = self.readers.at(self.next_repair(now)?);
        let whole = reader.repairs.first_whole(|pack| self.history.pack(pack).0).map(|first| {
            // A GAP that has used up what the rest of its pack costs would be repeated for ever.
            let Some(sample) = self.history.get(first) else { return self.gap_cost(first) };
            match cut_of(&sample, reader.repair_bytes, self.outgoing.place) {
                Some(cut) => fragment_datagram_bytes(&sample, cut.fragment_bytes),
                None => {
                    self.history.frame_with(first).map_or_else(|| sample_bytes(&sample), |at| batch_bytes(at.frame))
                }
            }
        });
        let large = reader.repairs.first_large().map(|large| match self.history.get(large.sequence) {
            Some(sample) => fragment_datagram_bytes(&sample, large.cut.fragment_bytes),
            None => self.gap_cost(large.sequence),
        });
        let bytes = whole.max(large)?;
        Some((bytes + write::HEADER_LEN + write::INFO_DST_LEN) as u64)
    }
}
