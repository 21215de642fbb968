//! The operating system's clocks.

use std::time::SystemTime;

use thalweg_base::time::{Instant, Timestamp};

use crate::sys::process;

/// Monotonic protocol time: nanoseconds of `CLOCK_MONOTONIC`, the same scale in all processes of a host until it reboots.
#[inline]
pub fn now() -> Instant {
    Instant::from_nanos(process::monotonic_nanos())
}

/// Wall-clock time for source timestamps; the epoch itself when the clock stands before 1970.
pub fn wall_clock() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix(since_epoch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_time_advances_and_wall_time_is_recent() {
        let first = now();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let passed = now().since(first);
        assert!(passed >= std::time::Duration::from_millis(2), "{passed:?}");
        assert!(wall_clock().seconds > 1_700_000_000);
    }
}
