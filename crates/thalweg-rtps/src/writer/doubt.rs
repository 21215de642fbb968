//! Implausible answers: those about samples that the reader was never sent.

use super::reader_proxy::{Owed, ReaderProxy};
use super::repair::cut_of;
use super::route::fragment_bytes_in;
use super::{GROUP_ROOM_BYTES, Writer};
use crate::time::Instant;
use crate::types::{DATAGRAM_MIN_BYTES, Guid, SequenceNumber};
use crate::wire::NackFrag;

impl Writer {
    /// The first number that `reader` cannot acknowledge: it was not sent, and the reader was not told to begin behind it.
    fn beyond(&self, reader: &ReaderProxy) -> SequenceNumber {
        self.outgoing.place.sample.max(reader.start)
    }

    /// False, and counted, for an acknowledgement of samples that were not sent yet. A forged one would make the writer drop samples that
    /// no reader has.
    pub(super) fn believes_base(&mut self, reader: Guid, base: SequenceNumber) -> bool {
        let Some(proxy) = self.readers.get(reader) else { return false };
        let believed = base <= self.beyond(proxy);
        self.counters.implausible += u64::from(!believed);
        believed
    }

    /// Tells a reader that is beyond what was sent where the writer is: somebody has told it otherwise on first contact, and it would
    /// hear nothing that corrects it.
    pub(super) fn put_right(&mut self, now: Instant, reader: Guid) {
        let Some(mut proxy) = self.readers.get_mut(reader) else { return };
        if proxy.matched.reliable && proxy.is_to_be_put_right(now) {
            proxy.owed = proxy.owed.max_with(Owed::Heartbeat);
        }
    }

    /// As [`Writer::believes_base`] for an answer in batches.
    pub(super) fn believes_pack(&mut self, base: SequenceNumber) -> bool {
        let believed = base <= self.history.pack_of(self.outgoing.place.sample);
        self.counters.implausible += u64::from(!believed);
        believed
    }

    /// False, and counted, for a request for fragments of a sample that was never begun, or that has not so many.
    pub(super) fn believes_fragments(&mut self, reader: Guid, nack: &NackFrag) -> bool {
        let Some(proxy) = self.readers.get(reader) else { return false };
        let was_begun = (SequenceNumber::FIRST..=self.outgoing.place.sample).contains(&nack.sequence);
        // A path may have been narrower for a while, and the fragments smaller.
        let narrowest = DATAGRAM_MIN_BYTES - if self.coherent.is_grouped() { GROUP_ROOM_BYTES } else { 0 };
        let most = |bytes: usize| bytes.div_ceil(usize::from(fragment_bytes_in(narrowest)));
        let held = self.history.get(nack.sequence);
        let exists = held.is_none_or(|sample| {
            let is_cut = cut_of(&sample, proxy.repair_bytes, self.outgoing.place).is_some();
            !is_cut || nack.state.base().saturating_sub(1) as usize <= most(sample.len())
        });
        self.counters.implausible += u64::from(!was_begun || !exists);
        was_begun && exists
    }
}

impl ReaderProxy {
    /// Whether to tell a reader that asks for what was never sent where the writer is: somebody has told it otherwise, and it would ask
    /// for ever. No more often than it could need.
    pub(super) fn is_to_be_put_right(&self, now: Instant) -> bool {
        let pause = self.asking.least.max(self.round_trip.estimate());
        self.matched.vendor.traits().asks_for_announced_only && now.since(self.asking.at) >= pause
    }
}
