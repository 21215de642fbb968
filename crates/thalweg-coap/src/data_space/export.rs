//! Resources as topics.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};

use thalweg::cdr::Representation as Encoding;
use thalweg::{DataReader, DataWriter, Delivery, DomainParticipant, Error, Raw};
use thalweg_types::document::{Document, MapKey};
use thalweg_types::{READINGS, Structure, Types, codec};

use super::topic::{Offered, raw_topic, reader_qos, writer_qos};
use crate::message::content_format;
use crate::resource::representation::document;
use crate::resource::{Get, LocalStore, Put, Resource, ResourceError, WatchGuard};

/// Resources of this thing as topics: each change is written, and samples of others drive the resource if it takes values.
///
/// The topic of `/sensors/door/level` is called `coap/sensors/door/level`; its type is one of `thalweg::things::Boolean`,
/// `Integer`, `Real`, `Text` and `Octets`, after the resource's first value. All work is done by one thread, so that neither
/// devices nor the data space wait for each other.
#[derive(Debug)]
pub struct Exporter {
    exporting: Arc<Exporting>,
    watches: Vec<WatchGuard>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// State of the thread of an [`Exporter`].
#[derive(Debug)]
struct Exporting {
    participant: Arc<DomainParticipantOf>,
    types: Types,
    store: LocalStore,
    work: SyncSender<Work>,
    topics: Mutex<BTreeMap<String, ExportedTopic>>,
}

/// A participant that needs no debug text.
struct DomainParticipantOf(Arc<DomainParticipant>);

impl std::fmt::Debug for DomainParticipantOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DomainParticipant")
    }
}

#[derive(Debug)]
struct ExportedTopic {
    structure: Arc<Structure>,
    writer: DataWriter<Raw>,
    _reader: Option<DataReader<Raw>>,
}

enum Work {
    /// The resource of this path has changed.
    Write(String),
    /// A sample of another writer arrived on the topic of the resource of this path.
    Drive(String, Vec<u8>),
    Stop,
}

impl Exporter {
    /// Makes topics of resources; none yet.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(participant: Arc<DomainParticipant>, types: Types, store: LocalStore) -> std::io::Result<Exporter> {
        let (work, inbox) = mpsc::sync_channel(WORK_MAX);
        let participant = Arc::new(DomainParticipantOf(participant));
        let topics = Mutex::default();
        let exporting = Arc::new(Exporting { participant, types, store, work, topics });
        let working = Arc::clone(&exporting);
        let thread = std::thread::Builder::new().name("coap-export".to_owned()).spawn(move || working.run(&inbox))?;
        Ok(Exporter { exporting, watches: Vec::new(), thread: Some(thread) })
    }

    /// Makes a topic of a resource; it appears with the resource's first value.
    ///
    /// # Errors
    /// [`ResourceError::NotFound`].
    pub fn add(&mut self, path: &str) -> Result<(), ResourceError> {
        let (working, changed) = (Arc::clone(&self.exporting), path.to_owned());
        let watch = self.exporting.store.observe(path, move || working.submit(Work::Write(changed.clone())))?;
        self.watches.push(watch);
        self.exporting.submit(Work::Write(path.to_owned()));
        Ok(())
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.watches.clear();
        // The thread empties the queue, so there is room.
        let _ = self.exporting.work.send(Work::Stop);
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported there.
            let _ = thread.join();
        }
    }
}

impl Exporting {
    fn run(self: &Arc<Self>, inbox: &Receiver<Work>) {
        while let Ok(work) = inbox.recv() {
            // Only the state of one resource failed; its clients learn the reason when they request it.
            let (path, done) = match work {
                Work::Write(path) => {
                    let written = self.write(&path);
                    (path, written)
                }
                Work::Drive(path, bytes) => {
                    let driven = self.drive(&path, &bytes);
                    (path, driven)
                }
                Work::Stop => return,
            };
            if let Err(reason) = done {
                tracing::debug!("the resource /{path} and its topic differ: {reason}");
            }
        }
    }

