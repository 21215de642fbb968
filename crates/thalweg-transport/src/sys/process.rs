//! Clock, entropy and scheduling of the calling thread.

use std::io;

/// Nanoseconds of `CLOCK_MONOTONIC`: the same scale for all processes of a host.
#[inline]
pub(crate) fn monotonic_nanos() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is live for the call; CLOCK_MONOTONIC exists on every Linux, so the call cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// Lets the calling thread sleep until `CLOCK_MONOTONIC` shows `nanos`; returns at once when it has passed.
pub(crate) fn sleep_until(nanos: u64) {
    // Later moments are cut to about 68 years, which fit every `time_t`.
    let seconds = (nanos / 1_000_000_000).min(i32::MAX as u64);
    let deadline = libc::timespec { tv_sec: seconds as libc::time_t, tv_nsec: (nanos % 1_000_000_000) as _ };
    loop {
        // SAFETY: `deadline` is live for the call; with TIMER_ABSTIME the kernel writes no rest, so that pointer may be null.
        let result = unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const deadline, std::ptr::null_mut())
        };
        // The clock exists and the deadline is well formed: a signal is the only reason to return early.
        if result != libc::EINTR {
            return;
        }
    }
}

/// Fills `bytes` from the kernel's random source.
pub(crate) fn random(bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        let rest = &mut bytes[filled..];
        // SAFETY: `rest` is a live, exclusively borrowed slice of the stated length.
        let count = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match usize::try_from(count) {
            Ok(count) => filled += count,
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// Binds the calling thread to the processors in `processors`.
pub(crate) fn set_affinity(processors: &[usize]) -> io::Result<()> {
    // SAFETY: cpu_set_t is a plain bit mask for which all zeroes is a valid value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for processor in processors {
        if *processor >= libc::CPU_SETSIZE as usize {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        // SAFETY: `processor` is below CPU_SETSIZE, the number of bits in the mask.
        unsafe { libc::CPU_SET(*processor, &mut set) };
    }
    // SAFETY: `set` is live and of the stated size; 0 names the calling thread.
    let result = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets the nice value of the calling thread; in Linux each thread has its own.
pub(crate) fn set_nice(nice: i32) -> io::Result<()> {
    // SAFETY: no pointers are involved; 0 names the calling thread.
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS as _, 0, nice) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets timed waits of the calling thread end within `nanos` of their deadline instead of Linux's default 50 µs.
pub(crate) fn set_timer_slack(nanos: u32) {
    // SAFETY: PR_SET_TIMERSLACK takes one integer and no pointer; a refusal only leaves the default.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, libc::c_ulong::from(nanos)) };
}
