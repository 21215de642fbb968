//! Writers whose history outlives them: TRANSIENT while the participant lives, PERSISTENT in a store of its driver (DDS 1.4
//! §2.2.3.4).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Event, Participant, WriterConfig};
use crate::discovery::endpoint_data::PublicationData;
use crate::history::StoredChange;
use crate::qos::{Durability, PolicyId, QosError, QosErrorKind, TrafficClass, WriterOwnership, WriterQos};
use crate::shared::Shared;
use crate::time::Instant;
use crate::types::{EntityId, Guid, HistoryIdentity, Keyed, SequenceNumber};
use crate::writer::{Writer, WriterOptions};

/// Most writers of a participant whose histories outlive them, retained ones included. Chosen by Thalweg: a program that invents names
/// for its histories meets an error and not the end of its memory.
pub const LASTING_WRITERS_MAX: usize = 1_024;

/// Longest [`WriterOptions::history_name`], in bytes.
pub const HISTORY_NAME_MAX_BYTES: usize = 256;

/// What a store holds of a PERSISTENT writer's history.
#[derive(Clone, Debug)]
pub struct StoredHistory {
    /// The name that the store gave it.
    pub identity: HistoryIdentity,
    /// The changes, in the order of their numbers.
    pub changes: Vec<StoredChange>,
    /// No greater number was used; zero for a new history.
    pub last: SequenceNumber,
    /// Numbers up to this one are set aside for the writer: whatever happens, the store will not give them out again.
    pub reserved: SequenceNumber,
}

/// A history that outlives its writers, as its participant keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptHistory {
    /// The GUID that it is announced under, whoever writes it.
    pub writer: Guid,
    /// Name of the topic.
    pub topic_name: String,
    /// Name of the type.
    pub type_name: String,
    /// The partitions of its writers.
    pub partition: Vec<String>,
    /// [`WriterOptions::history_name`].
    pub name: String,
    /// [`Durability::Transient`], or [`Durability::Persistent`] for one in the store.
    pub durability: Durability,
    /// Samples, and changes of instances, that it holds.
    pub samples: usize,
    /// The application has a writer of it.
    pub is_in_use: bool,
}

/// Why a history is not deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryRefusal {
    /// The participant keeps no history under this GUID.
    Unknown,
    /// The application has a writer of it.
    InUse {
        /// Its topic.
        topic_name: String,
    },
}

/// What makes two writers go on with one history. The kind is part of it: a TRANSIENT history is in no store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct HistoryKey {
    topic_name: String,
    type_name: String,
    is_keyed: bool,
    is_persistent: bool,
    partition: BTreeSet<String>,
    name: String,
}

impl HistoryKey {
    fn of(config: &WriterConfig) -> HistoryKey {
        HistoryKey {
            topic_name: config.topic_name.clone(),
            type_name: config.type_name.clone(),
            is_keyed: config.keyed == Keyed::Yes,
            is_persistent: config.qos.durability == Durability::Persistent,
            partition: HistoryKey::partition_of(&config.qos),
            name: config.options.history_name.clone(),
        }
    }

    fn partition_of(qos: &WriterQos) -> BTreeSet<String> {
        qos.partition.iter().cloned().collect()
    }
}

/// The writers of a participant whose histories outlive them.
#[derive(Debug, Default)]
pub(super) struct LastingWriters {
    by_history: BTreeMap<HistoryKey, EntityId>,
    entities: BTreeSet<EntityId>,
    /// Those that no application has any more.
    retained: BTreeSet<EntityId>,
}

impl LastingWriters {
    /// The application has deleted a writer. False for one that does not outlive that.
    pub(super) fn retain(&mut self, entity: EntityId) -> bool {
        self.entities.contains(&entity) && {
            self.retained.insert(entity);
            true
        }
    }

    fn forget(&mut self, entity: EntityId) {
        self.by_history.retain(|_, kept| *kept != entity);
        self.entities.remove(&entity);
        self.retained.remove(&entity);
    }

    /// The key of a writer's history once the writer has these policies, if it becomes another one.
    fn changed_key(&self, entity: EntityId, qos: &WriterQos) -> Option<HistoryKey> {
        let (key, _) = self.by_history.iter().find(|(_, kept)| **kept == entity)?;
        let partition = HistoryKey::partition_of(qos);
        (partition != key.partition).then(|| HistoryKey { partition, ..key.clone() })
    }

