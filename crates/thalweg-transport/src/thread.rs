//! Scheduling of the calling thread.

use std::io;
use std::time::Duration;

use crate::sys::process;

/// Binds the calling thread to `processors` (numbered from 0).
///
/// # Errors
/// When a number is not a processor of this host, or is outside what the process may use.
pub fn set_affinity(processors: &[usize]) -> io::Result<()> {
    process::set_affinity(processors)
}

/// Makes the calling thread give way to others (`nice` up to 19) or the others to it (down to -20).
///
/// # Errors
/// When it asks for more than it has without `CAP_SYS_NICE` or a sufficient `RLIMIT_NICE`.
pub fn set_nice(nice: i32) -> io::Result<()> {
    process::set_nice(nice)
}

/// Timer slack: the delay with which timed waits of the calling thread may end. Linux's default is 50 µs, as long as a whole round trip here.
pub fn set_timer_slack(slack: Duration) {
    process::set_timer_slack(u32::try_from(slack.as_nanos()).unwrap_or(u32::MAX));
}
