//! Replays recordings: writers with the recorded QoS, samples at the recorded distances.

mod entries;
mod replayed;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thalweg::qos::Durability;
use thalweg::types::Keyed;
use thalweg::{Error, ErrorKind, KeyOf, Payload, Type, WriterOptions};

use crate::error::RecordingError;
use crate::instance::instance_of;
use crate::latched::Kept;
use crate::members::{JoinDomain, Members, WrittenType};
use crate::opening::Opening;
use crate::order::LookAhead;
use crate::pace::ReplayPace;
use crate::read::{Entry, ReadChannel, RecordingReader};
use crate::schema::{shown_topic, wire_topic};
use crate::seen::SeenSamples;
use crate::selection::{TopicSelection, Withheld};
use crate::timeline::Timeline;
use crate::type_search::TypeSource;
use entries::{key_of_end, recorded_name, stamps_of, writer_of};
use replayed::ReplayedWriters;

/// What is replayed, and how.
#[derive(Clone, Debug)]
pub struct PlayerOptions {
    /// The topics, by their recorded names; some only where they are chosen by name ([`TopicSelection::withheld`]), or renamed.
    pub topics: TopicSelection,
    /// How many times as fast as recorded; more than 0.
    pub rate: f64,
    /// Whose time stamps give the distances.
    pub clock: ReplayClock,
    /// Where it begins, in recorded time from the beginning of the recording; zero for all of it. What durable writers keep for late
    /// readers by then comes first: the last samples of each instance that has not ended, as many as their history has, and of KEEP_ALL
    /// the last thousand.
    pub start: Duration,
    /// New names of topics, by their recorded ones; as on the wire or as ROS 2 shows them.
    pub renamed: BTreeMap<String, String>,
}

/// Whose time stamps give the distances of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayClock {
    /// The writers', each set by the recorder's as the quickest of its samples of the last 10 to 20 seconds tells: between the beginning of
    /// the recording and the sample's reception, so that what was kept for late readers comes at the beginning, and nothing later than it
    /// was received.
    Source,
    /// The recorder's.
    Reception,
}

/// What was replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlayerCounts {
    /// Samples and ends of instances that were written.
    pub written: u64,
    /// Those of them from before the start, which durable writers had kept.
    pub latched: u64,
    /// Samples that a writer refused, such as for want of room.
    pub refused: u64,
    /// Ends of instances without a key, which cannot be told again.
    pub keyless: u64,
    /// Samples that left behind later ones, since they stood too far behind them in the file.
    pub disordered: u64,
    /// The greatest distance of a write from its due time.
    pub lateness_most: Duration,
    /// Recorded time that was left out: what is beyond a second of silences of more than an hour.
    pub skipped: Duration,
}

impl fmt::Display for PlayerCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let late = self.lateness_most.as_secs_f64() * 1e3;
        let PlayerCounts { written, latched, refused, keyless, disordered, skipped, .. } = self;
        write!(
            f,
            "wrote {written} samples, {refused} refused, {disordered} out of order, {keyless} ends without a key, at most {late:.3} ms late"
        )?;
        if *latched > 0 {
            write!(f, ", {latched} kept from before the start")?;
        }
        if skipped.is_zero() { Ok(()) } else { write!(f, ", {} s of silence left out", skipped.as_secs()) }
    }
}

/// Writers of a recording.
pub struct Player<'a> {
    // Writers end before their participants.
    writers: ReplayedWriters,
    members: Members<'a>,
    types: &'a TypeSource<'a>,
    options: PlayerOptions,
    opening: Opening,
    counts: PlayerCounts,
    /// Topics that are replayed by name only, as ROS 2 shows them.
    withheld: BTreeMap<String, Withheld>,
    /// Names and patterns of the selection that fit no topic.
    idle_patterns: Vec<String>,
    /// Why the first sample was refused.
    refusal: Option<String>,
}

