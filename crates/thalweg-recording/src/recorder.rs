//! Records the topics of a domain: readers that never wait for the disk, and one thread that writes.

mod announced;
mod disk;
mod intake;
#[cfg(test)]
mod tests;
mod topics;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use thalweg::discovery::PublicationData;
use thalweg::types::{Guid, Keyed, SequenceNumber};
use thalweg::{DataReader, Delivery, DomainParticipant, Raw};

use crate::arrival::ReceptionClock;
use crate::demand::Demand;
use crate::error::RecordingError;
use crate::files::{FileOptions, RecordingFiles};
use crate::ledger::{Ledger, WRITERS_MAX};
use crate::numbers::NumberSet;
use crate::qos::RecordedQos;
use crate::queue::ByteQueue;
use crate::schema::TypeSchema;
use crate::selection::TopicSelection;
use crate::summary::RecordingSummary;
use crate::type_search::TypeSource;
use announced::AnnouncedWriter;
use disk::Disk;
use intake::{Intake, QueuedSample};
use topics::{AboutTopic, RecordedTopics};

/// What is recorded, and where.
#[derive(Clone, Debug)]
pub struct RecorderOptions {
    /// The topics.
    pub topics: TopicSelection,
    /// Bytes that may wait for the disk; what finds no room is dropped and counted.
    pub memory_bytes_max: usize,
    /// The files.
    pub files: FileOptions,
}

/// A recording that runs. Dropping it ends it as [`Recorder::finish`] does.
pub struct Recorder<'a> {
    participant: &'a DomainParticipant,
    types: &'a TypeSource<'a>,
    selection: TopicSelection,
    topics: RecordedTopics,
    shared: Arc<Recording>,
    /// Whether the user knows that there are more writers than are recorded.
    has_told_full: bool,
    /// How far the user knows that the host's clock was set back.
    told_behind: Duration,
    disk: Option<JoinHandle<Result<Vec<PathBuf>, RecordingError>>>,
}

/// What the readers and the thread that writes have in common.
struct Recording {
    queue: ByteQueue<QueuedSample>,
    ledger: Ledger,
    clock: ReceptionClock,
    /// What writers announced; those that have gone stay, since their samples may wait.
    writers: Mutex<HashMap<Guid, AnnouncedWriter>>,
    /// Writers whose samples came before anybody looked at what they announce. Locked under `writers`.
    early: Mutex<HashMap<Guid, EarlySamples>>,
}

/// What came of a writer that nobody has looked at.
#[derive(Default)]
struct EarlySamples {
    taken: NumberSet,
    /// The last look did not find it.
    was_absent: bool,
}

/// What [`Recorder::look`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecorderNews {
    /// A topic is recorded from now on; its type came from where this says.
    Topic {
        /// As ROS 2 shows it.
        topic: String,
        /// The type's name on the wire.
        type_name: String,
        /// Where the type came from, or why it is not known.
        origin: Result<String, String>,
    },
    /// Writers of a topic have another definition of its type than the first ones, and are recorded with that one, as channels of their own.
    Definition {
        /// As ROS 2 shows it.
        topic: String,
        /// The type's name on the wire.
        type_name: String,
        /// Where the definition came from, or why it is not known.
        origin: Result<String, String>,
    },
    /// A writer has a type of another name than the topic's first one, and is not recorded.
    OtherType {
        /// The topic.
        topic: String,
        /// The writer's type.
        type_name: String,
    },
    /// A topic is not recorded.
    Refused {
        /// The topic.
        topic: String,
        /// The reason.
        reason: String,
    },
    /// The host's clock was set back.
    ClockSetBack {
        /// How far it is behind the times that are recorded, which go on as before.
        by: Duration,
    },
}

