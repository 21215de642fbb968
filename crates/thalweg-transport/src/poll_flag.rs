//! A flag that programs wait for with `poll` or `epoll`, beside their own descriptors.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::sys::poll::EventFd;

/// A descriptor that is readable from [`PollFlag::signal`] until [`PollFlag::clear`].
pub struct PollFlag(EventFd);

impl PollFlag {
    /// A descriptor that is not readable.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn new() -> io::Result<PollFlag> {
        EventFd::new().map(PollFlag)
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

impl AsFd for PollFlag {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
