//! Whether the files of a recording are whole and have what the recorder counted.
//!
//! Each chunk, the data and the index are compared with their checksums, the index and the statistics with the records, and for each
//! writer the numbers in the files with the counts that the recorder left:
//!
//! last − first + 1 = recorded + dropped (memory) + dropped (disk) + missing
//!
//! That says nothing of a writer that began anew under its GUID: its numbers are those of several lives.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use crate::life::WriterLife;
use crate::read::{Entry, RECORD_BYTES_MAX, ReadChannel, RecordingReader};
use crate::summary::{ChannelSummary, FURTHER, RecordingSummary};

/// What was found in the files of one recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingVerification {
    /// The files in their order.
    pub files: Vec<VerifiedFile>,
    /// By topic on the wire and GUID, as in [`RecordingSummary::channels`]; channels of other programs' files tell of no writers.
    pub writers: BTreeMap<String, VerifiedWriter>,
    /// What is wrong; nothing when the files are whole and agree with the counts.
    pub faults: Vec<String>,
}

/// A file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifiedFile {
    /// Its path.
    pub path: PathBuf,
    /// Its messages, ends of instances included.
    pub messages: u64,
    /// Whether it has the recorder's counts.
    pub has_counts: bool,
}

/// The numbers of a writer in the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifiedWriter {
    /// Samples and ends of instances, each once.
    pub found: u64,
    /// Samples that a later file repeats at its beginning, because the writer keeps them for late readers.
    pub repeated: u64,
    /// Samples with a number that is not above that of the one before.
    pub unordered: u64,
    /// The first number, of which the files have the low 32 bits; whole where there are counts.
    pub first: i64,
    /// The greatest number.
    pub last: i64,
    /// Numbers between both that are not in the files.
    pub absent: u64,
    /// The first [`RANGES_TOLD`] ranges of them, both ends included.
    pub ranges: Vec<(i64, i64)>,
    /// How many times it began anew under its GUID, with numbers from 1 on: the others here are of all its lives then.
    pub begun_anew: u64,
    /// The recorder's counts at the end.
    pub counts: Option<ChannelSummary>,
    keeps: bool,
    life: WriterLife,
    /// The greatest number of this life.
    newest: i64,
    /// The greatest one of this life in earlier files.
    before: Option<i64>,
}

/// Ranges of absent numbers that are told.
pub const RANGES_TOLD: usize = 16;
/// Writers that are followed: more than the recorder follows, and a bound on what a hostile file costs.
const WRITERS_MAX: usize = 1 << 17;

