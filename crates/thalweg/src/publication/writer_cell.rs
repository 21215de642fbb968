//! State shared by a data writer's handle and the runtime.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use thalweg_cdr as cdr;
use thalweg_rtps::qos::{Mismatch, Representation, TrafficClass, WriterQos};
use thalweg_rtps::shared::Shared;
use thalweg_rtps::status::Status;
use thalweg_rtps::time::{Instant, Timestamp};
use thalweg_rtps::types::{Guid, SequenceNumber};
use thalweg_rtps::writer::{Writer, WriterCounters};

use super::PublisherQos;
use super::newest_stamp::NewestStamp;
use super::reader_filters::ReaderFilters;
use crate::Error;
use crate::conditions::{Changing, StatusKinds};
use crate::figures::WriterFigures;
use crate::runtime::{Delivery, ListenerSlot, RuntimeState, StatusBoard, Waiters};
use crate::status::{DeadlineMissed, IncompatibleQos, LivelinessLost, Matched, ReadersGivenUp, WriterStatus};
use crate::store::Store;
use crate::sync::MutexGuard;
use crate::topic::TopicDescription;

/// Callback for status changes of a writer.
pub(crate) type WriterStatusListener = dyn FnMut(WriterStatus) + Send;

/// One local writer as the application and the I/O thread see it.
pub(crate) struct WriterCell {
    guid: Guid,
    max_blocking_time: Duration,
    pub(super) writer: Shared<Writer>,
    pub(super) topic: Arc<TopicDescription>,
    qos: Mutex<Arc<WriterQos>>,
    /// Its publisher's part of them, when they are not its own.
    publisher: Arc<PublisherQos>,
    /// A copy of the policy, for every datagram.
    transport_priority: AtomicI32,
    pub(super) representation: cdr::Representation,
    pub(super) waiters: Arc<Waiters>,
    /// The store of a PERSISTENT writer.
    store: Option<Arc<Store>>,
    filters: ReaderFilters,
    /// Whether small samples were collected at the last write; only a hint for the choice of a buffer.
    collecting: AtomicBool,
    newest_stamp: NewestStamp,
    /// What was counted for earlier writers of the history that this one goes on with.
    before: WriterCounters,
    /// Its counts at its end; there from the moment at which the application drops the writer.
    last: OnceLock<WriterFigures>,
    statuses: StatusBoard<Statuses, WriterStatusListener, WriterStatus>,
}

#[derive(Default)]
struct Statuses {
    matched: Status<Matched>,
    /// Those that `matched` counts as present.
    readers: BTreeSet<Guid>,
    incompatible: Status<IncompatibleQos>,
    given_up: Status<ReadersGivenUp>,
    deadline: Status<DeadlineMissed>,
    liveliness: Status<LivelinessLost>,
    /// The number of given-up readers that `wait_for_acknowledgments` has reported.
    waited_in_vain: Status<u64>,
}

impl Statuses {
    /// Those of `kinds` that have changed since they were last read or told, which count as told now.
    fn take_changed(&mut self, kinds: StatusKinds) -> Vec<WriterStatus> {
        let changed = [
            kinds.tell(StatusKinds::PUBLICATION_MATCHED, &mut self.matched).map(WriterStatus::PublicationMatched),
            kinds
                .tell(StatusKinds::OFFERED_INCOMPATIBLE_QOS, &mut self.incompatible)
                .map(WriterStatus::OfferedIncompatibleQos),
            kinds.tell(StatusKinds::READERS_GIVEN_UP, &mut self.given_up).map(WriterStatus::ReadersGivenUp),
            kinds
                .tell(StatusKinds::OFFERED_DEADLINE_MISSED, &mut self.deadline)
                .map(WriterStatus::OfferedDeadlineMissed),
            kinds.tell(StatusKinds::LIVELINESS_LOST, &mut self.liveliness).map(WriterStatus::LivelinessLost),
        ];
        changed.into_iter().flatten().collect()
    }
}

