//! epoll, eventfd and waiting for room in a send buffer.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use crate::earliest::Earliest;

/// Events asked for per call: more than the descriptors one participant has.
pub(crate) const EVENTS_MAX: usize = 16;

/// One descriptor's state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ready {
    /// The number given to [`Epoll::add`].
    pub(crate) token: u64,
    pub(crate) readable: bool,
    pub(crate) failed: bool,
}

/// An epoll instance; every descriptor is watched edge-triggered, so its owner must read until it is empty.
pub(crate) struct Epoll(OwnedFd);

impl Epoll {
    pub(crate) fn new() -> io::Result<Epoll> {
        // SAFETY: no pointers are involved.
        let descriptor = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        Ok(Epoll(owned(descriptor)?))
    }

    pub(crate) fn add(&self, descriptor: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        let events = (libc::EPOLLIN | libc::EPOLLERR | libc::EPOLLET) as u32;
        let mut event = libc::epoll_event { events, u64: token };
        let operation = libc::EPOLL_CTL_ADD;
        // SAFETY: `event` is live for the call; both descriptors are open because they are owned or borrowed.
        let result = unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, descriptor.as_raw_fd(), &raw mut event) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Waits until something is ready or `timeout` passed (`None`: for ever); returns how many entries of `ready` it set.
    pub(crate) fn wait(&self, timeout: Option<Duration>, ready: &mut [Ready; EVENTS_MAX]) -> io::Result<usize> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX];
        let count = match self.wait_nanos(timeout, &mut events) {
            // Linux before 5.11 knows no nanosecond timeout.
            Err(error) if error.raw_os_error().is_some_and(lacks_call) => self.wait_millis(timeout, &mut events)?,
            other => other?,
        };
        for (event, ready) in events.iter().zip(ready.iter_mut()).take(count) {
            let flags = event.events as i32;
            *ready = Ready {
                token: event.u64,
                readable: flags & libc::EPOLLIN != 0,
                failed: flags & (libc::EPOLLERR | libc::EPOLLHUP) != 0,
            };
        }
        Ok(count)
    }

    fn wait_nanos(&self, timeout: Option<Duration>, events: &mut [libc::epoll_event; EVENTS_MAX]) -> io::Result<usize> {
        let timeout = timeout.map(timespec);
        let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: `events` has room for EVENTS_MAX entries; `timeout` is null or points to a live timespec; the signal
        // mask is null.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0.as_raw_fd(),
                events.as_mut_ptr(),
                EVENTS_MAX,
                timeout,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        count_or_error(count)
    }

    fn wait_millis(
        &self,
        timeout: Option<Duration>,
        events: &mut [libc::epoll_event; EVENTS_MAX],
    ) -> io::Result<usize> {
        let millis = timeout.map_or(-1, |timeout| {
            let rounded_up = timeout.as_nanos().div_ceil(1_000_000);
            i32::try_from(rounded_up).unwrap_or(i32::MAX)
        });
        // SAFETY: `events` has room for EVENTS_MAX entries.
        let count = unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), EVENTS_MAX as i32, millis) };
        count_or_error(count.into())
    }
}

/// A timer that wakes the thread that watches it; any thread may set it.
///
/// It stays armed over many waits: a time-out of `epoll_wait` would program the clock's hardware at each of them, which costs
/// as much as a small system call.
pub(crate) struct Timer {
    descriptor: OwnedFd,
    /// When it fires, by `CLOCK_MONOTONIC`.
    earliest: Earliest,
}

