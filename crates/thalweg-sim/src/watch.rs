//! Checks while a world runs: whether acknowledgements are true, and whether memory stays within its bounds.

use std::collections::BTreeMap;
use std::time::Duration;

use thalweg_rtps::history::ChangeKind;
use thalweg_rtps::qos::{Durability, History, Method};
use thalweg_rtps::reader::ReaderFootprint;
use thalweg_rtps::types::{Guid, GuidPrefix, KeyHash, Keyed, SequenceNumber};
use thalweg_rtps::writer::{WriterFootprint, WriterOptions};

use crate::application::ReaderApplication;
use crate::plan::{InstanceSharing, TopicPlan, WriterPlan};
use crate::record::WrittenRecord;
use crate::simulation::{Happening, Simulation};

/// Time between two checks of memory.
const LOOK_PERIOD: Duration = Duration::from_millis(20);
/// The same after everything planned has happened.
const LOOK_PERIOD_LATE: Duration = Duration::from_millis(500);
/// Entries that may be there beside those that are needed, until a sweep is worth its time.
const SPARE: usize = 64;
/// Large samples that a writer remembers the repair of, for each reader.
const LARGE_REPAIRS_MAX: usize = 256;
/// Numbers that a reader keeps beyond a missing sample, for each writer.
const AHEAD_MAX: usize = 65_536;
/// Unfinished samples that a reader keeps of each writer.
const UNFINISHED_MAX: usize = 32;
/// Endpoints of a participant that serve discovery; those of peers are known as well.
const BUILTIN_ENDPOINTS: usize = 16;

impl Simulation {
    /// Holds writers of a process to their word when they say that every reader has everything.
    pub(crate) fn check_acknowledged(&mut self, process: usize) {
        for place in 0..self.processes[process].writers.len() {
            let number = self.processes[process].writers[place];
            let application = &self.writers[number];
            let last = application.record.written.last().map_or(SequenceNumber::ZERO, |written| written.sequence);
            let Some(handle) = application.handle.as_ref().filter(|_| last > application.promised) else { continue };
            let readers: Vec<Guid> = {
                let writer = handle.lock();
                if !writer.all_acknowledged() {
                    continue;
                }
                writer.matched_readers().collect()
            };
            self.writers[number].promised = last;
            for reader in readers {
                let Some(reader) = self.reader_numbers.get(&reader).copied() else { continue };
                if let Some(missing) = self.unkept(number, reader) {
                    let words =
                        format!("writer {number} says that reader {reader} has everything: {missing} is not there");
                    self.unkept.push(format!("{:.6}: {words}", self.now.as_nanos() as f64 / 1e9));
                }
            }
        }
    }

    /// The first number that the reader of an acknowledged pair lacks although it is owed.
    fn unkept(&mut self, writer: usize, reader: usize) -> Option<SequenceNumber> {
        let index = self.writers[writer].record.index;
        let topic = &self.plan.topics[index.topic];
        let writer_plan = &topic.writers[index.place];
        let reader_plan = &topic.readers[self.readers[reader].record.index.place];
        if !reader_plan.qos.reliability.is_reliable() || self.readers[reader].handle.is_none() {
            return None;
        }
        // What waits for samples of other readers is acknowledged, though nobody can take it yet.
        if !reader_plan.hands_over_everything_of(writer_plan) || writer_plan.qos.presentation.spans_group() {
            return None;
        }
        let (writer_guid, reader_guid) = (self.writers[writer].record.guid?, self.readers[reader].record.guid?);
        let volatile = [writer_plan.qos.durability, reader_plan.qos.durability].contains(&Durability::Volatile);
        // What DURABILITY_SERVICE keeps of earlier samples is for the law of late readers.
        let volatile = volatile || writer_plan.outlives_itself();
        let record = &self.writers[writer].record;
        if record.given_up.contains(&reader_guid) {
            return None; // Its writer has told that it waits no longer; the reader is told what it lost.
        }
        let matched = record.matches.iter().rev().find(|one| one.peer == reader_guid && one.until.is_none())?;
        let after = if volatile { matched.after } else { SequenceNumber::ZERO };
        let depth = writer_plan.depth().into_iter().chain(reader_plan.depth()).min();
        let from = match depth {
            None => self.writers[writer].kept.get(&reader).copied().unwrap_or(0),
            Some(_) => 0,
        };
        let departs = |written: &WrittenRecord| written.kind.unregisters();
        let departed: Vec<KeyHash> =
            record.written.iter().filter(|one| !volatile && departs(one)).map(|one| one.instance).collect();
        let owed = record.written[from..].iter().filter(|written| {
            written.kind == ChangeKind::Write && written.sequence > after && !departed.contains(&written.instance)
        });
        let owed: Vec<(KeyHash, SequenceNumber)> = match depth {
            None => owed.map(|written| (written.instance, written.sequence)).collect(),
            Some(_) if !is_told_apart(topic) => Vec::new(),
            Some(depth) => {
                let ends = record.last_ends();
                let last = |one: &&WrittenRecord| ends.get(&one.instance).is_none_or(|end| one.sequence > *end);
                newest(owed.filter(last), depth as usize)
            }
        };
        let missing = owed
            .into_iter()
            .map(|(_, sequence)| sequence)
            .find(|sequence| !self.readers[reader].has(writer_guid, *sequence));
        let written = record.written.len();
        self.writers[writer].kept.insert(reader, written);
        missing
    }

