//! What the control groups around this process leave it.

use crate::files::HostFiles;

impl HostFiles {
    /// Bytes of memory that this process's control groups leave it at most (`memory.max` of cgroup v2, against which the buffers of sockets
    /// count as well); `None` where none is limited.
    pub fn group_memory_bytes(&self) -> Option<u64> {
        let own = self.text("proc/self/cgroup")?;
        let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
        // `max` is no number, and means none.
        let limit = |folder: &str| self.text(format!("{GROUPS}{folder}/memory.max"))?.trim().parse::<u64>().ok();
        around(path).filter_map(limit).min()
    }
}

/// The folder of a group and those above it, as deep as groups are nested.
pub(crate) fn around(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path.trim_end_matches('/')), |folder| folder.rfind('/').map(|end| &folder[..end]))
        .take(DEPTH_MAX)
}

pub(crate) const GROUPS: &str = "sys/fs/cgroup";
/// Deeper than any system nests its groups.
const DEPTH_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use crate::files::tests::Tree;

    #[test]
    fn the_least_memory_of_all_groups_around_a_process_is_its_own() {
        let tree = Tree::new("groups")
            .with("proc/self/cgroup", "1:name=systemd:/x\n0::/pods/pod7/main\n")
            .with("sys/fs/cgroup/pods/memory.max", "max\n")
            .with("sys/fs/cgroup/pods/pod7/memory.max", "67108864\n")
            .with("sys/fs/cgroup/pods/pod7/main/memory.max", "536870912\n");
        assert_eq!(tree.files().group_memory_bytes(), Some(67_108_864));
        tree.write("sys/fs/cgroup/pods/pod7/memory.max", "max\n");
        assert_eq!(tree.files().group_memory_bytes(), Some(536_870_912));
        tree.write("sys/fs/cgroup/pods/pod7/main/memory.max", "max\n");
        assert_eq!(tree.files().group_memory_bytes(), None);
        // A container sees its own group as the root.
        tree.write("proc/self/cgroup", "0::/\n");
        tree.write("sys/fs/cgroup/memory.max", "1048576\n");
        assert_eq!(tree.files().group_memory_bytes(), Some(1_048_576));
    }
}
