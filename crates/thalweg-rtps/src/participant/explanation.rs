//! What a participant refused of what came in the names of others, for those who ask.

use super::{Participant, ParticipantCounters};
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
}

/// The parameter that carries the counts; it means nothing elsewhere.
const REFUSED: u16 = 0x8183;

impl Participant {
    /// What this participant refused of what came in the names of others.
    pub fn explain(&self) -> ParticipantExplanation {
        let ParticipantCounters { foreign_source, wrong_proofs, unprovable, unproved_locators, .. } = self.counters;
        let guid_prefix = self.config.prefix;
        ParticipantExplanation { guid_prefix, foreign_source, wrong_proofs, unprovable, unproved_locators }
    }
}

impl ParticipantExplanation {
    /// Appends the counts. Whoever reads them knows the participant already.
    pub(super) fn put(&self, list: &mut ParameterWriter<'_>) {
        let counts = [self.foreign_source, self.wrong_proofs, self.unprovable, self.unproved_locators];
        list.put(REFUSED, |value| {
            for count in counts {
                value.u32((count >> 32) as u32);
                value.u32(count as u32);
            }
        });
    }

    /// The counts of `guid_prefix`; none from a version that does not tell them.
    ///
    /// # Errors
    /// When they break off.
    pub(super) fn find(
        list: &ParameterList<'_>,
        guid_prefix: GuidPrefix,
    ) -> Result<Option<ParticipantExplanation>, WireError> {
        let Some(parameter) = list.find(REFUSED) else { return Ok(None) };
        let mut value = parameter.reader();
        let mut counts = [0; 4];
        for count in &mut counts {
            *count = u64::from(value.u32()?) << 32 | u64::from(value.u32()?);
        }
        let [foreign_source, wrong_proofs, unprovable, unproved_locators] = counts;
        Ok(Some(ParticipantExplanation { guid_prefix, foreign_source, wrong_proofs, unprovable, unproved_locators }))
    }
}

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
        };
        let bytes = encoded(&told);
        let list = ParameterList::from_payload(&bytes).expect("a list");
        assert_eq!(ParticipantExplanation::find(&list, PREFIX), Ok(Some(told)));
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
