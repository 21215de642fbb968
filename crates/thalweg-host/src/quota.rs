//! A limit on the processor time of processes: a control group of their own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::files::HostFiles;

/// A control group whose processes together get a share of a processor's time, however many processors they run on; removed when
/// dropped, for which its processes have to be gone.
#[derive(Debug)]
pub struct CpuQuota {
    folder: PathBuf,
}

impl CpuQuota {
    /// Makes the group on this host by `cpu.max` (cgroup v2), or where the controller is that of v1 by `cpu.cfs_quota_us`; `percent` is
    /// that of one processor, 1 or more.
    ///
    /// # Errors
    /// Groups cannot be made here; the text says where and why.
    pub fn new(percent: u32) -> io::Result<CpuQuota> {
        CpuQuota::within(&HostFiles::here(), percent)
    }

    fn within(files: &HostFiles, percent: u32) -> io::Result<CpuQuota> {
        static GROUPS: AtomicU32 = AtomicU32::new(0);
        let hierarchy = hierarchy(files)?;
        remove_abandoned(files, &hierarchy.folder);
        let number = GROUPS.fetch_add(1, Ordering::Relaxed);
        let folder = hierarchy.folder.join(format!("{PREFIX}{}-{number}", std::process::id()));
        let quota_us = PERIOD_US * u64::from(percent) / 100;
        let set = |file: &str, value: String| told(&folder.join(file), |path| fs::write(path, value));
        told(&folder, |path| fs::create_dir(path))?;
        let group = CpuQuota { folder: folder.clone() };
        match hierarchy.version {
            Version::Unified => set("cpu.max", format!("{quota_us} {PERIOD_US}"))?,
            Version::Legacy => {
                set("cpu.cfs_period_us", PERIOD_US.to_string())?;
                set("cpu.cfs_quota_us", quota_us.to_string())?;
            }
        }
        Ok(group)
    }

    /// Moves a process with all its threads into the group.
    ///
    /// # Errors
    /// The process is gone, or the system refuses.
    pub fn add(&self, process: u32) -> io::Result<()> {
        told(&self.folder.join(PROCESSES), |path| fs::write(path, process.to_string()))
    }
}

impl Drop for CpuQuota {
    fn drop(&mut self) {
        // The system counts a process as there for a moment after its parent heard of its end.
        let deadline = Instant::now() + PATIENCE;
        while fs::remove_dir(&self.folder).is_err() && self.folder.exists() && Instant::now() < deadline {
            std::thread::sleep(PAUSE);
        }
    }
}

/// Where groups are made.
struct Hierarchy {
    folder: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Unified,
    Legacy,
}

/// The mounted hierarchy that has the controller of processor time.
fn hierarchy(files: &HostFiles) -> io::Result<Hierarchy> {
    // A group below the root gets only what the root hands down.
    let handed_down = files.text(Path::new(GROUPS_FOLDER).join("cgroup.subtree_control")).unwrap_or_default();
    if handed_down.split_whitespace().any(|name| name == "cpu") {
        return Ok(Hierarchy { folder: files.path(GROUPS_FOLDER), version: Version::Unified });
    }
    let legacy = Path::new(GROUPS_FOLDER).join("cpu");
    if files.has(legacy.join("cpu.cfs_quota_us")) {
        return Ok(Hierarchy { folder: files.path(legacy), version: Version::Legacy });
    }
    let missing = format!("/{GROUPS_FOLDER} has no controller of processor time for groups (cpu)");
    Err(io::Error::new(io::ErrorKind::Unsupported, missing))
}

/// Removes groups whose makers are gone: killed, they could not do it themselves.
fn remove_abandoned(files: &HostFiles, hierarchy: &Path) {
    for entry in fs::read_dir(hierarchy).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok());
        if maker.is_some_and(|maker: u32| !files.has_process(maker)) {
            // Another process may be doing the same.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// What `act` returns, an error with the path.
fn told(path: &Path, act: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    act(path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

const GROUPS_FOLDER: &str = "sys/fs/cgroup";
const PROCESSES: &str = "cgroup.procs";
const PREFIX: &str = "thalweg-";
/// A fifth of the system's usual period: a slow processor works all the time, and a short period comes near to that.
const PERIOD_US: u64 = 20_000;
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::files::tests::Tree;
    use crate::process::{Task, TaskStat};

    #[test]
    fn the_hierarchy_with_the_controller_is_found_or_its_absence_is_told() {
        let unified = Tree::new("quota-unified").with("sys/fs/cgroup/cgroup.subtree_control", "cpu memory\n");
        assert_eq!(hierarchy(&unified.files()).map(|one| one.version).ok(), Some(Version::Unified));
        let legacy = Tree::new("quota-legacy").with("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
        let legacy = legacy.with("sys/fs/cgroup/cgroup.subtree_control", "memory cpuset\n");
        assert_eq!(hierarchy(&legacy.files()).map(|one| one.version).ok(), Some(Version::Legacy));
        let none = Tree::new("quota-none").with("sys/fs/cgroup/cgroup.subtree_control", "memory\n");
        let error = CpuQuota::within(&none.files(), 50).expect_err("no controller").to_string();
        assert!(error.contains("/sys/fs/cgroup has no controller of processor time"), "{error}");
    }

    #[test]
    fn a_group_has_its_quota_takes_processes_and_those_of_dead_makers_are_removed() {
        let tree = Tree::new("quota-group").with("sys/fs/cgroup/cgroup.subtree_control", "cpu\n");
        let abandoned = tree.files().path("sys/fs/cgroup/thalweg-999999999-0");
        fs::create_dir(&abandoned).expect("made");
        let group = CpuQuota::within(&tree.files(), 25).expect("made");
        assert!(!abandoned.exists() && group.folder.exists());
        assert_eq!(fs::read_to_string(group.folder.join("cpu.max")).expect("written"), "5000 20000");
        group.add(42).expect("taken");
        assert_eq!(fs::read_to_string(group.folder.join(PROCESSES)).expect("written"), "42");
    }

    #[test]
    fn a_process_gets_no_more_than_its_share() {
        let Ok(group) = CpuQuota::new(10) else { return };
        let mut busy = Command::new("sh");
        let mut child = busy.args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().expect("started");
        let taken = group.add(child.id());
        let used = || TaskStat::read(&HostFiles::here(), Task::Process(child.id())).expect("it lives").cpu();
        let before = used();
        std::thread::sleep(Duration::from_secs(1));
        let share = (used() - before).as_secs_f64();
        child.kill().and_then(|()| child.wait()).expect("ended");
        taken.expect("taken");
        assert!(share < 0.2, "{share} of a processor");
        let folder = group.folder.clone();
        drop(group);
        assert!(!folder.exists());
    }
}
