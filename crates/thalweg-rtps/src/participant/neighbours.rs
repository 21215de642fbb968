//! Who listens where, for the writers' choice between unicast and multicast; gathered anew at leisure.

use std::sync::Arc;
use std::time::Duration;

use crate::discovery::{Database, neighbourhood};
use crate::time::Instant;
use crate::writer::{Link, Neighbourhood};

/// How long nothing must have changed before the neighbourhood is gathered anew: participants that start together are counted
/// together, and nothing but a cost depends on it.
const QUIET: Duration = Duration::from_millis(300);
/// How long it waits for that at most.
const SETTLING_MAX: Duration = Duration::from_secs(2);

/// What was gathered last, and when to do it again.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    current: Arc<Neighbourhood>,
    /// The first change that is not taken into account yet, and when it will be.
    changed: Option<Instant>,
    due: Option<Instant>,
}

impl Neighbours {
    pub(super) fn current(&self) -> Arc<Neighbourhood> {
        Arc::clone(&self.current)
    }

    /// A participant came, went or moved, or a reader was matched.
    pub(super) fn note_change(&mut self, now: Instant) {
        let first = *self.changed.get_or_insert(now);
        self.due = Some((now + QUIET).min(first + SETTLING_MAX));
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn are_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }
    /// Gathers the neighbourhood anew.
    pub(super) fn gather(&mut self, links: &[Link], database: &Database) {
        (self.changed, self.due) = (None, None);
        let gathered = neighbourhood(links, database);
        if gathered != *self.current {
            self.current = Arc::new(gathered);
        }
    }
}
