//! Replays recordings: writers with the recorded QoS, samples at the recorded distances.

use std::collections::{BTreeMap, btree_map};
use std::fmt;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thalweg::types::{Keyed, SequenceNumber};
use thalweg::{DataWriter, DomainParticipant, KeyOf, Payload, Raw, Type};

use crate::channel::RecordedWriter;
use crate::error::RecordingError;
use crate::instance::instance_of;
use crate::numbers::NumberSet;
use crate::order::LookAhead;
use crate::read::{Entry, InstanceEnd, ReadChannel, RecordingReader};
use crate::schema::{shown_topic, wire_topic};
use crate::selection::TopicSelection;
use crate::type_search::TypeSource;

/// What is replayed, and how.
#[derive(Clone, Debug)]
pub struct PlayerOptions {
    /// The topics, by their recorded names.
    pub topics: TopicSelection,
    /// How many times as fast as recorded; more than 0.
    pub rate: f64,
    /// Whose time stamps give the distances.
    pub clock: ReplayClock,
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
    /// Samples that a writer refused, such as for want of room.
    pub refused: u64,
    /// Ends of instances without a key, which cannot be told again.
    pub keyless: u64,
    /// Samples that left behind later ones, since they stood too far behind them in the file.
    pub disordered: u64,
    /// The greatest distance of a write from its due time.
    pub lateness_most: Duration,
}

impl fmt::Display for PlayerCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let late = self.lateness_most.as_secs_f64() * 1e3;
        let PlayerCounts { written, refused, keyless, disordered, .. } = self;
        write!(
            f,
            "wrote {written} samples, {refused} refused, {disordered} out of order, {keyless} ends without a key, at most {late:.3} ms late"
        )
    }
}

/// Writers of a recording.
pub struct Player<'a> {
    participant: &'a DomainParticipant,
    types: &'a TypeSource<'a>,
    options: PlayerOptions,
    writers: BTreeMap<String, DataWriter<Raw>>,
    counts: PlayerCounts,
    /// Why the first sample was refused.
    refusal: Option<String>,
}