    /// Refuses partitions in which the participant keeps another history of the same names.
    pub(super) fn check_change(&self, entity: EntityId, qos: &WriterQos) -> Result<(), QosError> {
        let is_taken = self.changed_key(entity, qos).is_some_and(|key| self.by_history.contains_key(&key));
        if !is_taken {
            return Ok(());
        }
        let (kind, policy) = (QosErrorKind::Inconsistent, PolicyId::PARTITION);
        let reason = "this participant keeps another history of this topic and name there; create the writer in these \
                      partitions to go on with it, or delete it";
        Err(QosError { kind, policy, value: format!("{:?}", qos.partition), reason })
    }

    /// The policies of a writer have changed as [`LastingWriters::check_change`] allows: its history is found by them from now on.
    pub(super) fn note_change(&mut self, entity: EntityId, qos: &WriterQos) {
        if let Some(key) = self.changed_key(entity, qos) {
            self.by_history.retain(|_, kept| *kept != entity);
            self.by_history.insert(key, entity);
        }
    }

    fn refusal(&self, key: &HistoryKey, qos: &WriterQos) -> Option<QosError> {
        let refuse = |reason| {
            let value = format!("{} with history name {:?}", qos.durability, key.name);
            Some(QosError { kind: QosErrorKind::Inconsistent, policy: PolicyId::DURABILITY, value, reason })
        };
        if key.name.len() > HISTORY_NAME_MAX_BYTES {
            return refuse("a history name has at most 256 bytes");
        }
        match self.by_history.get(key) {
            Some(entity) if self.retained.contains(entity) => None,
            Some(_) => refuse(
                "another writer of this participant keeps this history; give one of them another WriterOptions::history_name",
            ),
            None if self.entities.len() >= LASTING_WRITERS_MAX => refuse(
                "this participant keeps 1024 such histories already; go on with one of them, or use another participant",
            ),
            None => None,
        }
    }
}

impl Participant {
    /// Creates a writer whose history outlives it, or takes over a retained one with the same topic, type, partitions, name and
    /// durability: under the same GUID, with its samples, and its numbers go on. `stored` is what the driver's store holds of a
    /// PERSISTENT one; without changes for a history that is new, or that this participant has already.
    ///
    /// # Errors
    /// As [`Participant::create_writer`]; also when another writer has this history, when there are [`LASTING_WRITERS_MAX`] of them, when
    /// a policy would have to change that cannot, and for a PERSISTENT one without store.
    pub fn create_lasting_writer(
        &mut self,
        now: Instant,
        config: WriterConfig,
        stored: Option<StoredHistory>,
    ) -> Result<Shared<Writer>, QosError> {
        config.qos.check()?;
        if config.qos.durability == Durability::Persistent && stored.is_none() {
            let (kind, policy) = (QosErrorKind::Unsupported, PolicyId::DURABILITY);
            let reason = "the participant has no store; name a file with DomainParticipantBuilder::store or the key \
                          participant.store, or use TRANSIENT";
            return Err(QosError { kind, policy, value: config.qos.durability.to_string(), reason });
        }
        let key = HistoryKey::of(&config);
        if let Some(refusal) = self.lasting.refusal(&key, &config.qos) {
            return Err(refusal);
        }
        if let Some(entity) = self.lasting.by_history.get(&key).copied() {
            return self.take_over(now, entity, config);
        }
        let shared = self.add_writer(now, config, None, stored)?;
        let entity = shared.lock().guid().entity;
        self.lasting.entities.insert(entity);
        self.lasting.by_history.insert(key, entity);
        Ok(shared)
    }

    /// Brings back a PERSISTENT writer that no application has yet: it serves readers at once.
    ///
    /// # Errors
    /// As [`Participant::create_lasting_writer`].
    pub fn restore_writer(
        &mut self,
        now: Instant,
        config: WriterConfig,
        stored: StoredHistory,
    ) -> Result<Shared<Writer>, QosError> {
        let shared = self.create_lasting_writer(now, config, Some(stored))?;
        let entity = shared.lock().guid().entity;
        self.lasting.retained.insert(entity);
        self.give_up_ownership(now, entity);
        Ok(shared)
    }

    /// A writer that no application has owns nothing (DDS 1.4 §2.2.3.9.2): it is announced as weaker than any other. The strength of its
    /// policies counts again with the announcement of the next one.
    pub(super) fn give_up_ownership(&mut self, now: Instant, entity: EntityId) {
        let ownership = WriterOwnership::Exclusive { strength: i32::MIN };
        let is_exclusive = |qos: &WriterQos| qos.ownership.kind() == ownership.kind();
        if self.endpoints.local_writer(entity).is_some_and(|local| is_exclusive(&local.qos)) {
            self.renew_publication(now, entity, |data| {
                let qos = WriterQos { ownership, ..WriterQos::clone(&data.qos) };
                PublicationData { qos: qos.into(), ..data }
            });
        }
    }

