//! The domain as data: what discovery knows of others, given to local readers as instances of the built-in topics (DDS 1.4 §2.2.5).
//!
//! Such a reader is matched with nobody and announced to nobody. A participant without them has none of this.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::endpoints::LocalReader;
use super::{KeySource, Participant, Publications};
use crate::discovery::endpoint_data::PublicationData;
use crate::history::{CachedSample, ChangeKind, PayloadKind};
use crate::payload::Payload;
use crate::qos::{AttachedData, Durability, History, QosError, ReaderQos, Reliability, WriterQos};
use crate::reader::Reader;
use crate::shared::Shared;
use crate::time::{EpochOffset, Instant};
use crate::types::{EntityId, Guid, GuidPrefix, KeyHash, Keyed, SequenceNumber};

/// What the instances of a built-in topic are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltinTopic {
    /// DCPSParticipant: participants, by their GUIDs. A payload is a
    /// [`ParticipantData`](crate::discovery::participant_data::ParticipantData).
    Participant,
    /// DCPSTopic: pairs of topic and type name that writers or readers use, by numbers of this participant. A payload is a
    /// [`PublicationData`] of which the names and TOPIC_DATA count.
    Topic,
    /// DCPSPublication: writers, by their GUIDs. A payload is a [`PublicationData`].
    Publication,
    /// DCPSSubscription: readers, by their GUIDs. A payload is a
    /// [`SubscriptionData`](crate::discovery::endpoint_data::SubscriptionData).
    Subscription,
}

/// How a participant or an endpoint ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Its owner said so, or the application ignores it: `NOT_ALIVE_DISPOSED`.
    Deleted,
    /// Nothing was heard of it any more: `NOT_ALIVE_NO_WRITERS`.
    Lost,
}

/// The readers of built-in topics, and what they have to know beside discovery.
#[derive(Debug, Default)]
pub(super) struct Graph {
    readers: BTreeMap<EntityId, BuiltinTopic>,
    topics: Topics,
}

/// Topics that endpoints of others use.
#[derive(Debug, Default)]
struct Topics {
    /// By topic and type name.
    used: BTreeMap<(String, String), TopicUse>,
    names_of: BTreeMap<Guid, (String, String)>,
    last_number: u32,
}

#[derive(Debug)]
struct TopicUse {
    number: u32,
    endpoints: BTreeSet<Guid>,
    /// The one whose TOPIC_DATA is told: the first that has any.
    teller: Guid,
    /// What was told of it last.
    data: Vec<u8>,
}

/// One change of an instance.
struct Change {
    topic: BuiltinTopic,
    guid: Guid,
    kind: ChangeKind,
    payload: Payload,
}

impl Change {
    fn news(topic: BuiltinTopic, guid: Guid, encode: impl FnOnce(&mut Vec<u8>)) -> Change {
        let mut bytes = Vec::new();
        encode(&mut bytes);
        Change { topic, guid, kind: ChangeKind::Write, payload: Payload::from(bytes) }
    }

    fn end(topic: BuiltinTopic, guid: Guid, ending: Ending) -> Change {
        let kind = match ending {
            Ending::Deleted => ChangeKind::DisposeUnregister,
            Ending::Lost => ChangeKind::Unregister,
        };
        Change { topic, guid, kind, payload: Payload::empty() }
    }

    fn into_sample(self, now: Instant, epoch: Option<EpochOffset>, writer: Guid) -> CachedSample {
        CachedSample {
            payload: self.payload,
            payload_kind: PayloadKind::Data,
            valid: self.kind == ChangeKind::Write,
            writer,
            sequence: SequenceNumber::FIRST,
            source_timestamp: epoch.map(|epoch| epoch.timestamp(now)),
            received: now,
            expires: Instant::NEVER,
            instance: KeyHash(self.guid.to_bytes()),
            coherent_set: SequenceNumber::ZERO,
            related: None,
            change: self.kind,
        }
    }
}

impl Topics {
    /// An endpoint uses a topic with this TOPIC_DATA: the topic's number if one of them is news.
    fn add(&mut self, guid: Guid, topic: &str, type_name: &str, data: &[u8]) -> Option<u32> {
        let names = (topic.to_owned(), type_name.to_owned());
        self.names_of.insert(guid, names.clone());
        if let Some(used) = self.used.get_mut(&names) {
            used.endpoints.insert(guid);
            if used.teller != guid && !used.data.is_empty() || *used.data == *data {
                return None;
            }
            (used.teller, used.data) = (guid, data.to_vec());
            return Some(used.number);
        }
        self.last_number += 1;
        let endpoints = BTreeSet::from([guid]);
        let used = TopicUse { number: self.last_number, endpoints, teller: guid, data: data.to_vec() };
        self.used.insert(names, used);
        Some(self.last_number)
    }

