//! Which endpoints have output, and which have a deadline when.

use std::collections::{BTreeMap, BTreeSet};

use crate::time::Instant;
use crate::types::EntityId;

/// Deadlines and pending output of the endpoints, each endpoint at most once.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    deadlines: BTreeSet<(Instant, EntityId)>,
    deadline_of: BTreeMap<EntityId, Instant>,
    ready: BTreeSet<EntityId>,
    lease_check: Option<Instant>,
}

impl Schedule {
    /// Notes a deadline; a later one than is noted already changes nothing.
    pub(super) fn arm(&mut self, entity: EntityId, at: Instant) {
        match self.deadline_of.get_mut(&entity) {
            Some(noted) if *noted <= at => return,
            Some(noted) => {
                self.deadlines.remove(&(*noted, entity));
                *noted = at;
            }
            None => {
                self.deadline_of.insert(entity, at);
            }
        }
        self.deadlines.insert((at, entity));
    }

    /// Removes an endpoint whose deadline has come.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<EntityId> {
        let (at, entity) = *self.deadlines.first()?;
        if at > now {
            return None;
        }
        self.deadlines.pop_first();
        self.deadline_of.remove(&entity);
        Some(entity)
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    pub(super) fn make_ready(&mut self, entity: EntityId) {
        self.ready.insert(entity);
    }

    pub(super) fn pop_ready(&mut self) -> Option<EntityId> {
        self.ready.pop_first()
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(super) fn forget(&mut self, entity: EntityId) {
        self.ready.remove(&entity);
        if let Some(at) = self.deadline_of.remove(&entity) {
            self.deadlines.remove(&(at, entity));
        }
    }

    /// When leases are to be looked at.
    pub(super) fn lease_check(&self) -> Option<Instant> {
        self.lease_check
    }

    pub(super) fn set_lease_check(&mut self, at: Option<Instant>) {
        self.lease_check = at.filter(|at| *at != Instant::NEVER);
    }
}
