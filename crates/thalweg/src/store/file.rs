//! The file of a store: which histories it holds, their changes, and the numbers set aside for each.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;

use redb::{
    Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, Table, TableDefinition, WriteTransaction,
};
use thalweg_rtps::discovery::endpoint_data::PublicationData;
use thalweg_rtps::history::{Records, StoredChange};
use thalweg_rtps::types::{HistoryIdentity, SequenceNumber};

use super::kept::KeptFile;
use super::page::{self, Page, Remains};
use super::record;

/// Marks the file as a store of this layout.
const MARK: TableDefinition<'_, &str, u32> = TableDefinition::new("thalweg");
/// The description of each history, by its number in this file.
const HISTORIES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("histories");
/// Numbers set aside for each history.
const RESERVED: TableDefinition<'_, u32, i64> = TableDefinition::new("reserved");
/// The changes of each history in pages, each under the number of its first.
const PAGES: TableDefinition<'_, PageKey, &[u8]> = TableDefinition::new("pages");
/// Which changes of a page are gone.
const GONE: TableDefinition<'_, PageKey, &[u8]> = TableDefinition::new("gone");

/// The number of a history, and that of the first change of a page.
pub(super) type PageKey = (u32, i64);

const LAYOUT: &str = "layout";
/// 1 had a value of its own for each change.
const LAYOUT_VERSION: u32 = 2;

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
    /// The records are all changes of the history: those in the file go first.
    pub(super) is_whole: bool,
}

/// Why a store cannot be read or written.
#[derive(Debug)]
pub(super) enum StoreError {
    /// Somebody has it open.
    InUse,
    /// Another version of Thalweg wrote it, in this layout.
    OtherLayout(u32),
    /// It is no store, or its content contradicts itself.
    Damaged(String),
    /// The operating system refused something.
    System(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::InUse => f.write_str("another participant has it open"),
            StoreError::OtherLayout(layout) => write!(
                f,
                "another version of Thalweg wrote it: its layout is {layout}, and this version reads {LAYOUT_VERSION}"
            ),
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
    file: KeptFile,
    /// `None` after an error, until it is opened again: what was not committed is as if it had not been written.
    database: Option<Database>,
    /// The pages of the file as of the last commit.
    pages: BTreeMap<PageKey, Page>,
    /// The next transaction reaches the disk and fails for the caller.
    #[cfg(test)]
    pub(super) fails_late: bool,
}

impl StoreFile {
    /// Opens the store at `path`, or creates it, and reads everything that it holds.
    pub(super) fn open(path: &Path) -> Result<(StoreFile, Vec<Found>), StoreError> {
        StoreFile::open_kept(KeptFile::open(path)?)
    }

    /// As [`StoreFile::open`], of a file that is open.
    pub(super) fn open_kept(file: KeptFile) -> Result<(StoreFile, Vec<Found>), StoreError> {
        let database = open_database(&file, Checked::Whole)?;
        let transaction = database.begin_write()?;
        {
            let mut mark = transaction.open_table(MARK)?;
            let found = mark.get(LAYOUT)?.map(|version| version.value());
            match found {
                Some(LAYOUT_VERSION) => {}
                Some(other) => return Err(StoreError::OtherLayout(other)),
                None => _ = mark.insert(LAYOUT, LAYOUT_VERSION)?,
            }
            transaction.open_table(HISTORIES)?;
            transaction.open_table(RESERVED)?;
            transaction.open_table(PAGES)?;
            transaction.open_table(GONE)?;
        }
        transaction.commit()?;
        let (mut pages, mut found) = (BTreeMap::new(), read_histories(&database)?);
        read_pages(&database, |key, page, bytes| {
            let of_page = found.binary_search_by_key(&key.0, |found| found.number.0);
            let history = of_page.map(|place| &mut found[place]).map_err(|_| unreadable(key))?;
            let before = history.changes.last().map_or(SequenceNumber::ZERO, |last| last.sequence);
            if page.first() <= before || page.last() > history.reserved {
                return Err(unreadable(key));
            }
            for change in page.changes(bytes) {
                history.changes.push(change.ok_or_else(|| unreadable(key))?);
            }
            pages.insert(key, page);
            Ok(())
        })?;
        let store = StoreFile {
            file,
            database: Some(database),
            pages,
            #[cfg(test)]
            fails_late: false,
        };
        Ok((store, found))
    }

