//! Stores of PERSISTENT histories: what a process has committed is there when the next one starts in its place (DDS 1.4 §2.2.3.4).

use std::collections::BTreeMap;
use std::time::Duration;

use thalweg_rtps::history::{Records, StoredChange};
use thalweg_rtps::participant::StoredHistory;
use thalweg_rtps::shared::Shared;
use thalweg_rtps::types::{HistoryIdentity, SequenceNumber};
use thalweg_rtps::writer::Writer;

use crate::plan::{Ending, Plan};
use crate::record::WrittenRecord;
use crate::simulation::{Happening, Simulation};

/// How a store works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreTimes {
    /// Time until it looks again for something to store.
    pub pause: Duration,
    /// Time that a commit takes.
    pub commit: Duration,
}

/// Numbers set aside for a writer at a time: so few that writers wait for more of them.
const RESERVED_AHEAD: i64 = 200;

/// The stores of all processes.
#[derive(Default)]
pub(crate) struct Stores {
    /// By the first process that used a store, and the topic.
    histories: BTreeMap<(usize, usize), History>,
}

/// What is on a disk of a history.
struct History {
    changes: BTreeMap<SequenceNumber, StoredChange>,
    /// Everything that was written up to this number is there, or was removed.
    up_to: SequenceNumber,
    /// No writer uses a greater number.
    reserved: SequenceNumber,
}

/// A part of a commit that is under way.
pub(crate) struct Commit {
    topic: usize,
    records: Records,
    reserved: Option<SequenceNumber>,
}

impl History {
    fn apply(&mut self, commit: Commit) {
        let Commit { records, reserved, .. } = commit;
        self.changes.extend(records.added.into_iter().map(|change| (change.sequence, change)));
        records.removed.iter().for_each(|gone| _ = self.changes.remove(gone));
        self.up_to = self.up_to.max(records.up_to);
        self.reserved = reserved.unwrap_or(self.reserved);
    }
}

impl Simulation {
    /// A process starts, and with it the writers of which its store has something.
    pub(crate) fn open_store(&mut self, process: usize) {
        let Some(times) = self.plan.processes[process].store else { return };
        let first = first_of(&self.plan, process);
        let here = |number: &usize| self.writers[*number].record.process == process;
        let writers: Vec<usize> = (0..self.writers.len()).filter(here).collect();
        for number in writers {
            self.restore(process, number, first);
        }
        self.queue.plan(self.now + times.pause, Happening::Commit(process));
    }

    fn restore(&mut self, process: usize, number: usize, first: usize) {
        let index = self.writers[number].record.index;
        let Some(history) = self.stores.histories.get_mut(&(first, index.topic)) else { return };
        let changes: Vec<StoredChange> = history.changes.values().cloned().collect();
        let last = history.reserved;
        history.reserved = last + RESERVED_AHEAD;
        let (reserved, sequences) = (history.reserved, changes.iter().map(|change| change.sequence));
        let sequences: Vec<SequenceNumber> = sequences.collect();
        let stored = StoredHistory { identity: identity(first, index.topic), changes, last, reserved };
        let now = self.processes[process].local(self.now);
        let config = self.writer_config(number);
        let Some(participant) = self.processes[process].participant.as_mut() else { return };
        let handle = match participant.restore_writer(now, config, stored) {
            Ok(handle) => handle,
            Err(error) => return self.breach(format!("the history of writer {number} is not restored: {error}")),
        };
        let guid = handle.lock().guid();
        self.endpoints.insert((process, guid.entity), number);
        self.processes[process].stored_writers.insert(index.topic, handle);
        let former = self.former_writers(first, index.topic, number);
        let written = former.iter().flat_map(|former| {
            let record = &self.writers[*former].record;
            record.restored.iter().chain(&record.written).copied()
        });
        let written: BTreeMap<SequenceNumber, WrittenRecord> = written.map(|one| (one.sequence, one)).collect();
        let restored = sequences.iter().filter_map(|sequence| written.get(sequence).copied()).collect();
        let record = &mut self.writers[number].record;
        (record.guid, record.restored, record.former) = (Some(guid), restored, former);
        self.note(process, format!("restores writer {number} with {} changes", sequences.len()));
    }

    /// The writers of a topic that used the same store before.
    fn former_writers(&self, first: usize, topic: usize, number: usize) -> Vec<usize> {
        let writers = self.writers[..number].iter().filter(|writer| writer.record.index.topic == topic);
        let of_store = writers.filter(|writer| first_of(&self.plan, writer.record.process) == first);
        of_store.map(|writer| writer.number).collect()
    }

    /// What the store of a process has for a writer that is to be created: a new history, or one that its participant has already.
    pub(crate) fn stored_for(&mut self, process: usize, topic: usize) -> Option<StoredHistory> {
        self.plan.processes[process].store?;
        let first = first_of(&self.plan, process);
        let history = self.stores.histories.entry((first, topic)).or_insert_with(|| History {
            changes: BTreeMap::new(),
            up_to: SequenceNumber::ZERO,
            reserved: SequenceNumber(RESERVED_AHEAD),
        });
        let (identity, reserved) = (identity(first, topic), history.reserved);
        Some(StoredHistory { identity, changes: Vec::new(), last: SequenceNumber::ZERO, reserved })
    }

