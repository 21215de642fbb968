//! Order of pending output, and deadlines of endpoints.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use crate::flow_control::ControllerId;
use crate::time::Instant;
use crate::types::EntityId;

/// Deadlines and pending output, each endpoint at most once.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    deadlines: BTreeSet<(Instant, EntityId)>,
    deadline_of: BTreeMap<EntityId, Instant>,
    /// In the order of sending: lowest rank first, and within a rank the source that has waited longest.
    ready: BTreeSet<(Rank, u64, Source)>,
    place_of: BTreeMap<Source, (Rank, u64)>,
    next_place: u64,
    /// TRANSPORT_PRIORITY of user-defined writers; all output of other endpoints is control.
    priorities: BTreeMap<EntityId, i32>,
    lease_check: Option<Instant>,
}

/// A source of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    Endpoint(EntityId),
    /// The asynchronous writers that wait for tokens of this flow controller.
    Controller(ControllerId),
}

/// Order in which output leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Acknowledgements, heartbeats that are due, discovery.
    Control,
    /// Samples, by TRANSPORT_PRIORITY.
    Samples(Reverse<i32>),
}

impl Schedule {
    /// Sets the deadline of an endpoint, unless it has an earlier one.
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

    /// Takes the endpoint with the earliest deadline, if that has come.
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

    /// TRANSPORT_PRIORITY of a user-defined writer.
    pub(super) fn set_priority(&mut self, writer: EntityId, priority: i32) {
        self.priorities.insert(writer, priority);
    }

    /// Files an endpoint that has output.
    pub(super) fn make_ready(&mut self, entity: EntityId) {
        let priority = self.priorities.get(&entity);
        let rank = priority.map_or(Rank::Control, |priority| Rank::Samples(Reverse(*priority)));
        self.place(Source::Endpoint(entity), rank);
    }

    /// Files an endpoint that has control messages to send, ahead of all samples.
    pub(super) fn make_control_ready(&mut self, entity: EntityId) {
        self.place(Source::Endpoint(entity), Rank::Control);
    }

    /// Files a controller that may have tokens for a writer of this priority; `None` removes it, since no writer waits for any.
    pub(super) fn make_controller_ready(&mut self, id: ControllerId, priority: Option<i32>) {
        let source = Source::Controller(id);
        let rank = priority.map(|priority| Rank::Samples(Reverse(priority)));
        if self.place_of.get(&source).map(|(placed, _)| *placed) != rank {
            self.remove(source);
        }
        if let Some(rank) = rank {
            self.place(source, rank);
        }
    }

    /// Files a source behind all others of its rank; one that is filed with this rank or a lower one stays where it is.
    fn place(&mut self, source: Source, rank: Rank) {
        match self.place_of.get(&source) {
            Some((placed, _)) if *placed <= rank => return,
            Some(_) => self.remove(source),
            None => {}
        }
        self.next_place += 1;
        self.place_of.insert(source, (rank, self.next_place));
        self.ready.insert((rank, self.next_place, source));
    }

    fn remove(&mut self, source: Source) {
        if let Some((rank, place)) = self.place_of.remove(&source) {
            self.ready.remove(&(rank, place, source));
        }
    }

    pub(super) fn pop_ready(&mut self) -> Option<(Rank, Source)> {
        let (rank, _, source) = self.ready.pop_first()?;
        self.place_of.remove(&source);
        Some((rank, source))
    }

    /// Files a popped source again, ahead of all others.
    pub(super) fn put_back(&mut self, rank: Rank, source: Source) {
        if let Entry::Vacant(place) = self.place_of.entry(source) {
            place.insert((rank, 0));
            self.ready.insert((rank, 0, source));
        }
    }

    /// Whether a source is filed.
    pub(super) fn is_ready(&self, source: Source) -> bool {
        self.place_of.contains_key(&source)
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(super) fn forget(&mut self, entity: EntityId) {
        self.remove(Source::Endpoint(entity));
        self.priorities.remove(&entity);
        if let Some(at) = self.deadline_of.remove(&entity) {
            self.deadlines.remove(&(at, entity));
        }
    }

    /// When leases are to be checked next.
    pub(super) fn lease_check(&self) -> Option<Instant> {
        self.lease_check
    }

    pub(super) fn set_lease_check(&mut self, at: Option<Instant>) {
        self.lease_check = at.filter(|at| *at != Instant::NEVER);
    }
}