impl<'a> Player<'a> {
    /// Creates a writer for each writer of the files.
    ///
    /// # Errors
    /// A file cannot be read, or one of its chosen channels cannot be written to a topic.
    pub fn open(
        participant: &'a DomainParticipant,
        files: &[PathBuf],
        options: PlayerOptions,
        types: &'a TypeSource<'a>,
    ) -> Result<Player<'a>, RecordingError> {
        let counts = PlayerCounts::default();
        let mut player = Player { participant, types, options, writers: BTreeMap::new(), counts, refusal: None };
        let mut refusals = Vec::new();
        for path in files {
            for channel in crate::read::channels_of(path)? {
                if let Err(reason) = player.add_writer(&channel) {
                    refusals.push(format!("{}: {reason}", channel.name));
                }
            }
        }
        if !refusals.is_empty() {
            let refusals = refusals.join("; ");
            return Err(RecordingError::new(format!("cannot be replayed: {refusals}; choose other topics")));
        }
        if player.writers.is_empty() {
            return Err(RecordingError::new("the files have none of the chosen topics"));
        }
        Ok(player)
    }

    /// Names of the topics that are written, as ROS 2 shows them.
    pub fn topics(&self) -> Vec<String> {
        let mut names: Vec<String> = self.writers.values().map(|writer| shown_topic(writer.topic_name())).collect();
        names.dedup();
        names
    }

    /// Waits until each writer has a reader, at most for so long. Returns the number of writers that have one.
    pub fn wait_for_readers(&self, patience: Duration, stop: &AtomicBool) -> usize {
        let until = Instant::now() + patience;
        loop {
            let matched = self.writers.values().filter(|writer| !writer.matched_readers().is_empty()).count();
            if matched == self.writers.len() || Instant::now() >= until || stop.load(Ordering::Relaxed) {
                return matched;
            }
            std::thread::sleep(STEP.min(until.saturating_duration_since(Instant::now())));
        }
    }

    /// Writes what the files have, one after the other, until `stop` is set. Returns the files that are cut off, with the reason.
    ///
    /// # Errors
    /// A file cannot be read further.
    pub fn play(&mut self, files: &[PathBuf], stop: &AtomicBool) -> Result<Vec<String>, RecordingError> {
        let mut pace = Pace { rate: self.options.rate, begun: Instant::now(), first_ns: None };
        let mut ahead = LookAhead::new(LOOK_AHEAD, LOOK_AHEAD_BYTES);
        let mut begin_ns = None;
        let mut clocks = SourceClocks::default();
        let mut seen = BTreeMap::new();
        let mut cut_off = Vec::new();
        for path in files {
            let file = File::open(path).map_err(|error| RecordingError::of_file(path, error))?;
            let mut reader = RecordingReader::new(file);
            while let Some(entry) = reader.read_entry().map_err(|error| RecordingError::of_file(path, error))? {
                let Some((log_time_ns, source_ns, bytes)) = times(&entry) else { continue };
                if is_repeated(&entry, &mut seen) {
                    continue;
                }
                let begin = *begin_ns.get_or_insert(log_time_ns);
                let time_ns = match self.options.clock {
                    ReplayClock::Reception => log_time_ns,
                    ReplayClock::Source => clocks.set(writer_of(&entry), source_ns, log_time_ns).max(begin),
                };
                while !ahead.has_room() {
                    self.write_next(&mut ahead, &mut pace, stop);
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
        while self.write_next(&mut ahead, &mut pace, stop) && !stop.load(Ordering::Relaxed) {}
        self.counts.disordered += ahead.late();
        Ok(cut_off)
    }

    /// Waits until all reliable readers have acknowledged, at most for so long, and gives the counts.
    ///
    /// # Errors
    /// Readers that do not acknowledge in time.
    pub fn finish(self, patience: Duration) -> Result<PlayerCounts, RecordingError> {
        let until = Instant::now() + patience;
        for writer in self.writers.values() {
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

    /// Writes the next entry once it is due; false when there is none.
    fn write_next(&mut self, ahead: &mut LookAhead<Entry>, pace: &mut Pace, stop: &AtomicBool) -> bool {
        let Some((time_ns, entry)) = ahead.take() else { return false };
        let due = pace.due(time_ns);
        loop {
            let rest = due.saturating_duration_since(Instant::now());
            if stop.load(Ordering::Relaxed) {
                return false;
            }
            if rest.is_zero() {
                break;
            }
            std::thread::sleep(rest.min(STEP));
        }
        let lateness = Instant::now().saturating_duration_since(due);
        let written = match entry {
            Entry::Message { channel, data, .. } => {
                let key = channel.writer.as_ref().map(|writer| writer_key(writer, channel.id));
                let Some(writer) = key.ok().and_then(|key| self.writers.get(&key)) else { return true };
                writer.write_payload(&Payload::from(data), None, None).map(drop)
            }
            Entry::InstanceEnd { end, .. } => {
                let Some(writer) = self.writers.get(&key_of_end(&end)) else { return true };
                let Some(key) = end.key_bytes() else {
                    self.counts.keyless += 1;
                    return true;
                };
                let ended = if end.disposed {
                    writer.dispose_serialized(&key, None)
                } else {
                    writer.unregister_serialized(&key, None)
                };
                ended.map(drop)
            }
            Entry::Summary(_) => return true,
        };
        match written {
            Ok(()) => self.counts.written += 1,
            Err(error) => {
                self.counts.refused += 1;
                self.refusal.get_or_insert_with(|| error.to_string());
            }
        }
        self.counts.lateness_most = self.counts.lateness_most.max(lateness);
        true
    }

    fn add_writer(&mut self, channel: &ReadChannel) -> Result<(), String> {
        let recorded_name = channel.writer.as_ref().map_or(&channel.name, |writer| &writer.topic);
        if channel.has_instance_ends() || !self.options.topics.has(recorded_name) {
            return Ok(());
        }
        let recorded = channel.writer.clone()?;
        let key = writer_key(&recorded, channel.id);
        if self.writers.contains_key(&key) {
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
        let name = self.new_name(&recorded.topic);
        let mut topic = self.participant.create_raw_topic(&name, &recorded.type_name, recorded.keyed, key_of);
        if let Some(of) = &of {
            topic = topic.described_as(of).map_err(|error| error.to_string())?;
        }
        let writer = self.participant.create_writer(&topic, recorded.qos.to_writer_qos());
        self.writers.insert(key, writer.map_err(|error| error.to_string())?);
        Ok(())
    }

    fn new_name(&self, recorded: &str) -> String {
        let renamed = &self.options.renamed;
        let given = renamed.get(recorded).or_else(|| renamed.get(&shown_topic(recorded)));
        given.map_or_else(|| recorded.to_owned(), |name| wire_topic(name))
    }
}

/// How far the clocks of writers are behind the recorder's, at most: the time that the quickest of the latest samples took is in it. Clocks
/// are set while they run, and a stamp may be anything: what is older tells nothing of what comes now.
#[derive(Default)]
struct SourceClocks(BTreeMap<String, SourceClock>);

/// How far a writer's clock was behind, at least.
struct SourceClock {
    /// The number of the period of reception.
    period: u64,
    least: i128,
    /// The least of the period before.
    before: Option<i128>,
}

impl SourceClocks {
    /// A source time by the recorder's clock; never after the reception.
    fn set(&mut self, writer: String, source_ns: u64, log_time_ns: u64) -> u64 {
        let behind = i128::from(log_time_ns) - i128::from(source_ns);
        let period = log_time_ns / CLOCK_PERIOD_NS;
        let fresh = SourceClock { period, least: behind, before: None };
        let clock = match self.0.entry(writer) {
            btree_map::Entry::Vacant(place) => place.insert(fresh),
            btree_map::Entry::Occupied(place) => {
                let clock = place.into_mut();
                if period == clock.period + 1 {
                    *clock = SourceClock { before: Some(clock.least), ..fresh };
                } else if period.abs_diff(clock.period) > 1 {
                    *clock = fresh;
                } else {
                    clock.least = clock.least.min(behind);
                }
                clock
            }
        };
        let least = clock.before.map_or(clock.least, |before| before.min(clock.least));
        u64::try_from(i128::from(source_ns) + least).unwrap_or(log_time_ns)
    }
}

/// The writer of an entry.
fn writer_of(entry: &Entry) -> String {
    match entry {
        Entry::Message { channel, .. } => match &channel.writer {
            Ok(writer) => writer_key(writer, channel.id),
            Err(_) => channel.name.clone(),
        },
        Entry::InstanceEnd { end, .. } => key_of_end(end),
        Entry::Summary(_) => String::new(),
    }
}

/// When entries are due.
struct Pace {
    rate: f64,
    begun: Instant,
    /// The time of the first entry.
    first_ns: Option<u64>,
}

impl Pace {
    fn due(&mut self, time_ns: u64) -> Instant {
        let first = match self.first_ns {
            Some(first) => first,
            None => {
                self.begun = Instant::now();
                *self.first_ns.insert(time_ns)
            }
        };
        let after_s = time_ns.saturating_sub(first) as f64 / 1e9 / self.rate;
        self.begun + Duration::try_from_secs_f64(after_s).unwrap_or(LONGEST).min(LONGEST)
    }
}

/// Reception, source time and bytes of what is to be written.
fn times(entry: &Entry) -> Option<(u64, u64, usize)> {
    match entry {
        Entry::Message { log_time_ns, publish_time_ns, data, .. } => Some((*log_time_ns, *publish_time_ns, data.len())),
        Entry::InstanceEnd { log_time_ns, publish_time_ns, end } => {
            let bytes = end.key.len() + end.topic.len() + end.writer.len();
            Some((*log_time_ns, *publish_time_ns, bytes))
        }
        Entry::Summary(_) => None,
    }
}

/// Whether a sample stood in an earlier file already: what durable writers keep is repeated at the beginning of each. `seen` has the
/// numbers of each writer; files of others have no GUIDs, and often no numbers.
fn is_repeated(entry: &Entry, seen: &mut BTreeMap<String, SeenNumbers>) -> bool {
    let Entry::Message { channel, sequence, .. } = entry else { return false };
    let Ok(writer) = &channel.writer else { return false };
    if writer.writer.is_empty() {
        return false;
    }
    !seen.entry(writer_key(writer, channel.id)).or_default().insert(*sequence)
}

/// The numbers of a writer, which have 32 bits in files.
#[derive(Default)]
struct SeenNumbers {
    numbers: NumberSet,
    /// The greatest one, with bits above the 32.
    last: Option<i64>,
}

impl SeenNumbers {
    /// Adds a number; false when it was there already.
    fn insert(&mut self, sequence: u32) -> bool {
        let last = *self.last.get_or_insert(i64::from(sequence));
        let number = last + i64::from(sequence.wrapping_sub(last as u32).cast_signed());
        self.last = Some(last.max(number));
        self.numbers.insert(SequenceNumber(number))
    }
}

/// The same writer in all files: by its GUID, and in files of others by its channel.
fn writer_key(writer: &RecordedWriter, channel: u16) -> String {
    if writer.writer.is_empty() {
        format!("{} {channel}", writer.topic)
    } else {
        format!("{} {}", writer.topic, writer.writer)
    }
}

fn key_of_end(end: &InstanceEnd) -> String {
    format!("{} {}", end.topic, end.writer)
}

fn key_function(of: Type) -> KeyOf {
    Arc::new(move |bytes, kind| instance_of(&of, bytes, kind))
}

/// Interval at which a wait looks whether it is to stop.
const STEP: Duration = Duration::from_millis(20);
/// Entries that are put in order, chosen by us: a second of a busy robot.
const LOOK_AHEAD: usize = 4_096;
/// Their bytes, chosen by us.
const LOOK_AHEAD_BYTES: usize = 64 << 20;
/// Two periods tell of a writer's clock; chosen by us: most writers have a quick sample in them, and a clock that is set disturbs no longer.
const CLOCK_PERIOD_NS: u64 = 10_000_000_000;
/// Longest distance of an entry from the first that is waited for: a year.
const LONGEST: Duration = Duration::from_secs(365 * 86_400);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_whose_clocks_are_off_keep_their_distances_and_their_place_among_others() {
        const SECOND: u64 = 1_000_000_000;
        let mut clocks = SourceClocks::default();
        let begin = 1_000 * SECOND;
        for (writer, off_s) in [("exact", 0_i64), ("behind", -5), ("1970", -1_000), ("ahead", 3_600)] {
            for number in 0..10 {
                // Each takes 1 to 3 ms.
                let (sent, took) = (begin + number * SECOND, (1 + number % 3) * 1_000_000);
                let source_ns = sent.saturating_add_signed(off_s * SECOND as i64);
                let set = clocks.set(writer.to_owned(), source_ns, sent + took);
                assert_eq!(set, sent + 1_000_000, "{writer}, sample {number}");
            }
        }
        // What was kept for late readers tells nothing of the clock.
        let mut clocks = SourceClocks::default();
        assert_eq!(clocks.set("kept".to_owned(), begin - 60 * SECOND, begin), begin);
        assert_eq!(clocks.set("kept".to_owned(), begin + SECOND, begin + SECOND + 5), begin + SECOND + 5);
        assert_eq!(clocks.set("kept".to_owned(), begin + 2 * SECOND, begin + 2 * SECOND + 9), begin + 2 * SECOND + 5);
    }

    #[test]
    fn a_clock_that_is_set_back_or_a_stamp_in_the_future_disturbs_the_distances_for_seconds_only() {
        const SECOND: u64 = 1_000_000_000;
        let begin = 10_000 * SECOND;
        for (name, source_ns) in [
            ("an hour ahead for a minute", (|number| if number < 60 { 3_600 * SECOND } else { 0 }) as fn(u64) -> u64),
            ("one stamp in the future", |number| if number == 60 { 3_600 * SECOND } else { 0 }),
        ] {
            let mut clocks = SourceClocks::default();
            for number in 0..300 {
                let (sent, took) = (begin + number * SECOND, (1 + number % 3) * 1_000_000);
                let set = clocks.set("writer".to_owned(), sent + source_ns(number), sent + took);
                let is_disturbed = (60..80).contains(&number);
                assert!(is_disturbed || set == sent + 1_000_000, "{name}, sample {number}: {set}");
            }
        }
    }

    #[test]
    fn what_the_quickest_sample_took_is_forgotten_with_it() {
        const SECOND: u64 = 1_000_000_000;
        let mut clocks = SourceClocks::default();
        let begin = 10_000 * SECOND;
        let mut took = |after_s: u64, took| {
            let sent = begin + after_s * SECOND;
            clocks.set("writer".to_owned(), sent, sent + took) - sent
        };
        assert_eq!([took(0, 5), took(9, 7), took(11, 8), took(19, 9)], [5; 4]);
        assert_eq!([took(21, 9), took(22, 6), took(50, 9), took(51, 20)], [8, 6, 9, 9]);
    }

    #[test]
    fn what_a_durable_writer_kept_is_replayed_behind_a_later_sample_and_once() {
        let mut seen = SeenNumbers::default();
        let order = [101, 1, 2, 3, 102, 2, 101, 102, 103];
        let is_new = order.map(|number| seen.insert(number));
        assert_eq!(is_new, [true, true, true, true, true, false, false, false, true]);
        let mut seen = SeenNumbers::default();
        assert_eq!(
            [u32::MAX - 1, u32::MAX, 0, 1, u32::MAX].map(|number| seen.insert(number)),
            [true, true, true, true, false]
        );
    }
}
