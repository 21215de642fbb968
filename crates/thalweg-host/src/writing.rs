//! Changing what the kernel's files set.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;

use crate::files::{HostFiles, setting_path};

impl HostFiles {
    /// Whether a setting is there and the system lets its owner change it: not in a network namespace that only shows it, nor below a
    /// folder that is mounted to be read, as in containers.
    pub fn is_setting_writable(&self, name: &str) -> bool {
        let path = setting_path(name);
        let Ok(about) = std::fs::metadata(self.path(&path)) else { return false };
        about.permissions().mode() & 0o200 != 0 && !self.is_mounted_to_be_read(&format!("/{path}"))
    }

    /// Changes a setting such as `net.core.rmem_max`.
    ///
    /// # Errors
    /// There is none of this name, the right is missing, or the kernel refuses the value.
    pub fn write_setting(&self, name: &str, value: &str) -> io::Result<()> {
        self.write_entry(&setting_path(name), value)
    }

    /// The value of a file below `/sys/class/net/<device>`, without the end of its line.
    pub fn device_entry(&self, device: &str, entry: &str) -> Option<String> {
        Some(self.text(device_path(device, entry)?)?.trim().to_owned())
    }

    /// Changes a file below `/sys/class/net/<device>`.
    ///
    /// # Errors
    /// There is no such file, the right is missing, or the driver refuses the value.
    pub fn write_device_entry(&self, device: &str, entry: &str, value: &str) -> io::Result<()> {
        let path = device_path(device, entry).ok_or(io::ErrorKind::InvalidInput)?;
        self.write_entry(&path, value)
    }

    /// The governor of a processor's clock.
    pub fn governor(&self, processor: usize) -> Option<String> {
        Some(self.text(governor_path(processor))?.trim().to_owned())
    }

    /// Changes the governor of a processor's clock.
    ///
    /// # Errors
    /// The processor has none, the right is missing, or the driver does not know it.
    pub fn write_governor(&self, processor: usize, governor: &str) -> io::Result<()> {
        self.write_entry(&governor_path(processor), governor)
    }

    /// The identity of this process's network namespace, such as `net:[4026531833]`.
    pub fn network_namespace(&self) -> Option<String> {
        self.link("proc/self/ns/net")
    }

    /// Whether this process's network namespace is that of the first process; `None` where the system does not tell.
    pub fn is_first_network_namespace(&self) -> Option<bool> {
        Some(self.link("proc/self/ns/net")? == self.link("proc/1/ns/net")?)
    }

    /// Whether an init system runs here, which applies the files of `/etc/sysctl.d` at each start: on a machine always, in a container as a
    /// rule not. `None` where the system does not tell.
    pub fn has_init_system(&self) -> Option<bool> {
        let is_machine = self.link("proc/self/ns/pid")? == FIRST_PROCESSES;
        let first = self.text("proc/1/comm");
        Some(is_machine || first.is_some_and(|name| INIT_SYSTEMS.contains(&name.trim())))
    }

    /// When the kernel moves memory about for a program that asks for a huge page (`transparent_hugepage/defrag`), such as `madvise`.
    pub fn compaction(&self) -> Option<String> {
        let text = self.text("sys/kernel/mm/transparent_hugepage/defrag")?;
        let (_, chosen) = text.split_once('[')?;
        Some(chosen.split_once(']')?.0.to_owned())
    }

    /// The identity of this run of the kernel.
    pub fn boot_id(&self) -> Option<String> {
        self.setting("kernel.random.boot_id")
    }

    /// Whether a process of this name runs.
    pub fn has_process_named(&self, name: &str) -> bool {
        let is_number = |entry: &String| entry.bytes().all(|byte| byte.is_ascii_digit());
        let processes = self.entries("proc");
        processes
            .iter()
            .filter(|entry| is_number(entry))
            .any(|process| self.text(format!("proc/{process}/comm")).is_some_and(|text| text.trim() == name))
    }

    /// One write for the whole value, as the kernel asks; files are not made.
    fn write_entry(&self, path: &str, value: &str) -> io::Result<()> {
        let mut options = OpenOptions::new();
        // Made-up trees hold plain files, in which a shorter value must not leave the end of a longer one.
        let mut file = options.write(true).truncate(true).open(self.path(path))?;
        file.write_all(format!("{value}\n").as_bytes())
    }

