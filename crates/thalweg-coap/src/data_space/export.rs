//! Resources as topics.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::{Arc, Weak};

use thalweg::cdr::Representation as Encoding;
use thalweg::{DataReader, DataWriter, Delivery, DomainParticipant, Error, Raw, Topic};
use thalweg_types::document::{Document, MapKey};
use thalweg_types::{READINGS, Structure, Types, codec};

use super::backlog::{Backlog, Command};
use super::topic::{Offered, raw_topic, reader_qos, writer_qos};
use crate::message::content_format;
use crate::resource::representation::document;
use crate::resource::{Get, LocalStore, Put, Resource, ResourceError, WatchGuard};

/// Resources of this thing as topics: each change is written, and samples of others drive the resource if it takes values.
///
/// The topic of `/sensors/door/level` is called `coap/sensors/door/level`; its type is one of `thalweg::things::Boolean`,
/// `Integer`, `Real`, `Text` and `Octets`, after the resource's first value. All work is done by one thread, so that neither
/// devices nor the data space wait for each other. Of the changes and commands that wait for it, the latest of each resource
/// count.
#[derive(Debug)]
pub struct Exporter {
    store: LocalStore,
    backlog: Arc<Backlog>,
    watches: Vec<WatchGuard>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// State of the thread of an [`Exporter`].
struct Exporting {
    participant: Arc<DomainParticipant>,
    types: Types,
    store: LocalStore,
    backlog: Arc<Backlog>,
    topics: BTreeMap<String, ExportedTopic>,
}

struct ExportedTopic {
    /// The resource that was written last; another one of its path may need another topic.
    resource: Weak<dyn Resource>,
    /// The name of its type within [`READINGS`].
    kind: &'static str,
    structure: Arc<Structure>,
    writer: DataWriter<Raw>,
    /// Of an actuator.
    reader: Option<DataReader<Raw>>,
}

/// Why the state of a resource is not written.
enum Unwritten {
    /// A resource like this cannot be a topic.
    Refused(String),
    /// It has no state now, or the topic does not take this one.
    Failed(String),
}

impl Exporter {
    /// Makes topics of resources; none yet.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(participant: Arc<DomainParticipant>, types: Types, store: LocalStore) -> std::io::Result<Exporter> {
        let (backlog, topics) = (Arc::new(Backlog::default()), BTreeMap::new());
        let exporting = Exporting { participant, types, store: store.clone(), backlog: Arc::clone(&backlog), topics };
        let thread = std::thread::Builder::new().name("coap-export".to_owned()).spawn(move || exporting.run())?;
        Ok(Exporter { store, backlog, watches: Vec::new(), thread: Some(thread) })
    }

    /// Makes a topic of a resource; it appears with the resource's first value, and goes with the resource. One that comes in its
    /// place has a topic again, of the type that its value needs.
    ///
    /// # Errors
    /// [`ResourceError::NotFound`].
    pub fn add(&mut self, path: &str) -> Result<(), ResourceError> {
        let (backlog, changed) = (Arc::clone(&self.backlog), path.to_owned());
        self.watches.push(self.store.observe(path, move || backlog.add_change(&changed))?);
        self.backlog.add_change(path);
        Ok(())
    }
}

impl Drop for Exporter {
    /// Waits for the write or command under way; what waits is left.
    fn drop(&mut self) {
        self.backlog.stop();
        self.watches.clear();
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported there.
            let _ = thread.join();
        }
    }
}

impl Exporting {
    fn run(mut self) {
        let mut warned: BTreeSet<String> = BTreeSet::new();
        while let Some((path, work)) = self.backlog.wait() {
            if let Some(command) = work.command
                && let Err(reason) = self.drive(&path, &command)
            {
                tracing::debug!("the resource /{path} did not take what was written to its topic: {reason}");
            }
            if !work.has_changed {
                continue;
            }
            match self.write(&path) {
                Ok(()) => {
                    warned.remove(&path);
                }
                Err(Unwritten::Refused(reason)) => {
                    self.topics.remove(&path);
                    if !warned.contains(&path) {
                        tracing::warn!("the resource /{path} cannot be a topic: {reason}");
                        warned.insert(path);
                    }
                }
                // Its clients learn the reason when they request it.
                Err(Unwritten::Failed(reason)) => {
                    tracing::debug!("the resource /{path} and its topic differ: {reason}");
                }
            }
        }
    }

