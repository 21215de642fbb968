//! Where the lines of an undo file lie.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Lines that outlive the process.
pub trait UndoStore {
    /// All bytes.
    ///
    /// # Errors
    /// They cannot be read; `WouldBlock` where another process has them.
    fn load(&mut self) -> io::Result<Vec<u8>>;

    /// Adds bytes at the end; they are on disk when it returns.
    ///
    /// # Errors
    /// They cannot be written.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Forgets all but the first `bytes`.
    ///
    /// # Errors
    /// The file cannot be cut.
    fn truncate(&mut self, bytes: usize) -> io::Result<()>;

    /// Forgets everything.
    ///
    /// # Errors
    /// The file cannot be removed.
    fn clear(&mut self) -> io::Result<()>;
}

/// A file, which one process uses at a time.
#[derive(Debug)]
pub struct FileStore {
    path: PathBuf,
    file: Option<File>,
}

impl FileStore {
    /// The file at `path`, made with its folder when the first line is written.
    pub fn at(path: impl Into<PathBuf>) -> FileStore {
        FileStore { path: path.into(), file: None }
    }

    fn folder(&self) -> io::Result<&Path> {
        let folder = self.path.parent();
        folder.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, format!("{} is no file", self.path.display())))
    }

    /// Refuses a file that somebody else could have written.
    fn check(&self, file: &File) -> io::Result<()> {
        let refuse = |reason: String| {
            let text = format!("the undo file {} {reason}, and is not believed", self.path.display());
            Err(io::Error::new(io::ErrorKind::InvalidData, text))
        };
        if fs::symlink_metadata(&self.path).is_ok_and(|there| there.is_symlink()) {
            return refuse("is a symbolic link".to_owned());
        }
        let there = file.metadata()?;
        // The files of a process belong to its effective user.
        let own = fs::metadata("/proc/self")?.uid();
        distrust(there.uid(), there.mode(), own).map_or(Ok(()), refuse)
    }

    /// Opens and locks the file, which another process may remove between both.
    fn open(&self, is_made: bool) -> io::Result<File> {
        for _ in 0..OPENINGS_MAX {
            // Others may not read what the owner's files held.
            let mut options = OpenOptions::new();
            let file = options.read(true).append(true).create(is_made).mode(0o600).open(&self.path)?;
            self.check(&file)?;
            file.try_lock().map_err(|error| match error {
                TryLockError::WouldBlock => io::Error::from(io::ErrorKind::WouldBlock),
                TryLockError::Error(error) => error,
            })?;
            if fs::metadata(&self.path).is_ok_and(|there| file.metadata().is_ok_and(|ours| ours.ino() == there.ino())) {
                return Ok(file);
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }
}

/// Why a file is not believed: going back writes what it says to any place, with the rights of who goes back.
fn distrust(owner: u32, mode: u32, own: u32) -> Option<String> {
    const KIND: u32 = 0o170_000;
    const REGULAR: u32 = 0o100_000;
    const WRITABLE_BY_OTHERS: u32 = 0o022;
    match () {
        () if mode & KIND != REGULAR => Some("is no file".to_owned()),
        () if owner != own && owner != 0 => Some(format!("belongs to user {owner}")),
        () if mode & WRITABLE_BY_OTHERS != 0 => Some("may be written by others".to_owned()),
        () => None,
    }
}

impl UndoStore for FileStore {
    fn load(&mut self) -> io::Result<Vec<u8>> {
        let file = match self.open(false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            result => self.file.insert(result?),
        };
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        // One byte more than there may be shows that there is too much.
        file.take(super::FILE_MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > super::FILE_MAX_BYTES {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the undo file has more than 16 MiB"));
        }
        Ok(bytes)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            fs::DirBuilder::new().recursive(true).mode(0o755).create(self.folder()?)?;
            let file = self.open(true)?;
            // Another process may have made changes since this one looked.
            if file.metadata()?.len() > 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            // The name has to be on disk as well.
            File::open(self.folder()?)?.sync_all()?;
            self.file = Some(file);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(bytes)?;
        file.sync_data()
    }

    fn truncate(&mut self, bytes: usize) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.set_len(bytes as u64)?;
        file.sync_all()
    }

    fn clear(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            return Ok(());
        }
        // Removed while it is locked: a process that waits for it finds that it is another file by then.
        fs::remove_file(&self.path)?;
        File::open(self.folder()?)?.sync_all()?;
        self.file = None;
        Ok(())
    }
}

/// Lines in memory.
pub(super) struct MemoryStore(pub(super) Vec<u8>);

impl UndoStore for &mut MemoryStore {
    fn load(&mut self) -> io::Result<Vec<u8>> {
        Ok(self.0.clone())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.extend(bytes);
        Ok(())
    }

    fn truncate(&mut self, bytes: usize) -> io::Result<()> {
        self.0.truncate(bytes);
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.0.clear();
        Ok(())
    }
}

/// A process that removes the file again and again would have to be watched for.
const OPENINGS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn only_a_file_that_nobody_else_could_write_is_believed() {
        for (owner, mode, own, expect) in [
            (1000, 0o100_600, 1000, None),
            (0, 0o100_644, 1000, None),
            (1000, 0o100_600, 0, Some("belongs to user 1000")),
            (1000, 0o100_660, 1000, Some("may be written by others")),
            (1000, 0o100_602, 1000, Some("may be written by others")),
            (0, 0o020_600, 0, Some("is no file")),
        ] {
            let found = distrust(owner, mode, own);
            assert_eq!(found.as_deref(), expect, "owner {owner}, mode {mode:o}, read by {own}");
        }
    }

    #[test]
    fn a_file_of_others_and_a_link_are_refused() {
        let folder = std::env::temp_dir().join(format!("thalweg-undo-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("made");
        let (file, link) = (folder.join("undo.jsonl"), folder.join("link.jsonl"));
        let load = |path: &Path| FileStore::at(path).load();
        let refused = |path: &Path| load(path).expect_err("refused").to_string();
        fs::write(&file, "").expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("set");
        assert_eq!(load(&file).expect("ours"), b"");
        symlink(&file, &link).expect("linked");
        assert!(refused(&link).contains("symbolic link"), "{}", refused(&link));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("set");
        assert!(refused(&file).contains("may be written by others"), "{}", refused(&file));
        fs::remove_dir_all(&folder).expect("removed");
    }
}
