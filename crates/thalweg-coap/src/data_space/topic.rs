//! A topic as a resource.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use thalweg::cdr::Representation as Encoding;
use thalweg::qos::{AttachedData, Durability, History, ReaderQos, Reliability, WriterQos};
use thalweg::types::{KeyHash, Keyed};
use thalweg::{DataReader, DataWriter, Delivery, DomainParticipant, Error, KeyOf, PayloadKind, Raw, Sample, Topic};
use thalweg_types::document::{Document, MapKey};
use thalweg_types::{Structure, Type, codec};

use crate::link_format::WebLink;
use crate::message::content_format;
use crate::resource::representation::{document, negotiate};
use crate::resource::{Get, Put, Resource, ResourceError, ResourceRepresentation, Watcher, link_of};

/// A topic of the data space that is read, observed and written as a resource.
///
/// GET gives the newest sample, of the instance that the query names (`?color=RED`) or of any; PUT and POST write one; DELETE
/// disposes the instances that the query names. The formats are JSON and CBOR, and plain text where the type is a single string.
pub struct TopicResource {
    path: String,
    topic_name: String,
    structure: Arc<Structure>,
    formats: Vec<u16>,
    link: WebLink,
    writer: DataWriter<Raw>,
    reader: DataReader<Raw>,
    samples: Mutex<Samples>,
    watcher: OnceLock<Weak<dyn Watcher>>,
}

/// The newest sample of each instance.
#[derive(Default)]
struct Samples {
    /// By instance; each with the number of its arrival.
    instances: BTreeMap<KeyHash, (u64, Document)>,
    arrivals: u64,
    /// The fault of the last sample, if it could not be decoded.
    failure: Option<String>,
}

/// The offered QoS of a topic's writers, as far as it decides whether a reader matches them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered {
    /// All of them are RELIABLE.
    pub is_reliable: bool,
    /// All of them are at least TRANSIENT_LOCAL.
    pub is_durable: bool,
}

impl TopicResource {
    /// Makes a resource of a topic: a reader that matches writers which offer this, and a writer that matches every reader.
    ///
    /// # Errors
    /// When the data space refuses the endpoints.
    pub fn create(
        participant: &DomainParticipant,
        topic_name: &str,
        structure: &Arc<Structure>,
        path: String,
        offered: Offered,
    ) -> Result<Arc<TopicResource>, Error> {
        let topic = raw_topic(participant, topic_name, structure);
        let writer = participant.create_writer(&topic, writer_qos())?;
        let reader = participant.create_reader(&topic, reader_qos(offered))?;
        let mut formats = vec![content_format::JSON, content_format::CBOR];
        formats.extend(text_member(structure).map(|_| content_format::TEXT));
        let link = link_of(&path, topic_name, "core.ps.data", "core.p", &formats).with("type", &*structure.name);
        let resource = Arc::new(TopicResource {
            path,
            topic_name: topic_name.to_owned(),
            structure: Arc::clone(structure),
            formats,
            link: link.with_flag("obs"),
            writer,
            reader,
            samples: Mutex::default(),
            watcher: OnceLock::new(),
        });
        let heard = Arc::downgrade(&resource);
        resource.reader.on_data(Delivery::Thread, move |reader| {
            if let Some(resource) = heard.upgrade() {
                resource.handle_samples(&reader.take(TAKEN_MAX));
            }
        })?;
        Ok(resource)
    }

    /// Its writer, with the matched readers.
    pub fn writer(&self) -> &DataWriter<Raw> {
        &self.writer
    }

    /// Its reader, with the matched writers.
    pub fn reader(&self) -> &DataReader<Raw> {
        &self.reader
    }

    fn handle_samples(&self, taken: &[Sample<Raw>]) {
        for sample in taken {
            let instance = sample.info().instance;
            let decoded = sample.is_valid().then(|| codec::decode(&self.structure, sample.bytes()));
            let mut samples = self.samples();
            match decoded {
                None => {
                    samples.instances.remove(&instance);
                }
                Some(Ok(document)) => samples.insert(instance, document),
                Some(Err(error)) => {
                    let what =
                        format!("a sample of topic {:?} is no {}: {error}", self.topic_name, self.structure.name);
                    samples.failure = Some(what);
                }
            }
        }
        if !taken.is_empty() {
            self.tell_watcher();
        }
    }

    fn tell_watcher(&self) {
        if let Some(watcher) = self.watcher.get().and_then(Weak::upgrade) {
            watcher.handle_change(&self.path);
        }
    }