    /// An endpoint uses its topic no longer: the topic's number if it was the last one.
    fn remove(&mut self, guid: Guid) -> Option<u32> {
        let names = self.names_of.remove(&guid)?;
        let used = self.used.get_mut(&names)?;
        used.endpoints.remove(&guid);
        let Some(first) = used.endpoints.first() else {
            return self.used.remove(&names).map(|used| used.number);
        };
        if used.teller == guid {
            used.teller = *first;
        }
        None
    }
}

/// The QoS of readers of built-in topics (DDS 1.4 §2.2.5).
pub fn builtin_reader_qos() -> ReaderQos {
    ReaderQos {
        reliability: Reliability::RELIABLE,
        durability: Durability::TransientLocal,
        history: History::KeepLast(1),
        ..ReaderQos::default()
    }
}

impl Participant {
    /// Creates a reader of a built-in topic, which has an instance for each participant, topic or endpoint of others that is known now
    /// or later; [`Participant::delete_reader`] deletes it.
    ///
    /// # Errors
    /// When a policy of `qos` is inconsistent or not supported.
    pub fn create_builtin_reader(
        &mut self,
        now: Instant,
        topic: BuiltinTopic,
        qos: Arc<ReaderQos>,
    ) -> Result<Shared<Reader>, QosError> {
        qos.check()?;
        let entity = self.endpoints.next_reader(Keyed::Yes)?;
        let guid = Guid::new(self.config.prefix, entity);
        let shared = Shared::new(Reader::new(guid, qos, Keyed::Yes, self.endpoints.budget()));
        let (keys, publications) = (KeySource::Wire, Publications::OfOthers);
        let local = LocalReader { shared: shared.clone(), keys, filter: None, publications };
        self.endpoints.add_reader(entity, local);
        let is_first_of_topics = topic == BuiltinTopic::Topic && !self.graph.has(BuiltinTopic::Topic);
        self.graph.readers.insert(entity, topic);
        if is_first_of_topics {
            self.graph.topics = Topics::default();
            let all: Vec<Guid> = self.others(BuiltinTopic::Publication);
            all.into_iter().chain(self.others(BuiltinTopic::Subscription)).for_each(|guid| _ = self.count_topic(guid));
        }
        for change in self.all_of(topic) {
            self.present_to(now, entity, change);
        }
        Ok(shared)
    }

    /// Forgets a reader of a built-in topic; false for other readers.
    pub(super) fn leave_graph(&mut self, entity: EntityId) -> bool {
        let was_there = self.graph.readers.remove(&entity).is_some();
        if was_there && !self.graph.has(BuiltinTopic::Topic) {
            self.graph.topics = Topics::default();
        }
        was_there
    }

    /// A participant is known now, or has changed.
    pub(super) fn show_participant(&mut self, now: Instant, prefix: GuidPrefix) {
        if self.graph.has(BuiltinTopic::Participant)
            && let Some(change) = self.participant_change(prefix)
        {
            self.tell_graph(now, change);
        }
    }

    /// A participant is known no longer.
    pub(super) fn hide_participant(&mut self, now: Instant, prefix: GuidPrefix, ending: Ending) {
        self.tell_graph(now, Change::end(BuiltinTopic::Participant, Guid::new(prefix, EntityId::PARTICIPANT), ending));
    }

    /// A writer or reader of another participant is known now, or has changed.
    pub(super) fn show_endpoint(&mut self, now: Instant, guid: Guid) {
        if self.graph.readers.is_empty() || guid.prefix == self.config.prefix {
            return;
        }
        if let Some(change) = self.endpoint_change(guid) {
            self.tell_graph(now, change);
        }
        if self.graph.has(BuiltinTopic::Topic) {
            if self.graph.topics.names_of.contains_key(&guid) && !self.has_topic_as_before(guid) {
                self.leave_topic(now, guid, Ending::Deleted);
            }
            if let Some(change) = self.count_topic(guid) {
                self.tell_graph(now, change);
            }
        }
    }

    /// A writer or reader of another participant is known no longer.
    pub(super) fn hide_endpoint(&mut self, now: Instant, guid: Guid, ending: Ending) {
        if self.graph.readers.is_empty() || guid.prefix == self.config.prefix {
            return;
        }
        let topic = if guid.entity.is_writer() { BuiltinTopic::Publication } else { BuiltinTopic::Subscription };
        self.tell_graph(now, Change::end(topic, guid, ending));
        self.leave_topic(now, guid, ending);
    }

    fn leave_topic(&mut self, now: Instant, guid: Guid, ending: Ending) {
        if let Some(number) = self.graph.topics.remove(guid) {
            let topic = self.topic_guid(number);
            self.tell_graph(now, Change::end(BuiltinTopic::Topic, topic, ending));
        }
    }

    fn has_topic_as_before(&self, guid: Guid) -> bool {
        let names = self.names_of(guid);
        names.is_some_and(|names| self.graph.topics.names_of.get(&guid) == Some(&names))
    }

    fn names_of(&self, guid: Guid) -> Option<(String, String)> {
        match guid.entity.is_writer() {
            true => {
                let known = self.database.publications.get(guid)?;
                Some((known.data.topic_name.clone(), known.data.type_name.clone()))
            }
            false => {
                let known = self.database.subscriptions.get(guid)?;
                Some((known.data.topic_name.clone(), known.data.type_name.clone()))
            }
        }
    }

