//! The kernel's files, as text.

use std::fs;
use std::path::{Path, PathBuf};

/// The kernel's files of a host: `/proc` and `/sys` of this one, or a tree that was recorded or made up.
///
/// Files that are missing or unreadable give nothing; readers decide about the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFiles {
    root: PathBuf,
}

impl HostFiles {
    /// Those of this host.
    pub fn here() -> HostFiles {
        HostFiles::at("/")
    }

    /// Those in a folder that holds `proc` and `sys`.
    pub fn at(root: impl Into<PathBuf>) -> HostFiles {
        HostFiles { root: root.into() }
    }

    /// The value of a setting such as `net.core.rmem_max`, its words separated by single spaces. A slash stands for a dot within a name, as
    /// in sysctl(8): `net.ipv4.conf.eth0/100.rp_filter`.
    pub fn setting(&self, name: &str) -> Option<String> {
        let text = self.text(setting_path(name))?;
        Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// The load averages of the last one, five and fifteen minutes.
    pub fn load_averages(&self) -> Option<[f64; 3]> {
        let text = self.text("proc/loadavg")?;
        let words: Vec<f64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
        words.first_chunk().copied()
    }

    /// Seconds since the host was started.
    pub fn uptime_s(&self) -> Option<f64> {
        self.text("proc/uptime")?.split_whitespace().next()?.parse().ok()
    }

    /// All memory of the host in KiB, and what programs may still get of it without swapping.
    pub fn memory_kib(&self) -> Option<(u64, u64)> {
        let text = self.text("proc/meminfo")?;
        Some((count(&text, "MemTotal")?, count(&text, "MemAvailable")?))
    }

    pub(crate) fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }

    pub(crate) fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        fs::read(self.root.join(path)).ok()
    }

    /// The entries of a folder, by name; none of one that is not there.
    pub(crate) fn entries(&self, folder: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(folder)).into_iter().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// The path that a symbolic link holds.
    pub(crate) fn link(&self, path: impl AsRef<Path>) -> Option<String> {
        fs::read_link(self.root.join(path)).ok()?.into_os_string().into_string().ok()
    }

    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    pub(crate) fn has(&self, path: impl AsRef<Path>) -> bool {
        self.root.join(path).exists()
    }
}

/// The file of a setting.
pub(crate) fn setting_path(name: &str) -> String {
    let swapped = name.chars().map(|letter| match letter {
        '.' => '/',
        '/' => '.',
        other => other,
    });
    format!("proc/sys/{}", swapped.collect::<String>())
}

/// The value of the first `name : value` line.
pub(crate) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

/// The number of a line such as `VmRSS:  1234 kB`.
pub(crate) fn count(text: &str, name: &str) -> Option<u64> {
    field(text, name)?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A made-up tree; gone when dropped.
    pub(crate) struct Tree(PathBuf);

    impl Tree {
        pub(crate) fn new(name: &str) -> Tree {
            Tree(std::env::temp_dir().join(format!("thalweg-host-{name}-{}", std::process::id())))
        }

        pub(crate) fn with(self, path: &str, text: &str) -> Tree {
            self.write(path, text);
            self
        }

        pub(crate) fn write(&self, path: &str, text: &str) {
            let file = self.0.join(path);
            fs::create_dir_all(file.parent().expect("a folder")).expect("made");
            fs::write(file, text).expect("written");
        }

        pub(crate) fn link(self, path: &str, target: &str) -> Tree {
            let file = self.0.join(path);
            fs::create_dir_all(file.parent().expect("a folder")).expect("made");
            std::os::unix::fs::symlink(target, file).expect("linked");
            self
        }

        pub(crate) fn remove(&self, path: &str) {
            fs::remove_file(self.0.join(path)).expect("removed");
        }

        pub(crate) fn files(&self) -> HostFiles {
            HostFiles::at(&self.0)
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "model\t\t: 17\nmodel name\t: AMD EPYC 7713\nVmRSS:\t  2048 kB\n";
        assert_eq!(field(text, "model name"), Some("AMD EPYC 7713"));
        assert_eq!(field(text, "model"), Some("17"));
        assert_eq!(field(text, "bogomips"), None);
        assert_eq!((count(text, "VmRSS"), count(text, "model name")), (Some(2048), None));
    }

    #[test]
    fn a_tree_tells_what_it_holds_and_nothing_else() {
        let tree = Tree::new("files")
            .with("proc/sys/net/ipv4/udp_mem", "93\t124\t187\n")
            .with("proc/loadavg", "0.42 0.50 1.07 1/123 456\n")
            .with("proc/uptime", "350735.47 1.0\n")
            .with("proc/meminfo", "MemTotal: 8000 kB\nMemFree: 1 kB\nMemAvailable: 6000 kB\n");
        let files = tree.files();
        assert_eq!(files.setting("net.ipv4.udp_mem").as_deref(), Some("93 124 187"));
        assert_eq!(files.setting("net.core.rmem_max"), None);
        let tree = tree.with("proc/sys/net/ipv4/conf/eth0.100/rp_filter", "1\n");
        assert_eq!(tree.files().setting("net.ipv4.conf.eth0/100.rp_filter").as_deref(), Some("1"));
        assert_eq!(files.load_averages(), Some([0.42, 0.5, 1.07]));
        assert_eq!(files.uptime_s(), Some(350_735.47));
        assert_eq!(files.memory_kib(), Some((8000, 6000)));
        tree.write("proc/loadavg", "0.42 0.50\n");
        assert_eq!(files.load_averages(), None);
    }
}