impl WriterCell {
    pub(super) fn new(
        writer: Shared<Writer>,
        topic: Arc<TopicDescription>,
        (qos, publisher): (Arc<WriterQos>, Arc<PublisherQos>),
        store: Option<Arc<Store>>,
    ) -> WriterCell {
        let representation = match qos.representation() {
            Representation::Xcdr2 => cdr::Representation::Xcdr2,
            _ => cdr::Representation::Xcdr1,
        };
        let (guid, max_blocking_time, before) = {
            let writer = writer.lock();
            (writer.guid(), writer.max_blocking_time(), writer.counters())
        };
        let cell = WriterCell {
            guid,
            max_blocking_time,
            writer,
            topic,
            transport_priority: AtomicI32::new(qos.transport_priority),
            qos: Mutex::new(qos),
            publisher,
            representation,
            waiters: Arc::default(),
            store,
            filters: ReaderFilters::default(),
            collecting: AtomicBool::new(false),
            newest_stamp: NewestStamp::default(),
            before,
            last: OnceLock::new(),
            statuses: StatusBoard::new(),
        };
        // What happened to a writer whose history this one goes on with was its application's news.
        cell.take_given_up(before.readers_given_up);
        cell.tell_deadline_missed();
        cell.tell_liveliness_lost();
        cell
    }

    pub(crate) fn guid(&self) -> Guid {
        self.guid
    }

    /// The state machine.
    pub(crate) fn writer(&self) -> &Shared<Writer> {
        &self.writer
    }

    /// The store of a PERSISTENT writer.
    pub(super) fn store(&self) -> Option<&Arc<Store>> {
        self.store.as_ref()
    }

    /// The writer has written; the caller holds no lock.
    #[inline]
    pub(super) fn wake_store(&self) {
        if let Some(store) = &self.store {
            store.note_written();
        }
    }

    /// Why a store cannot take what is written, if that is so.
    pub(super) fn store_failure(&self, operation: &'static str) -> Option<Error> {
        Some(self.store.as_ref()?.failure(operation)?.on_topic(&self.topic.name))
    }

    pub(crate) fn topic(&self) -> &Arc<TopicDescription> {
        &self.topic
    }

    /// Whether its samples may form sets.
    pub(super) fn offers_coherence(&self) -> bool {
        self.qos().presentation.coherent
    }

    /// What it writes from now on belongs to the set `set` of its publisher.
    pub(super) fn begin_set(&self, set: SequenceNumber) {
        self.writer.lock().begin_group_set(set);
    }

    /// Its counts; those at its end from then on.
    pub(crate) fn figures(&self) -> WriterFigures {
        let writer = self.writer.lock();
        self.last.get().cloned().unwrap_or_else(|| self.figures_of(&writer))
    }

    /// The writer ends; returns its last counts. What a history does that outlives it is not its own.
    pub(crate) fn end_figures(&self) -> WriterFigures {
        let writer = self.writer.lock();
        self.last.get_or_init(|| self.figures_of(&writer)).clone()
    }

    /// Whether the application has dropped the writer.
    pub(crate) fn is_closed(&self) -> bool {
        self.last.get().is_some()
    }

    fn figures_of(&self, writer: &Writer) -> WriterFigures {
        WriterFigures {
            guid: self.guid,
            topic: self.topic.name.clone(),
            counters: writer.counters().since(self.before),
            held: writer.held(),
            matched: writer.matched_readers().len(),
        }
    }

    /// The content filters of its readers.
    pub(crate) fn filters(&self) -> &ReaderFilters {
        &self.filters
    }

    /// The traffic class of the writer's datagrams.
    pub(super) fn traffic_class(&self) -> TrafficClass {
        TrafficClass::of(self.transport_priority.load(Ordering::Relaxed))
    }

