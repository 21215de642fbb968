//! Resources that this process used: CPU of each thread, memory, context switches, datagrams dropped at its sockets.

use serde::{Deserialize, Serialize};

use crate::files::HostFiles;
use crate::process::{Task, TaskStat, TaskStatus};
use crate::processors::cpu_time;

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
        let files = HostFiles::here();
        let status = TaskStatus::read(&files, Task::This).unwrap_or_default();
        ProcessUsage {
            cpu_ns: u64::try_from(cpu_time().as_nanos()).unwrap_or(u64::MAX),
            // A thread may end between the listing and the look at it.
            threads: files.threads().into_iter().filter_map(|id| ThreadUsage::read(&files, id)).collect(),
            resident_kib: status.resident_kib,
            resident_max_kib: status.resident_max_kib,
            socket_drops: files.socket_drops(Task::This),
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

    /// CPU time of all threads in seconds.
    pub fn cpu_seconds(&self) -> f64 {
        self.cpu_ns as f64 / 1e9
    }

    /// Times that the living threads waited for something, and hence were woken.
    pub fn sleeps(&self) -> u64 {
        self.threads.iter().map(|thread| thread.voluntary_switches).sum()
    }
}

impl ThreadUsage {
    fn read(files: &HostFiles, id: u32) -> Option<ThreadUsage> {
        let (stat, status) =
            (TaskStat::read(files, Task::Thread(id))?, TaskStatus::read(files, Task::Thread(id)).unwrap_or_default());
        let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Some(ThreadUsage {
            id,
            name: stat.name,
            user_ms: millis(stat.user),
            system_ms: millis(stat.system),
            voluntary_switches: status.voluntary_switches,
            involuntary_switches: status.involuntary_switches,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Tree;

    #[test]
    fn threads_are_read_from_the_kernels_own_texts() {
        let tree = Tree::new("threads")
            .with("proc/self/task/7/stat", "7 (a (b) c) S 1 7 7 0 -1 4194304 500 0 0 0 12 3 4 5 20 0 2")
            .with("proc/self/task/7/status", "Name: x\nvoluntary_ctxt_switches:\t9\nnonvoluntary_ctxt_switches:\t4\n");
        let expect = ThreadUsage {
            id: 7,
            name: "a (b) c".to_owned(),
            user_ms: 120,
            system_ms: 30,
            voluntary_switches: 9,
            involuntary_switches: 4,
        };
        assert_eq!(tree.files().threads(), [7]);
        assert_eq!(ThreadUsage::read(&tree.files(), 7), Some(expect));
        assert_eq!(ThreadUsage::read(&tree.files(), 8), None);
    }

    #[test]
    fn memory_threads_and_sleeps_of_this_process_are_seen_and_a_new_thread_counts_from_zero() {
        let before = ProcessUsage::read();
        let held = vec![1_u8; 20 << 20];
        std::thread::sleep(std::time::Duration::from_millis(1));
        let after = ProcessUsage::read();
        assert!(after.resident_kib > before.resident_kib + (15 << 10) && held[7] == 1, "{before:?} {after:?}");
        assert!(after.sleeps() > before.sleeps() && after.cpu_ns > before.cpu_ns, "{before:?} {after:?}");
        assert_eq!(after.since(&ProcessUsage::default()).threads, after.threads);
        assert_eq!(after.since(&after).cpu_ns, 0);
    }
}
