//! The participant's own endpoints: user-defined and built-in ones in the same tables.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::entity_keys::EntityKeys;
use super::graph::Ending;
use super::lasting::StoredHistory;
use super::services::{BuiltinTopics, TopicKind};
use super::{Event, KeySource, Participant, ParticipantConfig, SampleFilter};
use crate::discovery::challenge::{HALVES, Secret};
use crate::discovery::endpoint_data::{ContentFilter, PublicationData, SubscriptionData};
use crate::flow_control::ControllerId;
use crate::history::{ChangeKind, ReadFilter, TakenSample};
use crate::payload::Payload;
use crate::qos::{QosError, ReaderQos, TrafficClass, WriterQos};
use crate::reader::{CoherentSets, Reader, ReaderExplanation, ReassemblyBudget};
use crate::round_trip::ASSUMED;
use crate::shared::Shared;
use crate::time::{EpochOffset, Instant, Timestamp};
use crate::types::{EntityId, Guid, GuidPrefix, KeyHash, Keyed, SequenceNumber};
use crate::writer::{Neighbourhood, NewChange, PublisherGroup, Writer, WriterExplanation, WriterOptions};

/// The configuration of a writer.
#[derive(Clone, Debug)]
pub struct WriterConfig {
    /// Name of its topic.
    pub topic_name: String,
    /// Name of the topic's type.
    pub type_name: String,
    /// Whether the type has a key.
    pub keyed: Keyed,
    /// Its offered QoS.
    pub qos: Arc<WriterQos>,
    /// History budget and addressing.
    pub options: WriterOptions,
}

/// The configuration of a reader.
#[derive(Clone)]
pub struct ReaderConfig {
    /// Name of its topic.
    pub topic_name: String,
    /// Name of the topic's type.
    pub type_name: String,
    /// Whether the type has a key.
    pub keyed: Keyed,
    /// Its requested QoS.
    pub qos: Arc<ReaderQos>,
    /// How it learns the instances of its samples.
    pub keys: KeySource,
    /// The filter that is announced, and which samples it lets pass; `None` for all.
    pub filter: Option<(Box<ContentFilter>, SampleFilter)>,
}

#[derive(Clone)]
pub(super) struct LocalReader {
    pub shared: Shared<Reader>,
    pub keys: KeySource,
    pub filter: Option<SampleFilter>,
    pub publications: Publications,
}

/// The writers that a reader may be matched with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Publications {
    /// Those of every participant.
    #[default]
    All,
    /// Those of other participants than its own.
    OfOthers,
}

/// A local writer, and the properties that its turn to send depends on.
#[derive(Clone)]
pub(super) struct LocalWriter {
    pub shared: Shared<Writer>,
    pub qos: Arc<WriterQos>,
    /// Set for asynchronous writers.
    pub controller: Option<ControllerId>,
}

pub(super) struct Endpoints {
    builtin: BuiltinTopics,
    pub(super) writers: BTreeMap<EntityId, LocalWriter>,
    pub(super) readers: BTreeMap<EntityId, LocalReader>,
    /// Traffic classes of the writers whose datagrams are marked.
    classes: BTreeMap<EntityId, TrafficClass>,
    pub(super) keys: EntityKeys,
    /// The least LATENCY_BUDGET, unless it has to be looked up again.
    pub(super) latency: Option<Duration>,
    /// Number of readers that do not get just what others get: they have a content filter, or want coherent sets.
    particular_readers: usize,
    /// Memory of unfinished samples of user-defined readers.
    budget: ReassemblyBudget,
    /// The wall clock, once the driver has set it.
    epoch: Option<EpochOffset>,
}

/// Memory that unfinished samples of discovery may take together.
const BUILTIN_REASSEMBLY_BYTES_MAX: usize = 16 << 20;

impl LocalWriter {
    fn new(writer: Writer, qos: Arc<WriterQos>, controller: Option<ControllerId>) -> LocalWriter {
        LocalWriter { shared: Shared::new(writer), qos, controller }
    }
}

