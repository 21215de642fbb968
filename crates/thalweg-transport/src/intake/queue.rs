//! What is known of one socket's queue, and whether asking it is worth a system call.

use std::sync::Arc;

use crate::socket::UdpSocket;

/// A socket and the state of its queue.
pub(super) struct Queue {
    pub(super) socket: Arc<UdpSocket>,
    /// Something may be queued: told by epoll, or guessed because traffic flows.
    is_ready: bool,
    /// Datagrams that it refused since it was opened, as the kernel told last (wraps).
    kernel_drops: u32,
    guessing: Guessing,
    /// It is read although the poller reported nothing.
    is_speculative: bool,
    /// Number of such reads in a row that may find nothing; successful ones raise it.
    credit: u32,
    /// Polls since the last datagram.
    idle_polls: u32,
}

/// Whether a socket is asked because traffic flows, although nobody told that something is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guessing {
    /// Where one sender streams, more is there by the time a batch is processed, and asking is cheaper than waiting first.
    Allowed,
    /// Where many peers ask and wait for their answers, a third of the guesses are in vain and cost more calls than they save.
    Never,
}

impl Queue {
    pub(super) fn new(socket: Arc<UdpSocket>, guessing: Guessing) -> Queue {
        Queue {
            socket,
            is_ready: true,
            kernel_drops: 0,
            guessing,
            is_speculative: false,
            credit: 0,
            idle_polls: IDLE_POLLS_MAX,
        }
    }

    /// Whether asking is worth a system call.
    pub(super) fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Epoll has told that something is queued.
    pub(super) fn mark_ready(&mut self) {
        self.is_ready = true;
    }

    /// A thread that polls comes by: a socket that had datagrams lately is asked.
    pub(super) fn mark_polled(&mut self) {
        self.idle_polls = self.idle_polls.saturating_add(1);
        self.is_ready |= self.idle_polls < IDLE_POLLS_MAX;
    }

    /// Takes into account that `count` messages came of `ask` that were asked for.
    pub(super) fn handle_messages(&mut self, count: usize, ask: usize) {
        if self.guessing == Guessing::Allowed {
            if self.is_speculative {
                self.credit = (self.credit + 1).min(CREDIT_MAX);
            } else if count >= BURST {
                self.credit = self.credit.max(1);
            }
        }
        // A full call has left something behind.
        self.is_speculative = count < ask;
        self.is_ready = count == ask || self.credit > 0;
        self.idle_polls = 0;
    }

    /// Takes into account that nothing was queued.
    pub(super) fn handle_emptiness(&mut self) {
        if self.is_speculative {
            self.credit = self.credit.saturating_sub(1);
        }
        self.is_speculative = false;
        self.is_ready = false;
    }

    /// Takes the kernel's count of refused datagrams into account, which comes with each datagram once there were any; returns how
    /// many are new.
    pub(super) fn count_drops(&mut self, told: Option<u32>) -> u32 {
        told.map_or(0, |told| told.wrapping_sub(std::mem::replace(&mut self.kernel_drops, told)))
    }
}

/// Messages in one call that suggest a stream.
const BURST: usize = 3;
/// Most questions in vain before a socket's traffic no longer counts as a stream.
const CREDIT_MAX: u32 = 4;
/// Polls after which a socket without datagrams is asked only when epoll names it: about a millisecond's worth.
const IDLE_POLLS_MAX: u32 = 4096;
