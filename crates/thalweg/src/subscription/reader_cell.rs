//! State shared by a data reader's handle and the runtime.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use thalweg_rtps::history::{ReadFilter, TakenSample};
use thalweg_rtps::qos::{Mismatch, ReaderQos};
use thalweg_rtps::reader::{KeyRequest, Reader};
use thalweg_rtps::shared::Shared;
use thalweg_rtps::status::Status;
use thalweg_rtps::types::Guid;

use super::SubscriberQos;
use crate::conditions::{Changing, StatusKinds};
use crate::figures::ReaderFigures;
use crate::runtime::{Deadline, Delivery, ListenerSlot, StatusBoard, Waiters};
use crate::status::{
    DeadlineMissed, IncompatibleQos, LivelinessChanged, Matched, ReaderStatus, SampleLost, SampleRejected,
};
use crate::sync::MutexGuard;
use crate::topic::TopicDescription;

/// Callback for status changes of a reader.
pub(crate) type ReaderStatusListener = dyn FnMut(ReaderStatus) + Send;
/// Callback for a reader's data, which makes the typed handle itself.
pub(crate) type DataListener = dyn FnMut(&Arc<ReaderCell>) + Send;

/// One local reader as the application and the I/O thread see it.
pub(crate) struct ReaderCell {
    guid: Guid,
    pub(super) reader: Shared<Reader>,
    pub(super) topic: Arc<TopicDescription>,
    qos: Mutex<Arc<ReaderQos>>,
    /// Its subscriber's part of them, when they are not its own; `None` for a reader of a built-in topic.
    subscriber: Option<Arc<SubscriberQos>>,
    pub(super) waiters: Arc<Waiters>,
    statuses: StatusBoard<Statuses, ReaderStatusListener, ReaderStatus>,
    data_listener: ListenerSlot<DataListener, ()>,
    /// Whether the application has dropped the reader.
    closed: AtomicBool,
    /// Its counts at its end.
    last: OnceLock<ReaderFigures>,
}

#[derive(Default)]
struct Statuses {
    matched: Status<Matched>,
    incompatible: Status<IncompatibleQos>,
    lost: Status<SampleLost>,
    rejected: Status<SampleRejected>,
    deadline: Status<DeadlineMissed>,
    liveliness: Status<LivelinessChanged>,
    /// Matched writers that are not alive.
    not_alive: BTreeSet<Guid>,
}

impl Statuses {
    /// Those of `kinds` that have changed since they were last read or told, which count as told now.
    fn take_changed(&mut self, kinds: StatusKinds) -> Vec<ReaderStatus> {
        let changed = [
            kinds.tell(StatusKinds::SUBSCRIPTION_MATCHED, &mut self.matched).map(ReaderStatus::SubscriptionMatched),
            kinds
                .tell(StatusKinds::REQUESTED_INCOMPATIBLE_QOS, &mut self.incompatible)
                .map(ReaderStatus::RequestedIncompatibleQos),
            kinds.tell(StatusKinds::SAMPLE_LOST, &mut self.lost).map(ReaderStatus::SampleLost),
            kinds.tell(StatusKinds::SAMPLE_REJECTED, &mut self.rejected).map(ReaderStatus::SampleRejected),
            kinds
                .tell(StatusKinds::REQUESTED_DEADLINE_MISSED, &mut self.deadline)
                .map(ReaderStatus::RequestedDeadlineMissed),
            kinds.tell(StatusKinds::LIVELINESS_CHANGED, &mut self.liveliness).map(ReaderStatus::LivelinessChanged),
        ];
        changed.into_iter().flatten().collect()
    }
}

impl ReaderCell {
    pub(super) fn new(
        reader: Shared<Reader>,
        topic: Arc<TopicDescription>,
        (qos, subscriber): (Arc<ReaderQos>, Option<Arc<SubscriberQos>>),
    ) -> ReaderCell {
        let guid = reader.lock().guid();
        ReaderCell {
            guid,
            reader,
            topic,
            qos: Mutex::new(qos),
            subscriber,
            waiters: Arc::default(),
            statuses: StatusBoard::new(),
            data_listener: ListenerSlot::new(1),
            closed: AtomicBool::new(false),
            last: OnceLock::new(),
        }
    }

    pub(crate) fn guid(&self) -> Guid {
        self.guid
    }

    pub(crate) fn topic(&self) -> &Arc<TopicDescription> {
        &self.topic
    }

