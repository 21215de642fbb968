//! What a thread that receives waits for: sockets, other threads, a time, and changes of interfaces.

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use thalweg_base::time::Instant;

use crate::socket::UdpSocket;
use crate::sys::interfaces::Watcher;
use crate::sys::poll::{EVENTS_MAX, Epoll, EventFd, Ready, Timer};

/// Waits for everything that a receiving thread may be woken by, with one system call.
pub(super) struct Watch {
    epoll: Epoll,
    timer: Arc<Timer>,
    wake: Arc<EventFd>,
    interfaces: Option<Watcher>,
}

/// Why a wait returned; all false when its time had passed, or for no reason at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wakeup {
    /// Datagrams have arrived: receiving will find something.
    pub readable: bool,
    /// A [`Waker`] was used.
    pub woken: bool,
    /// A link or an address changed; only a participant's receiver is told so.
    pub interfaces_changed: bool,
}

impl Watch {
    pub(super) fn new<'a>(
        sockets: impl Iterator<Item = &'a UdpSocket>,
        interfaces: Option<Watcher>,
    ) -> io::Result<Watch> {
        let (epoll, timer, wake) = (Epoll::new()?, Arc::new(Timer::new()?), Arc::new(EventFd::new()?));
        for (token, socket) in sockets.enumerate() {
            epoll.add(socket.as_fd(), token as u64)?;
        }
        epoll.add(wake.as_fd(), WAKE_TOKEN)?;
        epoll.add(timer.as_fd(), TIMER_TOKEN)?;
        if let Some(interfaces) = &interfaces {
            epoll.add(interfaces.as_fd(), INTERFACES_TOKEN)?;
        }
        Ok(Watch { epoll, timer, wake, interfaces })
    }

    pub(super) fn waker(&self) -> Waker {
        Waker { event: Arc::clone(&self.wake), timer: Arc::clone(&self.timer) }
    }

    /// Makes the next waits end at `deadline` at the latest.
    pub(super) fn fire_by(&self, deadline: Instant) -> io::Result<()> {
        if deadline != Instant::NEVER {
            self.timer.fire_by(deadline.as_nanos())?;
        }
        Ok(())
    }

    /// Waits, at most `timeout`; hands what a socket has to tell to `handle`, with the socket's place.
    pub(super) fn wait(&self, timeout: Option<Duration>, mut handle: impl FnMut(usize, &Ready)) -> io::Result<Wakeup> {
        let mut ready = [Ready::default(); EVENTS_MAX];
        let count = self.epoll.wait(timeout, &mut ready)?;
        let mut wakeup = Wakeup::default();
        for event in &ready[..count] {
            match event.token {
                WAKE_TOKEN => wakeup.woken = true,
                TIMER_TOKEN => self.timer.has_fired(),
                INTERFACES_TOKEN => {
                    self.interfaces.iter().for_each(Watcher::drain);
                    wakeup.interfaces_changed = true;
                }
                place => {
                    handle(place as usize, event);
                    wakeup.readable |= event.readable;
                }
            }
        }
        Ok(wakeup)
    }
}

/// Ends a receiving thread's wait, from any other thread.
#[derive(Clone)]
pub struct Waker {
    event: Arc<EventFd>,
    timer: Arc<Timer>,
}

impl Waker {
    /// Lets the current or next wait return at once; one system call.
    pub fn wake(&self) {
        self.event.signal();
    }

    /// Lets the current wait return at `deadline` at the latest, without waking the thread before: one system call, none when
    /// the thread's timer fires by then anyway. It fires once; the thread that returns from the wait checks the deadlines anew.
    pub fn wake_by(&self, deadline: Instant) {
        if self.timer.fire_by(deadline.as_nanos()).is_err() {
            // The kernel refuses no time; should it ever, being early is the safe side.
            self.wake();
        }
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waker").finish_non_exhaustive()
    }
}

/// Tokens of descriptors that are not UDP sockets.
const WAKE_TOKEN: u64 = u64::MAX;
const INTERFACES_TOKEN: u64 = u64::MAX - 1;
const TIMER_TOKEN: u64 = u64::MAX - 2;