    /// Counts an endpoint for its topic; what is to be told if that is new.
    fn count_topic(&mut self, guid: Guid) -> Option<Change> {
        let (topic, type_name) = self.names_of(guid)?;
        let data = self.topic_data_of(guid).unwrap_or_default().to_vec();
        let number = self.graph.topics.add(guid, &topic, &type_name, &data)?;
        Some(self.topic_change(guid, number, &topic, &type_name))
    }

    /// A topic as the endpoint `of` announces it.
    fn topic_change(&self, of: Guid, number: u32, topic: &str, type_name: &str) -> Change {
        let topic_data = self.topic_data_of(of).unwrap_or_default().to_vec();
        let attached = AttachedData { topic: topic_data, ..AttachedData::default() };
        let qos = WriterQos { attached, ..WriterQos::default() };
        let guid = self.topic_guid(number);
        Change::news(BuiltinTopic::Topic, guid, |bytes| PublicationData::new(guid, topic, type_name, qos).encode(bytes))
    }

    /// What an endpoint attaches to its topic.
    fn topic_data_of(&self, endpoint: Guid) -> Option<&[u8]> {
        Some(match endpoint.entity.is_writer() {
            true => &self.database.publications.get(endpoint)?.data.qos.attached.topic,
            false => &self.database.subscriptions.get(endpoint)?.data.qos.attached.topic,
        })
    }

    fn topic_guid(&self, number: u32) -> Guid {
        Guid::new(self.config.prefix, EntityId::user_writer(number, Keyed::No))
    }

    fn participant_change(&self, prefix: GuidPrefix) -> Option<Change> {
        let data = &self.database.participants.get(&prefix)?.data;
        Some(Change::news(BuiltinTopic::Participant, data.guid(), |bytes| data.encode(bytes)))
    }

    fn endpoint_change(&self, guid: Guid) -> Option<Change> {
        Some(match guid.entity.is_writer() {
            true => {
                let data = &self.database.publications.get(guid)?.data;
                Change::news(BuiltinTopic::Publication, guid, |bytes| data.encode(bytes))
            }
            false => {
                let data = &self.database.subscriptions.get(guid)?.data;
                Change::news(BuiltinTopic::Subscription, guid, |bytes| data.encode(bytes))
            }
        })
    }

    /// The endpoints of others of one kind.
    fn others(&self, topic: BuiltinTopic) -> Vec<Guid> {
        let own = self.config.prefix;
        match topic {
            BuiltinTopic::Publication => {
                let all = self.database.publications.iter().map(|known| known.data.guid);
                all.filter(|guid| guid.prefix != own).collect()
            }
            _ => {
                let all = self.database.subscriptions.iter().map(|known| known.data.guid);
                all.filter(|guid| guid.prefix != own).collect()
            }
        }
    }

    /// All instances of a topic as they are now.
    fn all_of(&self, topic: BuiltinTopic) -> Vec<Change> {
        match topic {
            BuiltinTopic::Participant => {
                let others = self.participants().map(|known| known.data.guid_prefix);
                others.filter_map(|prefix| self.participant_change(prefix)).collect()
            }
            BuiltinTopic::Topic => {
                let topics = self.graph.topics.used.iter();
                let change = |((topic, type_name), used): (&(String, String), &TopicUse)| {
                    self.topic_change(used.teller, used.number, topic, type_name)
                };
                topics.map(change).collect()
            }
            endpoints => self.others(endpoints).into_iter().filter_map(|guid| self.endpoint_change(guid)).collect(),
        }
    }

    /// Gives a change to all readers of its topic.
    fn tell_graph(&mut self, now: Instant, change: Change) {
        let readers = self.graph.readers.iter().filter(|(_, topic)| **topic == change.topic);
        let readers: Vec<EntityId> = readers.map(|(entity, _)| *entity).collect();
        for entity in readers {
            let Change { topic, guid, kind, payload } = &change;
            self.present_to(now, entity, Change { topic: *topic, guid: *guid, kind: *kind, payload: payload.clone() });
        }
    }

    fn present_to(&mut self, now: Instant, entity: EntityId, change: Change) {
        let Some(shared) = self.endpoints.reader(entity) else { return };
        // Whoever announces an instance is its only writer, so that the instance ends with it.
        let writer = Guid::new(change.guid.prefix, EntityId::UNKNOWN);
        let sample = change.into_sample(now, self.endpoints.epoch(), writer);
        let (outcome, news, armed) = {
            let mut reader = shared.lock();
            (reader.handle_known(now, sample), reader.take_news(), reader.newly_armed())
        };
        self.note_status_news(entity, news);
        self.note_reader_outcome(now, entity, outcome, armed);
    }
}

impl Graph {
    fn has(&self, topic: BuiltinTopic) -> bool {
        self.readers.values().any(|read| *read == topic)
    }
}
