//! What this process uses of the machine, for tests of what is idle and small.

use std::fs;

/// What this process has used so far, as Linux counts it.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Processor time of all its threads that are or were.
    pub cpu_seconds: f64,
    /// Memory that it has in RAM.
    pub resident_megabytes: f64,
    /// How often its present threads went to sleep, and hence were woken.
    pub sleeps: u64,
}

impl Usage {
    /// Up to now.
    pub fn now() -> Usage {
        let read = |file: &str| fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
        let stat = read("stat");
        // The second field, the program's name, may hold anything; utime and stime are the 14th and 15th.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().collect();
        let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).unwrap_or(f64::NAN);
        let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let statuses = threads.map(|thread| fs::read_to_string(thread.path().join("status")).unwrap_or_default());
        Usage {
            cpu_seconds: (ticks(11) + ticks(12)) / TICKS_PER_SECOND,
            resident_megabytes: number_behind(&read("status"), "VmRSS:") as f64 * 1.024e-3,
            sleeps: statuses.map(|status| number_behind(&status, "voluntary_ctxt_switches:")).sum(),
        }
    }
}

/// Ticks a second of the processor time in `/proc`, on every Linux that there is.
const TICKS_PER_SECOND: f64 = 100.0;

/// The number behind a name that begins a line.
fn number_behind(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_ascii_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_sleeps_are_seen() {
        let before = Usage::now();
        let held = vec![1_u8; 20 << 20];
        std::thread::sleep(std::time::Duration::from_millis(1));
        let after = Usage::now();
        assert!(after.resident_megabytes > before.resident_megabytes + 15.0, "{before:?} {after:?}");
        assert!(after.sleeps > before.sleeps && after.cpu_seconds >= before.cpu_seconds && held[7] == 1);
    }
}