    fn is_mounted_to_be_read(&self, path: &str) -> bool {
        let mounts = self.text("proc/self/mountinfo").unwrap_or_default();
        // Number, parent, device, root, place and options; the last of equal places lies on top.
        let around = mounts.lines().filter_map(|line| {
            let words: Vec<&str> = line.split(' ').take(6).collect();
            let [_, _, _, _, place, options] = words[..] else { return None };
            let rest = path.strip_prefix(place.trim_end_matches('/'))?;
            rest.starts_with('/').then_some((place.len(), options))
        });
        let nearest = around.max_by_key(|(len, _)| *len);
        nearest.is_some_and(|(_, options)| options.split(',').any(|option| option == "ro"))
    }
}

/// The namespace of processes that the kernel starts with has this number on every system (`PROC_PID_INIT_INO`).
const FIRST_PROCESSES: &str = "pid:[4026531836]";
const INIT_SYSTEMS: [&str; 5] = ["dinit", "init", "runit", "s6-svscan", "systemd"];

fn governor_path(processor: usize) -> String {
    format!("sys/devices/system/cpu/cpu{processor}/cpufreq/scaling_governor")
}

/// `None` for names that lead out of the folder.
fn device_path(device: &str, entry: &str) -> Option<String> {
    let leads_out = device.contains('/') || device.starts_with('.') || entry.contains("..");
    (!leads_out).then(|| format!("sys/class/net/{device}/{entry}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Tree;

    #[test]
    fn a_setting_is_writable_unless_a_mount_around_it_is_to_be_read() {
        let tree = Tree::new("writing").with("proc/sys/net/core/rmem_max", "212992\n");
        let check = |mounts: &str, expect: bool| {
            tree.write("proc/self/mountinfo", mounts);
            assert_eq!(tree.files().is_setting_writable("net.core.rmem_max"), expect, "{mounts}");
        };
        check("", true);
        check("20 1 0:1 / / rw - ext4 / rw\n21 20 0:2 / /proc rw,nosuid - proc proc rw\n", true);
        check("21 20 0:2 / /proc rw - proc proc rw\n22 21 0:2 /sys /proc/sys ro,nosuid - proc proc rw\n", false);
        check("21 20 0:2 / /proc ro - proc proc rw\n22 21 0:2 /sys /proc/sys rw - proc proc rw\n", true);
        check("22 21 0:2 /sys /proc/sysx ro - proc proc rw\n", true);
        assert!(!tree.files().is_setting_writable("net.core.absent"));
    }

    #[test]
    fn a_value_replaces_the_one_before_and_files_are_not_made() {
        let tree = Tree::new("replace")
            .with("proc/sys/net/core/rmem_max", "4194304\n")
            .with("sys/class/net/eth0/mtu", "1500\n")
            .with("proc/17/comm", "bpftune\n");
        let files = tree.files();
        files.write_setting("net.core.rmem_max", "99").expect("written");
        files.write_device_entry("eth0", "mtu", "9000").expect("written");
        assert_eq!(files.setting("net.core.rmem_max").as_deref(), Some("99"));
        assert_eq!(files.device_entry("eth0", "mtu").as_deref(), Some("9000"));
        assert!(files.write_setting("net.core.absent", "1").is_err() && !files.has("proc/sys/net/core/absent"));
        assert!(files.write_device_entry("..", "mtu", "1").is_err() && files.device_entry("eth0", "../x").is_none());
        assert!(files.has_process_named("bpftune") && !files.has_process_named("tuned"));
    }

    #[test]
    fn this_process_has_a_namespace_and_this_kernel_a_boot() {
        let files = HostFiles::here();
        assert!(files.network_namespace().is_some_and(|name| name.starts_with("net:[")));
        assert!(files.boot_id().is_some_and(|id| id.len() == 36));
    }

    #[test]
    fn a_container_has_an_init_system_only_if_its_first_process_is_one() {
        let tree = Tree::new("init").with("proc/1/comm", "sleep\n").link("proc/self/ns/pid", "pid:[4026532201]");
        assert_eq!(tree.files().has_init_system(), Some(false));
        tree.write("proc/1/comm", "systemd\n");
        assert_eq!(tree.files().has_init_system(), Some(true));
        let machine = Tree::new("init-machine").with("proc/1/comm", "x\n").link("proc/self/ns/pid", FIRST_PROCESSES);
        assert_eq!(machine.files().has_init_system(), Some(true));
        assert_eq!(Tree::new("init-none").files().has_init_system(), None);
    }

    #[test]
    fn the_chosen_word_of_compaction_stands_in_brackets() {
        let path = "sys/kernel/mm/transparent_hugepage/defrag";
        let tree = Tree::new("compaction").with(path, "always defer defer+madvise [madvise] never\n");
        assert_eq!(tree.files().compaction().as_deref(), Some("madvise"));
        tree.remove(path);
        assert_eq!(tree.files().compaction(), None);
    }
}