    /// The members that the query names, with the values it wants.
    fn wanted<'a>(&self, queries: &[&'a str]) -> Result<Vec<(&'a str, &'a str)>, ResourceError> {
        let wanted: Vec<(&str, &str)> =
            queries.iter().map(|query| query.split_once('=').unwrap_or((query, ""))).collect();
        let is_member = |name: &str| self.structure.members.iter().any(|member| *member.name == *name);
        match wanted.iter().find(|(name, _)| !is_member(name)) {
            Some((name, _)) => Err(ResourceError::BadRequest(format!("{} has no member {name}", self.structure.name))),
            None => Ok(wanted),
        }
    }

    /// The newest sample that the query allows.
    fn newest(&self, queries: &[&str]) -> Result<Document, ResourceError> {
        let wanted = self.wanted(queries)?;
        let samples = self.samples();
        let fitting = samples.instances.values().filter(|(_, document)| fits(document, &wanted));
        let newest = fitting.max_by_key(|(arrival, _)| *arrival).map(|(_, document)| document.clone());
        newest.ok_or_else(|| {
            let none = || format!("no sample of topic {:?} that fits has arrived yet", self.topic_name);
            ResourceError::Unavailable(samples.failure.clone().unwrap_or_else(none), RETRY_AFTER)
        })
    }

    fn document_of(&self, request: &Put<'_>) -> Result<Document, ResourceError> {
        match (request.content_format.unwrap_or(content_format::JSON), text_member(&self.structure)) {
            (content_format::TEXT, Some(name)) => {
                let text = std::str::from_utf8(request.payload)
                    .map_err(|_| ResourceError::BadRequest("the text is not UTF-8".to_owned()))?;
                Ok(Document::Map(vec![(MapKey::from(name), Document::Text(text.to_owned()))]))
            }
            (format, _) => document(format, request.payload),
        }
    }

    fn samples(&self) -> std::sync::MutexGuard<'_, Samples> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Samples {
    fn insert(&mut self, instance: KeyHash, document: Document) {
        self.arrivals += 1;
        self.failure = None;
        self.instances.insert(instance, (self.arrivals, document));
        if self.instances.len() <= INSTANCES_MAX {
            return;
        }
        let oldest = self.instances.iter().min_by_key(|(_, (arrival, _))| *arrival).map(|(key, _)| *key);
        if let Some(oldest) = oldest {
            self.instances.remove(&oldest);
        }
    }
}

impl Resource for TopicResource {
    fn path(&self) -> &str {
        &self.path
    }

    fn link(&self) -> WebLink {
        self.link.clone()
    }

    /// A write waits for no reader: its history keeps the newest sample of each instance only.
    fn blocks(&self) -> bool {
        false
    }

    fn get(&self, request: &Get<'_>) -> Result<ResourceRepresentation, ResourceError> {
        let format = negotiate(&self.formats, request.accept)?;
        let newest = self.newest(request.queries)?;
        let written = match (format, text_member(&self.structure)) {
            (content_format::TEXT, Some(name)) => Ok(newest.member(name).map(text_of).unwrap_or_default().into_bytes()),
            (content_format::CBOR, _) => newest.to_cbor(),
            _ => newest.to_json(),
        };
        let payload = written.map_err(|error| ResourceError::Failed(error.to_string()))?;
        Ok(ResourceRepresentation::new(format, payload, MAX_AGE))
    }

    fn put(&self, request: &Put<'_>) -> Result<(), ResourceError> {
        let document = self.document_of(request)?;
        let bytes = codec::encode(&self.structure, &document, Encoding::Xcdr1)
            .map_err(|error| ResourceError::BadRequest(error.to_string()))?;
        match self.writer.write_serialized(&bytes) {
            Ok(_) => Ok(()),
            Err(error) => Err(refusal(&error)),
        }
    }

    fn exists(&self, queries: &[&str]) -> bool {
        self.newest(queries).is_ok()
    }

