//! Endpoints of the same topic that do not match, and why.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use thalweg::DomainParticipant;
use thalweg::qos::{MatchResult, match_endpoints};
use thalweg::types::Guid;

use crate::outcome::remark;

/// The writers and readers that share the topic of one of our endpoints and do not match it.
pub struct MismatchedEndpoints<'a> {
    participant: &'a DomainParticipant,
    own: Guid,
    looked: Instant,
    told: HashSet<String>,
}

impl<'a> MismatchedEndpoints<'a> {
    /// Those of `own`, a writer or reader of `participant`.
    pub fn of(participant: &'a DomainParticipant, own: Guid) -> MismatchedEndpoints<'a> {
        MismatchedEndpoints { participant, own, looked: Instant::now(), told: HashSet::new() }
    }

    /// Tells the user on standard error of types and partitions that differ, each once; looks every second. Incompatible QoS is
    /// told by the endpoint's status already.
    pub fn remark_new(&mut self) {
        if self.looked.elapsed() < LOOK_PERIOD {
            return;
        }
        self.looked = Instant::now();
        for reason in self.reasons() {
            let text = reason.to_string();
            if !matches!(reason, MatchResult::Incompatible(_)) && self.told.insert(text.clone()) {
                remark(format_args!("another endpoint of the topic does not match: {text}"));
            }
        }
    }

    /// The reason why no endpoint matches, in a sentence.
    pub fn explain(&self) -> String {
        let mut reasons: Vec<String> = self.reasons().iter().map(ToString::to_string).collect();
        reasons.sort();
        reasons.dedup();
        match reasons.is_empty() {
            true => "no other endpoint of this topic was found in the domain".to_owned(),
            false => format!("endpoints of the topic do not match: {}", reasons.join("; ")),
        }
    }

    fn reasons(&self) -> Vec<MatchResult> {
        let (writers, readers) = (self.participant.publications(), self.participant.subscriptions());
        let pairs = writers.iter().flat_map(|writer| readers.iter().map(move |reader| (&writer.data, &reader.data)));
        pairs
            .filter(|(writer, reader)| writer.guid == self.own || reader.guid == self.own)
            .map(|(writer, reader)| match_endpoints(&writer.offer(), &reader.request()))
            .filter(|result| !matches!(result, MatchResult::Match | MatchResult::DifferentTopic))
            .collect()
    }
}

const LOOK_PERIOD: Duration = Duration::from_secs(1);
