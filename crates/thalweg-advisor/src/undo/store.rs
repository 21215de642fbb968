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

    /// Opens and locks the file, which another process may remove between both.
    fn open(&self, is_made: bool) -> io::Result<File> {
        for _ in 0..OPENINGS_MAX {
            // Others may not read what the owner's files held.
            let mut options = OpenOptions::new();
            let file = options.read(true).append(true).create(is_made).mode(0o600).open(&self.path)?;
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