impl Endpoints {
    /// The built-in endpoints.
    pub(super) fn new(config: &ParticipantConfig, secret: Secret) -> Endpoints {
        let (prefix, bytes_max) = (config.prefix, config.reassembly_bytes_max);
        let builtin_budget = ReassemblyBudget::new(bytes_max.min(BUILTIN_REASSEMBLY_BYTES_MAX));
        let (mut writers, mut readers) = (BTreeMap::new(), BTreeMap::new());
        let builtin = BuiltinTopics::new(&config.services);
        for topic in builtin.iter() {
            let (writer, reader) = (topic.writer, topic.reader);
            let half = HALVES.iter().position(|(challenger, _)| *challenger == writer);
            let first = half.map_or(SequenceNumber::FIRST, |half| secret.first_number(half));
            let (qos, options) = (Arc::clone(&topic.writer_qos), WriterOptions { first, ..WriterOptions::default() });
            let mut state = Writer::new(Guid::new(prefix, writer), Arc::clone(&qos), &options);
            state.begin_counts_at(config.first_count);
            writers.insert(writer, LocalWriter::new(state, qos, None));
            // Its counts go on from those of the answers to strangers, which have 0.
            let (guid, qos) = (Guid::new(prefix, reader), Arc::clone(&topic.reader_qos));
            let mut state = Reader::new(guid, qos, reader.keyed(), builtin_budget.clone());
            if matches!(topic.kind, TopicKind::Publications | TopicKind::Subscriptions) {
                // Whoever else ends a participant's endpoint is not believed, and its owner's word must still be heard.
                state.tell_every_end();
            }
            let keys = topic.key_of().map_or(KeySource::Wire, KeySource::Function);
            let publications = Publications::All;
            readers.insert(reader, LocalReader { shared: Shared::new(state), keys, filter: None, publications });
        }
        let (budget, classes) = (ReassemblyBudget::new(bytes_max), BTreeMap::new());
        let (keys, latency, epoch) = (EntityKeys::new(), None, None);
        Endpoints { builtin, writers, readers, classes, keys, latency, particular_readers: 0, budget, epoch }
    }

    /// The built-in topics, including services.
    pub(super) fn builtin(&self) -> &BuiltinTopics {
        &self.builtin
    }

    pub(super) fn builtin_mut(&mut self) -> &mut BuiltinTopics {
        &mut self.builtin
    }

    /// Sets the wall clock.
    pub(super) fn set_wall_clock(&mut self, now: Instant, wall_clock: Timestamp) {
        self.epoch = Some(EpochOffset::new(now, wall_clock));
    }

    pub(super) fn epoch(&self) -> Option<EpochOffset> {
        self.epoch
    }

    /// Bytes that unfinished samples of user-defined readers take.
    pub(super) fn reassembly_bytes(&self) -> usize {
        self.budget.used()
    }

    /// Writes by a built-in writer, with a time stamp if the wall clock is known; returns its next deadline.
    pub(super) fn write(&self, now: Instant, via: EntityId, change: NewChange) -> Option<Instant> {
        let timestamp = self.epoch.map(|epoch| epoch.timestamp(now));
        let written = self.writer(via)?.lock().write(now, NewChange { timestamp, ..change }).ok()?;
        Some(written.arm.unwrap_or(Instant::NEVER))
    }

    /// Gives the neighbourhood to user-defined writers, which choose between unicast and multicast by it.
    pub(super) fn set_neighbourhood(&self, neighbourhood: &Arc<Neighbourhood>) {
        for (_, local) in self.writers.iter().filter(|(entity, _)| !entity.is_builtin()) {
            local.shared.lock().set_neighbourhood(Arc::clone(neighbourhood));
        }
    }

    /// The round trip that endpoints matched with those of a participant now assume: the one that discovery measured there, or else
    /// at other participants.
    pub(super) fn round_trip_assumed(&self, participant: GuidPrefix) -> Duration {
        let topics = self.builtin.standard();
        let writers = topics.filter_map(|topic| Some((self.writer(topic.writer)?, topic.reader)));
        let measured =
            writers.filter_map(|(writer, reader)| writer.lock().round_trip_of(Guid::new(participant, reader))).max();
        let writer = self.writer(EntityId::PUBLICATIONS_WRITER);
        measured.or_else(|| writer.map(|writer| writer.lock().crowd_round_trip())).unwrap_or(ASSUMED).max(ASSUMED)
    }

