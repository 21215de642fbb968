//! Records the topics of a domain: readers that never wait for the disk, and one thread that writes.

mod disk;
mod intake;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use thalweg::discovery::PublicationData;
use thalweg::types::{Guid, KeyHash, Keyed, SequenceNumber};
use thalweg::{DataReader, Delivery, DomainParticipant, KeyOf, Raw, Type};

use crate::demand::Demand;
use crate::error::RecordingError;
use crate::files::{FileOptions, RecordingFiles};
use crate::instance::instance_of;
use crate::ledger::{Ledger, WRITERS_MAX};
use crate::numbers::NumberSet;
use crate::qos::RecordedQos;
use crate::queue::ByteQueue;
use crate::schema::TypeSchema;
use crate::selection::TopicSelection;
use crate::summary::RecordingSummary;
use crate::type_search::{TypeSearch, TypeSource};
use disk::Disk;
use intake::{Intake, QueuedSample};

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
    topics: BTreeMap<String, RecordedTopic>,
    shared: Arc<Recording>,
    /// Whether the user knows that there are more writers than are recorded.
    has_told_full: bool,
    disk: Option<JoinHandle<Result<Vec<PathBuf>, RecordingError>>>,
}

/// What the readers and the thread that writes have in common.
struct Recording {
    queue: ByteQueue<QueuedSample>,
    ledger: Ledger,
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

/// What is kept of an announcement.
struct AnnouncedWriter {
    demand: Demand,
    qos: RecordedQos,
    /// Numbers that came before its own reader was known to be that.
    taken: NumberSet,
    /// Nobody announces it any more: late readers would get nothing of it.
    is_gone: bool,
}

/// A topic with a reader for each kind of writers that no other reader matches.
struct RecordedTopic {
    about: Arc<AboutTopic>,
    readers: Vec<(Demand, DataReader<Raw>)>,
    /// Goes on until its type is found, or is not.
    search: Option<TypeSearch>,
}

/// What is known of a topic.
struct AboutTopic {
    name: String,
    type_name: String,
    keyed: Keyed,
    /// Its type, once it was looked for.
    found: OnceLock<Option<(Type, Arc<TypeSchema>)>>,
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
    /// A writer has another type than the topic's first one, and is not recorded.
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
            RecorderNews::OtherType { topic, type_name } => {
                write!(f, "does not record a writer of {topic} with the other type {type_name}")
            }
            RecorderNews::Refused { topic, reason } => write!(f, "does not record {topic}: {reason}"),
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
            topics: BTreeMap::new(),
            shared,
            has_told_full: false,
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
            let is_news = {
                let mut writers = self.shared.writers();
                let known = writers.get(&data.guid);
                let is_news = known.is_none_or(|known| known.demand != demand);
                if known.is_none() && writers.len() >= WRITERS_MAX {
                    drop(writers);
                    news.extend(self.refuse_writers());
                    continue;
                }
                if is_news {
                    let taken = match known {
                        Some(_) => NumberSet::up_to(self.shared.ledger.last(data.guid)),
                        None => self.shared.taken_early(data.guid),
                    };
                    let qos = RecordedQos::of(&data.qos);
                    writers.insert(data.guid, AnnouncedWriter { demand, qos, taken, is_gone: false });
                }
                is_news
            };
            if is_news && let Some(refusal) = self.follow(&data) {
                news.push(refusal);
            }
        }
        self.shared.forget_early(&present);
        self.find_types(&mut news);
        self.note_losses();
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
        for topic in self.topics.values() {
            // Threads that compute keys may wait for it.
            let _ = topic.about.found.set(None);
        }
        self.topics.clear();
        self.shared.queue.close();
        Some(thread.join().unwrap_or_else(|_| Err(RecordingError::new("the thread that writes panicked"))))
    }

    fn refuse_writers(&mut self) -> Option<RecorderNews> {
        let reason = format!("{WRITERS_MAX} writers are recorded already");
        let is_first = !std::mem::replace(&mut self.has_told_full, true);
        is_first.then(|| RecorderNews::Refused { topic: "what further writers write".to_owned(), reason })
    }

    /// Lets a reader match a writer, if none does.
    fn follow(&mut self, data: &PublicationData) -> Option<RecorderNews> {
        let name = &data.topic_name;
        let readers: usize = self.topics.values().map(|topic| topic.readers.len()).sum();
        let topic = self.topics.entry(name.clone()).or_insert_with(|| RecordedTopic {
            about: Arc::new(AboutTopic {
                name: name.clone(),
                type_name: data.type_name.clone(),
                keyed: data.guid.entity.keyed(),
                found: OnceLock::new(),
            }),
            readers: Vec::new(),
            search: Some(TypeSearch::new(Instant::now())),
        });
        if topic.about.type_name != data.type_name || topic.about.keyed != data.guid.entity.keyed() {
            return Some(RecorderNews::OtherType { topic: name.clone(), type_name: data.type_name.clone() });
        }
        if let (Some(search), Some(information)) = (&mut topic.search, &data.type_information) {
            search.add_description(data.guid.prefix, information);
        }
        let demand = Demand::of(data);
        if topic.readers.iter().any(|(of, _)| *of == demand) {
            return None;
        }
        let refused = |reason: String| Some(RecorderNews::Refused { topic: name.clone(), reason });
        if readers >= READERS_MAX {
            return refused(format!("there are {READERS_MAX} readers already"));
        }
        match create_reader(self.participant, &topic.about, &demand, &self.shared) {
            Ok(reader) => topic.readers.push((demand, reader)),
            Err(error) => return refused(error.to_string()),
        }
        None
    }

    /// Asks for all types that are looked for, at once: those who do not answer keep nobody waiting.
    fn find_types(&mut self, news: &mut Vec<RecorderNews>) {
        let now = Instant::now();
        let mut pending = 0;
        for topic in self.topics.values_mut().filter(|topic| !topic.readers.is_empty()) {
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
            news.push(RecorderNews::Topic {
                topic: crate::schema::shown_topic(&about.name),
                type_name: about.type_name.clone(),
                origin,
            });
        }
    }

    fn note_losses(&self) {
        for (name, topic) in &self.topics {
            let mut lost: BTreeMap<String, u64> = BTreeMap::new();
            let mut overwritten = 0;
            for (_, reader) in &topic.readers {
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
    /// Whether a sample belongs to the reader that asks for `demand`: another one that asks for less may match its writer as well. As long
    /// as nobody knows whose the writer is, any of them may bring what no other one has brought.
    fn is_for(&self, demand: &Demand, writer: Guid, sequence: SequenceNumber) -> bool {
        let writers = self.writers();
        match writers.get(&writer) {
            Some(announced) => announced.demand == *demand && !announced.taken.has(sequence),
            None => self.early().entry(writer).or_default().taken.insert(sequence),
        }
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

fn create_reader(
    participant: &DomainParticipant,
    about: &Arc<AboutTopic>,
    demand: &Demand,
    shared: &Arc<Recording>,
) -> Result<DataReader<Raw>, thalweg::Error> {
    let key_of = (about.keyed == Keyed::Yes).then(|| key_of(Arc::clone(about)));
    let topic = participant.create_raw_topic(&about.name, &about.type_name, about.keyed, key_of);
    let intake = Intake::new(Arc::clone(about), demand.clone(), Arc::clone(shared));
    let builder = participant.reader_builder(&topic).qos(demand.to_reader_qos()).ignore_own_publications();
    builder.on_data(Delivery::Inline, move |reader| intake.take(reader)).create()
}

/// Tells instances apart; without the type, all samples are of one. Called on a thread of the reader, which waits until the type was
/// looked for: the end of an instance counts only where its samples were known by the same key.
fn key_of(about: Arc<AboutTopic>) -> KeyOf {
    Arc::new(move |bytes, kind| match about.found.wait() {
        Some((of, _)) => instance_of(of, bytes, kind),
        None => Some(KeyHash::default()),
    })
}

/// Readers of a recording, chosen by us: several times the topics of a large robot.
const READERS_MAX: usize = 4_096;
/// Time in which questions about types leave.
const ASKING_TIME: Duration = Duration::from_millis(1);
