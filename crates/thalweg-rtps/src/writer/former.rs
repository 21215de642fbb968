//! Readers that a writer had and lost, perhaps only for a while.

use std::collections::VecDeque;

use super::Writer;
use super::reader_proxy::ReaderProxy;
use crate::types::{EntityId, Guid, SequenceNumber};

/// Readers remembered of each writer; the oldest is forgotten first. A reader forgotten is taken for a new one.
const FORMER_READERS_MAX: usize = 256;

/// Ends of endpoints that discovery keeps for participants it has lost, which may be back: at most 64 KiB, and as much for each
/// participant that comes. Beyond it they go as soon as those that are there know.
const ENDS_KEPT_MAX: usize = 256;

/// How far readers had acknowledged when they were unmatched: one whose lease ended on a broken link comes back with the same GUID, and
/// goes on where it was as far as the history still reaches.
#[derive(Debug, Default)]
pub(super) struct FormerReaders {
    acknowledged: VecDeque<(Guid, SequenceNumber)>,
}

impl FormerReaders {
    /// Remembers that `reader` has everything up to `acknowledged`.
    pub(super) fn remember(&mut self, reader: Guid, acknowledged: SequenceNumber) {
        if self.acknowledged.len() == FORMER_READERS_MAX {
            self.acknowledged.pop_front();
        }
        self.acknowledged.push_back((reader, acknowledged));
    }

    /// How far `reader` had acknowledged, if it is back; it is forgotten here.
    pub(super) fn take(&mut self, reader: Guid) -> Option<SequenceNumber> {
        let index = self.acknowledged.iter().position(|(former, _)| *former == reader)?;
        self.acknowledged.remove(index).map(|(_, acknowledged)| acknowledged)
    }

    /// The number that all of them have, if there are any.
    fn known_to_all(&self) -> Option<SequenceNumber> {
        self.acknowledged.iter().map(|(_, acknowledged)| *acknowledged).min()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.acknowledged.len()
    }
}

impl Writer {
    /// Takes note that a reader that was unmatched will not come back.
    pub(crate) fn forget_former_reader(&mut self, reader: Guid) {
        if self.former.take(reader).is_some() {
            self.release_acknowledged();
        }
    }

    /// A reader is unmatched.
    pub(super) fn remember_former_reader(&mut self, reader: &ReaderProxy) {
        // Discovery's data may have arrived although nothing came back.
        if reader.matched.reliable && (reader.proven || self.announces_endpoints()) {
            self.former.remember(reader.matched.guid, reader.acknowledged.sample.max(reader.forsaken));
        }
    }

    /// Tells the history what `sent` samples every reader has. Readers of a durable writer that were given up count: they come
    /// back for news of what was deleted meanwhile. So do participants that discovery has lost, since these may hear it all
    /// the time and know its endpoints still; of those that it deletes, only the end is kept for them. `awaited` is what the
    /// readers have that the history of a volatile writer is for.
    pub(super) fn free_history(&mut self, sent: SequenceNumber, awaited: SequenceNumber) -> SequenceNumber {
        let reliable = self.readers.summary().reliable.filter(|_| self.keeps_history());
        let present = reliable.unwrap_or(awaited).min(sent);
        let waits = self.announces_endpoints() && self.history.places().departures <= ENDS_KEPT_MAX;
        let Some(away) = self.former.known_to_all().filter(|_| waits) else {
            self.history.acknowledged(present);
            return present;
        };
        self.history.acknowledged(present.min(away));
        self.history.reduce_departed(present);
        present
    }

    fn announces_endpoints(&self) -> bool {
        [EntityId::PUBLICATIONS_WRITER, EntityId::SUBSCRIPTIONS_WRITER].contains(&self.guid.entity)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::history::ChangeKind;
    use crate::payload::Payload;
    use crate::qos::{Durability, ReaderQos, WriterQos};
    use crate::time::Instant;
    use crate::types::{GuidPrefix, KeyHash, VendorId};
    use crate::writer::{MatchedReader, NewChange, WriterOptions};

    const AWAY: Guid = Guid { prefix: GuidPrefix([1; 12]), entity: EntityId::PUBLICATIONS_READER };

    /// A writer of discovery that has lost a participant, and so many endpoints since.
    fn writer_with_ends(ends: u32) -> Writer {
        let guid = Guid::new(GuidPrefix([9; 12]), EntityId::PUBLICATIONS_WRITER);
        let qos = WriterQos { durability: Durability::TransientLocal, ..WriterQos::default() };
        let mut writer = Writer::new(guid, qos.into(), &WriterOptions::default());
        let matched = MatchedReader {
            guid: AWAY,
            vendor: VendorId::THALWEG,
            reliable: true,
            qos: ReaderQos { durability: Durability::TransientLocal, ..ReaderQos::default() }.into(),
            unicast: Vec::new(),
            multicast: None,
            on_this_host: false,
            datagram_bytes: 1_472,
            batches: false,
            round_trip: Duration::from_millis(100),
            receive_buffer_bytes: None,
        };
        writer.match_reader(Instant::ZERO, matched);
        writer.unmatch_reader(AWAY);
        for number in 0..ends {
            let mut instance = KeyHash::default();
            instance.0[..4].copy_from_slice(&number.to_be_bytes());
            for kind in [ChangeKind::Write, ChangeKind::DisposeUnregister] {
                let change = NewChange { kind, instance, timestamp: None, payload: Payload::from(vec![0; 20]) };
                writer.write(Instant::ZERO, change).expect("discovery has no limits");
            }
            writer.release_acknowledged();
        }
        writer
    }

    #[test]
    fn ends_of_endpoints_wait_for_participants_that_may_be_back() {
        let mut writer = writer_with_ends(5);
        assert_eq!((writer.footprint().departures, writer.footprint().samples), (5, 5));
        writer.forget_former_reader(AWAY);
        assert_eq!((writer.footprint().departures, writer.footprint().samples), (0, 0));
    }

    #[test]
    fn ends_of_endpoints_do_not_gather_while_nobody_comes_back() {
        for ends in [300, 1_000, 5_000] {
            let kept = writer_with_ends(ends).footprint();
            assert!(kept.departures <= ENDS_KEPT_MAX && kept.samples <= ENDS_KEPT_MAX, "after {ends}: {kept:?}");
        }
    }
}
