//! The statuses of one endpoint and its listener to them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use thalweg_rtps::status::{Status, Told};

use super::{ListenerSlot, STATUS_BACKLOG_MAX};

/// The statuses `S` of an endpoint, and the listener that is told of them as news `N`.
///
/// A status that a listener is told of, that the application reads or that the runtime takes starts counting its changes anew (DDS
/// 1.4 §2.2.4.1).
pub(crate) struct StatusBoard<S, F: ?Sized, N> {
    statuses: Mutex<S>,
    listener: ListenerSlot<F, N>,
}

impl<S: Default, F: ?Sized, N> StatusBoard<S, F, N> {
    pub(crate) fn new() -> Self {
        StatusBoard { statuses: Mutex::default(), listener: ListenerSlot::new(STATUS_BACKLOG_MAX) }
    }

    pub(crate) fn listener(&self) -> &ListenerSlot<F, N> {
        &self.listener
    }

    pub(crate) fn statuses(&self) -> MutexGuard<'_, S> {
        self.statuses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes a status. Returns the news for the listener, if there is one and the status has changed.
    pub(crate) fn note<T: Told>(
        &self,
        status: impl FnOnce(&mut S) -> &mut Status<T>,
        change: impl FnOnce(&mut T),
        news: impl FnOnce(T) -> N,
    ) -> Option<N> {
        let mut statuses = self.statuses();
        let status = status(&mut statuses);
        status.change(change);
        self.listener.delivery()?;
        status.tell_changed().map(news)
    }

    /// Brings a status up to date and tells it.
    pub(crate) fn tell<T: Told>(
        &self,
        status: impl FnOnce(&mut S) -> &mut Status<T>,
        change: impl FnOnce(&mut T),
    ) -> T {
        let mut statuses = self.statuses();
        let status = status(&mut statuses);
        status.change(change);
        status.tell()
    }
}