    /// Queues work. When the queue is full, the oldest news are still in it, and they read the newest state.
    fn submit(&self, work: Work) {
        match self.work.try_send(work) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full(_)) => tracing::warn!("the bridge is too slow for the changes of resources"),
        }
    }

    fn write(self: &Arc<Self>, path: &str) -> Result<(), String> {
        let resource = self.store.find(path).map_err(|error| error.to_string())?;
        let get = Get { accept: Some(content_format::CBOR), ..Get::default() };
        let representation = resource.get(&get).map_err(|error| error.to_string())?;
        let reading = document(content_format::CBOR, &representation.payload).map_err(|error| error.to_string())?;
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        if !topics.contains_key(path) {
            let created = self.create(path, &*resource, &reading)?;
            topics.insert(path.to_owned(), created);
        }
        let topic = &topics[path];
        let sample = codec::encode(&topic.structure, &with_unit(reading), Encoding::Xcdr1);
        let sample = sample.map_err(|error| error.to_string())?;
        topic.writer.write_serialized(&sample).map(drop).map_err(|error| error.to_string())
    }

    fn create(
        self: &Arc<Self>,
        path: &str,
        resource: &dyn Resource,
        reading: &Document,
    ) -> Result<ExportedTopic, String> {
        let kind = match reading.member("value") {
            Some(Document::Boolean(_)) => "Boolean",
            Some(Document::Integer(_)) => "Integer",
            Some(Document::Real(_)) => "Real",
            Some(Document::Text(_)) => "Text",
            Some(Document::Bytes(_)) => "Octets",
            _ => return Err("it has no single value".to_owned()),
        };
        let structure = self.types.find(&format!("{READINGS}::{kind}")).ok_or("the types of readings are gone")?;
        let is_actuator = resource.link().attribute("if") == Some("core.a");
        self.endpoints(path, structure, is_actuator).map_err(|error| error.to_string())
    }

    fn endpoints(
        self: &Arc<Self>,
        path: &str,
        structure: &Arc<Structure>,
        is_actuator: bool,
    ) -> Result<ExportedTopic, Error> {
        let participant = &self.participant.0;
        let topic = raw_topic(participant, &format!("{TOPICS_ROOT}/{path}"), structure);
        let writer = participant.create_writer(&topic, writer_qos())?;
        let mut reader = None;
        if is_actuator {
            // A lost command is worse than a best-effort writer that does not match and learns why.
            let offered = Offered { is_reliable: true, is_durable: false };
            // What this thing itself writes is its own state, and must not take the place of a command.
            let builder = participant.reader_builder(&topic).qos(reader_qos(offered)).ignore_own_publications();
            let created = builder.create()?;
            let (working, driven) = (Arc::downgrade(self), path.to_owned());
            created.on_data(Delivery::Thread, move |reader| {
                let Some(working) = working.upgrade() else { return };
                let samples = reader.take(TAKEN_MAX);
                for sample in samples.iter().filter(|sample| sample.is_valid()) {
                    working.submit(Work::Drive(driven.clone(), sample.bytes().to_vec()));
                }
            })?;
            reader = Some(created);
        }
        Ok(ExportedTopic { structure: Arc::clone(structure), writer, _reader: reader })
    }

    fn drive(&self, path: &str, bytes: &[u8]) -> Result<(), String> {
        let structure = {
            let topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(&topics.get(path).ok_or("it has no topic")?.structure)
        };
        let sample = codec::decode(&structure, bytes).map_err(|error| error.to_string())?;
        let payload = sample.to_cbor().map_err(|error| error.to_string())?;
        let put = Put { content_format: Some(content_format::CBOR), payload: &payload, queries: &[] };
        let resource = self.store.find(path).map_err(|error| error.to_string())?;
        resource.put(&put).map_err(|error| error.to_string())
    }
}

/// A reading with the unit of its type; representations leave out empty members.
fn with_unit(reading: Document) -> Document {
    match reading {
        Document::Map(mut members) if !members.iter().any(|(key, _)| *key == MapKey::from("unit")) => {
            members.push((MapKey::from("unit"), Document::Text(String::new())));
            Document::Map(members)
        }
        other => other,
    }
}

/// Prefix of the names of topics of resources.
pub const TOPICS_ROOT: &str = "coap";
/// Most changes that may wait; chosen by us, one for each of a thing's resources.
const WORK_MAX: usize = 4096;
/// Samples taken at once.
const TAKEN_MAX: usize = 64;
