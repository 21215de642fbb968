//! Endpoints of the same topic that do not match, and why.

use std::collections::{BTreeSet, HashSet};
use std::time::{Duration, Instant};

use thalweg::DomainParticipant;
use thalweg::qos::{MatchResult, Mismatch, PolicyId};
use thalweg::types::Guid;

use crate::outcome::{InLine, remark};

/// The writers and readers that share the topic of one of our endpoints and do not match it.
pub struct MismatchedEndpoints<'a> {
    participant: &'a DomainParticipant,
    own: Guid,
    looked: Instant,
    /// Nobody else tells of types that were compared.
    tells_types: bool,
    /// What the last look found.
    found: BTreeSet<String>,
    told: ToldMismatches,
}

impl<'a> MismatchedEndpoints<'a> {
    /// Those of `own`, a writer or reader of `participant`.
    pub fn of(participant: &'a DomainParticipant, own: Guid) -> MismatchedEndpoints<'a> {
        let (looked, found, told) = (Instant::now(), BTreeSet::new(), ToldMismatches::default());
        MismatchedEndpoints { participant, own, looked, tells_types: false, found, told }
    }

    /// Remarks on types that were compared as well, unless `are_told` otherwise.
    pub fn with_types_unless(self, are_told: bool) -> MismatchedEndpoints<'a> {
        MismatchedEndpoints { tells_types: !are_told, ..self }
    }

    /// Tells the user on standard error of types and partitions that differ, each once; looks every second. Incompatible QoS is
    /// told by the endpoint's status already.
    pub fn remark_new(&mut self) {
        if self.looked.elapsed() < LOOK_PERIOD {
            return;
        }
        self.looked = Instant::now();
        let is_of_types = |mismatch: &Mismatch| mismatch.policy == PolicyId::TYPE_CONSISTENCY;
        let is_untold = |reason: &MatchResult| match reason {
            MatchResult::Incompatible(mismatches) => self.tells_types && mismatches.iter().any(is_of_types),
            _ => true,
        };
        let reasons = self.reasons().into_iter().filter(is_untold);
        let reasons: BTreeSet<String> = reasons.map(|reason| InLine(reason).to_string()).collect();
        // Types that are on their way are known by their names: what holds at the next look, too, is told.
        for text in reasons.intersection(&self.found) {
            if self.told.insert(text) {
                remark(format_args!("another endpoint of the topic does not match: {text}"));
            }
        }
        self.found = reasons;
    }

    /// The reason why no endpoint matches, in a sentence.
    pub fn explain(&self) -> String {
        let reasons: BTreeSet<String> = self.reasons().iter().map(|reason| InLine(reason).to_string()).collect();
        match reasons.is_empty() {
            true => "no other endpoint of this topic was found in the domain".to_owned(),
            false => format!("endpoints of the topic do not match: {}", sentence(&reasons)),
        }
    }

    fn reasons(&self) -> Vec<MatchResult> {
        let (writers, readers) = (self.participant.publications(), self.participant.subscriptions());
        // Each with all others, rather than all with all: a domain may have many thousands.
        let own_writers = writers.iter().filter(|writer| writer.data.guid == self.own);
        let own_readers = readers.iter().filter(|reader| reader.data.guid == self.own);
        let read = own_writers.flat_map(|writer| readers.iter().map(move |reader| (&writer.data, &reader.data)));
        let written = own_readers.flat_map(|reader| writers.iter().map(move |writer| (&writer.data, &reader.data)));
        read.chain(written)
            .filter(|(writer, reader)| writer.topic_name == reader.topic_name)
            .map(|(writer, reader)| self.participant.compare(writer, reader, Duration::ZERO))
            .filter(|result| !result.is_match())
            .collect()
    }
}

/// Mismatches that the user was told of. Strangers choose the texts: of many, the first ones count.
#[derive(Default)]
struct ToldMismatches(HashSet<String>);

impl ToldMismatches {
    /// Takes a text; true where the user is to be told of it.
    fn insert(&mut self, text: &str) -> bool {
        self.0.len() < REMARKS_MAX && self.0.insert(text.to_owned())
    }
}

/// The first reasons of many, in one line.
fn sentence(reasons: &BTreeSet<String>) -> String {
    let first: Vec<&str> = reasons.iter().take(REASONS_MAX).map(String::as_str).collect();
    match reasons.len().saturating_sub(REASONS_MAX) {
        0 => first.join("; "),
        more => format!("{}; and {more} more", first.join("; ")),
    }
}

const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// Remarks on endpoints, chosen by us: more than anybody reads.
const REMARKS_MAX: usize = 64;
/// Reasons in a sentence, chosen by us: what a person reads.
const REASONS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mismatches_without_end_take_neither_memory_nor_lines_without_end() {
        let mut told = ToldMismatches::default();
        assert!(told.insert("type 0") && !told.insert("type 0"), "each once");
        let further = (1..10_000).filter(|number| told.insert(&format!("type {number}"))).count();
        assert_eq!((further, told.0.len()), (REMARKS_MAX - 1, REMARKS_MAX));
    }

    #[test]
    fn a_sentence_has_the_first_reasons_and_how_many_there_are_beyond() {
        let check = |count: usize, end: &str| {
            let reasons: BTreeSet<String> = (0..count).map(|number| format!("reason {number:03}")).collect();
            let told = sentence(&reasons);
            assert!(told.starts_with("reason 000; reason 001") && told.ends_with(end), "{told}");
        };
        check(8, "; reason 007");
        check(100, "; reason 007; and 92 more");
    }
}