    /// The histories that outlive their writers, those without writer included.
    pub fn histories(&self) -> Vec<KeptHistory> {
        self.lasting.by_history.iter().filter_map(|(key, entity)| self.kept_history(key, *entity)).collect()
    }

    fn kept_history(&self, key: &HistoryKey, entity: EntityId) -> Option<KeptHistory> {
        Some(KeptHistory {
            writer: Guid::new(self.config.prefix, entity),
            topic_name: key.topic_name.clone(),
            type_name: key.type_name.clone(),
            partition: key.partition.iter().cloned().collect(),
            name: key.name.clone(),
            durability: if key.is_persistent { Durability::Persistent } else { Durability::Transient },
            samples: self.endpoints.writer(entity)?.lock().held(),
            is_in_use: !self.lasting.retained.contains(&entity),
        })
    }

    /// The history that is announced under `guid`, which no writer uses.
    ///
    /// # Errors
    /// [`HistoryRefusal`].
    pub fn unused_history(&self, guid: Guid) -> Result<KeptHistory, HistoryRefusal> {
        let of_it = |(_, entity): &(&HistoryKey, &EntityId)| Guid::new(self.config.prefix, **entity) == guid;
        let found = self.lasting.by_history.iter().find(of_it);
        match found.and_then(|(key, entity)| self.kept_history(key, *entity)) {
            None => Err(HistoryRefusal::Unknown),
            Some(history) if history.is_in_use => Err(HistoryRefusal::InUse { topic_name: history.topic_name }),
            Some(history) => Ok(history),
        }
    }

    /// Deletes the history that is announced under `guid`, with the retained writer, and returns what it was. The driver has removed a
    /// PERSISTENT one from its store.
    ///
    /// # Errors
    /// As [`Participant::unused_history`].
    pub fn delete_history(&mut self, now: Instant, guid: Guid) -> Result<KeptHistory, HistoryRefusal> {
        let history = self.unused_history(guid)?;
        self.lasting.forget(guid.entity);
        self.remove_writer(now, guid.entity);
        Ok(history)
    }

    /// A new writer goes on where a retained one stopped.
    fn take_over(&mut self, now: Instant, entity: EntityId, config: WriterConfig) -> Result<Shared<Writer>, QosError> {
        let qos = config.qos;
        let controller = self.order.controller_for(&qos)?;
        let Some(local) = self.endpoints.writer_mut(entity) else {
            unreachable!("a lasting writer is never removed alone")
        };
        // By what way samples travel is no promise to anybody.
        let before = WriterQos { transmission: qos.transmission.clone(), ..WriterQos::clone(&local.qos) };
        before.check_change(&qos)?;
        let (shared, former) = (local.shared.clone(), std::mem::replace(&mut local.controller, controller));
        local.qos = Arc::clone(&qos);
        self.lasting.retained.remove(&entity);
        self.order.detach(now, entity, former);
        self.order.attach(entity, &qos, controller);
        self.endpoints.set_traffic_class(entity, TrafficClass::of(qos.transport_priority));
        let before: BTreeSet<Guid> = shared.lock().matched_readers().collect();
        self.renew_writer(now, &shared, &qos, &config.options);
        let information = self.type_information(&config.topic_name, &config.type_name);
        self.renew_publication(now, entity, |data| {
            let data = PublicationData { qos, ..data };
            if information.is_some() { data.with_type_information(information) } else { data }
        });
        // Readers that match only now were told with the announcement.
        let (armed, stayed) = {
            let mut writer = shared.lock();
            let stayed: Vec<Guid> = writer.matched_readers().filter(|reader| before.contains(reader)).collect();
            (writer.newly_armed(), stayed)
        };
        for reader in stayed {
            self.reports.tell(Event::PublicationMatched { writer: entity, reader });
        }
        if let Some(at) = armed {
            self.order.schedule.arm(entity, at);
        }
        Ok(shared)
    }

    fn renew_writer(&self, now: Instant, shared: &Shared<Writer>, qos: &Arc<WriterQos>, options: &WriterOptions) {
        let mut writer = shared.lock();
        writer.succeed(now, Arc::clone(qos), options);
        writer.begin_promises(now, self.liveliness.own_assertion());
        writer.set_neighbourhood(self.neighbours.current());
    }
}