    /// Explanations of the writers among `guids`.
    pub(super) fn explain_writers(&self, now: Instant, topic: &str, guids: &[Guid]) -> Vec<WriterExplanation> {
        let explained = guids.iter().filter_map(|guid| Some(self.writer(guid.entity)?.lock().explain(now)));
        explained.map(|told| WriterExplanation { topic: topic.to_owned(), ..told }).collect()
    }

    /// Explanations of the readers among `guids`.
    pub(super) fn explain_readers(&self, topic: &str, guids: &[Guid]) -> Vec<ReaderExplanation> {
        let explained = guids.iter().filter_map(|guid| Some(self.reader(guid.entity)?.lock().explain()));
        explained.map(|told| ReaderExplanation { topic: topic.to_owned(), ..told }).collect()
    }

    /// Takes everything that a reader has.
    pub(super) fn take_all(&self, now: Instant, reader: EntityId) -> Vec<TakenSample> {
        let mut samples = Vec::new();
        if let Some(shared) = self.reader(reader) {
            shared.lock().take(|| now, usize::MAX, &ReadFilter::ALL, &mut samples);
        }
        samples
    }

    pub(super) fn writer(&self, entity: EntityId) -> Option<&Shared<Writer>> {
        self.writers.get(&entity).map(|local| &local.shared)
    }

    pub(super) fn writer_mut(&mut self, entity: EntityId) -> Option<&mut LocalWriter> {
        self.writers.get_mut(&entity)
    }

    pub(super) fn local_writer(&self, entity: EntityId) -> Option<&LocalWriter> {
        self.writers.get(&entity)
    }

    pub(super) fn reader(&self, entity: EntityId) -> Option<&Shared<Reader>> {
        self.readers.get(&entity).map(|local| &local.shared)
    }

    pub(super) fn reader_publications(&self, entity: EntityId) -> Publications {
        self.readers.get(&entity).map_or(Publications::All, |local| local.publications)
    }

    pub(super) fn local_reader(&self, entity: EntityId) -> Option<&LocalReader> {
        self.readers.get(&entity)
    }

    /// Whether any reader does not get just what others get.
    pub(super) fn any_is_particular(&self) -> bool {
        self.particular_readers > 0
    }

    /// The traffic class of an endpoint's datagrams.
    pub(super) fn traffic_class(&self, entity: EntityId) -> TrafficClass {
        self.classes.get(&entity).copied().unwrap_or_default()
    }

    pub(super) fn set_traffic_class(&mut self, entity: EntityId, class: TrafficClass) {
        match class {
            TrafficClass::DEFAULT => self.classes.remove(&entity),
            class => self.classes.insert(entity, class),
        };
    }

    pub(super) fn user_writers(&self) -> Vec<EntityId> {
        self.writers.keys().copied().filter(|entity| !entity.is_builtin()).collect()
    }

    pub(super) fn user_readers(&self) -> Vec<EntityId> {
        self.readers.keys().copied().filter(|entity| !entity.is_builtin()).collect()
    }

    /// Memory of unfinished samples of user-defined readers.
    pub(super) fn budget(&self) -> ReassemblyBudget {
        self.budget.clone()
    }

    pub(super) fn add_reader(&mut self, entity: EntityId, local: LocalReader) {
        self.readers.insert(entity, local);
        self.latency = None;
    }
}

impl Participant {
    /// Creates a writer and announces it.
    ///
    /// # Errors
    /// When a policy is inconsistent or not supported, or names a flow controller that does not exist.
    pub fn create_writer(&mut self, now: Instant, config: WriterConfig) -> Result<Shared<Writer>, QosError> {
        let group = config.qos.presentation.spans_group().then(|| self.create_publisher());
        self.create_writer_in(now, config, group)
    }

    /// As [`Participant::create_writer`], with the order and the sets of a publisher.
    ///
    /// # Errors
    /// As [`Participant::create_writer`].
    pub fn create_writer_in(
        &mut self,
        now: Instant,
        config: WriterConfig,
        group: Option<PublisherGroup>,
    ) -> Result<Shared<Writer>, QosError> {
        if config.qos.outlives_writer() {
            return self.create_lasting_writer(now, config, None);
        }
        self.add_writer(now, config, group, None)
    }