    /// Makes changes, all or none of them; when this returns without an error, they are on the disk.
    pub(super) fn commit(&mut self, changes: &[HistoryChange]) -> Result<(), StoreError> {
        let written = self.write(changes);
        if written.is_err() {
            // After an error nothing is sure but what was committed: the file tells it when it is opened.
            self.database = None;
        }
        for (key, page) in written? {
            match page {
                Some(page) => _ = self.pages.insert(key, page),
                None => _ = self.pages.remove(&key),
            }
        }
        Ok(())
    }

    fn begin_write(&mut self) -> Result<WriteTransaction, StoreError> {
        if let Some(database) = &self.database {
            return Ok(database.begin_write()?);
        }
        let database = open_database(&self.file, Checked::AsNeeded)?;
        self.pages.clear();
        read_pages(&database, |key, page, _| {
            self.pages.insert(key, page);
            Ok(())
        })?;
        Ok(self.database.insert(database).begin_write()?)
    }

    /// Returns what becomes of pages: [`StoreFile::pages`] changes only once that is on the disk.
    fn write(&mut self, changes: &[HistoryChange]) -> Result<Vec<(PageKey, Option<Page>)>, StoreError> {
        let transaction = self.begin_write()?;
        let mut outcome = Vec::new();
        {
            let (mut histories, mut reserved) = (transaction.open_table(HISTORIES)?, transaction.open_table(RESERVED)?);
            let (mut pages, mut gone) = (transaction.open_table(PAGES)?, transaction.open_table(GONE)?);
            let mut bytes = Vec::new();
            for change in changes {
                let HistoryChange { number: HistoryNumber(number), description, records, reserved: mark, is_whole } =
                    change;
                if *is_whole {
                    pages.retain_in(keys_of(*number), |_, _| false)?;
                    gone.retain_in(keys_of(*number), |_, _| false)?;
                    outcome.extend(self.pages.range(keys_of(*number)).map(|(key, _)| (*key, None)));
                }
                if let Some(description) = description {
                    bytes.clear();
                    record::write_description(description, &mut bytes);
                    histories.insert(number, bytes.as_slice())?;
                }
                if let Some(mark) = mark {
                    reserved.insert(number, mark.0)?;
                }
                let mut added = records.added.as_slice();
                while let Some((page, count)) = page::pack(added, &mut bytes) {
                    let key = (*number, page.first().0);
                    pages.insert(key, bytes.as_slice())?;
                    outcome.push((key, Some(page)));
                    added = &added[count..];
                }
                for page in self.without(*number, &records.removed) {
                    let key = (*number, page.first().0);
                    outcome.push((key, write_remains(page, key, &mut pages, &mut gone, &mut bytes)?));
                }
            }
        }
        self.end(transaction)?;
        Ok(outcome)
    }

    /// The pages that hold `removed`, as they are without them.
    fn without(&self, history: u32, removed: &[SequenceNumber]) -> Vec<Page> {
        let mut removed = removed.to_vec();
        removed.sort_unstable();
        let (mut rest, mut changed) = (removed.as_slice(), Vec::new());
        while let Some(first) = rest.first() {
            let found = self.pages.range((history, i64::MIN)..=(history, first.0)).next_back();
            let count = found.map_or(0, |(_, page)| rest.partition_point(|number| *number <= page.last()));
            if let Some((_, page)) = found.filter(|_| count > 0) {
                let mut page = page.clone();
                if page.remove(&rest[..count]) {
                    changed.push(page);
                }
            }
            rest = &rest[count.max(1)..];
        }
        changed
    }

    #[cfg(test)]
    pub(super) fn pages(&self) -> &BTreeMap<PageKey, Page> {
        &self.pages
    }

    /// Forgets a history with its changes.
    pub(super) fn remove(&mut self, number: HistoryNumber) -> Result<(), StoreError> {
        let removed = self.write_without(number.0);
        if removed.is_err() {
            self.database = None;
        }
        removed.map(|()| self.pages.retain(|(history, _), _| *history != number.0))
    }

