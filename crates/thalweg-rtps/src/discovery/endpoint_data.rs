//! Announced data of writers and readers: SEDP's `DATA(w)` and `DATA(r)` (RTPS 2.5 §8.5.4.4).

use std::sync::Arc;

use super::parameters::{
    ReadPolicy, add_locator, ignore_unknown, key_in, ownership_strength, put_reader_qos, put_writer_qos,
};
use crate::qos::{
    MatchResult, Offer, ReaderQos, Request, TypeConsistency, WriterOwnership, WriterQos, match_endpoints as match_offer,
};
use crate::types::{EntityId, Guid, HistoryIdentity, Locator};
use crate::wire::WireError;
use crate::wire::parameters::{Parameter, ParameterList, ParameterReader, ParameterWriter};
use crate::wire::pid;

/// The announced data of a writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicationData {
    /// Its GUID, always that of a writer.
    pub guid: Guid,
    /// Name of its topic.
    pub topic_name: String,
    /// Name of the topic's type.
    pub type_name: String,
    /// Name that its application gave it; empty for none.
    pub entity_name: String,
    /// Its offered QoS, shared by all that hold it.
    pub qos: Arc<WriterQos>,
    /// Its own locators; without any, those of its participant count. At most
    /// [`LOCATORS_MAX`](super::LOCATORS_MAX).
    pub unicast: Vec<Locator>,
    /// Groups that it listens to; at most [`LOCATORS_MAX`](super::LOCATORS_MAX).
    pub multicast: Vec<Locator>,
    /// True when it announces a description of its type: TYPE_INFORMATION, or a type object of editions before XTypes 1.2.
    pub describes_type: bool,
    /// The value of TYPE_INFORMATION as it was announced (DDS-XTypes 1.3 §7.6.3.2.1).
    pub type_information: Option<Arc<[u8]>>,
    /// Its publisher; `None` where that is not told.
    pub group: Option<EntityId>,
    /// The history that it goes on with, if that may have had another writer before.
    pub history: Option<HistoryIdentity>,
}

/// The announced data of a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionData {
    /// Its GUID, always that of a reader.
    pub guid: Guid,
    /// Name of its topic.
    pub topic_name: String,
    /// Name of the topic's type.
    pub type_name: String,
    /// Name that its application gave it; empty for none.
    pub entity_name: String,
    /// Its requested QoS, shared by all that hold it.
    pub qos: Arc<ReaderQos>,
    /// Its own locators; without any, those of its participant count. At most
    /// [`LOCATORS_MAX`](super::LOCATORS_MAX).
    pub unicast: Vec<Locator>,
    /// Groups that it listens to; at most [`LOCATORS_MAX`](super::LOCATORS_MAX).
    pub multicast: Vec<Locator>,
    /// True when it needs QoS with every sample. Default false.
    pub expects_inline_qos: bool,
    /// The value of TYPE_INFORMATION as it was announced (DDS-XTypes 1.3 §7.6.3.2.1).
    pub type_information: Option<Arc<[u8]>>,
    /// The filter by which it wants its samples; writers may leave out those that it refuses. Default none.
    pub filter: Option<Box<ContentFilter>>,
}

/// The content filter that a reader announces (`ContentFilterProperty_t`, RTPS 2.5 §9.6.4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentFilter {
    /// Name of the filtered topic.
    pub topic_name: String,
    /// Name of the topic that it filters.
    pub related_topic_name: String,
    /// The language of the expression: [`ContentFilter::SQL`] is the one of DDS.
    pub class_name: String,
    /// The expression.
    pub expression: String,
    /// The values of its parameters; at most [`ContentFilter::PARAMETERS_MAX`].
    pub parameters: Vec<String>,
}

impl ContentFilter {
    /// The class of DDS's own filters.
    pub const SQL: &str = "DDSSQL";
    /// Most parameters: %0 to %99 (DDS 1.4, Annex B).
    pub const PARAMETERS_MAX: usize = 100;

    fn decode(value: &mut ParameterReader<'_>) -> Result<ContentFilter, WireError> {
        let mut text = || Ok::<_, WireError>(value.string()?.to_owned());
        let (topic_name, related_topic_name, class_name, expression) = (text()?, text()?, text()?, text()?);
        let error = value.error("at most 100 parameters of a filter");
        let count = value.u32()? as usize;
        if count > ContentFilter::PARAMETERS_MAX {
            return Err(error);
        }
        let parameters = (0..count).map(|_| value.string().map(str::to_owned)).collect::<Result<_, _>>()?;
        Ok(ContentFilter { topic_name, related_topic_name, class_name, expression, parameters })
    }

