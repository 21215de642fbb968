//! Who listens where, for the writers' choice between unicast and multicast; gathered anew at leisure.

use std::sync::Arc;
use std::time::Duration;

use super::Participant;
use crate::discovery::neighbourhood;
use crate::time::Instant;
use crate::writer::Neighbourhood;

/// How long after a change the neighbourhood is gathered anew. Participants that start together are counted together, and
/// nothing but a cost depends on it.
const SETTLING: Duration = Duration::from_millis(200);

/// What was gathered last, and when to do it again.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    current: Arc<Neighbourhood>,
    due: Option<Instant>,
}

impl Neighbours {
    pub(super) fn current(&self) -> Arc<Neighbourhood> {
        Arc::clone(&self.current)
    }

    /// A participant came, went or moved.
    pub(super) fn note_change(&mut self, now: Instant) {
        self.due.get_or_insert(now + SETTLING);
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn are_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }
}

impl Participant {
    /// Gathers the neighbourhood anew and hands it to the writers if it is another one.
    pub(super) fn look_around(&mut self) {
        self.neighbours.due = None;
        let gathered = neighbourhood(&self.config.addresses.links, &self.database);
        if gathered == *self.neighbours.current {
            return;
        }
        self.neighbours.current = Arc::new(gathered);
        for writer in self.endpoints.user_writers() {
            if let Some(shared) = self.endpoints.writer(writer) {
                shared.lock().set_neighbourhood(self.neighbours.current());
            }
        }
    }
}
