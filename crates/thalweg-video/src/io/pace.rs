//! Waiting for the times at which packets are due, while RTCP is heard.

use std::io;
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_transport::clock;

use super::socket::MediaReceiver;
use crate::sender::Resend;

/// The waits of a paced sender, and how late it woke from them.
#[derive(Debug)]
pub(super) struct Waits {
    /// When RTCP was last asked for without being told of it.
    asked: Instant,
    /// How long it waits to be read at most while packets leave.
    control_delay: Duration,
    lateness: Lateness,
}

/// How late waits for a packet's time ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Waits.
    pub waits: u64,
    /// The sum of all delays.
    pub total: Duration,
    /// The longest delay.
    pub max: Duration,
}

impl Lateness {
    /// The mean delay; zero without waits.
    pub fn mean(&self) -> Duration {
        self.total.checked_div(u32::try_from(self.waits).unwrap_or(u32::MAX)).unwrap_or_default()
    }

    fn note(&mut self, delay: Duration) {
        self.waits += 1;
        self.total += delay;
        self.max = self.max.max(delay);
    }
}

/// What a wait leaves to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// The sockets that the wait told of are to be read.
    Told,
    /// Those of RTCP are to be asked: nobody has listened for a while.
    Control,
    /// None.
    Nothing,
}

impl Waits {
    /// Waits from `now` on, of a sender that repeats packets as `resend` says.
    pub(super) fn new(now: Instant, resend: Resend) -> Waits {
        let control_delay = if resend == Resend::Never { REPORT_DELAY } else { REQUEST_DELAY };
        Waits { asked: now, control_delay, lateness: Lateness::default() }
    }

    pub(super) fn lateness(&self) -> Lateness {
        self.lateness
    }

    /// Waits until `due`, of which `packet` is the time of a packet alone, not of any other reason to wake.
    ///
    /// A short wait is a sleep, which costs half of what waiting for sockets as well does; RTCP then waits for [`REQUEST_DELAY`] at most
    /// where packets are repeated, else for [`REPORT_DELAY`].
    pub(super) fn wait(
        &mut self,
        receiver: &mut MediaReceiver,
        now: Instant,
        due: Instant,
        packet: Instant,
    ) -> io::Result<Ask> {
        if due.since(now) > SLEEP_MAX {
            receiver.wait_until(due)?;
            return Ok(Ask::Told);
        }
        if due > now {
            clock::sleep_until(due);
            if packet == due {
                self.lateness.note(clock::now().since(due));
            }
        }
        if due < self.asked + self.control_delay {
            return Ok(Ask::Nothing);
        }
        self.asked = due;
        Ok(Ask::Control)
    }
}

/// Hears while `hear` tells of more, until this time: whoever sends without end must not keep a stream from its times. What it tells
/// first is heard in any case.
pub(super) fn hear_before(until: Instant, mut hear: impl FnMut() -> bool) {
    while hear() && clock::now() < until {}
}

/// The longest sleep during which nothing is heard.
const SLEEP_MAX: Duration = Duration::from_millis(1);
/// How long requests wait to be read at most while packets leave: a fraction of the round trip that repairs take.
const REQUEST_DELAY: Duration = Duration::from_micros(500);
/// The same of reports alone, of which the kernel keeps the times of arrival.
const REPORT_DELAY: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{MediaOptions, MediaSocket};

    fn receiver() -> MediaReceiver {
        let socket = MediaSocket::bind("127.0.0.1:0".parse().unwrap(), &MediaOptions::default()).unwrap();
        MediaReceiver::new(&[socket]).unwrap()
    }

    #[test]
    fn short_waits_sleep_and_ask_for_rtcp_now_and_then() {
        for (resend, wait_micros, expect) in [(Resend::Same, 100, [5, 10]), (Resend::Never, 500, [20, 40])] {
            let (mut receiver, start, wait) = (receiver(), clock::now(), Duration::from_micros(wait_micros));
            let mut waits = Waits::new(start, resend);
            let steps = expect[1];
            let mut asked = Vec::new();
            for step in 1..=steps {
                let due = start + wait * step;
                let ask = waits.wait(&mut receiver, due - wait, due, due).unwrap();
                asked.extend((ask == Ask::Control).then_some(step));
                assert!(clock::now() >= due);
            }
            assert_eq!(
                asked, expect,
                "each half of a millisecond for requests, each hundredth of a second for reports"
            );
            assert_eq!(waits.lateness().waits, u64::from(steps));
            assert!(waits.lateness().max >= waits.lateness().mean());
        }
    }

    #[test]
    fn long_waits_listen() {
        let (mut receiver, now) = (receiver(), clock::now());
        let mut waits = Waits::new(now, Resend::Never);
        receiver.waker().wake();
        let due = now + Duration::from_secs(60);
        assert_eq!(waits.wait(&mut receiver, now, due, due).unwrap(), Ask::Told, "long before it is due");
        assert_eq!(waits.lateness(), Lateness::default());
    }

    #[test]
    fn hearing_ends_in_time_however_much_comes() {
        let (begun, mut heard) = (clock::now(), 0);
        let mut hear = || {
            assert!(clock::now() < begun + Duration::from_secs(20), "it does not end");
            heard += 1;
            true
        };
        hear_before(begun + Duration::from_millis(2), &mut hear);
        let before = clock::now();
        hear_before(before, &mut hear);
        assert!(before >= begun + Duration::from_millis(2) && heard > 1);
        let mut left = 3;
        hear_before(Instant::NEVER, || {
            left -= 1;
            left > 0
        });
        assert_eq!(left, 0, "until nothing is queued");
    }

    #[test]
    fn what_is_due_already_is_not_waited_for() {
        let (mut receiver, now) = (receiver(), clock::now());
        let mut waits = Waits::new(now, Resend::Never);
        assert_eq!(waits.wait(&mut receiver, now, Instant::ZERO, Instant::ZERO).unwrap(), Ask::Nothing);
    }
}
