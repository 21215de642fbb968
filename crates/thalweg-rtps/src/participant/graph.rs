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
    /// TOPIC_DATA of those that have any.
    attached: BTreeMap<Guid, Vec<u8>>,
    /// The one whose TOPIC_DATA is told.
    teller: Guid,
    /// What was told of it last.
    data: Vec<u8>,
}

/// What is to be told when an endpoint uses its topic no longer.
enum Departure {
    /// The topic with this number ends: nobody else uses it.
    OfLast(u32),
    /// Other TOPIC_DATA count for the topic of these names.
    OfTeller((String, String)),
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

impl TopicUse {
    /// An endpoint uses the topic with this TOPIC_DATA. True if other data are to be told.
    fn add(&mut self, guid: Guid, data: Vec<u8>) -> bool {
        self.endpoints.insert(guid);
        if data.is_empty() {
            self.attached.remove(&guid);
        } else {
            self.attached.insert(guid, data);
        }
        self.choose_teller()
    }

    /// An endpoint uses the topic no longer. True if other data are to be told.
    fn remove(&mut self, guid: Guid) -> bool {
        self.endpoints.remove(&guid);
        self.attached.remove(&guid);
        self.choose_teller()
    }

    /// Who tells goes on as long as it has TOPIC_DATA; otherwise the first one does that has any. True if its data are others than before.
    fn choose_teller(&mut self) -> bool {
        let next = self.attached.get_key_value(&self.teller).or_else(|| self.attached.first_key_value());
        if let Some((teller, _)) = next {
            self.teller = *teller;
        }
        let data = next.map(|(_, data)| data.as_slice()).unwrap_or_default();
        let is_news = *self.data != *data;
        if is_news {
            self.data = data.to_vec();
        }
        is_news
    }
}

impl Topics {
    /// An endpoint uses a topic with this TOPIC_DATA. True if one of them is news.
    fn add(&mut self, guid: Guid, names: &(String, String), data: Vec<u8>) -> bool {
        self.names_of.insert(guid, names.clone());
        if let Some(used) = self.used.get_mut(names) {
            return used.add(guid, data);
        }
        self.last_number += 1;
        let (endpoints, attached) = (BTreeSet::new(), BTreeMap::new());
        let mut used = TopicUse { number: self.last_number, endpoints, attached, teller: guid, data: Vec::new() };
        used.add(guid, data);
        self.used.insert(names.clone(), used);
        true
    }

    /// An endpoint uses its topic no longer.
    fn remove(&mut self, guid: Guid) -> Option<Departure> {
        let names = self.names_of.remove(&guid)?;
        let used = self.used.get_mut(&names)?;
        let is_news = used.remove(guid);
        if used.endpoints.is_empty() {
            return self.used.remove(&names).map(|used| Departure::OfLast(used.number));
        }
        is_news.then_some(Departure::OfTeller(names))
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
        let change = match self.graph.topics.remove(guid) {
            Some(Departure::OfLast(number)) => Some(Change::end(BuiltinTopic::Topic, self.topic_guid(number), ending)),
            Some(Departure::OfTeller(names)) => self.topic_change(&names),
            None => None,
        };
        if let Some(change) = change {
            self.tell_graph(now, change);
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
        let names = self.names_of(guid)?;
        let data = self.topic_data_of(guid).unwrap_or_default().to_vec();
        let is_news = self.graph.topics.add(guid, &names, data);
        if is_news { self.topic_change(&names) } else { None }
    }

    /// The topic of these names as it is told of now.
    fn topic_change(&self, names: &(String, String)) -> Option<Change> {
        let used = self.graph.topics.used.get(names)?;
        let attached = AttachedData { topic: used.data.clone(), ..AttachedData::default() };
        let qos = WriterQos { attached, ..WriterQos::default() };
        let guid = self.topic_guid(used.number);
        let data = PublicationData::new(guid, &names.0, &names.1, qos);
        Some(Change::news(BuiltinTopic::Topic, guid, |bytes| data.encode(bytes)))
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
                let topics = self.graph.topics.used.keys();
                topics.filter_map(|names| self.topic_change(names)).collect()
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
