//! What a participant refused of what came in the names of others, for those who ask.

#[cfg(doc)]
use super::ParticipantCounters;
use crate::types::GuidPrefix;

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
