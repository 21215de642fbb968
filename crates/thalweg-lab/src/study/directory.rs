//! A run directory: its lock, its complete runs and its unfinished ones.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::cells::CellFailure;
use super::error::StudyError;
use super::experiment::Experiment;
use super::manifest::{Manifest, State};
use crate::error::LabError;

/// A run directory, locked against other writers while this value lives.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// Locked; the system unlocks it when the process ends in any way.
    _lock: File,
}

/// A whole run in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunName {
    pub(crate) round: u32,
    pub(crate) cell: u32,
    /// From 1.
    pub(crate) attempt: u32,
}

impl Directory {
    /// Makes a directory for a new study.
    pub(super) fn create(path: &Path, text: &str) -> Result<Directory, LabError> {
        if path.join(MANIFEST).exists() {
            return Err(StudyError::Taken { directory: path.to_owned() }.into());
        }
        fs::create_dir_all(path.join(RUNS)).map_err(|error| not_written(path, error))?;
        let directory = Directory { path: path.to_path_buf(), _lock: lock(path)? };
        directory.write(SCENARIO, text)?;
        Ok(directory)
    }

    /// Takes over a directory that was made before.
    pub(super) fn open(path: &Path) -> Result<Directory, LabError> {
        load_manifest(path)?;
        Ok(Directory { path: path.to_path_buf(), _lock: lock(path)? })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces a file as a whole: readers see the old one or the new one.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), LabError> {
        let (path, new) = (self.path.join(name), self.path.join(format!("{name}.new")));
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &path)
        };
        write().map_err(|error| not_written(&path, error))
    }

    pub(super) fn write_manifest(&self, manifest: &Manifest) -> Result<(), LabError> {
        self.write(MANIFEST, &serde_json::to_string_pretty(manifest).map_err(LabError::here)?)
    }

    pub(super) fn write_failures(&self, failures: &[CellFailure]) -> Result<(), LabError> {
        self.write(FAILURES, &serde_json::to_string_pretty(failures).map_err(LabError::here)?)
    }

    /// Adds a line to the diary.
    pub(super) fn note(&self, event: &str, content: impl Serialize) -> Result<(), LabError> {
        let path = self.path.join(EVENTS);
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        let line = json!({ "at_unix_s": at, "event": event, "content": content });
        let append =
            || OpenOptions::new().create(true).append(true).open(&path)?.write_all(format!("{line}\n").as_bytes());
        append().map_err(|error| not_written(&path, error))
    }

    /// An empty folder for a run that is to be made, without what an earlier process left half done.
    pub(super) fn begin_run(&self, name: RunName) -> Result<PathBuf, LabError> {
        let path = self.path.join(RUNS).join(format!("{}{PARTIAL}", name.folder()));
        let make = || {
            if path.exists() {
                fs::remove_dir_all(&path)?;
            }
            fs::create_dir_all(&path)?;
            // Workers are told where to write; they may have another current directory.
            fs::canonicalize(&path)
        };
        make().map_err(|error| not_written(&path, error))
    }

    /// Declares a run whole.
    pub(super) fn end_run(&self, name: RunName, partial: &Path) -> Result<(), LabError> {
        let path = run_folder(&self.path, name);
        fs::rename(partial, &path).map_err(|error| not_written(&path, error))
    }

    /// Fails where the folder of the runs takes no more data. A run that ended for that reason tells nothing of its cell.
    pub(super) fn check_room(&self) -> Result<(), LabError> {
        let path = self.path.join(RUNS).join(ROOM);
        let write = || {
            let mut file = File::create(&path)?;
            file.write_all(&vec![1_u8; ROOM_BYTES])?;
            file.sync_all()
        };
        let written = write();
        // There may be none to remove.
        let _ = fs::remove_file(&path);
        written.map_err(|error| not_written(&path, error))
    }

    /// Throws a run away that did not become whole; what cannot be removed now is removed by the next process.
    pub(super) fn abandon_run(&self, partial: &Path) {
        let _ = fs::remove_dir_all(partial);
    }
}

impl RunName {
    /// Where the run lies in its directory, for links.
    pub(super) fn path(self) -> String {
        format!("{RUNS}/{}/", self.folder())
    }

    fn folder(self) -> String {
        format!("round-{:03}-cell-{:03}-attempt-{}", self.round, self.cell, self.attempt)
    }

    fn parse(name: &str) -> Option<RunName> {
        let mut words = name.split('-');
        let mut number = |word: &str| (words.next()? == word).then(|| words.next()?.parse().ok()).flatten();
        let found = RunName { round: number("round")?, cell: number("cell")?, attempt: number("attempt")? };
        (found.folder() == name).then_some(found)
    }
}

/// The folder of a whole run.
pub(super) fn run_folder(directory: &Path, name: RunName) -> PathBuf {
    directory.join(RUNS).join(name.folder())
}

/// Every whole run, by round, cell and attempt.
pub(super) fn whole_runs(directory: &Path) -> Vec<RunName> {
    let mut out: Vec<RunName> = entries(directory).into_iter().filter_map(|(_, name)| RunName::parse(&name)).collect();
    out.sort();
    out
}

