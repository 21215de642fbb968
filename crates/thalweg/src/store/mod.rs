//! The store of PERSISTENT histories: one file for a participant, and a thread that commits in groups what writers tell (DDS 1.4
//! §2.2.3.4).
//!
//! A write does not wait for the disk. It waits where 16 MiB of its writer wait to be stored, and fails while the store does. What
//! `wait_for_acknowledgments` has confirmed is on the disk.

mod file;
mod kept;
mod page;
#[cfg(test)]
mod power_loss;
mod record;
mod removal;
mod renewal;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use file::{Description, HistoryChange, HistoryNumber, StoreError, StoreFile};
use thalweg_rtps::discovery::endpoint_data::PublicationData;
use thalweg_rtps::history::Records;
use thalweg_rtps::participant::{Participant, StoredHistory, WriterConfig};
use thalweg_rtps::qos::WriterQos;
use thalweg_rtps::shared::Shared;
use thalweg_rtps::types::{EntityId, Guid, GuidPrefix, HistoryIdentity, SequenceNumber};
use thalweg_rtps::writer::{Writer, WriterOptions};
use thalweg_transport::{clock, entropy};

use crate::publication::WriterCell;
use crate::{Error, ErrorKind};

/// Numbers set aside for a writer at a time: some seconds of the fastest stream. A crash leaves the rest of them unused.
const RESERVED_AHEAD: i64 = 1 << 20;

/// Pause before a commit that failed is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Longest time after which samples that go are removed from the file although nobody writes.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// What the thread calls when commits have moved a writer on, or have begun to fail.
type Notify = Box<dyn Fn(EntityId) + Send + Sync>;

/// A store in use by a participant.
pub(crate) struct Store {
    /// `None` once the participant has ended.
    file: Mutex<Option<StoreFile>>,
    histories: Mutex<Vec<History>>,
    /// The number of the next new history: none is used twice while the store is open.
    next_number: AtomicU32,
    domain_id: u32,
    /// Where the file is, for errors.
    path: String,
    /// Why the last commit failed; `None` while all is well.
    failure: Mutex<Option<String>>,
    is_failing: AtomicBool,
    /// Held while a writer is created: two are not to prepare the same history.
    creating: Mutex<()>,
    /// The thread waits to be woken.
    is_idle: AtomicBool,
    stopping: AtomicBool,
    thread: OnceLock<Thread>,
}

/// A history that the store keeps.
struct History {
    number: HistoryNumber,
    description: Description,
    /// The stored description differs from this one.
    is_changed: bool,
    /// Its removal failed, and nobody knows what the file has of it: the next commit is to hold all of it.
    is_doubtful: bool,
    /// `None` until its writer was created.
    writer: Option<Shared<Writer>>,
    /// 0 while nobody knows whether the file has the history at all.
    reserved: SequenceNumber,
}

/// The thread of a store; it ends with [`StoreThread::stop`].
pub(crate) struct StoreThread {
    store: Arc<Store>,
    handle: Mutex<Option<JoinHandle<()>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Histories that were found in a file and are to be restored.
pub(crate) struct Restorable(Vec<(HistoryNumber, WriterConfig, StoredHistory)>);

impl Store {
    /// Opens the file and sets numbers aside for every history in it.
    ///
    /// # Errors
    /// [`ErrorKind::PreconditionNotMet`] when another participant uses it, [`ErrorKind::Error`] when it is damaged,
    /// [`ErrorKind::OutOfResources`] when the system refuses something.
    pub(crate) fn open(path: &Path, domain_id: u32) -> Result<(Arc<Store>, Restorable), Error> {
        let told = path.display().to_string();
        let failed = |error: StoreError| {
            let (kind, advice) = match &error {
                StoreError::InUse => (ErrorKind::PreconditionNotMet, "give each participant a file of its own"),
                StoreError::OtherLayout(_) => {
                    (ErrorKind::Error, "let the version that wrote it serve it, or move it away to begin anew")
                }
                StoreError::Damaged(_) => (ErrorKind::Error, "put a copy of it back, or move it away to begin anew"),
                StoreError::System(_) => (ErrorKind::OutOfResources, "look at the disk and at the rights to the file"),
            };
            let cause = format!("cannot use the store {told}: {error}");
            Error::new(kind, "create_participant", cause).because(error).advise(advice)
        };
        let (mut file, found) = StoreFile::open(path).map_err(failed)?;
        let (mut histories, mut restorable, mut reservations) = (Vec::new(), Vec::new(), Vec::new());
        for found in found {
            let (number, description) = (found.number, found.description);
            let reserved = match description.domain_id == domain_id {
                true => found.reserved + RESERVED_AHEAD,
                false => found.reserved,
            };
            if description.domain_id == domain_id {
                reservations.push(reservation(number, reserved));
                let (identity, last) = (description.identity, found.reserved);
                let stored = StoredHistory { identity, changes: found.changes, last, reserved };
                restorable.push((number, description.config(), stored));
            }
            histories.push(History::new(number, description, reserved));
        }
        file.commit(&reservations).map_err(failed)?;
        let next_number = histories.iter().map(|history| history.number.0 + 1).max().unwrap_or_default();
        let store = Store {
            file: Mutex::new(Some(file)),
            histories: Mutex::new(histories),
            next_number: AtomicU32::new(next_number),
            domain_id,
            path: told.clone(),
            failure: Mutex::default(),
            is_failing: AtomicBool::new(false),
            creating: Mutex::default(),
            is_idle: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            thread: OnceLock::new(),
        };
        Ok((Arc::new(store), Restorable(restorable)))
    }

