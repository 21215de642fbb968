//! Samples that are related to others, as replies are to requests (DDS-RPC 1.0). A writer without such samples has none of this.

use std::collections::BTreeMap;

use super::Writer;
use crate::history::WriterHistory;
use crate::types::{SampleIdentity, SequenceNumber};

/// What the samples that the history holds are related to.
#[derive(Debug, Default)]
pub(super) struct RelatedSamples {
    identities: BTreeMap<SequenceNumber, SampleIdentity>,
}

/// Identities of samples that are gone which are tolerated beside twice the samples that are held.
const IDENTITIES_SPARE: usize = 64;

impl RelatedSamples {
    /// What a sample is related to.
    pub(super) fn of(&self, sequence: SequenceNumber) -> Option<SampleIdentity> {
        self.identities.get(&sequence).copied()
    }

    fn note(&mut self, sequence: SequenceNumber, related: SampleIdentity, history: &WriterHistory) {
        if self.identities.len() >= IDENTITIES_SPARE + 2 * history.len() {
            self.identities.retain(|sequence, _| history.get(*sequence).is_some());
        }
        self.identities.insert(sequence, related);
    }
}

impl Writer {
    /// Samples of which it is remembered what they are related to.
    #[cfg(test)]
    pub(crate) fn related_remembered(&self) -> usize {
        self.related.as_ref().map_or(0, |related| related.identities.len())
    }

    /// The sample that was written last is related to another one.
    pub(super) fn note_related(&mut self, sequence: SequenceNumber, related: SampleIdentity) {
        self.related.get_or_insert_default().note(sequence, related, &self.history);
    }
}
