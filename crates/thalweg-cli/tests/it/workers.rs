//! The processes that a laboratory starts.

use std::fs;
use std::time::{Duration, Instant};

/// Processes whose parent is `parent`.
pub fn children(parent: u32) -> Vec<u32> {
    let processes =
        fs::read_dir("/proc").expect("proc").filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    processes
        .filter(|id| {
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            let fields = stat.rsplit_once(')').map(|(_, fields)| fields.to_owned()).unwrap_or_default();
            fields.split_whitespace().nth(1) == Some(&parent.to_string())
        })
        .collect()
}

/// Whether a process is gone, or only waits to be collected.
fn is_gone(id: u32) -> bool {
    fs::read_to_string(format!("/proc/{id}/stat")).map_or(true, |stat| stat.contains(") Z "))
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