    /// Bytes of memory on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        let texts = [&self.topic_name, &self.related_topic_name, &self.class_name, &self.expression];
        let parameters = self.parameters.iter().map(|value| size_of::<String>() + value.capacity());
        texts.iter().map(|text| text.capacity()).sum::<usize>() + parameters.sum::<usize>()
    }
}

/// Reads which history a writer goes on with. Whoever announces another length means something else by it.
fn read_history(list: &ParameterList<'_>) -> Option<HistoryIdentity> {
    let mut value = list.find(pid::THALWEG_HISTORY)?.reader();
    let bytes = value.bytes(HistoryIdentity::LEN).ok()?.try_into().ok()?;
    (value.remaining() == 0).then_some(HistoryIdentity(bytes))
}

/// Reads TYPE_CONSISTENCY_ENFORCEMENT; members behind the end of a shorter one have their defaults.
fn read_type_consistency(policy: &Parameter<'_>) -> TypeConsistency {
    let mut reader = policy.reader();
    let mut octets = TypeConsistency::default().to_bytes();
    for octet in &mut octets {
        let Ok([given]) = reader.bytes(1) else { break };
        *octet = *given;
    }
    TypeConsistency::from_bytes(octets)
}

/// Compares an announced writer with an announced reader; see [`crate::qos::match_endpoints`].
pub fn match_endpoints(writer: &PublicationData, reader: &SubscriptionData) -> MatchResult {
    match_offer(&writer.offer(), &reader.request())
}

impl PublicationData {
    /// A writer of this topic with no locators of its own.
    pub fn new(guid: Guid, topic_name: &str, type_name: &str, qos: impl Into<Arc<WriterQos>>) -> PublicationData {
        PublicationData {
            guid,
            topic_name: topic_name.to_owned(),
            type_name: type_name.to_owned(),
            entity_name: String::new(),
            qos: qos.into(),
            unicast: Vec::new(),
            multicast: Vec::new(),
            describes_type: false,
            type_information: None,
            group: None,
            history: None,
        }
    }

    /// The same, announcing this value of TYPE_INFORMATION if there is one.
    #[must_use]
    pub fn with_type_information(self, information: Option<Arc<[u8]>>) -> PublicationData {
        PublicationData { describes_type: information.is_some(), type_information: information, ..self }
    }

    /// The part that decides about matches. Whether the topic has a key follows from the entity's kind.
    pub fn offer(&self) -> Offer<'_> {
        let (topic_name, type_name) = (self.topic_name.as_str(), self.type_name.as_str());
        let (keyed, describes_type) = (self.guid.entity.keyed(), self.describes_type);
        Offer { topic_name, type_name, keyed, describes_type, qos: &self.qos }
    }

    /// Appends the payload of a `DATA(w)`, with its encapsulation header (PL_CDR_LE). RELIABILITY and DURABILITY are always
    /// written, other policies where they differ from the default.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut list = ParameterWriter::encapsulated(out);
        put_identity(&mut list, self.guid, &self.topic_name, &self.type_name, &self.entity_name);
        put_writer_qos(&mut list, &self.qos);
        if let Some(group) = self.group {
            list.put(pid::GROUP_ENTITY_ID, |value| value.extend_from_slice(&group.0));
        }
        if let Some(history) = self.history {
            list.put(pid::THALWEG_HISTORY, |value| value.extend_from_slice(&history.0));
        }
        list.put_locators(pid::UNICAST_LOCATOR, &self.unicast);
        list.put_locators(pid::MULTICAST_LOCATOR, &self.multicast);
        put_type_information(&mut list, self.type_information.as_deref());
        list.finish();
    }

    /// Parses the payload of a `DATA(w)`. Parameters that are missing have their defaults, unknown ones are skipped.
    ///
    /// # Errors
    /// When the list is malformed, names no writer, topic or type, or has a parameter that must be understood and is not: the
    /// writer is then to be ignored.
    pub fn decode(payload: &[u8]) -> Result<PublicationData, WireError> {
        let guid = PublicationData::decode_key(payload)?;
        let list = ParameterList::from_payload(payload)?;
        let mut qos = WriterQos::default();
        let common = Common::decode(&list, &mut |parameter| qos.read_policy(parameter))?;
        if let WriterOwnership::Exclusive { strength } = &mut qos.ownership {
            *strength = ownership_strength(&list)?;
        }
        let Common { topic_name, type_name, entity_name, unicast, multicast, group, .. } = common;
        let describes_type = [pid::TYPE_INFORMATION, pid::TYPE_OBJECT].iter().any(|id| list.find(*id).is_some());
        let type_information = type_information(&list);
        Ok(PublicationData {
            guid,
            topic_name,
            type_name,
            entity_name,
            qos: qos.into(),
            unicast,
            multicast,
            describes_type,
            type_information,
            group,
            history: read_history(&list),
        })
    }

    /// Appends the key-only payload that announces the end of the writer `guid`, with its encapsulation header.
    pub fn encode_key(guid: Guid, out: &mut Vec<u8>) {
        encode_endpoint_key(guid, out);
    }

    /// The writer that a payload, whole or key-only, is about.
    ///
    /// # Errors
    /// When no well-formed GUID of a writer is in it.
    pub fn decode_key(payload: &[u8]) -> Result<Guid, WireError> {
        endpoint_key(payload, EntityId::is_writer, "GUID of a writer")
    }
}

