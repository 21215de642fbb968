//! The listeners on each link and group, for the writers' choice between unicast and multicast; gathered anew some time after
//! changes.

use std::sync::Arc;
use std::time::Duration;

use crate::discovery::{Database, neighbourhood};
use crate::time::Instant;
use crate::writer::{Link, Neighbourhood};

/// Time without changes before the neighbourhood is gathered anew: participants that start together are counted together. Only
/// costs depend on it.
const QUIET: Duration = Duration::from_millis(300);
/// Longest time from the first change until then.
const SETTLING_MAX: Duration = Duration::from_secs(2);

/// The neighbourhood gathered last, and the time to gather it again.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    current: Arc<Neighbourhood>,
    /// Time of the first change that is not taken into account yet; `due` is the time to do so.
    changed: Option<Instant>,
    due: Option<Instant>,
}

impl Neighbours {
    pub(super) fn current(&self) -> Arc<Neighbourhood> {
        Arc::clone(&self.current)
    }

    /// Notes that a participant came, went or moved, or that a reader was matched.
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