impl fmt::Display for RecorderNews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecorderNews::Topic { topic, type_name, origin: Ok(origin) } => {
                write!(f, "records {topic} ({type_name}, from {origin})")
            }
            RecorderNews::Topic { topic, type_name, origin: Err(reason) } => {
                write!(f, "records {topic} ({type_name}) without its definition: {reason}")
            }
            RecorderNews::Definition { topic, type_name, origin } => {
                write!(f, "records writers of {topic} with another definition of {type_name}")?;
                match origin {
                    Ok(origin) => write!(f, ", from {origin}"),
                    Err(reason) => write!(f, ", which is not known: {reason}"),
                }
            }
            RecorderNews::OtherType { topic, type_name } => {
                write!(f, "does not record a writer of {topic} with the other type {type_name}")
            }
            RecorderNews::Refused { topic, reason } => write!(f, "does not record {topic}: {reason}"),
            RecorderNews::ClockSetBack { by } => {
                let by_s = by.as_secs_f64();
                write!(
                    f,
                    "the clock of this host was set back: the recording goes on in its old time, {by_s:.0} s ahead"
                )
            }
        }
    }
}

impl<'a> Recorder<'a> {
    /// Creates the first file and starts the thread that writes. Topics are found by [`Recorder::look`].
    ///
    /// # Errors
    /// The file cannot be created, or the system gives no thread.
    pub fn start(
        participant: &'a DomainParticipant,
        options: RecorderOptions,
        types: &'a TypeSource<'a>,
    ) -> Result<Recorder<'a>, RecordingError> {
        let files = RecordingFiles::create(options.files)?;
        let shared = Arc::new(Recording {
            queue: ByteQueue::new(options.memory_bytes_max),
            ledger: Ledger::default(),
            clock: ReceptionClock::default(),
            writers: Mutex::default(),
            early: Mutex::default(),
        });
        let disk = Disk::new(files, Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("recording".to_owned()).spawn(move || disk.run());
        let thread = thread.map_err(|error| RecordingError::new(format!("no thread: {error}")))?;
        Ok(Recorder {
            participant,
            types,
            selection: options.topics,
            topics: RecordedTopics::default(),
            shared,
            has_told_full: false,
            told_behind: Duration::ZERO,
            disk: Some(thread),
        })
    }

    /// Looks for topics and writers that are new; call it every 50 ms or so. It waits for nobody: a new type has two seconds from its
    /// first writer on.
    pub fn look(&mut self) -> Vec<RecorderNews> {
        let own = self.participant.guid_prefix();
        let mut news = Vec::new();
        let known = self.participant.publications();
        let present: HashSet<Guid> = known.iter().map(|known| known.data.guid).collect();
        self.shared.writers().iter_mut().for_each(|(guid, writer)| writer.is_gone = !present.contains(guid));
        for data in known.into_iter().map(|known| known.data) {
            if data.guid.prefix == own || !self.selection.has(&data.topic_name) {
                continue;
            }
            let demand = Demand::of(&data);
            // A writer that changes what a reader of it has to ask for, such as its partition, needs another one.
            let (is_known, is_same, is_full) = {
                let writers = self.shared.writers();
                let known = writers.get(&data.guid);
                (known.is_some(), known.is_some_and(|known| known.demand == demand), writers.len() >= WRITERS_MAX)
            };
            if !is_known && is_full {
                news.extend(self.refuse_writers());
            } else if !is_same {
                news.extend(self.follow(&data, demand));
            }
        }
        self.shared.forget_early(&present);
        self.find_types(&mut news);
        self.note_losses();
        news.extend(self.clock_news());
        news
    }

