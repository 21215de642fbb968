//! The programs that the runs of a study start: figures of two builds would not belong together.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::experiment::Experiment;
use super::fingerprint::checksum;
use crate::process::Launcher;

/// Programs of this machine as they were before the first run of this process.
#[derive(Debug)]
pub(super) struct Programs(Vec<KnownProgram>);

#[derive(Debug)]
struct KnownProgram {
    name: String,
    path: PathBuf,
    file: Option<FileState>,
    checksum: String,
}

/// What is another one where a build has put a file in the place of a program, which costs nothing to look at after each run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    bytes: u64,
    /// Seconds and nanoseconds of its last change.
    changed: (i64, i64),
}

impl Programs {
    /// Those that runs of `experiment` start, the lab's own first.
    pub(super) fn started_by<E: Experiment>(experiment: &E, launcher: &Launcher, site: &E::Site) -> Programs {
        let mut all = vec![("program".to_owned(), launcher.program().to_owned())];
        for (name, path) in experiment.programs(launcher, site) {
            if all.iter().all(|(_, known)| *known != path) {
                all.push((name, path));
            }
        }
        Programs(all.into_iter().map(KnownProgram::new).collect())
    }

    /// Name and both checksums of the first one that is another build now.
    pub(super) fn find_changed(&mut self) -> Option<(String, String, String)> {
        self.0.iter_mut().find_map(KnownProgram::find_change)
    }
}

impl KnownProgram {
    fn new((name, path): (String, PathBuf)) -> KnownProgram {
        // Looked at before it is read: what changes in between is found after the first run.
        let file = FileState::of(&path);
        KnownProgram { name, file, checksum: checksum(&path), path }
    }

    /// The same build may be written again.
    fn find_change(&mut self) -> Option<(String, String, String)> {
        let file = FileState::of(&self.path);
        if file == self.file {
            return None;
        }
        let now = checksum(&self.path);
        if now == self.checksum {
            self.file = file;
            return None;
        }
        Some((format!("{} ({})", self.name, self.path.display()), self.checksum.clone(), now))
    }
}

impl FileState {
    fn of(path: &Path) -> Option<FileState> {
        let file = fs::metadata(path).ok()?;
        let changed = (file.mtime(), file.mtime_nsec());
        Some(FileState { device: file.dev(), inode: file.ino(), bytes: file.size(), changed })
    }
}