    fn write_without(&mut self, history: u32) -> Result<(), StoreError> {
        let transaction = self.begin_write()?;
        transaction.open_table(HISTORIES)?.remove(history)?;
        transaction.open_table(RESERVED)?.remove(history)?;
        transaction.open_table(PAGES)?.retain_in(keys_of(history), |_, _| false)?;
        transaction.open_table(GONE)?.retain_in(keys_of(history), |_, _| false)?;
        self.end(transaction)
    }

    fn end(&mut self, transaction: WriteTransaction) -> Result<(), StoreError> {
        transaction.commit()?;
        #[cfg(test)]
        if std::mem::take(&mut self.fails_late) {
            return Err(StoreError::System("it failed late".to_owned()));
        }
        Ok(())
    }
}

fn keys_of(history: u32) -> RangeInclusive<PageKey> {
    (history, i64::MIN)..=(history, i64::MAX)
}

fn unreadable((history, first): PageKey) -> StoreError {
    StoreError::Damaged(format!("the changes of history {history} from {first} on cannot be read"))
}

/// The histories of a file, without their changes.
fn read_histories(database: &Database) -> Result<Vec<Found>, StoreError> {
    let transaction = database.begin_read()?;
    let (histories, reserved) = (transaction.open_table(HISTORIES)?, transaction.open_table(RESERVED)?);
    let mut found = Vec::new();
    for entry in histories.iter()? {
        let (key, value) = entry?;
        let number = key.value();
        let description = record::read_description(value.value())
            .ok_or_else(|| StoreError::Damaged(format!("the description of history {number} cannot be read")))?;
        let reserved = SequenceNumber(reserved.get(number)?.map_or(0, |reserved| reserved.value()));
        found.push(Found { number: HistoryNumber(number), description, changes: Vec::new(), reserved });
    }
    Ok(found)
}

/// Calls `visit` with each page of a file and its bytes, in order.
fn read_pages(
    database: &Database,
    mut visit: impl FnMut(PageKey, Page, &[u8]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let transaction = database.begin_read()?;
    let (pages, gone) = (transaction.open_table(PAGES)?, transaction.open_table(GONE)?);
    for entry in pages.iter()? {
        let (key, value) = entry?;
        let key = key.value();
        let mut page = Page::read(SequenceNumber(key.1), value.value()).ok_or_else(|| unreadable(key))?;
        if gone.get(key)?.is_some_and(|gone| !page.read_gone(gone.value())) {
            return Err(unreadable(key));
        }
        visit(key, page, value.value())?;
    }
    Ok(())
}

/// Writes what is left of a page of which changes are gone, and returns it.
fn write_remains(
    page: Page,
    key: PageKey,
    pages: &mut Table<'_, PageKey, &'static [u8]>,
    gone: &mut Table<'_, PageKey, &'static [u8]>,
    bytes: &mut Vec<u8>,
) -> Result<Option<Page>, StoreError> {
    let page = match page.remains() {
        Remains::Much => {
            gone.insert(key, page.gone())?;
            return Ok(Some(page));
        }
        Remains::Nothing => {
            pages.remove(key)?;
            None
        }
        Remains::Little => {
            bytes.clear();
            let before = pages.get(key)?.ok_or_else(|| unreadable(key))?;
            let rewritten = page.rewrite(before.value(), bytes).ok_or_else(|| unreadable(key))?;
            drop(before);
            pages.insert(key, bytes.as_slice())?;
            Some(rewritten)
        }
    };
    gone.remove(key)?;
    Ok(page)
}

/// How much of a file is checked when it is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checked {
    /// Every page: a store that was damaged is not to serve half of what was acknowledged.
    Whole,
    /// What was not closed properly.
    AsNeeded,
}

fn open_database(file: &KeptFile, checked: Checked) -> Result<Database, StoreError> {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(checked == Checked::Whole);
    builder.create_with_backend(file.clone()).map_err(|error| match error {
        DatabaseError::Storage(StorageError::Corrupted(why)) => StoreError::Damaged(why),
        other => other.into(),
    })
}