impl Timer {
    pub(crate) fn new() -> io::Result<Timer> {
        // SAFETY: no pointers are involved.
        let descriptor = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) };
        Ok(Timer { descriptor: owned(descriptor)?, earliest: Earliest::new() })
    }

    /// Makes sure that it fires at `deadline` or earlier; a system call, which is what true means, only when it would fire later.
    pub(crate) fn fire_by(&self, deadline: u64) -> io::Result<bool> {
        self.earliest.fire_by(deadline, |at| self.set(at))
    }

    fn set(&self, deadline: u64) -> io::Result<()> {
        let value = timespec(Duration::from_nanos(deadline.max(1)));
        let once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let specification = libc::itimerspec { it_interval: once, it_value: value };
        let (timer, flags) = (self.descriptor.as_raw_fd(), libc::TFD_TIMER_ABSTIME);
        // SAFETY: `specification` is live for the call; the old value is not requested.
        let result = unsafe { libc::timerfd_settime(timer, flags, &raw const specification, std::ptr::null_mut()) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// It has fired. Watched edge-triggered it needs no reading: arming it again resets its count.
    pub(crate) fn has_fired(&self) {
        self.earliest.has_fired();
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// A counter that wakes the thread that watches it.
pub(crate) struct EventFd(OwnedFd);

impl EventFd {
    pub(crate) fn new() -> io::Result<EventFd> {
        // SAFETY: no pointers are involved.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        Ok(EventFd(owned(descriptor)?))
    }

    /// Raises the counter; watched edge-triggered, it needs no reading back (2⁶⁴ wake-ups outlive every host).
    pub(crate) fn signal(&self) {
        let one = 1u64;
        // SAFETY: writes the eight bytes of `one`, live for the call. It can only fail when the counter is full, and
        // then the watcher has been woken already.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
    }

    /// Sets the counter to zero, for a watcher that is not edge-triggered.
    pub(crate) fn clear(&self) {
        let mut count = 0u64;
        // SAFETY: reads eight bytes into `count`, live for the call. It can only fail because the counter is zero already.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whether the error `errno` says that there is no such system call: the kernel's, or that of a sandbox which refuses calls that it
/// does not know.
fn lacks_call(errno: i32) -> bool {
    matches!(errno, libc::ENOSYS | libc::EPERM)
}

/// Waits until `socket` takes datagrams again, or until a signal comes, after which it may take none; false when `timeout` passed
/// first.
pub(crate) fn wait_writable(socket: BorrowedFd<'_>, timeout: Duration) -> bool {
    let mut entry = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    let timeout = timespec(timeout);
    // SAFETY: one live pollfd and a live timespec; the signal mask is null.
    let ready = unsafe { libc::ppoll(&raw mut entry, 1, &raw const timeout, std::ptr::null()) };
    ready > 0 || (ready < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted)
}

fn owned(descriptor: libc::c_int) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn count_or_error(count: libc::c_long) -> io::Result<usize> {
    match usize::try_from(count) {
        Ok(count) => Ok(count.min(EVENTS_MAX)),
        Err(_) => {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted { Ok(0) } else { Err(error) }
        }
    }
}

fn timespec(duration: Duration) -> libc::timespec {
    // Longer waits are cut to about 68 years: every caller looks at its deadline again after waking.
    let seconds = duration.as_secs().min(i32::MAX as u64);
    libc::timespec { tv_sec: seconds as libc::time_t, tv_nsec: duration.subsec_nanos() as _ }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::os::unix::thread::JoinHandleExt;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_call_is_missing_in_old_kernels_and_in_sandboxes() {
        assert_eq!([libc::ENOSYS, libc::EPERM, libc::EINTR, libc::EBADF].map(lacks_call), [true, true, false, false]);
    }

    extern "C" fn ignore(_signal: libc::c_int) {}

    #[test]
    fn a_signal_does_not_count_as_the_end_of_the_time_to_wait_for_room() {
        let timeout = Duration::from_secs(2);
        // SAFETY: the handler does nothing, which any thread may do at any time, and lives as long as the program.
        unsafe { libc::signal(libc::SIGUSR1, ignore as *const () as libc::sighandler_t) };
        let (full, _peer) = UnixStream::pair().unwrap();
        full.set_nonblocking(true).unwrap();
        while (&full).write_all(&[0; 4096]).is_ok() {}
        let waiting = std::thread::spawn(move || {
            let start = Instant::now();
            (wait_writable(full.as_fd(), timeout), start.elapsed())
        });
        while !waiting.is_finished() {
            // SAFETY: a thread that has not been joined may be named, even one that has ended.
            unsafe { libc::pthread_kill(waiting.as_pthread_t(), libc::SIGUSR1) };
            std::thread::sleep(Duration::from_millis(10));
        }
        let (may_have_room, waited) = waiting.join().unwrap();
        assert!(may_have_room || waited >= timeout, "given up after {waited:?}");
    }

    #[test]
    fn an_event_is_readable_from_its_signal_until_it_is_cleared() {
        let event = EventFd::new().unwrap();
        let readable = || {
            // Watched anew, since the watch is edge-triggered.
            let epoll = Epoll::new().unwrap();
            epoll.add(event.as_fd(), 1).unwrap();
            epoll.wait(Some(Duration::ZERO), &mut [Ready::default(); EVENTS_MAX]).unwrap() > 0
        };
        event.clear();
        assert!(!readable(), "clearing what is clear does not block");
        event.signal();
        event.signal();
        assert!(readable());
        event.clear();
        assert!(!readable());
    }

    #[test]
    fn a_timer_is_set_only_to_fire_earlier_or_again() {
        let timer = Timer::new().unwrap();
        let far = u64::MAX >> 8;
        assert_eq!(
            [far, far, far + 1, far - 1, far].map(|at| timer.fire_by(at).unwrap()),
            [true, false, false, true, false]
        );
        timer.has_fired();
        assert!(timer.fire_by(far).unwrap());
    }

    #[test]
    fn of_many_threads_the_earliest_deadline_wins() {
        let (timer, epoll) = (Timer::new().unwrap(), Epoll::new().unwrap());
        epoll.add(timer.as_fd(), 1).unwrap();
        let mut ready = [Ready::default(); EVENTS_MAX];
        for _ in 0..200 {
            std::thread::scope(|scope| {
                for hours in 1..4 {
                    let timer = &timer;
                    scope.spawn(move || timer.fire_by(u64::MAX >> hours));
                }
                scope.spawn(|| timer.fire_by(1));
            });
            assert_eq!(
                epoll.wait(Some(Duration::from_secs(5)), &mut ready).unwrap(),
                1,
                "a later deadline replaced it"
            );
            timer.has_fired();
        }
    }
}
