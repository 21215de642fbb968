//! What this machine carries.

use std::fmt;

use thalweg_host::HostFiles;

use crate::figures::size;
use crate::peers::{CellMiddleware, PeerProgram};
use crate::scenario::{Load, RELIABILITY, ReliabilitySetting, Topics, name_in};

/// What decides how much can be measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineSize {
    /// Logical CPUs.
    pub cores: usize,
    /// Memory in bytes, that in use too: what is free changes from one start to the next, and with it the cells would.
    pub memory_bytes: u64,
}

impl MachineSize {
    /// This one.
    pub fn here() -> MachineSize {
        MachineSize::of(&HostFiles::here(), std::thread::available_parallelism().map_or(1, usize::from))
    }

    fn of(files: &HostFiles, cores: usize) -> MachineSize {
        let memory_bytes = files.memory_kib().map_or(MEMORY_BYTES_UNKNOWN, |(total, _)| total << 10);
        MachineSize { cores, memory_bytes }
    }
}

/// The traffic of a cell, whoever moves it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Traffic {
    pub(super) publishers: u32,
    pub(super) subscribers: u32,
    pub(super) topics: Topics,
    pub(super) rate_hz: u32,
    pub(super) reliability: ReliabilitySetting,
    pub(super) load: Load,
}

impl Traffic {
    /// Those that can: the floor sends nothing again.
    pub(super) fn takes_part(&self, contender: &CellMiddleware) -> bool {
        self.reliability == ReliabilitySetting::BestEffort || contender.peer() != Some(PeerProgram::Raw)
    }

    fn deliveries_per_period(&self) -> u64 {
        match self.topics {
            Topics::PerPair => u64::from(self.publishers),
            Topics::One | Topics::PerPublisher => u64::from(self.publishers) * u64::from(self.subscribers),
        }
    }

    fn processes(&self) -> u64 {
        u64::from(self.publishers + self.subscribers)
    }

    /// Payload that all subscribers together are to get in a second.
    fn bytes_per_second(&self) -> u64 {
        self.deliveries_per_period() * u64::from(self.rate_hz) * self.load.bytes()
    }

    /// What all processes hold at most: themselves, and at both ends of each delivery the history and as much again on the way.
    fn memory_bytes(&self) -> u64 {
        let kept = 2 * u64::from(DEPTH) * self.load.bytes();
        self.processes() * PROCESS_BYTES + (u64::from(self.publishers) + self.deliveries_per_period()) * kept
    }

    /// Why the machine does not carry it, where so many times of what it delivers in time may be asked for.
    pub(super) fn excess(&self, machine: &MachineSize, times: u64) -> Option<String> {
        let cores = machine.cores as u64;
        let checks = [
            ("a second to deliver", self.bytes_per_second(), times * cores * CORE_BYTES_PER_SECOND),
            ("processes", self.processes(), cores * CORE_PROCESSES),
            ("of memory", self.memory_bytes(), machine.memory_bytes / 100 * MEMORY_PCT),
        ];
        let beyond = checks.into_iter().find(|(_, needed, limit)| needed > limit)?;
        let (what, needed, limit) = beyond;
        let shown = |count| if what == "processes" { format!("{count}") } else { size(count) };
        Some(format!("{} {what} where {} are carried", shown(needed), shown(limit)))
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = match self.topics {
            Topics::One => "",
            Topics::PerPair => " in pairs",
            Topics::PerPublisher => " to one node",
        };
        let Traffic { publishers, subscribers, rate_hz, load, .. } = self;
        let reliability = name_in(&RELIABILITY, &self.reliability);
        write!(f, "{publishers}–{subscribers}{shape}, {rate_hz} Hz, {reliability}, {load}")
    }
}

/// KEEP_LAST of the paper's client library.
pub(super) const DEPTH: u32 = 10;
/// What loopback delivers in time for each CPU.
const CORE_BYTES_PER_SECOND: u64 = 200 << 20;
/// Processes for each CPU that still take their turns within a period of 10 ms.
const CORE_PROCESSES: u64 = 32;
/// A process without its samples: buffers of sockets, threads, discovery.
const PROCESS_BYTES: u64 = 48 << 20;
/// How much of the memory a cell may take: about half of what a machine without other work has free.
const MEMORY_PCT: u64 = 45;
/// Where the system does not tell.
const MEMORY_BYTES_UNKNOWN: u64 = 4 << 30;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::LabFolder;
    use crate::length::Length;
    use crate::paper4::Paper4Plan;

    #[test]
    fn what_is_free_now_changes_no_plan() {
        let plan = |total_kib: u64, available_kib: u64| {
            let folder = LabFolder::new("machine-size");
            let text = format!("MemTotal: {total_kib} kB\nMemFree: 1 kB\nMemAvailable: {available_kib} kB\n");
            std::fs::create_dir(folder.join("proc")).expect("made");
            std::fs::write(folder.join("proc/meminfo"), text).expect("written");
            let machine = MachineSize::of(&HostFiles::at(&*folder), 64);
            Paper4Plan::new((Length::Usual, 5), &machine, &[], &[])
        };
        let gib = |count: u64| count << 20;
        let plans = [plan(gib(16), gib(15)), plan(gib(16), gib(3))];
        assert_eq!(plans[0], plans[1]);
        assert!(plans[0].left_out.iter().any(|line| line.contains("of memory")), "memory decides something here");
        assert!(plan(gib(24), gib(22)).left_out.len() < plans[0].left_out.len());
    }
}
