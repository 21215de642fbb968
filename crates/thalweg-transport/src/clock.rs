//! The operating system's clocks.

use std::time::{Duration, SystemTime};

use thalweg_base::time::{Instant, Timestamp};

use crate::sys::process;

/// Monotonic protocol time: nanoseconds of `CLOCK_MONOTONIC`, the same scale in all processes of a host until it reboots.
#[inline]
pub fn now() -> Instant {
    Instant::from_nanos(process::monotonic_nanos())
}

/// Lets the calling thread sleep until `deadline`; returns at once when it has passed. Being an absolute time it gains no delay from
/// being interrupted, and a series of deadlines no drift. It ends late by the thread's timer slack
/// ([`crate::thread::set_timer_slack`]) and by however long the processor is taken.
pub fn sleep_until(deadline: Instant) {
    process::sleep_until(deadline.as_nanos());
}

/// Wall-clock time for source timestamps; the epoch itself when the clock stands before 1970.
pub fn wall_clock() -> Timestamp {
    Timestamp::from_unix(wall_clock_since_epoch())
}

/// As [`wall_clock`], to the nanosecond.
pub(crate) fn wall_clock_since_epoch() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_ends_at_its_moment_and_one_in_the_past_at_once() {
        let deadline = now() + std::time::Duration::from_millis(3);
        sleep_until(deadline);
        assert!(now() >= deadline);
        sleep_until(Instant::ZERO);
        assert!(now().since(deadline) < std::time::Duration::from_secs(5), "it does not wait for what has passed");
    }

    #[test]
    fn monotonic_time_advances_and_wall_time_is_recent() {
        let first = now();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let passed = now().since(first);
        assert!(passed >= std::time::Duration::from_millis(2), "{passed:?}");
        assert!(wall_clock().seconds > 1_700_000_000);
    }
}
