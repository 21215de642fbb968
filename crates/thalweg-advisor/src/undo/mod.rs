//! The way back: what was before each change, on disk before the change is made.
//!
//! The undo file has a line of JSON for each event and only grows. An *intent* names a place, its value before and the value that is
//! going to be written; it is synchronised before the place is touched. A *done* names the value that the system took. A process that
//! is killed leaves an intent without a done: the place has one value or the other, and going back writes the first. A line that was
//! being written then has no end and stands for nothing, since its change had not begun.

mod store;

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};
use thalweg_host::HostFiles;

use crate::place::{SettingPlace, SettingPlaces};

pub use store::{FileStore, UndoStore};

/// The run of the kernel and the network namespace in which a change was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostIdentity {
    /// Identity of the run; a restart undoes what is not in a file.
    pub boot: Option<String>,
    /// Identity of the network namespace, to which interfaces and most settings belong.
    pub namespace: Option<String>,
}

impl HostIdentity {
    /// That of this host, or of a recorded one.
    pub fn read(files: &HostFiles) -> HostIdentity {
        HostIdentity { boot: files.boot_id(), namespace: files.network_namespace() }
    }
}

/// A line of the undo file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "line")]
enum Line {
    /// The following lines were written there.
    Begin { version: u32, host: HostIdentity },
    /// A place is about to be changed.
    Intent { number: u64, place: SettingPlace, before: Option<String>, asked: Option<String> },
    /// It was, or was not; this is its value.
    Done { number: u64, actual: Option<String> },
}

/// All changes of one place in one network namespace that followed each other without a stranger's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastChange {
    /// The place.
    pub place: SettingPlace,
    /// Its value before the first of them.
    pub before: Option<String>,
    /// Where the last was made.
    host: HostIdentity,
    /// Its value when the last was about to be made.
    found: Option<String>,
    /// The value that was asked for last.
    asked: Option<String>,
    /// The value that the system took last; `None` while that is not known.
    actual: Option<Option<String>>,
    /// The number of the last.
    number: u64,
}

impl PastChange {
    /// Whether the place still has a value of ours, as far as is known.
    pub fn is_ours(&self, now: &Option<String>) -> bool {
        *now == self.asked || self.actual.as_ref() == Some(now)
    }

    /// Whether the place belongs to another network namespace than that of `host`. A restart leaves none of those that were there.
    fn is_elsewhere(&self, host: &HostIdentity) -> bool {
        let is_shared = matches!(self.place, SettingPlace::File { .. } | SettingPlace::Governor { .. });
        !is_shared && self.host.boot == host.boot && self.host.namespace != host.namespace
    }
}

/// An undo file.
pub struct UndoLog<Store> {
    store: Store,
    host: HostIdentity,
    /// In the order of their last change.
    past: Vec<PastChange>,
    has_begun: bool,
    next: u64,
    bytes: usize,
}

impl<Store: UndoStore> UndoLog<Store> {
    /// Reads what was changed earlier.
    ///
    /// # Errors
    /// The file cannot be read, was not written by this program, or is damaged elsewhere than in its last line.
    pub fn open(mut store: Store, host: HostIdentity) -> Result<UndoLog<Store>, UndoError> {
        let bytes = store.load()?;
        let mut log = UndoLog { store, host, past: Vec::new(), has_begun: false, next: 0, bytes: 0 };
        let mut writer = HostIdentity::default();
        let lines = parse(&bytes)?;
        for line in lines.lines {
            log.take(line, &mut writer);
        }
        log.bytes = lines.whole_bytes;
        if lines.whole_bytes < bytes.len() {
            log.store.truncate(lines.whole_bytes)?;
        }
        Ok(log)
    }

    /// The changes, the last one first.
    pub fn past(&self) -> impl Iterator<Item = &PastChange> {
        self.past.iter().rev()
    }