    /// Looks at what writers, readers and participants keep.
    pub(crate) fn look(&mut self) {
        for number in 0..self.writers.len() {
            let Some(handle) = &self.writers[number].handle else { continue };
            let index = self.writers[number].record.index;
            let topic = &self.plan.topics[index.topic];
            let kept = handle.lock().footprint();
            if let Some(excess) = writer_excess(&topic.writers[index.place], topic.readers.len(), &kept) {
                self.exceed(format!("writer {number} keeps more {excess} than it may: {kept:?}"));
            }
        }
        let is_damaged = self.plan.weather.corruption > 0.0;
        for number in 0..self.readers.len() {
            let Some(handle) = &self.readers[number].handle else { continue };
            let index = self.readers[number].record.index;
            let topic = &self.plan.topics[index.topic];
            let kept = handle.lock().footprint();
            let (excess, depth) = (reader_excess(topic, is_damaged, &kept), topic.readers[index.place].depth());
            if let Some(excess) = excess {
                self.exceed(format!("reader {number} keeps more {excess} than it may: {kept:?}"));
            }
            if let Some(depth) = depth
                && let Some(words) = self.readers[number].beyond_depth(depth as usize)
            {
                self.overfull.push(format!("{:.6}: reader {number}: {words}", self.now.as_nanos() as f64 / 1e9));
            }
        }
        self.look_at_participants();
        let late = self.now > self.plan.last_activity();
        let period = if late { LOOK_PERIOD_LATE } else { LOOK_PERIOD };
        self.queue.plan(self.now + period, Happening::Look);
    }

    fn look_at_participants(&mut self) {
        let ghosts = if self.plan.intruders.is_empty() { 0 } else { crate::intruder::GHOSTS as usize };
        let peers = self.processes.len() + ghosts;
        let endpoints = self.writers.len() + self.readers.len() + BUILTIN_ENDPOINTS;
        for number in 0..self.processes.len() {
            let Some(participant) = &self.processes[number].participant else { continue };
            let known = participant.participants().count();
            let is_nobodys =
                |prefix: &GuidPrefix| !self.processes.iter().any(|process| process.record.prefix == *prefix);
            let ghost = participant.participants().map(|known| known.data.guid_prefix).find(is_nobodys);
            let ghost = ghost.filter(|_| self.plan.weather.corruption == 0.0);
            let (publications, subscriptions) =
                (participant.publications().count(), participant.subscriptions().count());
            if known > peers || publications.max(subscriptions) > endpoints {
                let kept = format!("{known} participants, {publications} writers, {subscriptions} readers");
                self.exceed(format!("p{number} knows {kept} of {peers}"));
            }
            if let Some(ghost) = ghost {
                self.exceed(format!("p{number} knows {ghost:?}, which nobody is"));
            }
        }
    }

    fn exceed(&mut self, words: String) {
        if self.exceeded.len() < 20 {
            self.exceeded.push(format!("{:.6}: {words}", self.now.as_nanos() as f64 / 1e9));
        }
    }
}

/// Whether a reader's newest values of an instance are those of its writer: no other one writes it.
fn is_told_apart(topic: &TopicPlan) -> bool {
    let own = topic.keyed == Keyed::Yes && topic.instances == InstanceSharing::Own;
    own || topic.writers.len() == 1
}

/// The last `depth` values of each instance.
fn newest<'a>(
    written: impl DoubleEndedIterator<Item = &'a WrittenRecord>,
    depth: usize,
) -> Vec<(KeyHash, SequenceNumber)> {
    let mut counts: BTreeMap<KeyHash, usize> = BTreeMap::new();
    let mut newest = Vec::new();
    for one in written.rev() {
        let count = counts.entry(one.instance).or_default();
        *count += 1;
        if *count <= depth {
            newest.push((one.instance, one.sequence));
        }
    }
    newest
}

