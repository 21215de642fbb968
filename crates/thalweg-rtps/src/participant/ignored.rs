//! What the application ignores besides participants: topics, and endpoints one by one (DDS 1.4 §2.2.2.2.1.15 to 17).

use std::collections::BTreeSet;

use super::Participant;
use super::graph::Ending;
use crate::time::Instant;
use crate::types::{EntityId, Guid};

/// Named by the application, so that it bounds their number; kept until the participant ends.
#[derive(Debug, Default)]
pub(super) struct Ignored {
    topics: BTreeSet<String>,
    endpoints: BTreeSet<Guid>,
}

impl Ignored {
    /// Whether an endpoint on a topic is ignored.
    pub(super) fn has(&self, endpoint: Guid, topic: &str) -> bool {
        self.endpoints.contains(&endpoint) || self.topics.contains(topic)
    }
}

impl Participant {
    /// Takes no notice of writers and readers on a topic any more, whoever has them; this participant's own are matched with none
    /// there.
    pub fn ignore_topic(&mut self, now: Instant, topic: &str) {
        if !self.ignored.topics.insert(topic.to_owned()) {
            return;
        }
        for writer in self.database.publications.of_topic(topic).to_vec() {
            self.drop_publication(now, writer);
        }
        for reader in self.database.subscriptions.of_topic(topic).to_vec() {
            self.drop_subscription(now, reader);
        }
    }

    /// Takes no notice of a writer any more: no reader of this participant is matched with it.
    pub fn ignore_publication(&mut self, now: Instant, writer: Guid) {
        if self.ignored.endpoints.insert(writer) {
            self.drop_publication(now, writer);
        }
    }

    /// Takes no notice of a reader any more: no writer of this participant is matched with it.
    pub fn ignore_subscription(&mut self, now: Instant, reader: Guid) {
        if self.ignored.endpoints.insert(reader) {
            self.drop_subscription(now, reader);
        }
    }

    /// Whether one of two own endpoints is ignored, or their topic.
    pub(super) fn is_pair_ignored(&self, writer: Guid, reader: Guid, topic: &str) -> bool {
        self.ignored.has(writer, topic) || self.ignored.has(reader, topic)
    }

    fn drop_publication(&mut self, now: Instant, writer: Guid) {
        if writer.prefix != self.config.prefix {
            return self.remove_publication(now, writer, Ending::Deleted);
        }
        let known = self.database.publications.get(writer);
        for reader in known.map_or_else(Vec::new, |known| known.matched.clone()) {
            self.part_own(now, writer.entity, reader);
        }
    }

    fn drop_subscription(&mut self, now: Instant, reader: Guid) {
        if reader.prefix != self.config.prefix {
            return self.remove_subscription(now, reader, Ending::Deleted);
        }
        let known = self.database.subscriptions.get(reader);
        for writer in known.map_or_else(Vec::new, |known| known.matched.clone()) {
            self.part_own(now, writer, reader.entity);
        }
    }

    fn part_own(&mut self, now: Instant, writer: EntityId, reader: EntityId) {
        let own = |entity| Guid::new(self.config.prefix, entity);
        let (writer_guid, reader_guid) = (own(writer), own(reader));
        self.unmatch_pair_of_writer(writer, reader_guid);
        self.unmatch_pair_of_reader(now, reader, writer_guid);
    }
}
