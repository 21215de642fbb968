//! A writer whose history outlives it: it is stored, restored, and taken over by the next writer of the same history.

use std::sync::Arc;
use std::time::Duration;

use super::outgoing::Outgoing;
use super::{Collection, ReaderSet, Room, Route, Writer, WriterOptions};
use crate::history::{ChangeKind, Records, StoredChange};
use crate::qos::WriterQos;
use crate::time::{EpochOffset, Instant};
use crate::types::SequenceNumber;

impl Writer {
    /// Takes in what a store holds of its earlier life; its next number follows `last`. Lives go on by the wall clock, `epoch`, where it
    /// is known; the delays after which ended instances go begin anew. For a writer that has no reader yet.
    pub fn restore(
        &mut self,
        now: Instant,
        epoch: Option<EpochOffset>,
        changes: Vec<StoredChange>,
        last: SequenceNumber,
    ) {
        let values = changes.iter().filter(|change| change.kind == ChangeKind::Write);
        let written = values.map(|change| {
            let timed = epoch.zip(change.timestamp);
            (timed.map_or(Duration::ZERO, |(epoch, timestamp)| epoch.age(now, timestamp)), change.sequence)
        });
        let written: Vec<(Duration, SequenceNumber)> = written.collect();
        changes.iter().for_each(|change| self.registered.note(change.instance, change.kind));
        self.history.clean_up(now);
        self.history.restore(changes, last);
        if let Some(promises) = &mut self.promises {
            promises.note_restored(now, written.into_iter(), &self.history);
        }
        let next = self.history.last().next();
        self.outgoing = Outgoing::new(next, &self.qos.transmission.method);
        self.heartbeat.begin_at(next);
        self.history.sent_up_to(next);
    }

    /// A store keeps its history from now on, and has set numbers aside up to `reserved`.
    pub fn begin_journal(&mut self, reserved: SequenceNumber) {
        self.history.begin_journal(reserved);
    }

    /// What the store is to change; `None` when there is nothing new. [`Writer::note_stored`] is to follow before the next call.
    pub fn take_records(&mut self) -> Option<Records> {
        self.history.take_records()
    }

    /// Whether [`Writer::take_records`] has anything to tell.
    pub fn has_records(&self) -> bool {
        self.history.has_records()
    }

    /// The store cannot be written: writes are refused until [`Writer::note_stored`].
    pub fn note_store_failed(&mut self) {
        self.history.note_store_failed();
    }

    /// The store holds for good what it was told up to `stored`, and has set numbers aside up to `reserved`. Threads that wait for room or
    /// acknowledgements look again.
    pub fn note_stored(&mut self, stored: SequenceNumber, reserved: SequenceNumber) {
        self.history.note_stored(stored, reserved);
    }

    /// Whether the store holds everything that was written; true where there is none.
    pub fn is_stored(&self) -> bool {
        self.is_stored_up_to(self.history.last())
    }

    /// Whether the store holds everything up to `number`; true where there is none.
    pub fn is_stored_up_to(&self, number: SequenceNumber) -> bool {
        self.history.is_stored_up_to(number)
    }

    /// A new writer goes on with this one's history, numbers and counts. It has no readers: they are to be matched again, and get what they
    /// have not acknowledged.
    pub(crate) fn succeed(&mut self, now: Instant, qos: Arc<WriterQos>, options: &WriterOptions) {
        self.flush();
        let next = self.history.last().next();
        for reader in self.readers.iter().filter(|reader| reader.matched.reliable) {
            self.former.remember(reader.matched.guid, reader.acknowledged.sample.max(reader.forsaken));
        }
        self.readers = ReaderSet::new();
        self.route = Route::new(qos.transmission.destination);
        self.outgoing = Outgoing::new(next, &qos.transmission.method);
        self.collection = Collection::new(&qos.transmission.method);
        self.room = Room::new(&qos, options.history_bytes_max);
        self.history.set_bytes_max(options.history_bytes_max);
        // Who acknowledges a pack of samples to come has none of those that were collected and never sent.
        self.history.seal();
        self.history.sent_up_to(next);
        self.set_qos(now, qos);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{START, collecting, matched_reader, write_stamped};
    use super::*;
    use crate::qos::{History, Method};

    #[test]
    fn samples_of_the_next_writer_share_no_pack_with_unsent_ones_of_the_former() {
        let mut writer = collecting(Method::batch(), History::KeepAll);
        (0..2).for_each(|_| write_stamped(&mut writer, START, 40));
        let former = writer.history.pack_of(SequenceNumber(2));
        let qos = Arc::clone(&writer.qos);
        writer.succeed(START, qos, &WriterOptions::default());
        writer.match_reader(START, matched_reader(1));
        write_stamped(&mut writer, START, 40);
        assert_eq!(writer.history.pack_of(SequenceNumber(1)), former, "they were collected");
        assert!(writer.history.pack_of(SequenceNumber(3)) > former);
    }
}