    fn write(&mut self, path: &str) -> Result<(), Unwritten> {
        let Ok(resource) = self.store.find(path) else {
            // The topic's readers learn that nobody writes it any more.
            self.topics.remove(path);
            return Ok(());
        };
        let reading = reading_of(&*resource)?;
        let kind = kind_of(&reading).ok_or_else(|| Unwritten::Refused("it has no single value".to_owned()))?;
        let is_suited = self.topics.get(path).is_some_and(|topic| topic.suits(&resource, kind, &reading));
        if !is_suited {
            // Before the new one is there: the endpoints of a participant use a name with one type.
            self.topics.remove(path);
            let created = self.create(path, &resource, kind)?;
            self.topics.insert(path.to_owned(), created);
        }
        let Some(topic) = self.topics.get_mut(path) else { return Ok(()) };
        topic.resource = Arc::downgrade(&resource);
        let sample = codec::encode(&topic.structure, &reading, Encoding::Xcdr1).map_err(Unwritten::failed)?;
        topic.writer.write_serialized(&sample).map(drop).map_err(Unwritten::failed)
    }

    fn create(&self, path: &str, resource: &Arc<dyn Resource>, kind: &'static str) -> Result<ExportedTopic, Unwritten> {
        let refused = |error: Error| Unwritten::Refused(error.to_string());
        let structure = self.types.find(&format!("{READINGS}::{kind}"));
        let structure = structure.ok_or_else(|| Unwritten::Refused("the types of readings are gone".to_owned()))?;
        let topic = raw_topic(&self.participant, &format!("{TOPICS_ROOT}/{path}"), structure);
        let writer = self.participant.create_writer(&topic, writer_qos()).map_err(refused)?;
        let mut reader = None;
        if is_actuator(&**resource) {
            reader = Some(self.create_reader(path, &topic, structure).map_err(refused)?);
        }
        let resource = Arc::downgrade(resource);
        Ok(ExportedTopic { resource, kind, structure: Arc::clone(structure), writer, reader })
    }

    fn create_reader(
        &self,
        path: &str,
        topic: &Topic<Raw>,
        structure: &Arc<Structure>,
    ) -> Result<DataReader<Raw>, Error> {
        // A lost command is worse than a best-effort writer that does not match and learns why.
        let offered = Offered { is_reliable: true, is_durable: false };
        // What this thing itself writes is its own state, and must not take the place of a command.
        let builder = self.participant.reader_builder(topic).qos(reader_qos(offered)).ignore_own_publications();
        let reader = builder.create()?;
        let (backlog, driven, structure) = (Arc::clone(&self.backlog), path.to_owned(), Arc::clone(structure));
        reader.on_data(Delivery::Thread, move |reader| {
            while let Some(sample) = reader.take_one() {
                if sample.is_valid() {
                    let command = Command { structure: Arc::clone(&structure), bytes: sample.bytes().to_vec() };
                    backlog.add_command(&driven, command);
                }
            }
        })?;
        Ok(reader)
    }

    fn drive(&self, path: &str, command: &Command) -> Result<(), String> {
        let sample = codec::decode(&command.structure, &command.bytes).map_err(|error| error.to_string())?;
        let payload = sample.to_cbor().map_err(|error| error.to_string())?;
        let put = Put { content_format: Some(content_format::CBOR), payload: &payload, queries: &[] };
        let resource = self.store.find(path).map_err(|error| error.to_string())?;
        resource.put(&put).map_err(|error| error.to_string())
    }
}

impl ExportedTopic {
    /// Whether it can tell this reading of the resource that its path has now.
    fn suits(&self, resource: &Arc<dyn Resource>, kind: &str, reading: &Document) -> bool {
        if !self.resource.ptr_eq(&Arc::downgrade(resource)) {
            return self.kind == kind && self.reader.is_some() == is_actuator(&**resource);
        }
        // One resource may have whole numbers among others.
        self.kind == kind || codec::encode(&self.structure, reading, Encoding::Xcdr1).is_ok()
    }
}

impl Unwritten {
    fn failed(error: impl Display) -> Unwritten {
        Unwritten::Failed(error.to_string())
    }
}

fn is_actuator(resource: &dyn Resource) -> bool {
    resource.link().attribute("if") == Some("core.a")
}

/// The present reading of a resource.
fn reading_of(resource: &dyn Resource) -> Result<Document, Unwritten> {
    let get = Get { accept: Some(content_format::CBOR), ..Get::default() };
    let representation = resource.get(&get).map_err(|error| match error {
        ResourceError::NotAllowed(_) | ResourceError::NotAcceptable => Unwritten::Refused(error.to_string()),
        _ => Unwritten::failed(error),
    })?;
    document(content_format::CBOR, &representation.payload).map(with_unit).map_err(Unwritten::failed)
}

/// The name of the type of a reading within [`READINGS`].
fn kind_of(reading: &Document) -> Option<&'static str> {
    match reading.member("value") {
        Some(Document::Boolean(_)) => Some("Boolean"),
        Some(Document::Integer(_)) => Some("Integer"),
        Some(Document::Real(_)) => Some("Real"),
        Some(Document::Text(_)) => Some("Text"),
        Some(Document::Bytes(_)) => Some("Octets"),
        _ => None,
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
