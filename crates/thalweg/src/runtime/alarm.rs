//! Requests of application threads to the I/O thread for earlier deadlines, without needless wake-ups.

use std::sync::PoisonError;

use thalweg_rtps::time::Instant;
use thalweg_rtps::types::EntityId;
use thalweg_transport::udp::Waker;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// The end of the sleep of a thread.
pub(crate) trait Wake {
    /// Ends the present or next sleep.
    fn wake(&self);

    /// Lets the present sleep end at `deadline` at the latest.
    fn wake_by(&self, deadline: Instant);
}

impl Wake for Waker {
    fn wake(&self) {
        Waker::wake(self);
    }

    fn wake_by(&self, deadline: Instant) {
        Waker::wake_by(self, deadline);
    }
}

/// Deadlines for the I/O thread, and the end of its sleep.
///
/// The I/O thread publishes the end of its sleep and then checks for requests once more; an application thread files its request
/// and then reads the end of the sleep. With a fence between the two steps of each, at least one sees the other.
pub(crate) struct Alarm<W = Waker> {
    waker: W,
    /// Nanoseconds of the instant at which the I/O thread wakes by itself; 0 while it is awake.
    sleeps_until: AtomicU64,
    any: AtomicBool,
    requests: Mutex<Vec<(EntityId, Instant)>>,
}

impl<W: Wake> Alarm<W> {
    pub(crate) fn new(waker: W) -> Alarm<W> {
        Alarm { waker, sleeps_until: AtomicU64::new(0), any: AtomicBool::new(false), requests: Mutex::default() }
    }

    /// Requests that the I/O thread handles `entity` at `at`. It makes a system call only when the I/O thread would sleep longer,
    /// and does not wake it before.
    pub(crate) fn request(&self, entity: EntityId, at: Instant) {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push((entity, at));
        self.any.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        if at.as_nanos() < self.sleeps_until.load(Ordering::Relaxed) {
            self.waker.wake_by(at);
        }
    }

    /// Ends the I/O thread's present or next sleep.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    /// Moves the requests filed since the last call to the end of `into`.
    pub(crate) fn take_requests(&self, into: &mut Vec<(EntityId, Instant)>) {
        if self.has_requests() && self.any.swap(false, Ordering::Acquire) {
            into.append(&mut self.requests.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Whether there are requests to take.
    pub(crate) fn has_requests(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Notes that the I/O thread is about to sleep until `until`; false when it must not, because a request has come.
    pub(crate) fn fall_asleep(&self, until: Instant) -> bool {
        self.sleeps_until.store(until.as_nanos(), Ordering::Relaxed);
        fence(Ordering::SeqCst);
        !self.any.load(Ordering::Relaxed)
    }

    /// Notes that the I/O thread is awake, so that requests need no wake-up.
    pub(crate) fn awake(&self) {
        // A thread that sees this late makes a needless wake-up; the order matters only before a sleep.
        self.sleeps_until.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;
    use thalweg_rtps::types::EntityId;
    use thalweg_transport::clock;
    use thalweg_transport::udp::{self, UdpConfig};

    /// Ends the sleeper, also when an assertion fails.
    struct End<'a>(&'a Alarm);

    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.request(EntityId::UNKNOWN, Instant::NEVER);
            self.0.wake();
        }
    }

    /// Files `rounds` requests while another thread sleeps for an hour at a time. Returns how late that thread saw each, shortest
    /// first, and how often it waited.
    fn lateness(rounds: usize, ahead: Duration, requests: usize) -> (Vec<Duration>, u64) {
        let config = UdpConfig { domain_id: 229, multicast: false, ipv6: false, ..UdpConfig::default() };
        let mut receiver = udp::open(&config).expect("sockets").receiver;
        let alarm = Alarm::new(receiver.waker());
        let (seen, told) = mpsc::channel();
        let mut late = Vec::new();
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                let mut requests = Vec::new();
                while !requests.iter().any(|(_, at)| *at == Instant::NEVER) {
                    let until = clock::now() + Duration::from_secs(3600);
                    let sleeps = alarm.fall_asleep(until);
                    if sleeps {
                        receiver.wait_until(until).expect("epoll works");
                    }
                    alarm.awake();
                    let now = clock::now();
                    requests.clear();
                    alarm.take_requests(&mut requests);
                    requests.iter().for_each(|(_, at)| seen.send((now, *at, sleeps)).expect("the other end lives"));
                }
                receiver.counts().waits
            });
            let end = End(&alarm);
            for _ in 0..rounds {
                std::thread::sleep(Duration::from_millis(1));
                let at = clock::now() + ahead;
                for later in 0..requests {
                    alarm.request(EntityId::UNKNOWN, at + Duration::from_nanos(later as u64));
                }
                let (now, _, slept) = told.recv().expect("the sleeper lives");
                // On a busy machine the sleeper may not have come to sleep: then it sees the request at once.
                assert!(now >= at || !slept, "woken before the deadline");
                for _ in 1..requests {
                    told.recv().expect("the sleeper lives");
                }
                late.push(now.since(at));
            }
            drop(end);
            late.sort();
            (late, sleeper.join().expect("the sleeper ends"))
        })
    }

    #[test]
    fn a_deadline_ends_the_sleep_in_time_and_only_once() {
        let (late, waits) = lateness(100, Duration::from_micros(50), 20);
        println!("late by {:?}, at worst {:?}; {waits} waits", late[50], late[99]);
        assert!(late[50] < Duration::from_millis(5), "half of the deadlines were missed by {:?}", late[50]);
        // One for each round and the last; a wait that ends while the requests are being filed costs another one.
        assert!(waits <= 100 + 30, "{waits} waits for 100 deadlines");
    }
}
