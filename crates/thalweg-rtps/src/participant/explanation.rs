//! What a participant refused of what came in the names of others, for those who ask.

use super::Participant;
#[cfg(doc)]
use super::ParticipantCounters;
use crate::reader::ReaderExplanation;
use crate::types::GuidPrefix;
use crate::writer::WriterExplanation;

/// What a participant refused because nothing proved where it came from; all counts start at zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParticipantExplanation {
    /// The participant.
    pub guid_prefix: GuidPrefix,
    /// As [`ParticipantCounters::foreign_source`].
    pub foreign_source: u64,
    /// As [`ParticipantCounters::wrong_proofs`].
    pub wrong_proofs: u64,
    /// As [`ParticipantCounters::unprovable`].
    pub unprovable: u64,
    /// As [`ParticipantCounters::unproved_locators`].
    pub unproved_locators: u64,
    /// As [`ParticipantCounters::participants_over_limit`].
    pub participants_over_limit: u64,
    /// As [`ParticipantCounters::endpoints_over_limit`].
    pub endpoints_over_limit: u64,
}

impl Participant {
    /// What this participant refused of what came in the names of others.
    pub fn explain(&self) -> ParticipantExplanation {
        let counters = &self.counters;
        ParticipantExplanation {
            guid_prefix: self.config.prefix,
            foreign_source: counters.foreign_source,
            wrong_proofs: counters.wrong_proofs,
            unprovable: counters.unprovable,
            unproved_locators: counters.unproved_locators,
            participants_over_limit: counters.participants_over_limit,
            endpoints_over_limit: counters.endpoints_over_limit,
        }
    }
    /// What this participant's own writers of a topic do, and why.
    pub fn explain_writers(&self, topic: &str) -> Vec<WriterExplanation> {
        let own = self.database.publications.of_participant(self.config.prefix);
        let of_topic = own
            .filter(|guid| self.database.publications.get(*guid).is_some_and(|known| known.data.topic_name == topic));
        let explained = of_topic.filter_map(|guid| {
            let told = self.endpoints.writer(guid.entity)?.lock().explain();
            Some(WriterExplanation { topic: topic.to_owned(), ..told })
        });
        explained.collect()
    }

    /// What this participant's own readers of a topic received and did not hand over.
    pub fn explain_readers(&self, topic: &str) -> Vec<ReaderExplanation> {
        let own = self.database.subscriptions.of_participant(self.config.prefix);
        let of_topic = own
            .filter(|guid| self.database.subscriptions.get(*guid).is_some_and(|known| known.data.topic_name == topic));
        let explained = of_topic.filter_map(|guid| {
            let told = self.endpoints.reader(guid.entity)?.lock().explain();
            Some(ReaderExplanation { topic: topic.to_owned(), ..told })
        });
        explained.collect()
    }
}
