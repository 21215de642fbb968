//! The machine, as far as its figures depend on it.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Environment of a measurement, for the readers of its result; unreadable facts are missing, never guessed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Kernel release, such as `6.12.4`.
    pub kernel: Option<String>,
    /// Model name of the first CPU.
    pub cpu: Option<String>,
    /// Logical CPUs this process may use.
    pub cores: usize,
    /// Whether the CPU says that a hypervisor runs it.
    pub is_virtual: bool,
    /// Physical memory in MiB.
    pub memory_mib: Option<u64>,
    /// Load average of the last minute, before anything was started.
    pub load: Option<f64>,
    /// Governor of the first CPU's clock, such as `performance`; missing where the system does not tell, as in most guests.
    pub governor: Option<String>,
    /// `net.core.rmem_max`: the largest receive buffer in bytes that a program without privileges may ask for.
    pub receive_buffer_max_bytes: Option<u64>,
    /// Version of Thalweg.
    pub version: String,
    /// `release` or `debug`; a debug build is several times slower.
    pub build: String,
}

/// A machine that takes part beside the controller's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostEnvironment {
    /// As the scenario names it.
    pub name: String,
    /// What it is.
    pub environment: Environment,
}

impl Environment {
    /// Reads the facts of this machine from `/proc`.
    pub fn read() -> Environment {
        let cpus = read("/proc/cpuinfo").unwrap_or_default();
        Environment {
            kernel: read("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()),
            cpu: field(&cpus, "model name").or_else(|| field(&cpus, "Model")).map(str::to_owned),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            is_virtual: field(&cpus, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            memory_mib: read("/proc/meminfo").and_then(|text| {
                let kib: u64 = field(&text, "MemTotal")?.split(' ').next()?.parse().ok()?;
                Some(kib / 1024)
            }),
            load: read("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok()),
            governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").map(|text| text.trim().to_owned()),
            receive_buffer_max_bytes: read("/proc/sys/net/core/rmem_max").and_then(|text| text.trim().parse().ok()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
        }
    }
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The value of the first `name : value` line.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "model\t\t: 17\nmodel name\t: AMD EPYC 7713\nflags\t: fpu hypervisor";
        assert_eq!(field(text, "model name"), Some("AMD EPYC 7713"));
        assert_eq!(field(text, "model"), Some("17"));
        assert_eq!(field(text, "bogomips"), None);
    }

    #[test]
    fn this_machine_has_a_kernel_and_cores() {
        let environment = Environment::read();
        assert!(environment.kernel.is_some() && environment.cores > 0, "{environment:?}");
    }
}