    /// The changes of this network namespace and of what all of them share, the last one first.
    pub(crate) fn past_here(&self) -> impl Iterator<Item = &PastChange> {
        let host = &self.host;
        self.past().filter(move |past| !past.is_elsewhere(host))
    }

    /// Changes a place; the way back is on disk before. Returns the value that the system took.
    ///
    /// # Errors
    /// The undo file cannot be written, and nothing was changed; or the system refused the change.
    pub fn change(
        &mut self,
        places: &mut dyn SettingPlaces,
        place: &SettingPlace,
        value: Option<&str>,
    ) -> Result<Option<String>, UndoError> {
        let found = places.read(place)?;
        self.write(places, place, found, value)
    }

    /// Writes a value to a place that has, or is to count as having, the value `found`.
    fn write(
        &mut self,
        places: &mut dyn SettingPlaces,
        place: &SettingPlace,
        found: Option<String>,
        value: Option<&str>,
    ) -> Result<Option<String>, UndoError> {
        if found.as_ref().is_some_and(|found| found.len() > VALUE_MAX_BYTES) {
            return Err(UndoError::TooLarge(place.clone()));
        }
        if !self.has_begun {
            self.append(&Line::Begin { version: VERSION, host: self.host.clone() })?;
            self.has_begun = true;
        }
        let number = self.next;
        let asked = value.map(str::to_owned);
        self.append(&Line::Intent { number, place: place.clone(), before: found, asked })?;
        let written = places.write(place, value);
        let actual = places.read(place);
        if let Ok(actual) = &actual {
            self.append(&Line::Done { number, actual: actual.clone() })?;
        }
        written.map_err(|source| UndoError::Refused { place: place.clone(), source })?;
        Ok(actual?)
    }

    /// Puts every place back that still has the value of ours; each is told. The file is removed when nothing is left to do.
    ///
    /// # Errors
    /// The undo file cannot be removed; going back again does no harm.
    pub fn revert(
        mut self,
        places: &mut dyn SettingPlaces,
        strangers: ForeignChanges,
    ) -> Result<Vec<Reverted>, UndoError> {
        let past: Vec<PastChange> = self.past().cloned().collect();
        let reverted: Vec<Reverted> = past.into_iter().map(|past| self.put_back(places, past, strangers)).collect();
        if reverted.iter().all(|one| one.ending.is_final()) {
            self.store.clear()?;
        }
        Ok(reverted)
    }

    fn put_back(&mut self, places: &mut dyn SettingPlaces, past: PastChange, strangers: ForeignChanges) -> Reverted {
        let ending = self.ending(places, &past, strangers);
        let ending = ending.unwrap_or_else(|error| RevertEnding::Failed(error.to_string()));
        Reverted { place: past.place, before: past.before, ending }
    }

    fn ending(
        &mut self,
        places: &mut dyn SettingPlaces,
        past: &PastChange,
        strangers: ForeignChanges,
    ) -> io::Result<RevertEnding> {
        let has_restarted = past.host.boot != self.host.boot;
        if past.is_elsewhere(&self.host) {
            return Ok(RevertEnding::Elsewhere(past.host.namespace.clone().unwrap_or_else(|| "unknown".to_owned())));
        }
        let now = places.read(&past.place)?;
        let is_file = matches!(past.place, SettingPlace::File { .. });
        if now == past.before {
            return Ok(RevertEnding::AlreadySo);
        }
        if !is_file && (now.is_none() || past.before.is_none()) {
            return Ok(RevertEnding::Gone);
        }
        // Without a done the change may have been taken in part, or not at all, and then the value may be neither of both.
        let is_unfinished = past.actual.is_none() && (!has_restarted || now == past.found);
        let is_ours = past.is_ours(&now) || is_unfinished;
        if !is_ours && has_restarted && !is_file {
            return Ok(RevertEnding::Gone);
        }
        if !is_ours && strangers == ForeignChanges::Respect {
            return Ok(RevertEnding::ChangedByOthers(now));
        }
        // Nobody goes back to the value of a stranger that was overridden.
        let found = if is_ours { now } else { past.before.clone() };
        let after = self.restore(places, past, found)?;
        if after == past.before {
            return Ok(RevertEnding::Restored);
        }
        Ok(RevertEnding::Failed(format!("the system took {} instead", after.as_deref().unwrap_or("nothing"))))
    }