    fn delete(&self, queries: &[&str]) -> Result<(), ResourceError> {
        if !self.structure.is_keyed() {
            let reason = format!("{} has no key, so that there are no instances to delete", self.structure.name);
            return Err(ResourceError::NotAllowed(reason));
        }
        let wanted = self.wanted(queries)?;
        if wanted.is_empty() {
            let reason = "say which instances by a query, such as ?color=RED".to_owned();
            return Err(ResourceError::BadRequest(reason));
        }
        let fitting: Vec<(KeyHash, Document)> = {
            let samples = self.samples();
            let instances = samples.instances.iter().filter(|(_, (_, document))| fits(document, &wanted));
            instances.map(|(hash, (_, document))| (*hash, document.clone())).collect()
        };
        for (hash, document) in fitting {
            let key = codec::encode_key(&self.structure, &document, Encoding::Xcdr1)
                .map_err(|error| ResourceError::Failed(format!("the key cannot be written: {error}")))?;
            self.writer.dispose_serialized(&key, Some(hash)).map_err(|error| refusal(&error))?;
        }
        Ok(())
    }

    fn attach(&self, watcher: Weak<dyn Watcher>) {
        // A topic is put into one store.
        let _ = self.watcher.set(watcher);
        // Samples that came before are news to the store.
        if self.samples().arrivals > 0 {
            self.tell_watcher();
        }
    }
}

impl fmt::Debug for TopicResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TopicResource(/{}, {:?})", self.path, self.topic_name)
    }
}

/// A topic of samples that are encoded here.
pub(super) fn raw_topic(participant: &DomainParticipant, name: &str, structure: &Arc<Structure>) -> Topic<Raw> {
    if !structure.is_keyed() {
        return participant.create_raw_topic(name, &structure.name, Keyed::No, None);
    }
    let keyed = Arc::clone(structure);
    let key_of: KeyOf = Arc::new(move |bytes, kind| {
        let decoded = match kind {
            PayloadKind::Data => codec::decode(&keyed, bytes),
            PayloadKind::Key => codec::decode_key(&keyed, bytes),
        };
        codec::key_hash(&keyed, &decoded.ok()?).ok().map(KeyHash)
    });
    participant.create_raw_topic(name, &structure.name, Keyed::Yes, Some(key_of))
}

/// Whether a sample has these values.
fn fits(document: &Document, wanted: &[(&str, &str)]) -> bool {
    wanted.iter().all(|(name, value)| document.member(name).is_some_and(|found| text_of(found) == *value))
}

fn refusal(error: &Error) -> ResourceError {
    if error.is_timeout() {
        ResourceError::Unavailable(error.to_string(), RETRY_AFTER)
    } else {
        ResourceError::Failed(error.to_string())
    }
}

/// Mark of the endpoints of bridges, which distinguishes them from those of applications.
fn mark() -> AttachedData {
    AttachedData { user: BRIDGE_MARK.to_vec(), ..AttachedData::default() }
}

/// Offers what every reader asks for, as far as it is effective here.
pub(super) fn writer_qos() -> WriterQos {
    WriterQos {
        attached: mark(),
        reliability: Reliability::RELIABLE,
        durability: Durability::TransientLocal,
        history: History::KeepLast(1),
        ..WriterQos::default()
    }
}

pub(super) fn reader_qos(offered: Offered) -> ReaderQos {
    ReaderQos {
        attached: mark(),
        reliability: if offered.is_reliable { Reliability::RELIABLE } else { Reliability::BestEffort },
        durability: if offered.is_durable { Durability::TransientLocal } else { Durability::Volatile },
        history: History::KeepLast(1),
        ..ReaderQos::default()
    }
}

/// The only member of a type that is a single string.
fn text_member(structure: &Structure) -> Option<&str> {
    match &structure.members[..] {
        [only] if matches!(only.member_type.resolved(), Type::String { .. }) => Some(&only.name),
        _ => None,
    }
}

/// A value as a query has it.
fn text_of(value: &Document) -> String {
    match value {
        Document::Text(text) => text.clone(),
        Document::Boolean(value) => value.to_string(),
        Document::Integer(number) => number.to_string(),
        Document::Real(number) => number.to_string(),
        other => other.to_json().map(|json| String::from_utf8_lossy(&json).into_owned()).unwrap_or_default(),
    }
}

/// USER_DATA of a bridge's writers and readers.
pub(super) const BRIDGE_MARK: &[u8] = b"thalweg.coap-bridge;";
/// Instances kept of a topic; the one that was silent for longest makes room.
const INSTANCES_MAX: usize = 1024;
/// Samples taken at once.
const TAKEN_MAX: usize = 256;
/// Time for which a client may keep a sample: it may be replaced at any time, and an observation reports that at once.
const MAX_AGE: Duration = Duration::from_secs(1);
/// Time after which a client should retry a request without a sample.
const RETRY_AFTER: Duration = Duration::from_secs(1);