    /// Adds a writer, with what a store holds of its history.
    pub(super) fn add_writer(
        &mut self,
        now: Instant,
        config: WriterConfig,
        group: Option<PublisherGroup>,
        stored: Option<StoredHistory>,
    ) -> Result<Shared<Writer>, QosError> {
        config.qos.check()?;
        let controller = self.order.controller_for(&config.qos)?;
        let entity = self.endpoints.next_writer(config.keyed)?;
        let guid = Guid::new(self.config.prefix, entity);
        let mut state = Writer::new(guid, Arc::clone(&config.qos), &config.options);
        state.begin_counts_at(self.config.first_count);
        state.begin_promises(now, self.liveliness.own_assertion());
        let history = stored.as_ref().map(|stored| stored.identity);
        if let Some(stored) = stored {
            state.begin_journal(stored.reserved);
            state.restore(now, self.endpoints.epoch(), stored.changes, stored.last);
        }
        let publisher = group.as_ref().map(PublisherGroup::publisher);
        if let Some(group) = group {
            state.join_group(group);
        }
        self.liveliness.add_own(now, config.qos.liveliness);
        self.announcer.hasten_message(now + self.liveliness.automatic_period());
        let local = LocalWriter::new(state, Arc::clone(&config.qos), controller);
        let shared = local.shared.clone();
        self.endpoints.writers.insert(entity, local);
        self.endpoints.latency = None;
        self.order.attach(entity, &config.qos, controller);
        self.endpoints.set_traffic_class(entity, TrafficClass::of(config.qos.transport_priority));
        let information = self.type_information(&config.topic_name, &config.type_name);
        let data = PublicationData::new(guid, &config.topic_name, &config.type_name, config.qos)
            .with_type_information(information);
        let data = PublicationData { group: publisher, history, ..data };
        self.announce_publication(now, data);
        shared.lock().set_neighbourhood(self.neighbours.current());
        self.match_local_writer(now, entity);
        self.match_publication(now, guid);
        let armed = shared.lock().newly_armed();
        if let Some(at) = armed {
            self.order.schedule.arm(entity, at);
        }
        Ok(shared)
    }

    /// Creates a reader and announces it.
    ///
    /// # Errors
    /// When a policy is inconsistent or not supported.
    pub fn create_reader(&mut self, now: Instant, config: ReaderConfig) -> Result<Shared<Reader>, QosError> {
        self.create_reader_of(now, config, Publications::All)
    }

    /// As [`Participant::create_reader`], for the writers of these participants.
    ///
    /// # Errors
    /// As [`Participant::create_reader`].
    pub fn create_reader_of(
        &mut self,
        now: Instant,
        config: ReaderConfig,
        publications: Publications,
    ) -> Result<Shared<Reader>, QosError> {
        let subscriber = config.qos.presentation.spans_group().then(|| self.create_subscriber());
        self.create_reader_in(now, config, publications, subscriber)
    }

    /// As [`Participant::create_reader_of`], accessed together with the other readers of a subscriber.
    ///
    /// # Errors
    /// As [`Participant::create_reader`].
    pub fn create_reader_in(
        &mut self,
        now: Instant,
        config: ReaderConfig,
        publications: Publications,
        subscriber: Option<EntityId>,
    ) -> Result<Shared<Reader>, QosError> {
        config.qos.check()?;
        let entity = self.endpoints.next_reader(config.keyed)?;
        let guid = Guid::new(self.config.prefix, entity);
        let mut state = Reader::new(guid, Arc::clone(&config.qos), config.keyed, self.endpoints.budget.clone());
        state.begin_counts_at(self.config.first_count);
        let (announced, filter) = config.filter.unzip();
        if filter.is_some() {
            state.ignore_unknown_ends();
        }
        let wants_sets = state.wants_coherent_sets() == CoherentSets::Wanted;
        self.endpoints.particular_readers += usize::from(filter.is_some() || wants_sets);
        if let Some(subscriber) = subscriber {
            self.access.add_reader(subscriber, entity, config.qos.presentation, filter.is_some());
        }
        let shared = Shared::new(state);
        let local = LocalReader { shared: shared.clone(), keys: config.keys, filter, publications };
        self.endpoints.readers.insert(entity, local);
        self.endpoints.latency = None;
        let information = self.type_information(&config.topic_name, &config.type_name);
        let data = SubscriptionData::new(guid, &config.topic_name, &config.type_name, config.qos)
            .with_type_information(information);
        let data = SubscriptionData { filter: announced, ..data };
        self.announce_subscription(now, data);
        self.match_local_reader(now, entity);
        self.match_subscription(now, guid);
        Ok(shared)
    }