    /// True when the files cannot be written any more: [`Recorder::finish`] says why.
    pub fn has_failed(&self) -> bool {
        self.disk.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// The counts so far.
    pub fn summary(&self) -> RecordingSummary {
        self.shared.ledger.summary()
    }

    /// The most bytes that ever waited for the disk.
    pub fn waiting_bytes_most(&self) -> usize {
        self.shared.queue.bytes().1
    }

    /// Ends the readers, writes what waits and ends the file. Returns the counts and the files.
    ///
    /// # Errors
    /// When the files could not be written; says what of them counts.
    pub fn finish(mut self) -> Result<(RecordingSummary, Vec<PathBuf>), RecordingError> {
        let result = self.end();
        let summary = self.shared.ledger.summary();
        match result.unwrap_or_else(|| Err(RecordingError::new("the recording is over"))) {
            Ok(paths) => Ok((summary, paths)),
            Err(error) => Err(RecordingError::new(format!("{error}; {summary}"))),
        }
    }

    fn end(&mut self) -> Option<Result<Vec<PathBuf>, RecordingError>> {
        let thread = self.disk.take()?;
        self.note_losses();
        for topic in self.topics.iter() {
            // Threads that compute keys may wait for it.
            let _ = topic.about.found.set(None);
        }
        self.topics = RecordedTopics::default();
        self.shared.queue.close();
        Some(thread.join().unwrap_or_else(|_| Err(RecordingError::new("the thread that writes panicked"))))
    }

    fn refuse_writers(&mut self) -> Option<RecorderNews> {
        let reason = format!("{WRITERS_MAX} writers are recorded already");
        let is_first = !std::mem::replace(&mut self.has_told_full, true);
        is_first.then(|| RecorderNews::Refused { topic: "what further writers write".to_owned(), reason })
    }

    /// What the user does not know of the host's clock.
    fn clock_news(&mut self) -> Option<RecorderNews> {
        let by = self.shared.clock.behind();
        let is_news = by.abs_diff(self.told_behind) >= CLOCK_STEP;
        if is_news {
            self.told_behind = by;
        }
        (is_news && by >= CLOCK_STEP).then_some(RecorderNews::ClockSetBack { by })
    }

    /// Lets a reader match a writer, if none does.
    fn follow(&mut self, data: &PublicationData, demand: Demand) -> Option<RecorderNews> {
        let about = match self.topics.define(data, Instant::now()) {
            Ok(about) => about,
            Err(refusal) => {
                self.shared.announce(data, demand, None);
                return Some(refusal);
            }
        };
        // Before there is a reader for it: what comes to that one is then known to be the writer's own.
        self.shared.announce(data, demand.clone(), Some(Arc::clone(&about)));
        let is_there = self.topics.has_reader(&about, &demand);
        let reader = if is_there { None } else { Some(self.create_reader(&about, &demand)) };
        let topic = self.topics.find_mut(&about)?;
        match reader {
            Some(Err(reason)) => return Some(RecorderNews::Refused { topic: data.topic_name.clone(), reason }),
            Some(Ok(reader)) => topic.readers.push((demand, reader)),
            None => {}
        }
        topic.is_read = true;
        None
    }

    fn create_reader(&self, about: &Arc<AboutTopic>, demand: &Demand) -> Result<DataReader<Raw>, String> {
        if self.topics.iter().map(|topic| topic.readers.len()).sum::<usize>() >= READERS_MAX {
            return Err(format!("there are {READERS_MAX} readers already"));
        }
        let key_of = (about.keyed == Keyed::Yes).then(|| Arc::clone(about).key_of());
        let topic = self.participant.create_raw_topic(&about.name, &about.type_name, about.keyed, key_of);
        let intake = Intake::new(Arc::clone(about), demand.clone(), Arc::clone(&self.shared));
        let builder = self.participant.reader_builder(&topic).qos(demand.to_reader_qos()).ignore_own_publications();
        // Log times are times of arrival.
        let builder = builder.tell_every_end().hand_over_on_arrival();
        let reader = builder.on_data(Delivery::Inline, move |reader| intake.take(reader)).create();
        reader.map_err(|error| error.to_string())
    }

    /// Asks for all types that are looked for, at once: those who do not answer keep nobody waiting.
    fn find_types(&mut self, news: &mut Vec<RecorderNews>) {
        let now = Instant::now();
        let mut pending = 0;
        for topic in self.topics.iter_mut().filter(|topic| topic.is_read) {
            let Some(search) = &mut topic.search else { continue };
            // One that waits a little lets the questions of all leave.
            let patience = if pending == 0 { ASKING_TIME } else { Duration::ZERO };
            let Some(found) = search.look(now, self.participant, self.types, &topic.about.type_name, patience) else {
                pending += 1;
                continue;
            };
            topic.search = None;
            let origin = match &found {
                Ok((_, origin)) => Ok(origin.clone()),
                Err(reason) => Err(reason.clone()),
            };
            let about = &topic.about;
            let _ = about.found.set(found.ok().map(|(of, _)| {
                let schema = TypeSchema::of(&about.type_name, &of);
                (of, Arc::new(schema))
            }));
            let (shown, type_name) = (crate::schema::shown_topic(&about.name), about.type_name.clone());
            news.push(if topic.is_first {
                RecorderNews::Topic { topic: shown, type_name, origin }
            } else {
                RecorderNews::Definition { topic: shown, type_name, origin }
            });
        }
    }

    fn note_losses(&self) {
        for (name, topics) in self.topics.by_name() {
            let mut lost: BTreeMap<String, u64> = BTreeMap::new();
            let mut overwritten = 0;
            for (_, reader) in topics.iter().flat_map(|topic| &topic.readers) {
                let losses = reader.sample_lost().losses;
                for (reason, count) in losses.by_reason().filter(|(_, count)| *count > 0) {
                    *lost.entry(reason.to_string()).or_default() += count;
                }
                overwritten += reader.overwritten();
            }
            self.shared.ledger.set_losses(name, lost, overwritten);
        }
    }
}

impl Drop for Recorder<'_> {
    fn drop(&mut self) {
        // Whoever wants to know of failures calls `finish`.
        let _ = self.end();
    }
}