    /// Its policies now.
    pub(super) fn qos(&self) -> Arc<WriterQos> {
        Arc::clone(&self.qos.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What its publisher gives to its policies.
    pub(super) fn publisher(&self) -> &PublisherQos {
        &self.publisher
    }

    /// Its policies have changed.
    pub(super) fn note_qos(&self, qos: Arc<WriterQos>) {
        self.transport_priority.store(qos.transport_priority, Ordering::Relaxed);
        *self.qos.lock().unwrap_or_else(PoisonError::into_inner) = qos;
    }

    pub(super) fn max_blocking_time(&self) -> Duration {
        self.max_blocking_time
    }

    pub(crate) fn status_listener(&self) -> &ListenerSlot<WriterStatusListener, WriterStatus> {
        self.statuses.listener()
    }

    pub(super) fn collects(&self) -> bool {
        self.collecting.load(Ordering::Relaxed)
    }

    pub(super) fn note_collecting(&self, collects: bool) {
        if collects != self.collects() {
            self.collecting.store(collects, Ordering::Relaxed);
        }
    }

    /// The source timestamp of what is written at `now`. The caller has the writer locked.
    #[inline]
    pub(super) fn stamp(&self, runtime: &RuntimeState, now: Instant) -> Timestamp {
        self.newest_stamp.follow(runtime.timestamp(now))
    }

    /// Wakes waiting threads: the writer has made room, or readers have acknowledged samples.
    pub(crate) fn notify_waiters(&self) {
        self.waiters.notify(&self.writer);
    }

    /// The statuses of `kinds` that have changed since they were last read or told; marks them as told.
    pub(crate) fn take_changed(&self, kinds: StatusKinds) -> Vec<WriterStatus> {
        self.statuses().take_changed(kinds)
    }

    /// Adds the statuses that have changed since they were last read or told to the news of the listener; returns the thread to ask for
    /// it.
    pub(crate) fn announce_changed(&self) -> Option<Delivery> {
        self.statuses.announce(self.statuses(), |statuses| statuses.take_changed(StatusKinds::ANY))
    }

    /// Brings the statuses that the writer counts itself up to date.
    fn statuses(&self) -> MutexGuard<'_, Statuses> {
        let (current, deadline, liveliness) = {
            let writer = self.writer.lock();
            (writer.readers_given_up(), writer.deadline_missed(), writer.liveliness_lost())
        };
        let mut statuses = self.statuses.statuses();
        statuses.given_up.change(|given_up| given_up.current = current);
        statuses.deadline.change(|status| status.update(deadline));
        statuses.liveliness.change(|status| status.update(liveliness));
        statuses
    }

    /// A reader is matched. News of the time before a history was taken over may come twice, and counts once.
    pub(crate) fn note_matched(&self, reader: Guid) -> Option<Delivery> {
        let is_new = self.statuses.statuses().readers.insert(reader);
        if is_new { self.update_matched(|matched| matched.add(reader)) } else { None }
    }

    /// A reader is matched no longer. One of an earlier writer of the history, which this one never had, does not count.
    pub(crate) fn note_unmatched(&self, reader: Guid) -> Option<Delivery> {
        self.filters.set(reader, None);
        let was_present = self.statuses.statuses().readers.remove(&reader);
        if was_present { self.update_matched(|matched| matched.remove(reader)) } else { None }
    }

    fn update_matched(&self, update: impl FnOnce(&mut Matched)) -> Option<Delivery> {
        self.statuses.note(|statuses| &mut statuses.matched, update, WriterStatus::PublicationMatched)
    }

    pub(crate) fn note_incompatible(&self, reader: Guid, mismatches: Vec<Mismatch>) -> Option<Delivery> {
        let add = |incompatible: &mut IncompatibleQos| incompatible.add(reader, mismatches);
        self.statuses.note(|statuses| &mut statuses.incompatible, add, WriterStatus::OfferedIncompatibleQos)
    }

    pub(crate) fn note_given_up(&self, reader: Guid) -> Option<Delivery> {
        let current = self.writer.lock().readers_given_up();
        let add = |given_up: &mut ReadersGivenUp| {
            given_up.add(reader);
            given_up.current = current;
        };
        self.statuses.note(|statuses| &mut statuses.given_up, add, WriterStatus::ReadersGivenUp)
    }

    pub(crate) fn note_deadline_missed(&self) -> Option<Delivery> {
        let missed = self.writer.lock().deadline_missed();
        self.statuses.note(|all| &mut all.deadline, |status| status.update(missed), WriterStatus::OfferedDeadlineMissed)
    }

    pub(crate) fn note_liveliness_lost(&self) -> Option<Delivery> {
        let lost = self.writer.lock().liveliness_lost();
        self.statuses.note(|all| &mut all.liveliness, |status| status.update(lost), WriterStatus::LivelinessLost)
    }

    pub(super) fn tell_deadline_missed(&self) -> DeadlineMissed {
        let missed = self.writer.lock().deadline_missed();
        self.statuses.tell(|statuses| &mut statuses.deadline, |status| status.update(missed))
    }

    pub(super) fn tell_liveliness_lost(&self) -> LivelinessLost {
        let lost = self.writer.lock().liveliness_lost();
        self.statuses.tell(|statuses| &mut statuses.liveliness, |status| status.update(lost))
    }

    pub(super) fn tell_given_up(&self) -> ReadersGivenUp {
        let current = self.writer.lock().readers_given_up();
        self.statuses.tell(|statuses| &mut statuses.given_up, |given_up| given_up.current = current)
    }

    /// Records that `given_up` readers were reported to the application; returns the number of those that are new.
    pub(super) fn take_given_up(&self, given_up: u64) -> u64 {
        self.statuses.tell(|statuses| &mut statuses.waited_in_vain, |told| *told = (*told).max(given_up))
    }

    pub(super) fn tell_matched(&self) -> Matched {
        self.statuses.tell(|statuses| &mut statuses.matched, |_| ())
    }

    pub(super) fn tell_incompatible(&self) -> IncompatibleQos {
        self.statuses.tell(|statuses| &mut statuses.incompatible, |_| ())
    }
}

impl Changing for WriterCell {
    fn changed(&self) -> StatusKinds {
        if self.is_closed() {
            return StatusKinds::NONE;
        }
        let statuses = self.statuses();
        StatusKinds::of([
            (StatusKinds::PUBLICATION_MATCHED, statuses.matched.has_changed()),
            (StatusKinds::OFFERED_INCOMPATIBLE_QOS, statuses.incompatible.has_changed()),
            (StatusKinds::READERS_GIVEN_UP, statuses.given_up.has_changed()),
            (StatusKinds::OFFERED_DEADLINE_MISSED, statuses.deadline.has_changed()),
            (StatusKinds::LIVELINESS_LOST, statuses.liveliness.has_changed()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use thalweg_rtps::types::{EntityId, GuidPrefix, Keyed};
    use thalweg_rtps::writer::WriterOptions;

    use super::*;
    use crate::topic::TopicKeys;

    #[test]
    fn a_reader_that_is_told_of_twice_counts_once() {
        let guid = |prefix: u8, entity| Guid::new(GuidPrefix([prefix; 12]), entity);
        let qos = Arc::new(WriterQos::default());
        let own = guid(1, EntityId::user_writer(1, Keyed::No));
        let writer = Shared::new(Writer::new(own, Arc::clone(&qos), &WriterOptions::default()));
        let (name, type_name) = ("topic".to_owned(), "type".to_owned());
        let topic = TopicDescription { name, type_name, keyed: Keyed::No, keys: TopicKeys::Wire, described: None };
        let cell = WriterCell::new(writer, Arc::new(topic), (qos, Arc::default()), None);
        let readers = [1, 2, 3].map(|key| guid(2, EntityId::user_reader(key, Keyed::No)));
        cell.note_unmatched(readers[2]);
        [0, 1, 0, 1].into_iter().for_each(|place| _ = cell.note_matched(readers[place]));
        let told = cell.tell_matched();
        assert_eq!((told.total, told.current, told.last), (2, 2, Some(readers[1])));
        [0, 0, 2].into_iter().for_each(|place| _ = cell.note_unmatched(readers[place]));
        let told = cell.tell_matched();
        assert_eq!((told.total, told.current, told.current_change), (2, 1, -1));
        cell.note_matched(readers[0]);
        let told = cell.tell_matched();
        assert_eq!((told.total, told.current, told.current_change), (3, 2, 1), "it has come back");
    }
}