    /// Writes the first value of a place. The undo file is told of that as of any other change: while other places are left it stays, and
    /// what the place gets later is somebody else's.
    fn restore(
        &mut self,
        places: &mut dyn SettingPlaces,
        past: &PastChange,
        found: Option<String>,
    ) -> io::Result<Option<String>> {
        match self.write(places, &past.place, found, past.before.as_deref()) {
            Ok(after) => Ok(after),
            Err(UndoError::Refused { source, .. }) => Err(source),
            Err(_) => {
                // An undo file that cannot be written is no reason to leave the host changed.
                places.write(&past.place, past.before.as_deref())?;
                places.read(&past.place)
            }
        }
    }

    fn append(&mut self, line: &Line) -> Result<(), UndoError> {
        let mut text = serde_json::to_vec(line).map_err(io::Error::from)?;
        text.push(b'\n');
        if self.bytes + text.len() > FILE_MAX_BYTES {
            return Err(UndoError::Full);
        }
        if let Err(error) = self.store.append(&text) {
            // A full disk may have taken a part of the line, after which no other one could be read.
            self.store.truncate(self.bytes)?;
            return Err(error.into());
        }
        self.bytes += text.len();
        let mut writer = self.host.clone();
        self.take(line.clone(), &mut writer);
        Ok(())
    }

    fn take(&mut self, line: Line, writer: &mut HostIdentity) {
        match line {
            Line::Begin { host, .. } => *writer = host,
            Line::Intent { number, place, before, asked } => {
                self.next = self.next.max(number.saturating_add(1));
                // The same place of another namespace has a value and a way back of its own.
                let earlier = self.past.iter().rposition(|past| past.place == place && !past.is_elsewhere(writer));
                let earlier = earlier.map(|at| self.past.remove(at));
                // A value that is not the one we left came from somebody else, and theirs is the one to go back to.
                let earlier = earlier.filter(|past| past.actual.is_none() || past.is_ours(&before));
                let (found, host) = (before, writer.clone());
                let before = earlier.map_or_else(|| found.clone(), |past| past.before);
                self.past.push(PastChange { place, before, host, found, asked, actual: None, number });
            }
            Line::Done { number, actual } => {
                let past = self.past.iter_mut().rev().find(|past| past.number == number && past.actual.is_none());
                if let Some(past) = past {
                    past.actual = Some(actual);
                }
            }
        }
    }
}

/// What is done about places that somebody else has changed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignChanges {
    /// Their values stay.
    Respect,
    /// The first values come back all the same.
    Override,
}

/// A place that was to be put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reverted {
    /// The place.
    pub place: SettingPlace,
    /// The value that it had first.
    pub before: Option<String>,
    /// What became of it.
    pub ending: RevertEnding,
}

/// What became of a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "ending", content = "detail")]
pub enum RevertEnding {
    /// It has its first value again.
    Restored,
    /// It had that value already.
    AlreadySo,
    /// The place is gone, or a restart has undone the change.
    Gone,
    /// Somebody else has changed it to this value since, which stays.
    ChangedByOthers(Option<String>),
    /// It belongs to another network namespace, in which the command has to be run.
    Elsewhere(String),
    /// The system refused.
    Failed(String),
}

impl RevertEnding {
    /// Whether nothing is left to do about the place.
    pub fn is_final(&self) -> bool {
        matches!(self, RevertEnding::Restored | RevertEnding::AlreadySo | RevertEnding::Gone)
    }
}

struct Lines {
    lines: Vec<Line>,
    /// Bytes of the lines that have an end.
    whole_bytes: usize,
}