    /// The store of a process gathers what is new and begins to commit it.
    pub(crate) fn commit(&mut self, process: usize) {
        let Some(times) = self.plan.processes[process].store else { return };
        if self.processes[process].participant.is_none() {
            return;
        }
        let commits = self.gather(process);
        let next = match commits.is_empty() {
            true => (times.pause, Happening::Commit(process)),
            false => (times.commit, Happening::Committed(process)),
        };
        self.processes[process].committing = commits;
        self.queue.plan(self.now + next.0, next.1);
    }

    fn gather(&self, process: usize) -> Vec<Commit> {
        let first = first_of(&self.plan, process);
        let mut commits = Vec::new();
        for (topic, handle) in &self.processes[process].stored_writers {
            let Some(history) = self.stores.histories.get(&(first, *topic)) else { continue };
            let mut writer = handle.lock();
            let (records, last) = (writer.take_records(), writer.last());
            let is_short = history.reserved - last < RESERVED_AHEAD / 2;
            let reserved = is_short.then_some(last + RESERVED_AHEAD);
            if records.is_some() || reserved.is_some() {
                commits.push(Commit { topic: *topic, records: records.unwrap_or_default(), reserved });
            }
        }
        commits
    }

    /// A commit is on the disk.
    pub(crate) fn committed(&mut self, process: usize) {
        let Some(times) = self.plan.processes[process].store else { return };
        if self.processes[process].participant.is_none() {
            return;
        }
        for commit in std::mem::take(&mut self.processes[process].committing) {
            let topic = commit.topic;
            self.apply(process, commit);
            let first = first_of(&self.plan, process);
            let handle = self.processes[process].stored_writers.get(&topic).cloned();
            let Some((handle, history)) = handle.zip(self.stores.histories.get(&(first, topic))) else { continue };
            handle.lock().note_stored(history.up_to, history.reserved);
            if let Some(words) = differs(&handle, history) {
                self.breach(format!("the store of p{process} has {words}"));
            }
            let entity = handle.lock().guid().entity;
            if let Some(number) = self.endpoints.get(&(process, entity)) {
                self.queue.plan(self.now, Happening::Retry(*number));
            }
        }
        self.queue.plan(self.now + times.pause, Happening::Commit(process));
    }

    fn apply(&mut self, process: usize, commit: Commit) {
        let first = first_of(&self.plan, process);
        if let Some(history) = self.stores.histories.get_mut(&(first, commit.topic)) {
            history.apply(commit);
        }
    }

    /// A process ends: in order, with everything stored and the numbers that are left given back, or in the midst of a commit.
    pub(crate) fn close_store(&mut self, process: usize, ending: Option<Ending>) {
        let under_way = std::mem::take(&mut self.processes[process].committing);
        let is_orderly = ending == Some(Ending::Leaves);
        if is_orderly || self.interruptions.chance(0.5) {
            under_way.into_iter().for_each(|commit| self.apply(process, commit));
        }
        let handles = std::mem::take(&mut self.processes[process].stored_writers);
        for (topic, handle) in handles.into_iter().filter(|_| is_orderly) {
            let records = handle.lock().take_records().unwrap_or_default();
            let reserved = Some(handle.lock().last());
            self.apply(process, Commit { topic, records, reserved });
        }
    }

    /// Holds the writers of a process to their word when they say that everything is stored.
    pub(crate) fn check_stored(&mut self, process: usize) {
        let first = first_of(&self.plan, process);
        for (topic, handle) in &self.processes[process].stored_writers {
            let (is_stored, last) = {
                let writer = handle.lock();
                (writer.is_stored(), writer.last())
            };
            let up_to =
                self.stores.histories.get(&(first, *topic)).map_or(SequenceNumber::ZERO, |history| history.up_to);
            let written = self.writers.iter().filter(|writer| writer.record.process == process);
            let written = written.filter(|writer| writer.record.index.topic == *topic);
            let newest = written.filter_map(|writer| writer.record.written.last()).map(|one| one.sequence).max();
            if is_stored && newest.is_some_and(|newest| newest > up_to) {
                self.unkept
                    .push(format!("p{process} says that {last} of topic {topic} is stored, which ends at {up_to}"));
            }
        }
    }
}

/// In words, if a store that is to have everything of a writer has something else.
fn differs(handle: &Shared<Writer>, history: &History) -> Option<String> {
    let writer = handle.lock();
    let is_even = !writer.is_stored() || writer.has_records() || writer.held() == history.changes.len();
    (!is_even).then(|| format!("{} changes, its writer {}", history.changes.len(), writer.held()))
}

/// The process that used the ports and the store of this one first.
fn first_of(plan: &Plan, process: usize) -> usize {
    plan.processes[process].succeeds.map_or(process, |before| first_of(plan, before))
}

fn identity(first: usize, topic: usize) -> HistoryIdentity {
    let mut bytes = [0x70; HistoryIdentity::LEN];
    (bytes[0], bytes[1]) = (first as u8, topic as u8);
    HistoryIdentity(bytes)
}
