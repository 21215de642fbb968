//! Brings the participant's events to waiting threads, statuses and listeners.

use std::sync::Arc;

use thalweg_rtps::participant::Event;
use thalweg_rtps::types::EntityId;

use super::RuntimeState;
use super::household;
use super::listeners::{Delivery, Notification};
use crate::publication::WriterCell;
use crate::status::{ReaderStatus, WriterStatus};
use crate::subscription::ReaderCell;
use crate::trace;

impl RuntimeState {
    /// Delivers one event; runs inline listeners on the spot.
    pub(super) fn deliver(&self, event: Event) {
        match event {
            Event::DataAvailable { reader } => {
                if let Some(cell) = self.endpoints.reader(reader) {
                    trace::notified(cell.guid());
                    self.deliver_data(cell);
                }
            }
            Event::KeysDue { reader } => {
                if let Some(cell) = self.endpoints.reader(reader) {
                    cell.notify_waiters();
                }
            }
            Event::SpaceAvailable { writer } | Event::Acknowledged { writer } => {
                if let Some(cell) = self.endpoints.writer(writer) {
                    cell.notify_waiters();
                }
            }
            Event::PublicationMatched { writer, reader } => {
                self.deliver_writer_status(writer, |cell| cell.note_matched(reader));
            }
            Event::PublicationUnmatched { writer, reader } => {
                self.deliver_writer_status(writer, |cell| cell.note_unmatched(reader));
            }
            Event::OfferedIncompatibleQos { writer, reader, mismatches } => {
                self.deliver_writer_status(writer, |cell| cell.note_incompatible(reader, mismatches));
            }
            Event::ReaderGivenUp { writer, reader } => {
                tracing::warn!(%writer, %reader, "a reader exhausted the writer's patience and is no longer waited for");
                self.deliver_writer_status(writer, |cell| cell.note_given_up(reader));
            }
            Event::SubscriptionMatched { reader, writer } => {
                self.deliver_reader_status(reader, |cell| cell.note_matched(writer));
            }
            Event::SubscriptionUnmatched { reader, writer } => {
                self.deliver_reader_status(reader, |cell| cell.note_unmatched(writer));
            }
            Event::RequestedIncompatibleQos { reader, writer, mismatches } => {
                self.deliver_reader_status(reader, |cell| cell.note_incompatible(writer, mismatches));
            }
            Event::SampleLost { reader } => self.deliver_reader_status(reader, ReaderCell::note_lost),
            Event::SampleRejected { reader } => self.deliver_reader_status(reader, ReaderCell::note_rejected),
            Event::NotMatched { local, remote, why } => {
                tracing::info!(%local, %remote, "endpoints do not match: {why}")
            }
            Event::HousematesTold => household::wake_told(),
            // The I/O thread measures the way there.
            Event::AddressesChosen(_) => {}
            Event::ParticipantDiscovered(prefix) => tracing::debug!(%prefix, "participant discovered"),
            Event::ParticipantLost { prefix, reason } => tracing::info!(%prefix, ?reason, "participant lost"),
        }
    }

    /// Tells everybody who waits for data of this reader.
    fn deliver_data(&self, cell: Arc<ReaderCell>) {
        cell.notify_waiters();
        let next = cell.data_listener().tell(Delivery::Inline, (), |listener, ()| listener(&cell));
        self.agenda.go_on(next, Notification::Data(cell));
    }

    /// As the delivery of data by the I/O thread, from another thread.
    pub(crate) fn announce_data(&self, cell: &Arc<ReaderCell>) {
        cell.notify_waiters();
        if let Some(thread) = cell.data_listener().add(())
            && self.agenda.ask(thread, Notification::Data(Arc::clone(cell)))
        {
            self.alarm.wake();
        }
    }

    /// `note` brings the status up to date and returns what a listener is to be told; `None`: nobody listens.
    fn deliver_writer_status(&self, writer: EntityId, note: impl FnOnce(&WriterCell) -> Option<WriterStatus>) {
        let Some(cell) = self.endpoints.writer(writer) else { return };
        let status = note(&cell);
        cell.notify_waiters();
        let Some(status) = status else { return };
        let next = cell.status_listener().tell(Delivery::Inline, status, |listener, status| listener(status));
        self.agenda.go_on(next, Notification::WriterStatus(cell));
    }

    fn deliver_reader_status(&self, reader: EntityId, note: impl FnOnce(&ReaderCell) -> Option<ReaderStatus>) {
        let Some(cell) = self.endpoints.reader(reader) else { return };
        let status = note(&cell);
        cell.notify_waiters();
        let Some(status) = status else { return };
        let next = cell.status_listener().tell(Delivery::Inline, status, |listener, status| listener(status));
        self.agenda.go_on(next, Notification::ReaderStatus(cell));
    }
}