impl RecordingVerification {
    /// Whether nothing is wrong.
    pub fn is_whole(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Reads all files of a recording in their order, and all of each.
///
/// A file that cannot be read is a fault like any other: the rest is read all the same.
pub fn verify(paths: &[PathBuf]) -> RecordingVerification {
    let mut out = RecordingVerification::default();
    let (mut counts, mut is_gapless) = (None, true);
    for path in paths {
        out.writers.values_mut().for_each(VerifiedWriter::begin_file);
        let faults = out.faults.len();
        counts = out.read_file(path, is_gapless);
        // What one file lacks is told once.
        is_gapless &= counts.is_some() && out.faults.len() == faults;
    }
    if let Some(counts) = counts {
        out.compare_numbers(counts, is_gapless);
    }
    out
}

impl RecordingVerification {
    /// Reads a file, and returns its counts, which are compared with what was found if the files before it are whole.
    fn read_file(&mut self, path: &Path, is_gapless: bool) -> Option<RecordingSummary> {
        let mut verified = VerifiedFile { path: path.to_owned(), ..VerifiedFile::default() };
        let mut counts = None;
        let mut faults = match File::open(path) {
            Err(error) => vec![error.to_string()],
            Ok(file) => {
                let mut reader = RecordingReader::audited(file, RECORD_BYTES_MAX);
                let ended = loop {
                    match reader.read_entry() {
                        Ok(Some(Entry::Summary(summary))) => counts = Some(summary),
                        Ok(Some(entry)) => {
                            verified.messages += 1;
                            self.count(&entry);
                        }
                        Ok(None) => break None,
                        Err(error) => break Some(error.to_string()),
                    }
                };
                let broken = ended.or_else(|| reader.cut_off().map(str::to_owned));
                broken.map_or_else(|| reader.structure_faults(), |fault| vec![fault])
            }
        };
        if let Some(counts) = counts.as_ref().filter(|_| is_gapless && faults.is_empty()) {
            faults.extend(self.differences(counts));
        }
        self.faults.extend(faults.into_iter().map(|fault| format!("{}: {fault}", path.display())));
        verified.has_counts = counts.is_some();
        self.files.push(verified);
        counts
    }

    fn count(&mut self, entry: &Entry) {
        let (name, number, stamp_ns, keeps) = match entry {
            Entry::Message { channel, sequence, publish_time_ns, .. } => {
                let Some((name, keeps)) = identity(channel) else { return };
                (name, *sequence, *publish_time_ns, keeps)
            }
            Entry::InstanceEnd { end, publish_time_ns, .. } => {
                (format!("{} {}", end.topic, end.writer), end.sequence as u32, *publish_time_ns, false)
            }
            Entry::Summary(_) => return,
        };
        if self.writers.len() < WRITERS_MAX || self.writers.contains_key(&name) {
            let writer = self.writers.entry(name).or_default();
            writer.keeps |= keeps;
            writer.see(number, stamp_ns);
        }
    }

    /// In what the counts at the end of a file differ from what the files up to it have.
    fn differences(&self, counts: &RecordingSummary) -> Vec<String> {
        let mut out = Vec::new();
        for (name, told) in &counts.channels {
            let found = self.writers.get(name).map_or(0, |writer| writer.found);
            if found != told.recorded {
                let told = told.recorded;
                out.push(format!(
                    "{name}: {told} samples were recorded since the beginning, and the files up to here have {found} \
                     (give all files of a recording, in their order)"
                ));
            }
        }
        let untold = self.writers.keys().filter(|name| !counts.channels.contains_key(*name));
        // The recorder itself counts no more than some writers one by one.
        out.extend(
            untold
                .filter(|_| !counts.channels.contains_key(FURTHER))
                .map(|name| format!("{name}: its counts are missing")),
        );
        out
    }

    /// Takes the last counts over; where all files before them are whole, each writer's numbers have to agree with them.
    fn compare_numbers(&mut self, counts: RecordingSummary, is_gapless: bool) {
        for (name, told) in counts.channels {
            let Some(writer) = self.writers.get_mut(&name) else { continue };
            writer.complete(told.last);
            if let Some(fault) = writer.contradiction(&told).filter(|_| is_gapless) {
                self.faults.push(format!("{name}: {fault}"));
            }
            writer.counts = Some(told);
        }
        // What a new writer had kept for late readers may stand behind a later sample, which another reader got first.
        let is_disordered = |writer: &VerifiedWriter| writer.unordered > 0 && !writer.keeps;
        for (name, writer) in self.writers.iter().filter(|(_, writer)| is_gapless && is_disordered(writer)) {
            self.faults.push(format!("{name}: {} samples are not in the order of their numbers", writer.unordered));
        }
    }
}

/// The name of a writer of ours, and whether it keeps samples for late readers.
fn identity(channel: &ReadChannel) -> Option<(String, bool)> {
    let writer = channel.writer.as_ref().ok().filter(|writer| !writer.writer.is_empty())?;
    Some((format!("{} {}", writer.topic, writer.writer), writer.qos.kept_for_late_readers().is_some()))
}

impl VerifiedWriter {
    fn begin_file(&mut self) {
        self.before = (self.found > 0).then_some(self.newest);
    }

    /// Takes the low 32 bits of a number into account, with its time stamp.
    fn see(&mut self, low: u32, stamp_ns: u64) {
        // A later file repeats what a durable writer kept in its life before, too.
        if self.keeps && self.before.is_some() && self.life.may_be_former(stamp_ns) {
            self.repeated += 1;
            return;
        }
        let begins_anew = self.life.take(low, stamp_ns);
        if self.found == 0 {
            (self.first, self.last, self.newest, self.found) = (i64::from(low), i64::from(low), i64::from(low), 1);
            return;
        }
        if begins_anew {
            (self.newest, self.before) = (i64::from(low), None);
            (self.first, self.last) = (self.first.min(self.newest), self.last.max(self.newest));
            self.begun_anew += 1;
            self.found += 1;
            return;
        }
        let ahead = i64::from(low.wrapping_sub(self.newest as u32) as i32);
        let number = self.newest + ahead;
        if ahead > 0 {
            if ahead > 1 {
                self.absent += ahead.unsigned_abs() - 1;
                if self.ranges.len() < RANGES_TOLD {
                    self.ranges.push((self.newest + 1, number - 1));
                }
            }
            self.newest = number;
            self.last = self.last.max(number);
            self.found += 1;
        } else if self.keeps && self.before.is_some_and(|before| number <= before) {
            self.repeated += 1;
        } else {
            self.unordered += 1;
            self.found += 1;
            self.first = self.first.min(number);
        }
    }

    /// In what its numbers cannot be those that were counted.
    fn contradiction(&self, told: &ChannelSummary) -> Option<String> {
        let lost = told.dropped_memory + told.dropped_disk + told.missing();
        let (first, last, is_one_life) = (told.first, told.last, self.begun_anew == 0);
        let span = last.checked_sub(first).and_then(|span| span.checked_add(1));
        if is_one_life && i64::try_from(told.recorded + lost).ok() != span {
            let accounted = told.recorded + lost;
            return Some(format!("{accounted} samples are accounted for, and its numbers are {first} to {last}"));
        }
        if self.first < first || self.last > last {
            let own = (self.first, self.last);
            return Some(format!("its numbers in the files are {} to {}, and {first} to {last} arrived", own.0, own.1));
        }
        let is_too_few = is_one_life && self.absent > lost.saturating_add(self.unordered);
        is_too_few.then(|| format!("{} of its numbers are absent, and {lost} samples were lost", self.absent))
    }

    /// Gives the numbers their high bits, which are those of the last one that arrived.
    fn complete(&mut self, last: i64) {
        let high = last.saturating_sub(self.last).saturating_add(1 << 31) >> 32 << 32;
        let complete = |number: &mut i64| *number = number.saturating_add(high);
        [&mut self.first, &mut self.last].into_iter().for_each(complete);
        self.ranges.iter_mut().flat_map(|(start, end)| [start, end]).for_each(complete);
    }
}
