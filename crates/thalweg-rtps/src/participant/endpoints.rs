//! The participant's own endpoints: user-defined and built-in ones in the same tables.

use std::collections::BTreeMap;
use std::time::Duration;

use super::services::{BuiltinService, BuiltinTopics};
use super::{Event, KeySource, Participant};
use crate::discovery::challenge::{HALVES, Secret};
use crate::discovery::endpoint_data::{PublicationData, SubscriptionData};
use crate::flow_control::ControllerId;
use crate::history::{ChangeKind, ReadFilter, TakenSample};
use crate::qos::{QosError, ReaderQos, TrafficClass, WriterQos};
use crate::reader::{Reader, ReassemblyBudget};
use crate::shared::Shared;
use crate::time::Instant;
use crate::types::{EntityId, Guid, GuidPrefix, KeyHash, Keyed, SequenceNumber};
use crate::writer::{Writer, WriterOptions};

/// What a writer is made of.
#[derive(Clone, Debug)]
pub struct WriterConfig {
    /// Name of its topic.
    pub topic_name: String,
    /// Name of the topic's type.
    pub type_name: String,
    /// Whether the type has a key.
    pub keyed: Keyed,
    /// What it offers.
    pub qos: WriterQos,
    /// History budget and addressing.
    pub options: WriterOptions,
}

/// What a reader is made of.
#[derive(Clone)]
pub struct ReaderConfig {
    /// Name of its topic.
    pub topic_name: String,
    /// Name of the topic's type.
    pub type_name: String,
    /// Whether the type has a key.
    pub keyed: Keyed,
    /// What it requests.
    pub qos: ReaderQos,
    /// How it tells instances.
    pub keys: KeySource,
}

#[derive(Clone)]
pub(super) struct LocalReader {
    pub shared: Shared<Reader>,
    pub keys: KeySource,
}

/// A local writer and what its turn to send depends on.
#[derive(Clone)]
pub(super) struct LocalWriter {
    pub shared: Shared<Writer>,
    /// TRANSPORT_PRIORITY.
    pub priority: i32,
    pub latency_budget: Duration,
    /// Set for asynchronous writers.
    pub controller: Option<ControllerId>,
}

pub(super) struct Endpoints {
    builtin: BuiltinTopics,
    writers: BTreeMap<EntityId, LocalWriter>,
    readers: BTreeMap<EntityId, LocalReader>,
    /// Of the writers whose datagrams are marked.
    classes: BTreeMap<EntityId, TrafficClass>,
    next_key: u32,
}

impl LocalWriter {
    fn new(writer: Writer, qos: &WriterQos, controller: Option<ControllerId>) -> LocalWriter {
        LocalWriter {
            shared: Shared::new(writer),
            priority: qos.transport_priority,
            latency_budget: qos.timing.latency_budget,
            controller,
        }
    }
}

impl Endpoints {
    /// The built-in endpoints.
    pub(super) fn new(
        prefix: GuidPrefix,
        secret: Secret,
        services: &[BuiltinService],
        budget: &ReassemblyBudget,
        first_count: u32,
    ) -> Endpoints {
        let (mut writers, mut readers) = (BTreeMap::new(), BTreeMap::new());
        let builtin = BuiltinTopics::new(services);
        for topic in builtin.iter() {
            let (writer, reader) = (topic.writer, topic.reader);
            let half = HALVES.iter().position(|(challenger, _)| *challenger == writer);
            let first = half.map_or(SequenceNumber::FIRST, |half| secret.first_number(half));
            let (qos, options) = (topic.writer_qos(), WriterOptions { first, ..WriterOptions::default() });
            let mut state = Writer::new(Guid::new(prefix, writer), &qos, &options);
            state.begin_counts_at(first_count);
            writers.insert(writer, LocalWriter::new(state, &qos, None));
            // Its counts go on from those of the answers to strangers, which have 0.
            let state = Reader::new(Guid::new(prefix, reader), &topic.reader_qos(), reader.keyed(), budget.clone());
            let keys = topic.key_of().map_or(KeySource::Wire, KeySource::Function);
            readers.insert(reader, LocalReader { shared: Shared::new(state), keys });
        }
        Endpoints { builtin, writers, readers, classes: BTreeMap::new(), next_key: 1 }
    }

    /// The built-in topics, services among them.
    pub(super) fn builtin(&self) -> &BuiltinTopics {
        &self.builtin
    }

