//! Counts of what a participant refused of others, for `thalweg why`.

#[cfg(doc)]
use super::ParticipantCounters;
use crate::types::GuidPrefix;

/// Counts of datagrams, answers and announcements that a participant refused; all start at zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
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
