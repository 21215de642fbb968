//! Resources that this process used: CPU of each thread, memory, context switches, datagrams dropped at its sockets.

use std::collections::HashSet;
use std::fs;

use serde::{Deserialize, Serialize};

use crate::usage::cpu_time;

/// Resources that a process used so far, or between two moments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// CPU time of all threads in nanoseconds, also of those that ended.
    pub cpu_ns: u64,
    /// Its threads that live.
    pub threads: Vec<ThreadUsage>,
    /// Memory in use in KiB.
    pub resident_kib: u64,
    /// The most memory it ever used, in KiB.
    pub resident_max_kib: u64,
    /// Datagrams that found a full receive buffer at one of its sockets.
    pub socket_drops: u64,
}

/// CPU time of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUsage {
    /// Its number in the kernel.
    pub id: u32,
    /// Its name, as far as the kernel keeps it: 15 bytes.
    pub name: String,
    /// CPU time in its own code in milliseconds, in steps of 10.
    pub user_ms: u64,
    /// CPU time in the kernel in milliseconds, in steps of 10.
    pub system_ms: u64,
    /// Times it waited for something.
    pub voluntary_switches: u64,
    /// Times it was stopped for another one.
    pub involuntary_switches: u64,
}

impl ProcessUsage {
    /// Resources that this process used so far.
    pub fn read() -> ProcessUsage {
        let status = read("/proc/self/status");
        ProcessUsage {
            cpu_ns: u64::try_from(cpu_time().as_nanos()).unwrap_or(u64::MAX),
            threads: threads(),
            resident_kib: field(&status, "VmRSS"),
            resident_max_kib: field(&status, "VmHWM"),
            socket_drops: socket_drops(),
        }
    }

    /// Resources used since `before`; memory is that of now.
    pub fn since(&self, before: &ProcessUsage) -> ProcessUsage {
        let thread = |now: &ThreadUsage| {
            let default = ThreadUsage::default();
            let before = before.threads.iter().find(|thread| thread.id == now.id).unwrap_or(&default);
            ThreadUsage {
                id: now.id,
                name: now.name.clone(),
                user_ms: now.user_ms.saturating_sub(before.user_ms),
                system_ms: now.system_ms.saturating_sub(before.system_ms),
                voluntary_switches: now.voluntary_switches.saturating_sub(before.voluntary_switches),
                involuntary_switches: now.involuntary_switches.saturating_sub(before.involuntary_switches),
            }
        };
        ProcessUsage {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            threads: self.threads.iter().map(thread).collect(),
            resident_kib: self.resident_kib,
            resident_max_kib: self.resident_max_kib,
            socket_drops: self.socket_drops.saturating_sub(before.socket_drops),
        }
    }
}

fn threads() -> Vec<ThreadUsage> {
    let ids = fs::read_dir("/proc/self/task").into_iter().flatten();
    let mut ids: Vec<u32> = ids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    ids.sort_unstable();
    let usage = |id: u32| {
        let folder = format!("/proc/self/task/{id}");
        thread(id, &read(&format!("{folder}/stat")), &read(&format!("{folder}/status")))
    };
    // A thread may end between the listing and the look at it.
    ids.into_iter().filter_map(usage).collect()
}

fn thread(id: u32, stat: &str, status: &str) -> Option<ThreadUsage> {
    // The name may hold spaces and parentheses; it ends at the last one.
    let (head, fields) = stat.rsplit_once(')')?;
    let ticks: Vec<u64> = fields.split_whitespace().skip(11).take(2).map_while(|word| word.parse().ok()).collect();
    let [user, system] = ticks[..] else { return None };
    Some(ThreadUsage {
        id,
        name: head.split_once('(')?.1.to_owned(),
        user_ms: user * TICK_MS,
        system_ms: system * TICK_MS,
        voluntary_switches: field(status, "voluntary_ctxt_switches"),
        involuntary_switches: field(status, "nonvoluntary_ctxt_switches"),
    })
}

/// Drops at the UDP sockets that this process holds.
fn socket_drops() -> u64 {
    let descriptors = fs::read_dir("/proc/self/fd").into_iter().flatten();
    let inode = |target: String| Some(target.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned());
    let inodes: HashSet<String> = descriptors
        .filter_map(|entry| inode(fs::read_link(entry.ok()?.path()).ok()?.to_string_lossy().into_owned()))
        .collect();
    ["/proc/net/udp", "/proc/net/udp6"].into_iter().map(|path| drops_of(&read(path), &inodes)).sum()
}

/// The last column of the lines whose tenth is one of these inodes.
fn drops_of(table: &str, inodes: &HashSet<String>) -> u64 {
    let drops = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        inodes.contains(*words.get(9)?).then(|| words.last()?.parse::<u64>().ok()).flatten()
    };
    table.lines().skip(1).filter_map(drops).sum()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The number of a line such as `VmRSS:  1234 kB`; 0 where it is missing.
fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Linux tells CPU times in hundredths of a second whatever its own tick is.
const TICK_MS: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_read_from_the_kernels_own_texts() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194304 500 0 0 0 12 3 4 5 20 0";
        let status = "Name: x\nvoluntary_ctxt_switches:\t9\nnonvoluntary_ctxt_switches:\t4\n";
        let usage = thread(7, stat, status).expect("a thread");
        let expect = ThreadUsage {
            id: 7,
            name: "a (b) c".to_owned(),
            user_ms: 120,
            system_ms: 30,
            voluntary_switches: 9,
            involuntary_switches: 4,
        };
        assert_eq!(usage, expect);
        assert_eq!(thread(7, "", status), None);
    }

    #[test]
    fn only_own_sockets_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
            1: 0100007F:1CE8 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 111 2 0 5\n\
            2: 0100007F:1CE9 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 222 2 0 7\n";
        assert_eq!(drops_of(table, &HashSet::from(["222".to_owned()])), 7);
        assert_eq!(drops_of(table, &HashSet::new()), 0);
    }

    #[test]
    fn this_process_has_threads_and_memory_and_a_new_thread_counts_from_zero() {
        let usage = ProcessUsage::read();
        assert!(!usage.threads.is_empty() && usage.resident_kib > 0 && usage.cpu_ns > 0, "{usage:?}");
        let since = usage.since(&ProcessUsage::default());
        assert_eq!(since.threads, usage.threads);
        assert_eq!(usage.since(&usage).cpu_ns, 0);
    }
}
