//! The shared parts of the application's handles, found by entity id for the delivery of events.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thalweg_rtps::types::{EntityId, Guid};

use super::topic_ledger::TopicLedger;
use crate::figures::TopicFigures;
use crate::publication::WriterCell;
use crate::subscription::ReaderCell;
use crate::topic::TopicDescription;
use crate::{Error, ErrorKind};

/// The local endpoints that the application has handles of.
#[derive(Default)]
pub(crate) struct EndpointTable {
    writers: Mutex<BTreeMap<EntityId, Arc<WriterCell>>>,
    readers: Mutex<BTreeMap<EntityId, Arc<ReaderCell>>>,
    topics: Mutex<TopicUses>,
    /// Locked before an endpoint, never while one is locked.
    ledger: Mutex<TopicLedger>,
}

impl EndpointTable {
    pub(crate) fn insert_writer(&self, cell: Arc<WriterCell>) {
        self.ledger().open(&cell.topic().name);
        self.topics().add(cell.guid(), cell.topic());
        self.writers.lock().unwrap_or_else(PoisonError::into_inner).insert(cell.guid().entity, cell);
    }

    pub(crate) fn insert_reader(&self, cell: Arc<ReaderCell>) {
        self.ledger().open(&cell.topic().name);
        self.topics().add(cell.guid(), cell.topic());
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).insert(cell.guid().entity, cell);
    }

    pub(crate) fn remove(&self, entity: EntityId) {
        let (writer, reader) = self.take_out(entity);
        let mut topics = self.topics();
        writer.iter().for_each(|cell| topics.remove(cell.guid(), cell.topic()));
        reader.iter().for_each(|cell| topics.remove(cell.guid(), cell.topic()));
    }

    /// Removes an endpoint and books what it did, in one step for those who read accounts.
    fn take_out(&self, entity: EntityId) -> (Option<Arc<WriterCell>>, Option<Arc<ReaderCell>>) {
        let mut ledger = self.ledger();
        let writer = self.writers.lock().unwrap_or_else(PoisonError::into_inner).remove(&entity);
        let reader = self.readers.lock().unwrap_or_else(PoisonError::into_inner).remove(&entity);
        writer.iter().for_each(|cell| ledger.close_writer(&cell.end_figures()));
        reader.iter().for_each(|cell| ledger.close_reader(&cell.end_figures()));
        (writer, reader)
    }

    /// The endpoints of this moment, and what those did that were removed before.
    pub(crate) fn account(&self) -> (Vec<Arc<WriterCell>>, Vec<Arc<ReaderCell>>, Vec<TopicFigures>) {
        let ledger = self.ledger();
        (self.writers(), self.readers(), ledger.topics())
    }

    fn ledger(&self) -> MutexGuard<'_, TopicLedger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses a topic whose name endpoints of this participant use with another type (DDS 1.4 §2.2.2.2.1.5). The caller holds the
    /// participant's lock until it has filed its endpoint.
    pub(crate) fn check_type(&self, operation: &'static str, topic: &TopicDescription) -> Result<(), Error> {
        let Some((guid, used)) = self.topics().disagreement(topic) else { return Ok(()) };
        let kind = if guid.entity.is_writer() { "writer" } else { "reader" };
        let cause =
            format!("failed: its type is {topic}, and {kind} {guid} of this participant uses the name with {used}");
        let error = Error::new(ErrorKind::PreconditionNotMet, operation, cause).on_topic(&topic.name);
        Err(error.advise("give the topics different names, or use one type, or two participants"))
    }

    /// Whether an endpoint of this topic name has a description of its type. The caller holds the participant's lock.
    pub(super) fn is_described(&self, topic_name: &str) -> bool {
        self.topics().is_described(topic_name)
    }

    fn topics(&self) -> MutexGuard<'_, TopicUses> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writers, so that each can be locked by itself.
    pub(crate) fn writers(&self) -> Vec<Arc<WriterCell>> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The readers.
    pub(crate) fn readers(&self) -> Vec<Arc<ReaderCell>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    pub(super) fn writer(&self, entity: EntityId) -> Option<Arc<WriterCell>> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner).get(&entity).cloned()
    }

    pub(super) fn reader(&self, entity: EntityId) -> Option<Arc<ReaderCell>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).get(&entity).cloned()
    }
}

/// The endpoints of each topic name, which all have one type, with what each knows of it.
#[derive(Default)]
struct TopicUses(HashMap<String, BTreeMap<Guid, Arc<TopicDescription>>>);

impl TopicUses {
    fn add(&mut self, guid: Guid, topic: &Arc<TopicDescription>) {
        self.0.entry(topic.name.clone()).or_default().insert(guid, Arc::clone(topic));
    }

    fn remove(&mut self, guid: Guid, topic: &TopicDescription) {
        let Some(endpoints) = self.0.get_mut(&topic.name) else { return };
        endpoints.remove(&guid);
        if endpoints.is_empty() {
            self.0.remove(&topic.name);
        }
    }

    /// Whether an endpoint has a description of the type that it uses the name with.
    fn is_described(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|endpoints| endpoints.values().any(|topic| topic.described.is_some()))
    }

    /// An endpoint that uses the topic's name with another type, and that type.
    fn disagreement(&self, topic: &TopicDescription) -> Option<(Guid, Arc<TopicDescription>)> {
        let mut endpoints = self.0.get(&topic.name)?.iter();
        let (guid, used) = endpoints.find(|(_, used)| !used.has_type_of(topic))?;
        Some((*guid, Arc::clone(used)))
    }
}