/// The run that is being made, or was when its process ended, and its folder.
pub(super) fn run_in_the_making(directory: &Path) -> Option<(RunName, PathBuf)> {
    let parse = |(path, name): (PathBuf, String)| Some((RunName::parse(name.strip_suffix(PARTIAL)?)?, path));
    let made = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    // A process that was killed may have left another one.
    entries(directory).into_iter().filter_map(parse).max_by_key(|(_, path)| made(path))
}

/// The cells of a run directory that were left out because they failed.
pub(super) fn load_failures(directory: &Path) -> Result<Vec<CellFailure>, LabError> {
    let path = directory.join(FAILURES);
    if path.exists() { load_json(&path) } else { Ok(Vec::new()) }
}

/// The manifest of a run directory.
pub(super) fn load_manifest(directory: &Path) -> Result<Manifest, LabError> {
    let path = directory.join(MANIFEST);
    if !path.exists() {
        return Err(StudyError::NoDirectory { directory: directory.to_owned() }.into());
    }
    let manifest: Manifest = load_json(&path)?;
    if manifest.schema != Manifest::SCHEMA {
        return Err(StudyError::OtherLayout { file: path, found: manifest.schema, expected: Manifest::SCHEMA }.into());
    }
    Ok(manifest)
}

/// What a run directory measures, with the seed of its first start, and the text that says so.
pub(super) fn load_experiment<E: Experiment>(directory: &Path, seed: u64) -> Result<(E, String), LabError> {
    let file = directory.join(SCENARIO);
    let text = read_text(&file)?;
    Ok((E::parse(&file.display().to_string(), &text)?.with_seed(seed), text))
}

/// The schema of the text that says what a run directory measures, where it names one.
pub(crate) fn schema_of(directory: &Path) -> Result<Option<String>, LabError> {
    load_manifest(directory)?;
    schema_in(&directory.join(SCENARIO))
}

/// The schema that the text in `file` names; `None` where it is no TOML or names none.
///
/// # Errors
/// It cannot be read.
pub(crate) fn schema_in(file: &Path) -> Result<Option<String>, LabError> {
    let table: Option<toml::Table> = read_text(file)?.parse().ok();
    Ok(table.and_then(|table| table.get("schema")?.as_str().map(str::to_owned)))
}

/// A run directory that was found.
#[derive(Debug)]
pub struct FoundRun {
    /// Where it lies.
    pub path: PathBuf,
    /// Its manifest, or the reason why it cannot be read.
    pub manifest: Result<Manifest, LabError>,
    /// Whether a process writes into it now.
    pub is_in_use: bool,
}

/// The run directories in `folder`, itself included, by name.
pub fn find(folder: &Path) -> Vec<FoundRun> {
    let below = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> =
        below.chain([folder.to_path_buf()]).filter(|path| path.join(MANIFEST).is_file()).collect();
    paths.sort();
    let found = |path: PathBuf| FoundRun { manifest: load_manifest(&path), is_in_use: is_in_use(&path), path };
    paths.into_iter().map(found).collect()
}

/// Whether a process writes into a run directory now.
pub(super) fn is_in_use(path: &Path) -> bool {
    File::open(path.join(LOCK)).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

fn lock(path: &Path) -> Result<File, LabError> {
    let name = path.join(LOCK);
    let file = File::create(&name).map_err(|error| not_written(&name, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StudyError::InUse { directory: path.to_owned() }.into()),
        Err(TryLockError::Error(error)) => Err(not_written(&name, error)),
    }
}

fn entries(directory: &Path) -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(directory.join(RUNS)).into_iter().flatten();
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.ok()?;
        Some((entry.path(), entry.file_name().to_str()?.to_owned()))
    };
    entries.filter_map(entry).collect()
}

/// What a file of JSON holds.
pub(crate) fn load_json<T: DeserializeOwned>(file: &Path) -> Result<T, LabError> {
    let damaged = |source| StudyError::Damaged { file: file.to_owned(), source }.into();
    serde_json::from_str(&read_text(file)?).map_err(damaged)
}

pub(crate) fn write_text(file: &Path, text: &str) -> Result<(), LabError> {
    fs::write(file, text).map_err(|error| not_written(file, error))
}

pub(crate) fn read_text(file: &Path) -> Result<String, LabError> {
    fs::read_to_string(file).map_err(|source| StudyError::Unreadable { file: file.to_owned(), source }.into())
}

fn not_written(path: &Path, source: std::io::Error) -> LabError {
    StudyError::NotWritten { file: path.to_owned(), source }.into()
}

const MANIFEST: &str = "manifest.json";
const SCENARIO: &str = "scenario.toml";
const FAILURES: &str = "failures.json";
const EVENTS: &str = "events.jsonl";
const LOCK: &str = "lock";
const RUNS: &str = "runs";
/// The results of all runs.
pub(super) const RESULTS: &str = "results.json";
const PARTIAL: &str = ".partial";
/// A file that is written to see whether there is room for it.
const ROOM: &str = "room";
const ROOM_BYTES: usize = 1 << 20;

impl FoundRun {
    /// Whether its experiment came to its end.
    pub fn has_result(&self) -> bool {
        self.manifest.as_ref().is_ok_and(|manifest| manifest.state == State::Complete)
    }

    /// Its progress, in words.
    pub fn state(&self) -> String {
        match &self.manifest {
            Ok(manifest) => manifest.state_now(self.is_in_use),
            Err(error) => error.to_string(),
        }
    }
}
