//! Events that a loop with a batch socket waits for.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use thalweg_base::time::Instant;

use super::BatchSocket;
use crate::sys::poll::{EVENTS_MAX, Epoll, EventFd, Ready, Timer};

/// Waits for one socket, for other threads and for a time.
pub struct Watch {
    epoll: Epoll,
    timer: Timer,
    wake: Arc<EventFd>,
}

/// Why [`Watch::wait`] returned; all false when it was for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Woken {
    /// Datagrams arrived since the socket was last emptied.
    pub readable: bool,
    /// A [`BatchWaker`] was used.
    pub woken: bool,
    /// A deadline has passed, this one or an earlier one.
    pub due: bool,
}

impl Watch {
    /// Watches `socket`, also for datagrams that have arrived before.
    ///
    /// # Errors
    /// When the process may open no more descriptors.
    pub fn new(socket: &BatchSocket) -> io::Result<Watch> {
        let watch = Watch { epoll: Epoll::new()?, timer: Timer::new()?, wake: Arc::new(EventFd::new()?) };
        watch.epoll.add(socket.socket.as_fd(), SOCKET_TOKEN)?;
        watch.epoll.add(watch.timer.as_fd(), TIMER_TOKEN)?;
        watch.epoll.add(watch.wake.as_fd(), WAKE_TOKEN)?;
        Ok(watch)
    }

    /// Ends the wait from other threads.
    pub fn waker(&self) -> BatchWaker {
        BatchWaker(Arc::clone(&self.wake))
    }

    /// Waits until something happens or `deadline` has passed. Each arrival is reported once: the caller then reads until a
    /// batch comes back with room left.
    ///
    /// # Errors
    /// The system's error.
    pub fn wait(&self, deadline: Option<Instant>) -> io::Result<Woken> {
        if let Some(deadline) = deadline {
            self.timer.fire_by(deadline.as_nanos())?;
        }
        let mut ready = [Ready::default(); EVENTS_MAX];
        let count = self.epoll.wait(None, &mut ready)?;
        let mut woken = Woken::default();
        for event in &ready[..count] {
            match event.token {
                SOCKET_TOKEN => woken.readable = true,
                TIMER_TOKEN => {
                    self.timer.has_fired();
                    woken.due = true;
                }
                _ => woken.woken = true,
            }
        }
        Ok(woken)
    }
}

/// Ends a [`Watch::wait`].
#[derive(Clone)]
pub struct BatchWaker(Arc<EventFd>);

impl BatchWaker {
    /// Lets the current or the next wait return; one system call.
    pub fn wake(&self) {
        self.0.signal();
    }
}

const SOCKET_TOKEN: u64 = 0;
const TIMER_TOKEN: u64 = 1;
const WAKE_TOKEN: u64 = 2;
