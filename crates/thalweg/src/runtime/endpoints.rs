//! The shared parts of the application's handles, found by entity id for the delivery of events.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_rtps::types::EntityId;

use crate::publication::WriterCell;
use crate::subscription::ReaderCell;
use crate::topic::TopicDescription;
use crate::{Error, ErrorKind};

/// The local endpoints that the application has handles of.
#[derive(Default)]
pub(crate) struct EndpointTable {
    writers: Mutex<BTreeMap<EntityId, Arc<WriterCell>>>,
    readers: Mutex<BTreeMap<EntityId, Arc<ReaderCell>>>,
}

impl EndpointTable {
    pub(crate) fn insert_writer(&self, cell: Arc<WriterCell>) {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner).insert(cell.guid().entity, cell);
    }

    pub(crate) fn insert_reader(&self, cell: Arc<ReaderCell>) {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).insert(cell.guid().entity, cell);
    }

    pub(crate) fn remove(&self, entity: EntityId) {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner).remove(&entity);
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).remove(&entity);
    }

    /// Refuses a topic whose name endpoints of this participant use with another type (DDS 1.4 §2.2.2.2.1.5). The caller holds the
    /// participant's lock until it has filed its endpoint.
    pub(crate) fn check_type(&self, operation: &'static str, topic: &TopicDescription) -> Result<(), Error> {
        let writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        let writer = writers.values().find(|cell| !cell.topic().agrees_with(topic));
        let used = writer.map(|cell| ("writer", cell.guid(), Arc::clone(cell.topic())));
        drop(writers);
        let used = used.or_else(|| {
            let readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
            let reader = readers.values().find(|cell| !cell.topic().agrees_with(topic));
            reader.map(|cell| ("reader", cell.guid(), Arc::clone(cell.topic())))
        });
        let Some((kind, guid, used)) = used else { return Ok(()) };
        let cause =
            format!("failed: its type is {topic}, and {kind} {guid} of this participant uses the name with {used}");
        let error = Error::new(ErrorKind::PreconditionNotMet, operation, cause).on_topic(&topic.name);
        Err(error.advise("give the topics different names, or use one type, or two participants"))
    }

    pub(super) fn writer(&self, entity: EntityId) -> Option<Arc<WriterCell>> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner).get(&entity).cloned()
    }

    pub(super) fn reader(&self, entity: EntityId) -> Option<Arc<ReaderCell>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).get(&entity).cloned()
    }
}
