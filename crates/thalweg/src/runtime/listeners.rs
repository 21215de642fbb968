//! Listeners: the threads that run callbacks of the application, and their pending calls.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};

use super::{ListenerSlot, RuntimeState};
use crate::publication::WriterCell;
use crate::status::ParticipantStatus;
use crate::subscription::ReaderCell;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard};

/// The thread that runs a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// A thread of the participant that does nothing else. The default: a listener may take its time, and only delays
    /// other listeners of its participant.
    #[default]
    Thread,
    /// The participant's I/O thread, as soon as the data has arrived: one wake-up less, and thus the lowest latency. The listener
    /// must be quick, since nothing is received meanwhile, and it cannot wait: a write that finds its history full fails at once
    /// with [`ErrorKind::Timeout`](crate::ErrorKind::Timeout), because the acknowledgements that would free it are handled by this
    /// very thread; and calls that wait return at once.
    Inline,
}

/// A listener that has news.
pub(crate) trait Call {
    /// Runs the listener with its oldest news when it belongs to `thread`, which is the caller. Returns the thread to ask next, if
    /// any.
    fn run(&self, thread: Delivery) -> Option<Delivery>;
}

/// A listener of an endpoint.
pub(crate) enum Notification {
    Data(Arc<ReaderCell>),
    WriterStatus(Arc<WriterCell>),
    ReaderStatus(Arc<ReaderCell>),
    ParticipantStatus(Arc<ParticipantSlot>),
}

/// Callback for a participant's news.
pub(crate) type ParticipantStatusListener = dyn FnMut(ParticipantStatus) + Send;
/// The place of a participant's listener.
pub(crate) type ParticipantSlot = ListenerSlot<ParticipantStatusListener, ParticipantStatus>;

impl Call for Notification {
    fn run(&self, thread: Delivery) -> Option<Delivery> {
        match self {
            Notification::Data(cell) => cell.data_listener().run(thread, |listener, ()| listener(cell)),
            Notification::WriterStatus(cell) => cell.status_listener().run(thread, |listener, status| listener(status)),
            Notification::ParticipantStatus(slot) => slot.run(thread, |listener, status| listener(status)),
            Notification::ReaderStatus(cell) => cell.status_listener().run(thread, |listener, status| listener(status)),
        }
    }
}

/// Most status changes that wait for one listener. Beyond that, the oldest are not delivered, while the statuses themselves stay
/// right. Chosen to hold one for each of a few thousand peers.
pub(crate) const STATUS_BACKLOG_MAX: usize = 4096;

/// Calls requested from the listener thread and the I/O thread; at most one of each listener.
pub(crate) struct Agenda<C> {
    listener_thread: Mutex<Queue<C>>,
    changed: Condvar,
    io_thread: Mutex<Vec<C>>,
    any_for_io_thread: AtomicBool,
}

struct Queue<C> {
    calls: VecDeque<C>,
    stopping: bool,
}

impl<C> Default for Agenda<C> {
    fn default() -> Self {
        Agenda {
            listener_thread: Mutex::new(Queue { calls: VecDeque::new(), stopping: false }),
            changed: Condvar::new(),
            io_thread: Mutex::new(Vec::new()),
            any_for_io_thread: AtomicBool::new(false),
        }
    }
}

impl<C: Call> Agenda<C> {
    /// Requests a call from `thread`. True when that is the I/O thread, which the caller is to wake.
    #[must_use]
    pub(crate) fn ask(&self, thread: Delivery, call: C) -> bool {
        match thread {
            Delivery::Thread => {
                self.queue().calls.push_back(call);
                self.changed.notify_one();
                false
            }
            Delivery::Inline => {
                self.io_thread.lock().unwrap_or_else(PoisonError::into_inner).push(call);
                self.any_for_io_thread.store(true, Ordering::Release);
                true
            }
        }
    }

    /// Repeats a call on the I/O thread, which is the caller, as long as `next` names this thread, and then requests it from the
    /// other thread.
    pub(crate) fn go_on(&self, mut next: Option<Delivery>, call: C) {
        while next == Some(Delivery::Inline) {
            next = call.run(Delivery::Inline);
        }
        if let Some(thread) = next {
            _ = self.ask(thread, call);
        }
    }

    /// Makes the calls requested from the I/O thread, which is the caller.
    pub(crate) fn run_inline(&self) {
        if !self.any_for_io_thread.load(Ordering::Relaxed) || !self.any_for_io_thread.swap(false, Ordering::Acquire) {
            return;
        }
        let calls = std::mem::take(&mut *self.io_thread.lock().unwrap_or_else(PoisonError::into_inner));
        calls.into_iter().for_each(|call| self.go_on(Some(Delivery::Inline), call));
    }

    /// Makes the calls requested from the listener thread, which is the caller, until [`Agenda::stop`].
    pub(crate) fn run_listeners(&self, wake_io_thread: impl Fn()) {
        while let Some(call) = self.next() {
            if let Some(thread) = call.run(Delivery::Thread)
                && self.ask(thread, call)
            {
                wake_io_thread();
            }
        }
    }

    /// Ends the listener thread after its requested calls.
    pub(crate) fn stop(&self) {
        self.queue().stopping = true;
        self.changed.notify_one();
    }

    fn next(&self) -> Option<C> {
        let mut queue = self.queue();
        loop {
            if let Some(call) = queue.calls.pop_front() {
                return Some(call);
            }
            if queue.stopping {
                return None;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue<C>> {
        self.listener_thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that runs listeners, started with the first one.
#[derive(Default)]
pub(crate) struct ListenerThread(std::sync::Mutex<Option<JoinHandle<()>>>);

impl ListenerThread {
    /// Starts the thread unless it runs.
    pub(crate) fn start(&self, state: &Arc<RuntimeState>) -> std::io::Result<()> {
        let mut thread = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let state = Arc::clone(state);
            let run = move || state.agenda.run_listeners(|| state.alarm.wake());
            *thread = Some(thread::Builder::new().name("thalweg-listen".into()).spawn(run)?);
        }
        Ok(())
    }

    /// The thread, for the caller to join.
    pub(super) fn take(&self) -> Option<JoinHandle<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
