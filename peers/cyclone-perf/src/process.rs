//! Placement, CPU time and the second process.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Options;

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

/// Starts this program again as the subscriber, on the second core of `--cpu`.
pub fn start_subscriber(measurement: &str, options: &Options) -> Result<Subscriber, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.arg(measurement).args(["--role", "sub", "--json"]);
    command.args(["--size", &options.size.to_string(), "--domain", &options.domain.to_string()]);
    command.args(["--wait", if options.wait == crate::Wait::Block { "block" } else { "listener" }]);
    if options.best_effort {
        command.arg("--best-effort");
    }
    if !options.cpu.is_empty() {
        command.args(["--cpu", &options.cpu.iter().map(usize::to_string).collect::<Vec<_>>().join(",")]);
    }
    let child = command.stdout(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
    Ok(Subscriber { child })
}

/// The second process; killed if the first gives up.
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

/// Polls until the condition holds or the time is over.
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
