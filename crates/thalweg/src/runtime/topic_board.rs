//! The statuses of topics.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use thalweg_rtps::status::Status;
use thalweg_rtps::types::Guid;

use crate::status::InconsistentTopic;

/// INCONSISTENT_TOPIC of the topics that endpoints of this participant use or used, by name: the application bounds their number.
#[derive(Default)]
pub(crate) struct TopicBoard {
    topics: Mutex<BTreeMap<String, Status<InconsistentTopic>>>,
}

impl TopicBoard {
    fn topics(&self) -> MutexGuard<'_, BTreeMap<String, Status<InconsistentTopic>>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An endpoint of another participant uses a topic with another type. Returns the news for a listener, if there `is_told` one.
    pub(super) fn note(&self, topic: &str, remote: Guid, why: String, is_told: bool) -> Option<InconsistentTopic> {
        let mut topics = self.topics();
        let status = topics.entry(topic.to_owned()).or_default();
        status.change(|status| status.add(remote, why));
        if is_told { status.tell_changed() } else { None }
    }

    /// The status of a topic, which counts as told.
    pub(crate) fn tell(&self, topic: &str) -> InconsistentTopic {
        self.topics().get_mut(topic).map(Status::tell).unwrap_or_default()
    }
}