impl Recording {
    /// Whether a sample belongs to the reader of this topic that asks for `demand`: another one that asks for less, or that knows instances
    /// by another definition of the type, may match its writer as well. As long as nobody knows whose the writer is, any of them may bring
    /// what no other one has brought.
    fn is_for(&self, about: &Arc<AboutTopic>, demand: &Demand, writer: Guid, sequence: SequenceNumber) -> bool {
        let mut writers = self.writers();
        match writers.get_mut(&writer) {
            Some(announced) => {
                let serves = |own: &Arc<AboutTopic>| about.keyed == Keyed::No || Arc::ptr_eq(own, about);
                let is_own = announced.about.as_ref().is_some_and(serves);
                is_own && announced.demand == *demand && announced.take_number(sequence)
            }
            None => self.early().entry(writer).or_default().taken.insert(sequence),
        }
    }

    /// Takes note of what a writer announces.
    fn announce(&self, data: &PublicationData, demand: Demand, about: Option<Arc<AboutTopic>>) {
        let qos = RecordedQos::announced(data);
        let mut writers = self.writers();
        match writers.get_mut(&data.guid) {
            Some(known) => known.change(demand, about, qos),
            None => {
                let taken = self.taken_early(data.guid);
                writers.insert(data.guid, AnnouncedWriter::new(demand, about, qos, taken));
            }
        }
    }

    /// The QoS with which a sample was written, of those that wait for the disk in their order; `None` while its writer is not known.
    fn qos_of(&self, writer: Guid, sequence: SequenceNumber) -> Option<Arc<RecordedQos>> {
        self.writers().get_mut(&writer).map(|announced| announced.take_qos(sequence))
    }

    /// The numbers that readers took of a writer that is known from now on.
    fn taken_early(&self, writer: Guid) -> NumberSet {
        self.early().remove(&writer).unwrap_or_default().taken
    }

    /// Lets go of what came of writers that two looks in a row have not found: one may come in the middle of a look.
    fn forget_early(&self, present: &HashSet<Guid>) {
        self.early().retain(|writer, early| {
            let was_absent = std::mem::replace(&mut early.was_absent, !present.contains(writer));
            !(was_absent && early.was_absent)
        });
    }

    fn early(&self) -> std::sync::MutexGuard<'_, HashMap<Guid, EarlySamples>> {
        self.early.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn writers(&self) -> std::sync::MutexGuard<'_, HashMap<Guid, AnnouncedWriter>> {
        self.writers.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Readers of a recording, chosen by us: several times the topics of a large robot.
const READERS_MAX: usize = 4_096;
/// Time in which questions about types leave.
const ASKING_TIME: Duration = Duration::from_millis(1);
/// What a clock is set by at least so that it is told.
const CLOCK_STEP: Duration = Duration::from_secs(1);
