//! Sending within the tokens that a flow controller grants.

use super::Writer;
use super::pack::{SAMPLE_OVERHEAD_BYTES, batch_bytes};
use crate::outbox::Outbox;
use crate::time::Instant;
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
}

impl Writer {
    /// What waits to be sent, samples and repairs; `None` when nothing does, or when it waits for acknowledgements.
    pub(crate) fn backlog(&self, now: Instant) -> Option<Backlog> {
        let repairs = self.readers.iter().any(|reader| !reader.repairs.is_empty());
        let new = self.outgoing.place.sample <= self.history.last()
            && !self.route.destinations().is_empty()
            && self.flow.admits(1)
            && self.flow.paused_until().is_none_or(|until| until <= now);
        if !repairs && !new {
            return None;
        }
        let next = self.history.next_from(self.outgoing.place.sample);
        let frame = self.history.frame_with(self.outgoing.place.sample);
        let bytes = match (frame, next) {
            (Some(at), _) => batch_bytes(at.frame),
            (None, Some(sample)) => SAMPLE_OVERHEAD_BYTES + sample.len(),
            (None, None) => 0,
        };
        let largest = self.route.datagram_bytes();
        let (bytes, copies) = match repairs && (self.outgoing.repairs_first || !new) {
            true => (largest, 1),
            false => {
                let copies = self.route.destinations().len();
                ((bytes + write::HEADER_LEN + write::HEARTBEAT_BATCH_LEN).min(largest), copies)
            }
        };
        Some(Backlog { next_cost: (bytes * copies) as u64, since: self.collection.since().unwrap_or(now) })
    }

    /// Serialized bytes of the samples that were not sent completely.
    pub(crate) fn unsent_bytes(&self) -> u64 {
        let mut bytes = 0;
        let mut from = self.outgoing.place.sample;
        while let Some(sample) = self.history.next_collected_from(from) {
            bytes += sample.len() as u64;
            from = sample.sequence.next();
        }
        bytes
    }

    /// As [`Writer::poll_transmit`], but stops before the datagram that `allowance` bytes do not pay for. HEARTBEATs and GAPs
    /// are free: they are few, and without them nothing would be acknowledged.
    ///
    /// Where repairs and new samples both wait they share the allowance, and take turns in who goes first: a small allowance
    /// pays for one datagram only.
    pub(crate) fn poll_transmit_within(&mut self, now: Instant, allowance: u64, outbox: &mut Outbox) -> Paid {
        outbox.finish();
        let before = outbox.cost();
        let end = before.saturating_add(allowance);
        let first_cost = self.backlog(now).map_or(0, |backlog| backlog.next_cost);
        let half = before.saturating_add((allowance / 2).max(first_cost).min(allowance));
        let mut more = false;
        if self.outgoing.repairs_first {
            self.transmit_repairs(now, half, outbox);
            outbox.finish();
            more |= self.transmit_new(now, end, outbox);
            outbox.finish();
            more |= self.transmit_repairs(now, end, outbox);
        } else {
            self.transmit_new(now, half, outbox);
            outbox.finish();
            more |= self.transmit_repairs(now, end, outbox);
            outbox.finish();
            more |= self.transmit_new(now, end, outbox);
        }
        outbox.finish();
        let spent = outbox.cost() - before;
        self.outgoing.repairs_first ^= spent > 0;
        self.transmit_control(now, outbox);
        Paid { spent, more }
    }
}
