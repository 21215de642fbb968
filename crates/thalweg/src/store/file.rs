//! The file of a store: which histories it holds, their changes, and the numbers set aside for each.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, TableDefinition};
use thalweg_rtps::discovery::endpoint_data::PublicationData;
use thalweg_rtps::history::{Records, StoredChange};
use thalweg_rtps::types::{HistoryIdentity, SequenceNumber};

use super::record;

/// Marks the file as a store of this layout.
const MARK: TableDefinition<'_, &str, u32> = TableDefinition::new("thalweg");
/// The description of each history, by its number in this file.
const HISTORIES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("histories");
/// Numbers set aside for each history.
const RESERVED: TableDefinition<'_, u32, i64> = TableDefinition::new("reserved");
/// The changes of each history, by their numbers.
const CHANGES: TableDefinition<'_, (u32, i64), &[u8]> = TableDefinition::new("changes");

const LAYOUT: &str = "layout";
const LAYOUT_VERSION: u32 = 1;

/// Memory for pages of the file. Chosen by Thalweg: histories are in memory anyway, and are read from the file only once.
const CACHE_BYTES: usize = 32 << 20;

/// The place of a history in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HistoryNumber(pub(super) u32);

/// What makes a history another one, and how its writer is announced.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Description {
    pub(super) identity: HistoryIdentity,
    pub(super) domain_id: u32,
    pub(super) name: String,
    /// Topic, type, key and QoS of its writer; its GUID says only whether there is a key.
    pub(super) publication: PublicationData,
}

/// One history as it was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) number: HistoryNumber,
    pub(super) description: Description,
    pub(super) changes: Vec<StoredChange>,
    pub(super) reserved: SequenceNumber,
}

/// What one commit changes of a history.
#[derive(Debug)]
pub(super) struct HistoryChange {
    pub(super) number: HistoryNumber,
    pub(super) description: Option<Description>,
    pub(super) records: Records,
    pub(super) reserved: Option<SequenceNumber>,
}

