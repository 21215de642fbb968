//! Statuses: what endpoints tell about themselves (DDS 1.4 §2.2.4.1).

use thalweg_rtps::qos::{Mismatch, PolicyId};
use thalweg_rtps::types::Guid;

/// How many endpoints of the other kind an endpoint is matched with: PUBLICATION_MATCHED of a writer,
/// SUBSCRIPTION_MATCHED of a reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// Matches ever made.
    pub total: usize,
    /// Of these, since the status was last asked for or told.
    pub total_change: usize,
    /// Matches now.
    pub current: usize,
    /// Difference to when the status was last asked for or told.
    pub current_change: isize,
    /// The endpoint whose match was made or ended last.
    pub last: Option<Guid>,
}

impl Matched {
    pub(crate) fn add(&mut self, guid: Guid) {
        self.total += 1;
        self.total_change += 1;
        self.current += 1;
        self.current_change += 1;
        self.last = Some(guid);
    }

    pub(crate) fn remove(&mut self, guid: Guid) {
        self.current = self.current.saturating_sub(1);
        self.current_change -= 1;
        self.last = Some(guid);
    }

    /// The status as it is; the changes start from zero again.
    pub(crate) fn tell(&mut self) -> Matched {
        let told = *self;
        self.total_change = 0;
        self.current_change = 0;
        told
    }
}

/// Endpoints of the same topic that do not fit: OFFERED_INCOMPATIBLE_QOS of a writer, REQUESTED_INCOMPATIBLE_QOS of a reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncompatibleQos {
    /// Incompatible endpoints ever found.
    pub total: usize,
    /// Of these, since the status was last asked for or told.
    pub total_change: usize,
    /// The endpoint that was found last.
    pub last: Option<Guid>,
    /// Every policy that keeps it and this endpoint apart, with both values and the rule; displays as a sentence.
    pub mismatches: Vec<Mismatch>,
}

impl IncompatibleQos {
    /// The first policy that fails, as DDS reports it.
    pub fn last_policy(&self) -> Option<PolicyId> {
        self.mismatches.first().map(|mismatch| mismatch.policy)
    }

    pub(crate) fn add(&mut self, guid: Guid, mismatches: Vec<Mismatch>) {
        self.total += 1;
        self.total_change += 1;
        self.last = Some(guid);
        self.mismatches = mismatches;
    }

    pub(crate) fn tell(&mut self) -> IncompatibleQos {
        let told = self.clone();
        self.total_change = 0;
        told
    }
}

/// Readers that a writer no longer waits for, since they made no progress for as long as its `reader_patience` allows: a status of
/// Thalweg. What they missed they count as lost once they acknowledge again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadersGivenUp {
    /// How often a reader was given up.
    pub total: usize,
    /// Of these, since the status was last asked for or told.
    pub total_change: usize,
    /// Readers that are given up now: matched, and not waited for.
    pub current: usize,
    /// The reader that was given up last.
    pub last: Option<Guid>,
}

impl ReadersGivenUp {
    pub(crate) fn add(&mut self, guid: Guid) {
        self.total += 1;
        self.total_change += 1;
        self.last = Some(guid);
    }

    pub(crate) fn tell(&mut self, current: usize) -> ReadersGivenUp {
        let told = ReadersGivenUp { current, ..*self };
        self.total_change = 0;
        told
    }
}

/// News about a writer, as its status listener gets them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriterStatus {
    /// Readers came or went.
    PublicationMatched(Matched),
    /// A reader requests more than the writer offers.
    OfferedIncompatibleQos(IncompatibleQos),
    /// A reader made no progress for as long as the writer's `reader_patience` allows, and is no longer waited for.
    ReadersGivenUp(ReadersGivenUp),
}

/// News about a reader, as its status listener gets them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReaderStatus {
    /// Writers came or went.
    SubscriptionMatched(Matched),
    /// A writer offers less than the reader requests.
    RequestedIncompatibleQos(IncompatibleQos),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_count_from_the_last_time_they_were_told() {
        let mut matched = Matched::default();
        matched.add(Guid::UNKNOWN);
        matched.add(Guid::UNKNOWN);
        assert_eq!(matched.tell().total_change, 2);
        matched.remove(Guid::UNKNOWN);
        let told = matched.tell();
        assert_eq!((told.total, told.total_change, told.current, told.current_change), (2, 0, 1, -1));
    }
}