    pub(super) fn builtin_mut(&mut self) -> &mut BuiltinTopics {
        &mut self.builtin
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

    pub(super) fn local_writer(&self, entity: EntityId) -> Option<&LocalWriter> {
        self.writers.get(&entity)
    }

    pub(super) fn reader(&self, entity: EntityId) -> Option<&Shared<Reader>> {
        self.readers.get(&entity).map(|local| &local.shared)
    }

    pub(super) fn local_reader(&self, entity: EntityId) -> Option<&LocalReader> {
        self.readers.get(&entity)
    }

    /// What the datagrams of an endpoint are marked with.
    pub(super) fn traffic_class(&self, entity: EntityId) -> TrafficClass {
        self.classes.get(&entity).copied().unwrap_or_default()
    }

    pub(super) fn user_writers(&self) -> Vec<EntityId> {
        self.writers.keys().copied().filter(|entity| !entity.is_builtin()).collect()
    }

    pub(super) fn user_readers(&self) -> Vec<EntityId> {
        self.readers.keys().copied().filter(|entity| !entity.is_builtin()).collect()
    }

    fn next_key(&mut self) -> u32 {
        let key = self.next_key;
        self.next_key += 1;
        key
    }
}

impl Participant {
    /// Creates a writer and announces it.
    ///
    /// # Errors
    /// When a policy is inconsistent or not effective, or when there is no flow controller of the name that it gives.
    pub fn create_writer(&mut self, now: Instant, config: WriterConfig) -> Result<Shared<Writer>, QosError> {
        config.qos.check()?;
        let controller = self.controller_for(&config.qos)?;
        let entity = EntityId::user_writer(self.endpoints.next_key(), config.keyed);
        let guid = Guid::new(self.config.prefix, entity);
        let mut state = Writer::new(guid, &config.qos, &config.options);
        state.begin_counts_at(self.config.first_count);
        let local = LocalWriter::new(state, &config.qos, controller);
        let shared = local.shared.clone();
        self.endpoints.writers.insert(entity, local);
        self.schedule.set_priority(entity, config.qos.transport_priority);
        if let Some(controller) = controller.and_then(|id| self.flow_controllers.get_mut(id)) {
            controller.attach();
        }
        let class = TrafficClass::of(config.qos.transport_priority);
        if class != TrafficClass::DEFAULT {
            self.endpoints.classes.insert(entity, class);
        }
        let data = PublicationData::new(guid, &config.topic_name, &config.type_name, config.qos);
        let mut bytes = Vec::new();
        data.encode(&mut bytes);
        self.announce_endpoint(now, EntityId::PUBLICATIONS_WRITER, ChangeKind::Write, guid, bytes);
        self.database.publications.insert(data);
        shared.lock().set_neighbourhood(self.neighbours.current());
        self.match_local_writer(now, entity);
        self.match_publication(now, guid);
        Ok(shared)
    }

    /// Creates a reader and announces it.
    ///
    /// # Errors
    /// When a policy is inconsistent or not effective.
    pub fn create_reader(&mut self, now: Instant, config: ReaderConfig) -> Result<Shared<Reader>, QosError> {
        config.qos.check()?;
        let entity = EntityId::user_reader(self.endpoints.next_key(), config.keyed);
        let guid = Guid::new(self.config.prefix, entity);
        let mut state = Reader::new(guid, &config.qos, config.keyed, self.budget.clone());
        state.begin_counts_at(self.config.first_count);
        let shared = Shared::new(state);
        self.endpoints.readers.insert(entity, LocalReader { shared: shared.clone(), keys: config.keys });
        let data = SubscriptionData::new(guid, &config.topic_name, &config.type_name, config.qos);
        let mut bytes = Vec::new();
        data.encode(&mut bytes);
        self.announce_endpoint(now, EntityId::SUBSCRIPTIONS_WRITER, ChangeKind::Write, guid, bytes);
        self.database.subscriptions.insert(data);
        self.match_local_reader(now, entity);
        self.match_subscription(now, guid);
        Ok(shared)
    }

    /// Deletes a writer and tells peers. Samples that were not acknowledged yet are gone with it.
    pub fn delete_writer(&mut self, now: Instant, entity: EntityId) {
        if entity.is_builtin() {
            return;
        }
        let Some(local) = self.endpoints.writers.remove(&entity) else { return };
        self.leave_controller(now, entity, local.controller);
        let guid = Guid::new(self.config.prefix, entity);
        self.endpoints.classes.remove(&entity);
        self.unmatch_local_writer(entity);
        self.remove_publication(now, guid);
        self.schedule.forget(entity);
        let mut key = Vec::new();
        PublicationData::encode_key(guid, &mut key);
        self.announce_endpoint(now, EntityId::PUBLICATIONS_WRITER, ChangeKind::DisposeUnregister, guid, key);
    }

    /// Deletes a reader and tells peers.
    pub fn delete_reader(&mut self, now: Instant, entity: EntityId) {
        if entity.is_builtin() || self.endpoints.readers.remove(&entity).is_none() {
            return;
        }
        let guid = Guid::new(self.config.prefix, entity);
        self.unmatch_local_reader(entity);
        self.remove_subscription(guid);
        self.schedule.forget(entity);
        let mut key = Vec::new();
        SubscriptionData::encode_key(guid, &mut key);
        self.announce_endpoint(now, EntityId::SUBSCRIPTIONS_WRITER, ChangeKind::DisposeUnregister, guid, key);
    }

    fn announce_endpoint(&mut self, now: Instant, via: EntityId, kind: ChangeKind, guid: Guid, bytes: Vec<u8>) {
        self.tell_housemates(guid.entity, (kind == ChangeKind::Write).then_some(bytes.as_slice()));
        self.write_builtin(now, via, kind, KeyHash(guid.to_bytes()), bytes);
    }

    /// Appends an event unless the newest one says the same.
    pub(super) fn push_event(&mut self, event: Event) {
        if self.events.back() != Some(&event) {
            self.events.push_back(event);
        }
    }
}