impl SubscriptionData {
    /// A reader of this topic with no locators of its own.
    pub fn new(guid: Guid, topic_name: &str, type_name: &str, qos: impl Into<Arc<ReaderQos>>) -> SubscriptionData {
        SubscriptionData {
            guid,
            topic_name: topic_name.to_owned(),
            type_name: type_name.to_owned(),
            entity_name: String::new(),
            qos: qos.into(),
            unicast: Vec::new(),
            multicast: Vec::new(),
            expects_inline_qos: false,
            type_information: None,
            filter: None,
        }
    }

    /// The same, announcing this value of TYPE_INFORMATION if there is one.
    #[must_use]
    pub fn with_type_information(self, type_information: Option<Arc<[u8]>>) -> SubscriptionData {
        SubscriptionData { type_information, ..self }
    }

    /// The part that decides about matches. Whether the topic has a key follows from the entity's kind.
    pub fn request(&self) -> Request<'_> {
        let (topic_name, type_name) = (self.topic_name.as_str(), self.type_name.as_str());
        let (keyed, forces_type_validation) = (self.guid.entity.keyed(), self.qos.type_consistency.forces_validation);
        Request { topic_name, type_name, keyed, forces_type_validation, qos: &self.qos }
    }

    /// Appends the payload of a `DATA(r)`, with its encapsulation header (PL_CDR_LE). RELIABILITY and DURABILITY are always
    /// written, other policies where they differ from the default.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut list = ParameterWriter::encapsulated(out);
        put_identity(&mut list, self.guid, &self.topic_name, &self.type_name, &self.entity_name);
        put_reader_qos(&mut list, &self.qos);
        list.put_locators(pid::UNICAST_LOCATOR, &self.unicast);
        list.put_locators(pid::MULTICAST_LOCATOR, &self.multicast);
        if self.expects_inline_qos {
            list.put(pid::EXPECTS_INLINE_QOS, |value| value.boolean(true));
        }
        if let Some(filter) = &self.filter {
            list.put(pid::CONTENT_FILTER_PROPERTY, |value| {
                let texts = [&filter.topic_name, &filter.related_topic_name, &filter.class_name, &filter.expression];
                texts.into_iter().for_each(|text| value.string(text));
                value.u32(filter.parameters.len() as u32);
                filter.parameters.iter().for_each(|parameter| value.string(parameter));
            });
        }
        let consistency = self.qos.type_consistency;
        if consistency != TypeConsistency::default() {
            list.put(pid::TYPE_CONSISTENCY, |value| value.extend_from_slice(&consistency.to_bytes()));
        }
        put_type_information(&mut list, self.type_information.as_deref());
        list.finish();
    }

    /// Parses the payload of a `DATA(r)`. Parameters that are missing have their defaults, unknown ones are skipped.
    ///
    /// # Errors
    /// When the list is malformed, names no reader, topic or type, or has a parameter that must be understood and is not: the
    /// reader is then to be ignored.
    pub fn decode(payload: &[u8]) -> Result<SubscriptionData, WireError> {
        let guid = SubscriptionData::decode_key(payload)?;
        let list = ParameterList::from_payload(payload)?;
        // A reader that announces no representations takes XCDR1 only, unlike our own by default.
        let mut qos = ReaderQos { data_representation: Vec::new(), ..ReaderQos::default() };
        let common = Common::decode(&list, &mut |parameter| qos.read_policy(parameter))?;
        let Common { topic_name, type_name, entity_name, unicast, multicast, expects_inline_qos, .. } = common;
        if let Some(policy) = list.find(pid::TYPE_CONSISTENCY) {
            qos.type_consistency = read_type_consistency(&policy);
        }
        let type_information = type_information(&list);
        // Whatever is wrong with a filter, samples that it refuses are no harm.
        let filter = list.find(pid::CONTENT_FILTER_PROPERTY);
        let filter = filter.and_then(|filter| ContentFilter::decode(&mut filter.reader()).ok()).map(Box::new);
        Ok(SubscriptionData {
            guid,
            topic_name,
            type_name,
            entity_name,
            qos: qos.into(),
            unicast,
            multicast,
            expects_inline_qos,
            type_information,
            filter,
        })
    }

    /// Appends the key-only payload that announces the end of the reader `guid`, with its encapsulation header.
    pub fn encode_key(guid: Guid, out: &mut Vec<u8>) {
        encode_endpoint_key(guid, out);
    }

    /// The reader that a payload, whole or key-only, is about.
    ///
    /// # Errors
    /// When no well-formed GUID of a reader is in it.
    pub fn decode_key(payload: &[u8]) -> Result<Guid, WireError> {
        endpoint_key(payload, EntityId::is_reader, "GUID of a reader")
    }
}