    /// The content filter of a local reader, if it has one.
    pub fn reader_filter(&self, entity: EntityId) -> Option<&ContentFilter> {
        let known = self.database.subscriptions.get(Guid::new(self.config.prefix, entity))?;
        known.data.filter.as_deref()
    }

    /// Gives another content filter to a local reader that was created with one, and announces it. Samples that have come stay as they
    /// are. False for a reader without filter.
    pub fn set_reader_filter(
        &mut self,
        now: Instant,
        entity: EntityId,
        (announced, accepts): (Box<ContentFilter>, SampleFilter),
    ) -> bool {
        let guid = Guid::new(self.config.prefix, entity);
        let local = self.endpoints.readers.get_mut(&entity).and_then(|local| local.filter.as_mut());
        let (Some(filter), Some(known)) = (local, self.database.subscriptions.get(guid)) else { return false };
        *filter = accepts;
        let data = SubscriptionData { filter: Some(announced), ..SubscriptionData::clone(&known.data) };
        self.announce_subscription(now, data);
        self.match_subscription(now, guid);
        true
    }

    /// Deletes a writer and tells peers. Samples without acknowledgement are lost. One whose history outlives it (DURABILITY) is retained:
    /// it goes on serving readers until another writer takes its history over, and owns no instance any more.
    pub fn delete_writer(&mut self, now: Instant, entity: EntityId) {
        if entity.is_builtin() {
            return;
        }
        if self.lasting.retain(entity) {
            self.give_up_ownership(now, entity);
        } else {
            self.remove_writer(now, entity);
        }
    }

    /// Removes a writer with its history.
    pub(super) fn remove_writer(&mut self, now: Instant, entity: EntityId) {
        let Some(local) = self.endpoints.writers.remove(&entity) else { return };
        self.endpoints.latency = None;
        self.order.detach(now, entity, local.controller);
        self.liveliness.remove_own(now, local.qos.liveliness);
        let guid = Guid::new(self.config.prefix, entity);
        self.endpoints.classes.remove(&entity);
        self.unmatch_local_writer(entity);
        self.remove_publication(now, guid, Ending::Deleted);
        self.order.schedule.forget(entity);
        let mut key = Vec::new();
        PublicationData::encode_key(guid, &mut key);
        self.announce_endpoint(now, EntityId::PUBLICATIONS_WRITER, ChangeKind::DisposeUnregister, guid, key);
    }

    /// Deletes a reader and tells peers.
    pub fn delete_reader(&mut self, now: Instant, entity: EntityId) {
        if entity.is_builtin() {
            return;
        }
        let Some(local) = self.endpoints.readers.remove(&entity) else { return };
        self.endpoints.latency = None;
        if self.leave_graph(entity) {
            return self.order.schedule.forget(entity);
        }
        let is_particular = local.filter.is_some() || local.shared.lock().wants_coherent_sets() == CoherentSets::Wanted;
        self.endpoints.particular_readers -= usize::from(is_particular);
        self.access.remove_reader(entity);
        self.settle_access(now);
        let guid = Guid::new(self.config.prefix, entity);
        self.unmatch_local_reader(entity);
        self.remove_subscription(now, guid, Ending::Deleted);
        self.order.schedule.forget(entity);
        let mut key = Vec::new();
        SubscriptionData::encode_key(guid, &mut key);
        self.announce_endpoint(now, EntityId::SUBSCRIPTIONS_WRITER, ChangeKind::DisposeUnregister, guid, key);
    }

    pub(super) fn announce_endpoint(
        &mut self,
        now: Instant,
        via: EntityId,
        kind: ChangeKind,
        guid: Guid,
        bytes: Vec<u8>,
    ) {
        if self.housemates.tell(guid.entity, (kind == ChangeKind::Write).then_some(bytes.as_slice())) {
            self.reports.tell(Event::HousematesTold);
        }
        let (instance, payload) = (KeyHash(guid.to_bytes()), Payload::from(bytes));
        self.write_builtin(now, via, NewChange { kind, instance, timestamp: None, payload });
    }
}
