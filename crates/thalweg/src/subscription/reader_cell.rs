//! State shared by a data reader's handle and the runtime.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thalweg_rtps::qos::{Mismatch, ReaderQos};
use thalweg_rtps::reader::{KeyRequest, Reader};
use thalweg_rtps::shared::Shared;
use thalweg_rtps::types::Guid;

use crate::runtime::{Deadline, ListenerSlot, STATUS_BACKLOG_MAX, Waiters};
use crate::status::{IncompatibleQos, Matched, ReaderStatus, SampleLost, SampleRejected};
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
    pub(super) qos: ReaderQos,
    pub(super) waiters: Waiters,
    statuses: Mutex<Statuses>,
    data_listener: ListenerSlot<DataListener, ()>,
    status_listener: ListenerSlot<ReaderStatusListener, ReaderStatus>,
    /// Whether the application has dropped the reader.
    closed: AtomicBool,
}

#[derive(Default)]
struct Statuses {
    matched: Matched,
    incompatible: IncompatibleQos,
    lost: SampleLost,
    rejected: SampleRejected,
}

impl ReaderCell {
    pub(super) fn new(reader: Shared<Reader>, topic: Arc<TopicDescription>, qos: ReaderQos) -> ReaderCell {
        let guid = reader.lock().guid();
        ReaderCell {
            guid,
            reader,
            topic,
            qos,
            waiters: Waiters::default(),
            statuses: Mutex::default(),
            data_listener: ListenerSlot::new(1),
            status_listener: ListenerSlot::new(STATUS_BACKLOG_MAX),
            closed: AtomicBool::new(false),
        }
    }

    pub(crate) fn guid(&self) -> Guid {
        self.guid
    }

    pub(crate) fn topic(&self) -> &Arc<TopicDescription> {
        &self.topic
    }

    pub(crate) fn data_listener(&self) -> &ListenerSlot<DataListener, ()> {
        &self.data_listener
    }

    pub(crate) fn status_listener(&self) -> &ListenerSlot<ReaderStatusListener, ReaderStatus> {
        &self.status_listener
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

    /// The statuses that have changed since they were last read or told; marks them as told.
    pub(crate) fn take_changed(&self) -> Vec<ReaderStatus> {
        let (losses, rejections) = {
            let reader = self.reader.lock();
            (reader.losses(), reader.rejections())
        };
        let mut statuses = self.statuses();
        let Statuses { matched, incompatible, lost, rejected } = &mut *statuses;
        let (is_lost, is_rejected) = (lost.update(losses), rejected.update(rejections));
        let changed = [
            matched.has_changed().then(|| ReaderStatus::SubscriptionMatched(matched.tell())),
            (incompatible.total_change > 0).then(|| ReaderStatus::RequestedIncompatibleQos(incompatible.tell())),
            is_lost.then(|| ReaderStatus::SampleLost(lost.tell())),
            is_rejected.then(|| ReaderStatus::SampleRejected(rejected.tell())),
        ];
        changed.into_iter().flatten().collect()
    }

    pub(crate) fn note_matched(&self, writer: Guid) -> Option<ReaderStatus> {
        self.update_matched(|matched| matched.add(writer))
    }

    pub(crate) fn note_unmatched(&self, writer: Guid) -> Option<ReaderStatus> {
        self.update_matched(|matched| matched.remove(writer))
    }

    fn update_matched(&self, update: impl FnOnce(&mut Matched)) -> Option<ReaderStatus> {
        let mut statuses = self.statuses();
        update(&mut statuses.matched);
        // A status that a listener is told starts counting its changes anew (DDS 1.4 §2.2.4.1).
        self.status_listener.delivery()?;
        Some(ReaderStatus::SubscriptionMatched(statuses.matched.tell()))
    }

    pub(crate) fn note_incompatible(&self, writer: Guid, mismatches: Vec<Mismatch>) -> Option<ReaderStatus> {
        let mut statuses = self.statuses();
        statuses.incompatible.add(writer, mismatches);
        self.status_listener.delivery()?;
        Some(ReaderStatus::RequestedIncompatibleQos(statuses.incompatible.tell()))
    }

    pub(crate) fn note_lost(&self) -> Option<ReaderStatus> {
        let losses = self.reader.lock().losses();
        let mut statuses = self.statuses();
        let news = statuses.lost.update(losses);
        self.status_listener.delivery().filter(|_| news)?;
        Some(ReaderStatus::SampleLost(statuses.lost.tell()))
    }

    pub(crate) fn note_rejected(&self) -> Option<ReaderStatus> {
        let rejections = self.reader.lock().rejections();
        let mut statuses = self.statuses();
        let news = statuses.rejected.update(rejections);
        self.status_listener.delivery().filter(|_| news)?;
        Some(ReaderStatus::SampleRejected(statuses.rejected.tell()))
    }

    pub(super) fn tell_lost(&self) -> SampleLost {
        let losses = self.reader.lock().losses();
        let mut statuses = self.statuses();
        statuses.lost.update(losses);
        statuses.lost.tell()
    }

    pub(super) fn tell_rejected(&self) -> SampleRejected {
        let rejections = self.reader.lock().rejections();
        let mut statuses = self.statuses();
        statuses.rejected.update(rejections);
        statuses.rejected.tell()
    }

    pub(super) fn tell_matched(&self) -> Matched {
        self.statuses().matched.tell()
    }

    pub(super) fn tell_incompatible(&self) -> IncompatibleQos {
        self.statuses().incompatible.tell()
    }

    fn statuses(&self) -> MutexGuard<'_, Statuses> {
        self.statuses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
