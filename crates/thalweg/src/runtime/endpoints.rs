//! Finds the handles' shared parts by entity, for events.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_rtps::types::EntityId;

use crate::publication::WriterCell;
use crate::subscription::ReaderCell;

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

    pub(super) fn writer(&self, entity: EntityId) -> Option<Arc<WriterCell>> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner).get(&entity).cloned()
    }

    pub(super) fn reader(&self, entity: EntityId) -> Option<Arc<ReaderCell>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).get(&entity).cloned()
    }
}
