//! The file of a store, whose locks last longer than one opening of the database in it.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use redb::backends::FileBackend;
use redb::{BackendError, DatabaseError, StorageBackend, StorageError};

/// What a database does with its file, but that closing the database leaves its locks: a store that is opened again after an error
/// must not find that another process had it meanwhile. They end with the last clone.
#[derive(Clone)]
pub(super) struct KeptFile(Arc<dyn StorageBackend>);

impl KeptFile {
    /// Opens the file at `path`, or creates it so that its name outlives a loss of power.
    pub(super) fn open(path: &Path) -> Result<KeptFile, DatabaseError> {
        let failed = |error| DatabaseError::Storage(StorageError::Io(error));
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
        sync_name(path).map_err(failed)?;
        Ok(KeptFile(Arc::new(FileBackend::new(file)?)))
    }

    /// A file that is kept elsewhere.
    #[cfg(test)]
    pub(super) fn on(backend: Arc<dyn StorageBackend>) -> KeptFile {
        KeptFile(backend)
    }
}

/// Writes the directory entry of a file to the disk: syncing the file alone need not do that (fsync(2)).
fn sync_name(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(directory)?.sync_all() {
        // The file system has no such call.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        synced => synced,
    }
}

impl fmt::Debug for KeptFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StorageBackend for KeptFile {
    fn len(&self) -> Result<u64, io::Error> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> Result<(), io::Error> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        self.0.write(offset, data)
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.lock_shared_range(start, end)
    }

    fn unlock_range(&self, _start: Bound<u64>, _end: Bound<u64>) -> Result<(), BackendError> {
        Ok(())
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.query_lock_range(start, end)
    }
}
