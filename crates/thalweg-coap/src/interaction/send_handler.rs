//! The paper's send handler: brings the answers of the pools back to the loop that received the request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_transport::batch::Waker;

use super::handler_pool::Job;
use crate::message::Response;
use crate::scheduler::queue::Refused;

/// News of other threads for one loop. Bounded by the loop's own jobs: a job has one answer, a resource is noted once.
pub(super) struct SendHandler {
    inbox: Mutex<Inbox>,
    is_asleep: AtomicBool,
    waker: LoopWaker,
}

/// What ends the sleep of a loop.
pub(super) enum LoopWaker {
    /// Of a loop with a socket for datagrams.
    Datagrams(Waker),
    /// Of a loop with connections.
    Streams(mio::Waker),
}

impl From<mio::Waker> for LoopWaker {
    fn from(waker: mio::Waker) -> LoopWaker {
        LoopWaker::Streams(waker)
    }
}

impl From<Waker> for LoopWaker {
    fn from(waker: Waker) -> LoopWaker {
        LoopWaker::Datagrams(waker)
    }
}

/// News since the loop last took them.
#[derive(Default)]
pub(super) struct Inbox {
    pub(super) answers: Vec<(Job, Response)>,
    /// Jobs that waited too long.
    pub(super) expired: Vec<Refused<Job>>,
    /// Paths of resources that changed, each once.
    pub(super) changed: Vec<Arc<str>>,
}

impl Inbox {
    fn is_empty(&self) -> bool {
        self.answers.is_empty() && self.expired.is_empty() && self.changed.is_empty()
    }
}

impl SendHandler {
    pub(super) fn new(waker: impl Into<LoopWaker>) -> SendHandler {
        SendHandler { inbox: Mutex::default(), is_asleep: AtomicBool::new(false), waker: waker.into() }
    }

    /// Leaves an answer for the loop; it goes out with the next [`SendHandler::flush`] at the latest.
    pub(super) fn answer(&self, job: Job, response: Response) {
        self.inbox().answers.push((job, response));
    }

    /// Gives a job back that waited too long; the loop knows with the next [`SendHandler::flush`] at the latest.
    pub(super) fn expire(&self, refused: Refused<Job>) {
        self.inbox().expired.push(refused);
    }

    /// Tells the loop that a resource changed.
    pub(super) fn change(&self, path: &Arc<str>) {
        let mut inbox = self.inbox();
        if !inbox.changed.contains(path) {
            inbox.changed.push(Arc::clone(path));
        }
        drop(inbox);
        self.flush();
    }

    /// Wakes the loop if it sleeps: one system call, however many answers wait.
    pub(super) fn flush(&self) {
        if self.is_asleep.load(Ordering::SeqCst) && !self.inbox().is_empty() {
            self.wake();
        }
    }

    /// Wakes the loop in any case.
    pub(super) fn wake(&self) {
        if self.is_asleep.swap(false, Ordering::SeqCst) {
            match &self.waker {
                LoopWaker::Datagrams(waker) => waker.wake(),
                // An eventfd takes 2⁶⁴ signals.
                LoopWaker::Streams(waker) => drop(waker.wake()),
            }
        }
    }

    /// Exchanges the news for `empty`, whose memory is used again.
    pub(super) fn take(&self, empty: &mut Inbox) {
        std::mem::swap(&mut *self.inbox(), empty);
    }

    /// The loop is about to sleep; false when there is something to do instead.
    pub(super) fn may_sleep(&self) -> bool {
        self.is_asleep.store(true, Ordering::SeqCst);
        // A thread that added news before this line saw a loop that was awake.
        let may = self.inbox().is_empty();
        if !may {
            self.is_asleep.store(false, Ordering::SeqCst);
        }
        may
    }

    /// The loop is awake.
    pub(super) fn has_slept(&self) {
        self.is_asleep.store(false, Ordering::SeqCst);
    }

    fn inbox(&self) -> std::sync::MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
