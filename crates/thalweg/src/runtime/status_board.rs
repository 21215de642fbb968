//! The statuses of one endpoint and its listener to them.

use std::sync::PoisonError;

use thalweg_rtps::status::{Status, Told};

use super::{Delivery, ListenerSlot, STATUS_BACKLOG_MAX};
use crate::sync::{Mutex, MutexGuard};

/// The statuses `S` of an endpoint, and the listener that is told of them as news `N`.
///
/// A status that a listener is told of, that the application reads or that the runtime takes starts counting its changes anew (DDS
/// 1.4 §2.2.4.1). News come to the listener in the order of the changes: they are added to its slot under the lock of the statuses,
/// under which no callback runs.
pub(crate) struct StatusBoard<S, F: ?Sized, N> {
    /// Locked before the slot of the listener, never while that is locked.
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

    /// Changes a status, and adds what has changed to the news of the listener, if there is one. Returns the thread to ask to run it,
    /// as [`ListenerSlot::add`] does.
    pub(crate) fn note<T: Told>(
        &self,
        status: impl FnOnce(&mut S) -> &mut Status<T>,
        change: impl FnOnce(&mut T),
        news: impl FnOnce(T) -> N,
    ) -> Option<Delivery> {
        let mut statuses = self.statuses();
        let status = status(&mut statuses);
        status.change(change);
        self.listener.delivery()?;
        let told = status.tell_changed()?;
        self.listener.add(news(told))
    }

    /// Adds to the news of the listener what `changed` takes of the statuses. Returns the thread to ask to run it, as
    /// [`ListenerSlot::add`] does.
    pub(crate) fn announce(
        &self,
        mut statuses: MutexGuard<'_, S>,
        changed: impl FnOnce(&mut S) -> Vec<N>,
    ) -> Option<Delivery> {
        // At most one of them asks a thread: that call is not made before the caller has passed the request on.
        let add = |asked: Option<Delivery>, news| self.listener.add(news).or(asked);
        changed(&mut statuses).into_iter().fold(None, add)
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

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    type Board = StatusBoard<Status<u64>, dyn FnMut(u64) + Send, u64>;

    fn count_to(board: &Board, total: u64) -> Option<Delivery> {
        board.note(|status| status, |count| *count = total, |growth| growth)
    }

    #[test]
    fn a_new_listener_hears_first_what_was_there_before_it() {
        let (board, heard) = (Board::new(), Arc::new(Mutex::new(Vec::new())));
        assert_eq!(count_to(&board, 1), None, "nobody listens");
        let hears = Arc::clone(&heard);
        board.listener().set(Delivery::Thread, Box::new(move |growth| hears.lock().unwrap().push(growth)));
        thread::scope(|scope| {
            let asked = board.announce(board.statuses(), |status| {
                let taken = status.tell_changed().into_iter().collect();
                let counting = scope.spawn(|| count_to(&board, 3));
                thread::sleep(Duration::from_millis(20));
                assert!(!counting.is_finished(), "what happens meanwhile waits until this is added");
                taken
            });
            assert_eq!(asked, Some(Delivery::Thread));
        });
        while board.listener().run(Delivery::Thread, |listener, growth| listener(growth)).is_some() {}
        assert_eq!(*heard.lock().unwrap(), [1, 2]);
    }
}