impl<'a> Player<'a> {
    /// Creates a writer for each writer of the files and each QoS that it had, in a participant that `join` makes; in further ones where
    /// writers of a topic have other definitions of its type.
    ///
    /// # Errors
    /// A file cannot be read, one of its chosen channels cannot be written to a topic, or the files have no topic with one of the names
    /// that are to be replaced.
    pub fn open(
        join: &'a JoinDomain<'a>,
        files: &[PathBuf],
        options: PlayerOptions,
        types: &'a TypeSource<'a>,
    ) -> Result<Player<'a>, RecordingError> {
        let mut player = Player {
            writers: ReplayedWriters::default(),
            members: Members::new(join),
            types,
            opening: Opening::new(options.start),
            options,
            counts: PlayerCounts::default(),
            withheld: BTreeMap::new(),
            idle_patterns: Vec::new(),
            refusal: None,
        };
        let mut channels = Vec::new();
        for path in files {
            channels.extend(crate::read::channels_of(path)?);
        }
        player.check_renamed(&channels)?;
        let names =
            channels.iter().filter(|channel| !channel.has_instance_ends()).map(|channel| recorded_name(channel));
        player.idle_patterns = player.options.topics.idle_patterns(&names.collect::<Vec<_>>());
        let mut refusals = Vec::new();
        for channel in &channels {
            if let Err(reason) = player.add_writer(channel) {
                refusals.push(format!("{}: {reason}", channel.name));
            }
        }
        if !refusals.is_empty() {
            let refusals = refusals.join("; ");
            return Err(RecordingError::new(format!("cannot be replayed: {refusals}; choose other topics")));
        }
        if player.writers.count() > 0 {
            return Ok(player);
        }
        let withheld: Vec<&str> = player.withheld.keys().map(String::as_str).collect();
        let but = if withheld.is_empty() { "" } else { ", but those that are replayed by name only: " };
        Err(RecordingError::new(format!("the files have none of the chosen topics{but}{}", withheld.join(", "))))
    }

    /// The topics that are left out since they are replayed by name only, as ROS 2 shows them.
    pub fn withheld(&self) -> &BTreeMap<String, Withheld> {
        &self.withheld
    }

    /// Names and patterns, of topics that are chosen and of those that are left out, that fit none of the files' topics.
    pub fn idle_patterns(&self) -> &[String] {
        &self.idle_patterns
    }

    /// Names of the topics that are written, as ROS 2 shows them.
    pub fn topics(&self) -> Vec<String> {
        let mut names: Vec<String> = self.writers.iter().map(|writer| shown_topic(writer.topic_name())).collect();
        names.dedup();
        names
    }

    /// Waits until each writer has a reader, at most for so long. Returns the number of writers that have one.
    pub fn wait_for_readers(&self, patience: Duration, stop: &AtomicBool) -> usize {
        let until = Instant::now() + patience;
        loop {
            let matched = self.writers.iter().filter(|writer| !writer.matched_readers().is_empty()).count();
            if matched == self.writers.count() || Instant::now() >= until || stop.load(Ordering::Relaxed) {
                return matched;
            }
            std::thread::sleep(STEP.min(until.saturating_duration_since(Instant::now())));
        }
    }

    /// Writes what the files have, one after the other, until `stop` is set. Returns the files that are cut off, with the reason.
    ///
    /// # Errors
    /// A file cannot be read further: what stands before is written. Or the recording ends before the start.
    pub fn play(&mut self, files: &[PathBuf], stop: &AtomicBool) -> Result<Vec<String>, RecordingError> {
        let mut pace = ReplayPace::new(self.options.rate);
        self.opening.restart();
        let cut_off = self.play_at(&mut pace, files, stop);
        self.counts.skipped += pace.skipped();
        cut_off
    }

    fn play_at(
        &mut self,
        pace: &mut ReplayPace,
        files: &[PathBuf],
        stop: &AtomicBool,
    ) -> Result<Vec<String>, RecordingError> {
        let mut ahead = LookAhead::new(LOOK_AHEAD, LOOK_AHEAD_BYTES);
        let cut_off = self.read_all(&mut ahead, pace, files, stop);
        while !stop.load(Ordering::Relaxed) && self.write_next(&mut ahead, pace, stop) {}
        self.counts.disordered += ahead.late();
        let cut_off = cut_off?;
        match self.opening.early_end().filter(|_| !stop.load(Ordering::Relaxed)) {
            Some(reason) => Err(RecordingError::new(reason)),
            None => Ok(cut_off),
        }
    }

    /// Reads the files, and writes what finds no room in `ahead`.
    fn read_all(
        &mut self,
        ahead: &mut LookAhead<Entry>,
        pace: &mut ReplayPace,
        files: &[PathBuf],
        stop: &AtomicBool,
    ) -> Result<Vec<String>, RecordingError> {
        let mut line = Timeline::new(self.options.clock);
        let mut seen = SeenSamples::new(self.writers.keys());
        let mut cut_off = Vec::new();
        for path in files {
            let file = File::open(path).map_err(|error| RecordingError::of_file(path, error))?;
            let mut reader = RecordingReader::new(file);
            line.begin_file();
            while let Some(entry) = reader.read_entry().map_err(|error| RecordingError::of_file(path, error))? {
                let Some((stamps, bytes)) = stamps_of(&entry) else { continue };
                if !seen.insert(&entry) {
                    continue;
                }
                let time_ns = line.place(writer_of(&entry), stamps);
                self.opening.set_out(time_ns);
                while !ahead.has_room() {
                    self.write_next(ahead, pace, stop);
                }
                if stop.load(Ordering::Relaxed) {
                    return Ok(cut_off);
                }
                ahead.put(time_ns, bytes, entry);
            }
            if let Some(reason) = reader.cut_off() {
                cut_off.push(format!("{}: {reason}", path.display()));
            }
        }
        Ok(cut_off)
    }

    /// Waits until all reliable readers have acknowledged, at most for so long, and gives the counts.
    ///
    /// # Errors
    /// Readers that do not acknowledge in time.
    pub fn finish(self, patience: Duration) -> Result<PlayerCounts, RecordingError> {
        let until = Instant::now() + patience;
        for writer in self.writers.iter() {
            let rest = until.saturating_duration_since(Instant::now());
            writer.wait_for_acknowledgments(rest).map_err(RecordingError::new)?;
        }
        Ok(self.counts)
    }

    /// Why a writer refused the first of the samples that were not written.
    pub fn first_refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// The counts so far.
    pub fn counts(&self) -> PlayerCounts {
        self.counts
    }

    /// Writes the next entry once it is due, or passes it over where it comes before the start; false when there is none.
    fn write_next(&mut self, ahead: &mut LookAhead<Entry>, pace: &mut ReplayPace, stop: &AtomicBool) -> bool {
        let Some((time_ns, entry)) = ahead.take() else { return false };
        if self.opening.is_before(time_ns) {
            if !self.opening.has_begun() {
                self.pass_over(time_ns, entry);
                return true;
            }
            // It stood too far behind later ones. Only what is kept counts from before the start.
            if !self.opening.has_writer(&writer_of(&entry)) {
                return true;
            }
        }
        if !self.opening.has_begun() {
            self.begin(pace, stop);
        }
        let due = pace.due(time_ns, Instant::now());
        if !wait_until(due, stop) {
            return false;
        }
        let lateness = Instant::now().saturating_duration_since(due);
        let Some(written) = self.write(entry) else { return true };
        self.note(written);
        self.counts.lateness_most = self.counts.lateness_most.max(lateness);
        true
    }

    /// Keeps what late readers of its writer would get, of an entry from before the start.
    fn pass_over(&mut self, time_ns: u64, entry: Entry) {
        self.opening.pass(time_ns);
        match entry {
            Entry::Message { channel, sequence, publish_time_ns, data, .. } => {
                let Ok(writer) = &channel.writer else { return };
                let key = writer.key(channel.id);
                self.writers.turn_to(&key, &writer.qos);
                // The numbers of others are often missing, or count something else.
                let sequence = if writer.writer.is_empty() { 0 } else { sequence };
                let kept = Kept { sequence, log_time_ns: time_ns, publish_time_ns, payload: Payload::from(data) };
                if let Err(reason) = self.opening.keep(&key, kept) {
                    self.counts.refused += 1;
                    self.refusal.get_or_insert_with(|| format!("{}: {reason}", shown_topic(&writer.topic)));
                }
            }
            Entry::InstanceEnd { end, .. } => {
                if let Some(key) = end.key_bytes() {
                    self.opening.end(&key_of_end(&end), &key);
                }
            }
            Entry::Summary(_) => {}
        }
    }

    /// Writes what durable writers had kept, at once; the distances of what follows count from the start.
    fn begin(&mut self, pace: &mut ReplayPace, stop: &AtomicBool) {
        for (key, kept) in self.opening.begin() {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let Some(writer) = self.writers.current(&key) else { continue };
            let written = writer.write_payload(&kept.payload, None, None).map(drop);
            self.counts.latched += u64::from(written.is_ok());
            self.note(written);
        }
        if let Some(start_ns) = self.opening.start_ns() {
            pace.due(start_ns, Instant::now());
        }
    }

    /// Writes an entry; `None` where there is nothing to be written.
    fn write(&mut self, entry: Entry) -> Option<Result<(), Error>> {
        match entry {
            Entry::Message { channel, data, .. } => {
                let recorded = channel.writer.as_ref().ok()?;
                let key = recorded.key(channel.id);
                self.writers.turn_to(&key, &recorded.qos);
                let writer = self.writers.current(&key)?;
                Some(writer.write_payload(&Payload::from(data), None, None).map(drop))
            }
            Entry::InstanceEnd { end, .. } => {
                let writer = self.writers.current(&key_of_end(&end))?;
                let Some(key) = end.key_bytes() else {
                    self.counts.keyless += 1;
                    return None;
                };
                let ended = if end.disposed {
                    writer.dispose_serialized(&key, None)
                } else {
                    writer.unregister_serialized(&key, None)
                };
                match ended {
                    // No sample of the instance was replayed by this writer, so that nobody takes the writer for one of its own.
                    Err(error) if !end.disposed && error.kind() == ErrorKind::PreconditionNotMet => None,
                    ended => Some(ended.map(drop)),
                }
            }
            Entry::Summary(_) => None,
        }
    }

    fn note(&mut self, written: Result<(), Error>) {
        match written {
            Ok(()) => self.counts.written += 1,
            Err(error) => {
                self.counts.refused += 1;
                self.refusal.get_or_insert_with(|| error.to_string());
            }
        }
    }

    fn add_writer(&mut self, channel: &ReadChannel) -> Result<(), String> {
        let recorded_name = recorded_name(channel);
        if channel.has_instance_ends() || !self.options.topics.has(recorded_name) {
            return Ok(());
        }
        let withheld = self.options.topics.withheld(recorded_name);
        if let Some(reason) = withheld.filter(|_| self.renamed(recorded_name).is_none()) {
            self.withheld.insert(shown_topic(recorded_name), reason);
            return Ok(());
        }
        let recorded = channel.writer.clone()?;
        let key = recorded.key(channel.id);
        if self.writers.has(&key, &recorded.qos) {
            return Ok(());
        }
        let of = match recorded.schema.as_deref().map(crate::schema::TypeSchema::to_type) {
            Some(Ok(Some(of))) => Some(of),
            Some(Err(error)) if recorded.keyed == Keyed::Yes => return Err(format!("its definition: {error}")),
            _ => (self.types)(&recorded.type_name).map_err(|error| error.to_string())?,
        };
        let key_of = match (recorded.keyed, &of) {
            (Keyed::No, _) => None,
            (Keyed::Yes, Some(of)) => Some(key_function(of.clone())),
            (Keyed::Yes, None) => {
                return Err(format!("it has a key, and the file does not describe its type {}", recorded.type_name));
            }
        };
        if let Some(depth) = recorded.qos.kept_for_late_readers().filter(|_| !self.opening.has_writer(&key)) {
            self.opening.add_writer(&key, depth, recorded.qos.lifespan_ns(), key_of.clone());
        }
        let name = self.renamed(&recorded.topic).map_or_else(|| recorded.topic.clone(), |name| wire_topic(name));
        let written = WrittenType::new(&recorded.type_name, recorded.keyed, of.as_ref());
        let qos = recorded.qos.to_writer_qos(self.options.rate);
        let participant = self.members.writing(&name, written, qos.durability == Durability::Transient)?;
        let mut topic = participant.create_raw_topic(&name, &recorded.type_name, recorded.keyed, key_of);
        if let Some(of) = &of {
            topic = topic.described_as(of).map_err(|error| error.to_string())?;
        }
        let builder = participant.writer_builder(&topic).qos(qos);
        // What is kept for late readers holds up nothing. The histories of TRANSIENT writers of a topic are told apart.
        let history_name = self.writers.count().to_string();
        let options = WriterOptions { evicts_history: true, history_name, ..WriterOptions::default() };
        let writer = builder.options(options).create().map_err(|error| error.to_string())?;
        self.writers.add(key, recorded.qos, writer);
        Ok(())
    }

    /// Refuses new names of topics that the files do not have: under a name with a typing error, a topic would go to those who use the
    /// recorded name now.
    fn check_renamed(&self, channels: &[Arc<ReadChannel>]) -> Result<(), RecordingError> {
        let topics = channels.iter().filter(|channel| !channel.has_instance_ends());
        let names: BTreeSet<&str> = topics.map(|channel| recorded_name(channel)).collect();
        let is_recorded = |old: &str| names.iter().any(|name| *name == old || shown_topic(name) == old);
        if names.is_empty() {
            return Ok(());
        }
        let Some(unknown) = self.options.renamed.keys().find(|old| !is_recorded(old)) else { return Ok(()) };
        let known: Vec<String> = names.iter().take(TOLD_MAX).map(|name| shown_topic(name)).collect();
        let more = if names.len() > TOLD_MAX { ", …" } else { "" };
        let known = known.join(", ");
        Err(RecordingError::new(format!("{unknown} cannot get another name: the files have {known}{more}")))
    }

    /// The new name that was given for a topic.
    fn renamed(&self, recorded: &str) -> Option<&String> {
        let renamed = &self.options.renamed;
        renamed.get(recorded).or_else(|| renamed.get(&shown_topic(recorded)))
    }
}

/// Waits until then; false when `stop` is set.
fn wait_until(due: Instant, stop: &AtomicBool) -> bool {
    loop {
        let rest = due.saturating_duration_since(Instant::now());
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        if rest.is_zero() {
            return true;
        }
        std::thread::sleep(rest.min(STEP));
    }
}

fn key_function(of: Type) -> KeyOf {
    Arc::new(move |bytes, kind| instance_of(&of, bytes, kind))
}

/// Interval at which a wait looks whether it is to stop.
const STEP: Duration = Duration::from_millis(20);
/// Topics that an error names, chosen by us: what a person reads.
const TOLD_MAX: usize = 24;
/// Entries that are put in order, chosen by us: a second of a busy robot.
const LOOK_AHEAD: usize = 4_096;
/// Their bytes, chosen by us.
const LOOK_AHEAD_BYTES: usize = 64 << 20;