fn parse(bytes: &[u8]) -> Result<Lines, UndoError> {
    let mut lines = Vec::new();
    let mut whole_bytes = 0;
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let parsed = line.strip_suffix(b"\n").map(serde_json::from_slice::<Line>);
        match parsed {
            Some(Ok(Line::Begin { version, .. })) if version != VERSION => return Err(UndoError::Version(version)),
            Some(Ok(line)) => lines.push(line),
            // The last line, which was being written, or which a power failure left without its bytes.
            _ if whole_bytes + line.len() == bytes.len() => break,
            _ => return Err(UndoError::Damaged { line: index + 1 }),
        }
        whole_bytes += line.len();
    }
    Ok(Lines { lines, whole_bytes })
}

/// Reads bytes as an undo file; returns the places that they tell of and the bytes that stay, if they are one. For fuzzing.
#[doc(hidden)]
pub fn read_any(bytes: &[u8]) -> Option<(Vec<SettingPlace>, Vec<u8>)> {
    let mut store = store::MemoryStore(bytes.to_vec());
    let log = UndoLog::open(&mut store, HostIdentity::default()).ok()?;
    let places = log.past().map(|past| past.place.clone()).collect();
    Some((places, store.0))
}

/// The reason why a change was not made, or could not be undone.
#[derive(Debug)]
pub enum UndoError {
    /// The undo file or a place cannot be read or written.
    Io(io::Error),
    /// Another process is using the undo file.
    Busy,
    /// A line that is not the last one cannot be read.
    Damaged {
        /// Its number, from 1 on.
        line: usize,
    },
    /// Another version of Thalweg wrote the file.
    Version(u32),
    /// The file is as long as it may be.
    Full,
    /// A file that was to be replaced is too large to be kept.
    TooLarge(SettingPlace),
    /// The system refused to change the place; it has the value that it had.
    Refused {
        /// The place.
        place: SettingPlace,
        /// The system's answer.
        source: io::Error,
    },
}

impl From<io::Error> for UndoError {
    fn from(error: io::Error) -> UndoError {
        match error.kind() {
            io::ErrorKind::WouldBlock => UndoError::Busy,
            _ => UndoError::Io(error),
        }
    }
}

impl fmt::Display for UndoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UndoError::Io(error) => write!(f, "the undo file or a setting cannot be read or written: {error}"),
            UndoError::Busy => f.write_str("another advisor is applying or reverting; try again when it has ended"),
            UndoError::Damaged { line } => write!(
                f,
                "line {line} of the undo file cannot be read; the lines around it are JSON with the values before: put back what you \
                 need by hand, then remove the file"
            ),
            UndoError::Version(version) => {
                write!(
                    f,
                    "another version of Thalweg wrote the undo file (layout {version}, not {VERSION}); revert with that one"
                )
            }
            UndoError::Full => f.write_str("the undo file holds 16 MiB of changes; revert first"),
            UndoError::TooLarge(place) => write!(f, "{place} is larger than 64 KiB and was left alone"),
            UndoError::Refused { place, source } => match source.kind() {
                io::ErrorKind::PermissionDenied => write!(f, "{place} needs root (CAP_NET_ADMIN): {source}"),
                io::ErrorKind::ReadOnlyFilesystem => {
                    write!(f, "{place} is only shown here, as in containers: {source}")
                }
                io::ErrorKind::Unsupported => write!(f, "the driver cannot change {place}: {source}"),
                _ => write!(f, "the system refused to change {place}: {source}"),
            },
        }
    }
}

impl std::error::Error for UndoError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            UndoError::Io(source) | UndoError::Refused { source, .. } => Some(source),
            _ => None,
        }
    }
}

const VERSION: u32 = 1;
/// A hundred thousand changes.
const FILE_MAX_BYTES: usize = 16 << 20;
/// Settings are short; only whole files are long.
const VALUE_MAX_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests;