    /// Brings the histories of the file back: their writers serve readers from now on.
    pub(crate) fn restore(&self, restorable: Restorable, participant: &mut Participant) -> Result<(), Error> {
        for (number, config, stored) in restorable.0 {
            let topic = config.topic_name.clone();
            let restored = participant.restore_writer(clock::now(), config, stored);
            let writer = restored.map_err(|error| Error::qos("create_participant", &topic, error))?;
            let mut histories = lock(&self.histories);
            if let Some(history) = histories.iter_mut().find(|history| history.number == number) {
                history.writer = Some(writer);
            }
        }
        Ok(())
    }

    /// Creates the writer of a history by `create`. A new history is on the disk before.
    pub(crate) fn create_writer(
        &self,
        config: &WriterConfig,
        create: impl FnOnce(StoredHistory) -> Result<Arc<WriterCell>, Error>,
    ) -> Result<Arc<WriterCell>, Error> {
        let _one_at_a_time = lock(&self.creating);
        let stored = self.prepare(config)?;
        let identity = stored.identity;
        let created = create(stored);
        match &created {
            Ok(cell) => self.attach(identity, cell.writer(), &config.qos),
            Err(_) => self.give_up(identity),
        }
        created
    }

    /// What the store has of a history, which is new unless it is known.
    fn prepare(&self, config: &WriterConfig) -> Result<StoredHistory, Error> {
        let mut histories = lock(&self.histories);
        let is_known = |history: &History| history.description.is_of(self.domain_id, config);
        let place = match histories.iter().position(is_known) {
            Some(place) => place,
            None => {
                let no_entropy = |error| Error::system("create_writer", error);
                let identity = HistoryIdentity(entropy::bytes().map_err(no_entropy)?);
                let number = HistoryNumber(self.next_number.fetch_add(1, Ordering::Relaxed));
                let description = Description::new(identity, self.domain_id, config);
                histories.push(History::new(number, description, SequenceNumber::ZERO));
                histories.len() - 1
            }
        };
        let history = &mut histories[place];
        if history.reserved == SequenceNumber::ZERO {
            // One that fails may have reached the disk: the next attempt is to be about the same history.
            let last = history.writer.as_ref().map_or(SequenceNumber::ZERO, |writer| writer.lock().last());
            let reserved = last + RESERVED_AHEAD;
            let description = Some(history.description.clone());
            let change = HistoryChange { description, ..reservation(history.number, reserved) };
            self.with_file(|file| file.commit(&[change]))
                .map_err(|error| self.error("create_writer", &error.to_string()))?;
            history.reserved = reserved;
        }
        let (identity, reserved) = (history.description.identity, history.reserved);
        Ok(StoredHistory { identity, changes: Vec::new(), last: SequenceNumber::ZERO, reserved })
    }

    /// The writer of a prepared history was created.
    fn attach(&self, identity: HistoryIdentity, writer: &Shared<Writer>, qos: &Arc<WriterQos>) {
        let mut histories = lock(&self.histories);
        let Some(history) = histories.iter_mut().find(|history| history.description.identity == identity) else {
            return;
        };
        history.writer = Some(writer.clone());
        if history.description.publication.qos != *qos {
            history.description.publication.qos = Arc::clone(qos);
            history.is_changed = true;
        }
    }

    /// The writer of a prepared history could not be created: a history that is new goes.
    fn give_up(&self, identity: HistoryIdentity) {
        let mut histories = lock(&self.histories);
        let of_it = |history: &History| history.description.identity == identity && history.writer.is_none();
        if let Some(place) = histories.iter().position(of_it) {
            match self.with_file(|file| file.remove(histories[place].number)) {
                Ok(()) => _ = histories.remove(place),
                Err(error) => {
                    tracing::warn!("the store {} keeps a history that nobody writes: {error}", self.path);
                    histories[place].reserved = SequenceNumber::ZERO;
                }
            }
        }
    }

