//! What a participant refused of what came in the names of others, for those who ask.

use super::Participant;
#[cfg(doc)]
use super::ParticipantCounters;
use crate::types::GuidPrefix;
use crate::wire::WireError;
use crate::wire::parameters::{ParameterList, ParameterWriter};

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

/// The parameter that carries the counts; it means nothing elsewhere.
const REFUSED: u16 = 0x8183;

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
}

impl ParticipantExplanation {
    /// The counts in their order on the wire; later ones go behind, since earlier versions read the first ones.
    fn counts(&mut self) -> [&mut u64; 6] {
        [
            &mut self.foreign_source,
            &mut self.wrong_proofs,
            &mut self.unprovable,
            &mut self.unproved_locators,
            &mut self.participants_over_limit,
            &mut self.endpoints_over_limit,
        ]
    }

    /// Appends the counts. Whoever reads them knows the participant already.
    pub(super) fn put(&self, list: &mut ParameterWriter<'_>) {
        let mut told = *self;
        list.put(REFUSED, |value| {
            for count in told.counts() {
                value.u32((*count >> 32) as u32);
                value.u32(*count as u32);
            }
        });
    }

    /// The counts of `guid_prefix`; none from a version that does not tell them, and zero for those that it does not know.
    ///
    /// # Errors
    /// When they break off.
    pub(super) fn find(
        list: &ParameterList<'_>,
        guid_prefix: GuidPrefix,
    ) -> Result<Option<ParticipantExplanation>, WireError> {
        let Some(parameter) = list.find(REFUSED) else { return Ok(None) };
        let mut value = parameter.reader();
        let mut told = ParticipantExplanation {
            guid_prefix,
            foreign_source: 0,
            wrong_proofs: 0,
            unprovable: 0,
            unproved_locators: 0,
            participants_over_limit: 0,
            endpoints_over_limit: 0,
        };
        for (position, count) in told.counts().into_iter().enumerate() {
            if position >= FIRST_COUNTS && value.remaining() == 0 {
                break;
            }
            *count = u64::from(value.u32()?) << 32 | u64::from(value.u32()?);
        }
        Ok(Some(told))
    }
}

/// Counts that every version tells which tells any.
const FIRST_COUNTS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: GuidPrefix = GuidPrefix([7; 12]);

    fn encoded(told: &ParticipantExplanation) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut list = ParameterWriter::encapsulated(&mut bytes);
        told.put(&mut list);
        list.finish();
        bytes
    }

    #[test]
    fn what_is_told_comes_back() {
        let told = ParticipantExplanation {
            guid_prefix: PREFIX,
            foreign_source: 1 << 40,
            wrong_proofs: 2,
            unprovable: u64::MAX,
            unproved_locators: 3,
            participants_over_limit: 4,
            endpoints_over_limit: 5 << 33,
        };
        let bytes = encoded(&told);
        let list = ParameterList::from_payload(&bytes).expect("a list");
        assert_eq!(ParticipantExplanation::find(&list, PREFIX), Ok(Some(told)));
    }

    #[test]
    fn an_earlier_version_tells_four_counts() {
        let mut bytes = Vec::new();
        let mut list = ParameterWriter::encapsulated(&mut bytes);
        list.put(REFUSED, |value| (0..8).for_each(|n| value.u32(n % 2 * 7)));
        list.finish();
        let list = ParameterList::from_payload(&bytes).expect("a list");
        let told = ParticipantExplanation::find(&list, PREFIX).expect("counts").expect("counts");
        assert_eq!((told.foreign_source, told.unproved_locators, told.endpoints_over_limit), (7, 7, 0));
    }

    #[test]
    fn counts_that_break_off_are_an_error_and_absent_ones_are_none() {
        let mut bytes = Vec::new();
        let mut list = ParameterWriter::encapsulated(&mut bytes);
        list.put(REFUSED, |value| value.u32(1));
        list.finish();
        let list = ParameterList::from_payload(&bytes).expect("a list");
        assert!(ParticipantExplanation::find(&list, PREFIX).is_err());
        let mut bytes = Vec::new();
        ParameterWriter::encapsulated(&mut bytes).finish();
        let list = ParameterList::from_payload(&bytes).expect("a list");
        assert_eq!(ParticipantExplanation::find(&list, PREFIX), Ok(None));
    }
}
