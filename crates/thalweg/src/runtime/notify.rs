//! Brings the participant's events to waiting threads, statuses and listeners.

use std::sync::Arc;

use thalweg_rtps::discovery::database::DiscoveryLimit;
use thalweg_rtps::discovery::endpoint_data::ContentFilter;
use thalweg_rtps::participant::{Event, Participant};
use thalweg_rtps::types::{EntityId, Guid, GuidPrefix};

use super::household;
use super::listeners::{Delivery, Notification};
use super::{RuntimeState, warn};
use crate::conditions::StatusKinds;
use crate::publication::WriterCell;
use crate::status::ParticipantStatus;
use crate::subscription::ReaderCell;
use crate::trace;

/// Says what a limit of discovery refused and what to raise.
fn warn_of_limit(participant: GuidPrefix, limit: DiscoveryLimit, refused: u64) {
    let what = match limit {
        DiscoveryLimit::Participants => "is not met",
        DiscoveryLimit::Endpoints | DiscoveryLimit::Memory => "has more writers or readers than are remembered",
        _ => "has more than is remembered",
    };
    warn(&format!(
        "participant {participant} {what}: {refused} announcements were refused so far by the limit {limit}; raise it with \
         DomainParticipantBuilder::discovery_limits"
    ));
}

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
            Event::ReaderFilter { writer, reader, filter } => {
                self.deliver_filter(writer, reader, filter.as_deref());
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
                self.deliver_reader_status(reader, |cell| cell.note_alive(writer));
            }
            Event::SubscriptionUnmatched { reader, writer } => {
                self.deliver_reader_status(reader, |cell| cell.note_unmatched(writer));
                self.deliver_reader_status(reader, |cell| cell.note_alive(writer));
            }
            Event::WriterAlive { reader, writer } => {
                self.deliver_reader_status(reader, |cell| cell.note_alive(writer));
            }
            Event::WriterNotAlive { reader, writer } => {
                self.deliver_reader_status(reader, |cell| cell.note_not_alive(writer));
            }
            Event::RequestedDeadlineMissed { reader } => {
                self.deliver_reader_status(reader, ReaderCell::note_deadline_missed);
            }
            Event::OfferedDeadlineMissed { writer } => {
                self.deliver_writer_status(writer, WriterCell::note_deadline_missed);
            }
            Event::LivelinessLost { writer } => self.deliver_writer_status(writer, WriterCell::note_liveliness_lost),
            Event::RequestedIncompatibleQos { reader, writer, mismatches } => {
                self.deliver_reader_status(reader, |cell| cell.note_incompatible(writer, mismatches));
            }
            Event::SampleLost { reader } => self.deliver_reader_status(reader, ReaderCell::note_lost),
            Event::SampleRejected { reader } => self.deliver_reader_status(reader, ReaderCell::note_rejected),
            Event::InconsistentTopic { local, remote, why } => self.deliver_inconsistent_topic(local, remote, why),
            Event::NotMatched { local, remote, why } => {
                tracing::info!(%local, %remote, "endpoints do not match: {why}")
            }
            Event::OverLimit { participant, limit, refused } => {
                warn_of_limit(participant, limit, refused);
                self.deliver_participant_status(ParticipantStatus::OverLimit { participant, limit, refused });
            }
            Event::ServiceData { reader, from, payload } => {
                if !self.types.handle_service_data(self, reader, from, &payload) {
                    self.diagnosis.handle_service_data(self, reader, from, &payload);
                }
            }
            Event::HousematesTold => household::wake_told(),
            // The I/O thread measures the way there.
            Event::AddressesChosen(_) => {}
            Event::ParticipantDiscovered(prefix) => {
                tracing::debug!(%prefix, "participant discovered");
                self.deliver_participant_status(ParticipantStatus::Discovered(prefix));
            }
            Event::ParticipantLost { prefix, reason } => {
                tracing::info!(%prefix, ?reason, "participant lost");
                self.deliver_participant_status(ParticipantStatus::Lost { participant: prefix, reason });
            }
        }
    }

    /// Gives a reader's filter to a writer that it is matched with.
    fn deliver_filter(&self, writer: EntityId, reader: Guid, announced: Option<&ContentFilter>) {
        let Some(cell) = self.endpoints.writer(writer) else { return };
        if reader.prefix != cell.guid().prefix {
            return cell.filters().set(reader, announced);
        }
        // Since this event, `renew_filter` may have brought a newer one.
        let participant = self.participant.lock();
        cell.filters().set(reader, participant.reader_filter(reader.entity));
    }

    /// Gives the filter that a reader of this participant announces now to its writers at once: what they write next is judged by it.
    /// The caller has the participant locked.
    pub(crate) fn renew_filter(&self, reader: Guid, participant: &Participant) {
        let announced = participant.reader_filter(reader.entity);
        self.endpoints.writers().iter().for_each(|cell| cell.filters().renew(reader, announced));
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
        self.ask(cell.data_listener().add(()), || Notification::Data(Arc::clone(cell)));
    }

    /// `note` brings the status up to date, adds what has changed to the news of the listener, if there is one, and returns the thread
    /// to ask for it.
    fn deliver_writer_status(&self, writer: EntityId, note: impl FnOnce(&WriterCell) -> Option<Delivery>) {
        let Some(cell) = self.endpoints.writer(writer) else { return };
        let thread = note(&cell);
        cell.notify_waiters();
        match thread {
            Some(_) => self.agenda.go_on(thread, Notification::WriterStatus(cell)),
            None => self.tell_participant_of_writer(&cell),
        }
    }

    fn deliver_reader_status(&self, reader: EntityId, note: impl FnOnce(&ReaderCell) -> Option<Delivery>) {
        let Some(cell) = self.endpoints.reader(reader) else { return };
        let thread = note(&cell);
        cell.notify_waiters();
        match thread {
            Some(_) => self.agenda.go_on(thread, Notification::ReaderStatus(cell)),
            None => self.tell_participant_of_reader(&cell),
        }
    }

    /// What has changed goes to the participant's listener where the endpoint has none and the listener asks for it (DDS 1.4
    /// §2.2.4.2.3); the rest stays for those who wait for it or read it.
    fn tell_participant_of_writer(&self, cell: &WriterCell) {
        if self.tells_of_endpoints() && cell.status_listener().delivery().is_none() {
            let writer = cell.guid();
            let changed = cell.take_changed(self.endpoint_kinds).into_iter();
            changed.for_each(|status| self.deliver_participant_status(ParticipantStatus::Writer { writer, status }));
        }
    }

    fn tell_participant_of_reader(&self, cell: &ReaderCell) {
        if self.tells_of_endpoints() && cell.status_listener().delivery().is_none() {
            let reader = cell.guid();
            let changed = cell.take_changed(self.endpoint_kinds).into_iter();
            changed.for_each(|status| self.deliver_participant_status(ParticipantStatus::Reader { reader, status }));
        }
    }

    fn tells_of_endpoints(&self) -> bool {
        self.endpoint_kinds != StatusKinds::NONE && self.participant_listener.delivery().is_some()
    }

    fn deliver_inconsistent_topic(&self, local: EntityId, remote: Guid, why: String) {
        let writer = self.endpoints.writer(local).map(|cell| Arc::clone(cell.topic()));
        let topic = writer.or_else(|| self.endpoints.reader(local).map(|cell| Arc::clone(cell.topic())));
        let Some(topic) = topic else { return };
        tracing::info!(%local, %remote, "endpoints do not match: {why}");
        let is_told = self.participant_listener.delivery().is_some();
        if let Some(status) = self.topics.note(&topic.name, remote, why, is_told) {
            let topic = topic.name.clone();
            self.deliver_participant_status(ParticipantStatus::InconsistentTopic { topic, status });
        }
    }

    fn deliver_participant_status(&self, status: ParticipantStatus) {
        let slot = &self.participant_listener;
        let next = slot.tell(Delivery::Inline, status, |listener, status| listener(status));
        self.agenda.go_on(next, Notification::ParticipantStatus(Arc::clone(slot)));
    }

    /// Tells a writer's new listener what has changed before there was one.
    pub(crate) fn announce_writer_changes(&self, cell: &Arc<WriterCell>) {
        self.ask(cell.announce_changed(), || Notification::WriterStatus(Arc::clone(cell)));
    }

    /// As [`RuntimeState::announce_writer_changes`] for a reader.
    pub(crate) fn announce_reader_changes(&self, cell: &Arc<ReaderCell>) {
        self.ask(cell.announce_changed(), || Notification::ReaderStatus(Arc::clone(cell)));
    }

    /// Asks `thread`, if any, on behalf of another one.
    fn ask(&self, thread: Option<Delivery>, notification: impl FnOnce() -> Notification) {
        if let Some(thread) = thread
            && self.agenda.ask(thread, notification())
        {
            self.alarm.wake();
        }
    }
}