/// Resources of which a writer keeps too much.
fn writer_excess(plan: &WriterPlan, readers: usize, kept: &WriterFootprint) -> Option<&'static str> {
    let instances = usize::from(plan.instances.max(1));
    let serves = match plan.qos.durability_service.history {
        History::KeepLast(depth) if plan.outlives_itself() => Some(depth),
        History::KeepLast(_) => Some(0),
        History::KeepAll => None,
    };
    let samples = match plan.qos.history {
        // Values, and the ends of instances between them.
        History::KeepLast(_) if plan.outlives_itself() && serves.is_none() => usize::MAX,
        History::KeepLast(depth) => instances * (2 * depth.max(serves.unwrap_or(0)) as usize + 1),
        History::KeepAll => plan.qos.resource_limits.max_samples.map_or(usize::MAX, |max| max as usize),
    };
    let bytes = WriterOptions::default().history_bytes_max + plan.payload_bytes + SPARE;
    let bounds = [
        ("samples", kept.samples, samples),
        ("bytes", kept.bytes, bytes),
        ("places", kept.slots, 2 * kept.samples + kept.waiting + collected_max(plan) + SPARE),
        ("instances", kept.instances, 2 * instances + SPARE),
        ("departures", kept.departures, 2 * kept.samples + SPARE),
        ("waiting samples", kept.waiting, 2 * kept.samples + SPARE),
        ("readers", kept.readers, readers),
        ("requests", kept.large_repairs, LARGE_REPAIRS_MAX * readers),
    ];
    bounds.into_iter().find(|(_, kept, bound)| kept > bound).map(|(name, _, _)| name)
}

/// Samples that wait for company at most: KEEP_LAST does not let them go before they have left.
fn collected_max(plan: &WriterPlan) -> usize {
    match &plan.qos.transmission.method {
        Method::Coalesce(limits) | Method::Batch(limits) => {
            limits.max_samples.min(limits.max_bytes / plan.payload_bytes.max(1) + 1)
        }
        _ => 0,
    }
}

/// Resources of which a reader keeps too much, given the totals.
fn reader_excess(topic: &TopicPlan, is_damaged: bool, kept: &ReaderFootprint) -> Option<&'static str> {
    let written: usize = topic.writers.iter().map(|writer| writer.samples as usize * writer.payload_bytes).sum();
    let writers = topic.writers.len();
    let instances: usize = topic.writers.iter().map(|writer| usize::from(writer.instances.max(1))).sum();
    // A flipped bit gives every sample of a batch another key.
    let misread = if is_damaged { topic.writers.iter().map(|writer| writer.samples as usize).sum() } else { 0 };
    let charged = kept.samples * 1_000 + written + SPARE;
    let ahead_bytes = if kept.ahead == 0 { 0 } else { written + 4 * kept.ahead };
    let bounds = [
        ("bytes", kept.bytes, charged),
        ("instances", kept.instances, instances + misread + 1),
        ("writers", kept.writers, writers),
        ("numbers ahead", kept.ahead, AHEAD_MAX * writers),
        ("bytes ahead", kept.ahead_bytes, ahead_bytes),
        ("unfinished samples", kept.unfinished, UNFINISHED_MAX * writers),
    ];
    bounds.into_iter().find(|(_, kept, bound)| kept > bound).map(|(name, _, _)| name)
}

impl ReaderApplication {
    /// Whether a value was taken or waits to be taken.
    fn has(&self, writer: Guid, sequence: SequenceNumber) -> bool {
        let waits = || {
            let handle = self.handle.as_ref()?;
            let reader = handle.lock();
            let mut entries = reader.cache().entries();
            entries.find(|entry| entry.writer == writer && entry.sequence == sequence)
        };
        self.values.contains(&(writer, sequence)) || waits().is_some()
    }

    /// In words, if the cache holds more values of an instance than KEEP_LAST allows.
    fn beyond_depth(&self, depth: usize) -> Option<String> {
        let mut counts: BTreeMap<KeyHash, usize> = BTreeMap::new();
        let handle = self.handle.as_ref()?;
        for entry in handle.lock().cache().entries().filter(|entry| entry.is_value) {
            *counts.entry(entry.instance).or_default() += 1;
        }
        let (instance, count) = counts.into_iter().find(|(_, count)| *count > depth)?;
        Some(format!("{count} values of instance {instance} wait; the depth is {depth}"))
    }
}
