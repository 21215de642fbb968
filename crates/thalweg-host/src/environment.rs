//! The machine, as far as its figures depend on it.

use serde::{Deserialize, Serialize};

use crate::files::{HostFiles, field};

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
    /// The facts of this machine.
    pub fn read() -> Environment {
        Environment::of(&HostFiles::here())
    }

    /// The facts in these files; cores, version and build are those of this process.
    pub fn of(files: &HostFiles) -> Environment {
        let cpus = files.text("proc/cpuinfo").unwrap_or_default();
        let governor = files.text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        Environment {
            kernel: files.setting("kernel.osrelease"),
            cpu: field(&cpus, "model name").or_else(|| field(&cpus, "Model")).map(str::to_owned),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            is_virtual: field(&cpus, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            memory_mib: files.memory_kib().map(|(total, _)| total / 1024),
            load: files.load_averages().map(|[load, ..]| load),
            governor: governor.map(|text| text.trim().to_owned()),
            receive_buffer_max_bytes: files.setting("net.core.rmem_max").and_then(|text| text.parse().ok()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Tree;

    #[test]
    fn facts_are_those_of_the_files_and_unreadable_ones_are_missing() {
        let tree = Tree::new("environment")
            .with("proc/cpuinfo", "processor: 0\nmodel name\t: AMD EPYC 7713\nflags\t: fpu hypervisor sse\n")
            .with("proc/meminfo", "MemTotal: 2097152 kB\nMemAvailable: 9 kB\n")
            .with("proc/sys/kernel/osrelease", "6.12.4\n");
        let environment = Environment::of(&tree.files());
        assert_eq!(environment.cpu.as_deref(), Some("AMD EPYC 7713"));
        assert_eq!((environment.kernel.as_deref(), environment.memory_mib), (Some("6.12.4"), Some(2048)));
        assert!(environment.is_virtual && environment.load.is_none() && environment.governor.is_none());
        let board = Tree::new("board").with("proc/cpuinfo", "processor: 0\n\nModel\t: Raspberry Pi 4\n");
        let environment = Environment::of(&board.files());
        assert_eq!(environment.cpu.as_deref(), Some("Raspberry Pi 4"));
        assert!(!environment.is_virtual);
    }

    #[test]
    fn this_machine_has_a_kernel_and_cores() {
        let environment = Environment::read();
        assert!(environment.kernel.is_some() && environment.cores > 0, "{environment:?}");
    }
}
