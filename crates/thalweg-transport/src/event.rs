//! A flag that programs wait for with `poll` or `epoll`, beside their own descriptors.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::sys::poll::EventFd;

/// A descriptor that is readable from [`Event::signal`] until [`Event::clear`].
pub struct Event(EventFd);

impl Event {
    /// A descriptor that is not readable.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn new() -> io::Result<Event> {
        EventFd::new().map(Event)
    }

    /// Makes the descriptor readable.
    pub fn signal(&self) {
        self.0.signal();
    }

    /// Makes it unreadable.
    pub fn clear(&self) {
        self.0.clear();
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