    fn with_file<R>(&self, use_file: impl FnOnce(&mut StoreFile) -> Result<R, StoreError>) -> Result<R, StoreError> {
        let over = || StoreError::System("its participant has ended".to_owned());
        lock(&self.file).as_mut().ok_or_else(over).and_then(use_file)
    }

    /// Something was written. The caller holds no lock.
    #[inline]
    pub(crate) fn note_written(&self) {
        if self.is_idle.load(Ordering::Relaxed) && self.is_idle.swap(false, Ordering::AcqRel) {
            self.wake();
        }
    }

    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Why nothing can be written now, if that is so.
    pub(crate) fn failure(&self, operation: &'static str) -> Option<Error> {
        if !self.is_failing.load(Ordering::Acquire) {
            return None;
        }
        lock(&self.failure).as_ref().map(|why| self.error(operation, why))
    }

    fn error(&self, operation: &'static str, why: &str) -> Error {
        let cause = format!("failed: the store {} cannot be written: {why}", self.path);
        Error::new(ErrorKind::OutOfResources, operation, cause)
            .advise("make room on the disk; what was written is stored as soon as that is possible")
    }

    /// What the writers have told since they were asked last.
    fn gather(&self) -> Vec<HistoryChange> {
        let mut changes = Vec::new();
        for history in lock(&self.histories).iter_mut() {
            let Some(writer) = &history.writer else { continue };
            let (records, last) = {
                let mut writer = writer.lock();
                (writer.take_records(), writer.last())
            };
            let is_whole = std::mem::take(&mut history.is_doubtful);
            let is_short = is_whole || history.reserved - last < RESERVED_AHEAD / 2;
            let reserved = is_short.then_some(last + RESERVED_AHEAD);
            let description = std::mem::take(&mut history.is_changed).then(|| history.description.clone());
            if records.is_some() || reserved.is_some() || description.is_some() {
                let records = records.unwrap_or_else(|| Records { up_to: SequenceNumber::ZERO, ..Records::default() });
                changes.push(HistoryChange { number: history.number, description, records, reserved, is_whole });
            }
        }
        changes
    }

    /// What was gathered is on the disk.
    fn note_stored(&self, changes: &[HistoryChange], notify: &Notify) {
        let has_failed = self.is_failing.swap(false, Ordering::AcqRel);
        if has_failed {
            tracing::info!("the store {} can be written again", self.path);
            *lock(&self.failure) = None;
        }
        let mut moved = Vec::new();
        for history in lock(&self.histories).iter_mut() {
            // One whose removal has failed since is stored anew.
            let change = changes.iter().find(|change| change.number == history.number && !history.is_doubtful);
            history.reserved = change.and_then(|change| change.reserved).unwrap_or(history.reserved);
            if let Some(writer) = history.writer.as_ref().filter(|_| has_failed || change.is_some()) {
                let mut writer = writer.lock();
                writer
                    .note_stored(change.map_or(SequenceNumber::ZERO, |change| change.records.up_to), history.reserved);
                moved.push(writer.guid().entity);
            }
        }
        moved.into_iter().for_each(notify);
    }

    fn note_failure(&self, error: &StoreError, notify: &Notify) {
        *lock(&self.failure) = Some(error.to_string());
        if !self.is_failing.swap(true, Ordering::AcqRel) {
            crate::runtime::warn(&format!("the store {} cannot be written: {error}", self.path));
        }
        let writers: Vec<Shared<Writer>> =
            lock(&self.histories).iter().filter_map(|history| history.writer.clone()).collect();
        for writer in writers {
            let entity = {
                let mut writer = writer.lock();
                writer.note_store_failed();
                writer.guid().entity
            };
            notify(entity);
        }
    }

    fn run(&self, notify: &Notify) {
        loop {
            let is_last = self.stopping.load(Ordering::Acquire);
            let changes = self.gather();
            if !changes.is_empty() {
                self.commit_until_stored(changes, notify);
            } else if is_last {
                return self.release_numbers();
            } else {
                self.is_idle.store(true, Ordering::SeqCst);
                // What was written before this thread counted as idle is found here; later writes wake it.
                if self.has_news() || self.stopping.load(Ordering::Acquire) {
                    self.is_idle.store(false, Ordering::Relaxed);
                    continue;
                }
                thread::park_timeout(SWEEP_EVERY);
                self.is_idle.store(false, Ordering::Relaxed);
            }
        }
    }

    fn has_news(&self) -> bool {
        lock(&self.histories).iter().any(|history| {
            history.is_changed || history.writer.as_ref().is_some_and(|writer| writer.lock().has_records())
        })
    }