/// Why a store cannot be read or written.
#[derive(Debug)]
pub(super) enum StoreError {
    /// Somebody has it open.
    InUse,
    /// It is no store, or not of this layout, or its content contradicts itself.
    Damaged(String),
    /// The operating system refused something.
    System(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::InUse => f.write_str("another participant has it open"),
            StoreError::Damaged(why) => write!(f, "it is damaged, or no store: {why}"),
            StoreError::System(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for StoreError {}

impl<E: Into<redb::Error>> From<E> for StoreError {
    fn from(error: E) -> StoreError {
        match error.into() {
            redb::Error::DatabaseAlreadyOpen | redb::Error::LockProtocolMismatch => StoreError::InUse,
            redb::Error::Io(error) if error.kind() != io::ErrorKind::InvalidData => {
                StoreError::System(error.to_string())
            }
            redb::Error::PreviousIo | redb::Error::DatabaseClosed => {
                StoreError::System("it failed before, and is opened again".to_owned())
            }
            other => StoreError::Damaged(other.to_string()),
        }
    }
}

/// An open store.
pub(super) struct StoreFile {
    path: PathBuf,
    /// `None` after an error, until it is opened again: what was not committed is as if it had not been written.
    database: Option<Database>,
}

impl StoreFile {
    /// Opens the store at `path`, or creates it.
    pub(super) fn open(path: &Path) -> Result<StoreFile, StoreError> {
        let database = open_database(path, Checked::Whole)?;
        let transaction = database.begin_write()?;
        {
            let mut mark = transaction.open_table(MARK)?;
            let found = mark.get(LAYOUT)?.map(|version| version.value());
            match found {
                Some(LAYOUT_VERSION) => {}
                Some(other) => return Err(StoreError::Damaged(format!("its layout is {other}, not {LAYOUT_VERSION}"))),
                None => _ = mark.insert(LAYOUT, LAYOUT_VERSION)?,
            }
            transaction.open_table(HISTORIES)?;
            transaction.open_table(RESERVED)?;
            transaction.open_table(CHANGES)?;
        }
        transaction.commit()?;
        Ok(StoreFile { path: path.to_owned(), database: Some(database) })
    }

    /// Everything that it holds.
    pub(super) fn load(&self) -> Result<Vec<Found>, StoreError> {
        let Some(database) = &self.database else { return Ok(Vec::new()) };
        let transaction = database.begin_read()?;
        let (histories, reserved) = (transaction.open_table(HISTORIES)?, transaction.open_table(RESERVED)?);
        let changes = transaction.open_table(CHANGES)?;
        let mut found = Vec::new();
        for entry in histories.iter()? {
            let (key, value) = entry?;
            let number = key.value();
            let description = record::read_description(value.value())
                .ok_or_else(|| StoreError::Damaged(format!("the description of history {number} cannot be read")))?;
            let reserved = reserved.get(number)?.map(|reserved| reserved.value());
            let reserved = SequenceNumber(reserved.unwrap_or_default());
            let mut stored = Vec::new();
            for entry in changes.range((number, i64::MIN)..=(number, i64::MAX))? {
                let (key, value) = entry?;
                let sequence = SequenceNumber(key.value().1);
                let change = record::read_change(sequence, value.value()).filter(|_| sequence <= reserved);
                let unreadable =
                    || StoreError::Damaged(format!("change {sequence} of history {number} cannot be read"));
                stored.push(change.ok_or_else(unreadable)?);
            }
            found.push(Found { number: HistoryNumber(number), description, changes: stored, reserved });
        }
        Ok(found)
    }

    /// Makes changes, all or none of them; when this returns without an error, they are on the disk.
    pub(super) fn commit(&mut self, changes: &[HistoryChange]) -> Result<(), StoreError> {
        let written = self.write(changes);
        if written.is_err() {
            // After an error nothing is sure but what was committed: the file tells it when it is opened.
            self.database = None;
        }
        written
    }

    fn write(&mut self, changes: &[HistoryChange]) -> Result<(), StoreError> {
        let database = match self.database.take() {
            Some(database) => database,
            None => open_database(&self.path, Checked::AsNeeded)?,
        };
        let transaction = self.database.insert(database).begin_write()?;
        {
            let (mut histories, mut reserved) = (transaction.open_table(HISTORIES)?, transaction.open_table(RESERVED)?);
            let mut stored = transaction.open_table(CHANGES)?;
            let mut bytes = Vec::new();
            for HistoryChange { number: HistoryNumber(number), description, records, reserved: mark } in changes {
                if let Some(description) = description {
                    bytes.clear();
                    record::write_description(description, &mut bytes);
                    histories.insert(number, bytes.as_slice())?;
                }
                if let Some(mark) = mark {
                    reserved.insert(number, mark.0)?;
                }
                for change in &records.added {
                    bytes.clear();
                    record::write_change(change, &mut bytes);
                    stored.insert((*number, change.sequence.0), bytes.as_slice())?;
                }
                for removed in &records.removed {
                    stored.remove((*number, removed.0))?;
                }
            }
        }
        transaction.commit()?;
        Ok(())
    }

    /// Forgets a history.
    pub(super) fn remove(&mut self, number: HistoryNumber) -> Result<(), StoreError> {
        let Some(database) = &self.database else { return Ok(()) };
        let transaction = database.begin_write()?;
        transaction.open_table(HISTORIES)?.remove(number.0)?;
        transaction.open_table(RESERVED)?.remove(number.0)?;
        transaction.commit()?;
        Ok(())
    }
}

/// How much of a file is checked when it is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checked {
    /// Every page: a store that was damaged is not to serve half of what was acknowledged.
    Whole,
    /// What was not closed properly.
    AsNeeded,
}

fn open_database(path: &Path, checked: Checked) -> Result<Database, StoreError> {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(checked == Checked::Whole);
    builder.create(path).map_err(|error| match error {
        DatabaseError::Storage(StorageError::Corrupted(why)) => StoreError::Damaged(why),
        other => other.into(),
    })
}
