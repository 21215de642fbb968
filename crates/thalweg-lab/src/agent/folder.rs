//! The folder into which an agent's workers write.

use std::fs::{self, DirBuilder, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use thalweg_host::HostFiles;

/// A folder of one connection, its owner's alone; removed with its content when dropped.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes it among the system's temporary files.
    pub(super) fn new() -> Result<Folder, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let serial = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("{PREFIX}{}-{serial}", std::process::id()));
        let folder = Folder { path };
        folder.make()?;
        Ok(folder)
    }

    fn make(&self) -> Result<(), String> {
        let made = DirBuilder::new().mode(0o700).create(&self.path);
        made.map_err(|error| format!("{} cannot be made: {error}; TMPDIR names another place", self.path.display()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Names of the files in it, those of a flow with its folder.
    pub(super) fn files(&self) -> Result<Vec<String>, String> {
        let failed = |error| format!("{}: {error}", self.path.display());
        let names = |path: &Path| -> Result<Vec<String>, String> {
            let entries = fs::read_dir(path).map_err(failed)?;
            Ok(entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
        };
        let mut all = names(&self.path)?;
        for folder in all.clone().iter().filter(|name| self.path.join(name).is_dir()) {
            all.extend(names(&self.path.join(folder))?.iter().map(|name| format!("{folder}/{name}")));
        }
        all.retain(|name| is_raw(name));
        all.sort();
        Ok(all)
    }

    /// Text of one of these files from `offset`, at most a part.
    pub(super) fn read(&self, name: &str, offset: u64) -> Result<String, String> {
        if !self.files()?.iter().any(|known| known == name) {
            return Err(format!("no worker wrote a file {name:?}"));
        }
        let read = || {
            let mut file = File::open(self.path.join(name))?;
            file.seek(SeekFrom::Start(offset))?;
            let mut out = Vec::new();
            file.take(PART_BYTES).read_to_end(&mut out)?;
            Ok(out)
        };
        let part = read().map_err(|error: std::io::Error| format!("{name} cannot be read: {error}"))?;
        String::from_utf8(part).map_err(|_| format!("{name} is no text"))
    }

    /// Removes its content.
    pub(super) fn clear(&self) -> Result<(), String> {
        fs::remove_dir_all(&self.path).map_err(|error| format!("{}: {error}", self.path.display()))?;
        self.make()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The next agent removes files that cannot be removed now.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Whether a file of this name is one that workers write, perhaps in the folder of a flow: plain ASCII, so that a part may end anywhere, and
/// no way out of the folder.
pub(super) fn is_raw(path: &str) -> bool {
    let (folder, name) = path.split_once('/').unwrap_or(("flow-x", path));
    let is_of_flow = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !folder.starts_with("flow-") || folder.len() >= NAME_MAX || !folder.bytes().all(is_of_flow) {
        return false;
    }
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    name.strip_suffix(".csv")
        .is_some_and(|stem| !stem.is_empty() && stem.len() < NAME_MAX && stem.bytes().all(is_plain))
}

/// Removes the folders of agents that are gone: killed, they could not do it themselves.
pub(super) fn remove_abandoned() {
    let files = HostFiles::here();
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok());
        if maker.is_some_and(|maker| !files.has_process(maker)) {
            // Another user's folder is not ours to remove.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Prefix of the names of these folders; the process that made one follows.
const PREFIX: &str = "thalweg-agent-";
/// As JSON, in which a line takes a byte more, less than a message may have.
const PART_BYTES: u64 = 1 << 20;
const NAME_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_workers_can_be_asked_for() {
        for name in ["publisher-000.csv", "trace-subscriber-001.csv", "flow-a_B.1/publisher-000.csv"] {
            assert!(is_raw(name), "{name}");
        }
        for name in
            ["", ".csv", "../../etc/passwd.csv", "a/b.csv", "publisher-000.csv.new", "PUBLISHER.csv", "flow-a/../b.csv"]
        {
            assert!(!is_raw(name), "{name}");
        }
    }

    #[test]
    fn parts_of_a_file_are_the_file() {
        let folder = Folder::new().expect("made");
        let text = "1,2,3\n".repeat(400_000);
        fs::write(folder.path().join("publisher-000.csv"), &text).expect("written");
        fs::write(folder.path().join("secret.txt"), "x").expect("written");
        fs::create_dir(folder.path().join("flow-x")).expect("made");
        fs::write(folder.path().join("flow-x/subscriber-000.csv"), "x").expect("written");
        assert_eq!(folder.files(), Ok(["flow-x/subscriber-000.csv", "publisher-000.csv"].map(str::to_owned).to_vec()));
        let mut read = String::new();
        loop {
            let part = folder.read("publisher-000.csv", read.len() as u64).expect("read");
            if part.is_empty() {
                break;
            }
            read.push_str(&part);
        }
        assert!(read == text);
        assert!(folder.read("secret.txt", 0).is_err() && folder.read("../secret.csv", 0).is_err());
        folder.clear().expect("cleared");
        assert_eq!(folder.files(), Ok(Vec::new()));
        let path = folder.path().to_path_buf();
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn folders_of_dead_agents_are_removed() {
        let mut dead = std::process::Command::new("true").spawn().expect("started");
        let path = std::env::temp_dir().join(format!("{PREFIX}{}-0", dead.id()));
        dead.wait().expect("ended");
        fs::create_dir_all(&path).expect("made");
        let own = Folder::new().expect("made");
        remove_abandoned();
        assert!(!path.exists() && own.path().exists());
    }
}