    /// Its policies now.
    pub(super) fn qos(&self) -> Arc<ReaderQos> {
        Arc::clone(&self.qos.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What its subscriber gives to its policies; `None` for a reader of a built-in topic.
    pub(super) fn subscriber(&self) -> Option<&SubscriberQos> {
        self.subscriber.as_deref()
    }

    /// Its policies have changed.
    pub(super) fn note_qos(&self, qos: Arc<ReaderQos>) {
        *self.qos.lock().unwrap_or_else(PoisonError::into_inner) = qos;
    }

    /// Its counts; those at its end from then on.
    pub(crate) fn figures(&self) -> ReaderFigures {
        let reader = self.reader.lock();
        self.last.get().cloned().unwrap_or_else(|| self.figures_of(&reader))
    }

    /// The reader ends; returns its last counts.
    pub(crate) fn end_figures(&self) -> ReaderFigures {
        let reader = self.reader.lock();
        self.last.get_or_init(|| self.figures_of(&reader)).clone()
    }

    fn figures_of(&self, reader: &Reader) -> ReaderFigures {
        ReaderFigures {
            guid: self.guid,
            topic: self.topic.name.clone(),
            counters: reader.counters(),
            losses: reader.losses(),
            overwritten: reader.cache().overwritten(),
            waiting: reader.cache().len(),
            matched: reader.matched_writers().len(),
        }
    }

    pub(crate) fn data_listener(&self) -> &ListenerSlot<DataListener, ()> {
        &self.data_listener
    }

    pub(crate) fn status_listener(&self) -> &ListenerSlot<ReaderStatusListener, ReaderStatus> {
        self.statuses.listener()
    }

    /// Wakes waiting threads: the reader has data, or its matches have changed.
    pub(crate) fn notify_waiters(&self) {
        self.waiters.notify(&self.reader);
    }

    /// Ends the reader's key thread, since the application drops the reader.
    pub(super) fn close(&self) {
        // Under the lock, so that no thread checks the flag before it and sleeps after it.
        let reader = self.reader.lock();
        self.closed.store(true, Ordering::Relaxed);
        drop(reader);
        self.notify_waiters();
    }

    /// Whether there are samples that `filter` selects.
    pub(crate) fn selects(&self, filter: &ReadFilter) -> bool {
        !self.closed.load(Ordering::Relaxed) && self.reader.lock().cache().selects(filter)
    }

    /// The samples that `filter` selects, which stay as they are.
    pub(crate) fn look(&self, filter: &ReadFilter) -> Vec<TakenSample> {
        let mut samples = Vec::new();
        if !self.closed.load(Ordering::Relaxed) {
            self.reader.lock().cache().look(filter, &mut samples);
        }
        samples
    }

    /// Waits for samples whose key is to be computed and puts them into `requests`, at most `max` of each writer; false once
    /// the reader is closed.
    pub(super) fn wait_for_keys(&self, max: usize, requests: &mut Vec<KeyRequest>) -> bool {
        let mut reader = self.reader.lock();
        loop {
            if self.closed.load(Ordering::Relaxed) {
                return false;
            }
            reader.poll_keys(max, requests);
            if !requests.is_empty() {
                return true;
            }
            reader = self.waiters.wait(&self.reader, reader, Deadline::NEVER);
        }
    }

    /// The statuses of `kinds` that have changed since they were last read or told; marks them as told.
    pub(crate) fn take_changed(&self, kinds: StatusKinds) -> Vec<ReaderStatus> {
        self.statuses().take_changed(kinds)
    }

    /// Adds the statuses that have changed since they were last read or told to the news of the listener; returns the thread to ask for
    /// it.
    pub(crate) fn announce_changed(&self) -> Option<Delivery> {
        self.statuses.announce(self.statuses(), |statuses| statuses.take_changed(StatusKinds::ANY))
    }

    /// Brings the statuses that the reader counts itself up to date.
    fn statuses(&self) -> MutexGuard<'_, Statuses> {
        let (losses, rejections, missed) = {
            let reader = self.reader.lock();
            (reader.losses(), reader.rejections(), reader.deadline_missed())
        };
        let mut statuses = self.statuses.statuses();
        statuses.lost.change(|lost| lost.update(losses));
        statuses.rejected.change(|rejected| rejected.update(rejections));
        statuses.deadline.change(|status| status.update(missed));
        statuses
    }

    pub(crate) fn note_matched(&self, writer: Guid) -> Option<Delivery> {
        self.update_matched(|matched| matched.add(writer))
    }

    pub(crate) fn note_unmatched(&self, writer: Guid) -> Option<Delivery> {
        self.update_matched(|matched| matched.remove(writer))
    }

    fn update_matched(&self, update: impl FnOnce(&mut Matched)) -> Option<Delivery> {
        self.statuses.note(|statuses| &mut statuses.matched, update, ReaderStatus::SubscriptionMatched)
    }

    pub(crate) fn note_incompatible(&self, writer: Guid, mismatches: Vec<Mismatch>) -> Option<Delivery> {
        let add = |incompatible: &mut IncompatibleQos| incompatible.add(writer, mismatches);
        self.statuses.note(|statuses| &mut statuses.incompatible, add, ReaderStatus::RequestedIncompatibleQos)
    }

    pub(crate) fn note_lost(&self) -> Option<Delivery> {
        let losses = self.reader.lock().losses();
        self.statuses.note(|statuses| &mut statuses.lost, |lost| lost.update(losses), ReaderStatus::SampleLost)
    }

    pub(crate) fn note_rejected(&self) -> Option<Delivery> {
        let rejections = self.reader.lock().rejections();
        let update = |rejected: &mut SampleRejected| rejected.update(rejections);
        self.statuses.note(|statuses| &mut statuses.rejected, update, ReaderStatus::SampleRejected)
    }

    pub(crate) fn note_deadline_missed(&self) -> Option<Delivery> {
        let missed = self.reader.lock().deadline_missed();
        self.statuses.note(
            |all| &mut all.deadline,
            |status| status.update(missed),
            ReaderStatus::RequestedDeadlineMissed,
        )
    }

    /// A matched writer is alive: it was matched now, or is alive again; or it is matched no longer.
    pub(crate) fn note_alive(&self, writer: Guid) -> Option<Delivery> {
        self.update_liveliness(writer, |not_alive| not_alive.remove(&writer))
    }

    /// A matched writer has lost its liveliness.
    pub(crate) fn note_not_alive(&self, writer: Guid) -> Option<Delivery> {
        self.update_liveliness(writer, |not_alive| not_alive.insert(writer))
    }

    /// To be called when the matches are up to date.
    fn update_liveliness(&self, writer: Guid, update: impl FnOnce(&mut BTreeSet<Guid>) -> bool) -> Option<Delivery> {
        let counts = {
            let mut statuses = self.statuses.statuses();
            update(&mut statuses.not_alive);
            (statuses.matched.now().current, statuses.not_alive.len())
        };
        let change = |status: &mut LivelinessChanged| status.update(counts.0, counts.1, writer);
        self.statuses.note(|all| &mut all.liveliness, change, ReaderStatus::LivelinessChanged)
    }

    pub(super) fn tell_deadline_missed(&self) -> DeadlineMissed {
        let missed = self.reader.lock().deadline_missed();
        self.statuses.tell(|statuses| &mut statuses.deadline, |status| status.update(missed))
    }

    pub(super) fn tell_liveliness_changed(&self) -> LivelinessChanged {
        self.statuses.tell(|statuses| &mut statuses.liveliness, |_| ())
    }

    pub(super) fn tell_lost(&self) -> SampleLost {
        let losses = self.reader.lock().losses();
        self.statuses.tell(|statuses| &mut statuses.lost, |lost| lost.update(losses))
    }

    pub(super) fn tell_rejected(&self) -> SampleRejected {
        let rejections = self.reader.lock().rejections();
        self.statuses.tell(|statuses| &mut statuses.rejected, |rejected| rejected.update(rejections))
    }

    pub(super) fn tell_matched(&self) -> Matched {
        self.statuses.tell(|statuses| &mut statuses.matched, |_| ())
    }

    pub(super) fn tell_incompatible(&self) -> IncompatibleQos {
        self.statuses.tell(|statuses| &mut statuses.incompatible, |_| ())
    }
}

impl Changing for ReaderCell {
    fn changed(&self) -> StatusKinds {
        if self.closed.load(Ordering::Relaxed) {
            return StatusKinds::NONE;
        }
        let has_data = self.reader.lock().cache().has_unread();
        let statuses = self.statuses();
        StatusKinds::of([
            (StatusKinds::DATA_AVAILABLE, has_data),
            (StatusKinds::SUBSCRIPTION_MATCHED, statuses.matched.has_changed()),
            (StatusKinds::REQUESTED_INCOMPATIBLE_QOS, statuses.incompatible.has_changed()),
            (StatusKinds::SAMPLE_LOST, statuses.lost.has_changed()),
            (StatusKinds::SAMPLE_REJECTED, statuses.rejected.has_changed()),
            (StatusKinds::REQUESTED_DEADLINE_MISSED, statuses.deadline.has_changed()),
            (StatusKinds::LIVELINESS_CHANGED, statuses.liveliness.has_changed()),
        ])
    }
}