    fn commit_until_stored(&self, mut changes: Vec<HistoryChange>, notify: &Notify) {
        loop {
            let committed = {
                let histories = lock(&self.histories);
                // What was removed since it was gathered is not to come back, nor policies that have changed. Where a removal has
                // failed, all is gathered anew.
                changes.retain_mut(|change| {
                    let history = histories.iter().find(|history| history.number == change.number);
                    if let (Some(history), Some(description)) = (history, &mut change.description) {
                        description.clone_from(&history.description);
                    }
                    history.is_some_and(|history| !history.is_doubtful)
                });
                self.with_file(|file| file.commit(&changes))
            };
            match committed {
                Ok(()) => return self.note_stored(&changes, notify),
                Err(error) => self.note_failure(&error, notify),
            }
            if self.stopping.load(Ordering::Acquire) {
                tracing::error!("the store {} lacks the last samples, which nobody was told are stored", self.path);
                return;
            }
            thread::park_timeout(RETRY_AFTER);
        }
    }

    /// Nothing is written any more: numbers that were set aside and not used are free again.
    fn release_numbers(&self) {
        let histories = lock(&self.histories);
        let used = histories.iter().filter_map(|history| {
            let last = history.writer.as_ref()?.lock().last();
            Some(reservation(history.number, last))
        });
        let used: Vec<HistoryChange> = used.collect();
        if let Err(error) = self.with_file(|file| file.commit(&used)) {
            tracing::warn!("the store {} keeps unused numbers: {error}", self.path);
        }
    }
}

fn reservation(number: HistoryNumber, reserved: SequenceNumber) -> HistoryChange {
    HistoryChange { number, description: None, records: Records::default(), reserved: Some(reserved), is_whole: false }
}

impl StoreThread {
    /// Starts the thread, which calls `notify` for each writer that commits have moved on.
    pub(crate) fn start(
        store: Arc<Store>,
        notify: impl Fn(EntityId) + Send + Sync + 'static,
    ) -> Result<StoreThread, Error> {
        let (of_thread, notify): (_, Notify) = (Arc::clone(&store), Box::new(notify));
        let handle = thread::Builder::new()
            .name("thalweg-store".into())
            .spawn(move || {
                of_thread.run(&notify);
                // Whoever holds an endpoint still does not keep the file from others.
                *lock(&of_thread.file) = None;
            })
            .map_err(|error| Error::system("starting the store's thread", error))?;
        _ = store.thread.set(handle.thread().clone());
        Ok(StoreThread { store, handle: Mutex::new(Some(handle)) })
    }

    /// Stores what is left and closes the file.
    pub(crate) fn stop(&self) {
        self.store.stopping.store(true, Ordering::Release);
        let Some(handle) = lock(&self.handle).take() else { return };
        handle.thread().unpark();
        // A task that this thread woke may drop the last handle.
        if handle.thread().id() != thread::current().id() && handle.join().is_err() {
            tracing::error!("the thread of the store ended by a panic");
        }
    }
}

impl Drop for StoreThread {
    fn drop(&mut self) {
        self.stop();
    }
}

impl History {
    fn new(number: HistoryNumber, description: Description, reserved: SequenceNumber) -> History {
        History { number, description, is_changed: false, is_doubtful: false, writer: None, reserved }
    }

    fn is_of(&self, writer: EntityId) -> bool {
        self.writer.as_ref().is_some_and(|state| state.lock().guid().entity == writer)
    }
}

impl Description {
    fn new(identity: HistoryIdentity, domain_id: u32, config: &WriterConfig) -> Description {
        let guid = Guid::new(GuidPrefix([0; 12]), EntityId::user_writer(1, config.keyed));
        let publication = PublicationData::new(guid, &config.topic_name, &config.type_name, Arc::clone(&config.qos));
        Description { identity, domain_id, name: config.options.history_name.clone(), publication }
    }

    fn is_of(&self, domain_id: u32, config: &WriterConfig) -> bool {
        let Description { publication, .. } = self;
        let names = |qos: &WriterQos| qos.partition.iter().cloned().collect::<BTreeSet<String>>();
        self.domain_id == domain_id
            && self.name == config.options.history_name
            && publication.topic_name == config.topic_name
            && publication.type_name == config.type_name
            && publication.guid.entity.keyed() == config.keyed
            && names(&publication.qos) == names(&config.qos)
    }

    /// The memory of its history is unbounded: whatever is stored comes back, and nobody writes before a writer takes over that has a
    /// bound of its own.
    fn config(&self) -> WriterConfig {
        let history_name = self.name.clone();
        WriterConfig {
            topic_name: self.publication.topic_name.clone(),
            type_name: self.publication.type_name.clone(),
            keyed: self.publication.guid.entity.keyed(),
            qos: Arc::clone(&self.publication.qos),
            options: WriterOptions { history_name, history_bytes_max: usize::MAX, ..WriterOptions::default() },
        }
    }
}
