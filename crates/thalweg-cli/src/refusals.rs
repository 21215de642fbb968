//! Messages that a participant refused because their origin was not proved, with remedies.

use serde::Serialize;
use thalweg::explain::ParticipantExplanation;

/// The counts of one participant.
#[derive(Serialize)]
pub struct Refusals {
    foreign_source: u64,
    wrong_proofs: u64,
    unprovable: u64,
    unproved_locators: u64,
    participants_over_limit: u64,
    endpoints_over_limit: u64,
}

impl Refusals {
    /// The counts of a participant's explanation.
    pub fn new(told: &ParticipantExplanation) -> Refusals {
        Refusals {
            foreign_source: told.foreign_source,
            wrong_proofs: told.wrong_proofs,
            unprovable: told.unprovable,
            unproved_locators: told.unproved_locators,
            participants_over_limit: told.participants_over_limit,
            endpoints_over_limit: told.endpoints_over_limit,
        }
    }

    /// A sentence for each count that is not zero.
    pub fn sentences(&self) -> Vec<String> {
        let sentences = [
            (
                self.foreign_source,
                "message",
                "in the name of a known participant came from an address that is not its own and had no effect: such messages are \
                 forged, or an address translator lies on the path; capture such messages to find their origin",
            ),
            (
                self.wrong_proofs,
                "answer",
                "did not prove the address of its participant: it is forged, or older than this participant; if a participant stays \
                 undiscovered, capture the messages from its address",
            ),
            (
                self.unprovable,
                "announcement",
                "came from a participant that cannot prove its address and stays undiscovered: enable its readers of \
                 endpoint discovery (SEDP)",
            ),
            (
                self.unproved_locators,
                "time",
                "an endpoint named an address that has not answered and is not used: let its participant use one IP address \
                 for discovery and data",
            ),
            (
                self.participants_over_limit,
                "announcement",
                "of participants found no room, so that these stay undiscovered: raise participants_max of the limits of \
                 discovery (DomainParticipantBuilder::discovery_limits)",
            ),
            (
                self.endpoints_over_limit,
                "announcement",
                "of writers and readers found no room, so that these endpoints are not matched here: raise \
                 endpoints_per_participant_max or the bytes of the limits of discovery \
                 (DomainParticipantBuilder::discovery_limits, --endpoints-max)",
            ),
        ];
        let told = sentences.iter().filter(|(count, ..)| *count > 0);
        told.map(|(count, noun, text)| format!("{count} {noun}{} {text}", if *count == 1 { "" } else { "s" })).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(counts: [u64; 6], beginnings: &[&str]) {
        let [foreign_source, wrong_proofs, unprovable, unproved_locators, ..] = counts;
        let [.., participants_over_limit, endpoints_over_limit] = counts;
        let refusals = Refusals {
            foreign_source,
            wrong_proofs,
            unprovable,
            unproved_locators,
            participants_over_limit,
            endpoints_over_limit,
        };
        let told = refusals.sentences();
        assert_eq!(told.len(), beginnings.len(), "{told:?}");
        for (sentence, beginning) in told.iter().zip(beginnings) {
            assert!(sentence.starts_with(beginning), "{sentence:?} does not begin with {beginning:?}");
        }
    }

    #[test]
    fn each_count_that_is_not_zero_has_its_sentence() {
        check([0; 6], &[]);
        check([7, 0, 0, 0, 0, 0], &["7 messages in the name of a known participant"]);
        check([0, 8, 0, 0, 0, 0], &["8 answers did not prove"]);
        check([0, 0, 0, 0, 1, 2], &["1 announcement of participants", "2 announcements of writers and readers"]);
        check([0, 0, 9, 1, 0, 0], &["9 announcements came from", "1 time an endpoint named an address"]);
    }
}
