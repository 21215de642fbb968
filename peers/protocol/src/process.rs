//! Standard output and the other processes.

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;
use std::process::{Child, Command, Stdio};

use crate::options::Options;

/// Ends this process when the thread that started it ends.
pub fn die_with_parent() -> Result<(), String> {
    // SAFETY: a plain call with constants.
    let code = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    if code == 0 { Ok(()) } else { Err(format!("prctl: {}", io::Error::last_os_error())) }
}

/// Standard output for our words alone: what a library prints goes to standard error from now on.
pub fn own_output() -> io::Result<File> {
    // SAFETY: plain calls with descriptors that every process has; the new one is ours alone.
    unsafe {
        let own = libc::fcntl(libc::STDOUT_FILENO, libc::F_DUPFD_CLOEXEC, 3);
        if own < 0 || libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(File::from_raw_fd(own))
    }
}

/// Starts this program again as the subscribers, on the cores of `--cpu` after the first, in turn.
pub fn start_subscribers(measurement: &str, options: &Options) -> Result<Vec<Subscriber>, String> {
    let cores = options.cpu.get(1..).unwrap_or_default();
    (0..usize::from(options.readers))
        .map(|index| start_subscriber(measurement, options, index, cores.get(index % cores.len().max(1))))
        .collect()
}

fn start_subscriber(
    measurement: &str,
    options: &Options,
    index: usize,
    core: Option<&usize>,
) -> Result<Subscriber, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let place = &options.place;
    let mut command = Command::new(program);
    command.arg(measurement).args(["--role", "sub", "--json", "--profile", place.profile.name()]);
    command.args(["--size", &options.size.to_string(), "--domain", &place.domain.to_string()]);
    command.args(["--readers", &options.readers.to_string(), "--reader", &index.to_string()]);
    command.args(["--interface", &place.interface]);
    match options.count {
        Some(count) => command.args(["--count", &count.to_string()]),
        None => command.args(["--seconds", &options.seconds.to_string()]),
    };
    if let Some(wait) = place.wait {
        command.args(["--wait", wait.name()]);
    }
    if options.best_effort {
        command.arg("--best-effort");
    }
    if let Some(core) = core {
        command.args(["--cpu", &format!("{core},{core}")]);
    }
    // The publisher has the whole result.
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().map_err(|error| error.to_string())?;
    Ok(Subscriber(child))
}

/// Another process; killed if this one gives up.
pub struct Subscriber(Child);

impl Subscriber {
    /// Waits for its end.
    pub fn finish(mut self) -> Result<(), String> {
        let status = self.0.wait().map_err(|error| error.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("the subscriber failed: {status}")) }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        // Already gone in the normal case; both calls then fail harmlessly.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
