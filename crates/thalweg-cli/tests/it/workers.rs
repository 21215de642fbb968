//! The processes that a laboratory starts.

use std::time::{Duration, Instant};

use thalweg_host::{HostFiles, Task, TaskStat};

fn stat(process: u32) -> Option<TaskStat> {
    TaskStat::read(&HostFiles::here(), Task::Process(process))
}

/// Processes whose parent is `parent`.
pub fn children(parent: u32) -> Vec<u32> {
    let is_child = |id: &u32| stat(*id).is_some_and(|stat| stat.parent == parent);
    HostFiles::here().processes().into_iter().filter(is_child).collect()
}

/// Whether a process is gone, or only waits to be collected.
fn is_gone(id: u32) -> bool {
    stat(id).is_none_or(|stat| stat.is_zombie())
}

/// Waits until these processes are gone.
#[track_caller]
pub fn expect_gone(processes: &[u32]) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !processes.iter().all(|id| is_gone(*id)) {
        assert!(Instant::now() < deadline, "left behind: {processes:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
