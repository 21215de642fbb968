//! Listeners: callbacks of the application, and the thread that runs them.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::publication::WriterCell;
use crate::status::{ReaderStatus, WriterStatus};
use crate::subscription::ReaderCell;

/// Which thread runs a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// A thread of the participant that does nothing else. The default: a listener may take its time, and only delays
    /// other listeners of its participant.
    #[default]
    Thread,
    /// The participant's I/O thread, as soon as the data is there: the lowest latency, one wake-up less. The listener must
    /// be quick, since nothing is received meanwhile, and it cannot wait: a write that finds its history full fails at once
    /// with [`ErrorKind::Timeout`](crate::ErrorKind::Timeout), because the acknowledgements that would free it are
    /// handled by this very thread; and calls that wait return at once.
    Inline,
}

/// One callback of an endpoint, possibly none.
pub(crate) struct ListenerSlot<F: ?Sized>(Mutex<Slot<F>>);

struct Slot<F: ?Sized> {
    callback: Option<Box<F>>,
    delivery: Option<Delivery>,
    /// Counts replacements, so that a callback that is replaced while it runs is not put back.
    generation: u64,
}

impl<F: ?Sized> Default for ListenerSlot<F> {
    fn default() -> Self {
        ListenerSlot(Mutex::new(Slot { callback: None, delivery: None, generation: 0 }))
    }
}

impl<F: ?Sized> ListenerSlot<F> {
    /// Who runs the callback; `None` without one.
    pub(crate) fn delivery(&self) -> Option<Delivery> {
        self.slot().delivery
    }

    /// Installs a callback in place of the present one.
    pub(crate) fn set(&self, delivery: Delivery, callback: Box<F>) {
        let mut slot = self.slot();
        slot.generation += 1;
        slot.delivery = Some(delivery);
        // What is replaced may be the application's last reference to something; it is dropped without the lock.
        let replaced = slot.callback.replace(callback);
        drop(slot);
        drop(replaced);
    }

    /// Removes the callback. A call under way on another thread ends by itself.
    pub(crate) fn clear(&self) {
        let mut slot = self.slot();
        slot.generation += 1;
        slot.delivery = None;
        let removed = slot.callback.take();
        drop(slot);
        drop(removed);
    }

    /// Runs the callback without a lock held; a panic in it removes it and is logged.
    pub(crate) fn call(&self, invoke: impl FnOnce(&mut F)) {
        self.run(self.slot(), invoke);
    }

    /// As [`ListenerSlot::call`], if the callback is an inline one. Who runs it; `None` without one.
    pub(crate) fn call_inline(&self, invoke: impl FnOnce(&mut F)) -> Option<Delivery> {
        let slot = self.slot();
        let delivery = slot.delivery;
        if delivery == Some(Delivery::Inline) {
            self.run(slot, invoke);
        }
        delivery
    }

    fn run(&self, mut slot: MutexGuard<'_, Slot<F>>, invoke: impl FnOnce(&mut F)) {
        let (generation, taken) = (slot.generation, slot.callback.take());
        drop(slot);
        let Some(mut callback) = taken else { return };
        let outcome = catch_unwind(AssertUnwindSafe(|| invoke(&mut callback)));
        let mut slot = self.slot();
        let current = slot.generation == generation;
        if outcome.is_err() {
            tracing::error!("a listener panicked and was removed");
            slot.delivery = slot.delivery.filter(|_| !current);
        } else if current {
            slot.callback = Some(callback);
        }
    }

    fn slot(&self) -> MutexGuard<'_, Slot<F>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something for the listener thread.
pub(super) enum Notification {
    /// The reader has data; at most one of these is queued for each reader.
    Data(Arc<ReaderCell>),
    WriterStatus(Arc<WriterCell>, WriterStatus),
    ReaderStatus(Arc<ReaderCell>, ReaderStatus),
}

/// The thread that runs listeners, started with the first one.
#[derive(Default)]
pub(crate) struct ListenerThread(Arc<Queue>);

#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<Notification>,
    thread: Option<JoinHandle<()>>,
    stopping: bool,
}

/// Status notifications that wait; further ones are dropped, the statuses themselves stay right. Chosen to hold one for
/// each pair of 64 endpoints.
const STATUS_BACKLOG_MAX: usize = 4096;

impl ListenerThread {
    /// Starts the thread unless it runs.
    pub(crate) fn start(&self) -> std::io::Result<()> {
        let mut state = self.0.state();
        if state.thread.is_none() && !state.stopping {
            let queue = Arc::clone(&self.0);
            let builder = thread::Builder::new().name("thalweg-listen".into());
            state.thread = Some(builder.spawn(move || queue.run())?);
        }
        Ok(())
    }

    pub(super) fn push(&self, notification: Notification) {
        let mut state = self.0.state();
        if state.waiting.len() < STATUS_BACKLOG_MAX || matches!(notification, Notification::Data(_)) {
            state.waiting.push_back(notification);
            drop(state);
            self.0.changed.notify_one();
        }
    }

    /// Ends the thread after what is queued; the caller joins it.
    pub(super) fn stop(&self) -> Option<JoinHandle<()>> {
        let mut state = self.0.state();
        state.stopping = true;
        self.0.changed.notify_one();
        state.thread.take()
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        while let Some(notification) = self.next() {
            match notification {
                Notification::Data(cell) => {
                    cell.clear_pending();
                    cell.call_data_listener();
                }
                Notification::WriterStatus(cell, status) => cell.status_listener().call(|listener| listener(status)),
                Notification::ReaderStatus(cell, status) => cell.status_listener().call(|listener| listener(status)),
            }
        }
    }

    fn next(&self) -> Option<Notification> {
        let mut state = self.state();
        loop {
            if let Some(notification) = state.waiting.pop_front() {
                return Some(notification);
            }
            if state.stopping {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
