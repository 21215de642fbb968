//! CPU time of this process, a clock that all processes of this host share, and where a process may run.

use std::io;
use std::num::NonZeroU64;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// CPU time this process has used so far, all threads, user and kernel, exact to the nanosecond (`CLOCK_PROCESS_CPUTIME_ID`).
pub fn cpu_time() -> Duration {
    Duration::from_nanos(nanos(clock_gettime(ClockId::ProcessCPUTime)))
}

/// CPU time that this thread has used so far.
pub fn thread_cpu_time() -> Duration {
    Duration::from_nanos(nanos(clock_gettime(ClockId::ThreadCPUTime)))
}

/// Nanoseconds of the host's monotonic clock: comparable between processes of one host and never stepped, so that one-way latencies
/// need no clock synchronisation here.
pub fn monotonic_nanos() -> u64 {
    nanos(clock_gettime(ClockId::Monotonic))
}

/// Restricts this thread, and every thread it starts from now on, to one logical CPU.
///
/// # Errors
/// The CPU does not exist or is not allowed to this process.
pub fn pin_to_cpu(cpu: usize) -> io::Result<()> {
    pin_to_cpus(&[cpu])
}

fn pin_to_cpus(cpus: &[usize]) -> io::Result<()> {
    if cpus.iter().any(|cpu| *cpu >= CpuSet::MAX_CPU) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("CPU numbers end at {}", CpuSet::MAX_CPU - 1)));
    }
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu));
    Ok(sched_setaffinity(None, &set)?)
}

/// Starts a program that may use these logical CPUs alone, whatever it starts itself included; without any, those of this thread.
///
/// # Errors
/// None of the CPUs exists, or the program cannot be started.
pub fn spawn_on(command: &mut Command, cpus: &[usize]) -> io::Result<Child> {
    if cpus.is_empty() {
        return command.spawn();
    }
    // A child inherits the limits of the thread that starts it.
    let own = sched_getaffinity(None)?;
    pin_to_cpus(cpus)?;
    let child = command.spawn();
    sched_setaffinity(None, &own)?;
    child
}

/// Wakes this thread as soon as its timers are due, not up to 50 µs later (`PR_SET_TIMERSLACK`); where the kernel refuses, that lateness
/// stays and is measured like any other.
pub fn request_exact_timers() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Kills the process group of `leader`, a process that was started as one, with all its children; where no process is left in it, nothing
/// happens.
pub fn kill_group(leader: u32) {
    let group = i32::try_from(leader).ok().and_then(Pid::from_raw);
    // This fails for a group of ours only when no process is left in it.
    let _ = group.map(|group| kill_process_group(group, Signal::KILL));
}

fn nanos(time: Timespec) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_grows_with_work_and_not_with_sleep() {
        let before = cpu_time();
        let started = monotonic_nanos();
        let mut sum = 0_u64;
        while monotonic_nanos() - started < 20_000_000 {
            sum = sum.wrapping_add(std::hint::black_box(sum));
        }
        let worked = cpu_time() - before;
        assert!(worked > Duration::from_millis(1), "{worked:?}");
    }

    #[test]
    fn a_started_program_is_pinned_and_its_starter_is_not() {
        let before = sched_getaffinity(None).expect("told").count();
        let mut command = Command::new("grep");
        command.args(["Cpus_allowed_list", "/proc/self/status"]).stdout(std::process::Stdio::piped());
        let child = spawn_on(&mut command, &[0]).expect("started");
        let said = child.wait_with_output().expect("ended").stdout;
        assert_eq!(String::from_utf8_lossy(&said).split_whitespace().last(), Some("0"));
        assert_eq!(sched_getaffinity(None).expect("told").count(), before);
    }

    #[test]
    fn an_impossible_cpu_is_an_error() {
        assert!(pin_to_cpu(100_000).is_err());
    }
}