/// Members common to writers and readers.
#[derive(Default)]
struct Common {
    topic_name: String,
    type_name: String,
    entity_name: String,
    unicast: Vec<Locator>,
    multicast: Vec<Locator>,
    expects_inline_qos: bool,
    group: Option<EntityId>,
}

impl Common {
    /// Reads all parameters; `policy` takes those of QoS, and returns true for them.
    fn decode(
        list: &ParameterList<'_>,
        policy: &mut dyn FnMut(&Parameter<'_>) -> Result<bool, WireError>,
    ) -> Result<Common, WireError> {
        let mut common = Common::default();
        let (mut has_topic_name, mut has_type_name) = (false, false);
        for parameter in list.iter() {
            let parameter = parameter?;
            let mut value = parameter.reader();
            match parameter.id {
                pid::ENDPOINT_GUID | pid::PARTICIPANT_GUID => {}
                pid::TOPIC_NAME => {
                    common.topic_name = value.string()?.to_owned();
                    has_topic_name = true;
                }
                pid::TYPE_NAME => {
                    common.type_name = value.string()?.to_owned();
                    has_type_name = true;
                }
                pid::ENTITY_NAME => common.entity_name = String::from_utf8_lossy(value.string_bytes()?).into_owned(),
                pid::UNICAST_LOCATOR => add_locator(&mut common.unicast, value.locator()?),
                pid::MULTICAST_LOCATOR => add_locator(&mut common.multicast, value.locator()?),
                pid::CONTENT_FILTER_PROPERTY => {}
                // Whatever is wrong with it, there is another order only.
                pid::GROUP_ENTITY_ID => common.group = value.array().ok().map(EntityId).or(common.group),
                pid::GROUP_GUID => common.group = common.group.or(value.guid().ok().map(|guid| guid.entity)),
                pid::EXPECTS_INLINE_QOS => common.expects_inline_qos = value.boolean()?,
                _ if policy(&parameter)? => {}
                _ => ignore_unknown(&parameter)?,
            }
        }
        match (has_topic_name, has_type_name) {
            (true, true) => Ok(common),
            (false, _) => Err(list.missing("PID_TOPIC_NAME in the list")),
            (true, false) => Err(list.missing("PID_TYPE_NAME in the list")),
        }
    }
}

/// The value of TYPE_INFORMATION, whatever it is: only whoever knows types can read it.
fn type_information(list: &ParameterList<'_>) -> Option<Arc<[u8]>> {
    let parameter = list.find(pid::TYPE_INFORMATION)?;
    let mut reader = parameter.reader();
    let length = reader.remaining();
    reader.bytes(length).ok().map(Arc::from)
}

fn put_type_information(list: &mut ParameterWriter<'_>, information: Option<&[u8]>) {
    if let Some(information) = information {
        list.put(pid::TYPE_INFORMATION, |value| value.extend_from_slice(information));
    }
}

fn put_identity(list: &mut ParameterWriter<'_>, guid: Guid, topic_name: &str, type_name: &str, entity_name: &str) {
    list.put(pid::ENDPOINT_GUID, |value| value.guid(guid));
    list.put(pid::PARTICIPANT_GUID, |value| value.guid(Guid::new(guid.prefix, EntityId::PARTICIPANT)));
    list.put_string(pid::TOPIC_NAME, topic_name);
    list.put_string(pid::TYPE_NAME, type_name);
    if !entity_name.is_empty() {
        list.put_string(pid::ENTITY_NAME, entity_name);
    }
}

fn encode_endpoint_key(guid: Guid, out: &mut Vec<u8>) {
    let mut list = ParameterWriter::encapsulated(out);
    list.put(pid::ENDPOINT_GUID, |value| value.guid(guid));
    list.finish();
}

fn endpoint_key(payload: &[u8], is_kind: fn(EntityId) -> bool, expected: &'static str) -> Result<Guid, WireError> {
    let (guid, offset) = key_in(payload, pid::ENDPOINT_GUID, "PID_ENDPOINT_GUID in the list")?;
    if is_kind(guid.entity) { Ok(guid) } else { Err(WireError { offset, expected }) }
}

#[cfg(test)]
mod tests;
