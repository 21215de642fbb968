//! Placement, CPU time and the other processes.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::options::Options;

/// Ends this process when the thread that started it ends.
pub fn die_with_parent() -> Result<(), String> {
    // SAFETY: a plain call with constants.
    let code = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    if code == 0 { Ok(()) } else { Err(format!("prctl: {}", std::io::Error::last_os_error())) }
}

/// Binds this process, with the threads it will start, to one core.
pub fn pin(core: Option<&usize>) -> Result<(), String> {
    let Some(&core) = core else { return Ok(()) };
    // SAFETY: the set lives on the stack for the call, and `core` is checked by CPU_SET's bound.
    let code = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if code == 0 { Ok(()) } else { Err(format!("core {core}: {}", std::io::Error::last_os_error())) }
}

/// User and system time of this process so far, in seconds.
pub fn cpu_seconds() -> f64 {
    // SAFETY: an all-zero rusage is valid and is filled by the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Starts this program again as the subscribers, on the cores of `--cpu` after the first, in turn.
pub fn start_subscribers(measurement: &str, options: &Options) -> Result<Vec<Subscriber>, String> {
    let cores = options.cpu.get(1..).unwrap_or_default();
    (0..usize::from(options.readers))
        .map(|index| start_subscriber(measurement, options, cores.get(index % cores.len().max(1))))
        .collect()
}

fn start_subscriber(measurement: &str, options: &Options, core: Option<&usize>) -> Result<Subscriber, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.arg(measurement).args(["--role", "sub", "--json", "--profile", options.profile.name()]);
    command.args(["--size", &options.size.to_string(), "--domain", &options.domain.to_string()]);
    command.args(["--readers", &options.readers.to_string(), "--interface", &options.interface]);
    if let Some(wait) = options.wait {
        command.args(["--wait", wait.name()]);
    }
    if options.best_effort {
        command.arg("--best-effort");
    }
    if let Some(core) = core {
        command.args(["--cpu", &format!("{core},{core}")]);
    }
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
    Ok(Subscriber { child })
}

/// Another process; killed if this one gives up.
pub struct Subscriber {
    child: Child,
}

impl Subscriber {
    /// Waits for its end and returns what it printed.
    pub fn output(mut self) -> Result<String, String> {
        let mut text = String::new();
        let mut pipe = self.child.stdout.take().ok_or("the subscriber has no output")?;
        pipe.read_to_string(&mut text).map_err(|error| error.to_string())?;
        let status = self.child.wait().map_err(|error| error.to_string())?;
        if status.success() { Ok(text) } else { Err(format!("the subscriber failed: {status}")) }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        // Already gone in the normal case; both calls then fail harmlessly.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Polls until the condition holds or the time is over; returns whether it held.
pub fn wait_until(time: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + time;
    while !condition() {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}
