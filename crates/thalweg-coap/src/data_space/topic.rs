//! A topic as a resource.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use thalweg::cdr::Representation as Encoding;
use thalweg::qos::{AttachedData, Durability, History, ReaderQos, Reliability, WriterQos};
use thalweg::types::{Guid, KeyHash, Keyed, SequenceNumber};
use thalweg::{DataReader, DataWriter, Delivery, DomainParticipant, Error, KeyOf, PayloadKind, Raw, Sample, Topic};
use thalweg_types::document::{Document, MapKey};
use thalweg_types::{Structure, Type, codec};

use super::samples::{Progress, Samples};
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
    /// Locked before the samples: who takes some has filed them before others take more.
    intake: Mutex<Intake>,
    samples: Mutex<Samples>,
    watcher: OnceLock<Weak<dyn Watcher>>,
}

/// Where samples come from.
struct Intake {
    reader: Arc<DataReader<Raw>>,
    /// What has been taken, by writer.
    progress: BTreeMap<Guid, Progress>,
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
        let reader = Arc::new(participant.create_reader(&topic, reader_qos(offered))?);
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
            intake: Mutex::new(Intake { reader: Arc::clone(&reader), progress: BTreeMap::new() }),
            samples: Mutex::default(),
            watcher: OnceLock::new(),
        });
        resource.listen(&reader)?;
        Ok(resource)
    }

    /// Matches writers that offer this from now on: another reader takes the place of the present one. The samples stay.
    ///
    /// # Errors
    /// When the data space refuses the reader; the present one stays.
    pub(super) fn accept(self: &Arc<Self>, participant: &DomainParticipant, offered: Offered) -> Result<(), Error> {
        let topic = raw_topic(participant, &self.topic_name, &self.structure);
        let reader = Arc::new(participant.create_reader(&topic, reader_qos(offered))?);
        self.listen(&reader)?;
        let mut intake = self.intake();
        intake.reader.clear_on_data();
        let mut is_news = false;
        while let Some(any_news) = self.take_some(&mut intake) {
            is_news |= any_news;
        }
        let qos = intake.reader.qos();
        if qos.durability >= Durability::TransientLocal && qos.reliability.is_reliable() {
            intake.progress.values_mut().for_each(Progress::change_reader);
        } else {
            // It may have missed what the next one is given.
            intake.progress.clear();
        }
        self.samples().change_reader();
        let former = std::mem::replace(&mut intake.reader, reader);
        drop(intake);
        drop(former);
        if is_news {
            self.tell_watcher();
        }
        // What it has received by now was told before it had its place.
        self.take_all();
        Ok(())
    }

    /// Forgets what earlier readers gave of writers that are not among these, the writers of the domain.
    pub(super) fn forget_ended(&self, writers: &BTreeSet<Guid>) {
        self.intake().progress.retain(|writer, _| writers.contains(writer));
        let is_other = self.samples().forget_ended(writers);
        if is_other {
            self.tell_watcher();
        }
    }

    /// Its writer, with the matched readers.
    pub fn writer(&self) -> &DataWriter<Raw> {
        &self.writer
    }

    /// Its present reader, with the matched writers. When these come to offer less or more, another one takes its place.
    pub fn reader(&self) -> Arc<DataReader<Raw>> {
        Arc::clone(&self.intake().reader)
    }

    /// Takes samples as soon as `reader` has some, if it is the present one by then.
    fn listen(self: &Arc<Self>, reader: &DataReader<Raw>) -> Result<(), Error> {
        let heard = Arc::downgrade(self);
        reader.on_data(Delivery::Thread, move |_| {
            if let Some(resource) = heard.upgrade() {
                resource.take_all();
            }
        })
    }

    fn take_all(&self) {
        loop {
            let taken = self.take_some(&mut self.intake());
            match taken {
                Some(true) => self.tell_watcher(),
                Some(false) => {}
                None => return,
            }
        }
    }

    /// Takes samples that wait. Returns whether there was news among them; `None` when there were none.
    fn take_some(&self, intake: &mut Intake) -> Option<bool> {
        let taken = intake.reader.take(TAKEN_MAX);
        let mut is_news = false;
        for sample in &taken {
            let info = sample.info();
            if info.sequence == SequenceNumber::UNKNOWN {
                // Its writer is gone, and gives what it has again if it comes back.
                intake.progress.remove(&info.writer);
            } else if !intake.progress.entry(info.writer).or_default().note(info.sequence) {
                continue;
            }
            self.handle_sample(sample);
            is_news = true;
        }
        (!taken.is_empty()).then_some(is_news)
    }

    fn handle_sample(&self, sample: &Sample<Raw>) {
        let info = sample.info();
        let decoded = sample.is_valid().then(|| codec::decode(&self.structure, sample.bytes()));
        let mut samples = self.samples();
        match decoded {
            None => {
                samples.instances.remove(&info.instance);
            }
            Some(Ok(document)) => samples.insert(info.instance, info.writer, document),
            Some(Err(error)) => {
                let what = format!("a sample of topic {:?} is no {}: {error}", self.topic_name, self.structure.name);
                samples.failure = Some(what);
            }
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
        let fitting = samples.instances.values().filter(|kept| fits(&kept.document, &wanted));
        let newest = fitting.max_by_key(|kept| kept.arrival).map(|kept| kept.document.clone());
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

    fn intake(&self) -> MutexGuard<'_, Intake> {
        self.intake.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn samples(&self) -> MutexGuard<'_, Samples> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
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
            let instances = samples.instances.iter().filter(|(_, kept)| fits(&kept.document, &wanted));
            instances.map(|(hash, kept)| (*hash, kept.document.clone())).collect()
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
/// Samples taken at once.
const TAKEN_MAX: usize = 256;
/// Time for which a client may keep a sample: it may be replaced at any time, and an observation reports that at once.
const MAX_AGE: Duration = Duration::from_secs(1);
/// Time after which a client should retry a request without a sample.
const RETRY_AFTER: Duration = Duration::from_secs(1);
